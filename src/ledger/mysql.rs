//! A MySQL or MariaDB ledger: at most two connections, each reading in short read-only transactions.

mod cell;
mod failure;
mod least;
mod opening;
mod statement;

use super::{
    LedgerError,
    binds::{Bind, Binds, Head, Limits, Prepared, Rows, locate},
    cell::Cell,
};
use crate::{clock, config::ledger::MysqlLedger};
use failure::Failure;
use futures_util::TryStreamExt;
use opening::{Flavor, begin, end, flavor};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Executor, MySqlConnection, Row, SqlSafeStr, Statement,
    mysql::{MySqlColumn, MySqlConnectOptions, MySqlRow},
};
use std::{
    str::FromStr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::timeout};

pub(super) use cell::sample;

/// A connection is not kept for longer, so that a name that moves to another server is followed.
const LONGEST_LIFE: Duration = Duration::from_secs(600);

/// Reads a MySQL or MariaDB database.
pub struct MysqlReader {
    options: MySqlConnectOptions,
    limits: Limits,
    permits: Semaphore,
    idle: Mutex<Vec<Kept>>,
    /// Whether the role may ask how far a replica is behind. It is assumed until refused.
    may_probe: AtomicBool,
}

/// A connection that is in no transaction.
struct Kept {
    connection: MySqlConnection,
    flavor: Flavor,
    made_at: Instant,
    /// Whether it was used before: then a failure may only mean that the server has dropped it since.
    was_used: bool,
}

impl MysqlReader {
    /// A reader of this database. It does not connect.
    ///
    /// # Errors
    /// When the URL can't be read.
    pub fn new(config: &MysqlLedger, limits: Limits) -> Result<Self, LedgerError> {
        // The parser's own words can hold parts of the URL, and so of the password.
        let options =
            MySqlConnectOptions::from_str(config.url.expose()).map_err(|_| LedgerError::Configuration {
                part: "url",
                reason: "it is not of the form mysql://user:password@host:port/database".into(),
            })?;
        let options = options
            .statement_cache_capacity(0)
            // The user's SQL means here what it means in any client of the server.
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            .disable_statement_logging();
        Ok(Self {
            options,
            limits,
            permits: Semaphore::new(config.max_connections.clamp(1, 2) as usize),
            idle: Mutex::default(),
            may_probe: AtomicBool::new(true),
        })
    }

    /// A connection of one's own.
    ///
    /// # Errors
    /// When there is none within the limit.
    async fn connect(&self) -> Result<Kept, LedgerError> {
        let limit = self.limits.connect;
        let connected = timeout(limit, async {
            let mut connection = self.options.connect().await?;
            let flavor = flavor(&mut connection).await?;
            Ok(Kept { connection, flavor, made_at: Instant::now(), was_used: false })
        });
        connected
            .await
            .map_err(|_| LedgerError::Unreachable(format!("no connection came to be within {limit:?}")))?
            .map_err(|error: sqlx::Error| LedgerError::Unreachable(failure::of_connecting(&error)))
    }

    /// Reads a query within the limits, whatever hangs.
    ///
    /// # Errors
    /// When there is no connection, or the query fails or runs into a limit.
    pub async fn read(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, LedgerError> {
        self.limited(prepared.name, self.read_without_limit(prepared, binds, rows)).await
    }

    async fn read_without_limit(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, LedgerError> {
        loop {
            // A reading that is dropped half-way takes its connection with it, and the server ends the transaction.
            let mut kept = match self.idle() {
                Some(kept) => kept,
                None => self.connect().await?,
            };
            let was_used = kept.was_used;
            let result = self.transaction(&mut kept, prepared, binds, rows).await;
            if !matches!(result, Err(Failure::Lost(_))) && end(&mut kept.connection).await.is_ok() {
                self.keep(kept);
            }
            match result {
                Ok(head) => return Ok(head),
                Err(Failure::Lost(_)) if was_used => {}
                Err(Failure::MayNotProbe) => self.may_probe.store(false, Ordering::Relaxed),
                Err(failure) => return Err(failure.error()),
            }
        }
    }

    /// Reads all rows of a query of our own on a connection of its own, which is closed: what a check needs.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn fetch(
        &self,
        name: &'static str,
        sql: String,
        lists: &[usize],
        values: Vec<Bind>,
    ) -> Result<Vec<MySqlRow>, LedgerError> {
        self.limited(name, async {
            let mut connection = self.begun(name).await?;
            let rows = statement::of(name, &sql, lists, values)?.fetch_all(&mut connection).await;
            // The rows are here; closing can only fail to say goodbye.
            connection.close().await.ok();
            rows.map_err(|error| Failure::of(error, name, &self.limits).error())
        })
        .await
    }

    /// The columns of a query, which is not run.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn columns(&self, prepared: &Prepared) -> Result<Vec<MySqlColumn>, LedgerError> {
        let name = prepared.name;
        self.limited(name, async {
            let mut connection = self.begun(name).await?;
            let sql = AssertSqlSafe(prepared.query.sql.clone()).into_sql_str();
            let statement = (&mut connection).prepare(sql).await;
            let columns = statement.map(|statement| statement.columns().to_vec());
            connection.close().await.ok();
            columns.map_err(|error| Failure::of(error, name, &self.limits).error())
        })
        .await
    }

    async fn limited<T>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        let limit = self.limits.total();
        let reason = "the database gave no sign";
        let late = LedgerError::Timeout { query: name, limit, reason };
        timeout(limit, async {
            let _permit =
                self.permits.acquire().await.map_err(|e| LedgerError::Unreachable(e.to_string()))?;
            work.await
        })
        .await
        .unwrap_or(Err(late))
    }

    /// A connection of its own in a transaction, which ends with it.
    async fn begun(&self, name: &'static str) -> Result<MySqlConnection, LedgerError> {
        let Kept { mut connection, flavor, .. } = self.connect().await?;
        loop {
            let may_probe = self.may_probe.load(Ordering::Relaxed);
            match begin(&mut connection, flavor, &self.limits, may_probe, name).await {
                Ok(_) => return Ok(connection),
                Err(Failure::MayNotProbe) => {
                    self.may_probe.store(false, Ordering::Relaxed);
                    end(&mut connection)
                        .await
                        .map_err(|error| LedgerError::Unreachable(failure::text(&error)))?;
                }
                Err(failure) => return Err(failure.error()),
            }
        }
    }

    async fn transaction(
        &self,
        kept: &mut Kept,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, Failure> {
        let may_probe = self.may_probe.load(Ordering::Relaxed);
        let opening =
            begin(&mut kept.connection, kept.flavor, &self.limits, may_probe, prepared.name).await?;
        let began_at = clock::now();
        let failed = |error| Failure::of(error, prepared.name, &self.limits);
        let values = binds.in_order(prepared, began_at);
        let query = statement::of(prepared.name, &prepared.query.sql, &prepared.query.lists, values);
        let mut stream = query.map_err(Failure::Answered)?.fetch(&mut kept.connection);
        rows.begin(began_at);
        let (mut cells, mut columns, mut taken, mut truncated) = (Vec::new(), Vec::new(), 0, false);
        while let Some(row) = stream.try_next().await.map_err(failed)? {
            if taken == 0 {
                columns = columns_of(&row, prepared).map_err(Failure::Answered)?;
                cells.resize(columns.len(), Cell::Null);
            }
            if taken == prepared.max_rows {
                truncated = true;
                break;
            }
            taken += 1;
            for (cell, (place, kind)) in cells.iter_mut().zip(&columns) {
                cell::read(&row, *place, *kind, cell);
            }
            rows.row(&cells).map_err(|m| Failure::Answered(LedgerError::misfit(prepared.name, m)))?;
        }
        Ok(Head { rows: taken, truncated, began_at, lag: opening.lag, skew: opening.skew })
    }

    fn idle(&self) -> Option<Kept> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|kept| kept.made_at.elapsed() < LONGEST_LIFE);
        idle.pop()
    }

    fn keep(&self, kept: Kept) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(Kept { was_used: true, ..kept });
    }
}

/// The places of the wanted columns in a row, and how each is read.
fn columns_of(row: &MySqlRow, prepared: &Prepared) -> Result<Vec<(usize, cell::Kind)>, LedgerError> {
    let present: Vec<&str> = row.columns().iter().map(Column::name).collect();
    let places = locate(prepared, &present)?;
    Ok(places.into_iter().map(|place| (place, cell::Kind::of(row.column(place).type_info()))).collect())
}
