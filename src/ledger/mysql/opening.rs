//! How a reading's transaction begins: read-only, with limits of its own, and with the time of the database.

use super::{
    super::{LedgerError, binds::Limits},
    failure::{Failure, answer},
};
use crate::clock;
use chrono::{DateTime, TimeDelta};
use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, MySqlConnection, Row, mysql::MySqlRow, raw_sql};
use std::time::Duration;
use tokio::time::timeout;

/// Limit on ending a transaction: a connection that can't do so is dropped, which ends it too.
const END_LIMIT: Duration = Duration::from_secs(1);

/// How long the server keeps a connection that nobody uses: a little longer than we do.
const IDLE_SECONDS: u64 = 660;

/// What kind of server it is: they differ in the words for limits and for replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// MariaDB.
    MariaDb,
    /// MySQL that says `replica`: 8.0.22 and newer.
    Mysql,
    /// An older MySQL.
    OldMysql,
}

impl Flavor {
    /// The flavor of a server of this version.
    fn of(version: &str) -> Self {
        if version.contains("MariaDB") {
            return Self::MariaDb;
        }
        let mut numbers =
            version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0u32));
        let mut next = || numbers.next().unwrap_or(0);
        if (next(), next(), next()) >= (8, 0, 22) { Self::Mysql } else { Self::OldMysql }
    }

    /// The variable that says whether the session's transactions are read-only.
    fn read_only_variable(self) -> &'static str {
        if self == Self::MariaDb { "tx_read_only" } else { "transaction_read_only" }
    }

    /// The statement that says how far a replica is behind.
    fn replica_status(self) -> &'static str {
        match self {
            Self::MariaDb => "SHOW ALL SLAVES STATUS",
            Self::Mysql => "SHOW REPLICA STATUS",
            Self::OldMysql => "SHOW SLAVE STATUS",
        }
    }

    /// The limits that only this server has.
    fn own_limits(self, limits: &Limits) -> String {
        let millis = limits.statement.as_millis().max(1);
        match self {
            Self::MariaDb => format!(
                "max_statement_time = {}.{:03}, idle_transaction_timeout = {}",
                millis / 1000,
                millis % 1000,
                whole_seconds(limits.total())
            ),
            Self::Mysql | Self::OldMysql => format!("max_execution_time = {millis}"),
        }
    }
}

fn whole_seconds(limit: Duration) -> u128 {
    limit.as_millis().div_ceil(1000).max(1)
}

/// Asks what kind of server it is.
pub async fn flavor(connection: &mut MySqlConnection) -> Result<Flavor, sqlx::Error> {
    let row = raw_sql("SELECT version()").fetch_one(connection).await?;
    Ok(Flavor::of(&row.try_get::<String, _>(0)?))
}

/// What is known of the database when a transaction has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// How far it is behind its primary. Zero for what is no replica.
    pub lag: Duration,
    /// Its clock less ours.
    pub skew: Option<TimeDelta>,
}

/// Begins a transaction in one round trip. All settings are made anew each time: behind a pooler another server may answer.
pub async fn begin(
    connection: &mut MySqlConnection,
    flavor: Flavor,
    limits: &Limits,
    may_probe: bool,
    query: &'static str,
) -> Result<Opening, Failure> {
    // Strings mean the same whatever the server's mode: a backslash escapes, and `"` quotes a string.
    let text = format!(
        "SET SESSION time_zone = '+00:00', lock_wait_timeout = {lock}, innodb_lock_wait_timeout = {lock}, \
         wait_timeout = {IDLE_SECONDS}, \
         sql_mode = REPLACE(REPLACE(@@sql_mode, 'NO_BACKSLASH_ESCAPES', ''), 'ANSI_QUOTES', ''), {own}; \
         SET SESSION TRANSACTION READ ONLY; START TRANSACTION READ ONLY; \
         SELECT CAST(unix_timestamp(now(6)) * 1000000 AS SIGNED) AS clock, \
         CAST(@@session.{read_only} AS SIGNED) AS is_read_only, CAST(@@global.read_only AS SIGNED) AS server_is_read_only{probe}",
        lock = whole_seconds(limits.lock),
        own = flavor.own_limits(limits),
        read_only = flavor.read_only_variable(),
        probe = if may_probe { format!("; {}", flavor.replica_status()) } else { String::new() },
    );
    let before = clock::now();
    let rows: Result<Vec<MySqlRow>, sqlx::Error> =
        raw_sql(AssertSqlSafe(text)).fetch(connection).try_collect().await;
    let after = clock::now();
    let rows = match rows {
        Ok(rows) => rows,
        // A privilege that is missing.
        Err(error) if may_probe && answer(&error).is_some_and(|answer| answer.number() == 1227) => {
            return Err(Failure::MayNotProbe);
        }
        Err(error) => return Err(Failure::of(error, query, limits)),
    };
    let Some((first, replicas)) = rows.split_first() else {
        return Err(Failure::Lost(LedgerError::Unreachable("no answer to the transaction's begin".into())));
    };
    let flag = |name: &str| first.try_get::<i64, _>(name).map_err(|error| Failure::of(error, query, limits));
    if flag("is_read_only")? != 1 {
        let reason =
            "the session could not be made read-only: is there a proxy in between that changes statements?";
        return Err(Failure::Answered(LedgerError::Unreachable(reason.into())));
    }
    let server_is_read_only = flag("server_is_read_only")? != 0;
    if server_is_read_only && !may_probe {
        let reason = "it is read-only, as replicas are, and the role may not ask how far it is behind: grant it SLAVE MONITOR on \
                      MariaDB, REPLICATION CLIENT on MySQL";
        return Err(Failure::Answered(LedgerError::Unreachable(reason.into())));
    }
    let lag = lag(replicas, server_is_read_only).ok_or_else(|| {
        let reason = "it is a replica whose replication does not run, and nobody knows how far it is behind";
        Failure::Answered(LedgerError::Unreachable(reason.into()))
    })?;
    let skew = first.try_get::<i64, _>("clock").ok().and_then(DateTime::from_timestamp_micros);
    let skew = skew.map(|theirs| theirs - (before + (after - before) / 2));
    Ok(Opening { lag, skew })
}

/// How far it is behind the furthest of its primaries, zero where it has none; nothing where that can't be known. What can be written
/// to and has stopped replicating is a replica no more.
fn lag(replicas: &[MySqlRow], server_is_read_only: bool) -> Option<Duration> {
    let mut most = Duration::ZERO;
    for replica in replicas {
        let text = |names: [&str; 2]| {
            let found =
                names.into_iter().find_map(|name| replica.try_get_unchecked::<Option<String>, _>(name).ok());
            found.flatten()
        };
        match text(["Seconds_Behind_Master", "Seconds_Behind_Source"])
            .and_then(|seconds| seconds.parse().ok())
        {
            Some(seconds) => most = most.max(Duration::from_secs(seconds)),
            None => {
                let runs = text(["Slave_SQL_Running", "Replica_SQL_Running"]);
                if server_is_read_only || runs.as_deref() != Some("No") {
                    return None;
                }
            }
        }
    }
    Some(most)
}

/// Ends a transaction.
pub async fn end(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    let ended = timeout(END_LIMIT, raw_sql("ROLLBACK").execute(connection)).await;
    ended.map_err(|_| sqlx::Error::PoolTimedOut)?.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart_by_their_version() {
        for (version, expected) in [
            ("10.11.19-MariaDB-0+deb12u1", Flavor::MariaDb),
            ("5.5.5-10.6.1-MariaDB-log", Flavor::MariaDb),
            ("8.0.36", Flavor::Mysql),
            ("8.4.0-commercial", Flavor::Mysql),
            ("9.1", Flavor::Mysql),
            ("8.0.21", Flavor::OldMysql),
            ("5.7.44-log", Flavor::OldMysql),
            ("", Flavor::OldMysql),
        ] {
            assert_eq!(Flavor::of(version), expected, "{version}");
        }
    }
}
