//! Everybody's pending, on both databases.

use super::support::{Bed, open, simple_lookup};
use chrono::Utc;
use delivery_canary::domain::{
    pending::{AGE_BOUNDS_SECONDS, RoutePending},
    route::RouteName,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

fn deadlines() -> BTreeMap<RouteName, Duration> {
    ["email/receipts", "sms/codes", "webhook/quiet"]
        .into_iter()
        .map(|name| (RouteName::from_text(name), Duration::from_secs(60)))
        .collect()
}

/// Notifications by age in seconds: `not_before` is that many seconds ahead of now, or NULL.
async fn ledger_with(bed: &Bed, rows: &[(&str, i64, Option<i64>, Option<&str>)]) {
    let time = bed.time_type();
    bed.execute(&format!(
        "create table n (id integer primary key, route text not null, status text, is_canary integer not null default 0,
                         accepted_at {time} not null, not_before {time})"
    ))
    .await;
    let at = |ahead: i64| bed.time(Utc::now() + chrono::TimeDelta::seconds(ahead));
    let values: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(id, (route, age, not_before, status))| {
            let text = |value: Option<String>| value.map_or("null".to_owned(), |value| format!("'{value}'"));
            format!(
                "({id}, '{route}', {}, 0, '{}', {})",
                text(status.map(str::to_owned)),
                at(-age),
                text(not_before.map(at))
            )
        })
        .collect();
    bed.execute(&format!("insert into n values {}", values.join(", "))).await;
}

fn config(bed: &Bed, sql: &str, columns: Value) -> Value {
    json!({
        "lookup": simple_lookup(&bed.any_of("id", "::int[]")),
        "pending": { "sql": sql, "columns": columns, "routes": { "mail": "email/receipts", "sms": "sms/codes", "quiet": "webhook/quiet" } },
        "statuses": { "failed": "retryable", "delivered": "delivered", "dunno": "unknown" },
        "max_rows": 10,
    })
}

async fn counts_by_state_and_age(bed: Bed) {
    let rows = [
        ("mail", 10, None, None),
        ("mail", 100, None, Some("failed")),
        ("mail", 4_000, None, Some("dunno")),
        ("mail", 500, None, Some("new word")),
        ("mail", 90_000, Some(3_600), None),
        ("sms", 90_000, Some(-40), None),
        ("fax", 90_000, None, Some("failed")),
        ("sms", 5, None, Some("delivered")),
    ];
    ledger_with(&bed, &rows).await;
    let sql = "select route, accepted_at, not_before, status from n where is_canary = 0 limit :limit";
    let columns = json!({ "route": "route", "accepted_at": "accepted_at", "not_before": "not_before", "status": "status" });
    let ledger = open(bed.database(), config(&bed, sql, columns)).unwrap();
    let snapshot = ledger.pending(&deadlines()).await.unwrap();
    let figures = snapshot.exact().unwrap();
    let mail = &figures.routes[&RouteName::from_text("email/receipts")];
    assert_eq!((mail.scheduled, mail.unattempted, mail.retrying, mail.unknown), (1, 1, 1, 2));
    assert_eq!(mail.over_deadline, Some(3));
    let age = |at: chrono::DateTime<Utc>| (snapshot.as_of - at).num_seconds();
    let (oldest, oldest_unknown) = (age(mail.oldest_due.unwrap()), age(mail.oldest_unknown.unwrap()));
    assert!((4_000..4_100).contains(&oldest) && oldest == oldest_unknown, "{oldest} {oldest_unknown}");
    assert_eq!(mail.ages[AGE_BOUNDS_SECONDS.partition_point(|b| *b < 4_000)], 1);
    // Due since its release, not since its acceptance a day ago.
    let sms = &figures.routes[&RouteName::from_text("sms/codes")];
    let released = age(sms.oldest_due.unwrap());
    assert!((40..100).contains(&released), "{released}");
    assert_eq!((sms.unattempted, figures.settled_rows), (1, 1));
    assert_eq!(figures.routes[&RouteName::from_text("webhook/quiet")], RoutePending::drained());
    assert_eq!((figures.other.retrying, figures.folded_rows), (1, 1));
    assert_eq!(ledger.stats().figures().unmapped_statuses, 1);
}

#[tokio::test]
async fn postgres_counts_pending_by_state_and_age() {
    counts_by_state_and_age(Bed::postgres().await).await;
}

#[tokio::test]
async fn mariadb_counts_pending_by_state_and_age() {
    counts_by_state_and_age(Bed::mariadb().await).await;
}

#[tokio::test]
async fn sqlite_counts_pending_by_state_and_age() {
    counts_by_state_and_age(Bed::sqlite()).await;
}

async fn a_cut_result_is_no_fact_and_counts_are_not_cut(bed: Bed) {
    let rows: Vec<_> = (0..30).map(|n| ("mail", 70 + n % 2, None, Some("failed"))).collect();
    ledger_with(&bed, &rows).await;
    let columns = json!({ "route": "route", "accepted_at": "accepted_at", "status": "status" });
    for sql in
        ["select route, accepted_at, status from n limit :limit", "select route, accepted_at, status from n"]
    {
        let ledger = open(bed.database(), config(&bed, sql, columns.clone())).unwrap();
        for _ in 0..2 {
            let snapshot = ledger.pending(&deadlines()).await.unwrap();
            assert_eq!((snapshot.is_truncated(), snapshot.exact()), (true, None), "{sql}");
            let mail = &snapshot.at_least().routes[&RouteName::from_text("email/receipts")];
            assert_eq!(mail.over_deadline, Some(10), "{sql}");
        }
    }
    let sql = "select route, status, min(accepted_at) as accepted_at, count(*) as n, sum(1) as summed
                 from n group by route, status limit :limit";
    for count in ["n", "summed"] {
        let columns =
            json!({ "route": "route", "accepted_at": "accepted_at", "status": "status", "count": count });
        let snapshot =
            open(bed.database(), config(&bed, sql, columns)).unwrap().pending(&deadlines()).await.unwrap();
        let mail = &snapshot.exact().unwrap().routes[&RouteName::from_text("email/receipts")];
        assert_eq!((mail.retrying, mail.over_deadline), (30, Some(30)));
    }
}

#[tokio::test]
async fn postgres_says_when_a_result_was_cut() {
    a_cut_result_is_no_fact_and_counts_are_not_cut(Bed::postgres().await).await;
}

#[tokio::test]
async fn mariadb_says_when_a_result_was_cut() {
    a_cut_result_is_no_fact_and_counts_are_not_cut(Bed::mariadb().await).await;
}

#[tokio::test]
async fn sqlite_says_when_a_result_was_cut() {
    a_cut_result_is_no_fact_and_counts_are_not_cut(Bed::sqlite()).await;
}

#[tokio::test]
async fn trial_28_a_failed_read_is_absent_and_a_drained_route_is_zero() {
    let bed = Bed::sqlite();
    ledger_with(&bed, &[("mail", 7_200, None, Some("failed"))]).await;
    let sql = "select route, accepted_at, status from n where status = 'failed' limit :limit";
    let columns = json!({ "route": "route", "accepted_at": "accepted_at", "status": "status" });
    let ledger = open(bed.database(), config(&bed, sql, columns)).unwrap();
    let mail = RouteName::from_text("email/receipts");
    let stuck = ledger.pending(&deadlines()).await.unwrap();
    assert!(stuck.exact().unwrap().routes[&mail].oldest_due.is_some());
    bed.execute("update n set status = 'delivered'").await;
    let drained = ledger.pending(&deadlines()).await.unwrap();
    assert_eq!(drained.exact().unwrap().routes[&mail], RoutePending::drained());
    bed.execute("alter table n rename to gone").await;
    let error = ledger.pending(&deadlines()).await.unwrap_err();
    assert_eq!((error.word(), ledger.stats().figures().last_error), ("query", Some("query")));
    bed.execute("alter table gone rename to n").await;
    ledger.pending(&deadlines()).await.unwrap();
    assert_eq!(ledger.stats().figures().last_error, None);
}

#[tokio::test]
async fn the_times_can_be_bound_in_any_form() {
    for bed in [Bed::postgres().await, Bed::mariadb().await, Bed::sqlite()] {
        ledger_with(&bed, &[("mail", 100, None, None), ("mail", 3, None, None)]).await;
        let sql = match bed {
            Bed::Postgres { .. } => {
                "select route, accepted_at from n where accepted_at < :now - make_interval(secs => :overlap)
                   and :now_ms / 1000 between extract(epoch from :now) - 1 and extract(epoch from :now) limit :limit"
            }
            Bed::Mariadb { .. } => {
                "select route, accepted_at from n where accepted_at < :now - interval :overlap second
                   and :now_ms / 1000 between unix_timestamp(:now) - 1 and unix_timestamp(:now) limit :limit"
            }
            Bed::Sqlite { .. } => {
                "select route, accepted_at from n where unixepoch(accepted_at) < unixepoch(:now) - :overlap
                   and :now_ms / 1000 = unixepoch(:now) limit :limit"
            }
        };
        let mut config = config(&bed, sql, json!({ "route": "route", "accepted_at": "accepted_at" }));
        config["overlap"] = json!("50s");
        let snapshot = open(bed.database(), config).unwrap().pending(&deadlines()).await.unwrap();
        let mail = &snapshot.exact().unwrap().routes[&RouteName::from_text("email/receipts")];
        assert_eq!(mail.unattempted, 1);
    }
}
