//! Our own trouble before the deadline: what is missing, late or refused says something only where nothing of ours can have hidden more.

use super::{instant, plan};
use chrono::TimeDelta;
use delivery_canary::{
    domain::{
        canary::{Canary, Event, Plan},
        evidence::{ArrivalRefusal, Content, Receipt, RefusalReason, Submission, SubmissionResult},
        following::{Stopped, stopped_at},
        verdict::{ExpectedEnd, Verdict},
        watch::{Mark, MarkKind, Watch},
    },
    monitor::decide::{Observed, decide, needs_watch},
    store::Stored,
};
use std::sync::Arc;

fn submitted(result: SubmissionResult) -> Event {
    Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: instant(0),
        ended_at: instant(1),
        status: None,
        result,
    })
}

fn accepted() -> Event {
    submitted(SubmissionResult::Accepted { notification_id: None })
}

fn unreachable() -> Event {
    submitted(SubmissionResult::Refused { reason: RefusalReason::Unreachable })
}

fn arrived(seconds: i64, content: Content) -> Event {
    Event::Received(Receipt {
        at: instant(seconds),
        content,
        digest: String::new(),
        message: None,
        correlated: None,
        arrival_id: seconds.to_string(),
    })
}

fn refused(seconds: i64, reason: ArrivalRefusal) -> Event {
    Event::ArrivalRefused { at: instant(seconds), reason }
}

/// Proven at this second; the plan's deadline is at 61 and its settlement at 91.
fn proven(seconds: i64) -> Event {
    Event::SinkProven { at: instant(seconds) }
}

fn watched() -> Event {
    Event::SinkWatched { from: instant(0), until: instant(61) }
}

fn verdict_of(plan: Plan, events: &[Event], seconds: i64) -> Option<Verdict> {
    Canary::fold(plan, events).judge(instant(seconds)).map(|judgement| judgement.verdict)
}

#[test]
fn what_our_own_trouble_may_hide_is_undetermined() {
    use ArrivalRefusal::{TooLarge, Unavailable, Unproven, WrongRoute};
    let whole = |seconds| arrived(seconds, Content::Intact);
    let cases: Vec<(&str, Vec<Event>, Verdict)> = vec![
        ("nothing came, and our sink was well", vec![proven(70), watched()], Verdict::Overdue),
        ("nothing came, with a gap in our own sight", vec![proven(70)], Verdict::Undetermined),
        ("late, and our sink was well", vec![whole(80), proven(70), watched()], Verdict::Late),
        ("late, with a gap that touches the deadline", vec![whole(80), proven(85)], Verdict::Undetermined),
        ("in time, whatever was proven", vec![whole(50)], Verdict::OnTime),
        ("answered 503", vec![refused(50, Unavailable), proven(70), watched()], Verdict::Undetermined),
        ("answered 503, and sent again in time", vec![refused(40, Unavailable), whole(50)], Verdict::OnTime),
        (
            "answered 503 in time, and sent again too late",
            vec![refused(50, Unavailable), whole(80), proven(70), watched()],
            Verdict::Undetermined,
        ),
        (
            "answered 503 when it was late already",
            vec![refused(70, Unavailable), whole(80), proven(70), watched()],
            Verdict::Late,
        ),
        (
            "its route was taken away",
            vec![refused(50, WrongRoute), proven(70), watched()],
            Verdict::Undetermined,
        ),
        ("too large", vec![refused(50, TooLarge), proven(70), watched()], Verdict::Malformed),
        ("too large, and then whole", vec![refused(40, TooLarge), whole(50)], Verdict::OnTime),
        ("a stranger with our token", vec![refused(50, Unproven), proven(70), watched()], Verdict::Overdue),
    ];
    for (what, mut events, expected) in cases {
        events.push(accepted());
        assert_eq!(verdict_of(plan(), &events, 95), Some(expected), "{what}");
        let canary = Canary::fold(plan(), &events);
        let stopped = stopped_at(&canary, expected, instant(95));
        match what {
            "too large" => assert_eq!(stopped, Some(Stopped::Content)),
            "a stranger with our token" => assert_eq!(stopped, Some(Stopped::Sink), "{what}"),
            _ if expected == Verdict::Undetermined => assert_eq!(stopped, Some(Stopped::Monitor), "{what}"),
            _ => {}
        }
    }
}

#[test]
fn a_late_arrival_waits_for_its_proof_until_the_settlement_and_no_longer() {
    let late = [accepted(), arrived(65, Content::Intact)];
    assert_eq!(verdict_of(plan(), &late, 66), None);
    assert_eq!(verdict_of(plan(), &late, 91), Some(Verdict::Undetermined));
    let seen = [&late[..], &[watched()]].concat();
    assert_eq!(verdict_of(plan(), &seen, 66), Some(Verdict::Late));
    let unwanted = Plan { expected_end: ExpectedEnd::Suppressed, ..plan() };
    assert_eq!(
        verdict_of(unwanted, &late, 66),
        Some(Verdict::Late),
        "here each arrival is bad, whenever it comes"
    );
}

#[test]
fn no_connection_counts_only_where_our_own_network_is_proven() {
    assert_eq!(verdict_of(plan(), &[unreachable()], 5), None);
    assert_eq!(verdict_of(plan(), &[unreachable()], 91), Some(Verdict::Undetermined));
    assert_eq!(
        verdict_of(plan(), &[unreachable(), proven(-1)], 91),
        Some(Verdict::Undetermined),
        "before it left"
    );
    assert_eq!(verdict_of(plan(), &[unreachable(), proven(3)], 5), Some(Verdict::Refused));
    let without_sink = Plan { has_sink: false, ..plan() };
    assert_eq!(
        verdict_of(without_sink, &[unreachable()], 5),
        Some(Verdict::Refused),
        "nothing could prove it"
    );
    let by_status = submitted(SubmissionResult::Refused { reason: RefusalReason::Status });
    assert_eq!(verdict_of(plan(), std::slice::from_ref(&by_status), 5), Some(Verdict::Refused));
    let both = [unreachable(), by_status];
    assert_eq!(verdict_of(plan(), &both, 5), Some(Verdict::Refused), "it was reached once");
}

/// The verdict of a look at this second, with the record of a receiver that proves itself at most every five seconds.
fn decided(events: &[Event], proofs: &[i64], opened: &[i64], seconds: i64) -> Option<Verdict> {
    let canary = Canary::fold(plan(), events);
    let now = instant(seconds);
    assert!(needs_watch(&canary, now).is_some());
    let mark = |kind| move |second: &i64| Mark { at: instant(*second), kind };
    let mut marks: Vec<Mark> = proofs.iter().map(mark(MarkKind::Proof)).collect();
    marks.extend(opened.iter().map(mark(MarkKind::Opened)));
    marks.sort_by_key(|mark| mark.at);
    let watch = Some(Arc::new(Watch { marks, bound: TimeDelta::seconds(5) }));
    let stored = Stored { canary: canary.clone(), version: 1, next_look: None, erased: false };
    let decision = decide(&stored, Observed { reading: None, watch }, now);
    let mut after = canary;
    decision.events.iter().for_each(|event| after.apply(event));
    after.standing().map(|judgement| judgement.verdict)
}

#[test]
fn a_look_reads_the_record_of_the_receiver() {
    let steady: Vec<i64> = (-2..30).map(|n| 3 * n).collect();
    let with_a_gap: Vec<i64> = steady.iter().copied().filter(|s| !(20..32).contains(s)).collect();
    let frozen: Vec<i64> = steady.iter().copied().filter(|s| !(56..68).contains(s)).collect();
    let late = [accepted(), arrived(69, Content::Intact)];
    assert_eq!(decided(&[accepted()], &steady, &[], 92), Some(Verdict::Overdue));
    assert_eq!(decided(&[accepted()], &with_a_gap, &[], 92), Some(Verdict::Undetermined));
    assert_eq!(decided(&[accepted()], &steady, &[31], 92), Some(Verdict::Undetermined), "a restart");
    assert_eq!(decided(&[accepted()], &[], &[], 92), Some(Verdict::Undetermined));
    assert_eq!(decided(&late, &steady, &[], 70), Some(Verdict::Late));
    assert_eq!(decided(&late, &frozen, &[], 92), Some(Verdict::Undetermined));
    assert_eq!(decided(&late, &steady[..23], &[], 62), None, "the next proof may yet come");
    assert_eq!(decided(&[unreachable()], &[2], &[], 3), Some(Verdict::Refused));
    assert_eq!(decided(&[unreachable()], &[], &[], 3), None);
}
