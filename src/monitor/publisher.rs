//! The publisher: makes the snapshot that is all the outside may see.
//!
//! What it reads of the store grows with the routes and with history. Each part is read again only when a hundred times its last
//! reading's duration has passed, so that none takes more than a hundredth of the time, however much there is: a part that takes
//! 30 ms is read each three seconds. None is left out for longer than half a minute: a reading that was slow once, as when the store comes
//! back, says nothing of the next.

use super::{
    active::SlotStream,
    adapters::LedgerAdapter,
    evidence::SILENT_FROM,
    shared::Shared,
    snapshot::{Clock, LedgerSnapshot, Observer, RouteFacts, RouteSnapshot, Snapshot},
};
use crate::{
    catalog::{
        bounds::{ARM_CLASSES, CANARY_WINDOWS, CONTROL_WINDOW},
        labels::{LoopName, Window},
    },
    clock::{self, Skew},
    domain::{
        audit::compare::Change, disagreement::Disagreement, pending::PendingSnapshot, route::RouteName,
    },
    store::{AuditSums, ControlSum, InFlight, StoreError, WindowSum},
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

/// Longest time between two readings of a part.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How much of the time may go into reading one part: one part in so many.
const SHARE: u32 = 100;

/// How long after its slot a canary that wasn't submitted is told of: longer than a slot may be late, and than a reading of the store may be old.
const OVERDUE_AFTER: TimeDelta = TimeDelta::seconds(60);

/// How often a route's views contradicted each other in this way.
type Disagreements = (RouteName, Disagreement, u64);

/// The newest submission and the newest arrival.
type Newest = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// A part of the store as it was last read.
#[derive(Default)]
struct Kept<T> {
    value: T,
    /// When it is to be read again.
    again: Option<Instant>,
}

impl<T> Kept<T> {
    /// Reads it, if it is time to. What was read before stays where that fails.
    async fn refresh(
        &mut self,
        least: Duration,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<(), StoreError> {
        let started = Instant::now();
        if self.again.is_none_or(|again| again <= started) {
            self.value = read.await?;
            self.again = Some(started + (started.elapsed() * SHARE).min(LONGEST_PAUSE).max(least));
        }
        Ok(())
    }
}

/// What the publisher last read.
#[derive(Default)]
struct Memory {
    windows: HashMap<Window, Kept<Vec<WindowSum>>>,
    controls: Kept<Vec<ControlSum>>,
    disagreements: Kept<Vec<Disagreements>>,
    audits: Kept<BTreeMap<String, AuditSums>>,
    in_flight: Kept<Vec<InFlight>>,
    newest: Kept<HashMap<RouteName, Newest>>,
    /// Since when canaries are expected of a route, apart from what was submitted: since it is known here, or was last seen paused.
    expected: HashMap<RouteName, Expected>,
}

/// Since when canaries are expected of a route.
#[derive(Clone, Copy)]
struct Expected {
    /// When it was first seen in a configuration, by this process.
    known: DateTime<Utc>,
    /// When it was last seen paused.
    paused: Option<DateTime<Utc>>,
}

impl Expected {
    /// The slot since which nothing was submitted, though it was due a good while ago. What was ever submitted counts, whichever process
    /// did: where processes begin anew again and again, it is not as if the route were new each time.
    fn overdue(
        self,
        stream: &SlotStream,
        submitted: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let since = self.paused.into_iter().chain([submitted.unwrap_or(self.known)]).max()?;
        let due = stream.schedule.next_after(since - stream.offset)? + stream.offset;
        (now - due > OVERDUE_AFTER).then_some(due)
    }
}

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut memory = Memory::default();
    while !cancel.is_cancelled() {
        let now = clock::now();
        let result = memory.refresh(&shared, now).await;
        shared.loops.ended(LoopName::Publisher, result.is_ok(), clock::now());
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
        let (store, location) = (&shared.store, &shared.location);
        for window in CANARY_WINDOWS.iter().copied().chain([Window::Day]) {
            let sums = self.windows.entry(window).or_default();
            sums.refresh(WINDOW_EVERY, store.window(window.duration(), now)).await?;
        }
        self.controls.refresh(WINDOW_EVERY, store.controls(CONTROL_WINDOW.duration(), now)).await?;
        let disagreements = store.disagreements(Window::Day.duration(), now);
        self.disagreements.refresh(WINDOW_EVERY, disagreements).await?;
        self.audits.refresh(WINDOW_EVERY, store.audits(Window::Day.duration(), now)).await?;
        // Without a least time: each snapshot has them new, as long as they take less than ten milliseconds.
        self.in_flight.refresh(Duration::ZERO, store.in_flight(location)).await?;
        let newest = async {
            let newest = store.newest(location).await?;
            Ok(newest.into_iter().map(|(route, sent, arrived)| (route, (sent, arrived))).collect())
        };
        self.newest.refresh(Duration::ZERO, newest).await
    }

    fn snapshot(&mut self, shared: &Shared, now: DateTime<Utc>) -> Snapshot {
        let active = shared.active.load();
        self.expected.retain(|name, _| active.routes.contains_key(name));
        let pending = shared.pending();
        let mut routes: BTreeMap<RouteName, RouteSnapshot> = BTreeMap::new();
        for (name, route) in &active.routes {
            let facts = RouteFacts::of(&route.config, route.interval, active.config.alerts.as_ref());
            let book = shared.evidence();
            let (evidence, is_folded) = (book.get(name), book.is_folded(name));
            drop(book);
            let (newest_submission, newest_arrival) =
                self.newest.value.get(name).copied().unwrap_or_default();
            let is_paused = shared.paused(name, now).is_some();
            let expected = self.expected.entry(name.clone()).or_insert(Expected { known: now, paused: None });
            if is_paused {
                expected.paused = Some(now);
            }
            routes.insert(
                name.clone(),
                RouteSnapshot {
                    paused: is_paused,
                    overdue_slot: expected.overdue(route.scheduled(), newest_submission, now),
                    maintenance: active.maintenance(name, now).is_some(),
                    newest_submission,
                    newest_arrival,
                    is_folded,
                    arrives: evidence.arrives,
                    in_time: evidence.in_time,
                    stopped_at: evidence.stopped.filter(|_| evidence.is_open()),
                    unmeasured: evidence.unmeasured.filter(|silent| silent.canaries >= SILENT_FROM),
                    ..RouteSnapshot::new(facts)
                },
            );
        }
        self.add_sums(shared, &mut routes);
        let sights = shared.sights();
        let is_up = |observer: &Observer| (observer.clone(), sights.is_up(observer));
        let configured = active.adapters.ledgers.keys().cloned().map(Observer::Ledger);
        let configured = configured.chain(active.adapters.sinks.keys().cloned().map(Observer::Receiver));
        Snapshot {
            taken_at: Some(now),
            location: Some(shared.location.clone()),
            routes,
            ledgers: self.ledgers(shared, &active.adapters.ledgers, &pending),
            store_up: shared.store_up.load(Ordering::Relaxed),
            observers: configured.map(|o| is_up(&o)).collect(),
            loops: LoopName::ALL
                .into_iter()
                .filter_map(|l| Some((l, shared.loops.last_success(l)?)))
                .collect(),
            clock_skew: skews(shared.store_skew.load().as_deref(), &active.adapters.ledgers),
            configuration: **shared.configuration.load(),
        }
    }

    fn ledgers(
        &self,
        shared: &Shared,
        adapters: &BTreeMap<String, LedgerAdapter>,
        pending: &BTreeMap<String, Arc<PendingSnapshot>>,
    ) -> BTreeMap<String, LedgerSnapshot> {
        let one = |(name, adapter): (&String, &LedgerAdapter)| {
            let pending = pending.get(name).map(|pending| PendingSnapshot::clone(pending));
            let snapshot = LedgerSnapshot::new(pending, shared.flow(name), &adapter.pending.figures());
            let sample = self.audits.value.get(name);
            let in_sample = Change::VIOLATIONS.iter().filter_map(|change| sample?.found.get(change)).sum();
            let history = self.history(shared, name);
            let pending_read_at = shared.pending_read_at(name);
            (
                name.clone(),
                LedgerSnapshot { pending_read_at, history, violations_in_sample: in_sample, ..snapshot },
            )
        };
        adapters.iter().map(one).collect()
    }

    /// What the sample of a ledger and the canaries of its routes say of its history.
    fn history(&self, shared: &Shared, ledger: &str) -> AuditSums {
        let mut sums = self.audits.value.get(ledger).cloned().unwrap_or_default();
        let active = shared.active.load();
        let is_its = |route: &RouteName| {
            active.routes.get(route).is_some_and(|route| route.config.ledger.as_deref() == Some(ledger))
        };
        for (route, kind, count) in &self.disagreements.value {
            if let Some(change) = Change::of(*kind).filter(|_| is_its(route)) {
                *sums.found.entry(change).or_default() += count;
            }
        }
        sums
    }

    fn add_sums(&self, shared: &Shared, routes: &mut BTreeMap<RouteName, RouteSnapshot>) {
        for (window, sums) in &self.windows {
            for sum in sums.value.iter().filter(|sum| sum.location == shared.location) {
                let Some(route) = routes.get_mut(&sum.route) else { continue };
                if CANARY_WINDOWS.contains(window) {
                    *route.windows.entry(*window).or_default().entry(sum.class).or_default() += sum.count;
                }
                if *window == Window::Day {
                    *route.verdicts.entry(sum.verdict).or_default() += sum.count;
                }
            }
        }
        for sum in self.controls.value.iter().filter(|sum| sum.location == shared.location) {
            if let (Some(route), Some(arm)) = (routes.get_mut(&sum.route), sum.kind.arm())
                && ARM_CLASSES.contains(&sum.class)
            {
                *route.controls.entry((arm, sum.class)).or_default() += sum.count;
            }
        }
        for (route, kind, count) in &self.disagreements.value {
            if let Some(route) = routes.get_mut(route) {
                *route.disagreements.entry(*kind).or_default() += count;
            }
        }
        for in_flight in &self.in_flight.value {
            if let Some(route) = routes.get_mut(&in_flight.route) {
                route.in_flight = in_flight.count;
                route.oldest_in_flight = in_flight.oldest_slot;
            }
        }
    }
}

fn skews(store: Option<&Skew>, adapters: &BTreeMap<String, LedgerAdapter>) -> BTreeMap<Clock, TimeDelta> {
    let one = |(name, adapter): (&String, &LedgerAdapter)| {
        Some((Clock::Ledger(name.clone()), adapter.pending.figures().skew?))
    };
    adapters.iter().filter_map(one).chain(store.map(|skew| (Clock::Store, skew.ahead))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn office_hours() -> SlotStream {
        SlotStream {
            kind: crate::domain::canary::CanaryKind::Scheduled,
            schedule: crate::domain::schedule::Schedule::parse("*/5 9-16 * * *", "UTC").expect("a schedule"),
            offset: TimeDelta::seconds(20),
            tolerance: Duration::from_secs(30),
            acceptance: "api".into(),
        }
    }

    /// A time of the first or second of December 2026.
    fn at(day: u32, hour: u32, minute: u32) -> DateTime<Utc> {
        use chrono::TimeZone as _;
        Utc.with_ymd_and_hms(2026, 12, day, hour, minute, 30).single().expect("a time")
    }

    #[test]
    fn no_slot_is_overdue_in_the_night_of_an_office_hours_schedule() {
        let stream = office_hours();
        // A process that began a moment ago: what was submitted before it counts.
        let expected = |now| Expected { known: now, paused: None };
        let overdue = |submitted, now| expected(now).overdue(&stream, Some(submitted), now);
        let evening = at(1, 16, 55);
        assert_eq!(overdue(evening, at(1, 23, 0)), None);
        assert_eq!(overdue(evening, at(2, 9, 0)), None, "it may be late");
        let first = at(2, 9, 0) - TimeDelta::seconds(10);
        assert_eq!(overdue(evening, at(2, 9, 2)), Some(first));
        assert_eq!(overdue(evening, at(2, 12, 0)), Some(first), "it stays the first");
        assert_eq!(overdue(at(2, 11, 55), at(2, 12, 0)), None);
    }

    #[test]
    fn after_a_pause_and_on_a_new_route_the_next_slot_comes_first() {
        let stream = office_hours();
        let paused = Expected { known: at(1, 8, 0), paused: Some(at(1, 12, 1)) };
        assert_eq!(paused.overdue(&stream, Some(at(1, 9, 0)), at(1, 12, 5)), None);
        let next = at(1, 12, 5) - TimeDelta::seconds(10);
        assert_eq!(paused.overdue(&stream, Some(at(1, 9, 0)), at(1, 12, 7)), Some(next));
        let new = Expected { known: at(1, 18, 0), paused: None };
        assert_eq!(new.overdue(&stream, None, at(2, 8, 0)), None);
        assert!(new.overdue(&stream, None, at(2, 9, 5)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_takes_at_most_a_hundredth_of_the_time() {
        let mut kept = Kept::<u32>::default();
        let read = |answer| async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            Ok(answer)
        };
        let began = Instant::now();
        kept.refresh(Duration::ZERO, read(1)).await.expect("it is read");
        tokio::time::sleep_until(began + Duration::from_millis(2_990)).await;
        kept.refresh(Duration::ZERO, read(2)).await.expect("it is not read");
        assert_eq!(kept.value, 1);
        tokio::time::sleep_until(began + Duration::from_millis(3_010)).await;
        kept.refresh(Duration::ZERO, read(3)).await.expect("it is read");
        assert_eq!(kept.value, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_stays_where_a_reading_fails() {
        let mut kept = Kept { value: 1, again: None };
        let fails = async { Err(StoreError::Unavailable("it is down".into())) };
        assert!(kept.refresh(WINDOW_EVERY, fails).await.is_err());
        assert_eq!(kept.value, 1);
        kept.refresh(WINDOW_EVERY, async { Ok(2) }).await.expect("it is read");
        assert_eq!(kept.value, 2, "what failed is tried again at once");
    }
}
