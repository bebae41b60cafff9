//! Planning, caps, pauses and leases.

use super::support::{Place, append, at, here, lease, on_both, plan, planned, route, wish};
use chrono::TimeDelta;
use delivery_canary::{
    domain::{
        canary::{CanaryKind, Event},
        evidence::{RefusalReason, Submission, SubmissionResult},
        route::RouteName,
    },
    store::{Operation, Pause, Planned, Store},
};
use std::sync::Arc;

on_both!(
    one_canary_a_key_among_tasks_and_processes,
    one_key_twice_in_one_call,
    a_cap_holds_under_concurrency_and_over_a_restart,
    a_taken_key_uses_nothing_of_the_cap,
    a_cap_is_of_a_clock_hour_and_of_all_kinds,
    a_pause_stops_planning_until_it_ends,
    what_is_left_is_taken_over_once,
    what_is_held_here_is_held_on_to_and_taken_by_nobody_else,
    a_released_canary_is_not_taken_over_but_due,
    the_newest_slot_is_known_by_kind,
    what_the_guard_stopped_was_not_submitted,
);

async fn one_canary_a_key_among_tasks_and_processes(place: &mut Place) {
    let stores = [place.open().await, place.open().await];
    let slots: Vec<_> = (0..20).map(|n| at(n * 60)).collect();
    let mut tasks = Vec::new();
    for task in 0..8usize {
        let (store, slots) = (stores[task % 2].clone(), slots.clone());
        tasks.push(tokio::spawn(async move {
            let mut ours = Vec::new();
            for slot in slots {
                let plan = plan("a", CanaryKind::Scheduled, slot);
                let id = plan.canary_id;
                let lease = lease(&format!("task {task}"), slot + TimeDelta::seconds(30));
                match store.plan(&[wish(plan, 1_000)], &lease).await.expect("plans")[..] {
                    [Planned::Ours] => ours.push((slot, id)),
                    [Planned::Taken] => {}
                    ref other => panic!("{other:?}"),
                }
            }
            ours
        }));
    }
    let mut ours = Vec::new();
    for task in tasks {
        ours.extend(task.await.expect("the task ends"));
    }
    ours.sort();
    assert_eq!(ours.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), slots);
    for (_, id) in ours {
        assert!(stores[0].canary(id).await.expect("reads").is_some(), "{id} is durable");
    }
    assert_eq!(place.number("SELECT COUNT(*) FROM canary").await, 20);
    assert_eq!(place.number("SELECT CAST(SUM(planned) AS BIGINT) FROM cap").await, 20);
}

async fn one_key_twice_in_one_call(place: &mut Place) {
    let store = place.open().await;
    let wishes =
        [wish(plan("a", CanaryKind::Scheduled, at(0)), 9), wish(plan("a", CanaryKind::Scheduled, at(0)), 9)];
    let answers = store.plan(&wishes, &lease("one", at(30))).await.expect("plans");
    assert_eq!(answers, [Planned::Ours, Planned::Taken]);
}

async fn a_cap_holds_under_concurrency_and_over_a_restart(place: &mut Place) {
    let stores = [place.open().await, place.open().await];
    let mut tasks = Vec::new();
    for n in 0..12usize {
        let store = stores[n % 2].clone();
        tasks.push(tokio::spawn(async move {
            let slots = (0..5i64).map(|m| at(n as i64 * 10 + m));
            let wishes: Vec<_> = slots.map(|slot| wish(plan("a", CanaryKind::Scheduled, slot), 17)).collect();
            store.plan(&wishes, &lease("one", at(300))).await.expect("plans")
        }));
    }
    let mut answers = Vec::new();
    for task in tasks {
        answers.extend(task.await.expect("the task ends"));
    }
    let count = |what| answers.iter().filter(|answer| **answer == what).count();
    assert_eq!((count(Planned::Ours), count(Planned::CapReached)), (17, 43));
    drop(stores);
    let again = place.open().await;
    let late = [wish(plan("a", CanaryKind::Scheduled, at(3_000)), 17)];
    assert_eq!(again.plan(&late, &lease("two", at(3_030))).await.expect("plans"), [Planned::CapReached]);
    assert_eq!(place.number("SELECT COUNT(*) FROM canary").await, 17);
}

async fn a_taken_key_uses_nothing_of_the_cap(place: &mut Place) {
    let store = place.open().await;
    let wishes = || [wish(plan("a", CanaryKind::Scheduled, at(0)), 2)];
    for expected in [Planned::Ours, Planned::Taken, Planned::Taken] {
        assert_eq!(store.plan(&wishes(), &lease("one", at(30))).await.expect("plans"), [expected]);
    }
    let other = [wish(plan("a", CanaryKind::Scheduled, at(60)), 2)];
    assert_eq!(store.plan(&other, &lease("one", at(90))).await.expect("plans"), [Planned::Ours]);
}

async fn a_cap_is_of_a_clock_hour_and_of_all_kinds(place: &mut Place) {
    let store = place.open().await;
    let try_one = async |kind, slot| {
        store.plan(&[wish(plan("a", kind, slot), 2)], &lease("one", slot)).await.expect("plans")[0]
    };
    assert_eq!(try_one(CanaryKind::Scheduled, at(3_590)).await, Planned::Ours);
    assert_eq!(try_one(CanaryKind::Manual, at(3_591)).await, Planned::Ours);
    assert_eq!(try_one(CanaryKind::Confirmation, at(3_592)).await, Planned::CapReached);
    assert_eq!(try_one(CanaryKind::Confirmation, at(3_600)).await, Planned::Ours);
}

async fn a_pause_stops_planning_until_it_ends(place: &mut Place) {
    let store = place.open().await;
    let done = |what: &str| Operation {
        at: at(0),
        who: "operator".into(),
        what: what.into(),
        on: "webhook/a".into(),
    };
    let pause = |route| Pause { route, owner: "operator".into(), reason: "trial".into(), until: at(100) };
    let try_one = async |name: &str, slot| {
        let wishes = [wish(plan(name, CanaryKind::Scheduled, slot), 99)];
        store.plan(&wishes, &lease("one", slot)).await.expect("plans")[0]
    };
    store.pause(&pause(Some(route("a"))), &done("pause")).await.expect("pauses");
    assert_eq!(store.pauses(at(10)).await.expect("reads"), [pause(Some(route("a")))]);
    assert_eq!(try_one("a", at(10)).await, Planned::Paused);
    assert_eq!(try_one("b", at(10)).await, Planned::Ours);
    assert_eq!(try_one("a", at(100)).await, Planned::Ours);
    store.pause(&pause(None), &done("pause")).await.expect("pauses");
    assert_eq!(try_one("b", at(20)).await, Planned::Paused);
    assert!(store.resume(None, &done("resume")).await.expect("resumes"));
    assert!(!store.resume(None, &done("resume")).await.expect("resumes"));
    assert_eq!(try_one("b", at(20)).await, Planned::Ours);
    assert_eq!(store.pauses(at(100)).await.expect("reads"), []);
    let operations = store.operations(10).await.expect("reads");
    let what: Vec<_> = operations.iter().map(|operation| operation.what.as_str()).collect();
    assert_eq!(what, ["resume", "resume", "pause", "pause"]);
}

async fn what_is_left_is_taken_over_once(place: &mut Place) {
    let stores = [place.open().await, place.open().await];
    let wishes: Vec<_> = (0..40).map(|n| wish(plan("a", CanaryKind::Scheduled, at(n)), 99)).collect();
    let answers = stores[0].plan(&wishes, &lease("gone", at(60))).await.expect("plans");
    assert!(answers.iter().all(|answer| *answer == Planned::Ours));
    let take = |store: Arc<dyn Store>, now, owner: &'static str| async move {
        store.take_over(&here(), now, &lease(owner, at(200)), 7).await.expect("takes over")
    };
    assert!(take(stores[0].clone(), at(59), "early").await.is_empty());
    let mut tasks = Vec::new();
    for n in 0..12usize {
        tasks.push(tokio::spawn(take(stores[n % 2].clone(), at(60), "next")));
    }
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(task.await.expect("the task ends"));
    }
    // Locked rows are passed over, so that not every round finds its seven.
    for _ in 0..6 {
        taken.extend(take(stores[0].clone(), at(60), "next").await);
    }
    let mut keys: Vec<_> = taken.iter().map(|stored| stored.canary.plan.key.clone()).collect();
    let mut expected: Vec<_> = wishes.iter().map(|wish| wish.plan.key.clone()).collect();
    keys.sort();
    expected.sort();
    assert_eq!(keys, expected);
}

async fn what_is_held_here_is_held_on_to_and_taken_by_nobody_else(place: &mut Place) {
    let store = place.open().await;
    let held = plan("a", CanaryKind::Scheduled, at(0));
    store.plan(&[wish(held.clone(), 9)], &lease("one", at(60))).await.expect("plans");
    let take = async |owner, now, until| {
        let taken = store.take_over(&here(), at(now), &lease(owner, at(until)), 9).await.expect("takes");
        taken.len()
    };
    assert_eq!(take("one", 40, 100).await, 0, "there is time yet");
    assert_eq!(take("two", 59, 120).await, 0, "it is held");
    assert_eq!(take("one", 59, 120).await, 1, "its owner holds it for longer");
    assert_eq!(take("two", 100, 160).await, 0);
    assert_eq!(take("two", 120, 180).await, 1, "its owner is gone");
}

async fn a_released_canary_is_not_taken_over_but_due(place: &mut Place) {
    let store = place.open().await;
    let held = plan("a", CanaryKind::Scheduled, at(0));
    store.plan(&[wish(held.clone(), 9)], &lease("one", at(30))).await.expect("plans");
    assert!(store.due(&here(), at(500), 10, &[]).await.expect("reads").is_empty());
    assert_eq!(store.next_due(&here()).await.expect("reads"), None);
    append(&*store, held.canary_id, vec![], true).await;
    assert!(store.take_over(&here(), at(500), &lease("two", at(600)), 9).await.expect("takes").is_empty());
    assert_eq!(store.next_due(&here()).await.expect("reads"), Some(at(120)));
    assert!(store.due(&here(), at(119), 10, &[]).await.expect("reads").is_empty());
    let due = async |but: &[RouteName]| {
        let due = store.due(&here(), at(120), 10, but).await.expect("reads");
        due.into_iter().map(|stored| stored.canary.plan).collect::<Vec<_>>()
    };
    assert_eq!(due(&[]).await, std::slice::from_ref(&held));
    assert_eq!(due(&[route("b"), route("c")]).await, [held]);
    assert_eq!(due(&[route("b"), route("a")]).await, []);
}

async fn the_newest_slot_is_known_by_kind(place: &mut Place) {
    let store = place.open().await;
    for seconds in [60, 180, 120] {
        planned(&*store, "a", at(seconds)).await;
    }
    let newest = |kind| {
        let store = store.clone();
        async move { store.newest_slots(&here()).await.expect("reads").get(&(route("a"), kind)).copied() }
    };
    assert_eq!(newest(CanaryKind::Scheduled).await, Some(at(180)));
    assert_eq!(newest(CanaryKind::Replay).await, None);
}

async fn what_the_guard_stopped_was_not_submitted(place: &mut Place) {
    let store = place.open().await;
    let newest = async || store.newest(&here()).await.expect("reads")[0].1;
    let held = plan("a", CanaryKind::Scheduled, at(0));
    store.plan(&[wish(held.clone(), 9)], &lease("one", at(30))).await.expect("plans");
    let submitted = |seconds, reason| {
        Event::Submitted(Submission {
            started_at: at(seconds),
            ended_at: at(seconds),
            status: None,
            way: None,
            ledger: None,
            result: SubmissionResult::Refused { reason },
        })
    };
    append(&*store, held.canary_id, vec![submitted(1, RefusalReason::Guard)], false).await;
    assert_eq!(newest().await, None, "nothing has left");
    append(&*store, held.canary_id, vec![submitted(2, RefusalReason::Unreachable)], true).await;
    assert_eq!(newest().await, Some(at(2)));
}
