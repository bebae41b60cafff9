//! `check` of a ledger reads what the queries give as the monitor does: by the types of their columns where there are no rows, and by rows.

use super::support::{Bed, open};
use delivery_canary::ledger::{
    LedgerAdapter,
    check::{Finding, Level},
};
use serde_json::{Value, json};

async fn findings(ledger: &LedgerAdapter) -> Vec<Finding> {
    ledger.check().await
}

fn named<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    findings.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no `{name}` among {findings:#?}"))
}

fn says(findings: &[Finding], name: &str, level: Level, words: &[&str]) {
    let finding = named(findings, name);
    assert_eq!(finding.level, level, "{finding:?}");
    words.iter().for_each(|word| assert!(finding.detail.contains(word), "no `{word}`: {finding:?}"));
}

/// Notifications `n` and their attempts `a`, with each time as a whole number, a naive one, and as it should be.
async fn tables(bed: &Bed) {
    let (time, text) = (bed.time_type(), bed.text_type());
    let (naive, odd) = match bed {
        Bed::Postgres { .. } => ("timestamp", "jsonb"),
        Bed::Mariadb { .. } => ("datetime", "date"),
        Bed::Sqlite { .. } => ("text", "blob"),
    };
    bed.execute(&format!(
        "create table n (id {text} primary key, route {text}, at {time}, due bigint, naive {naive}, odd {odd});
         create index n_at on n (at, id);
         create table a (seq bigint primary key, n_id {text}, code smallint, at {time}, due bigint, naive {naive}, odd {odd});
         create index a_n on a (n_id); create index a_at on a (at, seq)"
    ))
    .await;
}

/// The one row of each, all of it a minute old.
async fn one_row(bed: &Bed) {
    let now = chrono::Utc::now() - chrono::TimeDelta::minutes(1);
    let (at, seconds, millis) = (bed.time(now), now.timestamp(), now.timestamp_millis());
    let naive = now.format("%Y-%m-%d %H:%M:%S");
    let odd = match bed {
        Bed::Postgres { .. } => "'{}'",
        Bed::Mariadb { .. } => "'2026-01-01'",
        Bed::Sqlite { .. } => "x'ff00'",
    };
    bed.execute(&format!(
        "insert into n values ('n1', 'mail', '{at}', {seconds}, '{naive}', {odd});
         insert into a values (1, 'n1', 3, '{at}', {millis}, '{naive}', {odd})"
    ))
    .await;
}

/// A followed ledger whose queries give all columns, as it should be configured.
fn good(bed: &Bed) -> Value {
    let stream = |table: &str, id: &str| {
        format!("select * from {table} where {} order by at, {id} limit :limit", bed.behind("at", id))
    };
    json!({
        "statuses": { "0": "pending", "3": "delivered" },
        "lookup": {
            "sql": format!(
                "select n.id, n.at, n.due, n.naive, n.odd, a.seq, a.code, a.at as tried, a.due as tried_due, a.naive as tried_naive, a.odd as tried_odd
                   from n left join a on a.n_id = n.id where {} limit :limit", bed.any_of("n.id", "")),
            "columns": { "notification_id": "id", "accepted_at": "at", "attempt_id": "seq", "attempt_status": "code", "attempt_at": "tried" },
        },
        "pending": {
            "sql": "select n.route, n.at, n.due, n.naive, n.odd, null as code from n where not exists (select 1 from a where a.n_id = n.id) limit :limit",
            "columns": { "route": "route", "accepted_at": "at", "status": "code" },
            "routes": { "mail": "email/receipts" },
        },
        "notifications": {
            "sql": stream("n", "id"),
            "columns": { "notification_id": "id", "route": "route", "accepted_at": "at" },
            "cursor": { "at": "at", "id": "id" }, "routes": { "mail": "email/receipts" },
        },
        "attempts": {
            "sql": stream("a", "seq"),
            "columns": { "attempt_id": "seq", "notification_id": "n_id", "status": "code", "at": "at" },
            "cursor": { "at": "at", "id": "seq" },
        },
        "partition": {
            "sql": "select n.route, a.code, a.odd, a.naive, count(*) as c from n left join a on a.n_id = n.id
                     where n.at >= :from_ts and n.at < :until_ts group by 1, 2, 3, 4 limit :limit",
            "columns": { "route": "route", "status": "code", "count": "c" }, "routes": { "mail": "email/receipts" },
        },
    })
}

/// What a newcomer gets wrong, each with the query whose columns say it and what is to be read there.
const FAULTS: [(&str, &str, &str, &[&str]); 8] = [
    // The value of the sample means `pending`, for which no attempt's time is ever read: the type tells all the same.
    (
        "lookup",
        "attempt_at",
        "tried_due",
        &["lookup query", "`tried_due`", "an integer", "{ name: tried_due, time: epoch_seconds }"],
    ),
    ("lookup", "accepted_at", "due", &["lookup query", "`due`", "an integer", "epoch_millis"]),
    // What only the follower reads.
    (
        "lookup",
        "not_before",
        "naive",
        &["lookup query", "`naive`", "{ name: naive, time: naive_utc }", "naive_local, zone:"],
    ),
    (
        "lookup",
        "attempt_status",
        "tried_odd",
        &["lookup query", "`tried_odd`", "can't be a status: cast it to text"],
    ),
    ("pending", "accepted_at", "naive", &["pending query", "`naive`", "naive_utc"]),
    ("notifications", "not_before", "due", &["notifications query", "`due`", "epoch_seconds"]),
    ("attempts", "at", "due", &["attempts query", "`due`", "epoch_millis"]),
    ("partition", "status", "odd", &["partition query", "`odd`", "can't be a status"]),
];

async fn types_are_held_against_what_reads_them(bed: Bed) {
    tables(&bed).await;
    let with = |query: &str, role: &str, column: &str| {
        let mut fields = good(&bed);
        fields[query]["columns"][role] = json!(column);
        open(bed.database(), fields).unwrap()
    };
    let well = open(bed.database(), good(&bed)).unwrap();
    let has_types = !matches!(bed, Bed::Sqlite { .. });
    let seen = findings(&well).await;
    assert!(seen.iter().all(|f| f.level < Level::Failed), "{seen:#?}");
    for query in ["lookup", "pending", "notifications", "attempts", "partition"] {
        if has_types {
            says(&seen, &format!("{query} columns"), Level::Ok, &["their types fit"]);
        } else {
            // A file without rows tells no types, and that is what is said.
            says(&seen, &format!("{query} rows"), Level::Warn, &["nobody has seen whether"]);
        }
    }
    for (query, role, column, words) in FAULTS.iter().filter(|_| has_types) {
        let seen = findings(&with(query, role, column)).await;
        says(&seen, &format!("{query} columns"), Level::Failed, words);
    }

    one_row(&bed).await;
    let seen = findings(&well).await;
    assert!(seen.iter().all(|f| f.level < Level::Failed), "{seen:#?}");
    says(&seen, "lookup rows", Level::Ok, &["1 rows of 1 notifications"]);
    for (query, role, column, words) in FAULTS {
        let seen = findings(&with(query, role, column)).await;
        let name = if has_types { format!("{query} columns") } else { format!("{query} rows") };
        // There is nothing pending to be read.
        if query == "pending" && !has_types {
            says(&seen, &name, Level::Warn, &["nobody has seen whether"]);
            continue;
        }
        // The last word is of a type; a value tells more closely what to write.
        says(&seen, &name, Level::Failed, if has_types { words } else { &words[..words.len() - 1] });
    }
    // The measured refresh reads its rows too: what can't be read is no cost.
    if !has_types {
        let error = with("lookup", "attempt_at", "tried_due").cost(50).await.expect_err("it can't be read");
        assert!(
            error.to_string().contains("time: epoch_millis }`: that is what its value looks like"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn postgres_types_are_held_against_what_reads_them() {
    types_are_held_against_what_reads_them(Bed::postgres().await).await;
}

#[tokio::test]
async fn mariadb_types_are_held_against_what_reads_them() {
    types_are_held_against_what_reads_them(Bed::mariadb().await).await;
}

#[tokio::test]
async fn sqlite_values_are_held_against_what_reads_them() {
    types_are_held_against_what_reads_them(Bed::sqlite()).await;
}

/// Nothing is followed: the ids come from the column that the lookup compares them with.
async fn rows_of_a_lookup_alone_are_read(bed: Bed) {
    tables(&bed).await;
    one_row(&bed).await;
    let lookup = |sql: &str, columns: Value| {
        let mut lookup = json!({ "sql": sql, "columns": { "notification_id": "id" } });
        lookup["columns"].as_object_mut().unwrap().extend(columns.as_object().unwrap().clone());
        open(bed.database(), json!({ "lookup": lookup, "statuses": { "3": "delivered" } })).unwrap()
    };
    let any = bed.any_of("n.id", "");
    let sql = format!(
        "select n.id, n.at, a.code, a.n_id from n left join a on a.n_id = n.id where {any} limit :limit"
    );
    let attempts = json!({ "status": "code", "accepted_at": "at" });
    says(
        &findings(&lookup(&sql, attempts.clone())).await,
        "lookup rows",
        Level::Ok,
        &["1 rows of 1 notifications that its table has"],
    );

    // A word that the table doesn't have, a time that is missing, and an id that is.
    bed.execute("insert into n (id) values ('n2'); insert into a (seq, n_id, code) values (2, 'n2', 7)")
        .await;
    let seen = findings(&lookup(&sql, attempts)).await;
    says(
        &seen,
        "lookup rows",
        Level::Warn,
        &["1 statuses are not in the table: `7`", "1 ids or times are NULL or absurd"],
    );
    bed.execute("insert into n (id) values ('n3')").await;
    let sql = format!(
        "select n.id as asked, a.n_id as id, a.code from n left join a on a.n_id = n.id where {any} limit :limit"
    );
    let seen = findings(&lookup(&sql, json!({ "status": "code" }))).await;
    says(&seen, "lookup rows", Level::Failed, &["lookup query", "`id`", "a notification's id is NULL"]);
}

#[tokio::test]
async fn postgres_rows_of_a_lookup_alone_are_read() {
    rows_of_a_lookup_alone_are_read(Bed::postgres().await).await;
}

#[tokio::test]
async fn mariadb_rows_of_a_lookup_alone_are_read() {
    rows_of_a_lookup_alone_are_read(Bed::mariadb().await).await;
}

#[tokio::test]
async fn sqlite_rows_of_a_lookup_alone_are_read() {
    rows_of_a_lookup_alone_are_read(Bed::sqlite()).await;
}

#[tokio::test]
async fn all_that_does_not_fit_is_told_at_once() {
    let bed = Bed::postgres().await;
    tables(&bed).await;
    let mut fields = good(&bed);
    fields["lookup"]["columns"]["accepted_at"] = json!("due");
    fields["lookup"]["columns"]["attempt_at"] = json!("tried_naive");
    let seen = findings(&open(bed.database(), fields).unwrap()).await;
    let told: Vec<&str> =
        seen.iter().filter(|f| f.name == "lookup columns").map(|f| f.detail.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`due`") && told[1].contains("`tried_naive`"), "{told:?}");
}

#[tokio::test]
async fn a_lookup_that_finds_none_of_what_is_followed_is_told() {
    let bed = Bed::postgres().await;
    tables(&bed).await;
    one_row(&bed).await;
    let mut fields = good(&bed);
    let sql = fields["lookup"]["sql"]
        .as_str()
        .expect("it is text")
        .replace("where ", "where n.route = 'canaries' and ");
    fields["lookup"]["sql"] = json!(sql);
    let seen = findings(&open(bed.database(), fields).unwrap()).await;
    says(
        &seen,
        "lookup rows",
        Level::Warn,
        &["no row for 1 notifications that the notifications query gives"],
    );
}
