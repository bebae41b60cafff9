//! Makes the plan of one canary.

use super::{active::ActiveRoute, shared::Shared};
use crate::{
    domain::{
        canary::{CanaryKind, Plan},
        route::{CanaryId, IdempotencyKey},
        traceparent::traceparent,
    },
    store::{Lease, PlanRequest},
};
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

/// The plan of a canary of this kind and instant.
pub fn plan(
    shared: &Shared,
    route: &ActiveRoute,
    kind: CanaryKind,
    slot: DateTime<Utc>,
    parent: Option<CanaryId>,
    now: DateTime<Utc>,
) -> PlanRequest {
    let canary_id = CanaryId(Uuid::now_v7());
    let config = &route.config;
    let plan = Plan {
        canary_id,
        key: IdempotencyKey::derive(&route.name, &shared.location, kind, slot),
        route: route.name.clone(),
        location: shared.location.clone(),
        kind,
        slot,
        planned_at: now,
        deadline: config.deadline.delta(),
        settle: config.settle.delta(),
        follow_for: config.follow_for.delta(),
        ledger_overlap: route.ledger_overlap,
        expected_end: config.expected_end,
        has_ledger: config.ledger.is_some(),
        has_sink: config.receipt.is_some(),
        traceparent: traceparent(canary_id),
        parent,
    };
    // Where no submission is ever known, the verdict is due from the plan.
    let next_look = now + plan.deadline + plan.settle;
    PlanRequest { plan, hourly_cap: config.hourly_cap, next_look }
}

/// A lease that outlives all submissions of one canary on this route.
pub fn lease(shared: &Shared, longest: TimeDelta, now: DateTime<Utc>) -> Lease {
    Lease { owner: shared.owner.clone(), until: now + longest }
}

/// How long all submissions of one canary of this route may take, with their waits, and then some.
pub fn longest_submission(route: &ActiveRoute, shared: &Shared, kind: CanaryKind) -> TimeDelta {
    use crate::config::acceptance::Acceptance;
    let active = shared.active.load();
    let name = &route.stream(kind).acceptance;
    let Some(Acceptance::Http(http)) = active.config.acceptances.get(name) else {
        return TimeDelta::seconds(60);
    };
    let tries = i32::try_from(http.max_submissions).unwrap_or(i32::MAX).min(10);
    let waits = http.resubmit_after.delta() * ((1 << tries) - 1);
    http.total_timeout.delta() * (tries + 1) + waits + TimeDelta::seconds(15)
}
