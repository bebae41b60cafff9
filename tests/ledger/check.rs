//! `check --online` of a ledger: everything that a first reading would stumble over, each by name.

use super::support::{Bed, open, simple_lookup};
use delivery_canary::ledger::{
    LedgerAdapter,
    check::{Finding, Level},
};
use serde_json::{Value, json};

async fn found(ledger: &LedgerAdapter, name: &str) -> Finding {
    let findings = ledger.check().await;
    findings
        .iter()
        .find(|f| f.name == name)
        .unwrap_or_else(|| panic!("no `{name}` among {findings:#?}"))
        .clone()
}

fn lookup(sql: &str, columns: Value) -> Value {
    let mut all = json!({ "notification_id": "id", "status": "status" });
    all.as_object_mut().unwrap().extend(columns.as_object().unwrap().clone());
    json!({ "lookup": { "sql": sql, "columns": all } })
}

/// A table of many notifications, and a role that can read it.
async fn bed() -> (Bed, Value) {
    let bed = Bed::postgres().await;
    let Bed::Postgres { server, url } = &bed else { unreachable!() };
    let role = server.role("reader", url).await;
    bed.execute(
        "create table n (id uuid primary key default gen_random_uuid(), status text not null, route text not null default 'mail',
                         accepted_at timestamptz not null default now(), naive timestamp not null default now(), n integer, extra jsonb);
         insert into n (status) select 'delivered' from generate_series(1, 20000);
         analyze n; grant select on n to reader",
    )
    .await;
    (bed, json!({ "postgres": { "url": role } }))
}

#[tokio::test]
async fn a_good_configuration_has_no_fault() {
    let (bed, database) = bed().await;
    let mut fields = lookup(
        "select id, status, accepted_at from n where id = any(:ids::uuid[]) limit :limit -- end",
        json!({ "accepted_at": "accepted_at" }),
    );
    fields["pending"] = json!({
        "sql": "select route, accepted_at, status from n where status = 'failed' limit :limit",
        "columns": { "route": "route", "accepted_at": "accepted_at", "status": "status" },
        "routes": { "mail": "email/receipts" },
    });
    bed.execute("create index on n (status); analyze n").await;
    let ledger = open(database, fields).unwrap();
    let findings = ledger.check().await;
    let names: Vec<&str> = findings.iter().map(|f| f.name.as_str()).collect();
    let expected = [
        "connection",
        "rights",
        "lookup query",
        "lookup columns",
        "lookup plan",
        "lookup rows",
        "pending query",
        "pending columns",
        "pending plan",
        "clock",
    ];
    assert_eq!(names, expected);
    assert!(findings.iter().all(|f| f.level == Level::Ok && f.hint.is_none()), "{findings:#?}");
    assert!(findings[0].detail.starts_with("PostgreSQL 1"), "{}", findings[0].detail);
    assert_eq!(ledger.stats().figures().role_can_write, Some(false));
}

#[tokio::test]
async fn a_role_that_can_write_is_reported() {
    let (bed, database) = bed().await;
    let fields = lookup("select id, status from n where id = any(:ids::uuid[]) limit :limit", json!({}));
    for (grant, revoke, word) in [
        ("grant update on n to reader", "revoke update on n from reader", "the table n"),
        ("grant update (status) on n to reader", "revoke update (status) on n from reader", "the table n"),
        ("grant truncate on n to reader", "revoke truncate on n from reader", "the table n"),
        (
            "create schema app; grant create on schema app to reader",
            "drop schema app",
            "new objects in the schema app",
        ),
        ("create view v as select id from n; grant insert on v to reader", "drop view v", "the table v"),
        ("alter role reader superuser", "alter role reader nosuperuser", "it is a superuser"),
    ] {
        bed.execute(grant).await;
        let ledger = open(database.clone(), fields.clone()).unwrap();
        let rights = ledger.check_role().await.unwrap();
        assert_eq!(rights.level, Level::Warn, "{grant}");
        assert!(rights.detail.contains(word), "{grant}: {}", rights.detail);
        assert_eq!(ledger.stats().figures().role_can_write, Some(true));
        bed.execute(revoke).await;
    }
    let ledger = open(database, fields).unwrap();
    assert_eq!(ledger.check_role().await.unwrap().level, Level::Ok);
}

#[tokio::test]
async fn each_fault_of_a_query_is_found_before_it_costs_a_reading() {
    let (bed, database) = bed().await;
    let by_id = |columns: &str| format!("select {columns} from n where id = any(:ids::uuid[]) limit :limit");
    for (sql, columns, name, level, word) in [
        (
            by_id("id, state as status"),
            json!({}),
            "lookup query",
            Level::Failed,
            "column \"state\" does not exist",
        ),
        (
            by_id("id as identity, status"),
            json!({}),
            "lookup columns",
            Level::Failed,
            "it has: identity, status",
        ),
        (
            by_id("id, status, naive"),
            json!({ "accepted_at": "naive" }),
            "lookup columns",
            Level::Failed,
            "naive_utc",
        ),
        (
            by_id("id, status, n"),
            json!({ "accepted_at": "n" }),
            "lookup columns",
            Level::Failed,
            "epoch_seconds",
        ),
        (
            by_id("id, status, extra"),
            json!({ "idempotency_key": "extra" }),
            "lookup columns",
            Level::Failed,
            "cast it to text",
        ),
        (
            "select id, status from n where id::text = any(:ids) limit :limit".into(),
            json!({}),
            "lookup plan",
            Level::Warn,
            "it reads all of n (about 20000 rows)",
        ),
        (
            "select id, status from n where id = any(:ids::uuid[])".into(),
            json!({}),
            "lookup limit",
            Level::Warn,
            "no `:limit`",
        ),
    ] {
        let finding = found(&open(database.clone(), lookup(&sql, columns)).unwrap(), name).await;
        assert_eq!(finding.level, level, "{sql}: {finding:?}");
        assert!(finding.detail.contains(word), "{sql}: {finding:?}");
    }
    for (condition, hint) in [
        ("id = any(:ids)", "cast it to the column's type"),
        ("id = any(cast(:ids as uuid[]))", "right behind the parameter"),
    ] {
        let fields = json!({ "lookup": simple_lookup(condition) });
        let finding = found(&open(database.clone(), fields).unwrap(), "lookup query").await;
        assert!(finding.hint.as_deref().is_some_and(|h| h.contains(hint)), "{finding:?}");
    }
    bed.execute("revoke select on n from reader").await;
    let finding =
        found(&open(database, lookup(&by_id("id, status"), json!({}))).unwrap(), "lookup query").await;
    assert!(finding.detail.contains("grant SELECT"), "{finding:?}");
}

#[tokio::test]
async fn odd_rows_of_the_pending_are_told() {
    for bed in [Bed::postgres().await, Bed::mariadb().await, Bed::sqlite()] {
        let (time, any, text) = (bed.time_type(), bed.any_of("id", ""), bed.text_type());
        let at = bed.time("2026-11-01T10:00:00Z".parse().unwrap());
        bed.execute(&format!(
            "create table n (id {text} primary key, status {text}, route {text}, accepted_at {time});
             insert into n values ('1', 'delivered', 'mail', '{at}'), ('2', 'WHAT', 'mail', '{at}'),
               ('3', null, 'fax', '{at}'), ('4', null, 'mail', null)"
        ))
        .await;
        let pending = |sql: &str| {
            json!({
                "lookup": simple_lookup(&any),
                "pending": {
                    "sql": sql,
                    "columns": { "route": "route", "accepted_at": "accepted_at", "status": "status" },
                    "routes": { "mail": "email/receipts" },
                },
            })
        };
        let fields = pending("select route, accepted_at, status from n limit :limit");
        let findings = open(bed.database(), fields.clone()).unwrap().check().await;
        let told: Vec<&str> =
            findings.iter().filter(|f| f.name == "pending rows").map(|f| f.detail.as_str()).collect();
        let expected = [
            "1 statuses are not in the table: `WHAT`",
            "1 notifications have a missing or absurd time",
            "1 rows have a status that means settled",
            "1 rows are of routes that are not in `routes`",
        ];
        assert_eq!(told, expected);
        let mut cut = fields;
        cut["max_rows"] = json!(2);
        let finding = found(&open(bed.database(), cut).unwrap(), "pending rows").await;
        assert_eq!(
            (finding.level, finding.hint.is_some_and(|h| h.contains("group by"))),
            (Level::Warn, true)
        );
    }
}

#[tokio::test]
async fn an_sqlite_file_is_checked_too() {
    let bed = Bed::sqlite();
    let fields = json!({ "lookup": simple_lookup("id in (select value from json_each(:ids))") });
    let finding = found(&open(bed.database(), fields.clone()).unwrap(), "connection").await;
    assert_eq!(finding.level, Level::Failed);
    bed.execute("create table n (id text primary key, status text)").await;
    let ledger = open(bed.database(), fields).unwrap();
    let findings = ledger.check().await;
    let names: Vec<&str> = findings.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        ["connection", "rights", "lookup query", "lookup columns", "lookup plan", "lookup rows"]
    );
    let is_as_it_should_be =
        |f: &Finding| f.level == if f.name == "lookup rows" { Level::Warn } else { Level::Ok };
    assert!(findings.iter().all(is_as_it_should_be), "{findings:#?}");
    assert_eq!(ledger.stats().figures().role_can_write, Some(false));
    let missing = lookup("select id as x, status from n where :ids = :ids limit :limit", json!({}));
    let finding = found(&open(bed.database(), missing).unwrap(), "lookup columns").await;
    assert!(finding.detail.contains("it has: x, status"), "{finding:?}");
    bed.execute("with recursive t (i) as (select 1 union all select i + 1 from t where i < 200000) insert into n select 'id-of-a-notification-' || i, 'delivered' from t").await;
    let whole = lookup("select id, status from n where :ids = :ids and status = '' limit :limit", json!({}));
    let finding = found(&open(bed.database(), whole).unwrap(), "lookup plan").await;
    assert_eq!((finding.level, finding.detail.as_str()), (Level::Warn, "it reads all of n"));
}

#[tokio::test]
async fn a_server_that_is_down_is_one_finding() {
    let database = json!({ "postgres": { "url": "postgres://reader@127.0.0.1:9/x" } });
    let findings =
        open(database, json!({ "lookup": simple_lookup("id = any(:ids)") })).unwrap().check().await;
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].name.as_str(), findings[0].level), ("connection", Level::Failed));
}
