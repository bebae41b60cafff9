//! What the loops share: the configuration in force, the store, and what each publishes.

use super::{
    active::Active,
    counters::Counters,
    evidence::Book,
    flow::FlowReport,
    loops::Loops,
    presence::Presence,
    sight::{Look, Reading, Sights, Turn},
    snapshot::{Configuration, Observer, SnapshotCell},
    unanswered::{Question, Unanswered},
};
use crate::{
    clock::{self, Skew},
    domain::{
        pending::PendingSnapshot,
        route::{Location, RouteName},
    },
    ledger::LedgerError,
    receipt::stats::ReceiverStats,
    store::{Pause, Store},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use chrono::{DateTime, Utc};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tokio::sync::Notify;

/// What the loops share.
pub struct Shared {
    /// The place of observation of this process.
    pub location: Location,
    /// This process, by a name that is new at each start.
    pub owner: String,
    /// The monitor's own durable state.
    pub store: Arc<dyn Store>,
    /// How far the store's clock was ahead of the system's at the last look, where it has one.
    pub store_skew: ArcSwapOption<Skew>,
    /// The configuration in force.
    pub active: ArcSwap<Active>,
    /// Pauses in force, as last read.
    pub pauses: ArcSwap<Vec<Pause>>,
    knows_pauses: AtomicBool,
    /// The progress of each loop.
    pub loops: Loops,
    /// Counters and histograms of what this process does.
    pub counters: Arc<Counters>,
    /// All that the outside may see.
    pub snapshot: Arc<SnapshotCell>,
    /// Whether the store could be used at the last look.
    pub store_up: AtomicBool,
    /// What is known of the configuration in force.
    pub configuration: ArcSwap<Configuration>,
    /// Since when this process could take arrivals without a break.
    pub presence: Presence,
    /// Wakes the follower: something arrived, or a submission ended.
    pub follow: Notify,
    evidence: Mutex<Book>,
    sights: Mutex<Sights>,
    /// Lookups that ledgers did not answer.
    pub unanswered: Unanswered,
    pending: Mutex<BTreeMap<String, Arc<PendingSnapshot>>>,
    pending_read_at: Mutex<BTreeMap<String, DateTime<Utc>>>,
    flows: Mutex<BTreeMap<String, FlowReport>>,
    receivers: Mutex<BTreeMap<String, Arc<ReceiverStats>>>,
    came: Mutex<BTreeMap<String, Instant>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held can leave no half-made state: every change is one insertion.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// What the loops share at the start.
    pub fn new(
        active: Active,
        owner: String,
        store: Arc<dyn Store>,
        counters: Arc<Counters>,
        loops: Loops,
        configuration: Configuration,
    ) -> Self {
        Self {
            location: active.location.clone(),
            owner,
            store,
            active: ArcSwap::from_pointee(active),
            pauses: ArcSwap::default(),
            knows_pauses: AtomicBool::new(false),
            loops,
            counters,
            snapshot: Arc::default(),
            store_up: AtomicBool::new(false),
            store_skew: ArcSwapOption::empty(),
            configuration: ArcSwap::from_pointee(configuration),
            presence: Presence::new(clock::now()),
            follow: Notify::new(),
            evidence: Mutex::default(),
            sights: Mutex::default(),
            unanswered: Unanswered::default(),
            pending: Mutex::default(),
            pending_read_at: Mutex::default(),
            flows: Mutex::default(),
            receivers: Mutex::default(),
            came: Mutex::default(),
        }
    }

    /// The evidence on all routes.
    pub fn evidence(&self) -> MutexGuard<'_, Book> {
        lock(&self.evidence)
    }

    /// Notes what came of a reading of an observer. A change is logged, once.
    pub fn observed(&self, observer: &Observer, reading: Reading, look: Look<'_>, now: DateTime<Utc>) {
        let turn = lock(&self.sights).note(observer, reading, look, now);
        let reading = reading.word();
        match (turn, look) {
            (Some(Turn::Up), _) => tracing::info!(event = "observer_up", %observer, reading),
            (Some(Turn::Down), Look::Failed { reason, .. }) => {
                tracing::warn!(event = "observer_down", %observer, reading, reason);
            }
            _ => {}
        }
    }

    /// A ledger answered a lookup. That it does not answer another one stays as it is.
    pub fn answered(&self, ledger: &str) {
        if self.unanswered.get(ledger).is_none() {
            let observer = Observer::Ledger(ledger.to_owned());
            self.observed(&observer, Reading::Lookup, Look::Good, clock::now());
        }
    }

    /// A ledger did not answer a lookup: it is asked again until it does.
    pub fn not_answered(&self, ledger: &str, question: Question, error: &LedgerError) {
        self.unanswered.keep(ledger, question);
        let observer = Observer::Ledger(ledger.to_owned());
        self.observed(&observer, Reading::Lookup, Look::of(error, &error.to_string()), clock::now());
    }

    /// Another configuration is in force: whether rows can be read by it is not known.
    pub fn renew_sights(&self) {
        lock(&self.sights).renew();
    }

    /// Forgets a reading of an observer that is not made any more.
    pub fn forget(&self, observer: &Observer, reading: Reading) {
        lock(&self.sights).forget(observer, reading);
    }

    /// What is known of all observers.
    pub fn sights(&self) -> Sights {
        lock(&self.sights).clone()
    }

    /// Takes the pauses that are in force.
    pub fn learn_pauses(&self, pauses: Vec<Pause>) {
        self.pauses.store(Arc::new(pauses));
        self.knows_pauses.store(true, Ordering::Release);
    }

    /// Whether the pauses were read since the start.
    pub fn knows_pauses(&self) -> bool {
        self.knows_pauses.load(Ordering::Acquire)
    }

    /// Publishes everybody's pending notifications of a ledger; nothing when it could not be read: a stale age is no age. When they were last
    /// read stays known.
    pub fn publish_pending(&self, ledger: &str, snapshot: Option<PendingSnapshot>) {
        if let Some(snapshot) = &snapshot {
            lock(&self.pending_read_at).insert(ledger.to_owned(), snapshot.as_of);
        }
        let mut pending = lock(&self.pending);
        match snapshot {
            Some(snapshot) => pending.insert(ledger.to_owned(), Arc::new(snapshot)),
            None => pending.remove(ledger),
        };
    }

    /// Everybody's pending notifications, by ledger.
    pub fn pending(&self) -> BTreeMap<String, Arc<PendingSnapshot>> {
        lock(&self.pending).clone()
    }

    /// As of when everybody's pending notifications of a ledger were last read well.
    pub fn pending_read_at(&self, ledger: &str) -> Option<DateTime<Utc>> {
        lock(&self.pending_read_at).get(ledger).copied()
    }

    /// What is known of the flow of a ledger.
    pub fn flow(&self, ledger: &str) -> FlowReport {
        lock(&self.flows).get(ledger).cloned().unwrap_or_default()
    }

    /// Changes what is known of the flow of a ledger.
    pub fn update_flow(&self, ledger: &str, change: impl FnOnce(&mut FlowReport)) {
        change(lock(&self.flows).entry(ledger.to_owned()).or_default());
    }

    /// Forgets the flows of ledgers that are followed no more.
    pub fn keep_flows(&self, is_followed: impl Fn(&str) -> bool) {
        lock(&self.flows).retain(|ledger, _| is_followed(ledger));
    }

    /// A message to ourselves came to this receiver just now, by its own way. That it could be written down is another matter.
    pub fn message_came(&self, receiver: &str) {
        lock(&self.came).insert(receiver.to_owned(), Instant::now());
    }

    /// Whether a message to ourselves came to this receiver at this moment or after it.
    pub fn message_came_since(&self, receiver: &str, moment: Instant) -> bool {
        lock(&self.came).get(receiver).is_some_and(|came| *came >= moment)
    }

    /// Counts what becomes of a receiver's requests from now on.
    pub fn watch_receiver(&self, name: &str, stats: Arc<ReceiverStats>) {
        lock(&self.receivers).insert(name.to_owned(), stats);
    }

    /// What became of the receivers' requests.
    pub fn receivers(&self) -> BTreeMap<String, Arc<ReceiverStats>> {
        lock(&self.receivers).clone()
    }

    /// The pause in force on a route.
    pub fn paused(&self, route: &RouteName, now: DateTime<Utc>) -> Option<Pause> {
        let covers = |p: &&Pause| now < p.until && p.route.as_ref().is_none_or(|r| r == route);
        self.pauses.load().iter().find(covers).cloned()
    }
}
