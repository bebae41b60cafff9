//! An SQLite ledger: the file is opened read-only for each reading, so that one that was put in its place is seen.

use super::{
    LedgerError,
    binds::{Bind, Binds, Head, Limits, Prepared, Rows, locate},
    cell::Cell,
    position::Value,
};
use crate::{clock, config::ledger};
use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::TryStreamExt;
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Decode, Row, Sqlite, SqliteConnection, TypeInfo,
    ValueRef,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow},
};
use std::{
    path::Path,
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::timeout};

/// How many instructions of SQLite's machine run between two looks at the clock.
const INSTRUCTIONS: i32 = 2_000;

/// Reads an SQLite file.
pub struct SqliteReader {
    options: SqliteConnectOptions,
    limits: Limits,
    permits: Semaphore,
}

impl SqliteReader {
    /// A reader of this file. It does not open it.
    pub fn new(config: &ledger::SqliteLedger, limits: Limits) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(&config.path)
            .read_only(true)
            .create_if_missing(false)
            .pragma("query_only", "on")
            .busy_timeout(limits.lock)
            .statement_cache_capacity(0)
            .disable_statement_logging();
        Self { options, limits, permits: Semaphore::new(2) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.options.get_filename()
    }

    /// A connection of one's own, whose statements end at the limit.
    ///
    /// # Errors
    /// When the file can't be opened.
    async fn connect(&self) -> Result<SqliteConnection, LedgerError> {
        let path = self.options.get_filename();
        if !path.exists() {
            return Err(LedgerError::Unreachable(format!("there is no file {}", path.display())));
        }
        let unreachable = |error: sqlx::Error| {
            let reason = format!(
                "{}: {}. A database in WAL mode that nobody has open can be read only where its folder can be written",
                path.display(),
                text(&error)
            );
            LedgerError::Unreachable(reason)
        };
        let mut connection = self.options.connect().await.map_err(unreachable)?;
        let deadline = Instant::now() + self.limits.statement;
        let mut handle = connection.lock_handle().await.map_err(unreachable)?;
        handle.set_progress_handler(INSTRUCTIONS, move || Instant::now() < deadline);
        drop(handle);
        Ok(connection)
    }

    /// Reads a query within the limits.
    ///
    /// # Errors
    /// When the file can't be opened, or the query fails or runs into a limit.
    pub async fn read(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, LedgerError> {
        let limit = self.limits.total();
        let reason = "the file system gave no sign";
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
        let mut connection = self.connect().await?;
        let result = self.rows(&mut connection, prepared, binds, rows).await;
        // The statement has ended; closing can only fail to say so.
        connection.close().await.ok();
        result
    }

    /// Reads all rows of a query of our own: what a check needs.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn fetch(
        &self,
        name: &'static str,
        sql: String,
        values: Vec<Bind>,
    ) -> Result<Vec<SqliteRow>, LedgerError> {
        let limit = self.limits.total();
        let fetched = timeout(limit, async {
            let _permit =
                self.permits.acquire().await.map_err(|e| LedgerError::Unreachable(e.to_string()))?;
            let mut connection = self.connect().await?;
            let rows = statement(&sql, values).fetch_all(&mut connection).await;
            connection.close().await.ok();
            rows.map_err(|error| self.failed(&error, name))
        });
        fetched.await.unwrap_or(Err(LedgerError::Timeout {
            query: name,
            limit,
            reason: "the file system gave no sign",
        }))
    }

    async fn rows(
        &self,
        connection: &mut SqliteConnection,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, LedgerError> {
        let began_at = clock::now();
        let values = binds.in_order(prepared, began_at);
        let mut stream = statement(&prepared.query.sql, values).fetch(connection);
        rows.begin(began_at);
        let (mut cells, mut places, mut taken, mut truncated) = (Vec::new(), Vec::new(), 0, false);
        while let Some(row) = stream.try_next().await.map_err(|error| self.failed(&error, prepared.name))? {
            if taken == 0 {
                let present: Vec<&str> = row.columns().iter().map(Column::name).collect();
                places = locate(prepared, &present)?;
            }
            if taken == prepared.max_rows {
                truncated = true;
                break;
            }
            taken += 1;
            cells.clear();
            cells.extend(places.iter().map(|place| cell(&row, *place)));
            rows.row(&cells).map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
        }
        Ok(Head { rows: taken, truncated, began_at, lag: Duration::ZERO, skew: None })
    }

    /// What an error of a query means.
    fn failed(&self, error: &sqlx::Error, query: &'static str) -> LedgerError {
        let code = error.as_database_error().and_then(|e| e.code()).and_then(|code| code.parse::<u32>().ok());
        // The low byte of an extended code is the plain one.
        match code.map(|code| code & 0xff) {
            Some(5 | 6) => LedgerError::Timeout {
                query,
                limit: self.limits.lock,
                reason: "it waited for a lock that somebody else holds",
            },
            Some(9) => LedgerError::Timeout {
                query,
                limit: self.limits.statement,
                reason: "the statement took too long",
            },
            Some(10 | 11 | 14 | 26) => LedgerError::Unreachable(text(error)),
            _ => LedgerError::Query { query, reason: text(error) },
        }
    }
}

/// A statement with its values bound: lists as JSON text for `json_each`, instants as ISO text in UTC.
fn statement(sql: &str, values: Vec<Bind>) -> Query<'static, Sqlite, SqliteArguments> {
    // The one place where text from the configuration becomes SQL. It is the operator's own, and the file is open read-only.
    let query = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false);
    values.into_iter().fold(query, |query, value| match value {
        Bind::List(texts) => query.bind(serde_json::Value::from(texts).to_string()),
        // No SQL for a file asks for these; as text they are what a place read elsewhere would be.
        Bind::Uuids(uuids) => {
            let texts: Vec<String> = uuids.iter().map(ToString::to_string).collect();
            query.bind(serde_json::Value::from(texts).to_string())
        }
        Bind::Int(number) => query.bind(number),
        Bind::Instant(at) => query.bind(iso(at)),
        Bind::Null => query.bind(None::<i64>),
        Bind::Value(value) => match value {
            Value::Int(number) => query.bind(number),
            Value::Float(number) => query.bind(number),
            Value::Text(text) | Value::Decimal(text) => query.bind(String::from(text)),
            // No value of a file is one of these; written as text they are what a place read elsewhere would be.
            Value::Uuid(uuid) => query.bind(uuid.to_string()),
            Value::Instant(at) => query.bind(iso(at)),
            Value::Naive(at) => query.bind(at.to_string()),
        },
    })
}

fn iso(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// An error for people: one line, bounded.
fn text(error: &sqlx::Error) -> String {
    let message = error.as_database_error().map_or_else(|| error.to_string(), |e| e.message().to_owned());
    message.lines().next().unwrap_or_default().chars().take(300).collect()
}

/// The value at this place of a row. Its type is the value's own, whatever the column was declared as.
fn cell(row: &SqliteRow, place: usize) -> Cell {
    let Ok(value) = row.try_get_raw(place) else { return Cell::Null };
    if value.is_null() {
        return Cell::Null;
    }
    let type_name = value.type_info().name().to_owned();
    let decoded = match type_name.as_str() {
        "INTEGER" => <i64 as Decode<Sqlite>>::decode(value).map(Cell::Int),
        "REAL" => <f64 as Decode<Sqlite>>::decode(value).map(Cell::Float),
        "TEXT" => <String as Decode<Sqlite>>::decode(value).map(Cell::Text),
        _ => return Cell::Other(format!("a {type_name}")),
    };
    decoded.unwrap_or_else(|_| Cell::Other(format!("{type_name} that is not UTF-8")))
}
