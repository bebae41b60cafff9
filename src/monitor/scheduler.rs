//! The scheduler: plans a canary at each slot, once, and hands what is ours to the submitter.

use super::{active::ActiveRoute, crash, planner, shared::Shared, submitter::Submissions};
use crate::{
    catalog::labels::LoopName,
    domain::{
        canary::CanaryKind,
        route::{CanaryId, RouteName},
    },
    store::{PlanRequest, Planned, StoreError},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Longest wait between two looks at the schedules.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How far a stream of slots has been handled.
#[derive(Clone, Copy, Debug)]
struct Handled {
    until: DateTime<Utc>,
    /// The newest scheduled slot that was served: confirmations are counted from it.
    newest: Option<(DateTime<Utc>, CanaryId)>,
}

/// The scheduler's memory. All that matters of it is in the store too.
#[derive(Default)]
pub struct Scheduler {
    handled: HashMap<(RouteName, CanaryKind), Handled>,
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
            let result = self.tick(&shared, &submissions, Utc::now()).await;
            shared.loops.ended(LoopName::Scheduler, result.is_ok(), Utc::now());
            if let Err(error) = &result {
                tracing::debug!(event = "scheduling_postponed", reason = %error);
            }
            let wait = self.until_next_slot(&shared, Utc::now());
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// One look at the schedules. While the store can't be written nothing is planned, and slots are missed.
    async fn tick(
        &mut self,
        shared: &Shared,
        submissions: &Submissions,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let active = shared.active.load_full();
        self.handled.retain(|(route, _), _| active.routes.contains_key(route));
        let mut wishes = Vec::new();
        for route in active.routes.values() {
            if shared.paused(&route.name, now).is_some() {
                self.skip(route, now);
                continue;
            }
            for stream in &route.streams {
                let key = (route.name.clone(), stream.kind);
                let handled = match self.handled.get(&key) {
                    Some(handled) => *handled,
                    None => self.resume(shared, route, stream.kind, now).await?,
                };
                let until = now - stream.offset;
                let due = stream.schedule.due(handled.until, until, stream.tolerance);
                if let Some(slot) = due.fire {
                    let request = planner::plan(shared, route, stream.kind, slot, None, now);
                    wishes.push(Wish { request, route: Arc::clone(route), missed: due.missed, until: slot });
                } else if due.missed > 0 {
                    missed(shared, &route.name, due.missed);
                    self.handled.insert(key, Handled { until, ..handled });
                }
            }
            if let Some(wish) = self.confirmation(shared, route, now) {
                wishes.push(wish);
            }
        }
        self.plan(shared, submissions, wishes, now).await
    }

    /// A confirmation, while there is a question to settle.
    fn confirmation(&self, shared: &Shared, route: &Arc<ActiveRoute>, now: DateTime<Utc>) -> Option<Wish> {
        if !shared.evidence().get(&route.name).is_open() {
            return None;
        }
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

    /// Slots that pass while a route is paused are neither served nor missed.
    fn skip(&mut self, route: &ActiveRoute, now: DateTime<Utc>) {
        for stream in &route.streams {
            let until = now - stream.offset;
            let key = (route.name.clone(), stream.kind);
            let newest = self.handled.get(&key).and_then(|h| h.newest);
            self.handled.insert(key, Handled { until, newest });
        }
    }

    /// Where a stream was left: at the newest slot in the store, or, on the very first start, now.
    async fn resume(
        &mut self,
        shared: &Shared,
        route: &ActiveRoute,
        kind: CanaryKind,
        now: DateTime<Utc>,
    ) -> Result<Handled, StoreError> {
        let stored = shared.store.newest_slot(&route.name, &shared.location, kind).await?;
        let until = stored.unwrap_or(now - route.stream(kind).offset);
        let handled = Handled { until, newest: None };
        self.handled.insert((route.name.clone(), kind), handled);
        Ok(handled)
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
        let lease = planner::lease(shared, wishes.iter().map(longest).max().unwrap_or_default(), now);
        let requests: Vec<PlanRequest> = wishes.iter().map(|w| w.request.clone()).collect();
        let answers = shared.store.plan(&requests, &lease).await?;
        crash::point("planned");
        for (wish, answer) in wishes.into_iter().zip(answers) {
            let plan = wish.request.plan;
            let key = (wish.route.name.clone(), plan.kind);
            // A slot that another replica took has a canary too, whose id is not known here: its own stands in for the parent.
            self.handled
                .insert(key, Handled { until: wish.until, newest: Some((plan.slot, plan.canary_id)) });
            if wish.missed > 0 {
                missed(shared, &wish.route.name, wish.missed);
            }
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

    /// How long until a slot is due, at the most a second: a clock may be set, a pause may come.
    fn until_next_slot(&self, shared: &Shared, now: DateTime<Utc>) -> Duration {
        let active = shared.active.load();
        let next = active.routes.values().flat_map(|route| {
            route.streams.iter().filter_map(|stream| {
                let handled = self.handled.get(&(route.name.clone(), stream.kind))?;
                Some(stream.schedule.next_after(handled.until.max(now - stream.offset))? + stream.offset)
            })
        });
        let wait = next.min().map_or(LONGEST_WAIT, |next| (next - now).to_std().unwrap_or_default());
        wait.clamp(Duration::from_millis(5), LONGEST_WAIT)
    }
}

fn missed(shared: &Shared, route: &RouteName, slots: u64) {
    if let Some(counters) = shared.counters.route(route) {
        counters.missed_slots.add(slots);
    }
}
