//! Why a pass over a ledger can't be made.

use crate::{domain::flow::follow::TooMany, ledger::LedgerError, store::StoreError};
use std::time::Duration;

/// Why a pass could not be made. What was written before it is still good: the follower is made anew from that.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What is new could be read, and what is looked up again could not.
    #[error(transparent)]
    Reread(LedgerError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// More is pending than may be held.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// What was kept can't be understood.
    #[error("what the store keeps of the ledger's follower can't be read: {0}")]
    Kept(String),
    /// It was saved anew, each time that it was read.
    #[error(
        "what the store keeps of the ledger's follower was saved anew each time that it was read: try again"
    )]
    Moving,
    /// Another process took the lead: what this one remembers is out of date.
    #[error(
        "another process follows it by now: what this pass read is not written, and the ledger is left to that process"
    )]
    Lost,
    /// It did not come to its end.
    #[error("it did not come to its end within {0:?}")]
    TooLong(Duration),
}

impl PassError {
    /// Whether the ledger could not be read to the end of a pass: another process may be able to.
    pub const fn is_of_reading(&self) -> bool {
        matches!(self, Self::Ledger(_) | Self::Reread(_) | Self::TooLong(_))
    }
}
