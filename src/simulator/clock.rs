//! The clock whose times stand in the ledger.

use super::faults::Faults;
use chrono::{DateTime, Utc};
use std::sync::Arc;

/// The ledger's clock. It may be off; what is due when goes by the real one.
#[derive(Clone, Debug)]
pub struct LedgerClock(Arc<Faults>);

impl LedgerClock {
    /// A clock that is off by what the faults say.
    pub const fn new(faults: Arc<Faults>) -> Self {
        Self(faults)
    }

    /// The time as the ledger has it.
    pub fn now(&self) -> DateTime<Utc> {
        Utc::now() + self.0.skew()
    }
}
