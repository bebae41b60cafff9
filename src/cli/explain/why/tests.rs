//! A table over the verdicts: each says what is known.

use super::*;
use crate::domain::{
    canary::{CanaryKind, Event, Plan},
    evidence::{AmbiguityReason, AttemptFact, Content, LedgerRow, Receipt, Submission, SubmissionResult},
    outcome::{Disposition, Outcome},
    route::{CanaryId, Channel, IdempotencyKey, Location, NotificationId, RouteName},
};
use chrono::TimeDelta;
use std::collections::BTreeSet;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + seconds, 0).expect("a time")
}

fn plan(expected_end: ExpectedEnd, has_ledger: bool) -> Plan {
    let (route, location) = (RouteName::new(Channel::Webhook, "receipts"), Location::from_text("here"));
    Plan {
        canary_id: CanaryId(uuid::Uuid::from_u128(7)),
        key: IdempotencyKey::derive(&route, &location, CanaryKind::Scheduled, at(0)),
        route,
        location,
        kind: CanaryKind::Scheduled,
        slot: at(0),
        planned_at: at(0),
        deadline: TimeDelta::seconds(60),
        settle: TimeDelta::seconds(30),
        follow_for: TimeDelta::seconds(600),
        ledger_overlap: TimeDelta::seconds(10),
        expected_end,
        has_ledger,
        has_sink: true,
        traceparent: String::new(),
        parent: None,
    }
}

fn submitted(status: Option<u16>, result: SubmissionResult) -> Event {
    Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: at(0),
        ended_at: at(0),
        status,
        result,
    })
}

fn accepted() -> Event {
    let notification_id = Some(NotificationId::from_text("n-1"));
    submitted(Some(202), SubmissionResult::Accepted { notification_id })
}

fn timed_out() -> Event {
    submitted(None, SubmissionResult::Ambiguous { reason: AmbiguityReason::Timeout })
}

fn answered_500(second: i64) -> Event {
    let result = SubmissionResult::Ambiguous { reason: AmbiguityReason::Status };
    Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: at(second),
        ended_at: at(second),
        status: Some(500),
        result,
    })
}

fn refusal() -> Event {
    submitted(Some(422), SubmissionResult::Refused { reason: RefusalReason::Status })
}

fn arrived(seconds: i64, content: Content) -> Event {
    Event::Received(Receipt {
        at: at(seconds),
        content,
        digest: String::new(),
        message: None,
        correlated: None,
        arrival_id: "a".into(),
    })
}

fn ledger(disposition: Option<Disposition>, attempts: &[Outcome]) -> Event {
    let row = disposition.map(|disposition| LedgerRow {
        notification_ids: BTreeSet::from([NotificationId::from_text("n-1")]),
        accepted_at: None,
        disposition,
        cause: None,
        attempts: (1..)
            .zip(attempts)
            .map(|(n, outcome)| AttemptFact {
                attempt_id: format!("a-{n}"),
                outcome: *outcome,
                at: Some(at(n)),
                policy_version: None,
            })
            .collect(),
        has_policy_version: false,
    });
    Event::LedgerRead { as_of: at(700), row }
}

fn sighted() -> [Event; 2] {
    [Event::SinkWatched { from: at(0), until: at(60) }, Event::SinkProven { at: at(70) }]
}

/// Judges a canary of these events, and explains it.
fn said(plan: Plan, events: Vec<Event>, judged: i64) -> (Verdict, String) {
    let mut canary = Canary::fold(plan, &events);
    let judgement = canary.judge(at(judged)).expect("its verdict is due");
    canary.apply(&Event::Settled(judgement));
    (judgement.verdict, why(&canary, at(judged)))
}

#[test]
fn each_verdict_says_what_is_known_and_stops_nothing_that_arrived() {
    let malformed = || Content::Malformed { failed: BTreeSet::from(["amount".to_owned()]) };
    let seen = |events: Vec<Event>| events.into_iter().chain(sighted()).collect::<Vec<_>>();
    let (early, late) = (100, 800);
    let expected: [(Verdict, &str, Vec<Event>, i64); 19] = [
        (
            Verdict::OnTime,
            "it arrived whole, within its deadline of 60s; the ledger was not read since, so what it has of this one is not known",
            seen(vec![accepted(), arrived(5, Content::Intact)]),
            early,
        ),
        (
            Verdict::OnTime,
            "it arrived whole, within its deadline of 60s",
            seen(vec![
                accepted(),
                arrived(5, Content::Intact),
                ledger(Some(Disposition::Delivered), &[Outcome::Delivered]),
            ]),
            early,
        ),
        (
            Verdict::Late,
            "it arrived whole, 12s after its deadline of 60s; nothing of it is missing, and the timeline shows where the time went",
            seen(vec![
                accepted(),
                arrived(72, Content::Intact),
                ledger(Some(Disposition::Delivered), &[Outcome::Delivered]),
            ]),
            early,
        ),
        (
            Verdict::Late,
            "it arrived whole, 12s after its deadline of 60s; nothing of it is missing; the ledger was not read late enough, so it is not known \
             where the time went",
            seen(vec![accepted(), arrived(72, Content::Intact)]),
            early,
        ),
        (
            Verdict::Malformed,
            "it arrived, and its content was not as expected",
            seen(vec![accepted(), arrived(5, malformed())]),
            early,
        ),
        (
            Verdict::Refused,
            "the service refused it with status 422; it stopped at: acceptance",
            seen(vec![refusal()]),
            early,
        ),
        (
            Verdict::Undetermined,
            "nothing arrived, and nothing proves that it could have, all through its time: the monitor was blind, which says nothing \
             of the service",
            vec![accepted()],
            early,
        ),
        (
            Verdict::Suppressed,
            "the ledger says that policy kept it back",
            seen(vec![accepted(), ledger(Some(Disposition::Suppressed), &[Outcome::Suppressed])]),
            early,
        ),
        (
            Verdict::Rejected,
            "the ledger says that it was permanently rejected; it stopped at: provider",
            seen(vec![
                accepted(),
                ledger(Some(Disposition::PermanentlyRejected), &[Outcome::PermanentRejection]),
            ]),
            early,
        ),
        (
            Verdict::Overdue,
            "accepted, and not arrived within 60s; it may still come, and is followed until 2026-09-21T14:23:20.000Z; as far as can \
             be seen it stands at: provider",
            seen(vec![accepted(), ledger(Some(Disposition::Pending), &[Outcome::Retryable])]),
            early,
        ),
        (
            Verdict::Overdue,
            "accepted, and not arrived within 60s; it may still come, and is followed until 2026-09-21T14:23:20.000Z; the ledger was \
             not read late enough, so it is not known whether it stands at the provider or before",
            seen(vec![accepted()]),
            early,
        ),
        (
            Verdict::Lost,
            "accepted, and never arrived, though the ledger has it delivered or has no row of it; it stopped at: sink",
            seen(vec![accepted(), ledger(Some(Disposition::Delivered), &[Outcome::Delivered])]),
            late,
        ),
        (
            Verdict::Unknown,
            "whether the service accepted it is not known (no answer came in time), and nothing arrived: the ledger has no row of it",
            seen(vec![timed_out(), ledger(None, &[])]),
            early,
        ),
        (
            Verdict::Unknown,
            "whether the service accepted it is not known (no answer came in time), and nothing arrived: the ledger was not read late enough",
            seen(vec![timed_out()]),
            early,
        ),
        (
            Verdict::Unknown,
            "whether the service accepted it is not known (it answered 500, three times), and nothing arrived (if 500 of this service is a \
             definite no, write it into `refused_statuses` of its acceptance): the ledger has no row of it",
            seen(vec![answered_500(0), answered_500(1), answered_500(2), ledger(None, &[])]),
            early,
        ),
        (
            Verdict::Unknown,
            "it was accepted, and nothing arrived for as long as it was followed; whether it is lost or still on its way is not \
             known: the ledger was not read late enough",
            seen(vec![accepted()]),
            // A ledger that says nothing is asked an hour longer.
            late + 3_600,
        ),
        (
            Verdict::Unknown,
            "it was accepted, and nothing arrived for as long as it was followed; whether it is lost or still on its way is not \
             known: the ledger has it pending, without an attempt",
            seen(vec![accepted(), ledger(Some(Disposition::Pending), &[])]),
            late,
        ),
        (
            Verdict::Unknown,
            "it was accepted, and nothing arrived for as long as it was followed; whether it is lost or still on its way is not \
             known: the ledger has it pending, its newest attempt `unknown`",
            seen(vec![
                timed_out(),
                ledger(Some(Disposition::Pending), &[Outcome::Retryable, Outcome::Unknown]),
            ]),
            late,
        ),
        (
            Verdict::Unknown,
            "it was accepted, and nothing arrived for as long as it was followed; whether it is lost or still on its way is not \
             known: the ledger was not read late enough; something came with its token, from a sender that did not prove itself",
            seen(vec![accepted(), Event::ArrivalRefused { at: at(5), reason: ArrivalRefusal::Unproven }]),
            // A ledger that says nothing is asked an hour longer.
            late + 3_600,
        ),
    ];
    let mut verdicts = BTreeSet::new();
    for (verdict, words, events, judged) in expected {
        let (found, text) = said(plan(ExpectedEnd::Delivered, true), events, judged);
        assert_eq!((found, text.as_str()), (verdict, words));
        verdicts.insert(verdict);
    }
    assert_eq!(verdicts, BTreeSet::from(Verdict::ALL), "each verdict is in the table");
}

#[test]
fn without_a_ledger_that_is_what_could_not_be_seen() {
    let events = [timed_out()].into_iter().chain(sighted()).collect();
    let (verdict, text) = said(plan(ExpectedEnd::Delivered, false), events, 100);
    assert_eq!(verdict, Verdict::Unknown);
    assert!(text.ends_with("and nothing arrived: the route has no ledger that could say more"), "{text}");
}

#[test]
fn a_ledger_is_not_blamed_before_its_row_had_to_be_there() {
    let plan = || Plan { ledger_overlap: TimeDelta::seconds(300), ..plan(ExpectedEnd::Delivered, true) };
    let empty = || Event::LedgerRead { as_of: at(95), row: None };
    let with = |first: Event| [first, empty()].into_iter().chain(sighted()).collect::<Vec<_>>();
    let (verdict, text) = said(plan(), with(accepted()), 100);
    assert_eq!(verdict, Verdict::Overdue);
    let until = at(300).to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    assert!(
        text.ends_with(&format!(
            "; a row of it may come into the ledger until {until} (`overlap`), so it is not known whether it stands at the \
             provider or before"
        )),
        "{text}"
    );
    let (verdict, text) = said(plan(), with(answered_500(0)), 100);
    assert_eq!(verdict, Verdict::Unknown);
    assert!(
        text.ends_with(&format!(
            "it was too early to say that the ledger has no row of it, since one may come until {until} (`overlap`)"
        )),
        "{text}"
    );
    let (_, text) = said(plan(), with(accepted()), 301);
    assert!(text.contains("the ledger was not read late enough"), "{text}");
}

#[test]
fn another_end_than_the_expected_is_said_to_be_one() {
    let arrives = vec![accepted(), arrived(5, Content::Intact)];
    let (_, text) = said(plan(ExpectedEnd::Suppressed, true), arrives, 100);
    assert!(text.ends_with("within its deadline of 60s; the route expects that it is suppressed"), "{text}");
    let rejected = ledger(Some(Disposition::PermanentlyRejected), &[Outcome::PermanentRejection]);
    let rejected = [accepted(), rejected].into_iter().chain(sighted()).collect();
    let (_, text) = said(plan(ExpectedEnd::Rejected, true), rejected, 100);
    assert_eq!(text, "the ledger says that it was permanently rejected, as the route expects");
}

#[test]
fn another_monitor_with_the_same_location_is_thought_of() {
    let accepted_at = |seconds: i64| {
        let Event::LedgerRead { as_of, row: Some(row) } =
            ledger(Some(Disposition::Delivered), &[Outcome::Delivered])
        else {
            panic!("a row was read");
        };
        Event::LedgerRead { as_of, row: Some(LedgerRow { accepted_at: Some(at(seconds)), ..row }) }
    };
    let disagreed = Event::Disagreed { at: at(100), kind: Disagreement::DeliveredWithoutReceipt };
    let lost = |row: Event, more: &[Event]| {
        let events = [accepted(), row].into_iter().chain(sighted()).chain(more.iter().cloned()).collect();
        said(plan(ExpectedEnd::Delivered, true), events, 800)
    };
    let hint = "a location of its own";
    for (row, more, words) in [
        (
            accepted_at(-30),
            &[][..],
            Some("the ledger has it accepted before we submitted it: another monitor"),
        ),
        (accepted_at(-1), &[], None),
        (accepted_at(0), std::slice::from_ref(&disagreed), Some("if another monitor with the same location")),
    ] {
        let (verdict, text) = lost(row, more);
        assert_eq!(verdict, Verdict::Lost);
        assert_eq!(text.contains(hint), words.is_some(), "{text}");
        assert!(words.is_none_or(|words| text.contains(words)), "{text}");
    }
    let events = [accepted(), arrived(5, Content::Intact), accepted_at(-30), disagreed];
    let (verdict, text) =
        said(plan(ExpectedEnd::Delivered, true), events.into_iter().chain(sighted()).collect(), 800);
    assert!(verdict == Verdict::OnTime && !text.contains(hint), "what arrived needs no such hint: {text}");
}

#[test]
fn what_has_no_verdict_is_overdue_so_far_from_its_deadline_on() {
    let said = |expected_end, events: Vec<Event>, now| {
        why(&Canary::fold(plan(expected_end, true), &events), at(now))
    };
    let due = "2026-09-21T14:14:50.000Z";
    for (expected_end, events, now, words) in [
        (ExpectedEnd::Delivered, vec![accepted()], 60, "it is on its way; verdict by"),
        (ExpectedEnd::Delivered, vec![accepted()], 72, "it is overdue so far, by 12.0s; verdict by"),
        (
            ExpectedEnd::Delivered,
            vec![accepted()],
            95,
            "it is overdue so far, by 35.0s; its verdict was due at",
        ),
        (
            ExpectedEnd::Suppressed,
            vec![accepted()],
            72,
            "it is not judged yet, 12.0s after its deadline; verdict by",
        ),
        (
            ExpectedEnd::Delivered,
            vec![accepted(), arrived(65, Content::Intact)],
            72,
            "it has arrived, and not judged yet; verdict by",
        ),
    ] {
        assert_eq!(said(expected_end, events, now), format!("{words} {due}"));
    }
}

#[test]
fn a_row_that_was_pending_before_the_deadline_does_not_say_where_it_stands_now() {
    let Event::LedgerRead { row, .. } = ledger(Some(Disposition::Pending), &[]) else {
        panic!("a row was read")
    };
    let stage = |read_at: i64| {
        let read = Event::LedgerRead { as_of: at(read_at), row: row.clone() };
        let canary = Canary::fold(plan(ExpectedEnd::Delivered, true), &[accepted(), read]);
        stopped_at(&canary, Verdict::Overdue, at(100))
    };
    assert_eq!((stage(5), stage(61)), (Some(Stopped::Monitor), Some(Stopped::Ledger)));
}
