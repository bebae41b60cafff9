//! The pure heart of the follower: from what is known of a canary and what was just observed to what is written.

use crate::{
    domain::{
        canary::{Canary, Event},
        disagreement::disagreements,
        evidence::LedgerRow,
        following::{next_look, stopped_at},
        outcome::Disposition,
        route::{IdempotencyKey, NotificationId},
        verdict::{Class, SinkState},
    },
    ledger::{Found, Lookup},
    store::{Decision, Stored},
};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// What was observed of one canary in one pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// A reading of the ledger: its time, and the row, if there was one.
    pub reading: Option<(DateTime<Utc>, Option<LedgerRow>)>,
    /// A self-receipt at the canary's receiver between its deadline and its settlement.
    pub proof: Option<DateTime<Utc>>,
}

/// Whether a look at `now` needs a proof that the sink could be reached.
pub fn needs_proof(canary: &Canary, now: DateTime<Utc>) -> bool {
    now >= canary.settles_at()
        && canary.sink.state(canary.deadline(), canary.plan.settle) == SinkState::Unobserved
}

/// Decides on one canary. Pure: the same inputs give the same decision, on whatever replica.
///
/// Observations enter the history only when they change what is known, so that it stays short however long a canary is followed.
pub fn decide(stored: &Stored, observed: Observed, now: DateTime<Utc>) -> Decision {
    let mut canary = stored.canary.clone();
    let mut events = Vec::new();
    if let Some((as_of, row)) = observed.reading {
        join_if_new(&mut canary, &mut events, Event::LedgerRead { as_of, row }, now);
    }
    if let Some(at) = observed.proof {
        join_if_new(&mut canary, &mut events, Event::SinkProven { at }, now);
    }
    let mut stopped = None;
    if let Some(judgement) = canary.judge(now) {
        let event = match canary.standing() {
            None => Some(Event::Settled(judgement)),
            Some(standing) if standing.verdict != judgement.verdict => Some(Event::Corrected(judgement)),
            Some(_) => None,
        };
        if let Some(event) = event {
            if judgement.class != Class::Good {
                stopped = stopped_at(&canary, judgement.verdict, now);
            }
            canary.apply(&event);
            events.push(event);
        }
    }
    for kind in disagreements(&canary, now).difference(&canary.disagreements.clone()) {
        let event = Event::Disagreed { at: now, kind: *kind };
        canary.apply(&event);
        events.push(event);
    }
    Decision {
        canary_id: canary.plan.canary_id,
        version: stored.version,
        events,
        stopped,
        next_look: next_look(&canary, now),
    }
}

fn join_if_new(canary: &mut Canary, events: &mut Vec<Event>, event: Event, now: DateTime<Utc>) {
    let mut joined = canary.clone();
    joined.apply(&event);
    let row = |c: &Canary| c.ledger.row.as_ref().map(|(_, row)| row.clone());
    let is_new = joined.views(now) != canary.views(now)
        || row(&joined) != row(canary)
        || disagreements(&joined, now) != disagreements(canary, now);
    if is_new {
        *canary = joined;
        events.push(event);
    }
}

/// What a lookup says of one canary: every notification found under its key or one of its ids, as one row.
pub fn row_of(lookup: &Lookup, key: &IdempotencyKey, ids: &BTreeSet<&NotificationId>) -> Option<LedgerRow> {
    let is_ours = |found: &&Found| found.key.as_ref() == Some(key) || ids.contains(&found.notification_id);
    lookup.found.iter().filter(is_ours).map(|found| found.row.clone()).reduce(merge)
}

/// Two notifications under one key, as one row: it stands where the one stands that went furthest towards the customer.
fn merge(one: LedgerRow, other: LedgerRow) -> LedgerRow {
    let rank = |row: &LedgerRow| match row.disposition {
        Disposition::Delivered => 3,
        Disposition::Pending => 2,
        Disposition::PermanentlyRejected => 1,
        Disposition::Suppressed => 0,
    };
    let (mut first, second) = if rank(&one) >= rank(&other) { (one, other) } else { (other, one) };
    first.notification_ids.extend(second.notification_ids);
    first.attempts.extend(second.attempts);
    first.accepted_at = match (first.accepted_at, second.accepted_at) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    first
}
