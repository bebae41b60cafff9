//! What the monitor publishes of its own health: that its loops progress, how far its start has come, whether its store works.
//!
//! All times are monotonic. Nothing here waits for anything but a lock that is held for a few instructions.

use super::steady::{Answer, Patience, Steady};
use arc_swap::ArcSwap;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A step of the start, done by whoever does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartStep {
    /// The configuration is valid.
    Configuration,
    /// Every listener is bound.
    Listeners,
    /// An embedded store is open. With a remote store this is done at once: its outage must not become a crash loop.
    EmbeddedStore,
    /// Every loop is registered.
    Loops,
}

impl StartStep {
    /// All steps.
    pub const ALL: [Self; 4] = [Self::Configuration, Self::Listeners, Self::EmbeddedStore, Self::Loops];

    /// The word for it in the probe's answer.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Listeners => "listeners",
            Self::EmbeddedStore => "embedded_store",
            Self::Loops => "loops",
        }
    }
}

/// The progress of one loop.
#[derive(Debug)]
struct LoopProgress {
    name: &'static str,
    budget: Duration,
    beats: AtomicU64,
    /// Milliseconds since the beginning at which the newest iteration ended, or the loop was registered.
    newest_ms: AtomicU64,
}

/// With this a loop says that an iteration has ended, also one that ended in an error.
#[derive(Clone, Debug)]
pub struct LoopHandle {
    progress: Arc<LoopProgress>,
    beginning: Instant,
}

impl LoopHandle {
    /// An iteration has ended.
    pub fn beat(&self) {
        self.progress.newest_ms.fetch_max(millis(self.beginning.elapsed()), Ordering::Relaxed);
        self.progress.beats.fetch_add(1, Ordering::Release);
    }
}

/// What is known of one loop at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopReading {
    /// Its name.
    pub name: &'static str,
    /// Within which an iteration must end.
    pub budget: Duration,
    /// How long ago the newest iteration ended, or the loop was registered.
    pub age: Duration,
    /// Whether any iteration has ended.
    pub has_run: bool,
}

impl LoopReading {
    /// Whether it has made no progress within its budget.
    pub fn is_stalled(&self) -> bool {
        self.age > self.budget
    }
}

/// All that is known at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The steps of the start that are not done.
    pub missing_steps: Vec<StartStep>,
    /// The loops.
    pub loops: Vec<LoopReading>,
    /// Whether the store works.
    pub store: Answer,
    /// Whether the process is stopping.
    pub stopping: bool,
}

/// The process's own progress. Cheap to share; every method is for any thread.
#[derive(Debug)]
pub struct Progress {
    beginning: Instant,
    steps: [AtomicBool; StartStep::ALL.len()],
    loops: ArcSwap<Vec<Arc<LoopProgress>>>,
    store: Mutex<Steady>,
    stopping: AtomicBool,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new(Patience::default())
    }
}

impl Progress {
    /// Nothing done, no loops, nothing known of the store.
    pub fn new(patience: Patience) -> Self {
        Self {
            beginning: Instant::now(),
            steps: Default::default(),
            loops: ArcSwap::default(),
            store: Mutex::new(Steady::new(patience)),
            stopping: AtomicBool::new(false),
        }
    }

    /// A step of the start is done.
    pub fn step_done(&self, step: StartStep) {
        self.steps[step as usize].store(true, Ordering::Release);
    }

    /// Registers a loop that must end an iteration within `budget`, again and again. From now on its budget runs.
    ///
    /// Every wait inside the loop has a limit below the budget.
    pub fn register(&self, name: &'static str, budget: Duration) -> LoopHandle {
        let progress = Arc::new(LoopProgress {
            name,
            budget,
            beats: AtomicU64::new(0),
            newest_ms: AtomicU64::new(millis(self.beginning.elapsed())),
        });
        self.loops.rcu(|known| known.iter().chain([&progress]).cloned().collect::<Vec<_>>());
        LoopHandle { progress, beginning: self.beginning }
    }

    /// The store was tried, and could be used or not.
    pub fn store_tried(&self, works: bool) {
        // A panic while it was held leaves it whole: there is nothing half done in it.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.report(self.beginning.elapsed(), works);
    }

    /// The process is stopping: nothing more is to be sent to it.
    pub fn stopping(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// All that is known now.
    pub fn read(&self) -> Reading {
        let loops = self.loops.load();
        let loops = loops.iter().map(|progress| {
            let has_run = progress.beats.load(Ordering::Acquire) > 0;
            let newest = Duration::from_millis(progress.newest_ms.load(Ordering::Relaxed));
            LoopReading {
                name: progress.name,
                budget: progress.budget,
                age: self.beginning.elapsed().saturating_sub(newest),
                has_run,
            }
        });
        let store = {
            let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            store.answer(self.beginning.elapsed())
        };
        let is_missing = |step: &StartStep| !self.steps[*step as usize].load(Ordering::Acquire);
        Reading {
            missing_steps: StartStep::ALL.into_iter().filter(is_missing).collect(),
            loops: loops.collect(),
            store,
            stopping: self.stopping.load(Ordering::Acquire),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
