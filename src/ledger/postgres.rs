//! A PostgreSQL ledger: at most two connections, each reading in short read-only transactions.

mod cell;
mod encode;
mod failure;
mod least;
mod opening;

use super::{
    LedgerError,
    binds::{Bind, Binds, Head, Limits, Prepared, Rows, locate},
    cell::Cell,
    position::Value,
};
use crate::{clock, config::ledger::PostgresLedger};
use failure::Failure;
use futures_util::TryStreamExt;
use opening::{begin, end};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, PgConnection, Postgres, Row,
    postgres::{PgArguments, PgConnectOptions, PgRow},
    query::Query,
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
pub(super) use least::least_id;

/// The name by which the database's own people see us.
const APPLICATION_NAME: &str = "delivery-canary";

/// A connection is not kept for longer, so that a name that moves to another server is followed.
const LONGEST_LIFE: Duration = Duration::from_secs(600);

/// How often one reading is tried again because the connection met new types: parameters and columns are learnt in turn.
const MOST_NEW_TYPES: u32 = 3;

/// Reads a PostgreSQL database.
pub struct PostgresReader {
    options: PgConnectOptions,
    limits: Limits,
    permits: Semaphore,
    idle: Mutex<Vec<Kept>>,
    /// Whether the role may ask how far a replica is behind. It is assumed until refused.
    may_probe: AtomicBool,
}

/// A connection that is in no transaction.
struct Kept {
    connection: PgConnection,
    made_at: Instant,
    /// Whether it was used before: then a failure may only mean that the server has dropped it since.
    was_used: bool,
}

impl PostgresReader {
    /// A reader of this database. It does not connect.
    ///
    /// # Errors
    /// When the URL can't be read.
    pub fn new(config: &PostgresLedger, limits: Limits) -> Result<Self, LedgerError> {
        // The parser's own words can hold parts of the URL, and so of the password.
        let options =
            PgConnectOptions::from_str(config.url.expose()).map_err(|_| LedgerError::Configuration {
                part: "url",
                reason: "it is not of the form postgres://user:password@host:port/database".into(),
            })?;
        let options = options
            .application_name(APPLICATION_NAME)
            .statement_cache_capacity(0)
            // Poolers refuse start-up parameters that they can't carry over, and nothing here needs this one.
            .extra_float_digits(None)
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
    async fn connect(&self) -> Result<PgConnection, LedgerError> {
        let limit = self.limits.connect;
        let connected = timeout(limit, self.options.connect()).await;
        connected
            .map_err(|_| LedgerError::Unreachable(format!("no connection came to be within {limit:?}")))?
            .map_err(|error| LedgerError::Unreachable(failure::text(&error)))
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
        let limit = self.limits.total();
        let reason = "the database gave no sign";
        let late = LedgerError::Timeout { query: prepared.name, limit, reason };
        timeout(limit, self.read_without_limit(prepared, binds, rows)).await.unwrap_or(Err(late))
    }

    async fn read_without_limit(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, LedgerError> {
        let _permit = self.permits.acquire().await.map_err(|e| LedgerError::Unreachable(e.to_string()))?;
        let mut new_types = 0;
        loop {
            // A reading that is dropped half-way takes its connection with it, and the server ends the transaction.
            let mut kept = match self.idle() {
                Some(kept) => kept,
                None => Kept { connection: self.connect().await?, made_at: Instant::now(), was_used: false },
            };
            let was_used = kept.was_used;
            let result = self.transaction(&mut kept.connection, prepared, binds, rows).await;
            if !matches!(result, Err(Failure::Lost(_))) && end(&mut kept.connection).await.is_ok() {
                self.keep(kept);
            }
            match result {
                Ok(head) => return Ok(head),
                Err(Failure::Lost(_)) if was_used => {}
                Err(Failure::TypeWasNew(_)) if new_types < MOST_NEW_TYPES => new_types += 1,
                Err(Failure::MayNotProbe) => self.may_probe.store(false, Ordering::Relaxed),
                Err(Failure::Lost(error) | Failure::Answered(error) | Failure::TypeWasNew(error)) => {
                    return Err(error);
                }
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
        values: Vec<Bind>,
    ) -> Result<Vec<PgRow>, LedgerError> {
        let limit = self.limits.total();
        let fetched = timeout(limit, async {
            let _permit =
                self.permits.acquire().await.map_err(|e| LedgerError::Unreachable(e.to_string()))?;
            let mut connection = self.connect().await?;
            let mut tries = 0;
            loop {
                let may_probe = self.may_probe.load(Ordering::Relaxed);
                let result = match begin(&mut connection, &self.limits, may_probe, name).await {
                    Ok(_) => nameless(&sql, values.clone())
                        .fetch_all(&mut connection)
                        .await
                        .map_err(|error| Failure::of(error, name, &self.limits)),
                    Err(failure) => Err(failure),
                };
                tries += 1;
                match result {
                    Ok(rows) => {
                        // The rows are here; what follows can only fail to say goodbye. Inside of a transaction a goodbye would cost a
                        // pooler the server's connection.
                        end(&mut connection).await.ok();
                        connection.close().await.ok();
                        return Ok(rows);
                    }
                    Err(Failure::MayNotProbe) => self.may_probe.store(false, Ordering::Relaxed),
                    Err(Failure::TypeWasNew(_)) if tries <= MOST_NEW_TYPES => {}
                    Err(Failure::Lost(error) | Failure::Answered(error) | Failure::TypeWasNew(error)) => {
                        return Err(error);
                    }
                }
                end(&mut connection)
                    .await
                    .map_err(|error| LedgerError::Unreachable(failure::text(&error)))?;
            }
        });
        fetched.await.unwrap_or(Err(LedgerError::Timeout {
            query: name,
            limit,
            reason: "the database gave no sign",
        }))
    }

    async fn transaction(
        &self,
        connection: &mut PgConnection,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, Failure> {
        let may_probe = self.may_probe.load(Ordering::Relaxed);
        let opening = begin(connection, &self.limits, may_probe, prepared.name).await?;
        let began_at = clock::now();
        let failed = |error| Failure::of(error, prepared.name, &self.limits);
        let values = binds.in_order(prepared, began_at);
        let mut stream = nameless(&prepared.query.sql, values).fetch(connection);
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
fn columns_of(row: &PgRow, prepared: &Prepared) -> Result<Vec<(usize, cell::Kind)>, LedgerError> {
    let present: Vec<&str> = row.columns().iter().map(Column::name).collect();
    let places = locate(prepared, &present)?;
    Ok(places.into_iter().map(|place| (place, cell::Kind::of(row.column(place).type_info()))).collect())
}

/// A statement with its values bound. It has no name, so a pooler may send each transaction to another server.
fn nameless(sql: &str, values: Vec<Bind>) -> Query<'static, Postgres, PgArguments> {
    // The one place where text from the configuration becomes SQL. It is the operator's own, and runs read-only.
    let query = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false);
    values.into_iter().fold(query, |query, value| match value {
        Bind::List(texts) => query.bind(texts),
        Bind::Uuids(uuids) => query.bind(uuids),
        Bind::Int(number) => query.bind(number),
        Bind::Instant(at) => query.bind(at),
        Bind::Null => query.bind(encode::Null),
        Bind::Value(value) => match value {
            Value::Int(number) => query.bind(number),
            Value::Uuid(uuid) => query.bind(uuid),
            Value::Text(text) => query.bind(String::from(text)),
            Value::Decimal(text) => query.bind(encode::Numeric(text)),
            Value::Float(number) => query.bind(number),
            Value::Instant(at) => query.bind(at),
            Value::Naive(at) => query.bind(at),
        },
    })
}
