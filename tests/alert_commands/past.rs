//! A past that is written into a store: canaries with their judgements, by the hundred.

use super::support::{accepted, arrived, judged, lease, plan, wish};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    domain::{
        canary::{CanaryKind, Event},
        route::{CanaryId, IdempotencyKey, Location},
        verdict::Verdict,
    },
    store::{Append, Decision, Filter, Planned, Store},
};
use std::{collections::HashMap, sync::OnceLock};

/// So many seconds after the beginning of the past, a full hour some days ago.
pub fn at(seconds: i64) -> DateTime<Utc> {
    static BEGIN: OnceLock<DateTime<Utc>> = OnceLock::new();
    let begin = *BEGIN.get_or_init(|| {
        let days_ago = Utc::now() - TimeDelta::days(20);
        days_ago
            - TimeDelta::nanoseconds(
                days_ago.timestamp_nanos_opt().expect("it is near").rem_euclid(3_600_000_000_000),
            )
    });
    begin + TimeDelta::seconds(seconds)
}

/// The route of these tests.
pub const ROUTE: &str = "receipts";

/// One canary of the past.
#[derive(Clone, Debug)]
pub struct Told {
    pub location: &'static str,
    pub kind: CanaryKind,
    pub slot: DateTime<Utc>,
    /// When it arrived, after its acceptance.
    pub arrived_after: Option<TimeDelta>,
    /// Its judgements, by time.
    pub judgements: Vec<(DateTime<Utc>, Verdict)>,
}

impl Told {
    /// One that arrives after so many milliseconds, and is judged at once.
    pub fn good(slot: DateTime<Utc>, millis: i64) -> Self {
        let after = TimeDelta::milliseconds(millis);
        Self {
            location: "here",
            kind: CanaryKind::Scheduled,
            slot,
            arrived_after: Some(after),
            judgements: vec![(slot + after, Verdict::OnTime)],
        }
    }

    /// One that doesn't arrive, which is known two minutes later.
    pub fn bad(slot: DateTime<Utc>) -> Self {
        let known = slot + TimeDelta::minutes(2);
        Self { arrived_after: None, judgements: vec![(known, Verdict::Overdue)], ..Self::good(slot, 0) }
    }

    pub fn at(self, location: &'static str) -> Self {
        Self { location, ..self }
    }

    pub fn confirming(self) -> Self {
        Self { kind: CanaryKind::Confirmation, ..self }
    }
}

/// Canaries in one write.
const AT_A_TIME: usize = 250;

/// Writes them, and gives their ids.
pub async fn write(store: &dyn Store, past: &[Told]) -> Vec<CanaryId> {
    let mut ids = Vec::new();
    for some in past.chunks(AT_A_TIME) {
        ids.extend(write_some(store, some).await);
    }
    ids
}

async fn write_some(store: &dyn Store, past: &[Told]) -> Vec<CanaryId> {
    let plans: Vec<_> = past
        .iter()
        .map(|told| {
            let location = Location::from_text(told.location);
            let mut plan = plan(ROUTE, told.kind, told.slot);
            plan.key = IdempotencyKey::derive(&plan.route, &location, told.kind, told.slot);
            plan.location = location;
            plan
        })
        .collect();
    let ids: Vec<CanaryId> = plans.iter().map(|plan| plan.canary_id).collect();
    let wishes: Vec<_> = plans.into_iter().map(|plan| wish(plan, 1_000)).collect();
    let until = past.iter().map(|told| told.slot).max().expect("there are some") + TimeDelta::seconds(30);
    let answers = store.plan(&wishes, &lease("one", until)).await.expect("plans");
    assert!(answers.iter().all(|answer| *answer == Planned::Ours), "{answers:?}");
    let appends: Vec<_> = ids.iter().zip(past).map(|(id, told)| append(*id, told)).collect();
    store.append(&appends).await.expect("appends");
    let rounds = past.iter().map(|told| told.judgements.len()).max().unwrap_or(0);
    for round in 0..rounds {
        let versions = versions(store, past).await;
        let decisions: Vec<_> = ids
            .iter()
            .zip(past)
            .filter_map(|(id, told)| {
                let (at, verdict) = *told.judgements.get(round)?;
                let judgement = judged(verdict, at);
                let event = if round == 0 { Event::Settled(judgement) } else { Event::Corrected(judgement) };
                Some(Decision {
                    canary_id: *id,
                    version: versions[id],
                    events: vec![event],
                    stopped: None,
                    next_look: None,
                })
            })
            .collect();
        let answers = store.decide(&decisions).await.expect("decides");
        assert!(answers.iter().all(|answer| *answer), "{answers:?}");
    }
    ids
}

fn append(canary_id: CanaryId, told: &Told) -> Append {
    let begun = accepted("n", told.slot);
    let due_from = begun.at();
    let arrival = told.arrived_after.map(|after| arrived("1", due_from + after));
    Append { canary_id, events: [begun].into_iter().chain(arrival).collect(), look_by: None, release: true }
}

async fn versions(store: &dyn Store, past: &[Told]) -> HashMap<CanaryId, i64> {
    let from = past.iter().map(|told| told.slot).min();
    let until = past.iter().map(|told| told.slot).max().map(|last| last + TimeDelta::microseconds(1));
    let filter = Filter { from, until, limit: 10_000, ..Filter::default() };
    let listed = store.list(&filter).await.expect("lists");
    listed.iter().map(|stored| (stored.canary.plan.canary_id, stored.version)).collect()
}
