//! A canary's own history in the ledger: what of it contradicts itself, and what is allowed.

use super::{instant, plan};
use delivery_canary::domain::{
    canary::{Canary, Event},
    disagreement::{Disagreement, disagreements},
    evidence::{AttemptFact, LedgerRow},
    outcome::{Cause, Disposition, Outcome},
    route::NotificationId,
};
use std::collections::BTreeSet;

const OF_HISTORY: [Disagreement; 3] =
    [Disagreement::OutcomeRewritten, Disagreement::AttemptVanished, Disagreement::AttemptAfterTerminal];

/// A reading at this second: attempts by id and outcome, each begun as many tens of seconds after the slot as its place, and the cause of
/// what was rejected.
fn read(second: i64, attempts: &[(&str, Outcome)], cause: Option<Cause>) -> Event {
    let attempts = (0..).zip(attempts).map(|(place, (id, outcome))| AttemptFact {
        attempt_id: (*id).into(),
        outcome: *outcome,
        at: Some(instant(10 * place)),
        policy_version: None,
    });
    let row = LedgerRow {
        notification_ids: BTreeSet::from([NotificationId::from_text("n-1")]),
        accepted_at: None,
        disposition: Disposition::Pending,
        cause,
        attempts: attempts.collect(),
        has_policy_version: false,
    };
    Event::LedgerRead { as_of: instant(second), row: Some(row) }
}

fn found(events: &[Event]) -> Vec<Disagreement> {
    let of = |events: &[Event]| {
        let all = disagreements(&Canary::fold(plan(), events), instant(400));
        OF_HISTORY.into_iter().filter(|kind| all.contains(kind)).collect::<Vec<_>>()
    };
    let mut turned = events.to_vec();
    turned.reverse();
    assert_eq!(of(events), of(&turned), "in whatever order they came");
    of(events)
}

#[test]
fn what_goes_on_and_a_late_bounce_are_allowed() {
    use Outcome::{Delivered, PermanentRejection, Retryable, Unknown};
    let recipient = Some(Cause::Recipient);
    for events in [
        vec![read(100, &[("a", Unknown)], None), read(200, &[("a", Retryable), ("b", Delivered)], None)],
        vec![read(100, &[("a", Retryable)], None), read(200, &[("a", PermanentRejection)], recipient)],
        vec![read(100, &[("a", Delivered)], None), read(200, &[("a", PermanentRejection)], recipient)],
        vec![read(100, &[("a", Delivered), ("b", PermanentRejection)], recipient)],
    ] {
        assert_eq!(found(&events), [], "{events:?}");
    }
}

#[test]
fn what_is_changed_away_from_its_end_is_found() {
    use Outcome::{Delivered, PermanentRejection, Retryable, Suppressed};
    let (recipient, service) = (Some(Cause::Recipient), Some(Cause::Service));
    for (events, kind) in [
        (vec![read(100, &[("a", Delivered)], None), read(200, &[("a", Suppressed)], None)], 0),
        (vec![read(100, &[("a", Delivered)], None), read(200, &[("a", Retryable)], None)], 0),
        (vec![read(100, &[("a", Delivered)], None), read(200, &[("a", PermanentRejection)], service)], 0),
        (vec![read(100, &[("a", PermanentRejection)], recipient), read(200, &[("a", Delivered)], None)], 0),
        (
            vec![
                read(100, &[("a", Retryable), ("b", Delivered)], None),
                read(200, &[("a", Retryable)], None),
            ],
            1,
        ),
        (vec![read(100, &[("a", Delivered), ("b", Retryable)], None)], 2),
        (vec![read(100, &[("a", PermanentRejection), ("b", PermanentRejection)], recipient)], 2),
    ] {
        assert_eq!(found(&events), [OF_HISTORY[kind]], "{events:?}");
    }
}
