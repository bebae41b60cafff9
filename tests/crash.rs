//! Whatever the moment of a crash, whoever runs beside: one canary a slot, none lost, none sent twice.

use crate::common::{postgres, world};
use delivery_canary::{
    monitor::crash::POINTS,
    simulator::{Fault, FaultOrder, Simulator},
};
use postgres::Postgres;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};
use world::{Place, Shape, World, until};

/// All canaries of a store, by the command that lists them.
fn canaries(place: &Place) -> Vec<Value> {
    let output = place.command(&["canary", "list", "--json", "--limit", "5000"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

fn key_of(canary: &Value) -> (String, String) {
    let text = |field: &str| canary[field].as_str().expect(field).to_owned();
    (text("route"), text("slot"))
}

/// The idempotency key that a canary of this slot must have gone out under.
fn expected_key(canary: &Value) -> String {
    use delivery_canary::domain::{
        canary::CanaryKind,
        route::{IdempotencyKey, Location, RouteName},
    };
    let (route, slot) = key_of(canary);
    let slot = chrono::DateTime::parse_from_rfc3339(&slot).expect("a time").to_utc();
    let location = Location::from_text(canary["location"].as_str().expect("a location"));
    IdempotencyKey::derive(&RouteName::from_text(route), &location, CanaryKind::Scheduled, slot)
        .as_str()
        .to_owned()
}

/// One canary a slot, one effect a canary at the most, and nothing at the service that no canary of the store explains: a request that
/// left before its plan was durable would be there alone. Nothing may be sent any more.
fn assert_whole(place: &Place, simulator: &Simulator, at_least: usize) {
    let all = canaries(place);
    assert!(all.len() >= at_least, "only {} canaries", all.len());
    let mut by_slot: BTreeMap<(String, String), u32> = BTreeMap::new();
    let (mut submissions, mut accepted) = (0, 0);
    for canary in &all {
        *by_slot.entry(key_of(canary)).or_default() += 1;
        let effects = simulator.effects(&expected_key(canary));
        assert!(effects.accepted <= 1, "{canary}: {effects:?}");
        if canary["verdict"] == "on_time" {
            assert_eq!(effects.accepted, 1, "{canary}: {effects:?}");
        }
        submissions += effects.submissions;
        accepted += effects.accepted;
    }
    assert!(by_slot.values().all(|n| *n == 1), "{by_slot:?}");
    let totals = simulator.totals();
    // Two canaries of one slot would come under one key with two ids.
    assert_eq!(totals.conflicts, 0, "one key came with other content");
    assert_eq!(
        (totals.submissions, totals.accepted),
        (submissions, accepted),
        "the service was sent what no canary of the store explains"
    );
}

/// Twenty routes, so that a hundred canaries are planned in five seconds.
fn busy(store_url: Option<String>) -> Shape {
    Shape {
        store_url,
        routes: (0..20).map(|n| format!("route-{n:02}")).collect(),
        deadline: "10s",
        settle: "2s",
        ..Shape::default()
    }
}

/// Lets a monitor die at the 50th passage of a point, starts it again, and waits until every canary has its verdict.
async fn dies_at(point: &str, store_url: Option<String>) {
    let world = World::new(busy(store_url)).await;
    let place = world.configure("monitor");
    // The scheduler plans all routes of a slot at once, and the settler looks at many canaries at once.
    let passage = match point {
        "planned" | "due_loaded" | "ledger_read" | "decided_not_written" | "decision_written" => 5,
        _ => 50,
    };
    let mut first = place.serve_with(&[("DELIVERY_CANARY_CRASH_AT", &format!("{point}:{passage}"))]);
    until(&format!("the monitor to die at {point}"), 60, || {
        if first.has_ended() { Ok(()) } else { Err("it runs".into()) }
    });
    let before = canaries(&place).len();
    let second = place.serve();
    until("a hundred canaries more", 60, || {
        let seen = canaries(&place).len();
        if seen >= before + 100 { Ok(()) } else { Err(format!("{seen}, {before} before the crash")) }
    });
    all_end_well(&place, &world.simulator, before + 100);
    drop(second);
}

/// Sends no new ones, waits until all have their verdicts, and finds all whole and none bad.
fn all_end_well(place: &Place, simulator: &Simulator, at_least: usize) {
    let paused =
        place.command(&["pause", "--for", "10m", "--owner", "test", "--reason", "the end of the test"]);
    assert!(paused.status.success(), "{paused:?}");
    until("every canary to have a verdict", 90, || {
        let open = canaries(place).iter().filter(|c| c["verdict"].is_null()).count();
        if open == 0 { Ok(()) } else { Err(format!("{open} open")) }
    });
    assert_whole(place, simulator, at_least);
    let bad: Vec<Value> = canaries(place).into_iter().filter(|c| c["class"] == "bad").collect();
    assert!(bad.is_empty(), "a crash of the monitor is no fault of the service: {bad:?}");
}

async fn dies_with_a_hundred_in_flight(store_url: Option<String>) {
    let shape = Shape { deadline: "40s", settle: "3s", ..busy(store_url) };
    let world = World::with(shape, |options| {
        options.provider_timeout = Duration::from_secs(20);
        options.workers = 256;
    })
    .await;
    world.simulator.switch(FaultOrder::on(Fault::ProviderSlow).seconds(8.0)).await.unwrap();
    let place = world.configure("monitor");
    let mut first = place.serve();
    until("the monitor to be ready", 60, || match place.probe("/ready") {
        Some(200) => Ok(()),
        seen => Err(format!("{seen:?}; log:\n{}", place.log())),
    });
    until("a hundred canaries in flight", 90, || {
        let seen = canaries(&place).iter().filter(|c| c["verdict"].is_null()).count();
        if seen >= 100 { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
    first.kill();
    let before = canaries(&place);
    let open = before.iter().filter(|c| c["verdict"].is_null()).count();
    assert!(open >= 100, "only {open} were in flight");
    world.simulator.reset().await.unwrap();
    let _second = place.serve();
    until("more canaries", 60, || {
        let seen = canaries(&place).len();
        if seen > before.len() { Ok(()) } else { Err(format!("{seen}, {} before", before.len())) }
    });
    all_end_well(&place, &world.simulator, before.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_08_kill_with_a_hundred_canaries_in_flight_on_sqlite() {
    dies_with_a_hundred_in_flight(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_08_kill_with_a_hundred_canaries_in_flight_on_postgresql() {
    let server = Postgres::start();
    dies_with_a_hundred_in_flight(Some(server.fresh_database().await)).await;
}

macro_rules! trial_08 {
    ($($name:ident: $place:literal,)+) => { $(
        mod $name {
            #[tokio::test(flavor = "multi_thread")]
            async fn trial_08_kill_on_sqlite() {
                super::dies_at(super::POINTS[$place], None).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn trial_08_kill_on_postgresql() {
                let server = super::Postgres::start();
                super::dies_at(super::POINTS[$place], Some(server.fresh_database().await)).await;
            }
        }
    )+ };
}

trial_08! {
    planned: 0,
    before_submission: 1,
    submitted_not_written: 2,
    submission_written: 3,
    arrived_not_written: 4,
    arrival_written: 5,
    due_loaded: 6,
    ledger_read: 7,
    decided_not_written: 8,
    decision_written: 9,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_sent_in_other_words_is_not_refused() {
    let world = World::new(busy(None)).await;
    let place = world.configure("monitor");
    let mut first = place.serve_with(&[("DELIVERY_CANARY_CRASH_AT", "submitted_not_written:50")]);
    until("the monitor to die", 60, || if first.has_ended() { Ok(()) } else { Err("it runs".into()) });
    let text = std::fs::read_to_string(&place.config).expect("it is there");
    // The same key in other words: the service refuses that, and may have the canary all the same.
    let other = text.replace("\"amount\": \"12.34\"", "\"amount\": \"12.340\"");
    assert_ne!(text, other);
    std::fs::write(&place.config, other).expect("it is written");
    let timeline = |canary: &Value| {
        let id = canary["canary_id"].as_str().expect("an id");
        let shown = place.command(&["canary", "show", id, "--json"]).stdout;
        let shown: Value = serde_json::from_slice(&shown).expect("it is JSON");
        shown["timeline"].to_string()
    };
    let mut left = canaries(&place);
    left.retain(|canary| !timeline(canary).contains("submitted"));
    let _second = place.serve();
    until("what the first one left to be submitted again, and refused", 120, || {
        let said: Vec<String> = left.iter().map(timeline).collect();
        if said.iter().any(|said| said.contains("refused, status (status 422)")) {
            Ok(())
        } else {
            Err(format!("{said:?}"))
        }
    });
    until("all of it to have a verdict", 60, || {
        let all = canaries(&place);
        let is_open =
            |old: &&Value| all.iter().any(|c| c["canary_id"] == old["canary_id"] && c["verdict"].is_null());
        let open = left.iter().filter(is_open).count();
        if open == 0 { Ok(()) } else { Err(format!("{open} open; log:\n{}", place.log())) }
    });
    let bad: Vec<Value> = canaries(&place).into_iter().filter(|c| c["class"] == "bad").collect();
    assert!(bad.is_empty(), "a crash of the monitor is no fault of the service: {bad:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_18_two_replicas_send_one_canary_a_slot_and_one_goes_on_alone() {
    let server = Postgres::start();
    let shape = Shape { store_url: Some(server.fresh_database().await), ..busy(None) };
    let world = World::new(shape).await;
    let (one, other) = (world.configure("one"), world.configure("other"));
    let mut first = one.serve();
    let mut second = other.serve();
    until("200 slots by two replicas", 90, || {
        let seen = canaries(&one).len();
        if seen >= 200 { Ok(()) } else { Err(format!("{seen}")) }
    });
    first.kill();
    let before = canaries(&other).len();
    until("100 slots more by the one that is left", 60, || {
        let seen = canaries(&other).len();
        if seen >= before + 100 { Ok(()) } else { Err(format!("{seen}, {before} before")) }
    });
    assert_eq!(second.terminate(), Some(0));
    assert_whole(&other, &world.simulator, 300);
    // One submission each, but for what the one that was killed had under way.
    let totals = world.simulator.totals();
    let again = totals.submissions - totals.accepted - totals.refused;
    assert!(again <= 40, "{again} canaries were sent a second time: {totals:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_24_twenty_restarts_send_no_extra_canary() {
    let world = World::new(Shape { deadline: "5s", ..Shape::default() }).await;
    let place = world.configure("monitor");
    for round in 0..20 {
        let mut monitor = place.serve();
        until("the monitor to be ready", 20, || match place.probe("/ready") {
            Some(200) => Ok(()),
            other => Err(format!("{other:?}; log:\n{}", place.log())),
        });
        if round % 2 == 0 {
            monitor.kill();
        } else {
            assert_eq!(monitor.terminate(), Some(0));
        }
    }
    assert_whole(&place, &world.simulator, 1);
    // All slots are those of the schedule, so that none was sent because a process began.
    let slots: Vec<i64> = canaries(&place)
        .iter()
        .map(|canary| {
            canary["slot"].as_str().and_then(|slot| slot.parse::<chrono::DateTime<chrono::Utc>>().ok())
        })
        .map(|slot| slot.expect("a time").timestamp_millis())
        .collect();
    assert!(slots.iter().all(|slot| slot % 1_000 == 0), "{slots:?}");
}

/// A canary that a dead process had planned stays where it is while its route is paused, also when the pause came while nobody ran.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_for_what_a_dead_process_left() {
    let world = World::new(Shape { deadline: "20s", ..Shape::default() }).await;
    let place = world.configure("monitor");
    let mut first = place.serve_with(&[("DELIVERY_CANARY_CRASH_AT", "before_submission:3")]);
    until("the monitor to die", 60, || if first.has_ended() { Ok(()) } else { Err("it runs".into()) });
    let before = world.simulator.totals().submissions;
    let left: Vec<Value> = canaries(&place).into_iter().filter(|c| c["verdict"].is_null()).collect();
    assert!(!left.is_empty(), "it died with one that was planned");
    let paused = place.command(&["pause", "--for", "10m", "--owner", "test", "--reason", "a trial"]);
    assert!(paused.status.success(), "{paused:?}");
    let _second = place.serve();
    until("what was left to have a verdict", 120, || {
        let all = canaries(&place);
        let open = left
            .iter()
            .filter(|old| all.iter().any(|c| c["canary_id"] == old["canary_id"] && c["verdict"].is_null()));
        match open.count() {
            0 => Ok(()),
            open => Err(format!("{open} open; log:\n{}", place.log())),
        }
    });
    assert_eq!(world.simulator.totals().submissions, before, "something left on a route that is paused");
    let bad: Vec<Value> =
        canaries(&place).into_iter().filter(|c| c["class"] == "bad" || c["class"] == "unknown").collect();
    assert!(bad.is_empty(), "that it was held back says nothing of the service: {bad:?}");
}
