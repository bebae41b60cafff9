//! Receipts of which there is more than one, and what of it is our own doing.

use super::{instant, plan};
use delivery_canary::domain::{
    canary::{Canary, Event},
    disagreement::{Disagreement, disagreements},
    evidence::{ArrivalRefusal, AttemptFact, Content, LedgerRow, Receipt},
    outcome::{Disposition, Outcome},
    route::NotificationId,
};
use std::collections::BTreeSet;

fn arrived(second: i64) -> Event {
    Event::Received(Receipt {
        at: instant(second),
        content: Content::Intact,
        digest: String::new(),
        message: None,
        correlated: None,
        arrival_id: second.to_string(),
    })
}

/// Whether these events show a duplicate, and more receipts than the ledger's one attempt.
fn found(events: &[Event]) -> (bool, bool) {
    let attempt = AttemptFact {
        attempt_id: "a-1".into(),
        outcome: Outcome::Delivered,
        at: Some(instant(2)),
        policy_version: None,
    };
    let row = LedgerRow {
        notification_ids: BTreeSet::from([NotificationId::from_text("n-1")]),
        accepted_at: None,
        disposition: Disposition::Delivered,
        cause: None,
        attempts: BTreeSet::from([attempt]),
        has_policy_version: false,
    };
    let read = Event::LedgerRead { as_of: instant(100), row: Some(row) };
    let all = disagreements(&Canary::fold(plan(), events.iter().chain([&read])), instant(100));
    (all.contains(&Disagreement::DuplicateReceipt), all.contains(&Disagreement::MoreReceiptsThanAttempts))
}

#[test]
fn a_repetition_that_we_asked_for_is_none_of_the_services() {
    assert_eq!(found(&[arrived(3), arrived(9)]), (true, true));
    let refused = |reason| Event::ArrivalRefused { at: instant(3), reason };
    let unavailable = refused(ArrivalRefusal::Unavailable);
    // It was written after all, when we had already said that it was not.
    assert_eq!(found(&[arrived(3), unavailable.clone(), arrived(9)]), (false, false));
    assert_eq!(found(&[unavailable, arrived(9)]), (false, false));
    assert_eq!(found(&[arrived(3), refused(ArrivalRefusal::TooLarge), arrived(9)]), (true, true));
}
