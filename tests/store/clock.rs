//! A clock that ran ahead for a while, and what it wrote.

use super::support::{Place, accepted, append, arrived, at, here, on_both, plan, planned_of, route};
use chrono::{TimeDelta, Utc};
use delivery_canary::domain::{canary::CanaryKind, route::Location, watch::Way};

fn way(receiver: &str) -> Way {
    Way::new(&Location::from_text("here"), receiver, "https://canary.example")
}

on_both!(
    what_a_clock_that_ran_ahead_wrote_is_replaced_by_what_comes_after_it,
    a_time_that_lies_ahead_of_now_is_not_shown,
    proofs_of_a_clock_that_ran_ahead_prove_nothing_when_their_time_comes,
);

async fn what_a_clock_that_ran_ahead_wrote_is_replaced_by_what_comes_after_it(place: &mut Place) {
    let store = place.open().await;
    let newest = async || {
        let slots = store.newest_slots(&here()).await.expect("reads");
        let slot = slots.get(&(route("a"), CanaryKind::Scheduled)).copied();
        let times = store.newest(&here()).await.expect("reads");
        (slot, times[0].1, times[0].2)
    };
    let send = async |seconds: i64| {
        let sent = planned_of(&*store, plan("a", CanaryKind::Scheduled, at(seconds))).await;
        append(&*store, sent.canary_id, vec![arrived("1", at(seconds + 5))], false).await;
    };
    send(3_600).await;
    send(60).await;
    assert_eq!(newest().await, (Some(at(60)), Some(at(60)), Some(at(65))), "the clock came back");
    send(30).await;
    assert_eq!(newest().await, (Some(at(60)), Some(at(60)), Some(at(65))), "a replica was a little late");
}

async fn a_time_that_lies_ahead_of_now_is_not_shown(place: &mut Place) {
    let store = place.open().await;
    let (now, ahead) = (Utc::now(), Utc::now() + TimeDelta::hours(1));
    let manual = planned_of(&*store, plan("a", CanaryKind::Manual, ahead)).await;
    append(&*store, manual.canary_id, vec![arrived("1", ahead)], false).await;
    assert_eq!(store.newest(&here()).await.expect("reads"), [(route("a"), None, None)]);
    let scheduled = planned_of(&*store, plan("a", CanaryKind::Scheduled, at(0))).await;
    append(&*store, scheduled.canary_id, vec![accepted("n-2", now)], false).await;
    let shown = store.newest(&here()).await.expect("reads")[0].1.expect("a submission");
    assert_eq!(shown.timestamp_micros(), now.timestamp_micros());
}

async fn proofs_of_a_clock_that_ran_ahead_prove_nothing_when_their_time_comes(place: &mut Place) {
    let store = place.open().await;
    for seconds in [0, 3_600, 3_615, 20] {
        store.prove_sink(way("hook"), at(seconds), None).await.expect("writes");
    }
    let proof = async |from, until| store.sink_proof(way("hook"), at(from), at(until)).await.expect("reads");
    assert_eq!(proof(0, 10).await, Some(at(0)));
    assert_eq!(proof(10, 9_000).await, Some(at(20)));
    assert_eq!(proof(21, 9_000).await, None);
}
