//! The service's own ledger: what was accepted, and every attempt to deliver it. Attempts are only ever appended.

mod postgres;
mod sqlite;

use super::{
    gate::GateError,
    message::Message,
    options::{LedgerOptions, SimulatorOptions},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::{fmt, path::PathBuf, sync::Arc};
use uuid::Uuid;

/// What came of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The provider took it.
    Delivered,
    /// It will be tried again.
    Retryable,
    /// It will never be taken.
    PermanentRejection,
    /// Policy kept it back.
    Suppressed,
    /// Nobody knows.
    Unknown,
}

impl Outcome {
    /// Its word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retryable => "retryable",
            Self::PermanentRejection => "permanent_rejection",
            Self::Suppressed => "suppressed",
            Self::Unknown => "unknown",
        }
    }

    /// Whether no attempt follows it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Delivered | Self::PermanentRejection | Self::Suppressed)
    }
}

/// A notification that is to be written.
#[derive(Clone, Debug)]
pub struct NewNotification {
    /// Its id, a UUIDv7.
    pub notification_id: Uuid,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// What makes two submissions the same.
    pub digest: String,
    /// What is to be delivered.
    pub message: Message,
    /// The trace that it belongs to.
    pub traceparent: Option<String>,
    /// When it was accepted, on the ledger's clock.
    pub accepted_at: DateTime<Utc>,
    /// Not before this time.
    pub not_before: Option<DateTime<Utc>>,
    /// When the first attempt may be made, on the real clock.
    pub first_attempt_at: DateTime<Utc>,
    /// The policy version at acceptance.
    pub policy_version: String,
}

/// What became of a notification that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is new.
    Created(Uuid),
    /// The key was there with the same content: this is its notification.
    Replayed(Uuid),
    /// The key was there with other content.
    Conflict,
}

/// A notification that is due, taken up by a worker.
#[derive(Clone, Debug)]
pub struct Work {
    /// Its id.
    pub notification_id: Uuid,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// The trace that it belongs to.
    pub traceparent: Option<String>,
    /// What is to be delivered.
    pub message: Message,
    /// Attempts that were made so far.
    pub attempts_made: u32,
}

/// One attempt, after it has ended.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id, a UUIDv7 from its start.
    pub attempt_id: Uuid,
    /// Its notification.
    pub notification_id: Uuid,
    /// From 1.
    pub attempt_number: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// The provider's own code.
    pub provider_code: String,
    /// When it started, on the ledger's clock.
    pub started_at: DateTime<Utc>,
    /// When it ended, on the ledger's clock.
    pub ended_at: DateTime<Utc>,
    /// The policy version under which it was made.
    pub policy_version: String,
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the outcome is terminal.
    Settled,
    /// Another attempt, at this time of the real clock.
    Retry(DateTime<Utc>),
    /// Nothing, and it stays pending: attempts are used up and nobody knows.
    Parked,
}

/// Sums over the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LedgerCounts {
    /// Notifications.
    pub notifications: i64,
    /// Notifications that are not settled.
    pub pending: i64,
    /// Attempts.
    pub attempts: i64,
}

/// How readers reach the ledger.
#[derive(Clone, PartialEq, Eq)]
pub enum ReaderAddress {
    /// By this file.
    Sqlite(PathBuf),
    /// By this URL, which leads through the proxy.
    Postgres(String),
}

impl fmt::Debug for ReaderAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            // The URL may hold a password.
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// A ledger that the service writes.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Writes a notification durably, once for each key.
    async fn accept(&self, new: &NewNotification) -> Result<Written, LedgerError>;

    /// Takes up at most `limit` notifications that are due at `now`, none of these routes.
    async fn take_due(
        &self,
        now: DateTime<Utc>,
        but_routes: &[String],
        limit: usize,
    ) -> Result<Vec<Work>, LedgerError>;

    /// Appends an attempt, and what follows it, in one transaction.
    async fn record(&self, attempt: &Attempt, next: Next) -> Result<(), LedgerError>;

    /// Gives back what was taken up and never recorded. Only before workers run.
    async fn release(&self) -> Result<(), LedgerError>;

    /// Makes what is parked due at this time.
    async fn revive(&self, at: DateTime<Utc>) -> Result<(), LedgerError>;

    /// Sums.
    async fn counts(&self) -> Result<LedgerCounts, LedgerError>;

    /// Bars readers, or lets them in again.
    async fn bar_readers(&self, barred: bool) -> Result<(), LedgerError>;

    /// How readers reach it.
    fn reader(&self) -> ReaderAddress;

    /// Closes it.
    async fn close(&self);
}

/// Why the ledger could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database said no.
    #[error("the simulator's ledger can't {what}: {source}")]
    Database {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        source: sqlx::Error,
    },
    /// What was read is not what was written.
    #[error("the simulator's ledger holds a message that can't be read: {0}")]
    Message(#[from] serde_json::Error),
    /// The URL is no use.
    #[error("the ledger's URL must be postgres://user@host:port/database, with a TCP host: {0}")]
    Url(String),
    /// The proxy for readers.
    #[error(transparent)]
    Proxy(#[from] GateError),
}

/// Names what was to be done when the database said no.
fn to(what: &'static str) -> impl Fn(sqlx::Error) -> LedgerError {
    move |source| LedgerError::Database { what, source }
}

/// Opens the ledger that the options name.
pub async fn open(options: &SimulatorOptions) -> Result<Arc<dyn Ledger>, LedgerError> {
    Ok(match &options.ledger {
        LedgerOptions::Sqlite(path) => Arc::new(sqlite::SqliteLedger::open(path).await?),
        LedgerOptions::Postgres(url) => Arc::new(postgres::PostgresLedger::open(url, options).await?),
    })
}
