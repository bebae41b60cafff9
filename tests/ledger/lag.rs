//! A database whose clock is off or that is behind its primary. Functions of these names stand before the catalog's in the search path.

use super::support::{Bed, ids, open, simple_lookup};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::ledger::{LedgerAdapter, LedgerError, LedgerReader};
use serde_json::json;
use std::sync::Arc;

/// A role that meets these functions in place of the catalog's own.
async fn pretending(bed: &Bed, functions: &str) -> Arc<LedgerAdapter> {
    let Bed::Postgres { server, url } = bed else { unreachable!() };
    let role = server.role("reader", url).await;
    bed.execute(
        "create table n (id text primary key, status text not null); insert into n values ('a', 'delivered');
         grant select on n to reader; create schema pretended; grant usage on schema pretended to reader;
         alter role reader set search_path = pretended, pg_catalog, public",
    )
    .await;
    bed.execute(functions).await;
    open(json!({ "postgres": { "url": role } }), json!({ "lookup": simple_lookup("id = any(:ids)") }))
        .unwrap()
}

async fn as_of(ledger: &LedgerAdapter) -> Result<DateTime<Utc>, LedgerError> {
    ledger.lookup(&ids(&["a"]), &[]).await.map(|lookup| lookup.as_of)
}

fn replica(last_replayed: &str, received: &str, receivers: &str) -> String {
    format!(
        "create or replace function pretended.pg_is_in_recovery() returns boolean language sql as 'select true';
         create or replace function pretended.pg_last_xact_replay_timestamp() returns timestamptz language sql as $$ select {last_replayed} $$;
         create or replace function pretended.pg_last_wal_receive_lsn() returns pg_lsn language sql as $$ select {received}::pg_lsn $$;
         create or replace function pretended.pg_last_wal_replay_lsn() returns pg_lsn language sql as $$ select '0/10'::pg_lsn $$;
         create or replace view pretended.pg_stat_wal_receiver as {receivers};
         grant select on pretended.pg_stat_wal_receiver to reader"
    )
}

#[tokio::test]
async fn trial_22_a_database_clock_that_is_off_is_measured_and_moves_nothing() {
    let bed = Bed::postgres().await;
    let functions = "create function pretended.clock_timestamp() returns timestamptz language sql volatile
                     as $$ select pg_catalog.clock_timestamp() - interval '5 minutes' $$";
    let ledger = pretending(&bed, functions).await;
    let before = Utc::now();
    let as_of = as_of(&ledger).await.unwrap();
    assert!(before <= as_of && as_of <= Utc::now());
    let skew = ledger.stats().figures().skew.unwrap();
    assert!((skew + TimeDelta::minutes(5)).abs() < TimeDelta::seconds(60), "{skew}");
}

#[tokio::test]
async fn absence_on_a_replica_is_proven_only_as_of_what_it_has_replayed() {
    let bed = Bed::postgres().await;
    let ledger = pretending(&bed, "select 1").await;
    for (last_replayed, received, receivers, least, most) in [
        // Behind: it has received more than it replayed.
        (
            "now() - interval '10 minutes'",
            "'0/20'",
            "select 1 as pid, now() as last_msg_receipt_time",
            600,
            660,
        ),
        // The primary is idle, and the receiver heard of it just now.
        ("now() - interval '10 minutes'", "'0/10'", "select 1 as pid, now() as last_msg_receipt_time", 0, 60),
        // As before, but this role may not see when: no longer ago than a receiver may be silent.
        (
            "now() - interval '10 minutes'",
            "'0/10'",
            "select 1 as pid, null::timestamptz as last_msg_receipt_time",
            60,
            120,
        ),
        // No receiver runs: that all it received is replayed says nothing.
        (
            "now() - interval '10 minutes'",
            "'0/10'",
            "select 1 as pid, now() as last_msg_receipt_time where false",
            600,
            660,
        ),
        ("now() + interval '1 minute'", "'0/20'", "select 1 as pid, now() as last_msg_receipt_time", 0, 60),
    ] {
        bed.execute(&replica(last_replayed, received, receivers)).await;
        let as_of = as_of(&ledger).await.unwrap();
        let lag = (Utc::now() - as_of).num_seconds();
        assert!((least..most).contains(&lag), "{last_replayed}, {received}, {receivers}: {lag}");
        let known = ledger.stats().figures().lag.unwrap().as_secs();
        assert!((u64::try_from(least).unwrap()..=u64::try_from(lag).unwrap()).contains(&known), "{known}");
    }
}

#[tokio::test]
async fn a_replica_that_cannot_tell_is_unobserved() {
    let bed = Bed::postgres().await;
    let functions =
        replica("null::timestamptz", "null", "select 1 as pid, now() as last_msg_receipt_time where false");
    let ledger = pretending(&bed, &functions).await;
    let error = as_of(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("how far it is behind"), "{error}");
}

#[tokio::test]
async fn a_role_that_may_not_ask_for_the_lag_still_reads() {
    let bed = Bed::postgres().await;
    let functions = "create function pretended.pg_last_xact_replay_timestamp() returns timestamptz language sql as 'select now()';
                     revoke execute on function pretended.pg_last_xact_replay_timestamp() from public";
    let ledger = pretending(&bed, functions).await;
    for _ in 0..2 {
        as_of(&ledger).await.unwrap();
    }
    assert!(ledger.stats().figures().skew.is_some());
}
