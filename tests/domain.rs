//! The pure core: the whole product of view states, and any order of evidence.

mod duplicates;
mod failure_evidence;
mod following;
mod history;
mod refusal;
mod sight;

use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::domain::{
    canary::{Canary, CanaryKind, Event, Plan},
    disagreement::disagreements,
    evidence::{
        AmbiguityReason, ArrivalRefusal, AttemptFact, Content, LedgerRow, Receipt, RefusalReason, Submission,
        SubmissionResult,
    },
    failure_evidence::Question,
    following::next_look,
    outcome::{Disposition, Outcome},
    route::{CanaryId, Channel, IdempotencyKey, Location, NotificationId, RouteName},
    verdict::{AcceptanceState, Class, ExpectedEnd, LedgerState, SinkState, Verdict, Views, verdict},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn instant(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
}

fn plan() -> Plan {
    let route = RouteName::new(Channel::Webhook, "receipts");
    let location = Location::from_text("here");
    Plan {
        canary_id: CanaryId(uuid::Uuid::from_u128(7)),
        key: IdempotencyKey::derive(&route, &location, CanaryKind::Scheduled, instant(0)),
        route,
        location,
        kind: CanaryKind::Scheduled,
        slot: instant(0),
        planned_at: instant(0),
        deadline: TimeDelta::seconds(60),
        settle: TimeDelta::seconds(30),
        follow_for: TimeDelta::seconds(600),
        ledger_overlap: TimeDelta::seconds(10),
        expected_end: ExpectedEnd::Delivered,
        has_ledger: true,
        has_sink: true,
        traceparent: "00-00000000000000000000000000000007-0000000000000007-01".into(),
        parent: None,
    }
}

/// The contract's table, written a second time as a person reads it: line by line, by words.
fn by_the_contract(a: &str, l: &str, s: &str, over: bool) -> &'static str {
    let accepted = a == "accepted" || (a != "refused" && !matches!(l, "unobserved" | "no_row"));
    if s == "intact_in_time" {
        return "on_time";
    }
    if s == "intact_late" {
        return "late";
    }
    if s == "malformed" {
        return "malformed";
    }
    if s == "unclear" {
        return "undetermined";
    }
    if a == "refused" {
        return "refused";
    }
    if s == "unobserved" {
        return "undetermined";
    }
    if l == "suppressed" {
        return "suppressed";
    }
    if l == "rejected" {
        return "rejected";
    }
    if a == "unobserved" && !accepted {
        // Not in the contract's table: nothing is known to have left us, so the fault is the monitor's.
        return "undetermined";
    }
    if !accepted {
        return "unknown";
    }
    match (over, l) {
        (false, _) => "overdue",
        (true, "delivered" | "no_row") => "lost",
        (true, _) => "unknown",
    }
}

#[test]
fn every_product_of_view_states_has_the_checked_in_verdict() {
    let acceptances = [
        ("unobserved", AcceptanceState::Unobserved),
        ("ambiguous", AcceptanceState::Ambiguous),
        ("refused", AcceptanceState::Refused),
        ("accepted", AcceptanceState::Accepted),
    ];
    let ledgers = [
        ("unobserved", LedgerState::Unobserved),
        ("no_row", LedgerState::NoRow),
        ("pending", LedgerState::Pending),
        ("delivered", LedgerState::Delivered),
        ("rejected", LedgerState::Rejected),
        ("suppressed", LedgerState::Suppressed),
    ];
    let sinks = [
        ("unobserved", SinkState::Unobserved),
        ("nothing", SinkState::Nothing),
        ("intact_in_time", SinkState::IntactInTime),
        ("intact_late", SinkState::IntactLate),
        ("malformed", SinkState::Malformed),
        ("unclear", SinkState::Unclear),
    ];
    let mut table = String::from(
        "acceptance\tledger\tsink\tfollowing_over\tverdict\tclass\tclass_if_suppression_expected\tclass_if_rejection_expected\n",
    );
    for (a, acceptance) in acceptances {
        for (l, ledger) in ledgers {
            for (s, sink) in sinks {
                for following_over in [false, true] {
                    let found = verdict(&Views { acceptance, ledger, sink, following_over });
                    assert_eq!(
                        found.word(),
                        by_the_contract(a, l, s, following_over),
                        "{a} {l} {s} over={following_over}"
                    );
                    let classes = [ExpectedEnd::Delivered, ExpectedEnd::Suppressed, ExpectedEnd::Rejected]
                        .map(|expected| found.class(expected).word())
                        .join("\t");
                    table += &format!("{a}\t{l}\t{s}\t{following_over}\t{}\t{classes}\n", found.word());
                }
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/verdicts.tsv");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        table,
        "tests/data/verdicts.tsv differs from the code"
    );
}

#[test]
fn blind_is_on_neither_side_of_an_sli_nor_of_the_evidence() {
    for expected in [ExpectedEnd::Delivered, ExpectedEnd::Suppressed, ExpectedEnd::Rejected] {
        assert_eq!(Verdict::Undetermined.class(expected), Class::Outside);
        for question in Question::ALL {
            assert_eq!(question.vote(Verdict::Undetermined, expected), None);
        }
    }
    for question in Question::ALL {
        assert_eq!(question.vote(Verdict::Suppressed, ExpectedEnd::Delivered), None);
        assert_eq!(question.vote(Verdict::Unknown, ExpectedEnd::Delivered), Some(true));
    }
    assert_eq!(Question::Arrives.vote(Verdict::Late, ExpectedEnd::Delivered), Some(false));
    assert_eq!(Question::InTime.vote(Verdict::Late, ExpectedEnd::Delivered), Some(true));
    assert_eq!(Question::Arrives.vote(Verdict::Late, ExpectedEnd::Suppressed), Some(true));
}

fn submission() -> impl Strategy<Value = Event> {
    let result = prop_oneof![
        Just(SubmissionResult::Accepted { notification_id: Some(NotificationId::from_text("n-1")) }),
        Just(SubmissionResult::Accepted { notification_id: None }),
        Just(SubmissionResult::Refused { reason: RefusalReason::Unreachable }),
        Just(SubmissionResult::Refused { reason: RefusalReason::Status }),
        Just(SubmissionResult::Ambiguous { reason: AmbiguityReason::Timeout }),
    ];
    (0i64..100, 0i64..20, result).prop_map(|(start, took, result)| {
        Event::Submitted(Submission {
            way: None,
            ledger: None,
            started_at: instant(start),
            ended_at: instant(start + took),
            status: None,
            result,
        })
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    proptest::sample::select(&Outcome::ALL[..])
}

fn reading() -> impl Strategy<Value = Event> {
    let attempts = proptest::collection::btree_set(
        (0u8..3, outcome(), proptest::option::of(0i64..200)).prop_map(|(id, outcome, at)| AttemptFact {
            attempt_id: format!("a{id}"),
            outcome,
            at: at.map(instant),
            policy_version: None,
        }),
        0..4,
    );
    let row =
        (attempts, proptest::sample::select(&Disposition::ALL[..])).prop_map(|(attempts, disposition)| {
            LedgerRow {
                notification_ids: BTreeSet::from([NotificationId::from_text("n-1")]),
                accepted_at: None,
                disposition,
                cause: None,
                attempts,
                has_policy_version: false,
            }
        });
    (0i64..700, proptest::option::of(row))
        .prop_map(|(as_of, row)| Event::LedgerRead { as_of: instant(as_of), row })
}

fn receipt() -> impl Strategy<Value = Event> {
    (0i64..700, any::<bool>(), 0u8..3).prop_map(|(at, whole, id)| {
        let content = if whole {
            Content::Intact
        } else {
            Content::Malformed { failed: BTreeSet::from(["amount".to_owned()]) }
        };
        Event::Received(Receipt {
            at: instant(at),
            content,
            digest: "d".into(),
            message: None,
            correlated: None,
            arrival_id: id.to_string(),
        })
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        submission(),
        reading(),
        receipt(),
        (0i64..700).prop_map(|at| Event::SinkProven { at: instant(at) }),
        (0i64..50, 0i64..300)
            .prop_map(|(from, until)| Event::SinkWatched { from: instant(from), until: instant(until) }),
        (0i64..300, proptest::sample::select(&ArrivalRefusal::ALL[..]))
            .prop_map(|(at, reason)| Event::ArrivalRefused { at: instant(at), reason }),
    ]
}

/// Events, the same events in another order with some of them twice, and a moment.
fn histories() -> impl Strategy<Value = (Vec<Event>, Vec<Event>, i64)> {
    proptest::collection::vec(event(), 0..12).prop_flat_map(|events| {
        let again = events.clone();
        (Just(events), Just(again).prop_shuffle(), 0i64..1000)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_arrival_gives_the_same_verdict((events, shuffled, now) in histories()) {
        let now = instant(now);
        let one = Canary::fold(plan(), &events);
        let twice = Canary::fold(plan(), shuffled.iter().chain(&shuffled));
        prop_assert_eq!(one.judge(now), twice.judge(now));
        prop_assert_eq!(one.views(now), twice.views(now));
        prop_assert_eq!(disagreements(&one, now), disagreements(&twice, now));
        prop_assert_eq!(next_look(&one, now), next_look(&twice, now));
        prop_assert_eq!(one, twice);
    }

    #[test]
    fn nothing_is_lost_while_it_may_still_arrive((events, _, now) in histories()) {
        let canary = Canary::fold(plan(), &events);
        let now = instant(now);
        if let Some(judgement) = canary.judge(now) {
            if judgement.verdict == Verdict::Lost {
                prop_assert!(now >= canary.followed_until());
                prop_assert!(canary.sink.proofs.iter().any(|p| *p >= canary.deadline() && *p <= canary.settles_at()));
            }
            // What is missing or late is held against the service only where we looked all the time, and refused nothing.
            if matches!(judgement.verdict, Verdict::Lost | Verdict::Overdue | Verdict::Late) {
                prop_assert!(canary.sink.is_watched(&canary.sink_times()));
                let late = judgement.verdict == Verdict::Late;
                let has_missed = canary.sink.missed_at().is_some_and(|at| !late || at <= canary.deadline());
                prop_assert!(!has_missed);
            }
            if judgement.verdict == Verdict::Refused {
                prop_assert!(!canary.is_cut_off());
            }
            if judgement.class == Class::Good {
                prop_assert!(canary.sink.intact_at().is_some_and(|at| at <= canary.deadline()));
            }
            if !matches!(judgement.verdict, Verdict::OnTime | Verdict::Late | Verdict::Refused) {
                prop_assert!(now >= canary.settles_at(), "judged before its time: {judgement:?}");
            }
        }
    }

    #[test]
    fn a_refused_one_has_the_same_verdict_at_once_and_after_all_the_waiting((events, _, now) in histories()) {
        let canary = Canary::fold(plan(), &events);
        let verdict_at = |at| canary.judge(at).map(|judgement| judgement.verdict);
        let (early, late) = (verdict_at(instant(now).min(canary.settles_at())), verdict_at(canary.settles_at()));
        if canary.is_turned_away() {
            prop_assert_eq!(early, Some(Verdict::Refused));
        }
        if early == Some(Verdict::Refused) {
            prop_assert_eq!(late, early);
        }
    }

    #[test]
    fn an_open_canary_is_always_looked_at_again((events, _, now) in histories()) {
        let canary = Canary::fold(plan(), &events);
        let now = instant(now);
        match next_look(&canary, now) {
            Some(next) => prop_assert!(next > now),
            None => prop_assert!(canary.settlement().is_some()),
        }
    }
}

#[test]
fn a_ledger_row_or_a_receipt_resolves_an_unknown_submission() {
    let timed_out = Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: instant(0),
        ended_at: instant(15),
        status: None,
        result: SubmissionResult::Ambiguous { reason: AmbiguityReason::Timeout },
    });
    let proven = Event::SinkProven { at: instant(70) };
    let watched = Event::SinkWatched { from: instant(0), until: instant(60) };
    let now = instant(100);
    let alone = Canary::fold(plan(), [&timed_out, &proven, &watched]);
    assert_eq!(alone.judge(now).unwrap().verdict, Verdict::Unknown);
    let row = LedgerRow {
        notification_ids: BTreeSet::from([NotificationId::from_text("n-1")]),
        accepted_at: Some(instant(1)),
        disposition: Disposition::Pending,
        cause: None,
        attempts: BTreeSet::new(),
        has_policy_version: false,
    };
    let read = Event::LedgerRead { as_of: instant(90), row: Some(row) };
    let in_ledger = Canary::fold(plan(), [&timed_out, &proven, &watched, &read]);
    assert_eq!(
        in_ledger.judge(now).unwrap().verdict,
        Verdict::Overdue,
        "accepted, as the ledger shows, and not there"
    );
    let arrived = Event::Received(Receipt {
        at: instant(50),
        content: Content::Intact,
        digest: String::new(),
        message: None,
        correlated: None,
        arrival_id: "1".into(),
    });
    let received = Canary::fold(plan(), [&timed_out, &arrived]);
    assert_eq!(received.judge(now).unwrap().verdict, Verdict::OnTime);
}

#[test]
fn a_key_is_of_route_location_kind_and_instant_and_of_nothing_else() {
    let receipts = RouteName::new(Channel::Webhook, "receipts");
    let alerts = RouteName::new(Channel::Webhook, "alerts");
    let here = Location::from_text("here");
    let there = Location::from_text("there");
    let mut keys = BTreeSet::new();
    for route in [&receipts, &alerts] {
        for location in [&here, &there] {
            for kind in CanaryKind::ALL {
                for second in [0, 60] {
                    let key = IdempotencyKey::derive(route, location, kind, instant(second));
                    assert_eq!(key, IdempotencyKey::derive(route, location, kind, instant(second)));
                    assert!(keys.insert(key));
                }
            }
        }
    }
    assert_eq!(keys.len(), 2 * 2 * 6 * 2);
}
