//! The pure heart of the follower: from what is known of a canary and what was just observed to what is written.

use crate::{
    domain::{
        canary::{Canary, Event},
        disagreement::disagreements,
        evidence::LedgerRow,
        following::{next_look, stopped_at},
        outcome::Disposition,
        route::{IdempotencyKey, NotificationId},
        verdict::{Class, SinkState, Verdict},
        watch::Watch,
    },
    ledger::{Found, Lookup},
    store::{Decision, Stored},
};
use chrono::{DateTime, Utc};
use std::{collections::BTreeSet, sync::Arc};

/// What was observed of one canary in one pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// A reading of the ledger: its time, and the row, if there was one.
    pub reading: Option<(DateTime<Utc>, Option<LedgerRow>)>,
    /// The record of the canary's receiver, over the span that [`needs_watch`] names at least.
    pub watch: Option<Arc<Watch>>,
}

/// The span over which a look at `now` needs the record of the receiver; nothing where no message to ourselves can change what is known.
pub fn needs_watch(canary: &Canary, now: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let missing = now >= canary.settles_at() && canary.sink_state() == SinkState::Unobserved;
    let times = canary.sink_times();
    (missing || canary.awaits_proof()).then_some((times.from, times.settles_at))
}

/// What the record of the receiver says of this canary.
fn proofs(canary: &Canary, watch: &Watch) -> Vec<Event> {
    let times = canary.sink_times();
    let mut events = Vec::new();
    if canary.is_cut_off() {
        events.extend(watch.proof(times.from, times.settles_at).map(|at| Event::SinkProven { at }));
    }
    events.extend(watch.proof(times.deadline, times.settles_at).map(|at| Event::SinkProven { at }));
    if watch.covers(times.from, times.deadline) {
        events.push(Event::SinkWatched { from: times.from, until: times.deadline });
    }
    events.dedup();
    events
}

/// Decides on one canary. Pure: the same inputs give the same decision, on whatever replica.
///
/// Observations enter the history only when they change what is known, so that it stays short however long a canary is followed.
pub fn decide(stored: &Stored, observed: Observed, now: DateTime<Utc>) -> Decision {
    let mut canary = stored.canary.clone();
    let mut events = Vec::new();
    if let Some((as_of, row)) = observed.reading {
        join_if_new(&mut canary, &mut events, vec![Event::LedgerRead { as_of, row }], now);
    }
    if let Some(watch) = observed.watch.filter(|_| needs_watch(&canary, now).is_some()) {
        let proofs = proofs(&canary, &watch);
        join_if_new(&mut canary, &mut events, proofs, now);
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

/// Joins observations that say something only together.
fn join_if_new(canary: &mut Canary, events: &mut Vec<Event>, new: Vec<Event>, now: DateTime<Utc>) {
    let mut joined = canary.clone();
    new.iter().for_each(|event| joined.apply(event));
    let row = |c: &Canary| c.ledger.row.as_ref().map(|(_, row)| row.clone());
    // That a row is still as it was is new where it says how far the canary got by its deadline.
    let stage = |c: &Canary| stopped_at(c, Verdict::Overdue, now);
    let is_new = joined.views(now) != canary.views(now)
        || row(&joined) != row(canary)
        || (now >= canary.deadline() && stage(&joined) != stage(canary))
        || disagreements(&joined, now) != disagreements(canary, now);
    if is_new {
        *canary = joined;
        events.extend(new);
    }
}

/// What a lookup says of one canary: every notification found under its key or one of its ids, as one row.
///
/// A row under one of its ids that has another key is somebody else's: a service that answers one id for everything must not pass
/// that one off as each of its canaries. A key counts as ours when ours is in it: a service may keep it with a prefix of its own.
pub fn row_of(lookup: &Lookup, key: &IdempotencyKey, ids: &BTreeSet<&NotificationId>) -> Option<LedgerRow> {
    let is_ours = |found: &&Found| match &found.key {
        Some(theirs) => theirs.as_str().contains(key.as_str()),
        None => ids.contains(&found.notification_id),
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn found(id: &str, key: Option<&str>) -> Found {
        let notification_id = NotificationId::from_text(id);
        let row = LedgerRow {
            notification_ids: BTreeSet::from([notification_id.clone()]),
            accepted_at: None,
            disposition: Disposition::Delivered,
            cause: None,
            attempts: BTreeSet::new(),
            has_policy_version: false,
        };
        Found { notification_id, key: key.map(IdempotencyKey::from_text), row }
    }

    /// The ids of the row that is taken for that of the canary `dc-ours`, to which the service answered `n-1`.
    fn taken(rows: Vec<Found>) -> Option<Vec<String>> {
        let lookup = Lookup { as_of: DateTime::UNIX_EPOCH + TimeDelta::days(1), found: rows };
        let (key, id) = (IdempotencyKey::from_text("dc-ours"), NotificationId::from_text("n-1"));
        let row = row_of(&lookup, &key, &BTreeSet::from([&id]))?;
        Some(row.notification_ids.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_row_under_our_id_with_the_key_of_another_is_not_ours() {
        assert_eq!(taken(vec![found("n-1", Some("dc-theirs"))]), None);
        assert_eq!(taken(vec![found("n-1", Some("dc-ours"))]), Some(vec!["n-1".into()]));
        assert_eq!(taken(vec![found("n-1", Some("tenant:dc-ours"))]), Some(vec!["n-1".into()]));
        assert_eq!(taken(vec![found("n-1", None)]), Some(vec!["n-1".into()]), "the ledger has no keys");
        let both = vec![found("n-1", Some("dc-theirs")), found("n-2", Some("dc-ours"))];
        assert_eq!(taken(both), Some(vec!["n-2".into()]), "the id that was answered is not that of our row");
    }
}
