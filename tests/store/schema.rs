//! Opening a store, its schema, and what docs/data.md says of it.

use super::support::{Place, planned};
use delivery_canary::{
    config::{
        model::{PostgresStore, SqliteStore, StoreConfig},
        scalar::Secret,
    },
    store::{self, Standing, StoreError},
};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use std::{
    collections::BTreeSet,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

fn sqlite(path: &Path) -> StoreConfig {
    StoreConfig::Sqlite(SqliteStore { path: path.to_owned() })
}

async fn refusal(config: &StoreConfig) -> String {
    match store::open(config).await {
        Ok(_) => panic!("it opened"),
        Err(error) => error.to_string(),
    }
}

async fn run(address: &str, statement: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(address).await.expect("the database is there");
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.expect("it runs");
    connection.close().await.expect("the connection closes");
}

#[tokio::test]
async fn a_file_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("a b%20?#.db");
    let store = store::open(&sqlite(&path)).await.expect("the store opens");
    planned(&*store, "a", super::support::at(0)).await;
    let files: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert!(files.contains(&path), "{files:?}");
    for file in files {
        let mode = file.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_file_without_a_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let text = refusal(&sqlite(&folder.path().join("nowhere").join("store.db"))).await;
    assert!(text.contains("nowhere is not there; make it"), "{text}");
}

#[tokio::test]
async fn what_is_no_store_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.db");
    std::fs::write(&path, "This is no database. ".repeat(500)).expect("a file can be written");
    let text = refusal(&sqlite(&path)).await;
    assert!(text.contains("store.db") && text.contains("move it away"), "{text}");
}

#[tokio::test]
async fn a_damaged_store_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.db");
    drop(store::open(&sqlite(&path)).await.expect("the store opens"));
    run(&format!("sqlite:{}", path.display()), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let mut bytes = std::fs::read(&path).expect("the file can be read");
    bytes[100..8_192].fill(0xA5);
    std::fs::write(&path, bytes).expect("the file can be written");
    let text = refusal(&sqlite(&path)).await;
    assert!(text.contains("store.db") && text.contains("move it away"), "{text}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let place = Place::sqlite().await;
    drop(place.open().await);
    run(&place.address(), "INSERT INTO schema_step (step, applied_at) VALUES (99, 0)").await;
    let text = refusal(&place.config).await;
    assert!(text.contains("at step 99") && text.contains("newer release"), "{text}");
    let place = Place::postgres().await;
    place.open().await.ping().await.expect("it can be used");
    run(&place.address(), "INSERT INTO schema_step (step, applied_at) VALUES (99, 0)").await;
    let error = place.open().await.ping().await.expect_err("it is refused");
    assert!(matches!(error, StoreError::Schema(_)), "{error:?}");
}

#[tokio::test]
async fn a_look_changes_nothing_and_says_what_opening_would_do() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.db");
    let file = sqlite(&path);
    assert_eq!(store::look_at(&file).await.expect("there is a folder"), Standing::Empty);
    assert!(!path.exists(), "it was made by a look");
    let places = [(file, format!("sqlite:{}", path.display())), {
        let place = Box::leak(Box::new(Place::postgres().await));
        assert_eq!(store::look_at(&place.config).await.expect("it can be reached"), Standing::Empty);
        let server = place.server.as_ref().expect("a server");
        let url = server.role("bare", &place.address()).await;
        let bare = StoreConfig::Postgres(PostgresStore { url: Secret::new(url), max_connections: 4 });
        let error = store::look_at(&bare).await.expect_err("it may make nothing");
        assert!(error.to_string().contains("right to create tables"), "{error}");
        (place.config.clone(), place.address())
    }];
    for (config, address) in places {
        store::open(&config).await.expect("it opens").ping().await.expect("it can be used");
        assert_eq!(store::look_at(&config).await.expect("it can be read"), Standing::Current);
        run(&address, "DELETE FROM schema_step WHERE step > 2").await;
        let older = store::look_at(&config).await.expect("it can be read");
        assert!(matches!(older, Standing::Older { step: 2, known } if known > 2), "{older:?}");
        run(&address, "INSERT INTO schema_step (step, applied_at) VALUES (99, 0)").await;
        let error = store::look_at(&config).await.expect_err("it is of a newer release");
        assert!(error.to_string().contains("at step 99"), "{error}");
    }
}

#[tokio::test]
async fn a_bad_address_is_refused_without_its_password() {
    for url in ["mysql://role:hunter2@host/db", "postgres://role:hunter2@[host/db", "hunter2"] {
        let config = StoreConfig::Postgres(PostgresStore { url: Secret::new(url), max_connections: 4 });
        let text = refusal(&config).await;
        assert!(text.contains("postgres://") && !text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn a_role_without_rights_is_told_so() {
    let place = Place::postgres().await;
    let server = place.server.as_ref().expect("a server");
    let url = server.role("bare", &place.address()).await;
    let config = StoreConfig::Postgres(PostgresStore { url: Secret::new(url), max_connections: 4 });
    let error = store::open(&config).await.expect("it opens").ping().await.expect_err("it is refused");
    assert!(error.to_string().contains("right to create tables"), "{error}");
}

/// SQLite waits three seconds for a lock and then answers "locked": an opening goes on trying for as long as a call may take.
#[tokio::test]
async fn a_file_that_another_has_for_itself_is_waited_for() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.db");
    let config = sqlite(&path);
    store::open(&config).await.expect("the store opens").ping().await.expect("a write can be made");
    let address = format!("sqlite:{}", path.display());
    let mut other = AnyConnection::connect(&address).await.expect("the database is there");
    let hold = "PRAGMA locking_mode = EXCLUSIVE; UPDATE counter SET value = value";
    sqlx::raw_sql(hold).execute(&mut other).await.expect("it runs");
    let mut opening = tokio::spawn(async move { store::open(&config).await.map(drop) });
    let early = tokio::time::timeout(Duration::from_millis(3_300), &mut opening).await;
    assert!(early.is_err(), "it gave up while the file was held: {early:?}");
    other.close().await.expect("the connection closes");
    opening.await.expect("the task ends").expect("it opens as soon as the file is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_may_make_one_file_at_once() {
    let place = Place::sqlite().await;
    let opened = (0..6).map(|_| {
        let config = place.config.clone();
        tokio::spawn(async move { store::open(&config).await })
    });
    for task in opened.collect::<Vec<_>>() {
        let store = task.await.expect("the task ends").expect("the store opens");
        store.ping().await.expect("a write can be made");
    }
    assert_eq!(place.number("SELECT value FROM counter WHERE name = 'ping'").await, 6);
}

/// The cells of the first two columns of the tables below a heading of docs/data.md.
fn documented(document: &str, heading: &str) -> BTreeSet<(String, String)> {
    let section = document.split("\n## ").find(|section| section.starts_with(heading)).expect("the section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_owned());
        (cells.next().expect("a cell"), cells.next().expect("a cell"))
    })
    .collect()
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/data.md");
    std::fs::read_to_string(path).expect("docs/data.md can be read")
}

#[tokio::test]
async fn each_stored_field_is_documented() {
    let place = Place::sqlite().await;
    drop(place.open().await);
    let mut connection = AnyConnection::connect(&place.address()).await.expect("the database is there");
    let text = "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'";
    let rows = sqlx::query(text).fetch_all(&mut connection).await.expect("it runs");
    let stored: BTreeSet<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(documented(&document(), "Tables"), stored);
}

#[test]
fn each_field_of_an_event_is_documented() {
    let mut stored = BTreeSet::new();
    for event in super::history::all_events() {
        let json = serde_json::to_value(&event).expect("an event is JSON");
        fields(&json, "", &mut |field| {
            stored.insert((event.word().to_owned(), field.to_owned()));
        });
    }
    assert_eq!(documented(&document(), "Events"), stored);
}

/// The dotted names of all fields in this JSON.
fn fields(json: &serde_json::Value, prefix: &str, note: &mut impl FnMut(&str)) {
    match json {
        serde_json::Value::Object(object) => {
            for (name, value) in object {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                if !(value.is_object()
                    || value.as_array().is_some_and(|all| all.iter().any(|v| v.is_object())))
                {
                    note(&name);
                }
                fields(value, &name, note);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| fields(value, prefix, note)),
        _ => {}
    }
}
