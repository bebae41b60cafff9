//! Sums, retention, erasure, and the proofs of sinks.

use super::support::{
    Place, accepted, append, arrived, at, decide, decision, here, judged, on_both, plan, planned, planned_of,
    settle, window,
};
use chrono::TimeDelta;
use delivery_canary::domain::{route::Location, watch::Way};
use delivery_canary::{
    domain::{
        canary::{CanaryKind, Event},
        disagreement::Disagreement,
        route::NotificationId,
        verdict::{Class, Verdict},
        watch::{Mark, MarkKind},
    },
    store::{Append, Appended, ErasureTarget, Horizon, Operation},
};
use std::time::Duration;

fn way(receiver: &str) -> Way {
    Way::new(&Location::from_text("here"), receiver, "https://canary.example")
}

on_both!(
    only_the_schedule_enters_the_sums,
    a_correction_changes_the_class_and_not_the_window,
    a_late_written_correction_of_an_earlier_time_changes_nothing,
    a_contradiction_counts_once_a_canary,
    raw_rows_go_and_sums_stay,
    what_is_open_is_not_pruned,
    the_cap_of_the_hour_that_runs_outlives_its_canaries,
    sums_go_by_their_level,
    erasing_leaves_a_verdict_and_the_sums,
    erasing_by_notification_id,
    proofs_of_a_sink_are_kept_for_two_days,
    a_ping_writes,
);

fn erased_by(what: &str) -> Operation {
    Operation { at: at(0), who: "operator".into(), what: "erase".into(), on: what.into() }
}

async fn only_the_schedule_enters_the_sums(place: &mut Place) {
    let store = place.open().await;
    for (kind, n) in CanaryKind::ALL.into_iter().zip(0..) {
        let plan = planned_of(&*store, plan("a", kind, at(n))).await;
        settle(&*store, plan.canary_id, Verdict::OnTime, at(60)).await;
    }
    let sums = window(&*store, 300, at(120)).await;
    assert_eq!(sums, [("webhook/a".into(), Verdict::OnTime, Class::Good, 1)]);
}

async fn a_correction_changes_the_class_and_not_the_window(place: &mut Place) {
    let store = place.open().await;
    let one = planned(&*store, "a", at(0)).await;
    let two = planned(&*store, "a", at(1)).await;
    settle(&*store, one.canary_id, Verdict::Overdue, at(120)).await;
    settle(&*store, two.canary_id, Verdict::Overdue, at(121)).await;
    let overdue = ("webhook/a".to_owned(), Verdict::Overdue, Class::Bad);
    let count = |n| (overdue.0.clone(), overdue.1, overdue.2, n);
    assert_eq!(window(&*store, 300, at(200)).await, [count(2)]);
    let later = at(90_000);
    decide(&*store, one.canary_id, vec![Event::Corrected(judged(Verdict::Lost, later))]).await;
    let lost = ("webhook/a".to_owned(), Verdict::Lost, Class::Bad, 1);
    assert_eq!(window(&*store, 300, at(200)).await, [count(1), lost]);
    decide(
        &*store,
        one.canary_id,
        vec![Event::Corrected(judged(Verdict::Late, later + TimeDelta::hours(1)))],
    )
    .await;
    let late = ("webhook/a".to_owned(), Verdict::Late, Class::Bad, 1);
    assert_eq!(window(&*store, 300, at(200)).await, [late.clone(), count(1)]);
    assert_eq!(window(&*store, 86_400, later + TimeDelta::hours(2)).await, []);
    assert_eq!(window(&*store, 2 * 86_400, later).await, [late, count(1)]);
    let (stored, history) = store.canary(one.canary_id).await.expect("reads").expect("it is there");
    assert_eq!(stored.canary.judgements.len(), 3);
    assert_eq!(history.len(), 4);
}

async fn a_late_written_correction_of_an_earlier_time_changes_nothing(place: &mut Place) {
    let store = place.open().await;
    let one = planned(&*store, "a", at(0)).await;
    settle(&*store, one.canary_id, Verdict::Overdue, at(120)).await;
    decide(&*store, one.canary_id, vec![Event::Corrected(judged(Verdict::Late, at(110)))]).await;
    let (stored, _) = store.canary(one.canary_id).await.expect("reads").expect("it is there");
    assert_eq!(stored.canary.standing().expect("judged").verdict, Verdict::Overdue);
    let overdue = ("webhook/a".to_owned(), Verdict::Overdue, Class::Bad, 1);
    assert_eq!(window(&*store, 300, at(200)).await, [overdue]);
    assert_eq!(store.settled(&here(), None, at(0)).await.expect("reads")[0].verdict, Verdict::Overdue);
}

async fn a_contradiction_counts_once_a_canary(place: &mut Place) {
    let store = place.open().await;
    let disagreed = |seconds, kind| Event::Disagreed { at: at(seconds), kind };
    for slot in [0, 1] {
        let one = planned_of(&*store, plan("a", CanaryKind::Replay, at(slot))).await;
        decide(&*store, one.canary_id, vec![disagreed(60, Disagreement::DuplicateReceipt)]).await;
        let again =
            vec![disagreed(70, Disagreement::DuplicateReceipt), disagreed(70, Disagreement::CorrelationLost)];
        decide(&*store, one.canary_id, again).await;
    }
    let found = store.disagreements(Duration::from_secs(300), at(120)).await.expect("reads");
    let found: Vec<_> = found.into_iter().map(|(_, kind, count)| (kind, count)).collect();
    assert_eq!(found, [(Disagreement::DuplicateReceipt, 2), (Disagreement::CorrelationLost, 2)]);
    assert_eq!(window(&*store, 300, at(120)).await, []);
}

fn horizon(canaries: i64, minutes: i64, hours: i64) -> Horizon {
    Horizon { canaries: at(canaries), minutes: at(minutes), hours: at(hours) }
}

async fn raw_rows_go_and_sums_stay(place: &mut Place) {
    let store = place.open().await;
    for n in 0..25 {
        let plan = planned(&*store, "a", at(n)).await;
        append(&*store, plan.canary_id, vec![arrived("1", at(n + 1))], false).await;
        settle(&*store, plan.canary_id, Verdict::OnTime, at(n + 2)).await;
    }
    let before = window(&*store, 3_600, at(120)).await;
    let mut steps = Vec::new();
    loop {
        let removed = store.prune(&horizon(20, -90_000, -90_000), 8).await.expect("prunes");
        steps.push(removed.canaries);
        if removed.canaries == 0 {
            break;
        }
    }
    assert_eq!(steps, [8, 8, 4, 0]);
    assert_eq!(place.number("SELECT COUNT(*) FROM canary").await, 5);
    assert_eq!(place.number("SELECT COUNT(*) FROM event").await, 15);
    assert_eq!(place.number("SELECT COUNT(*) FROM notification").await, 5);
    assert_eq!(window(&*store, 3_600, at(120)).await, before);
    drop(store);
    let store = place.open().await;
    assert_eq!(window(&*store, 3_600, at(120)).await, before);
    let newest = store.newest_slots(&here()).await.expect("reads");
    assert_eq!(newest[&(super::support::route("a"), CanaryKind::Scheduled)], at(24));
}

async fn the_cap_of_the_hour_that_runs_outlives_its_canaries(place: &mut Place) {
    let store = place.open().await;
    let wish = |slot| [super::support::wish(super::support::plan("a", CanaryKind::Manual, at(slot)), 1)];
    let lease = super::support::lease("one", at(7_200));
    let first = store.plan(&wish(3_600), &lease).await.expect("plans");
    assert_eq!(first, [delivery_canary::store::Planned::Ours]);
    store.prune(&horizon(7_100, -90_000, -90_000), 8).await.expect("prunes");
    let second = store.plan(&wish(7_190), &lease).await.expect("plans");
    assert_eq!(second, [delivery_canary::store::Planned::CapReached]);
}

async fn what_is_open_is_not_pruned(place: &mut Place) {
    let store = place.open().await;
    planned(&*store, "a", at(0)).await;
    let removed = store.prune(&horizon(1_000, -90_000, -90_000), 8).await.expect("prunes");
    assert_eq!(removed.canaries, 0);
    // A location that is served no more never closes its last canaries: they go at the very end.
    let removed = store.prune(&horizon(1_000, 0, 1_000), 8).await.expect("prunes");
    assert_eq!(removed.canaries, 1);
}

async fn sums_go_by_their_level(place: &mut Place) {
    let store = place.open().await;
    for n in 0..6 {
        let plan = planned(&*store, "a", at(n * 1_800)).await;
        settle(&*store, plan.canary_id, Verdict::OnTime, at(n * 1_800 + 90)).await;
    }
    let now = at(6 * 1_800);
    let removed = store.prune(&horizon(-1, 2 * 3_600, -90_000), 8).await.expect("prunes");
    assert_eq!(removed.sums, 8);
    let good = |n| [("webhook/a".to_owned(), Verdict::OnTime, Class::Good, n)];
    assert_eq!(window(&*store, 3_600, now).await, good(2));
    // Whole hours are left of what is older than the sums by minute.
    assert_eq!(window(&*store, 3 * 3_600, now).await, good(6));
    assert_eq!(window(&*store, 3 * 3_600 - 60, now).await, good(4));
    store.prune(&horizon(-1, 90_000, 90_000), 8).await.expect("prunes");
    assert_eq!(window(&*store, 3 * 3_600, now).await, []);
    assert_eq!(place.number("SELECT COUNT(*) FROM sums WHERE level <> 86400").await, 0);
}

async fn erasing_leaves_a_verdict_and_the_sums(place: &mut Place) {
    let store = place.open().await;
    let one = planned(&*store, "a", at(0)).await;
    let open = planned(&*store, "a", at(60)).await;
    append(&*store, one.canary_id, vec![arrived("1", at(5))], false).await;
    settle(&*store, one.canary_id, Verdict::OnTime, at(120)).await;
    let before = window(&*store, 3_600, at(600)).await;
    let old = decision(&*store, open.canary_id, vec![]).await;
    for canary in [&one, &open] {
        let target = ErasureTarget::Canary(canary.canary_id);
        assert!(store.erase(&target, &erased_by("a canary")).await.expect("erases"));
    }
    assert_eq!(window(&*store, 3_600, at(600)).await, before);
    let (stored, history) = store.canary(one.canary_id).await.expect("reads").expect("it is there");
    assert!(stored.erased && stored.next_look.is_none());
    assert_eq!(stored.canary.plan.traceparent, "");
    assert_eq!(history.len(), 1);
    assert_eq!(stored.canary.standing().expect("judged").verdict, Verdict::OnTime);
    assert_eq!(store.settled(&here(), None, at(0)).await.expect("reads").len(), 1);
    assert!(store.in_flight(&here()).await.expect("reads").is_empty());
    // Nothing comes back: no arrival, no decision, no second canary of its slot.
    let late = Append {
        canary_id: one.canary_id,
        events: vec![arrived("2", at(700))],
        look_by: Some(at(700)),
        release: false,
    };
    assert_eq!(store.append(&[late]).await.expect("appends"), [Appended::Dropped]);
    assert_eq!(store.decide(&[old]).await.expect("decides"), [false]);
    assert_eq!(place.number("SELECT COUNT(*) FROM event WHERE kind <> 'settled'").await, 0);
    assert_eq!(place.number("SELECT COUNT(*) FROM notification").await, 0);
    let again = super::support::wish(plan("a", CanaryKind::Scheduled, at(0)), 99);
    let answer = store.plan(&[again], &super::support::lease("two", at(700))).await.expect("plans");
    assert_eq!(answer, [delivery_canary::store::Planned::Taken]);
    assert_eq!(store.operations(9).await.expect("reads"), vec![erased_by("a canary"); 2]);
}

async fn erasing_by_notification_id(place: &mut Place) {
    let store = place.open().await;
    let one = planned(&*store, "a", at(0)).await;
    append(&*store, one.canary_id, vec![accepted("second", at(1))], false).await;
    let erase = async |id: &str| {
        let target = ErasureTarget::Notification(NotificationId::from_text(id));
        store.erase(&target, &erased_by(id)).await.expect("erases")
    };
    assert!(!erase("another").await);
    assert!(erase("second").await);
    assert!(!erase("second").await, "the id itself is erased too");
    let (stored, history) = store.canary(one.canary_id).await.expect("reads").expect("it is there");
    assert!(stored.erased && history.is_empty());
}

async fn proofs_of_a_sink_are_kept_for_two_days(place: &mut Place) {
    let store = place.open().await;
    for seconds in [10, 20, 30] {
        store.prove_sink(way("hook"), at(seconds), None).await.expect("writes");
        store.prove_sink(way("hook"), at(seconds), None).await.expect("writes");
    }
    let proof = async |from, until| store.sink_proof(way("hook"), at(from), at(until)).await.expect("reads");
    assert_eq!(proof(0, 9).await, None);
    assert_eq!(proof(0, 10).await, Some(at(10)));
    assert_eq!(proof(11, 99).await, Some(at(20)));
    assert_eq!(store.sink_proof(way("other"), at(0), at(99)).await.expect("reads"), None);
    store.prove_sink(way("hook"), at(50), Some(at(40))).await.expect("writes");
    assert_eq!(proof(31, 49).await, None, "that a listener was opened is no proof");
    let marks = store.sink_marks(way("hook"), at(15), at(99)).await.expect("reads");
    let expected =
        [(20, MarkKind::Proof), (30, MarkKind::Proof), (40, MarkKind::Opened), (50, MarkKind::Proof)];
    assert_eq!(marks, expected.map(|(seconds, kind)| Mark { at: at(seconds), kind }));
    store.prove_sink(way("hook"), at(2 * 86_400 + 20), None).await.expect("writes");
    assert_eq!(proof(0, 99).await, Some(at(20)));
}

async fn a_ping_writes(place: &mut Place) {
    let store = place.open().await;
    store.ping().await.expect("a write can be made");
    store.ping().await.expect("a write can be made");
    assert_eq!(place.number("SELECT value FROM counter WHERE name = 'ping'").await, 2);
}
