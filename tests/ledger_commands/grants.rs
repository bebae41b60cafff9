//! `ledger grants`: what it prints is enough, and no more than that.

use super::{
    bed::{Database, load},
    mariadb::Mariadb,
    postgres::Postgres,
    run::{SECRETS, configuration, run},
    watch::Watch,
};
use delivery_canary::{
    config,
    ledger::{self, check::Level},
};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection};

/// Whether a role may not read this, for want of the right to.
async fn is_denied(url: &str, sql: &str) -> bool {
    let mut connection = PgConnection::connect(url).await.expect("the role may connect");
    let read = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await;
    let code = read.err().and_then(|error| Some(error.as_database_error()?.code()?.into_owned()));
    code.as_deref() == Some("42501")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_rights_are_enough_for_a_shape_and_nothing_else_can_be_read() {
    let server = Postgres::start();
    for (shape, private, denied) in [
        (
            "append_only",
            "alter table messages add recipient text, add body text; alter table attempts add response text",
            [
                "select recipient from messages",
                "select body from messages",
                "select response from attempts",
                "select * from messages",
            ],
        ),
        (
            "fan_out",
            "alter table events add recipient text, add body text; alter table tries add response text",
            [
                "select recipient from events",
                "select body from events",
                "select response from tries",
                "select number from tries limit 1",
            ],
        ),
    ] {
        let (database, reader) = Database::on(&server, shape).await;
        database.execute(private).await;
        let role = format!("least_{shape}");
        database
            .execute(&format!(
                "create role {role} login; revoke connect on database {} from public",
                database.url.rsplit('/').next().expect("a name")
            ))
            .await;
        let least = reader.replacen("canary_reader@", &format!("{role}@"), 1);
        let path = format!("config/shapes/{shape}.yaml");
        let arguments = ["ledger", "grants", "--config", &path, "--database", &database.url];
        let script = run(&arguments, &[("LEDGER_URL", &least)]).ended(0);
        for word in ["recipient", "body", "response"] {
            assert!(!script.contains(word), "{script}");
        }
        assert!(
            script.contains(&format!("to {role};")) && script.contains("grant connect on database"),
            "{script}"
        );
        // It can be run again.
        database.execute(&script).await;
        database.execute(&script).await;

        let loaded = load(shape, &[("LEDGER_URL", &least)]).await;
        let mut watch = Watch::new(&loaded, "service").await;
        let passed = watch.try_pass().await.expect("a pass of the follower needs no more");
        assert!(passed.rows > 20, "{} rows", passed.rows);
        for sql in denied {
            assert!(is_denied(&least, sql).await, "{shape}: {sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_read_nothing_yet_can_ask_by_itself() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "append_only").await;
    database.execute("revoke all on all tables in schema public from canary_reader").await;
    let arguments = ["ledger", "grants", "--config", "config/shapes/append_only.yaml"];
    let script = run(&arguments, &[("LEDGER_URL", &reader)]).ended(0);
    assert!(script.contains("no plan was looked at"), "{script}");
    assert!(
        script.contains(
            "grant select (id, message_id, result, started_at) on public.attempts to canary_reader;"
        ),
        "{script}"
    );
    database.execute(&script).await;
    load("append_only", &[("LEDGER_URL", &reader)]).await;
}

/// A ledger whose lookup reads this.
fn ledgers(url: &str, names: &[&str], from: &str) -> String {
    let one = |name: &&str| {
        format!(
            "  {name}:
    database: {{ postgres: {{ url: '{url}' }} }}
    lookup:
      sql: select id, state from {from} where id = any(:ids) limit :limit
      columns: {{ notification_id: id, status: state }}
    statuses: {{ sent: delivered }}
"
        )
    };
    format!("ledgers:\n{}", names.iter().map(one).collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plan_and_a_text_cannot_tell_is_said() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let database = Database { url: url.clone() };
    database
        .execute(
            "create schema app;
             create table app.\"Notes\" (id text primary key, state text, recipient text);
             create view app.plain as select id, state, recipient from app.\"Notes\";
             create function app.notes() returns setof app.\"Notes\" language sql stable as 'select * from app.\"Notes\"'",
        )
        .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let asked = |from: &str, more: &[&str]| {
        let file = configuration(folder.path(), &["receipts"], &ledgers(&url, &["one"], from));
        let file = file.to_str().expect("a path that is text").to_owned();
        run(&[&["ledger", "grants", "--role", "odd role", "--config", &file], more].concat(), &[])
    };
    let of_table = asked("app.\"Notes\"", &[]).ended(0);
    assert!(of_table.contains("grant usage on schema app to \"odd role\";"), "{of_table}");
    assert!(of_table.contains("grant select (id, state) on app.\"Notes\" to \"odd role\";"), "{of_table}");
    assert!(of_table.contains("there is no role"), "{of_table}");

    let of_view = asked("app.plain", &[]).ended(0);
    assert!(of_view.contains("grant select (id, state) on app.plain to"), "{of_view}");
    assert!(of_view.contains("is a view") && !of_view.contains("Notes"), "{of_view}");

    // It is read with the caller's rights, and nothing in the text tells what.
    let of_function = asked("app.notes()", &[]).ended(3);
    assert!(of_function.contains("TO BE DECIDED") && of_function.contains("Notes"), "{of_function}");

    let missing = asked("app.nowhere", &[]);
    assert!(missing.err.contains("app.nowhere"), "{}", missing.err);
    assert_eq!(missing.code, 75);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_wrongly_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file =
        configuration(folder.path(), &["receipts"], &ledgers("postgres://r@127.0.0.1:9/x", &["a", "b"], "n"));
    let file = file.to_str().expect("a path that is text");
    for (more, code, says) in [
        (&[][..], 2, "--ledger: a, b"),
        (&["--ledger", "c"], 4, "there is no ledger `c`"),
        (&["--ledger", "a", "--role", " "], 2, "--role"),
        (&["--ledger", "a", "--database", "mysql://x@y/z"], 2, "postgres://"),
        (&["--ledger", "a"], 75, "can't be reached"),
    ] {
        let ran = run(&[&["ledger", "grants", "--config", file], more].concat(), &[]);
        assert!(ran.err.contains(says), "{more:?}: {}", ran.err);
        assert_eq!(ran.code, code, "{more:?}: {}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_no_grants() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("shape.db");
    Database::file(&path, "null_states").await;
    let path = path.to_str().expect("a path that is text");
    let arguments = ["ledger", "grants", "--config", "config/shapes/null_states.yaml"];
    let said = run(&arguments, &[("LEDGER_FILE", path)]).ended(0);
    assert!(said.contains(path) && said.contains("readable"), "{said}");
    assert!(said.lines().all(|line| line.starts_with("--")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_rights_are_enough_on_mariadb() {
    let server = Mariadb::start();
    let url = server.fresh_database().await;
    let name = url.rsplit('/').next().expect("a name").to_owned();
    server
        .execute(
            &name,
            "create table notes (id char(36) primary key, `key` varchar(60), route varchar(20), accepted_at timestamp(6) not null,
                                 recipient text, body text, index (accepted_at, id));
             create table calls (id bigint primary key auto_increment, note_id char(36), result varchar(20), at timestamp(6) not null,
                                 response text, index (at, id), index (note_id));
             insert into notes (id, `key`, route, accepted_at) values ('a', 'k', 'receipts', now(6));
             insert into calls (note_id, result, at) values ('a', 'sent', now(6))",
        )
        .await;
    let least = server.role("least", &url).await;
    let ledgers = format!(
        "ledgers:
  one:
    database: {{ mysql: {{ url: '{least}' }} }}
    lookup:
      sql: |
        select n.id, n.`key`, n.accepted_at, c.id as call_id, c.result, c.at
          from notes n left join calls c on c.note_id = n.id where n.id in (:ids) or n.`key` in (:keys) limit :limit
      columns: {{ notification_id: id, idempotency_key: key, accepted_at: accepted_at, attempt_id: call_id, attempt_status: result, attempt_at: at }}
    notifications:
      sql: |
        select id, route, accepted_at from notes
         where accepted_at >= :after_ts and (accepted_at > :after_ts or id > :after_id) order by accepted_at, id limit :limit
      columns: {{ notification_id: id, route: route, accepted_at: accepted_at }}
      cursor: {{ at: accepted_at, id: id }}
      routes: {{ receipts: webhook/receipts }}
    attempts:
      sql: |
        select id, note_id, result, at from calls where at >= :after_ts and (at > :after_ts or id > :after_id) order by at, id limit :limit
      columns: {{ attempt_id: id, notification_id: note_id, status: result, at: at }}
      cursor: {{ at: at, id: id }}
    statuses: {{ sent: delivered }}
"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = configuration(folder.path(), &["receipts"], &ledgers);
    let file = file.to_str().expect("a path that is text");
    let arguments = ["ledger", "grants", "--config", file, "--database", &url, "--role", "least@127.0.0.1"];
    let script = run(&arguments, &[]).ended(0);
    assert!(script.contains("grant select (`id`, `key`, `route`, `accepted_at`) on"), "{script}");
    for word in ["recipient", "body", "response"] {
        assert!(!script.contains(word), "{script}");
    }
    server.execute(&name, &script).await;
    server.execute(&name, &script).await;

    let env =
        |name: &str| SECRETS.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let loaded = config::load(file.as_ref(), &env).unwrap_or_else(|faults| panic!("{faults}"));
    let adapter = ledger::open("one", &loaded.config.ledgers["one"]).expect("the ledger can be read");
    for finding in adapter.check().await {
        assert_ne!(finding.level, Level::Failed, "{finding:?}");
    }
    let mut watch = Watch::new(&loaded, "one").await;
    assert_eq!(watch.try_pass().await.expect("a pass needs no more").rows, 2);
    let mut connection = MySqlConnection::connect(&least).await.expect("it may connect");
    for denied in ["select recipient from notes", "select * from calls"] {
        let read = sqlx::raw_sql(AssertSqlSafe(denied.to_owned())).execute(&mut connection).await;
        assert!(read.is_err(), "{denied}");
    }
}
