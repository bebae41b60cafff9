//! The main job, end to end: a service, a monitor as a process of its own, and what `/metrics`, the log and the commands say.

use crate::common::{postgres, world};
use delivery_canary::simulator::Fault;
use postgres::Postgres;
use serde_json::Value;
use world::{Place, RECIPIENT, Shape, World, until};

const ROUTE: &[(&str, &str)] = &[("location", "here"), ("route", "webhook/receipts")];

fn verdicts(place: &Place, verdict: &str) -> f64 {
    let labels = [("location", "here"), ("route", "webhook/receipts"), ("verdict", verdict)];
    place.value("delivery_canary_verdicts", &labels).unwrap_or(-1.0)
}

fn until_verdict(place: &Place, verdict: &str, at_least: f64) {
    until(&format!("{at_least} canaries {verdict}"), 40, || {
        let seen = verdicts(place, verdict);
        if seen >= at_least { Ok(()) } else { Err(format!("{seen}; log:\n{}", tail(&place.log()))) }
    });
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// The terminal lines of a log.
fn settled(log: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str::<Value>(line).ok();
    let is_settled = |line: &Value| line.to_string().contains("\"canary_settled\"");
    log.lines().filter_map(parse).filter(is_settled).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn canaries_go_the_whole_way_and_their_truth_is_on_metrics() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let mut monitor = place.serve();
    until_verdict(&place, "on_time", 3.0);
    let page = place.scrape().unwrap();
    for bad in [
        "late",
        "overdue",
        "lost",
        "refused",
        "rejected",
        "malformed",
        "unknown",
        "undetermined",
        "suppressed",
    ] {
        assert_eq!(verdicts(&place, bad), 0.0, "{bad}");
    }
    assert_eq!(page.value("delivery_monitor_store_up", &[]), Some(1.0));
    assert!(page.value("delivery_canary_last_arrival_timestamp_seconds", ROUTE).unwrap() > 1.0e9);
    assert_eq!(place.probe("/ready"), Some(200));
    assert_eq!(place.probe("/live"), Some(200));
    assert_eq!(place.probe("/startup"), Some(200));

    let list = place.command(&["canary", "list", "--json"]);
    assert!(list.status.success(), "{list:?}");
    let text = String::from_utf8(list.stdout).unwrap();
    let on_time = text
        .lines()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok())
        .find(|c| c["verdict"] == "on_time");
    let id = on_time.unwrap()["canary_id"].as_str().unwrap().to_owned();
    let show = place.command(&["canary", "show", &id]);
    let text = String::from_utf8(show.stdout).unwrap();
    for words in ["acceptance: accepted as", "sink: arrived, content as expected", "verdict   on_time (good)"]
    {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
    assert_eq!(monitor.terminate(), Some(0));
    let lines = settled(&place.log());
    assert!(lines.len() >= 3);
    let text = lines[0].to_string();
    for field in [
        "canary_id",
        "notification_ids",
        "route",
        "channel",
        "location",
        "verdict",
        "class",
        "traceparent",
        "accept_ms",
        "receipt_ms",
    ] {
        assert!(text.contains(&format!("\"{field}\"")), "{field} is not in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn canaries_go_the_whole_way_over_postgresql() {
    let server = Postgres::start();
    let shape = Shape {
        store_url: Some(server.fresh_database().await),
        ledger_url: Some(server.fresh_database().await),
        ..Shape::default()
    };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let mut monitor = place.serve();
    until_verdict(&place, "on_time", 3.0);
    let warns = || {
        let sent = place.command(&["canary", "send", "receipts", "--no-wait"]);
        assert!(sent.status.success(), "{sent:?}");
        String::from_utf8_lossy(&sent.stderr).contains("nobody seems to serve")
    };
    assert!(!warns(), "somebody serves");
    assert_eq!(monitor.terminate(), Some(0));
    // Here only the messages to ourselves tell, so it takes until the last one is old.
    until("a warning that nobody serves", 60, || if warns() { Ok(()) } else { Err("none".into()) });
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_must_not_be_disclosed_is_in_log_metrics_or_store() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let mut monitor = place.serve();
    until_verdict(&place, "on_time", 2.0);
    world.simulator.fault_on(Fault::Malformed).await.unwrap();
    until_verdict(&place, "malformed", 1.0);
    let page = format!("{:?}", place.scrape().unwrap());
    assert_eq!(monitor.terminate(), Some(0));
    let store = ["monitor.db", "monitor.db-wal"]
        .iter()
        .filter_map(|file| std::fs::read(world.folder.path().join(file)).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect::<String>();
    assert!(store.contains("webhook/receipts"), "the store was not read");
    for (what, text) in [("log", place.log()), ("metrics", page), ("store", store)] {
        for secret in [RECIPIENT, "a-secret-of-this-test-alone", "We received your payment", "/receipts/"] {
            assert!(!text.contains(secret), "{secret} is in the {what}");
        }
    }
}

/// Each fault of the simulator, the verdict it must come to, and the stage that must be named.
#[tokio::test(flavor = "multi_thread")]
async fn each_fault_comes_to_its_verdict_and_names_its_stage() {
    let faults = [
        (Fault::ProviderDown, "overdue", Some("provider")),
        (Fault::SilentDrop, "overdue", Some("sink")),
        (Fault::Malformed, "malformed", Some("content")),
        (Fault::Suppression, "suppressed", None),
        (Fault::Rejection, "rejected", Some("provider")),
        (Fault::StuckWorker, "overdue", Some("ledger")),
        (Fault::AcceptanceDown, "refused", Some("acceptance")),
        (Fault::Acceptance5xx, "unknown", Some("acceptance")),
        (Fault::ErrorIn200, "refused", Some("acceptance")),
    ];
    let mut running = Vec::new();
    for (fault, verdict, stage) in faults {
        let world = World::new(Shape::default()).await;
        world.simulator.fault_on(fault).await.unwrap();
        let place = world.configure("monitor");
        let monitor = place.serve();
        running.push((world, place, monitor, fault, verdict, stage));
    }
    for (_world, place, _monitor, fault, verdict, stage) in &running {
        until(&format!("{fault} to be {verdict}"), 60, || {
            let seen = verdicts(place, verdict);
            if seen >= 2.0 { Ok(()) } else { Err(format!("{seen}; log:\n{}", tail(&place.log()))) }
        });
        if let Some(stage) = stage {
            let labels = [("location", "here"), ("route", "webhook/receipts"), ("stage", *stage)];
            until(&format!("{fault} to stop at {stage}"), 20, || {
                let seen = place.value("delivery_canary_stopped_at", &labels);
                if seen == Some(1.0) { Ok(()) } else { Err(format!("{seen:?}; {:?}", place.scrape())) }
            });
        }
        assert_eq!(verdicts(place, "on_time"), 0.0, "{fault}");
    }
}

/// What a newcomer tries first: the least configuration, against the service that is there.
#[tokio::test(flavor = "multi_thread")]
async fn the_least_configuration_works_against_the_simulated_service() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("minimal");
    let text = include_str!("../config/minimal.yaml")
        .replace("127.0.0.1:9471", &world.simulator.addresses().acceptance.to_string())
        .replace("127.0.0.1:9474", &place.metrics.to_string())
        .replace("127.0.0.1:9475", &place.health.to_string())
        .replace("127.0.0.1:9476", &place.receipts.to_string())
        .replace("${TOKEN_SECRET}", "0123456789abcdef0123456789abcdef");
    std::fs::write(&place.config, text).unwrap();
    let _monitor = place.serve();
    until("the monitor to be ready", 30, || match place.probe("/ready") {
        Some(200) => Ok(()),
        seen => Err(format!("{seen:?}; log:\n{}", place.log())),
    });
    let sent = place.command(&["canary", "send", "webhook/receipts", "--json"]);
    let canary: Value = serde_json::from_slice(&sent.stdout).unwrap_or_else(|_| panic!("{sent:?}"));
    assert_eq!(canary["verdict"], "on_time", "{canary}");
}
