//! How the target's attempt ledger is read: never written, never held, never more than asked for.

use crate::domain::{
    evidence::LedgerRow,
    route::{IdempotencyKey, NotificationId},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};

/// What a lookup gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The time of the reading on our clock, less the ledger's known lag: absence is proven as of then.
    pub as_of: DateTime<Utc>,
    /// A row for each notification found.
    pub found: Vec<Found>,
}

/// A notification that a lookup found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its id.
    pub notification_id: NotificationId,
    /// Its idempotency key, where the ledger has it.
    pub key: Option<IdempotencyKey>,
    /// What the ledger says of it.
    pub row: LedgerRow,
}

/// A ledger that can be asked for canaries.
#[async_trait]
pub trait LedgerReader: Send + Sync {
    /// Looks up these notifications and keys, in one reading. Both lists together are at most 500 long.
    ///
    /// # Errors
    /// When the ledger can't be read: it is then unobserved.
    async fn lookup(&self, ids: &[NotificationId], keys: &[IdempotencyKey]) -> Result<Lookup, LedgerError>;
}

/// Why a ledger could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// No connection.
    #[error("the ledger can't be reached: {0}")]
    Unreachable(String),
    /// The statement failed or ran into its limit.
    #[error("the ledger's {query} query failed: {reason}")]
    Query {
        /// Which query.
        query: &'static str,
        /// Why.
        reason: String,
    },
    /// The result is not as configured.
    #[error("the ledger's {query} query gives a result that does not fit its configuration: {reason}")]
    Shape {
        /// Which query.
        query: &'static str,
        /// What does not fit, and what to do.
        reason: String,
    },
}
