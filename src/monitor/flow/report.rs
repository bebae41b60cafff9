//! What the outside may see of a followed ledger.

use super::residue::{Residue, Unbalanced};
use crate::{
    catalog::{
        bounds::{ATTEMPT_WINDOW, CAUSE_WINDOW, DISPOSITION_WINDOW, LEDGER_WINDOWS},
        labels::{FollowerMode, OTHER_ROUTE, Window},
    },
    domain::{
        accounting::Place,
        elsewhere::Accepted,
        flow::{
            figures::{FlowFigures, RouteFigures, WindowFigures},
            rows::RouteNo,
        },
        outcome::{Cause, Disposition, Outcome},
        pending::{PendingFigures, PendingSnapshot},
        route::RouteName,
    },
};
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, sync::Arc};

/// What is known of a ledger's flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowReport {
    /// What its follower does.
    pub mode: FollowerMode,
    /// The time of the newest notification that is followed for good.
    pub followed_until: Option<DateTime<Utc>>,
    /// How many notifications are held in memory; nothing where this process does not follow.
    pub held: Option<u64>,
    /// How many pending notifications of closed hours the ledger has more than are followed; nothing where this process does not follow, and before it looked.
    pub unseen: Option<u64>,
    /// How many readings of the audit are due and were not made; nothing where this process does not follow.
    pub overdue: Option<u64>,
    /// Whether what is settled stays as it was first decided, since no later row can tell; nothing where the ledger is not followed.
    pub as_first_decided: Option<bool>,
    /// The figures of the last pass that read to the end; nothing before it, or once they are too old.
    pub figures: Option<Arc<FlowNumbers>>,
}

impl FlowReport {
    /// Whether everybody's pending is told by a follower: this process's, or that of the process which leads.
    pub fn tells_pending(&self) -> bool {
        self.figures.is_some() || self.mode == FollowerMode::Standby
    }
}

/// The numbers of one pass.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowNumbers {
    /// As of when.
    pub as_of: DateTime<Utc>,
    /// By the label of the route, `other` among them.
    pub routes: BTreeMap<RouteName, RouteFlow>,
}

/// The numbers of one route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteFlow {
    /// What was due in each window and accepted.
    pub accepted: BTreeMap<Window, u64>,
    /// What of it is bad.
    pub bad: BTreeMap<Window, u64>,
    /// Where that of [`DISPOSITION_WINDOW`] stands.
    pub dispositions: BTreeMap<Disposition, u64>,
    /// Why that of [`CAUSE_WINDOW`] was rejected.
    pub rejected: BTreeMap<Cause, u64>,
    /// What the attempts of [`ATTEMPT_WINDOW`] came to.
    pub attempts: BTreeMap<Outcome, u64>,
    /// What was due before the baseline, or before the history that is followed, and is still pending, where either is known.
    pub stuck_before_baseline: Option<u64>,
    /// Canaries found among the customers' notifications since this process follows.
    pub leaks: u64,
    /// Pending notifications that came behind the cursor and were found all the same since this process follows.
    pub came_behind: u64,
    /// The residue of the last closed hour, where it is known.
    pub residue: Option<Unbalanced>,
    /// What was accepted in the last closed hour, by the ledger and by a count that is independent of it, where both are known.
    pub accepted_in_hour: Option<Accepted>,
}

impl RouteFlow {
    /// Adds what another ledger has of the same route.
    pub fn join(&mut self, other: &Self) {
        fn add<K: Ord + Copy>(mine: &mut BTreeMap<K, u64>, theirs: &BTreeMap<K, u64>) {
            theirs.iter().for_each(|(key, count)| *mine.entry(*key).or_default() += count);
        }
        add(&mut self.accepted, &other.accepted);
        add(&mut self.bad, &other.bad);
        add(&mut self.dispositions, &other.dispositions);
        add(&mut self.rejected, &other.rejected);
        add(&mut self.attempts, &other.attempts);
        self.leaks += other.leaks;
        self.came_behind += other.came_behind;
        let stuck = self.stuck_before_baseline.into_iter().chain(other.stuck_before_baseline);
        self.stuck_before_baseline = stuck.reduce(|a, b| a + b);
        self.residue = self.residue.into_iter().chain(other.residue).reduce(Unbalanced::and);
        let both = self.accepted_in_hour.into_iter().chain(other.accepted_in_hour);
        self.accepted_in_hour = both.reduce(Accepted::and);
    }
}

/// The numbers of a pass, and its pending notifications.
pub fn report(
    figures: FlowFigures,
    routes: &[RouteName],
    residue: &Residue,
    has_baseline: bool,
) -> (FlowNumbers, PendingSnapshot) {
    let other = RouteName::from_text(OTHER_ROUTE);
    let mut numbers = FlowNumbers { as_of: figures.as_of, routes: BTreeMap::new() };
    let mut pending = PendingFigures::default();
    let places = (0..=u16::MAX).map(RouteNo);
    for ((place, route), name) in places.zip(figures.routes).zip(routes.iter().chain([&other])) {
        numbers.routes.insert(name.clone(), route_flow(&route, residue.of(place), has_baseline));
        if *name == other {
            pending.other = route.pending;
        } else {
            pending.routes.insert(name.clone(), route.pending);
        }
    }
    (numbers, PendingSnapshot::followed(figures.as_of, pending))
}

/// The numbers of each route, with the place that it has among these.
pub fn numbered<'a>(
    numbers: &'a mut FlowNumbers,
    routes: &'a [RouteName],
) -> impl Iterator<Item = (RouteNo, &'a mut RouteFlow)> {
    numbers.routes.iter_mut().map(move |(name, flow)| {
        let place = routes.iter().position(|route| route == name).unwrap_or(routes.len());
        (RouteNo(u16::try_from(place).unwrap_or(u16::MAX)), flow)
    })
}

fn route_flow(route: &RouteFigures, residue: Option<Unbalanced>, has_baseline: bool) -> RouteFlow {
    let of = |window: Window| route.windows.get(&window.duration());
    let each = |number: fn(&WindowFigures) -> u64| {
        LEDGER_WINDOWS.iter().filter_map(|window| Some((*window, number(of(*window)?)))).collect()
    };
    let dispositions = |window: &WindowFigures| {
        let rejected = window.in_place(Place::RejectedRecipient) + window.in_place(Place::RejectedService);
        BTreeMap::from([
            (Disposition::Delivered, window.in_place(Place::Delivered)),
            (Disposition::PermanentlyRejected, rejected),
            (Disposition::Suppressed, window.in_place(Place::Suppressed)),
            (Disposition::Pending, window.in_place(Place::Pending)),
        ])
    };
    let rejected = |window: &WindowFigures| {
        BTreeMap::from([
            (Cause::Recipient, window.in_place(Place::RejectedRecipient)),
            (Cause::Service, window.in_place(Place::RejectedService)),
        ])
    };
    let attempts =
        |window: &WindowFigures| Outcome::ALL.map(|outcome| (outcome, window.attempts(outcome))).into();
    RouteFlow {
        accepted: each(WindowFigures::accepted),
        bad: each(WindowFigures::bad),
        dispositions: of(DISPOSITION_WINDOW).map(dispositions).unwrap_or_default(),
        rejected: of(CAUSE_WINDOW).map(rejected).unwrap_or_default(),
        attempts: of(ATTEMPT_WINDOW).map(attempts).unwrap_or_default(),
        stuck_before_baseline: has_baseline.then_some(route.stuck_before_baseline),
        leaks: route.leaks,
        came_behind: route.came_behind,
        residue,
        accepted_in_hour: None,
    }
}
