//! A definite refusal: settled at once, and corrected by what comes in spite of it.

use super::{instant, plan};
use delivery_canary::domain::{
    canary::{Canary, Event},
    evidence::{Content, Receipt, RefusalReason, Submission, SubmissionResult},
    following::next_look,
    verdict::Verdict,
};

#[test]
fn a_refusal_is_settled_at_once_and_a_receipt_corrects_it() {
    let refused = Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: instant(0),
        ended_at: instant(1),
        status: Some(422),
        result: SubmissionResult::Refused { reason: RefusalReason::Status },
    });
    let now = instant(2);
    let mut canary = Canary::fold(plan(), [&refused]);
    assert!(
        next_look(&canary, now).unwrap() < instant(3),
        "it is looked at without waiting for its deadline"
    );
    let judgement = canary.judge(now).unwrap();
    assert_eq!(judgement.verdict, Verdict::Refused);
    canary.apply(&Event::Settled(judgement));
    assert!(
        next_look(&canary, now).is_some_and(|at| at < canary.followed_until()),
        "it is followed all the same"
    );
    let arrived = Event::Received(Receipt {
        at: instant(50),
        content: Content::Intact,
        digest: String::new(),
        message: None,
        correlated: None,
        arrival_id: "1".into(),
    });
    canary.apply(&arrived);
    assert_eq!(
        canary.judge(instant(51)).unwrap().verdict,
        Verdict::OnTime,
        "lines 1 to 3 come before line 4"
    );
    // What our own guard stopped was no answer of the service's.
    let guarded = Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: instant(0),
        ended_at: instant(1),
        status: None,
        result: SubmissionResult::Refused { reason: RefusalReason::Guard },
    });
    assert_eq!(Canary::fold(plan(), [&guarded]).judge(now), None);
}
