//! The store and the sink cut in mid-run, and the tour of the demo: the rest of trial 4.

use crate::common::{postgres, switch::Switch, world};
use postgres::Postgres;
use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use world::{Place, Shape, World, until};

const ROUTE: [(&str, &str); 2] = [("location", "here"), ("route", "webhook/receipts")];

fn verdicts(place: &Place, verdict: &str) -> f64 {
    place.value("delivery_canary_verdicts", &[ROUTE[0], ROUTE[1], ("verdict", verdict)]).unwrap_or(-1.0)
}

fn until_verdicts(place: &Place, verdict: &str, at_least: f64) {
    until(&format!("{at_least} canaries {verdict}"), 90, || {
        let seen = verdicts(place, verdict);
        if seen >= at_least { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
}

/// Our own trouble is held against nobody.
fn nothing_is_bad(place: &Place) {
    for bad in ["late", "overdue", "lost", "refused", "rejected", "malformed"] {
        assert_eq!(verdicts(place, bad), 0.0, "{bad}; log:\n{}", place.log());
    }
    let evidence = [ROUTE[0], ("question", "arrives"), ROUTE[1]];
    assert_eq!(place.value("delivery_canary_failure_evidence", &evidence), Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_04_the_store_is_stopped_in_mid_run_and_is_used_again_by_itself() {
    let mut server = Postgres::start();
    let world =
        World::new(Shape { store_url: Some(server.fresh_database().await), ..Shape::default() }).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_verdicts(&place, "on_time", 2.0);
    server.stop();
    until("the store to be missed", 40, || match place.value("delivery_monitor_store_up", &[]) {
        Some(0.0) => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
    until("readiness to go, and life to stay", 40, || match (place.probe("/ready"), place.probe("/live")) {
        (Some(503), Some(200)) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    server.start_again();
    until("the store to be used again", 60, || match place.value("delivery_monitor_store_up", &[]) {
        Some(1.0) => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
    let before = verdicts(&place, "on_time").max(0.0);
    until_verdicts(&place, "on_time", before + 5.0);
    until("readiness to come back", 60, || match place.probe("/ready") {
        Some(200) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    nothing_is_bad(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_04_the_way_to_the_sink_is_cut_in_mid_run_and_comes_back_by_itself() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let receiver = place.receipts.to_string();
    let way = Switch::to(&receiver).await;
    let text = fs::read_to_string(&place.config).unwrap();
    let public = format!("public_url: http://{receiver}/receipts");
    assert!(text.contains(&public));
    fs::write(&place.config, text.replace(&public, &format!("public_url: http://{}/receipts", way.address)))
        .unwrap();
    let _monitor = place.serve();
    until_verdicts(&place, "on_time", 2.0);
    way.lead_to(None);
    until("the receiver to be missed", 60, || {
        match place.value("delivery_monitor_observer_up", &[("observer", "receiver/sink")]) {
            Some(0.0) => Ok(()),
            other => Err(format!("{other:?}; log:\n{}", place.log())),
        }
    });
    until_verdicts(&place, "undetermined", 3.0);
    assert_eq!((place.probe("/ready"), place.probe("/live")), (Some(200), Some(200)));
    way.lead_to(Some(&receiver));
    let before = verdicts(&place, "on_time");
    until_verdicts(&place, "on_time", before + 5.0);
    nothing_is_bad(&place);
}

#[test]
fn the_tour_of_the_demo_sees_each_of_its_five_faults() {
    let mut tour = Command::new(world::process::PROGRAM)
        .args(["demo", "--tour"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the demo starts");
    let began = Instant::now();
    while tour.try_wait().expect("it can be asked").is_none() {
        if began.elapsed() > Duration::from_secs(180) {
            tour.kill().expect("it can be killed");
            let said = tour.wait_with_output().expect("its output");
            panic!("the tour takes more than three minutes:\n{}", String::from_utf8_lossy(&said.stdout));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let said = tour.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{text}");
    for seen in [
        "seen: overdue, stops at provider",
        "seen: overdue, stops at sink",
        "seen: malformed, stops at content",
        "seen: overdue, stops at ledger",
        "seen: unknown, stops at acceptance",
    ] {
        assert!(text.contains(seen), "`{seen}` is not in:\n{text}");
    }
}
