//! What is known of a ledger from reading it.

use chrono::TimeDelta;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// What is known of a ledger, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerFigures {
    /// Readings that gave a result, since the start.
    pub reads: u64,
    /// Readings that gave none.
    pub failures: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Time spent on readings, failed ones included.
    pub read_time: Duration,
    /// How long the newest one took.
    pub last_read_time: Duration,
    /// Statuses that are not in the table, as often as they were read.
    pub unmapped_statuses: u64,
    /// Times that were missing or absurd, as often as they were read.
    pub refused_times: u64,
    /// The kind of the newest failure ([`LedgerError::word`](super::LedgerError::word)); nothing once a reading succeeded.
    pub last_error: Option<&'static str>,
    /// The database's clock less ours, as last measured.
    pub skew: Option<TimeDelta>,
    /// How far a replica was behind, as last measured; zero where it is none.
    pub lag: Option<Duration>,
    /// Whether the role could write; nothing before it was checked.
    pub role_can_write: Option<bool>,
}

/// Counts of one ledger, shared with whoever shows them.
#[derive(Debug, Default)]
pub struct LedgerStats(Mutex<LedgerFigures>);

impl LedgerStats {
    /// All figures, as of one moment.
    pub fn figures(&self) -> LedgerFigures {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the figures together. No change can leave them half done, so a poisoned lock is still good.
    pub(super) fn update(&self, change: impl FnOnce(&mut LedgerFigures)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
