//! `ledger check`: what it says of a ledger that is well, and of one that is not; and that it leaves nothing behind.

use super::{
    bed::Database,
    postgres::Postgres,
    run::{configuration, run},
};
use serde_json::Value;

/// An answer as JSON.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The finding of this name.
pub fn found<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let checks = answer["ledgers"][0]["checks"].as_array().expect("there are checks");
    checks
        .iter()
        .find(|check| check["name"].as_str().is_some_and(|full| full.ends_with(name)))
        .unwrap_or_else(|| panic!("no `{name}`: {answer:#}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_well_has_its_cost_told() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "append_only").await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shape = std::fs::read_to_string("config/shapes/append_only.yaml").expect("the shape is there");
    let store = folder.path().join("canary.sqlite");
    let text = shape.replace("path: canary.sqlite", &format!("path: {}", store.display()));
    let file = folder.path().join("canary.yaml");
    std::fs::write(&file, text).expect("the file is written");
    let file = file.to_str().expect("a path that is text");
    let variables = [("LEDGER_URL", reader.as_str())];

    let answer = json(&run(&["ledger", "check", "--json", "--config", file], &variables).ended(0));
    assert_eq!(answer["ok"], true, "{answer:#}");
    for name in
        ["connection", "rights", "lookup plan", "notifications sample", "attempts sample", "clock", "cost"]
    {
        assert_eq!(found(&answer, name)["status"], "ok", "{name}: {answer:#}");
    }
    let queries = answer["ledgers"][0]["cost"]["queries"].as_array().expect("there are queries").clone();
    let query =
        |name: &str| queries.iter().find(|query| query["query"] == name).expect("it is there").clone();
    // A refresh every 15 seconds, a count an hour, and all of 31 days once a day.
    let is_near =
        |value: &Value, expected: f64| value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-6);
    for (name, runs) in [("notifications", 240.0), ("partition", 32.0)] {
        assert!(is_near(&query(name)["runs_an_hour"], runs), "{name}: {answer:#}");
    }
    assert!(query("lookup")["rows"].as_u64() > Some(50), "{answer:#}");
    let rows: f64 = queries
        .iter()
        .map(|q| q["rows"].as_f64().expect("rows") * q["runs_an_hour"].as_f64().expect("runs"))
        .sum();
    assert!(is_near(&answer["ledgers"][0]["cost"]["rows_an_hour"], rows), "{rows}: {answer:#}");

    let text = run(&["ledger", "check", "--config", file], &variables).ended(0);
    assert!(text.contains("a refresh reads") && text.contains("an hour"), "{text}");
    assert!(!store.exists(), "it makes no store and takes no lead");
    drop(database);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_is_told_with_what_to_do() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "append_only").await;
    database
        .execute(
            "drop index attempts_by_start; drop index attempts_of;
             insert into attempts (message_id, result, started_at)
             select id, 'accepted', now() - interval '20 days' - g * interval '1 second' from messages, generate_series(1, 60) as g
              where accepted_at < now() - interval '6 days';
             insert into attempts (message_id, result, started_at)
             select id, case when idempotency_key like '%1' then 'zork' else 'to a@b.example' end, now() - interval '2 minutes'
               from messages where accepted_at > now() - interval '1 hour';
             insert into messages (id, route, accepted_at) values (gen_random_uuid(), 'elsewhere', now() - interval '1 minute');
             insert into attempts (message_id, result, started_at) select id, 'accepted', now() - interval '25 days'
               from messages, generate_series(1, 40);
             grant insert on messages to canary_reader;
             analyze",
        )
        .await;
    let variables = [("LEDGER_URL", reader.as_str())];
    let arguments = ["ledger", "check", "--config", "config/shapes/append_only.yaml"];
    let answer =
        json(&run(&[&arguments[..], &["--json", "--ledger", "service"]].concat(), &variables).ended(0));
    let warned = |name: &str, words: &[&str]| {
        let finding = found(&answer, name);
        assert_eq!(finding["status"], "warn", "{name}: {answer:#}");
        let text = format!("{} {}", finding["detail"], finding["hint"]);
        words.iter().for_each(|word| assert!(text.contains(word), "{name} says nothing of `{word}`: {text}"));
    };
    warned("attempts plan", &["it reads all of attempts (about", "by the condition", "the cursor's columns"]);
    warned("lookup plan", &["it reads all of attempts (about", "message_id", "docs/ledger.md#indexes"]);
    warned(
        "attempts sample",
        &["statuses are not in the table", "`zork`", "hidden", "add them to `statuses`"],
    );
    warned("notifications sample", &["1 rows are of routes that are not in `routes`"]);
    warned("rights", &["could write"]);
    let text = run(&arguments, &variables).ended(0);
    assert!(!text.contains("a@b.example"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("warn") && line.contains("ledger service: attempts plan")),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_ending_has_its_code() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    Database { url: url.clone() }.execute("create table n (id text primary key, state text)").await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let of = |url: &str, columns: &str| {
        let ledgers = format!(
            "ledgers:
  one:
    database: {{ postgres: {{ url: '{url}' }} }}
    lookup:
      sql: select {columns} from n where id = any(:ids) limit :limit
      columns: {{ notification_id: id, status: state }}
    statuses: {{ sent: delivered }}
"
        );
        let file = configuration(folder.path(), &["receipts"], &ledgers);
        file.to_str().expect("a path that is text").to_owned()
    };
    let file = of(&url, "id, state");
    assert!(
        run(&["ledger", "check", "--config", &file], &[]).ended(0).contains("only canaries are looked up")
    );
    let ran = run(&["ledger", "check", "--config", &file, "--ledger", "two"], &[]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    let failed = run(&["ledger", "check", "--config", &of(&url, "id, nothing as state")], &[]).ended(1);
    assert!(failed.contains("FAILED"), "{failed}");
    let gone = run(&["ledger", "check", "--config", &of("postgres://r@127.0.0.1:9/x", "id, state")], &[]);
    assert_eq!(gone.code, 75, "{}{}", gone.out, gone.err);
    assert!(gone.out.contains("FAILED") && gone.err.contains("`one`"), "{}{}", gone.out, gone.err);
    let none = configuration(folder.path(), &["receipts"], "");
    assert_eq!(run(&["ledger", "check", "--config", none.to_str().expect("text")], &[]).code, 78);
}
