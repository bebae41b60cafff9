//! The trials of PEER_FAULTS.md that need the whole program: what went wrong in tools like ours does not go wrong here.

use crate::common::{postgres, world};
use delivery_canary::simulator::{Fault, FaultOrder};
use postgres::Postgres;
use serde_json::Value;
use std::{
    fs,
    net::{SocketAddr, TcpListener},
    time::Duration,
};
use world::{Place, Shape, World, free_address, until};

const ROUTE: [(&str, &str); 2] = [("location", "here"), ("route", "webhook/receipts")];

fn verdicts(place: &Place, verdict: &str) -> f64 {
    place.value("delivery_canary_verdicts", &[ROUTE[0], ROUTE[1], ("verdict", verdict)]).unwrap_or(-1.0)
}

fn evidence(place: &Place) -> f64 {
    place
        .value("delivery_canary_failure_evidence", &[ROUTE[0], ("question", "arrives"), ROUTE[1]])
        .unwrap_or(-1.0)
}

fn observer_up(place: &Place, observer: &str) -> Option<f64> {
    place.value("delivery_monitor_observer_up", &[("observer", observer)])
}

fn tail(place: &Place) -> String {
    let log = place.log();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

fn until_verdicts(place: &Place, verdict: &str, at_least: f64) {
    until(&format!("{at_least} canaries {verdict}"), 60, || {
        let seen = verdicts(place, verdict);
        if seen >= at_least { Ok(()) } else { Err(format!("{seen}; log:\n{}", tail(place))) }
    });
}

fn until_evidence(place: &Place, at_least: f64) {
    until(&format!("evidence of {at_least}"), 60, || {
        let seen = evidence(place);
        if seen >= at_least { Ok(()) } else { Err(format!("{seen}; log:\n{}", tail(place))) }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_01_timed_out_submissions_are_in_the_totals_and_in_the_streak() {
    let world = World::new(Shape::default()).await;
    world.simulator.switch(FaultOrder::on(Fault::AcceptanceSlow).seconds(5.0)).await.unwrap();
    world.simulator.fault_on(Fault::WriteLost).await.unwrap();
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_verdicts(&place, "unknown", 3.0);
    until("a streak of three", 20, || match place.value("delivery_canary_consecutive_failures", &ROUTE) {
        Some(n) if n >= 3.0 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    until_evidence(&place, 5.0);
    let page = place.scrape().unwrap();
    let unknown =
        page.value("delivery_canary_submissions_total", &[("result", "unknown"), ROUTE[1]]).unwrap();
    assert!(unknown >= 3.0, "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_02_and_03_a_failure_on_the_very_first_run_has_all_its_series() {
    let world = World::new(Shape::default()).await;
    world.simulator.fault_on(Fault::AcceptanceDown).await.unwrap();
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until("the first scrape", 20, || place.scrape().map(|_| ()).ok_or_else(|| place.log()));
    let first = place.scrape().unwrap();
    for (name, labels) in [
        ("delivery_canary_verdicts", vec![ROUTE[0], ROUTE[1], ("verdict", "refused")]),
        ("delivery_canary_submissions_total", vec![("result", "refused"), ROUTE[1]]),
    ] {
        assert_eq!(first.value(name, &labels), Some(0.0), "{name} at the first scrape");
    }
    // Both are there as soon as what settled was read, which is nothing here: long before any canary has settled.
    let both = [
        ("delivery_canary_failure_evidence", vec![ROUTE[0], ("question", "arrives"), ROUTE[1]]),
        ("delivery_canary_consecutive_failures", ROUTE.to_vec()),
    ];
    until("the evidence to be there", 20, || {
        let values = both.each_ref().map(|(name, labels)| place.value(name, labels));
        if values.iter().all(Option::is_some) { Ok(()) } else { Err(format!("{values:?}")) }
    });
    until_evidence(&place, 5.0);
    let later = place.scrape().unwrap();
    assert!(
        later.value("delivery_canary_last_arrival_timestamp_seconds", &ROUTE).is_none(),
        "a time that never came"
    );
    assert_eq!(
        later.value("delivery_canary_stopped_at", &[ROUTE[0], ROUTE[1], ("stage", "acceptance")]),
        Some(1.0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_04_each_connection_is_cut_in_mid_run_and_comes_back_by_itself() {
    let server = Postgres::start();
    let shape = Shape { ledger_url: Some(server.fresh_database().await), ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_verdicts(&place, "on_time", 2.0);
    for fault in [Fault::AcceptanceDown, Fault::LedgerUnreachable, Fault::ProviderDown] {
        world.simulator.fault_on(fault).await.unwrap();
        if fault == Fault::LedgerUnreachable {
            until("the ledger to be missed", 30, || match observer_up(&place, "ledger/attempts") {
                Some(0.0) => Ok(()),
                other => Err(format!("{other:?}")),
            });
        } else {
            until_evidence(&place, 2.0);
        }
        assert_eq!(place.probe("/live"), Some(200), "{fault} is no matter of our own life");
        assert_eq!(place.probe("/ready"), Some(200), "{fault} is no matter of our own readiness");
        world.simulator.fault_off(fault).await.unwrap();
        let before = verdicts(&place, "on_time");
        until_verdicts(&place, "on_time", before + 3.0);
        until("the ledger to be seen", 30, || match observer_up(&place, "ledger/attempts") {
            Some(1.0) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_06_and_07_with_everything_down_metrics_answer_and_each_comes_back_alone() {
    let mut server = Postgres::start();
    let shape = Shape {
        store_url: Some(server.fresh_database().await),
        ledger_url: Some(server.fresh_database().await),
        ..Shape::default()
    };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    for fault in [Fault::AcceptanceDown, Fault::LedgerUnreachable, Fault::ProviderDown] {
        world.simulator.fault_on(fault).await.unwrap();
    }
    server.stop();
    let _monitor = place.serve();
    until("metrics while all is down", 20, || match place.value("delivery_monitor_store_up", &[]) {
        Some(0.0) => Ok(()),
        other => Err(format!("{other:?}; {}", tail(&place))),
    });
    until("the start, of which a remote store is no part", 20, || match place.probe("/startup") {
        Some(200) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(place.probe("/live"), Some(200));
    assert_eq!(place.probe("/ready"), Some(503), "the contract can't be kept without the store");
    server.start_again();
    until("the store to be used again", 40, || match place.value("delivery_monitor_store_up", &[]) {
        Some(1.0) => Ok(()),
        other => Err(format!("{other:?}; {}", tail(&place))),
    });
    until_verdicts(&place, "refused", 1.0);
    world.simulator.fault_off(Fault::LedgerUnreachable).await.unwrap();
    until("the ledger to be seen", 40, || match observer_up(&place, "ledger/attempts") {
        Some(1.0) => Ok(()),
        other => Err(format!("{other:?}; {}", tail(&place))),
    });
    world.simulator.fault_off(Fault::AcceptanceDown).await.unwrap();
    world.simulator.fault_off(Fault::ProviderDown).await.unwrap();
    until_verdicts(&place, "on_time", 2.0);
}

/// When the oldest canary that was on time arrived, and when its acceptance was known.
fn until_timeline(place: &Place) -> (String, String) {
    let listed =
        place.command(&["canary", "list", "--verdict", "on_time", "--limit", "500", "--json"]).stdout;
    let listed = String::from_utf8(listed).expect("it is text");
    let oldest: Value = serde_json::from_str(listed.lines().last().expect("a canary")).expect("it is JSON");
    let id = oldest["canary_id"].as_str().expect("an id");
    let shown: Value =
        serde_json::from_slice(&place.command(&["canary", "show", id, "--json"]).stdout).expect("it is JSON");
    let at = |event: &str| {
        let events = shown["timeline"].as_array().expect("a list");
        let found = events.iter().find(|written| written["event"] == event);
        found.unwrap_or_else(|| panic!("no {event} in {shown:#}"))["at"].as_str().expect("a time").to_owned()
    };
    (at("received"), at("submitted"))
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_09_a_receipt_before_the_acceptance_answer_is_on_time() {
    let shape = Shape { deadline: "5s", ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    // It accepts and delivers at once. The answer comes long after; and then not at all.
    world.simulator.switch(FaultOrder::on(Fault::AcceptanceAmbiguous).seconds(0.7)).await.unwrap();
    let _monitor = place.serve();
    until_verdicts(&place, "on_time", 3.0);
    let first = until_timeline(&place);
    assert!(first.0 < first.1, "the receipt came before the answer: {first:?}");
    world.simulator.fault_on(Fault::AcceptanceAmbiguous).await.unwrap();
    let before = verdicts(&place, "on_time");
    until_verdicts(&place, "on_time", before + 3.0);
    for bad in ["lost", "overdue", "unknown", "refused"] {
        assert_eq!(verdicts(&place, bad), 0.0, "{bad}");
    }
}

/// A listener that takes connections and says nothing.
fn black_hole() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(free_address()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_10_and_11_a_sink_that_is_a_black_hole_makes_the_monitor_blind_and_nothing_bad() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let (_hole, address) = black_hole();
    let text = fs::read_to_string(&place.config).unwrap();
    let public = format!("public_url: http://{}/receipts", place.receipts);
    assert!(text.contains(&public));
    fs::write(&place.config, text.replace(&public, &format!("public_url: http://{address}/receipts")))
        .unwrap();
    let _monitor = place.serve();
    until_verdicts(&place, "undetermined", 3.0);
    assert_eq!(verdicts(&place, "overdue"), 0.0);
    assert_eq!(verdicts(&place, "on_time"), 0.0);
    assert_eq!(evidence(&place), 0.0);
    assert_eq!(observer_up(&place, "receiver/sink"), Some(0.0));
    assert_eq!(place.probe("/live"), Some(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_15_a_restart_in_mid_incident_keeps_the_evidence_and_a_recovery_ends_it() {
    let world = World::new(Shape::default()).await;
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    let place = world.configure("monitor");
    let mut monitor = place.serve();
    until_evidence(&place, 5.0);
    let since = |place: &Place| {
        let labels = [ROUTE[0], ("question", "arrives"), ROUTE[1]];
        place.value("delivery_canary_failing_since_timestamp_seconds", &labels)
    };
    let first = since(&place).expect("a time since when it fails");
    monitor.kill();
    let again = place.serve();
    until_evidence(&place, 5.0);
    assert_eq!(since(&place), Some(first), "the failing began before the restart");
    drop(again);
    // It recovers while nobody looks.
    world.simulator.reset().await.unwrap();
    let _third = place.serve();
    until("the evidence to be gone", 90, || {
        let seen = evidence(&place);
        if seen == 0.0 { Ok(()) } else { Err(format!("{seen}")) }
    });
    assert_eq!(since(&place), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_17_one_stuck_canary_among_many_good_ones_surfaces_by_age() {
    let shape = Shape { deadline: "30s", routes: vec!["receipts".into()], ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_verdicts(&place, "on_time", 2.0);
    // The provider loses what it has now, and nothing that comes later.
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    until("one in flight", 20, || match place.value("delivery_canary_in_flight", &ROUTE) {
        Some(n) if n >= 1.0 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    world.simulator.fault_off(Fault::SilentDrop).await.unwrap();
    let oldest = |place: &Place| place.value("delivery_canary_oldest_in_flight_timestamp_seconds", &ROUTE);
    let stuck = oldest(&place).expect("an oldest one");
    let before = verdicts(&place, "on_time");
    until_verdicts(&place, "on_time", before + 8.0);
    assert_eq!(oldest(&place), Some(stuck), "the good ones behind it do not hide it");
    assert_eq!(verdicts(&place, "overdue"), 0.0, "it may still arrive");
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_21_a_missing_grant_is_undetermined_sight_and_not_a_failure() {
    let server = Postgres::start();
    let database = server.fresh_database().await;
    let shape = Shape { ledger_url: Some(database.clone()), ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    // The same database by a role that may log in and read nothing.
    let stranger = server.role("stranger", &database).await;
    let text = fs::read_to_string(&place.config).unwrap();
    let line = text.lines().skip_while(|l| !l.contains("database:")).nth(1).unwrap().to_owned();
    fs::write(&place.config, text.replace(&line, &format!("      postgres: {{ url: {stranger} }}"))).unwrap();
    let _monitor = place.serve();
    until_verdicts(&place, "on_time", 3.0);
    assert_eq!(observer_up(&place, "ledger/attempts"), Some(0.0));
    assert_eq!(evidence(&place), 0.0);
    let pending = place.value("delivery_ledger_pending", &[ROUTE[1], ("state", "unattempted")]);
    assert_eq!(pending, None, "what could not be read is absent, not zero");
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_22_a_ledger_clock_five_minutes_off_changes_no_verdict_and_is_seen() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    for seconds in [-300.0, 300.0] {
        world.simulator.switch(FaultOrder::on(Fault::ClockSkew).seconds(seconds)).await.unwrap();
        let mut monitor = place.serve();
        let before = verdicts(&place, "on_time").max(0.0);
        until_verdicts(&place, "on_time", before + 3.0);
        for bad in ["late", "overdue", "unknown", "lost"] {
            assert_eq!(verdicts(&place, bad), 0.0, "{bad} at a skew of {seconds}s");
        }
        assert_eq!(monitor.terminate(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_25_a_deadline_may_be_many_times_the_interval() {
    let shape = Shape { deadline: "20s", ..Shape::default() };
    let world = World::with(shape, |options| options.provider_timeout = Duration::from_secs(8)).await;
    // Each canary takes three seconds, three times the interval.
    world.simulator.switch(FaultOrder::on(Fault::ProviderSlow).seconds(3.0)).await.unwrap();
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until("several in flight at a time", 30, || match place.value("delivery_canary_in_flight", &ROUTE) {
        Some(n) if n >= 2.0 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    until_verdicts(&place, "on_time", 5.0);
    assert_eq!(verdicts(&place, "overdue"), 0.0);
    let missed = place.value("delivery_canary_missed_slots_total", &[ROUTE[1]]);
    assert_eq!(missed, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_takes_a_good_file_and_keeps_the_old_one_of_a_bad() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let monitor = place.serve();
    until_verdicts(&place, "on_time", 1.0);
    let good = fs::read_to_string(&place.config).unwrap();
    let hash = place.value("delivery_monitor_config_hash", &[]);
    fs::write(&place.config, good.replace("deadline: 2s", "deadlin: 2s")).unwrap();
    world::process::signal(monitor.id(), "HUP");
    until("the bad file to be refused", 20, || {
        match place.value("delivery_monitor_config_last_reload_successful", &[]) {
            Some(0.0) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    assert_eq!(place.value("delivery_monitor_config_hash", &[]), hash);
    assert!(place.log().contains("deadlin"), "the log names the fault");
    fs::write(&place.config, good.replace("deadline: 2s", "deadline: 3s")).unwrap();
    // Without a signal: the checksum is polled.
    until("the good file to be taken", 30, || {
        match place.value("delivery_route_deadline_seconds", &[ROUTE[1]]) {
            Some(3.0) => Ok(()),
            other => Err(format!("{other:?}; {}", tail(&place))),
        }
    });
    assert_eq!(place.value("delivery_monitor_config_last_reload_successful", &[]), Some(1.0));
    assert_ne!(place.value("delivery_monitor_config_hash", &[]), hash);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_sending_at_once_and_a_resume_starts_it_without_a_burst() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_verdicts(&place, "on_time", 2.0);
    let paused =
        place.command(&["pause", "webhook/receipts", "--for", "10m", "--owner", "test", "--reason", "trial"]);
    assert!(paused.status.success(), "{paused:?}");
    until("the pause on metrics", 10, || match place.value("delivery_canary_paused", &[ROUTE[1]]) {
        Some(1.0) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let sent = world.simulator.totals().submissions;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.simulator.totals().submissions, sent, "nothing is sent while it is paused");
    let resumed = place.command(&["resume", "webhook/receipts", "--owner", "test"]);
    assert!(resumed.status.success(), "{resumed:?}");
    let before = verdicts(&place, "on_time");
    until_verdicts(&place, "on_time", before + 2.0);
    let more = world.simulator.totals().submissions - sent;
    assert!(more <= 5, "{more} were sent at once");
    assert_eq!(
        place.value("delivery_canary_missed_slots_total", &[ROUTE[1]]),
        Some(0.0),
        "paused is not missed"
    );
}
