//! What this process has done since it started, as counts that begin at 0.
//!
//! A handle is looked up each time it is used: at a reload the routes that went take their counts with them.

use crate::{
    catalog::{
        bounds::{READ_BOUNDS_SECONDS, stage_bounds},
        labels::{GuardReason, ReceiptResult, Stage, SubmissionLabel},
    },
    domain::route::RouteName,
};
use arc_swap::ArcSwap;
use chrono::TimeDelta;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A count that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn inc(&self) {
        self.add(1);
    }

    /// So many more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Rises to a total that is counted elsewhere. It never falls.
    pub fn raise_to(&self, total: u64) {
        self.0.fetch_max(total, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A count that follows a total which is counted elsewhere, and which begins at 0 again with each reload.
#[derive(Debug, Default)]
pub struct Following {
    count: Counter,
    total: AtomicU64,
}

impl Following {
    /// Takes what came since the total was last seen. One that is below what it was began anew.
    pub fn follow(&self, total: u64) {
        let before = self.total.swap(total, Ordering::Relaxed);
        self.count.add(total.checked_sub(before).unwrap_or(total));
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.count.get()
    }
}

/// A histogram of durations.
#[derive(Debug)]
pub struct Histogram {
    bounds: Vec<f64>,
    /// One a bound, and one beyond all bounds; not cumulated.
    buckets: Vec<Counter>,
    sum_micros: Counter,
}

/// What a histogram holds at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The finite upper bounds, in seconds, rising.
    pub bounds: Vec<f64>,
    /// How many fall in each bucket, not cumulated; the last is beyond all bounds.
    pub buckets: Vec<u64>,
    /// The sum, in seconds.
    pub sum: f64,
}

impl Histogram {
    /// An empty histogram of these finite upper bounds, in seconds, rising.
    pub fn new(bounds: &[f64]) -> Self {
        Self {
            bounds: bounds.to_vec(),
            buckets: (0..=bounds.len()).map(|_| Counter::default()).collect(),
            sum_micros: Counter::default(),
        }
    }

    /// Counts one duration.
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let place = self.bounds.partition_point(|bound| *bound < seconds);
        self.buckets[place].inc();
        self.sum_micros.add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// What it holds.
    pub fn read(&self) -> Distribution {
        Distribution {
            bounds: self.bounds.clone(),
            buckets: self.buckets.iter().map(Counter::get).collect(),
            sum: Duration::from_micros(self.sum_micros.get()).as_secs_f64(),
        }
    }
}

/// The counts of one route.
#[derive(Debug)]
pub struct RouteCounters {
    deadline: Duration,
    submissions: [Counter; SubmissionLabel::ALL.len()],
    guard_refusals: [Counter; GuardReason::ALL.len()],
    stages: [Histogram; Stage::ALL.len()],
    /// Slots that were not sent in time.
    pub missed_slots: Counter,
}

impl RouteCounters {
    fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            submissions: Default::default(),
            guard_refusals: Default::default(),
            stages: std::array::from_fn(|_| Histogram::new(&stage_bounds(deadline))),
            missed_slots: Counter::default(),
        }
    }

    /// Submissions that came to this.
    pub const fn submissions(&self, result: SubmissionLabel) -> &Counter {
        &self.submissions[result as usize]
    }

    /// Requests that the guard stopped for this.
    pub const fn guard_refusals(&self, reason: GuardReason) -> &Counter {
        &self.guard_refusals[reason as usize]
    }

    /// Durations of this stage.
    pub const fn stage(&self, stage: Stage) -> &Histogram {
        &self.stages[stage as usize]
    }
}

/// The counts of one ledger.
#[derive(Debug)]
pub struct LedgerCounters {
    /// How long readings took, failed ones included.
    pub read_seconds: Histogram,
    /// Rows read.
    pub rows_read: Following,
    /// Rows whose status isn't in the status table.
    pub unmapped_statuses: Following,
    /// Times that were refused.
    pub refused_times: Following,
}

impl Default for LedgerCounters {
    fn default() -> Self {
        Self {
            read_seconds: Histogram::new(&READ_BOUNDS_SECONDS),
            rows_read: Following::default(),
            unmapped_statuses: Following::default(),
            refused_times: Following::default(),
        }
    }
}

/// The counts of one receiver.
#[derive(Debug, Default)]
pub struct ReceiverCounters([Counter; ReceiptResult::ALL.len()]);

impl ReceiverCounters {
    /// Requests that came to this.
    pub const fn results(&self, result: ReceiptResult) -> &Counter {
        &self.0[result as usize]
    }
}

/// Whatever is configured, by name.
pub type Named<K, V> = Arc<BTreeMap<K, Arc<V>>>;

/// All counts of the process.
#[derive(Debug, Default)]
pub struct Counters {
    routes: ArcSwap<BTreeMap<RouteName, Arc<RouteCounters>>>,
    ledgers: ArcSwap<BTreeMap<String, Arc<LedgerCounters>>>,
    receivers: ArcSwap<BTreeMap<String, Arc<ReceiverCounters>>>,
    negative_stages: [Counter; Stage::ALL.len()],
}

impl Counters {
    /// Starts counts at 0 for what is newly configured, keeps those of what stays, and drops those of what went.
    /// A route whose deadline changed starts again, for its bounds changed with it. One caller at a time.
    pub fn configure(
        &self,
        routes: impl IntoIterator<Item = (RouteName, Duration)>,
        ledgers: impl IntoIterator<Item = String>,
        receivers: impl IntoIterator<Item = String>,
    ) {
        let known = self.routes.load();
        let kept = |name: &RouteName, deadline: Duration| {
            known.get(name).filter(|counters| counters.deadline == deadline).cloned()
        };
        let next = routes.into_iter().map(|(name, deadline)| {
            let counters = kept(&name, deadline).unwrap_or_else(|| Arc::new(RouteCounters::new(deadline)));
            (name, counters)
        });
        self.routes.store(Arc::new(next.collect()));
        keep(&self.ledgers, ledgers);
        keep(&self.receivers, receivers);
    }

    /// The counts of a configured route.
    pub fn route(&self, name: &RouteName) -> Option<Arc<RouteCounters>> {
        self.routes.load().get(name).cloned()
    }

    /// The counts of a configured ledger.
    pub fn ledger(&self, name: &str) -> Option<Arc<LedgerCounters>> {
        self.ledgers.load().get(name).cloned()
    }

    /// The counts of a configured receiver.
    pub fn receiver(&self, name: &str) -> Option<Arc<ReceiverCounters>> {
        self.receivers.load().get(name).cloned()
    }

    /// Counts the duration of a stage of a canary that arrived. A negative one says that two clocks disagree: it enters no
    /// histogram, and is counted as that.
    pub fn observe_stage(&self, route: &RouteName, stage: Stage, duration: TimeDelta) {
        match duration.to_std() {
            Ok(duration) => {
                if let Some(counters) = self.route(route) {
                    counters.stage(stage).observe(duration);
                }
            }
            Err(_) => self.negative_stages[stage as usize].inc(),
        }
    }

    /// Durations of this stage that came out negative.
    pub const fn negative_stages(&self, stage: Stage) -> &Counter {
        &self.negative_stages[stage as usize]
    }

    /// All configured routes.
    pub fn routes(&self) -> Named<RouteName, RouteCounters> {
        self.routes.load_full()
    }

    /// All configured ledgers.
    pub fn ledgers(&self) -> Named<String, LedgerCounters> {
        self.ledgers.load_full()
    }

    /// All configured receivers.
    pub fn receivers(&self) -> Named<String, ReceiverCounters> {
        self.receivers.load_full()
    }
}

fn keep<V: Default>(held: &ArcSwap<BTreeMap<String, Arc<V>>>, names: impl IntoIterator<Item = String>) {
    let known = held.load();
    let next = names.into_iter().map(|name| {
        let value = known.get(&name).cloned().unwrap_or_default();
        (name, value)
    });
    held.store(Arc::new(next.collect()));
}
