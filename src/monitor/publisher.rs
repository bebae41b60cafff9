//! The publisher: makes the snapshot that is all the outside may see.
//!
//! Sums over long windows change slowly and cost most: each window is read again when fifty times its last reading's
//! duration has passed, so that reading them takes at most a fiftieth of the time, however much there is.

use super::{
    adapters::LedgerAdapter,
    shared::Shared,
    snapshot::{Clock, LedgerSnapshot, Observer, RouteFacts, RouteSnapshot, Snapshot},
};
use crate::{
    catalog::{
        bounds::CANARY_WINDOWS,
        labels::{LoopName, Window},
    },
    domain::{disagreement::Disagreement, pending::PendingSnapshot, route::RouteName},
    store::{InFlight, StoreError, WindowSum},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Between two snapshots.
const EVERY: Duration = Duration::from_secs(1);

/// A window is not read more often than this.
const WINDOW_EVERY: Duration = Duration::from_secs(2);

/// How much of the time may go into reading one window: one part in so many.
const SHARE: u32 = 50;

/// How often a route's views contradicted each other in this way.
type Disagreements = (RouteName, Disagreement, u64);

/// The newest submission and the newest arrival.
type Newest = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// What the publisher last read.
#[derive(Default)]
struct Memory {
    windows: HashMap<Window, (Instant, Vec<WindowSum>)>,
    disagreements: Option<(Instant, Vec<Disagreements>)>,
    in_flight: Vec<InFlight>,
    newest: BTreeMap<RouteName, Newest>,
}

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut memory = Memory::default();
    while !cancel.is_cancelled() {
        let now = Utc::now();
        let result = memory.refresh(&shared, now).await;
        shared.loops.ended(LoopName::Publisher, result.is_ok(), Utc::now());
        if let Err(error) = result {
            tracing::debug!(event = "sums_not_read", reason = %error);
        }
        follow_counts(&shared);
        shared.snapshot.publish(memory.snapshot(&shared, now));
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

impl Memory {
    async fn refresh(&mut self, shared: &Shared, now: DateTime<Utc>) -> Result<(), StoreError> {
        for window in CANARY_WINDOWS.iter().copied().chain([Window::Day]) {
            if self.windows.get(&window).is_some_and(|(due, _)| *due > Instant::now()) {
                continue;
            }
            let started = Instant::now();
            let sums = shared.store.window(window.duration(), now).await?;
            self.windows.insert(window, (next_reading(started), sums));
        }
        if self.disagreements.as_ref().is_none_or(|(due, _)| *due <= Instant::now()) {
            let started = Instant::now();
            let found = shared.store.disagreements(Window::Day.duration(), now).await?;
            self.disagreements = Some((next_reading(started), found));
        }
        self.in_flight = shared.store.in_flight(&shared.location).await?;
        let newest = shared.store.newest(&shared.location).await?;
        self.newest = newest.into_iter().map(|(route, sent, arrived)| (route, (sent, arrived))).collect();
        Ok(())
    }

    fn snapshot(&self, shared: &Shared, now: DateTime<Utc>) -> Snapshot {
        let active = shared.active.load();
        let pending = shared.pending();
        let mut routes: BTreeMap<RouteName, RouteSnapshot> = BTreeMap::new();
        for (name, route) in &active.routes {
            let facts = RouteFacts::of(&route.config, route.interval);
            let evidence = shared.evidence().get(name);
            let (newest_submission, newest_arrival) = self.newest.get(name).copied().unwrap_or_default();
            routes.insert(
                name.clone(),
                RouteSnapshot {
                    paused: shared.paused(name, now).is_some(),
                    maintenance: active.maintenance(name, now).is_some(),
                    newest_submission,
                    newest_arrival,
                    arrives: evidence.arrives,
                    in_time: evidence.in_time,
                    stopped_at: evidence.stopped.filter(|_| evidence.is_open()),
                    ..RouteSnapshot::new(facts)
                },
            );
        }
        self.add_sums(shared, &mut routes);
        let observers = shared.observers();
        let is_up = |observer: &Observer| (observer.clone(), observers.get(observer).is_some_and(|o| o.up));
        let configured = active.adapters.ledgers.keys().cloned().map(Observer::Ledger);
        let configured = configured.chain(active.adapters.sinks.keys().cloned().map(Observer::Receiver));
        Snapshot {
            taken_at: Some(now),
            location: Some(shared.location.clone()),
            routes,
            ledgers: ledgers(&active.adapters.ledgers, &pending),
            store_up: shared.store_up.load(Ordering::Relaxed),
            observers: configured.map(|o| is_up(&o)).collect(),
            loops: LoopName::ALL
                .into_iter()
                .filter_map(|l| Some((l, shared.loops.last_success(l)?)))
                .collect(),
            clock_skew: skews(&active.adapters.ledgers),
            configuration: **shared.configuration.load(),
        }
    }

    fn add_sums(&self, shared: &Shared, routes: &mut BTreeMap<RouteName, RouteSnapshot>) {
        for (window, (_, sums)) in &self.windows {
            for sum in sums.iter().filter(|sum| sum.location == shared.location) {
                let Some(route) = routes.get_mut(&sum.route) else { continue };
                if CANARY_WINDOWS.contains(window) {
                    *route.windows.entry(*window).or_default().entry(sum.class).or_default() += sum.count;
                }
                if *window == Window::Day {
                    *route.verdicts.entry(sum.verdict).or_default() += sum.count;
                }
            }
        }
        for (route, kind, count) in self.disagreements.iter().flat_map(|(_, found)| found) {
            if let Some(route) = routes.get_mut(route) {
                *route.disagreements.entry(*kind).or_default() += count;
            }
        }
        for in_flight in &self.in_flight {
            if let Some(route) = routes.get_mut(&in_flight.route) {
                route.in_flight = in_flight.count;
                route.oldest_in_flight = in_flight.oldest_slot;
            }
        }
    }
}

fn next_reading(started: Instant) -> Instant {
    started + (started.elapsed() * SHARE).max(WINDOW_EVERY)
}

fn ledgers(
    adapters: &BTreeMap<String, LedgerAdapter>,
    pending: &BTreeMap<String, Arc<PendingSnapshot>>,
) -> BTreeMap<String, LedgerSnapshot> {
    let one = |(name, adapter): (&String, &LedgerAdapter)| {
        let pending = pending.get(name).map(|pending| PendingSnapshot::clone(pending));
        (name.clone(), LedgerSnapshot::new(pending, &adapter.pending.figures()))
    };
    adapters.iter().map(one).collect()
}

fn skews(adapters: &BTreeMap<String, LedgerAdapter>) -> BTreeMap<Clock, TimeDelta> {
    let one = |(name, adapter): (&String, &LedgerAdapter)| {
        Some((Clock::Ledger(name.clone()), adapter.pending.figures().skew?))
    };
    adapters.iter().filter_map(one).collect()
}

/// Takes over what adapters count by themselves.
fn follow_counts(shared: &Shared) {
    for (name, stats) in shared.receivers() {
        if let Some(counters) = shared.counters.receiver(&name) {
            counters.follow(&stats);
        }
    }
    for (name, adapter) in &shared.active.load().adapters.ledgers {
        if let Some(counters) = shared.counters.ledger(name) {
            counters.follow(&adapter.pending.figures());
        }
    }
}
