//! Each loop's handle on the process's progress, and when it last succeeded.

use super::progress::{LoopHandle, Progress};
use crate::catalog::labels::LoopName;
use chrono::{DateTime, Utc};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// No time: no success yet.
const NEVER: i64 = i64::MIN;

/// How long an iteration of a loop may take, its wait included, before the loop counts as dead. Every wait in a loop has
/// a limit below it.
pub const fn budget(name: LoopName) -> Duration {
    Duration::from_secs(match name {
        LoopName::Scheduler | LoopName::Publisher | LoopName::StoreWatcher => 30,
        LoopName::Submitter | LoopName::Settler | LoopName::Evidence | LoopName::Prover => 60,
        LoopName::LedgerWatcher | LoopName::LedgerFollower | LoopName::Reloader | LoopName::Janitor => 120,
    })
}

/// The loops of a process.
pub struct Loops {
    progress: Arc<Progress>,
    handles: [LoopHandle; LoopName::ALL.len()],
    successes_ms: [AtomicI64; LoopName::ALL.len()],
}

impl Loops {
    /// Registers every loop: from now on its budget runs.
    pub fn register(progress: Arc<Progress>) -> Self {
        let handles = LoopName::ALL.map(|name| progress.register(name.word(), budget(name)));
        Self { progress, handles, successes_ms: std::array::from_fn(|_| AtomicI64::new(NEVER)) }
    }

    /// An iteration ended. One that ended in an error is progress, and no success.
    pub fn ended(&self, name: LoopName, success: bool, now: DateTime<Utc>) {
        self.handles[name as usize].beat();
        if success {
            self.successes_ms[name as usize].store(now.timestamp_millis(), Ordering::Relaxed);
        }
    }

    /// When an iteration last succeeded.
    pub fn last_success(&self, name: LoopName) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.successes_ms[name as usize].load(Ordering::Relaxed))
    }

    /// The store was tried, and could be used or not.
    pub fn store_tried(&self, works: bool) {
        self.progress.store_tried(works);
    }
}
