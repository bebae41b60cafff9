//! Appending, deciding, and reading back.

use super::support::{
    Place, accepted, append, arrived, at, decide, decision, here, judged, on_both, plan, planned, planned_of,
    route, settle, wish,
};
use chrono::TimeDelta;
use delivery_canary::{
    domain::{
        canary::{Canary, CanaryKind, Event},
        disagreement::Disagreement,
        evidence::{
            AmbiguityReason, ArrivalRefusal, AttemptFact, Content, LedgerRow, Receipt, RefusalReason,
            Submission, SubmissionResult,
        },
        following::Stopped,
        outcome::{Cause, Disposition, Outcome},
        route::{CanaryId, NotificationId},
        verdict::{Class, Verdict},
        watch::Way,
    },
    store::{Append, Appended, Decision, Filter},
};
use uuid::Uuid;

on_both!(
    everything_is_read_back_as_it_was_written,
    a_repeated_append_is_written_once,
    receipts_are_bounded,
    a_decision_on_an_older_version_is_refused,
    an_append_brings_the_look_forward,
    a_reopened_canary_is_due_again,
    settled_canaries_come_in_the_order_of_evidence,
    every_judgement_has_a_number_of_its_own,
    whoever_follows_the_numbers_misses_no_judgement,
    what_is_in_flight_and_newest_is_known,
    lists_are_filtered,
    nobody_has_what_was_never_planned,
);

fn way() -> Way {
    Way::new(&here(), "sink", "https://canary.example")
}

/// Every sort of event, with everything in it that can be there.
pub fn all_events() -> Vec<Event> {
    let row = LedgerRow {
        notification_ids: [NotificationId::from_text("n-1"), NotificationId::from_text("\u{e9}\"'\\")].into(),
        accepted_at: Some(at(1)),
        disposition: Disposition::PermanentlyRejected,
        cause: Some(Cause::Service),
        attempts: [AttemptFact {
            attempt_id: "a-1".into(),
            outcome: Outcome::PermanentRejection,
            at: Some(at(2) + TimeDelta::nanoseconds(7)),
            policy_version: Some("v3".into()),
        }]
        .into(),
        has_policy_version: true,
    };
    let submitted = |seconds, status, result| {
        let started_at = at(seconds);
        Event::Submitted(Submission {
            way: Some(way()),
            ledger: None,
            started_at,
            ended_at: started_at,
            status,
            result,
        })
    };
    let malformed = Receipt {
        at: at(8),
        content: Content::Malformed { failed: ["amount".to_owned()].into() },
        digest: "00".into(),
        message: Some("m".into()),
        correlated: None,
        arrival_id: "2".into(),
    };
    vec![
        submitted(1, None, SubmissionResult::Ambiguous { reason: AmbiguityReason::Timeout }),
        submitted(2, Some(400), SubmissionResult::Refused { reason: RefusalReason::Status }),
        submitted(3, Some(200), SubmissionResult::Accepted { notification_id: None }),
        accepted("n-1", at(4)),
        Event::LedgerRead { as_of: at(5), row: None },
        Event::LedgerRead { as_of: at(6) + TimeDelta::nanoseconds(123_456_789), row: Some(row) },
        arrived("1", at(7)),
        Event::Received(malformed),
        Event::SinkProven { at: at(9) },
        Event::SinkWatched { from: at(1), until: at(9) },
        Event::ArrivalRefused { at: at(10), reason: ArrivalRefusal::TooLarge },
        Event::Settled(judged(Verdict::Overdue, at(120))),
        Event::Corrected(judged(Verdict::Late, at(180))),
        Event::Disagreed { at: at(181), kind: Disagreement::DuplicateReceipt },
    ]
}

async fn everything_is_read_back_as_it_was_written(place: &mut Place) {
    let mut wanted = plan("a", CanaryKind::Confirmation, at(0));
    wanted.parent = Some(CanaryId(Uuid::now_v7()));
    let store = place.open().await;
    let lease = super::support::lease("one", at(30));
    store.plan(&[wish(wanted.clone(), 9)], &lease).await.expect("plans");
    let events = all_events();
    append(&*store, wanted.canary_id, events[..11].to_vec(), true).await;
    let last = Decision {
        stopped: Some(Stopped::Provider),
        next_look: Some(at(400)),
        ..decision(&*store, wanted.canary_id, events[11..].to_vec()).await
    };
    assert_eq!(store.decide(&[last]).await.expect("decides"), [true]);
    drop(store);
    let store = place.open().await;
    let (stored, history) = store.canary(wanted.canary_id).await.expect("reads").expect("it is there");
    assert_eq!(history.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>(), events);
    assert_eq!(stored.canary, Canary::fold(wanted.clone(), &events));
    assert_eq!((stored.next_look, stored.erased), (Some(at(400)), false));
    let due = store.due(&here(), at(400), 9, &[]).await.expect("reads");
    assert_eq!(due, [stored]);
    let settled = store.settled(&here(), None, at(0)).await.expect("reads");
    assert_eq!((settled[0].verdict, settled[0].class), (Verdict::Late, Class::Bad));
    assert_eq!((settled[0].stopped, settled[0].kind), (Some(Stopped::Provider), CanaryKind::Confirmation));
}

async fn a_repeated_append_is_written_once(place: &mut Place) {
    let store = place.open().await;
    let canary = planned(&*store, "a", at(0)).await;
    let receipt = Append {
        canary_id: canary.canary_id,
        events: vec![arrived("1", at(5))],
        look_by: None,
        release: false,
    };
    for receipts_before in [0, 1, 1] {
        let answers = store.append(std::slice::from_ref(&receipt)).await.expect("appends");
        assert_eq!(answers, [Appended::Written { receipts_before }]);
    }
    let (_, history) = store.canary(canary.canary_id).await.expect("reads").expect("it is there");
    assert_eq!(history.len(), 2);
}

async fn receipts_are_bounded(place: &mut Place) {
    let store = place.open().await;
    let canary = planned(&*store, "a", at(0)).await;
    let receipt = |n: u32| Append {
        canary_id: canary.canary_id,
        events: vec![arrived(&n.to_string(), at(5))],
        look_by: None,
        release: false,
    };
    let many: Vec<_> = (0..40).map(receipt).collect();
    let answers = store.append(&many).await.expect("appends");
    for (answer, n) in answers.into_iter().zip(0..) {
        let expected = if n < 32 { Appended::Written { receipts_before: n } } else { Appended::Dropped };
        assert_eq!(answer, expected, "receipt {n}");
    }
    assert_eq!(store.append(&[receipt(99)]).await.expect("appends"), [Appended::Dropped]);
    assert_eq!(place.number("SELECT COUNT(*) FROM event WHERE kind = 'received'").await, 32);
    for n in 0..40 {
        let reason = ArrivalRefusal::Unavailable;
        append(&*store, canary.canary_id, vec![Event::ArrivalRefused { at: at(5 + n), reason }], false).await;
    }
    assert_eq!(place.number("SELECT COUNT(*) FROM event WHERE kind = 'arrival_refused'").await, 1);
    let (stored, _) = store.canary(canary.canary_id).await.expect("reads").expect("the canary is there");
    assert_eq!(
        stored.canary.sink.missed_at(),
        Some(at(5)),
        "of those that were refused for one reason the first stays"
    );
    // The bound is on arrivals alone: a verdict still comes.
    settle(&*store, canary.canary_id, Verdict::OnTime, at(120)).await;
}

async fn a_decision_on_an_older_version_is_refused(place: &mut Place) {
    let store = place.open().await;
    let one = planned(&*store, "a", at(0)).await;
    let two = planned(&*store, "a", at(60)).await;
    let settled = |seconds| vec![Event::Settled(judged(Verdict::Overdue, at(seconds)))];
    let old = decision(&*store, one.canary_id, settled(120)).await;
    let good = decision(&*store, two.canary_id, settled(180)).await;
    append(&*store, one.canary_id, vec![arrived("1", at(110))], false).await;
    let twice = [old, good.clone(), good];
    assert_eq!(store.decide(&twice).await.expect("decides"), [false, true, false]);
    let (stored, history) = store.canary(one.canary_id).await.expect("reads").expect("it is there");
    assert!(stored.canary.settlement().is_none());
    assert_eq!(history.len(), 2);
    assert_eq!(super::support::window(&*store, 3_600, at(600)).await.len(), 1);
}

async fn an_append_brings_the_look_forward(place: &mut Place) {
    let store = place.open().await;
    let canary = planned(&*store, "a", at(0)).await;
    let look = async |look_by| {
        let nothing = Append { canary_id: canary.canary_id, events: vec![], look_by, release: false };
        store.append(&[nothing]).await.expect("appends");
        store.next_due(&here()).await.expect("reads")
    };
    assert_eq!(look(None).await, Some(at(120)));
    assert_eq!(look(Some(at(90))).await, Some(at(90)));
    assert_eq!(look(Some(at(200))).await, Some(at(90)));
}

async fn a_reopened_canary_is_due_again(place: &mut Place) {
    let store = place.open().await;
    let canary = planned(&*store, "a", at(0)).await;
    settle(&*store, canary.canary_id, Verdict::Lost, at(120)).await;
    assert_eq!(store.next_due(&here()).await.expect("reads"), None);
    let late = Append {
        canary_id: canary.canary_id,
        events: vec![arrived("1", at(900))],
        look_by: Some(at(900)),
        release: false,
    };
    store.append(&[late]).await.expect("appends");
    assert_eq!(store.next_due(&here()).await.expect("reads"), Some(at(900)));
}

async fn settled_canaries_come_in_the_order_of_evidence(place: &mut Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for (n, kind) in [3, 1, 2, 5, 4].into_iter().zip([
        CanaryKind::Scheduled,
        CanaryKind::Confirmation,
        CanaryKind::Manual,
        CanaryKind::Scheduled,
        CanaryKind::Replay,
    ]) {
        let plan = planned_of(&*store, plan("a", kind, at(n * 60))).await;
        settle(&*store, plan.canary_id, Verdict::OnTime, at(1_000 - n)).await;
        if kind.is_evidence() {
            expected.push((plan.slot, plan.canary_id));
        }
    }
    // Two of one instant are told apart by their id.
    let twin = planned_of(&*store, plan("a", CanaryKind::Confirmation, at(180))).await;
    settle(&*store, twin.canary_id, Verdict::OnTime, at(1_001)).await;
    expected.push((twin.slot, twin.canary_id));
    expected.sort();
    let other = planned(&*store, "b", at(0)).await;
    settle(&*store, other.canary_id, Verdict::OnTime, at(1_002)).await;
    let of_route = store.settled(&here(), Some(&route("a")), at(0)).await.expect("reads");
    assert_eq!(of_route.iter().map(|one| (one.slot, one.canary_id)).collect::<Vec<_>>(), expected);
    let later = store.settled(&here(), None, at(61)).await.expect("reads");
    assert_eq!(later.len(), 3);
}

async fn every_judgement_has_a_number_of_its_own(place: &mut Place) {
    let store = place.open().await;
    assert_eq!(store.newest_change().await.expect("reads"), 0);
    let one = planned(&*store, "a", at(0)).await;
    let two = planned_of(&*store, plan("a", CanaryKind::Manual, at(60))).await;
    settle(&*store, one.canary_id, Verdict::Overdue, at(120)).await;
    let first = store.newest_change().await.expect("reads");
    settle(&*store, two.canary_id, Verdict::OnTime, at(180)).await;
    decide(&*store, one.canary_id, vec![Event::Corrected(judged(Verdict::Late, at(190)))]).await;
    let since = store.settled_since(&here(), first, 10).await.expect("reads");
    let ids: Vec<_> = since.iter().map(|one| one.canary_id).collect();
    assert_eq!(ids, [two.canary_id, one.canary_id]);
    assert!(since[0].change < since[1].change && since[0].change > first);
    assert_eq!(since[1].change, store.newest_change().await.expect("reads"));
    assert_eq!(store.settled_since(&here(), since[1].change, 10).await.expect("reads"), []);
    assert_eq!(store.settled_since(&here(), 0, 1).await.expect("reads").len(), 1);
}

async fn whoever_follows_the_numbers_misses_no_judgement(place: &mut Place) {
    let stores = [place.open().await, place.open().await];
    let plans: Vec<_> = (0..120).map(|n| plan("a", CanaryKind::Scheduled, at(n))).collect();
    let wishes: Vec<_> = plans.iter().map(|plan| wish(plan.clone(), 1_000)).collect();
    let lease = super::support::lease("one", at(600));
    stores[0].plan(&wishes, &lease).await.expect("plans");
    let mut tasks = Vec::new();
    for (n, chunk) in plans.chunks(15).enumerate() {
        let (store, chunk) = (stores[n % 2].clone(), chunk.to_vec());
        tasks.push(tokio::spawn(async move {
            for plan in chunk {
                settle(&*store, plan.canary_id, Verdict::OnTime, at(700)).await;
            }
        }));
    }
    let (mut change, mut seen) = (0, Vec::new());
    loop {
        let is_over = tasks.iter().all(tokio::task::JoinHandle::is_finished);
        let since = stores[1].settled_since(&here(), change, 7).await.expect("reads");
        if is_over && since.is_empty() {
            break;
        }
        change = since.last().map_or(change, |one| one.change);
        seen.extend(since.iter().map(|one| one.canary_id));
    }
    for task in tasks {
        task.await.expect("the task ends");
    }
    let mut expected: Vec<_> = plans.iter().map(|plan| plan.canary_id).collect();
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

async fn what_is_in_flight_and_newest_is_known(place: &mut Place) {
    let store = place.open().await;
    let one = planned(&*store, "a", at(0)).await;
    planned(&*store, "a", at(60)).await;
    append(&*store, one.canary_id, vec![arrived("1", at(5))], false).await;
    let control = planned_of(&*store, plan("a", CanaryKind::ControlSink, at(90))).await;
    append(&*store, control.canary_id, vec![arrived("2", at(95))], false).await;
    let open = store.in_flight(&here()).await.expect("reads");
    assert_eq!((open[0].count, open[0].oldest_slot), (3, Some(at(0))));
    settle(&*store, one.canary_id, Verdict::OnTime, at(6)).await;
    let open = store.in_flight(&here()).await.expect("reads");
    assert_eq!((open[0].count, open[0].oldest_slot), (2, Some(at(60))));
    let newest = store.newest(&here()).await.expect("reads");
    assert_eq!(newest, [(route("a"), Some(at(60)), Some(at(5)))]);
}

async fn lists_are_filtered(place: &mut Place) {
    let store = place.open().await;
    for (name, n) in [("a", 0), ("a", 1), ("b", 2), ("a", 3)] {
        let plan = planned(&*store, name, at(n)).await;
        append(&*store, plan.canary_id, vec![accepted(&format!("id-{n}"), at(n))], false).await;
        let verdict = if n == 3 { Verdict::Late } else { Verdict::OnTime };
        settle(&*store, plan.canary_id, verdict, at(100)).await;
    }
    let list = async |filter: Filter| -> Vec<i64> {
        let found = store.list(&filter).await.expect("reads");
        found.iter().map(|stored| (stored.canary.plan.slot - at(0)).num_seconds()).collect()
    };
    let all = Filter { limit: 10, ..Filter::default() };
    assert_eq!(list(all.clone()).await, [3, 2, 1, 0]);
    assert_eq!(list(Filter { limit: 2, ..all.clone() }).await, [3, 2]);
    assert_eq!(list(Filter { route: Some(route("a")), ..all.clone() }).await, [3, 1, 0]);
    assert_eq!(list(Filter { verdict: Some(Verdict::Late), ..all.clone() }).await, [3]);
    let of = |id: &str| Filter { notification: Some(NotificationId::from_text(id)), ..all.clone() };
    assert_eq!(list(of("id-2")).await, [2]);
    assert_eq!(list(of("n-1")).await, [3, 2, 1, 0], "several canaries may have one");
    assert_eq!(list(of("id-9")).await, [0i64; 0]);
    assert_eq!(list(Filter { from: Some(at(1)), until: Some(at(3)), ..all.clone() }).await, [2, 1]);
    let with =
        |kinds: &[Disagreement]| Filter { disagreements: kinds.iter().copied().collect(), ..all.clone() };
    assert_eq!(list(with(&Disagreement::ALL)).await, [0i64; 0]);
    for (n, kind) in [(1, Disagreement::DuplicateReceipt), (3, Disagreement::CorrelationLost)] {
        let found = store
            .list(&Filter { from: Some(at(n)), until: Some(at(n + 1)), ..all.clone() })
            .await
            .expect("reads");
        let disagreed = Event::Disagreed { at: at(200), kind };
        append(&*store, found[0].canary.plan.canary_id, vec![disagreed], false).await;
    }
    assert_eq!(list(with(&Disagreement::ALL)).await, [3, 1]);
    assert_eq!(list(with(&[Disagreement::DuplicateReceipt])).await, [1]);
    assert_eq!(list(with(&[Disagreement::DuplicateReceipt, Disagreement::CorrelationLost])).await, [3, 1]);
    assert_eq!(list(with(&[Disagreement::OutcomeRewritten])).await, [0i64; 0]);
    let both = Filter { verdict: Some(Verdict::Late), ..with(&Disagreement::ALL) };
    assert_eq!(list(both).await, [3]);
}

async fn nobody_has_what_was_never_planned(place: &mut Place) {
    let store = place.open().await;
    let id = CanaryId(Uuid::now_v7());
    assert!(store.canary(id).await.expect("reads").is_none());
    let append = Append { canary_id: id, events: vec![arrived("1", at(0))], look_by: None, release: false };
    assert_eq!(store.append(&[append]).await.expect("appends"), [Appended::NoSuchCanary]);
    let decision = Decision { canary_id: id, version: 1, events: vec![], stopped: None, next_look: None };
    assert_eq!(store.decide(&[decision]).await.expect("decides"), [false]);
    assert_eq!(store.append(&[]).await.expect("appends"), []);
}
