//! How a reading's transaction begins: read-only, with limits of its own, and with the time of the database.

use super::{
    super::{LedgerError, binds::Limits},
    failure::Failure,
};
use crate::clock;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, PgConnection, Row, postgres::PgRow, raw_sql};
use std::time::Duration;
use tokio::time::timeout;

/// Limit on ending a transaction: a connection that can't do so is dropped, which ends it too.
const END_LIMIT: Duration = Duration::from_secs(1);

/// What is known of the database when a transaction has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// How far it is behind its primary. Zero for what is no replica.
    pub lag: Duration,
    /// Its clock less ours.
    pub skew: Option<TimeDelta>,
}

/// The time of the database alone.
const CLOCK: &str = "SELECT extract(epoch FROM clock_timestamp())::float8 AS clock, false AS is_replica, \
     NULL::float8 AS behind, NULL::float8 AS unheard";

/// The time, and how far a replica is behind. `behind` is the age of the newest transaction replayed: too long where the primary
/// is idle. A replica that has replayed all it received, with a receiver that is alive, is behind by no more than the time since it
/// was last heard: known to some roles, and never longer than the time after which a silent receiver ends itself.
const CLOCK_AND_LAG: &str = "SELECT extract(epoch FROM clock_timestamp())::float8 AS clock, pg_is_in_recovery() AS is_replica, \
     CASE WHEN pg_is_in_recovery() THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8 END AS behind, \
     CASE WHEN pg_is_in_recovery() AND pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN \
       (SELECT coalesce(extract(epoch FROM clock_timestamp() - last_msg_receipt_time)::float8, \
          (SELECT nullif(setting::float8, 0) / 1000 FROM pg_settings WHERE name = 'wal_receiver_timeout')) \
        FROM pg_stat_wal_receiver WHERE pid IS NOT NULL LIMIT 1) END AS unheard";

/// Begins a transaction in one round trip. All settings are local to it: they hold behind a transaction pooler and leave nothing there.
pub async fn begin(
    connection: &mut PgConnection,
    limits: &Limits,
    may_probe: bool,
    query: &'static str,
) -> Result<Opening, Failure> {
    let text = format!(
        "BEGIN READ ONLY; SET LOCAL statement_timeout = {statement}; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL idle_in_transaction_session_timeout = {total}; SET LOCAL TimeZone = 'UTC'; \
         SET LOCAL standard_conforming_strings = on; {probe}",
        statement = limits.statement.as_millis().max(1),
        lock = limits.lock.as_millis().max(1),
        total = limits.total().as_millis(),
        probe = if may_probe { CLOCK_AND_LAG } else { CLOCK },
    );
    let before = clock::now();
    let rows: Result<Vec<PgRow>, sqlx::Error> =
        raw_sql(AssertSqlSafe(text)).fetch(connection).try_collect().await;
    let after = clock::now();
    let rows = match rows {
        Ok(rows) => rows,
        Err(sqlx::Error::Database(answer)) if may_probe && is_refusal(answer.code().as_deref()) => {
            return Err(Failure::MayNotProbe);
        }
        Err(error) => return Err(Failure::of(error, query, limits)),
    };
    let row =
        rows.first().ok_or_else(|| Failure::Lost(LedgerError::Unreachable("no answer to BEGIN".into())))?;
    let lag = lag(row).map_err(|error| Failure::of(error, query, limits))?;
    let lag = lag.ok_or_else(|| {
        let reason = "it is a replica that can't tell how far it is behind, as it has replayed nothing yet";
        Failure::Answered(LedgerError::Unreachable(reason.into()))
    })?;
    Ok(Opening { lag, skew: skew(row, before, after) })
}

/// Insufficient privilege, or a database that does not have the function, view or column.
fn is_refusal(code: Option<&str>) -> bool {
    matches!(code, Some("42501" | "42883" | "42P01" | "42703" | "0A000"))
}

/// How far it is behind; nothing where that can't be known.
fn lag(row: &PgRow) -> Result<Option<Duration>, sqlx::Error> {
    if !row.try_get::<bool, _>("is_replica")? {
        return Ok(Some(Duration::ZERO));
    }
    let behind: Option<f64> = row.try_get("behind")?;
    let unheard: Option<f64> = row.try_get("unheard")?;
    let least = behind.into_iter().chain(unheard).min_by(f64::total_cmp);
    Ok(least.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok()))
}

/// The database's clock against the middle of the round trip.
fn skew(row: &PgRow, before: DateTime<Utc>, after: DateTime<Utc>) -> Option<TimeDelta> {
    let micros = row.try_get::<f64, _>("clock").ok()? * 1e6;
    let theirs = DateTime::from_timestamp_micros(micros as i64)?;
    Some(theirs - (before + (after - before) / 2))
}

/// Ends a transaction.
pub async fn end(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let ended = timeout(END_LIMIT, raw_sql("ROLLBACK").execute(connection)).await;
    ended.map_err(|_| sqlx::Error::PoolTimedOut)?.map(drop)
}
