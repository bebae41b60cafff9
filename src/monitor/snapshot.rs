//! All that the outside may see of the monitor's knowledge: plain data, made anew and published whole.

use super::{
    evidence::Unmeasured,
    flow::{FlowReport, RouteFlow},
};
use crate::{
    alerts::eligibility::class_of,
    catalog::{
        bounds::CANARY_WINDOWS,
        labels::{LoopName, OTHER_ROUTE, VolumeClass, Window},
    },
    config::{self, Config, alerts::Alerts},
    domain::{
        disagreement::Disagreement,
        failure_evidence::Stream,
        following::Stopped,
        pending::{PendingSnapshot, RoutePending},
        route::{Channel, Location, RouteName},
        verdict::{Class, Verdict},
    },
    store::AuditSums,
};
use arc_swap::ArcSwap;
use chrono::{DateTime, TimeDelta, Utc};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// Where the newest snapshot is. Readers never wait, and never see half of one.
#[derive(Debug, Default)]
pub struct SnapshotCell(ArcSwap<Snapshot>);

impl SnapshotCell {
    /// A cell with a first snapshot: all that is known before the first look.
    pub fn new(first: Snapshot) -> Self {
        Self(ArcSwap::from_pointee(first))
    }

    /// Puts a new snapshot in the place of the one before.
    pub fn publish(&self, snapshot: Snapshot) {
        self.0.store(Arc::new(snapshot));
    }

    /// The newest snapshot.
    pub fn load(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }
}

/// What the monitor knows at one moment. The default is a monitor that knows nothing and has no routes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// When it was made.
    pub taken_at: Option<DateTime<Utc>>,
    /// This process's place of observation.
    pub location: Option<Location>,
    /// The configured routes, each of them.
    pub routes: BTreeMap<RouteName, RouteSnapshot>,
    /// The configured ledgers, by name, each of them.
    pub ledgers: BTreeMap<String, LedgerSnapshot>,
    /// Whether the store can be used.
    pub store_up: bool,
    /// Every configured observer, and whether it can look.
    pub observers: BTreeMap<Observer, bool>,
    /// When an iteration of each loop last ended without an error.
    pub loops: BTreeMap<LoopName, DateTime<Utc>>,
    /// How far other clocks are ahead of ours, where it was measured.
    pub clock_skew: BTreeMap<Clock, TimeDelta>,
    /// What is known of the configuration in force.
    pub configuration: Configuration,
}

/// What is known of the configuration in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Its hash.
    pub hash: u64,
    /// Whether the newest one was taken.
    pub last_reload_successful: bool,
    /// When one was last taken.
    pub last_reload_success: Option<DateTime<Utc>>,
}

/// Something that looks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Observer {
    /// The ledger of this name.
    Ledger(String),
    /// The receiver of this name.
    Receiver(String),
}

impl fmt::Display for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger(name) => write!(f, "ledger/{name}"),
            Self::Receiver(name) => write!(f, "receiver/{name}"),
        }
    }
}

/// A clock that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// The store's.
    Store,
    /// That of the ledger of this name.
    Ledger(String),
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store => f.write_str("store"),
            Self::Ledger(name) => write!(f, "ledger/{name}"),
        }
    }
}

/// What is known of one route at this location.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSnapshot {
    /// What is configured.
    pub facts: RouteFacts,
    /// Whether sending is paused.
    pub paused: bool,
    /// Whether planned work mutes its pages.
    pub maintenance: bool,
    /// When the newest canary was submitted.
    pub newest_submission: Option<DateTime<Utc>>,
    /// The slot since which none was submitted, though it was due a good while ago.
    pub overdue_slot: Option<DateTime<Utc>>,
    /// When the newest canary arrived whole.
    pub newest_arrival: Option<DateTime<Utc>>,
    /// Whether the evidence was read from the store since the start.
    pub is_folded: bool,
    /// Evidence on: does it arrive?
    pub arrives: Stream,
    /// Evidence on: does it arrive in time?
    pub in_time: Stream,
    /// Where the newest failure stopped.
    pub stopped_at: Option<Stopped>,
    /// The canaries in a row, up to the newest, that say nothing, where they are enough to be told.
    pub unmeasured: Option<Unmeasured>,
    /// Sums over each exported window, by class. What is missing is 0.
    pub windows: BTreeMap<Window, BTreeMap<Class, u64>>,
    /// Sums over the last day, by verdict. What is missing is 0.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Sums of the control arms over the last hour, by arm and class, good or bad. What is missing is 0.
    pub controls: BTreeMap<(&'static str, Class), u64>,
    /// Sums over the last day, by kind of contradiction. What is missing is 0.
    pub disagreements: BTreeMap<Disagreement, u64>,
    /// Canaries without a verdict.
    pub in_flight: u64,
    /// The oldest slot among them.
    pub oldest_in_flight: Option<DateTime<Utc>>,
}

/// What is configured of a route, as far as the outside may see it.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFacts {
    /// The channel.
    pub channel: Channel,
    /// The provider behind it.
    pub provider: Option<String>,
    /// How long after acceptance a notification must have arrived.
    pub deadline: Duration,
    /// The share that must, between 0 and 1.
    pub objective: f64,
    /// The time between two scheduled canaries.
    pub interval: Duration,
    /// How much goes over it, as far as the configuration says.
    pub volume_class: VolumeClass,
}

/// What the newest good reading of a ledger gave, and what is known of the ledger itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerSnapshot {
    /// What the newest reading of the pending gave; nothing where it failed.
    pub pending: Option<PendingSnapshot>,
    /// As of when the pending were last read well. It stays when a later reading fails.
    pub pending_read_at: Option<DateTime<Utc>>,
    /// What is known of its flow, where it is followed.
    pub flow: FlowReport,
    /// Whether the role could write.
    pub role_can_write: Option<bool>,
    /// How far its replica is behind.
    pub lag: Option<Duration>,
    /// What the audit of its history came to over the last day, canaries among it.
    pub history: AuditSums,
    /// How many of the violations among them were found in the sample, and not on canaries.
    pub violations_in_sample: u64,
}

/// Joins what two ledgers have pending under one name.
fn join(mine: &mut RoutePending, theirs: &RoutePending) {
    mine.scheduled += theirs.scheduled;
    mine.unattempted += theirs.unattempted;
    mine.retrying += theirs.retrying;
    mine.unknown += theirs.unknown;
    mine.refused_times += theirs.refused_times;
    mine.ages.iter_mut().zip(theirs.ages).for_each(|(mine, theirs)| *mine += theirs);
    mine.age_sum_seconds += theirs.age_sum_seconds;
    mine.over_deadline = mine.over_deadline.into_iter().chain(theirs.over_deadline).reduce(|a, b| a + b);
    let earlier = |a: Option<DateTime<Utc>>, b: Option<DateTime<Utc>>| a.into_iter().chain(b).min();
    mine.oldest_due = earlier(mine.oldest_due, theirs.oldest_due);
    mine.oldest_unknown = earlier(mine.oldest_unknown, theirs.oldest_unknown);
}

impl RouteFacts {
    /// The facts of a configured route, whose schedule has this interval. `alerts` knows how much goes over it.
    pub fn of(route: &config::model::Route, interval: Duration, alerts: Option<&Alerts>) -> Self {
        Self {
            channel: route.channel,
            provider: route.provider.clone(),
            deadline: route.deadline.get(),
            // Through whole millionths of a per cent: 99.9 / 100 alone is 0.9990000000000001, which no rule would equal.
            objective: (route.objective_percent * 1e6).round() / 1e8,
            interval,
            volume_class: class_of(route, alerts),
        }
    }
}

impl RouteSnapshot {
    /// A route of which only the configuration is known.
    pub fn new(facts: RouteFacts) -> Self {
        Self {
            facts,
            paused: false,
            maintenance: false,
            newest_submission: None,
            overdue_slot: None,
            newest_arrival: None,
            is_folded: false,
            arrives: Stream::default(),
            in_time: Stream::default(),
            stopped_at: None,
            unmeasured: None,
            windows: CANARY_WINDOWS.iter().map(|w| (*w, BTreeMap::new())).collect(),
            verdicts: BTreeMap::new(),
            controls: BTreeMap::new(),
            disagreements: BTreeMap::new(),
            in_flight: 0,
            oldest_in_flight: None,
        }
    }
}

impl Snapshot {
    /// The first snapshot: what a configuration says, and nothing observed. `interval` gives the time between two canaries of a route.
    pub fn of_configuration(
        config: &Config,
        configuration: Configuration,
        interval: impl Fn(&config::model::Route) -> Duration,
    ) -> Self {
        let routes = config.routes.iter().map(|route| {
            let facts = RouteFacts::of(route, interval(route), config.alerts.as_ref());
            (route.full_name(), RouteSnapshot::new(facts))
        });
        let ledgers = config.ledgers.keys().cloned().map(Observer::Ledger);
        let receivers = config.receivers.keys().cloned().map(Observer::Receiver);
        Self {
            location: Some(Location::from_text(&config.location)),
            routes: routes.collect(),
            ledgers: config.ledgers.keys().map(|n| (n.clone(), LedgerSnapshot::default())).collect(),
            observers: ledgers.chain(receivers).map(|observer| (observer, false)).collect(),
            configuration,
            ..Self::default()
        }
    }

    /// What real traffic came to by the label of its route, over all ledgers that are followed. A route without figures, or that is no
    /// longer configured, is not there: absent, not zero.
    pub fn flows(&self) -> BTreeMap<&str, RouteFlow> {
        let mut joined: BTreeMap<&str, RouteFlow> = BTreeMap::new();
        for numbers in self.ledgers.values().filter_map(|ledger| ledger.flow.figures.as_ref()) {
            for (name, flow) in &numbers.routes {
                let label = self.routes.get_key_value(name).map_or(OTHER_ROUTE, |(known, _)| known.as_str());
                joined.entry(label).or_default().join(flow);
            }
        }
        joined
    }

    /// Everybody's pending by the label of its route, over all ledgers: lower bounds where a reading was cut at its row limit, and exact
    /// where none was. A route that is in no reading, or that is no longer configured, is not there: absent, not zero.
    pub fn pending(&self) -> BTreeMap<&str, RoutePending> {
        let mut joined: BTreeMap<&str, RoutePending> = BTreeMap::new();
        let readings = self.ledgers.values().filter_map(|ledger| ledger.pending.as_ref());
        // A backlog that grows beyond the limit must not vanish: what is past its deadline in a part is so in the whole.
        for figures in readings.map(PendingSnapshot::at_least) {
            for name in self.routes.keys() {
                if let Some(pending) = figures.routes.get(name) {
                    join(joined.entry(name.as_str()).or_default(), pending);
                }
            }
            join(joined.entry(OTHER_ROUTE).or_default(), &figures.other);
        }
        joined
    }
}
