//! `ledger init` on tables whose names say nothing to it: it tells what to name, and what it prints can be pasted.

use super::{
    bed::Database,
    init::proposed,
    mariadb::Mariadb,
    postgres::Postgres,
    run::{SECRETS, run},
    watch::Watch,
};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use std::process::{Command, Stdio};

/// Statements for names in these quotes, an instant of this type and a number that counts itself.
fn schema(quote: char, instant: &str, counted: &str, now: &str) -> String {
    let q = |name: &str| format!("{quote}{name}{quote}");
    format!(
        "create table {notices} ({nr} {counted}, {why} varchar(40) not null, {made} {instant} not null, {due} {instant} null,
             {probe} smallint not null default 0, recipient_address varchar(99), message_body varchar(99));
         create table versuche ({no} {counted}, auftrag bigint not null, {came} varchar(40) not null, {begun} {instant} not null);
         insert into {notices} ({why}, {made}) values ('receipts', {now}), ('receipts', {now}), ('alerts', {now});
         insert into versuche (auftrag, {came}, {begun}) values (1, 'zugestellt', {now}), (2, 'nochmal', {now});",
        notices = q("Aufträge"),
        nr = q("auftragsNr"),
        why = q("Anlass"),
        made = q("angelegtAm"),
        due = q("zu erledigen bis"),
        probe = q("istProbe"),
        no = q("versuchNr"),
        came = q("Ergebnis"),
        begun = q("begonnenAm"),
    )
}

/// The command that is printed, as a shell takes it.
fn pasted(said: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| line.starts_with("delivery-canary ledger init"));
    let line = line.unwrap_or_else(|| panic!("no command is printed: {said}"));
    let program = format!("'{}'", env!("CARGO_BIN_EXE_delivery-canary"));
    line.replacen("delivery-canary", &program, 1)
}

fn in_a_shell(command: &str) -> (Option<i32>, String, String) {
    let output = Command::new("sh")
        .args(["-c", command])
        .envs(SECRETS)
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

async fn is_named_and_proposed(url: &str, monitor: &str) {
    let tables = ["--notifications", "Aufträge", "--attempts", "versuche"];
    let arguments = [&["ledger", "init", "--database", url][..], &tables].concat();
    let ran = run(&arguments, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    for word in [
        "accepted_at: the time of acceptance",
        "it could be: angelegtAm",
        "attempt_of: the notification that an attempt is one of; by its type it could be: auftrag",
        "attempt_status: what came of the attempt",
        "it has: auftragsNr, Anlass, angelegtAm, zu erledigen bis, istProbe",
        "not needed: idempotency_key, route, canary, not_before",
        "--column accepted_at=angelegtAm",
        "--column attempt_of=auftrag",
    ] {
        assert!(ran.err.contains(word), "`{word}` is not in: {}", ran.err);
    }
    let (code, yaml, said) = in_a_shell(&pasted(&ran.err));
    assert_eq!(code, Some(0), "{said}");
    assert!(yaml.contains("angelegtAm, as was said by --column"), "{yaml}");
    assert!(yaml.contains("--column idempotency_key=COLUMN"), "what can still be named is told: {yaml}");

    // And with all of it, in whatever case or quotes somebody copies it.
    let named = [
        "accepted_at=\"angelegtAm\"",
        "not_before=zu erledigen bis",
        "route=anlass",
        "canary=istProbe",
        "attempt_of=auftrag",
        "attempt_status=Ergebnis",
        "attempt_at=begonnenAm",
    ];
    let mut more: Vec<&str> = named.iter().flat_map(|named| ["--column", named]).collect();
    more.extend(tables);
    more.extend(["--means", "zugestellt=delivered", "--means", "nochmal=retryable"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (yaml, loaded) = proposed(folder.path(), url, monitor, &["receipts", "alerts"], &more).await;
    assert!(yaml.contains("zu erledigen bis") && yaml.contains("\"receipts\": webhook/receipts"), "{yaml}");
    let mut watch = Watch::new(&loaded, "service").await;
    assert_eq!(watch.try_pass().await.expect("a pass").rows, 5);

    for (wrong, says) in [
        ("accepted_at=nirgends", "there is no such column; `Aufträge` has: auftragsNr"),
        ("attempt_at=auftragsNr", "there is no such column; `versuche` has: versuchNr"),
        ("next_attempt=begonnenAm", "can't be that by its type"),
        ("status=Anlass", "named as attempt_status"),
    ] {
        let ran = run(&[&arguments[..], &["--column", wrong]].concat(), &[]);
        assert_eq!(ran.code, 3, "{wrong}: {}", ran.err);
        assert!(ran.err.contains(says), "{wrong}: {}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_names_are_named_on_postgres() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let counted = "bigint generated always as identity primary key";
    Database { url: url.clone() }.execute(&schema('"', "timestamptz", counted, "now()")).await;
    is_named_and_proposed(&url, &url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_names_are_named_on_mariadb() {
    let server = Mariadb::start();
    let url = server.fresh_database().await;
    let name = url.rsplit('/').next().expect("a name").to_owned();
    server.execute(&name, &schema('`', "timestamp(6)", "bigint auto_increment primary key", "now(6)")).await;
    is_named_and_proposed(&url, &url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_names_are_named_in_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("ledger.db");
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("the file opens");
    let now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
    let text = schema('"', "datetime", "integer primary key", now);
    sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut connection).await.expect("the tables are made");
    connection.close().await.expect("it closes");
    let path = path.to_str().expect("a path that is text");
    is_named_and_proposed(&format!("sqlite:{path}"), path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_no_primary_key_can_be_named_and_a_password_is_not_repeated() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let database = Database { url: url.clone() };
    database.execute("create table mails (ref uuid not null, part int, at timestamptz not null, state text not null, primary key (ref, part))").await;
    let arguments = ["ledger", "init", "--notifications", "mails"];
    let with_password = url.replacen('@', ":hunter2@", 1);
    assert_ne!(with_password, url);
    let ran = run(&arguments, &[("DELIVERY_CANARY_OWNER_URL", &with_password)]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("notification_id: the id that the service's API answers"), "{}", ran.err);
    assert!(!ran.err.contains("hunter2") && !pasted(&ran.err).contains("--database"), "{}", ran.err);
    let named = [
        "--database",
        &url,
        "--column",
        "notification_id=ref",
        "--column",
        "accepted_at=at",
        "--means",
        "sent=delivered",
    ];
    let yaml = run(&[&arguments[..], &named].concat(), &[]).ended(0);
    assert!(yaml.contains("u.ref as notification_id"), "{yaml}");
}
