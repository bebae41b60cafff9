//! Lookups over every kind of id, time and status.

use super::support::{Bed, ids, keys, open, simple_lookup};
use chrono::{DateTime, Utc};
use delivery_canary::{
    domain::outcome::{Cause, Disposition, Outcome},
    ledger::{FindsBy, LedgerReader},
};
use serde_json::{Value, json};

const UUID: &str = "0193c1a0-0000-7000-8000-00000000000a";

/// Attempts and notifications, as a good service has them.
async fn full_ledger(bed: &Bed) {
    let (time, text) = (bed.time_type(), bed.text_type());
    let at = |second: u32| {
        let at: DateTime<Utc> = format!("2026-11-01T10:00:{second:02}Z").parse().unwrap();
        bed.time(at)
    };
    bed.execute(&format!(
        "create table notifications (id {text} primary key, idempotency_key {text} unique, accepted_at {time});
         create table attempts (id {text} primary key, notification_id {text} not null, outcome {text}, started_at {time}, policy {text});
         insert into notifications values ('n1', 'dc-1', '{}'), ('n2', 'dc-2', '{}'), ('n3', 'dc-3', '{}');
         insert into attempts values
           ('a1', 'n1', 'failed', '{}', 'p1'), ('a2', 'n1', 'delivered', '{}', 'p2'), ('a3', 'n2', 'bounced', '{}', null);",
        at(0),
        at(1),
        at(2),
        at(5),
        at(15),
        at(6),
    ))
    .await;
}

fn full_lookup(bed: &Bed) -> Value {
    let condition = match bed {
        Bed::Postgres { .. } => "n.id = any(:ids) or n.idempotency_key = any(:keys)",
        Bed::Mariadb { .. } => "n.id in (:ids) or n.idempotency_key in (:keys)",
        Bed::Sqlite { .. } => {
            "n.id in (select value from json_each(:ids)) or n.idempotency_key in (select value from json_each(:keys))"
        }
    };
    json!({
        "sql": format!(
            "select n.id, n.idempotency_key, n.accepted_at, a.id as attempt_id, a.outcome, a.started_at, a.policy
               from notifications n left join attempts a on a.notification_id = n.id
              where {condition} limit :limit; -- by the primary key and the key's index"
        ),
        "columns": {
            "notification_id": "id", "idempotency_key": "idempotency_key", "accepted_at": "accepted_at",
            "attempt_id": "attempt_id", "attempt_status": "outcome", "attempt_at": "started_at", "policy_version": "policy",
        },
    })
}

async fn finds_by_id_and_key(bed: Bed) {
    full_ledger(&bed).await;
    let ledger = open(bed.database(), json!({ "lookup": full_lookup(&bed) })).unwrap();
    assert_eq!(ledger.finds_by(), FindsBy { ids: true, keys: true });
    let before = Utc::now();
    let lookup = ledger.lookup(&ids(&["n1", "nowhere"]), &keys(&["dc-2", "dc-3", "dc-9"])).await.unwrap();
    assert!(before <= lookup.as_of && lookup.as_of <= Utc::now());
    let found: Vec<_> = lookup
        .found
        .iter()
        .map(|f| {
            (f.notification_id.as_str(), f.key.as_ref().unwrap().as_str(), f.row.disposition, f.row.cause)
        })
        .collect();
    let expected = [
        ("n1", "dc-1", Disposition::Delivered, None),
        ("n2", "dc-2", Disposition::PermanentlyRejected, Some(Cause::Recipient)),
        ("n3", "dc-3", Disposition::Pending, None),
    ];
    assert_eq!(found, expected);
    let row = &lookup.found[0].row;
    assert_eq!(row.accepted_at, Some("2026-11-01T10:00:00Z".parse().unwrap()));
    let attempts: Vec<_> = row
        .attempts
        .iter()
        .map(|a| (a.attempt_id.as_str(), a.outcome, a.policy_version.as_deref()))
        .collect();
    assert_eq!(attempts, [("a1", Outcome::Retryable, Some("p1")), ("a2", Outcome::Delivered, Some("p2"))]);
    assert!(row.has_policy_version && lookup.found[2].row.attempts.is_empty());
    let figures = ledger.stats().figures();
    assert_eq!((figures.reads, figures.rows_read, figures.failures), (1, 4, 0));
    // A second reading uses what was learnt in the first, and nothing is found of what isn't there.
    assert_eq!(ledger.lookup(&ids(&["nowhere"]), &[]).await.unwrap().found, []);
}

#[tokio::test]
async fn postgres_finds_by_id_and_key() {
    finds_by_id_and_key(Bed::postgres().await).await;
}

#[tokio::test]
async fn mariadb_finds_by_id_and_key() {
    finds_by_id_and_key(Bed::mariadb().await).await;
}

#[tokio::test]
async fn sqlite_finds_by_id_and_key() {
    finds_by_id_and_key(Bed::sqlite()).await;
}

/// (type, the stored value, the condition, what is asked, whether it is found)
pub async fn finds_ids_of(bed: &Bed, cases: &[(&str, &str, &str, &[&str], bool)]) {
    for (kind, stored, condition, asked, is_found) in cases {
        bed.execute(&format!(
            "create table n (id {kind} primary key, status text not null); insert into n values ({stored}, 'delivered')"
        ))
        .await;
        let ledger = open(bed.database(), json!({ "lookup": simple_lookup(condition) })).unwrap();
        let lookup = ledger.lookup(&ids(asked), &[]).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
        let found: Vec<&str> = lookup.found.iter().map(|f| f.notification_id.as_str()).collect();
        let expected: &[&str] = if *is_found { &asked[..1] } else { &[] };
        assert_eq!(found, expected, "{kind} by {condition}");
        bed.execute("drop table n").await;
    }
}

#[tokio::test]
async fn postgres_reads_each_kind_of_id() {
    let bed = Bed::postgres().await;
    bed.execute("create domain notification_number as bigint").await;
    let quoted = format!("'{UUID}'");
    let upper = UUID.to_uppercase();
    finds_ids_of(
        &bed,
        &[
            ("uuid", &quoted, "id = any(:ids::uuid[])", &[UUID, "no uuid", "7"], true),
            ("uuid", &quoted, "id = any(:ids::uuid[])", &[&upper], true),
            ("uuid", &quoted, "id = any(:ids::uuid[])", &["no uuid"], false),
            ("bigint", "7", "id = any(:ids::bigint[])", &["7", UUID, "99999999999999999999"], true),
            ("integer", "7", "id = any(:ids::int[])", &["7", "2147483648"], true),
            ("smallint", "7", "id = any(:ids::int2[])", &["7", "70000"], true),
            (
                "numeric(30)",
                "123456789012345678901234567890",
                "id::text = any(:ids)",
                &["123456789012345678901234567890"],
                true,
            ),
            ("notification_number", "7", "id = any(:ids::bigint[])", &["7"], true),
            ("text", "'01HZY3'", "id = any(:ids)", &["01HZY3", "' or 1 = 1 --"], true),
            ("varchar(30)", "'ntf:1'", "id = any(:ids)", &["ntf:1"], true),
            ("char(12)", "'abc'", "id = any(:ids::bpchar[])", &["abc"], true),
        ],
    )
    .await;
}

#[tokio::test]
async fn sqlite_reads_each_kind_of_id() {
    let quoted = format!("'{UUID}'");
    let condition = "id in (select value from json_each(:ids))";
    finds_ids_of(
        &Bed::sqlite(),
        &[
            ("integer", "7", condition, &["7", "no number", "\"];--"], true),
            ("text", "'7'", condition, &["7"], true),
            ("text", &quoted, condition, &[UUID], true),
            ("text", &quoted, condition, &["nowhere"], false),
        ],
    )
    .await;
}

/// Reads one column of one row as the time of acceptance.
pub async fn accepted_at(bed: &Bed, expression: &str, form: Value) -> (Option<DateTime<Utc>>, u64) {
    let mut column = json!({ "name": "accepted_at" });
    let column = match form {
        Value::Null => json!("accepted_at"),
        form => {
            column.as_object_mut().unwrap().extend(form.as_object().unwrap().clone());
            column
        }
    };
    let condition = bed.any_of("'a'", "");
    let lookup = json!({
        "sql": format!("select 'a' as id, 'delivered' as status, {expression} as accepted_at where {condition}"),
        "columns": { "notification_id": "id", "status": "status", "accepted_at": column },
    });
    let ledger = open(bed.database(), json!({ "lookup": lookup })).unwrap();
    let lookup =
        ledger.lookup(&ids(&["a"]), &[]).await.unwrap_or_else(|error| panic!("{expression}: {error}"));
    (lookup.found[0].row.accepted_at, ledger.stats().figures().refused_times)
}

pub fn instant() -> Option<DateTime<Utc>> {
    Some("2026-11-01T10:00:00.25Z".parse().unwrap())
}

#[tokio::test]
async fn trial_23_postgres_reads_each_kind_of_time_and_refuses_what_is_missing_or_absurd() {
    let bed = Bed::postgres().await;
    // The server's own zone must not matter.
    bed.execute("do $$ begin execute format('alter database %I set timezone = ''Asia/Tokyo''', current_database()); end $$").await;
    for (expression, form) in [
        ("'2026-11-01T11:00:00.25+01:00'::timestamptz", Value::Null),
        ("'2026-11-01 10:00:00.25'::timestamp", json!({ "time": "naive_utc" })),
        ("'2026-11-01 11:00:00.25'::timestamp", json!({ "time": "naive_local", "zone": "Europe/Berlin" })),
        ("'2026-11-01 10:00:00.25+00'::text", json!({ "time": "iso" })),
        ("'2026-11-01T10:00:00.25Z'::varchar", Value::Null),
        ("1793527200250::bigint", json!({ "time": "epoch_millis" })),
        ("1793527200.25::numeric(20, 6)", json!({ "time": "epoch_seconds" })),
        ("1793527200.25::float8", json!({ "time": "epoch_seconds" })),
    ] {
        assert_eq!(accepted_at(&bed, expression, form).await, (instant(), 0), "{expression}");
    }
    let seconds = accepted_at(&bed, "1793527200::int", json!({ "time": "epoch_seconds" })).await;
    assert_eq!(seconds.0.unwrap().timestamp(), 1_793_527_200);
    for refused in [
        "null::timestamptz",
        "'infinity'::timestamptz",
        "'-infinity'::timestamptz",
        "'1970-01-01'::timestamptz",
        "now() + interval '2 days'",
        "'294276-01-01'::timestamptz",
        "'4713-01-01 BC'::timestamptz",
    ] {
        assert_eq!(accepted_at(&bed, refused, Value::Null).await, (None, 1), "{refused}");
    }
}

#[tokio::test]
async fn trial_23_sqlite_reads_each_kind_of_time_and_refuses_what_is_missing_or_absurd() {
    let bed = Bed::sqlite();
    bed.execute("create table t (a)").await;
    for (expression, form) in [
        ("'2026-11-01T10:00:00.250Z'", Value::Null),
        ("'2026-11-01 11:00:00.25+01:00'", json!({ "time": "iso" })),
        ("'2026-11-01 10:00:00.250'", json!({ "time": "naive_utc" })),
        ("'2026-11-01 11:00:00.250'", json!({ "time": "naive_local", "zone": "Europe/Berlin" })),
        ("1793527200250", json!({ "time": "epoch_millis" })),
        ("1793527200.25", json!({ "time": "epoch_seconds" })),
    ] {
        assert_eq!(accepted_at(&bed, expression, form).await, (instant(), 0), "{expression}");
    }
    for refused in ["null", "'0000-00-00T00:00:00Z'", "'yesterday'"] {
        assert_eq!(accepted_at(&bed, refused, Value::Null).await, (None, 1), "{refused}");
    }
}

#[tokio::test]
async fn a_time_that_must_be_declared_is_a_misfit_that_says_so() {
    for (bed, expression) in [
        (Bed::postgres().await, "localtimestamp"),
        (Bed::mariadb().await, "now(6)"),
        (Bed::sqlite(), "1793527200"),
    ] {
        if matches!(bed, Bed::Sqlite { .. }) {
            bed.execute("create table t (a)").await;
        }
        let condition = bed.any_of("'a'", "");
        let lookup = json!({
            "sql": format!("select 'a' as id, 'delivered' as status, {expression} as accepted_at where {condition}"),
            "columns": { "notification_id": "id", "status": "status", "accepted_at": "accepted_at" },
        });
        let error = open(bed.database(), json!({ "lookup": lookup }))
            .unwrap()
            .lookup(&ids(&["a"]), &[])
            .await
            .unwrap_err();
        assert_eq!(error.word(), "shape");
        assert!(error.to_string().contains("accepted_at, time:"), "{error}");
    }
}

pub async fn reads_statuses(bed: &Bed, cases: &[(&str, &str, Disposition)]) {
    for (expression, table, expected) in cases {
        let condition = bed.any_of("'a'", "");
        let lookup = json!({
            "sql": format!("select 'a' as id, {expression} as status where {condition}"),
            "columns": { "notification_id": "id", "status": "status" },
        });
        let statuses: Value = serde_json::from_str(table).unwrap();
        let ledger = open(bed.database(), json!({ "lookup": lookup, "statuses": statuses })).unwrap();
        let lookup =
            ledger.lookup(&ids(&["a"]), &[]).await.unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(lookup.found[0].row.disposition, *expected, "{expression}");
        let is_mapped = *expected != Disposition::Pending;
        // NULL says that nothing was tried yet: it is no word that somebody forgot.
        let is_odd = !is_mapped && !expression.starts_with("null");
        assert_eq!(ledger.stats().figures().unmapped_statuses, u64::from(is_odd), "{expression}");
    }
}

#[tokio::test]
async fn postgres_reads_each_kind_of_status() {
    let bed = Bed::postgres().await;
    bed.execute(
        "create schema app; create type app.state as enum ('Done', 'Dead'); create domain word as text",
    )
    .await;
    reads_statuses(
        &bed,
        &[
            ("'DLVD'::text", r#"{"DLVD": "delivered"}"#, Disposition::Delivered),
            (
                "'Done'::app.state",
                r#"{"Done": "delivered", "Dead": "rejected_service"}"#,
                Disposition::Delivered,
            ),
            (
                "'Dead'::app.state",
                r#"{"Done": "delivered", "Dead": "rejected_service"}"#,
                Disposition::PermanentlyRejected,
            ),
            ("'x'::word", r#"{"x": "suppressed"}"#, Disposition::Suppressed),
            ("'x'::char(9)", r#"{"x": "suppressed"}"#, Disposition::Suppressed),
            ("'x'::\"char\"", r#"{"x": "suppressed"}"#, Disposition::Suppressed),
            ("3::smallint", r#"{"3": "delivered"}"#, Disposition::Delivered),
            ("-1", r#"{"-1": "rejected_service"}"#, Disposition::PermanentlyRejected),
            ("true", r#"{"true": "delivered", "false": "rejected_service"}"#, Disposition::Delivered),
            (
                "false",
                r#"{"true": "delivered", "false": "rejected_service"}"#,
                Disposition::PermanentlyRejected,
            ),
            ("null::boolean", r#"{"null": "suppressed"}"#, Disposition::Suppressed),
            ("null::text", "{}", Disposition::Pending),
            ("'done'::text", r#"{"Done": "delivered"}"#, Disposition::Pending),
        ],
    )
    .await;
}

#[tokio::test]
async fn sqlite_reads_each_kind_of_status() {
    let bed = Bed::sqlite();
    bed.execute("create table t (a)").await;
    reads_statuses(
        &bed,
        &[
            ("'DLVD'", r#"{"DLVD": "delivered"}"#, Disposition::Delivered),
            ("1", r#"{"1": "delivered", "0": "rejected_service"}"#, Disposition::Delivered),
            ("0", r#"{"1": "delivered", "0": "rejected_service"}"#, Disposition::PermanentlyRejected),
            ("null", r#"{"null": "suppressed"}"#, Disposition::Suppressed),
            ("'other'", "{}", Disposition::Pending),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_query_without_keys_says_what_it_cannot_prove() {
    let bed = Bed::sqlite();
    let lookup = simple_lookup("id in (select value from json_each(:ids))");
    let ledger = open(bed.database(), json!({ "lookup": lookup })).unwrap();
    assert_eq!(ledger.finds_by(), FindsBy { ids: true, keys: false });
}
