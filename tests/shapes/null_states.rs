//! Rows that a trigger makes, and whose state is told by what is NULL in them.

use super::{
    bed::{Database, load},
    plain::Plain,
    watch::Watch,
};

const PLAIN: Plain = Plain {
    units: "select 'email/' || n.kind || 's' as route,
                   case when exists (select 1 from sendings s where s.notice_id = n.id and s.sent_at is not null) then 'delivered'
                        when exists (select 1 from sendings s where s.notice_id = n.id and s.failed_at is not null
                                                                and s.next_attempt_at is null and s.is_dead_address)
                        then 'rejected_recipient'
                        when exists (select 1 from sendings s where s.notice_id = n.id and s.failed_at is not null
                                                                and s.next_attempt_at is null)
                        then 'rejected_service'
                        when exists (select 1 from sendings s where s.notice_id = n.id and s.failed_at is not null) then 'retrying'
                        else 'unattempted' end as stands,
                   cast(round((julianday(n.created_at) - 2440587.5) * 86400000) as integer) * 1000 as due
              from notices n where not n.is_probe",
    attempts: Some(
        "select 'email/' || n.kind || 's' as route,
                case when s.sent_at is not null then 'delivered' when s.next_attempt_at is not null then 'retryable'
                     else 'permanent_rejection' end as outcome,
                cast(round((julianday(coalesce(s.sent_at, s.failed_at)) - 2440587.5) * 86400000) as integer) * 1000 as at
           from sendings s join notices n on n.id = s.notice_id
          where not n.is_probe and (s.sent_at is not null or s.failed_at is not null)",
    ),
};

const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_is_told_by_what_is_null() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("shape.db");
    let database = Database::file(&path, "null_states").await;
    let loaded = load("null_states", &[("LEDGER_FILE", path.to_str().expect("a path that is text"))]).await;
    let mut watch = Watch::new(&loaded, "service").await;
    watch.until_agreed("the history", &database, &PLAIN).await;
    watch.restart();
    watch.until_agreed("the history after a restart", &database, &PLAIN).await;

    database
        .execute(&format!(
            "insert into notices (id, kind, created_at) values ('n-new-1', 'alert', {NOW}), ('n-new-2', 'receipt', {NOW});
             update sendings set sent_at = {NOW} where notice_id = 'n-new-1'"
        ))
        .await;
    watch.until_agreed("new notices", &database, &PLAIN).await;

    // What waited for days ends: sent, failed for good, or failed and to be tried again.
    database
        .execute(&format!(
            "update sendings set sent_at = {NOW} where ended_at is null and id % 3 = 0;
             update sendings set failed_at = {NOW}, is_dead_address = id % 2 where ended_at is null and id % 3 = 1;
             update sendings set failed_at = {NOW}, next_attempt_at = {NOW} where ended_at is null and id % 5 = 0"
        ))
        .await;
    watch.until_agreed("what waited", &database, &PLAIN).await;

    // Somebody gives up what was to be tried again: the last attempt, which was read long ago, changes its class.
    database
        .execute(
            "update sendings set next_attempt_at = null
              where next_attempt_at is not null
                and id = (select max(s.id) from sendings s where s.notice_id = sendings.notice_id and s.ended_at is not null)
                and not exists (select 1 from sendings s where s.notice_id = sendings.notice_id and s.sent_at is not null)",
        )
        .await;
    watch.until_agreed("what was given up", &database, &PLAIN).await;
    watch.restart();
    watch.until_agreed("all of it after a restart", &database, &PLAIN).await;
}
