//! The end of following: what is lost is called so, also where the ledger is read from a replica that lags, or a look fails.

use super::{instant, plan};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    domain::{
        canary::{Canary, Event},
        evidence::{LedgerRow, Submission, SubmissionResult},
        outcome::Disposition,
        route::NotificationId,
        verdict::Verdict,
    },
    monitor::decide::{Observed, decide},
    store::Stored,
};
use std::collections::BTreeSet;

/// A reading of the ledger: its time, and the row.
type Reading = (DateTime<Utc>, Option<LedgerRow>);

/// A canary that was accepted and never arrived, though it could have.
fn accepted() -> Canary {
    let id = Some(NotificationId::from_text("n-1"));
    let submitted = Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: instant(0),
        ended_at: instant(1),
        status: Some(202),
        result: SubmissionResult::Accepted { notification_id: id },
    });
    let watched = Event::SinkWatched { from: instant(0), until: instant(61) };
    Canary::fold(plan(), [&submitted, &watched, &Event::SinkProven { at: instant(70) }])
}

fn row(disposition: Disposition) -> LedgerRow {
    LedgerRow {
        notification_ids: BTreeSet::from([NotificationId::from_text("n-1")]),
        accepted_at: Some(instant(1)),
        disposition,
        cause: None,
        attempts: BTreeSet::new(),
        has_policy_version: false,
    }
}

/// Looks at it whenever a look is due, until it is closed: its verdicts, and how long after the end of following it was closed.
fn followed(read: impl Fn(DateTime<Utc>) -> Option<Reading>) -> (Vec<Verdict>, TimeDelta) {
    let mut stored = Stored { canary: accepted(), version: 1, next_look: None, erased: false };
    let mut now = stored.canary.settles_at();
    loop {
        let decision = decide(&stored, Observed { reading: read(now), watch: None }, now);
        decision.events.iter().for_each(|event| stored.canary.apply(event));
        let Some(next) = decision.next_look else {
            let verdicts = stored.canary.judgements.iter().map(|judgement| judgement.verdict).collect();
            return (verdicts, now - stored.canary.followed_until());
        };
        assert!(next > now);
        now = next;
    }
}

#[test]
fn a_row_that_is_not_there_is_lost_on_a_primary_on_a_replica_and_after_a_failed_look() {
    let end = accepted().followed_until();
    let lost = vec![Verdict::Overdue, Verdict::Lost];
    for lag in [0, 2, 55] {
        let lag = TimeDelta::seconds(lag);
        let (verdicts, after) = followed(|now| Some((now - lag, None)));
        assert_eq!(verdicts, lost, "{lag} behind");
        assert!(after <= lag * 2 + TimeDelta::seconds(5), "{lag} behind: it took {after}");
    }
    let fails_at_the_end = |now| (now < end || now > end + TimeDelta::seconds(20)).then_some((now, None));
    assert_eq!(followed(fails_at_the_end).0, lost);
}

#[test]
fn what_a_replica_shows_late_counts() {
    let end = accepted().followed_until();
    let lag = TimeDelta::seconds(2);
    let delivered_at_the_end = |now: DateTime<Utc>| {
        let as_of = now - lag;
        let disposition = if as_of < end { Disposition::Pending } else { Disposition::Delivered };
        Some((as_of, Some(row(disposition))))
    };
    assert_eq!(followed(delivered_at_the_end).0, [Verdict::Overdue, Verdict::Lost]);
    let pending = |now| Some((now - lag, Some(row(Disposition::Pending))));
    let (verdicts, after) = followed(pending);
    assert_eq!(verdicts, [Verdict::Overdue, Verdict::Unknown]);
    assert!(after <= TimeDelta::seconds(10), "{after}");
    let (verdicts, after) = followed(|now| Some((now - lag, Some(row(Disposition::Delivered)))));
    assert_eq!((verdicts, after), (vec![Verdict::Overdue, Verdict::Lost], TimeDelta::zero()));
}

#[test]
fn a_ledger_that_is_never_read_leaves_it_unknown_in_the_end() {
    let (verdicts, after) = followed(|_| None);
    assert_eq!(verdicts, [Verdict::Overdue, Verdict::Unknown]);
    assert!((TimeDelta::hours(1)..TimeDelta::minutes(62)).contains(&after), "{after}");
    let seen_before = accepted().followed_until() - TimeDelta::minutes(3);
    let (verdicts, _) = followed(|now| (now < seen_before).then_some((now, None)));
    assert_eq!(verdicts, [Verdict::Overdue, Verdict::Unknown], "what was not there then may be there now");
}
