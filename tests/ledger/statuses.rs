//! Statuses of any type, as attempts of a page.

use super::{
    following::{all_attempts, any_of, follow, notifications},
    support::Bed,
};
use delivery_canary::{
    domain::{flow::rows::Standing, pending::Tried},
    ledger::flow::FlowReader,
};
use serde_json::{Value, json};

async fn attempts_of(bed: &Bed, status: &str, table: Value) -> Vec<Option<Standing>> {
    let sql = format!(
        "select seq, id, {status} as status, at from a where (at, seq) > (:after_ts, :after_id) order by at, seq limit :limit"
    );
    let fields = json!({
        "notifications": notifications(
            "select id, at, 'mail' as route from a where (at, id) > (:after_ts, :after_id) order by at, id limit :limit", json!("at")),
        "attempts": { "sql": sql, "cursor": { "at": "at", "id": "seq" },
                      "columns": { "attempt_id": "seq", "notification_id": "id", "status": "status", "at": "at" } },
        "statuses": table,
    });
    all_attempts(&follow(bed, fields).unwrap())
        .await
        .into_iter()
        .map(|seen| seen.row.map(|row| row.leaves))
        .collect()
}

#[tokio::test]
async fn a_status_may_be_text_a_number_a_boolean_an_enum_or_null() {
    use Standing::{Delivered, Pending};
    let (again, unknown) = (Some(Pending(Tried::WillRetry)), Some(Pending(Tried::OutcomeUnknown)));
    let bed = Bed::postgres().await;
    bed.execute(
        "create type state as enum ('ok', 'no');
         create table a as select g as seq, 'n' || g as id, now() - interval '1 minute' as at, (array['ok', 'no', null])[g] as t,
                (array['ok', 'no', null])[g]::state as e, (array[200, 500, null])[g] as i, (array[true, false, null])[g] as b
           from generate_series(1, 3) as g",
    )
    .await;
    let words = json!({ "ok": "delivered", "no": "retryable", "200": "delivered", "500": "retryable", "true": "delivered",
                        "false": "retryable" });
    for column in ["t", "e", "i", "b"] {
        assert_eq!(
            attempts_of(&bed, column, words.clone()).await,
            [Some(Delivered), again, unknown],
            "{column}"
        );
    }
    // An attempt that is under way has a place in the stream, and is no row.
    let under_way = json!({ "true": "delivered", "false": "retryable", "null": "pending" });
    assert_eq!(attempts_of(&bed, "b", under_way).await, [Some(Delivered), again, None]);
    let bed = Bed::mariadb().await;
    bed.execute(
        "create table a (seq integer, id varchar(9), at timestamp null, t text, e enum('ok', 'no'), i integer, b boolean, bits bit(1));
         insert into a values (1, 'n1', now() - interval 1 minute, 'ok', 'ok', 200, true, b'1'),
                              (2, 'n2', now() - interval 1 minute, 'no', 'no', 500, false, b'0'),
                              (3, 'n3', now() - interval 1 minute, null, null, null, null, null)",
    )
    .await;
    for column in ["t", "e", "i", "b", "bits"] {
        assert_eq!(
            attempts_of(&bed, column, words.clone()).await,
            [Some(Delivered), again, unknown],
            "{column}"
        );
    }
    let bed = Bed::sqlite();
    bed.execute(
        "create table a (seq integer, id text, at text, b integer);
         insert into a select column1, 'n' || column1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-1 minute'), column2
           from (values (1, 1), (2, 0), (3, null))",
    )
    .await;
    let words = json!({ "1": "delivered", "0": "retryable" });
    assert_eq!(attempts_of(&bed, "b", words).await, [Some(Delivered), again, unknown]);
}

#[tokio::test]
async fn a_planned_attempt_makes_a_failure_retryable() {
    use Standing::{Delivered, Pending, RejectedRecipient, RejectedService, Suppressed};
    let bed = Bed::postgres().await;
    bed.execute(
        "create table a (seq bigint, id uuid, status text, at timestamptz default now(), next timestamptz);
         insert into a (seq, id, status, next)
           select row_number() over (), md5('n')::uuid, status, next
             from unnest(array['failed', 'dead', 'delivered', 'held', 'odd']) as status, unnest(array[null, now()]) as next",
    )
    .await;
    let at = json!("at");
    let columns = json!({ "attempt_id": "seq", "notification_id": "id", "status": "status", "at": "at", "next_attempt": "next" });
    let fields = json!({
        "notifications": notifications(
            "select id, at, 'mail' as route from a where (at, id) > (:after_ts, :after_id) order by at, id limit :limit", at),
        "attempts": { "sql": "select * from a where (at, seq) > (:after_ts, :after_id) order by at, seq limit :limit",
                      "cursor": { "at": "at", "id": "seq" }, "columns": columns },
        "statuses": { "failed": "rejected_service", "dead": "rejected_recipient", "delivered": "delivered", "held": "suppressed" },
        "lookup": {
            "sql": format!("select id, seq, status, at, next from a where {} limit :limit", any_of(&bed, "id", "::uuid[]")),
            "columns": { "notification_id": "id", "attempt_id": "seq", "attempt_status": "status", "attempt_at": "at",
                         "next_attempt": "next" },
        },
        "max_rows": 100,
    });
    let flow = follow(&bed, fields).unwrap();
    let (again, unknown) = (Pending(Tried::WillRetry), Pending(Tried::OutcomeUnknown));
    let mut expected = vec![
        (RejectedService, false),
        (RejectedRecipient, false),
        (Delivered, false),
        (Delivered, true),
        (Suppressed, false),
        (Suppressed, true),
        (unknown, false),
        (again, true),
        (again, true),
        (again, true),
    ];
    expected.sort();
    let rows: Vec<_> = all_attempts(&flow).await.into_iter().filter_map(|seen| seen.row).collect();
    let of_rows = |rows: &[delivery_canary::domain::flow::rows::AttemptRow]| {
        let mut sorted: Vec<Standing> = rows.iter().map(|row| row.leaves).collect();
        sorted.sort();
        sorted
    };
    let standings: Vec<Standing> = expected.iter().map(|(standing, _)| *standing).collect();
    assert_eq!(of_rows(&rows), standings);
    // The lookup says the same of each.
    let truths = flow.truths(&[rows[0].unit.clone()]).await.unwrap();
    assert_eq!(of_rows(&truths.found[&rows[0].unit].attempts), standings);
}
