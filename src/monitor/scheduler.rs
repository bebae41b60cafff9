//! The scheduler: plans a canary at each slot, once, and hands what is ours to the submitter.

use super::{
    active::{Active, ActiveRoute},
    agenda::{Agenda, StreamKey},
    crash,
    handled::{AHEAD, Handled, left_at},
    planner,
    shared::Shared,
    submitter::{HELD_FOR, Submissions},
};
use crate::{
    catalog::labels::LoopName,
    clock,
    domain::{canary::CanaryKind, route::RouteName},
    store::{PlanRequest, Planned, StoreError},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Longest wait between two looks at the agenda: a clock may be set, a confirmation may be wished for.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Shortest wait between two looks, so that slots that lie close together share a transaction.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);

/// The wait after a look that the store did not let end.
const RETRY: Duration = Duration::from_millis(200);

/// Between two looks for confirmations: they ask about each route that has failed, and that may be all of them.
const CONFIRMATIONS_EVERY: TimeDelta = TimeDelta::milliseconds(250);

/// The scheduler's memory. All that matters of it is in the store too.
#[derive(Default)]
pub struct Scheduler {
    handled: HashMap<StreamKey, Handled>,
    agenda: Agenda,
    /// The configuration whose streams are on the agenda.
    scheduled: Option<Arc<Active>>,
    confirmed_at: Option<DateTime<Utc>>,
    /// The latest that any look took for now, since the clock was last set back.
    latest: Option<DateTime<Utc>>,
}

/// A wish, and where it came from.
struct Wish {
    request: PlanRequest,
    route: Arc<ActiveRoute>,
    missed: u64,
    until: DateTime<Utc>,
}

/// The instants of confirmations that are due: the parent's slot plus n intervals, before the next scheduled slot, and still fresh.
pub fn confirmation_due(
    route: &ActiveRoute,
    parent: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let every = route.config.confirmations.every.delta();
    let stream = route.scheduled();
    let elapsed = now - stream.offset - parent;
    if every <= TimeDelta::zero() || elapsed < every {
        return None;
    }
    let n = elapsed.num_milliseconds() / every.num_milliseconds();
    if n > i64::from(route.config.confirmations.max) {
        return None;
    }
    let instant = parent + every * i32::try_from(n).ok()?;
    let is_fresh = now - stream.offset - instant <= TimeDelta::from_std(stream.tolerance).ok()?;
    let before_next = stream.schedule.next_after(parent).is_none_or(|next| instant < next);
    (is_fresh && before_next).then_some(instant)
}

impl Scheduler {
    /// Runs until it is cancelled.
    pub async fn run(mut self, shared: Arc<Shared>, submissions: Submissions, cancel: CancellationToken) {
        while !cancel.is_cancelled() {
            let result = self.tick(&shared, &submissions, clock::now()).await;
            shared.loops.ended(LoopName::Scheduler, result.is_ok(), clock::now());
            let wait = match result {
                Ok(()) => self.until_next_look(clock::now()),
                Err(error) => {
                    tracing::debug!(event = "scheduling_postponed", reason = %error);
                    RETRY
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// One look at the agenda. While the store can't be written nothing is planned, and slots are missed.
    async fn tick(
        &mut self,
        shared: &Shared,
        submissions: &Submissions,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let active = shared.active.load_full();
        self.mind_the_clock(&active, now);
        self.follow(shared, &active, now).await?;
        // What can't be served waits on the agenda. When there is room again it is still fresh, or missed, and counted.
        if !submissions.has_room() {
            return Ok(());
        }
        let due: Vec<StreamKey> = std::iter::from_fn(|| self.agenda.take_due(now)).collect();
        if due.iter().any(|key| self.has_missed(shared, &active, key, now))
            && let Err(error) = self.learn_what_others_served(shared, &active, now).await
        {
            self.put_back(&active, &due);
            return Err(error);
        }
        let mut wishes = self.due(shared, &active, due, now);
        wishes.extend(self.confirmations(shared, &active, now));
        self.plan(shared, submissions, wishes, now).await
    }

    /// After a clock that ran ahead was set back, what was handled by it lies in the future: every stream goes on from now.
    fn mind_the_clock(&mut self, active: &Active, now: DateTime<Utc>) {
        if self.latest.is_none_or(|latest| latest <= now + AHEAD) {
            self.latest = self.latest.max(Some(now));
            return;
        }
        self.latest = Some(now);
        for ((name, kind), handled) in &mut self.handled {
            if let Some(route) = active.routes.get(name) {
                *handled = handled.not_ahead_of(now - route.stream(*kind).offset);
            }
        }
        // The agenda is made anew.
        self.scheduled = None;
    }

    /// Puts the streams of a new configuration on the agenda, each where it was left.
    async fn follow(
        &mut self,
        shared: &Shared,
        active: &Arc<Active>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if self.scheduled.as_ref().is_some_and(|known| Arc::ptr_eq(known, active)) {
            return Ok(());
        }
        self.handled.retain(|(route, _), _| active.routes.contains_key(route));
        if let Some(before) = &self.scheduled {
            // By another schedule, slots before now were not owed.
            for ((name, kind), handled) in &mut self.handled {
                let (Some(old), Some(new)) = (before.routes.get(name), active.routes.get(name)) else {
                    continue;
                };
                let (was, is) = (&old.config, &new.config);
                if (&was.schedule, &was.replay, &was.controls) != (&is.schedule, &is.replay, &is.controls)
                    && let Some(stream) = new.streams.iter().find(|stream| stream.kind == *kind)
                {
                    handled.until = handled.until.max(now - stream.offset);
                }
            }
        }
        let streams = active.routes.values().flat_map(|route| route.streams.iter().map(move |s| (route, s)));
        let mut fresh: Vec<(StreamKey, DateTime<Utc>)> =
            streams.map(|(route, s)| ((route.name.clone(), s.kind), now - s.offset)).collect();
        fresh.retain(|(key, _)| !self.handled.contains_key(key));
        if !fresh.is_empty() {
            let newest = shared.store.newest_slots(&shared.location).await?;
            let left = |(key, until)| {
                let handled = left_at(newest.get(&key).copied(), until);
                (key, handled)
            };
            self.handled.extend(fresh.into_iter().map(left));
        }
        self.agenda = Agenda::default();
        for route in active.routes.values() {
            route.streams.iter().for_each(|stream| self.put(route, stream.kind));
        }
        self.scheduled = Some(Arc::clone(active));
        Ok(())
    }

    /// Puts a stream on the agenda, at its first slot that is not handled. Confirmations have no slots of their own.
    fn put(&mut self, route: &ActiveRoute, kind: CanaryKind) {
        let key = (route.name.clone(), kind);
        let Some(stream) = route.streams.iter().find(|stream| stream.kind == kind) else { return };
        let handled = self.handled.get(&key);
        if let Some(next) = handled.and_then(|handled| stream.schedule.next_after(handled.until)) {
            self.agenda.put(next + stream.offset, key);
        }
    }

    /// Whether slots of this stream have passed, as far as this process knows.
    fn has_missed(&self, shared: &Shared, active: &Active, key: &StreamKey, now: DateTime<Utc>) -> bool {
        let (Some(route), Some(handled)) = (active.routes.get(&key.0), self.handled.get(key)) else {
            return false;
        };
        let stream = route.stream(key.1);
        shared.paused(&route.name, now).is_none()
            && stream.schedule.due(handled.until, now - stream.offset, stream.tolerance).missed > 0
    }

    /// While this process stood still, or was cut off from the store, a replica may have served what it did not.
    async fn learn_what_others_served(
        &mut self,
        shared: &Shared,
        active: &Active,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let newest = shared.store.newest_slots(&shared.location).await?;
        for (key, slot) in newest {
            let Some(route) = active.routes.get(&key.0) else { continue };
            let stored = left_at(Some(slot), now - route.stream(key.1).offset).until;
            if let Some(handled) = self.handled.get_mut(&key) {
                handled.until = handled.until.max(stored);
            }
        }
        Ok(())
    }

    fn put_back(&mut self, active: &Active, streams: &[StreamKey]) {
        for (name, kind) in streams {
            if let Some(route) = active.routes.get(name) {
                self.put(route, *kind);
            }
        }
    }

    /// The wishes of streams that were taken from the agenda. Those are put back when they are planned, all others at once.
    fn due(
        &mut self,
        shared: &Shared,
        active: &Active,
        due: Vec<StreamKey>,
        now: DateTime<Utc>,
    ) -> Vec<Wish> {
        let mut wishes = Vec::new();
        for key in due {
            let Some(route) = active.routes.get(&key.0) else { continue };
            let stream = route.stream(key.1);
            let Some(handled) = self.handled.get_mut(&key) else { continue };
            let until = now - stream.offset;
            if shared.paused(&route.name, now).is_none() {
                let due = stream.schedule.due(handled.until, until, stream.tolerance);
                if let Some(slot) = due.fire {
                    let request = planner::plan(shared, route, stream.kind, slot, None, now);
                    wishes.push(Wish { request, route: Arc::clone(route), missed: due.missed, until: slot });
                    continue;
                }
                missed(shared, &route.name, due.missed);
            }
            // Slots that pass while a route is paused are neither served nor missed.
            handled.until = until;
            self.put(route, stream.kind);
        }
        wishes
    }

    /// Confirmations that are due on all routes.
    fn confirmations(&mut self, shared: &Shared, active: &Active, now: DateTime<Utc>) -> Vec<Wish> {
        let is_early = |at: DateTime<Utc>| (at..at + CONFIRMATIONS_EVERY).contains(&now);
        if self.confirmed_at.is_some_and(is_early) {
            return Vec::new();
        }
        self.confirmed_at = Some(now);
        let open = shared.evidence().open_routes();
        let routes = open.iter().filter_map(|name| active.routes.get(name));
        let routes = routes.filter(|route| shared.paused(&route.name, now).is_none());
        routes.filter_map(|route| self.confirmation(shared, route, now)).collect()
    }

    /// A confirmation, while there is a question to settle.
    fn confirmation(&self, shared: &Shared, route: &Arc<ActiveRoute>, now: DateTime<Utc>) -> Option<Wish> {
        let handled = self.handled.get(&(route.name.clone(), CanaryKind::Scheduled))?;
        let (slot, parent) = handled.newest?;
        let instant = confirmation_due(route, slot, now)?;
        let served = self.handled.get(&(route.name.clone(), CanaryKind::Confirmation));
        if served.is_some_and(|s| s.until >= instant) {
            return None;
        }
        let request = planner::plan(shared, route, CanaryKind::Confirmation, instant, Some(parent), now);
        Some(Wish { request, route: Arc::clone(route), missed: 0, until: instant })
    }

    async fn plan(
        &mut self,
        shared: &Shared,
        submissions: &Submissions,
        wishes: Vec<Wish>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if wishes.is_empty() {
            return Ok(());
        }
        let longest = |w: &Wish| planner::longest_submission(&w.route, shared, w.request.plan.kind);
        // What is under way is held again in time. A longer lease would only keep what a crash left from being sent all the same.
        let longest = wishes.iter().map(longest).max().unwrap_or_default().min(HELD_FOR);
        let lease = planner::lease(shared, longest, now);
        let requests: Vec<PlanRequest> = wishes.iter().map(|w| w.request.clone()).collect();
        let answers = match shared.store.plan(&requests, &lease).await {
            Ok(answers) => answers,
            Err(error) => {
                wishes.iter().for_each(|wish| self.put(&wish.route, wish.request.plan.kind));
                return Err(error);
            }
        };
        crash::point("planned");
        for (wish, answer) in wishes.into_iter().zip(answers) {
            let plan = wish.request.plan;
            let key = (wish.route.name.clone(), plan.kind);
            // A slot that another replica took has a canary too, whose id is not known here: its own stands in for the parent.
            self.handled
                .insert(key, Handled { until: wish.until, newest: Some((plan.slot, plan.canary_id)) });
            self.put(&wish.route, plan.kind);
            missed(shared, &wish.route.name, wish.missed);
            match answer {
                Planned::Ours => submissions.submit(wish.route, plan),
                Planned::Taken | Planned::Paused => {}
                Planned::CapReached => {
                    missed(shared, &wish.route.name, 1);
                    tracing::warn!(
                        event = "cap_reached",
                        route = plan.route.as_str(),
                        kind = plan.kind.word(),
                        cap = wish.route.config.hourly_cap,
                        "the route's hourly cap is reached; the slot is missed"
                    );
                }
            }
        }
        Ok(())
    }

    fn until_next_look(&self, now: DateTime<Utc>) -> Duration {
        let next = self.agenda.earliest();
        let wait = next.map_or(LONGEST_WAIT, |next| (next - now).to_std().unwrap_or_default());
        wait.clamp(SHORTEST_WAIT, LONGEST_WAIT)
    }
}

fn missed(shared: &Shared, route: &RouteName, slots: u64) {
    if let Some(counters) = shared.counters.route(route).filter(|_| slots > 0) {
        counters.missed_slots.add(slots);
    }
}
