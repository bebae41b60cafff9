//! The ledger in an SQLite file.
//!
//! One connection writes. The journal is a rollback journal and not a WAL, because then a writer that keeps its lock
//! shuts out every reader, also those that are connected already: that is how readers are barred.

use super::{
    Attempt, Ledger, LedgerCounts, LedgerError, NewNotification, Next, ReaderAddress, Work, Written, to,
};
use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use sqlx::{
    Connection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::sync::Mutex;
use uuid::Uuid;

type WorkRow = (String, Option<String>, Option<String>, String, i64);

/// A ledger in an SQLite file.
pub struct SqliteLedger {
    path: PathBuf,
    connection: Mutex<Option<SqliteConnection>>,
}

fn iso(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn id(text: &str) -> Result<Uuid, LedgerError> {
    text.parse().map_err(|error| to("read an id")(sqlx::Error::Decode(Box::new(error))))
}

impl SqliteLedger {
    /// Opens the file, and makes it and its tables if they aren't there.
    pub async fn open(path: &Path) -> Result<Self, LedgerError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Truncate)
            // Commits survive the end of this process, not a power cut: a simulator need not wait for the disk.
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(Duration::from_secs(5));
        let mut connection = SqliteConnection::connect_with(&options).await.map_err(to("open its file"))?;
        sqlx::raw_sql(include_str!("sqlite.sql"))
            .execute(&mut connection)
            .await
            .map_err(to("make its tables"))?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(Some(connection)) })
    }
}

/// Keeps the file's lock between transactions, or gives it back after each.
async fn set_barred(connection: &mut SqliteConnection, barred: bool) -> Result<(), LedgerError> {
    let failed = to("bar its readers, or let them in");
    let mode = if barred { "pragma locking_mode = exclusive" } else { "pragma locking_mode = normal" };
    sqlx::query(mode).fetch_all(&mut *connection).await.map_err(&failed)?;
    // The lock is taken, or given back, by a transaction that touches the file and not by the pragma.
    let mut transaction = connection.begin_with("begin exclusive").await.map_err(&failed)?;
    sqlx::query("update notifications set leased = leased where false")
        .execute(&mut *transaction)
        .await
        .map_err(&failed)?;
    transaction.commit().await.map_err(&failed)
}

/// Runs the block with the connection, or says that the ledger is closed.
macro_rules! with {
    ($self:ident, |$connection:ident| $do:expr) => {{
        let mut held = $self.connection.lock().await;
        let $connection =
            held.as_mut().ok_or(sqlx::Error::PoolClosed).map_err(to("be used: it is closed"))?;
        $do
    }};
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn accept(&self, new: &NewNotification) -> Result<Written, LedgerError> {
        let body = serde_json::to_string(&new.message)?;
        with!(self, |connection| {
            let failed = to("write a notification");
            let mut transaction = connection.begin_with("begin immediate").await.map_err(&failed)?;
            let written = sqlx::query(
                "insert into notifications (notification_id, idempotency_key, request_digest, route, channel, template,
                    is_canary, accepted_at, not_before, traceparent, policy_version, next_attempt_at)
                 values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (idempotency_key) do nothing",
            )
            .bind(new.notification_id.to_string())
            .bind(&new.idempotency_key)
            .bind(&new.digest)
            .bind(&new.message.route)
            .bind(new.message.channel.word())
            .bind(&new.message.template)
            .bind(new.message.is_canary())
            .bind(iso(new.accepted_at))
            .bind(new.not_before.map(iso))
            .bind(&new.traceparent)
            .bind(&new.policy_version)
            .bind(iso(new.first_attempt_at))
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
            if written.rows_affected() == 0 {
                let (found, digest): (String, String) = sqlx::query_as(
                    "select notification_id, request_digest from notifications where idempotency_key = ?",
                )
                .bind(&new.idempotency_key)
                .fetch_one(&mut *transaction)
                .await
                .map_err(&failed)?;
                return Ok(if digest == new.digest {
                    Written::Replayed(id(&found)?)
                } else {
                    Written::Conflict
                });
            }
            sqlx::query("insert into messages (notification_id, body) values (?, ?)")
                .bind(new.notification_id.to_string())
                .bind(body)
                .execute(&mut *transaction)
                .await
                .map_err(&failed)?;
            transaction.commit().await.map_err(&failed)?;
            Ok(Written::Created(new.notification_id))
        })
    }

    async fn take_due(
        &self,
        now: DateTime<Utc>,
        but_routes: &[String],
        limit: usize,
    ) -> Result<Vec<Work>, LedgerError> {
        let but_routes = serde_json::to_string(but_routes)?;
        let rows: Vec<WorkRow> = with!(self, |connection| {
            sqlx::query_as(
                "update notifications set leased = 1 where notification_id in (
                     select notification_id from notifications
                     where settled_at is null and leased = 0 and next_attempt_at <= ?1
                       and route not in (select value from json_each(?2))
                     order by next_attempt_at limit ?3)
                 returning notification_id, idempotency_key, traceparent,
                     (select body from messages m where m.notification_id = notifications.notification_id),
                     (select coalesce(max(attempt_number), 0) from delivery_attempts a
                      where a.notification_id = notifications.notification_id)",
            )
            .bind(iso(now))
            .bind(but_routes)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(connection)
            .await
            .map_err(to("take up what is due"))?
        });
        rows.into_iter()
            .map(|(notification, idempotency_key, traceparent, body, made)| {
                Ok(Work {
                    notification_id: id(&notification)?,
                    idempotency_key,
                    traceparent,
                    message: serde_json::from_str(&body)?,
                    attempts_made: u32::try_from(made).unwrap_or(u32::MAX),
                })
            })
            .collect()
    }

    async fn record(&self, attempt: &Attempt, next: Next) -> Result<(), LedgerError> {
        let (settled_at, next_attempt_at) = match next {
            Next::Settled => (Some(iso(attempt.ended_at)), None),
            Next::Retry(at) => (None, Some(iso(at))),
            Next::Parked => (None, None),
        };
        with!(self, |connection| {
            let failed = to("append an attempt");
            let mut transaction = connection.begin_with("begin immediate").await.map_err(&failed)?;
            // A repetition after a commit whose answer was lost must not fail on its own row.
            sqlx::query(
                "insert into delivery_attempts (attempt_id, notification_id, attempt_number, outcome, provider_code,
                    started_at, ended_at, policy_version)
                 values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (attempt_id) do nothing",
            )
            .bind(attempt.attempt_id.to_string())
            .bind(attempt.notification_id.to_string())
            .bind(attempt.attempt_number)
            .bind(attempt.outcome.word())
            .bind(&attempt.provider_code)
            .bind(iso(attempt.started_at))
            .bind(iso(attempt.ended_at))
            .bind(&attempt.policy_version)
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
            sqlx::query(
                "update notifications set settled_at = ?, next_attempt_at = ?, leased = 0 where notification_id = ?",
            )
            .bind(settled_at)
            .bind(next_attempt_at)
            .bind(attempt.notification_id.to_string())
            .execute(&mut *transaction)
            .await
            .map_err(&failed)?;
            transaction.commit().await.map_err(&failed)
        })
    }

    async fn release(&self) -> Result<(), LedgerError> {
        with!(self, |connection| {
            sqlx::query("update notifications set leased = 0 where leased = 1")
                .execute(connection)
                .await
                .map_err(to("release what was taken up"))?;
            Ok(())
        })
    }

    async fn revive(&self, at: DateTime<Utc>) -> Result<(), LedgerError> {
        with!(self, |connection| {
            sqlx::query(
                "update notifications set next_attempt_at = ?
                 where settled_at is null and leased = 0 and next_attempt_at is null",
            )
            .bind(iso(at))
            .execute(connection)
            .await
            .map_err(to("revive what is parked"))?;
            Ok(())
        })
    }

    async fn counts(&self) -> Result<LedgerCounts, LedgerError> {
        let (notifications, pending, attempts) = with!(self, |connection| {
            sqlx::query_as(
                "select (select count(*) from notifications),
                     (select count(*) from notifications where settled_at is null),
                     (select count(*) from delivery_attempts)",
            )
            .fetch_one(connection)
            .await
            .map_err(to("count its rows"))?
        });
        Ok(LedgerCounts { notifications, pending, attempts })
    }

    async fn bar_readers(&self, barred: bool) -> Result<(), LedgerError> {
        with!(self, |connection| {
            let barring = set_barred(connection, barred).await;
            if barring.is_err() && barred {
                // A reader held on for longer than we wait. The next write must not bar it after all.
                set_barred(connection, false).await?;
            }
            barring
        })
    }

    fn reader(&self) -> ReaderAddress {
        ReaderAddress::Sqlite(self.path.clone())
    }

    async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            // What can go wrong here is the closing of a file whose content is committed already.
            let _ = connection.close().await;
        }
    }
}
