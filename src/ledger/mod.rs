//! How the target's attempt ledger is read: never written, never held, never more than asked for.
//!
//! The user's own SQL is sent as it is, with bound parameters ([`sql`]). Its rows become values that no longer know their
//! database (`cell`), and are then joined by pure code (`lookup`, `backlog`). [`LedgerAdapter`] ties both together.

mod adapter;
mod backlog;
mod binds;
mod bounds;
mod cell;
pub mod check;
pub mod elsewhere;
mod error;
pub mod flow;
pub mod grants;
pub mod init;
mod lookup;
mod mysql;
mod notes;
mod position;
mod postgres;
mod said;
pub mod sql;
mod sqlite;
mod stats;
mod time;
mod uses;
mod wanted;
mod words;

pub use adapter::{LedgerAdapter, open};
pub use bounds::Repeated;
pub use elsewhere::{Elsewhere, ElsewhereError};
pub use error::LedgerError;
pub use flow::FlowReader;
pub use position::{NoPosition, Position};
pub use stats::{LedgerFigures, LedgerStats};

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

/// By what a ledger can be asked. Absence is proven only of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindsBy {
    /// Notification ids.
    pub ids: bool,
    /// Idempotency keys.
    pub keys: bool,
}

/// A ledger that can be asked for canaries.
#[async_trait]
pub trait LedgerReader: Send + Sync {
    /// Looks up these notifications and keys, in one reading.
    ///
    /// # Errors
    /// When the ledger can't be read: it is then unobserved.
    async fn lookup(&self, ids: &[NotificationId], keys: &[IdempotencyKey]) -> Result<Lookup, LedgerError>;

    /// By what it can be asked.
    fn finds_by(&self) -> FindsBy {
        FindsBy { ids: true, keys: true }
    }
}
