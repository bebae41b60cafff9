//! Verdicts beside what is slow, gone or moved: each canary ends once, in one line, by who serves, whatever else is in trouble.

use crate::common::{postgres, world};
use delivery_canary::simulator::{Fault, FaultOrder, ReaderAddress};
use postgres::Postgres;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};
use world::{
    Place, Shape, World,
    process::{Monitor, signal},
    until,
};

fn canaries(place: &Place) -> Vec<Value> {
    let output = place.command(&["canary", "list", "--json", "--limit", "5000"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// Starts a monitor and waits until commands can work beside it.
fn serve(place: &Place) -> Monitor {
    let monitor = place.serve();
    until("the monitor to be ready", 60, || match place.probe("/ready") {
        Some(200) => Ok(()),
        seen => Err(format!("{seen:?}; log:\n{}", place.log())),
    });
    monitor
}

fn verdicts(place: &Place, route: &str, verdict: &str) -> f64 {
    let labels = [("location", "here"), ("route", route), ("verdict", verdict)];
    place.value("delivery_canary_verdicts", &labels).unwrap_or(-1.0)
}

fn until_verdicts(place: &Place, route: &str, verdict: &str, at_least: f64) {
    until(&format!("{at_least} canaries {verdict} on {route}"), 90, || {
        let seen = verdicts(place, route, verdict);
        if seen >= at_least { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
}

fn pause(place: &Place) {
    let paused = place.command(&["pause", "--for", "1h", "--owner", "test", "--reason", "no new ones"]);
    assert!(paused.status.success(), "{paused:?}");
}

fn until_all_have_verdicts(place: &Place) -> Vec<Value> {
    let mut all = Vec::new();
    until("every canary to have a verdict", 90, || {
        all = canaries(place);
        let open = all.iter().filter(|c| c["verdict"].is_null()).count();
        if open == 0 && !all.is_empty() { Ok(()) } else { Err(format!("{open} open; log:\n{}", place.log())) }
    });
    all
}

/// How many terminal lines the log has of each canary.
fn terminal_lines(place: &Place) -> BTreeMap<String, u32> {
    let mut lines = BTreeMap::new();
    for line in place.log().lines().filter(|line| line.contains("\"canary_settled\"")) {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        let id = line["canary_id"].as_str().or(line["fields"]["canary_id"].as_str()).expect("an id");
        *lines.entry(id.to_owned()).or_default() += 1;
    }
    lines
}

fn each_has_one_line(place: &Place, all: &[Value]) {
    let ids: BTreeSet<&str> = all.iter().filter_map(|c| c["canary_id"].as_str()).collect();
    // A line is written just after its verdict.
    until("a line for each canary", 20, || {
        let lines = terminal_lines(place);
        let without: Vec<_> = ids.iter().filter(|id| lines.get(**id) != Some(&1)).collect();
        if without.is_empty() { Ok(()) } else { Err(format!("without one line: {without:?}")) }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_by_hand_settles_nobody_elses_canaries() {
    let routes: Vec<String> = (0..10).map(|n| format!("route-{n}")).collect();
    let world = World::new(Shape { routes, ..Shape::default() }).await;
    // They come to their verdicts at their settlement, when commands look too.
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    let place = world.configure("monitor");
    let _monitor = serve(&place);
    until_verdicts(&place, "webhook/route-0", "overdue", 1.0);
    // The operator's file has other routes.
    let operators = Place { config: world.folder.path().join("operator.yaml"), ..place.clone() };
    let text = fs::read_to_string(&place.config).unwrap();
    let cut = text.find("  - channel: webhook\n    name: route-5\n").expect("the sixth route");
    let mapped: Vec<String> = (5..10).map(|n| format!(", route-{n}: webhook/route-{n}")).collect();
    fs::write(&operators.config, text[..cut].replace(&mapped.concat(), "")).unwrap();
    for _ in 0..2 {
        let sent = operators.command(&["canary", "send", "route-0", "--json"]);
        let canary: Value = serde_json::from_slice(&sent.stdout).unwrap_or_else(|_| panic!("{sent:?}"));
        assert_eq!(canary["verdict"], "overdue", "{canary}");
    }
    pause(&place);
    let all = until_all_have_verdicts(&place);
    each_has_one_line(&place, &all);
}

#[tokio::test(flavor = "multi_thread")]
async fn canaries_of_a_route_that_a_reload_removed_end_in_a_line_too() {
    let shape = Shape {
        routes: vec!["receipts".into(), "leaving".into()],
        deadline: "15s",
        settle: "5s",
        ..Shape::default()
    };
    let world = World::new(shape).await;
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    let place = world.configure("monitor");
    let monitor = serve(&place);
    until("canaries of both routes", 60, || {
        let seen = canaries(&place).iter().filter(|c| c["route"] == "webhook/leaving").count();
        if seen >= 3 { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
    pause(&place);
    let text = fs::read_to_string(&place.config).unwrap();
    let cut = text.find("  - channel: webhook\n    name: leaving\n").expect("the second route");
    fs::write(&place.config, text[..cut].replace(", leaving: webhook/leaving", "")).unwrap();
    signal(monitor.id(), "HUP");
    until("the reload", 30, || {
        if place.log().contains("configuration_taken") { Ok(()) } else { Err(place.log()) }
    });
    let open = canaries(&place).iter().filter(|c| c["verdict"].is_null()).count();
    assert!(open >= 3, "only {open} were on their way at the reload");
    let all = until_all_have_verdicts(&place);
    each_has_one_line(&place, &all);
}

/// A ledger without its query for the pending.
fn without_pending(ledger: &str) -> String {
    let (begin, end) =
        (ledger.find("    pending:\n").expect("a query"), ledger.find("    statuses:").expect("statuses"));
    format!("{}{}", &ledger[..begin], &ledger[end..])
}

#[tokio::test(flavor = "multi_thread")]
async fn canaries_of_a_route_that_moved_to_another_ledger_are_looked_for_where_they_are() {
    let shape = Shape { deadline: "15s", settle: "5s", ..Shape::default() };
    let world = World::new(shape).await;
    let elsewhere = World::new(Shape::default()).await;
    let (ReaderAddress::Sqlite(ours), ReaderAddress::Sqlite(other)) =
        (world.simulator.ledger_reader(), elsewhere.simulator.ledger_reader())
    else {
        panic!("both ledgers are files")
    };
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).unwrap();
    let (begin, end) =
        (text.find("  attempts:\n").expect("a ledger"), text.find("routes:\n  - ").expect("routes"));
    let moved = text[begin..end]
        .replacen("  attempts:", "  moved:", 1)
        .replace(ours.to_str().unwrap(), other.to_str().unwrap());
    // Only canaries are looked up: whose customers are where is not asked here.
    let (moved, text) = (without_pending(&moved), without_pending(&text));
    let end = text.find("routes:\n  - ").expect("routes");
    let both = format!("{}{moved}{}", &text[..end], &text[end..]);
    fs::write(&place.config, &both).unwrap();
    let monitor = serve(&place);
    until("three canaries on their way", 60, || {
        let seen = canaries(&place).len();
        if seen >= 4 { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
    pause(&place);
    fs::write(&place.config, both.replace("    ledger: attempts\n", "    ledger: moved\n")).unwrap();
    signal(monitor.id(), "HUP");
    until("the reload", 30, || {
        if place.log().contains("configuration_taken") { Ok(()) } else { Err(place.log()) }
    });
    let open = canaries(&place).iter().filter(|c| c["verdict"].is_null()).count();
    assert!(open >= 2, "only {open} were on their way at the reload");
    let all = until_all_have_verdicts(&place);
    let found = |kind: &str| {
        let labels = [("kind", kind), ("route", "webhook/receipts")];
        place.scrape().and_then(|page| page.value("delivery_canary_disagreements", &labels)).unwrap_or(0.0)
    };
    until("each to be found delivered in its own ledger", 30, || {
        let (seen, all) = (found("delivered_without_receipt"), all.len() as f64);
        if seen >= all { Ok(()) } else { Err(format!("{seen} of {all}; log:\n{}", place.log())) }
    });
    assert_eq!(found("accepted_without_ledger_row"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_silent_for_longer_than_the_budget_holds_up_nobody_else() {
    let shape =
        Shape { routes: vec!["silent".into(), "receipts".into()], deadline: "8s", ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    // Its lookup sleeps until its limit ends it, each time.
    let server = Postgres::start();
    let database = server.fresh_database().await;
    server.execute("test_0", "create table n (id text, key text, status text)").await;
    let silent = format!(
        "  silent:\n    database:\n      postgres: {{ url: {database} }}\n    overlap: 2s\n    statement_timeout: 20s\n    \
         lookup:\n      sql: |\n        select n.id, n.key, n.status from (select pg_sleep(60)::text as nap offset 0) s left join n\n        \
         on n.id = any(:ids) or n.key = any(:keys) limit :limit\n      \
         columns: {{ notification_id: id, idempotency_key: key, status: status }}\n    statuses: {{ sent: delivered }}\n"
    );
    let text = fs::read_to_string(&place.config).unwrap();
    // Its notifications are in one ledger alone.
    let text = text.replace("silent: webhook/silent, ", "");
    let at = text.find("routes:\n  - ").expect("routes");
    let with =
        format!("{silent}{}", text[at..].replacen("    ledger: attempts\n", "    ledger: silent\n", 1));
    fs::write(&place.config, format!("{}{with}", &text[..at])).unwrap();
    let _monitor = serve(&place);
    let silent_is = || place.value("delivery_monitor_observer_up", &[("observer", "ledger/silent")]);
    until("the first lookup in the silent ledger to end", 90, || {
        let log = place.log();
        let is_seen =
            log.lines().any(|line| line.contains("observer_down") && line.contains("ledger/silent"));
        if is_seen { Ok(()) } else { Err(format!("{:?}; log:\n{log}", silent_is())) }
    });
    let meanwhile = verdicts(&place, "webhook/receipts", "on_time");
    assert!(meanwhile >= 5.0, "{meanwhile} verdicts on the other ledger meanwhile; log:\n{}", place.log());
    // A slot a second: longer than the budget of the settler.
    until("more than a minute of verdicts", 120, || {
        assert_eq!(place.probe("/live"), Some(200), "a ledger is no matter of our own life");
        let seen = verdicts(&place, "webhook/receipts", "on_time");
        if seen >= 65.0 { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
    assert!(verdicts(&place, "webhook/silent", "on_time") >= 1.0, "what arrived has arrived");
    assert_eq!(silent_is(), Some(0.0), "it is seen that it is silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_a_replica_served_while_this_process_stood_still_are_not_missed() {
    let server = Postgres::start();
    let shape = Shape {
        store_url: Some(server.fresh_database().await),
        schedule: "{ every: 2s }".into(),
        deadline: "20s",
        ..Shape::default()
    };
    let world = World::new(shape).await;
    let (one, other) = (world.configure("one"), world.configure("other"));
    let stopped = serve(&one);
    let _serves = serve(&other);
    let succeeded = |place: &Place| {
        let labels = [("loop", "scheduler")];
        place.value("delivery_monitor_loop_last_success_timestamp_seconds", &labels).unwrap_or(0.0)
    };
    until("both to plan", 30, || {
        let seen = [&one, &other].map(succeeded);
        if seen.iter().all(|at| *at > 0.0) { Ok(()) } else { Err(format!("{seen:?}; log:\n{}", one.log())) }
    });
    let before = canaries(&other).len();
    signal(stopped.id(), "STOP");
    until("six slots by the other one", 60, || {
        let seen = canaries(&other).len();
        if seen >= before + 6 { Ok(()) } else { Err(format!("{seen}, {before} before")) }
    });
    let last = succeeded(&other);
    signal(stopped.id(), "CONT");
    until("the one that stood still to plan again", 30, || {
        let seen = succeeded(&one);
        if seen > last + 2.0 { Ok(()) } else { Err(format!("{seen}, {last} before; log:\n{}", one.log())) }
    });
    let missed = one.value("delivery_canary_missed_slots_total", &[("route", "webhook/receipts")]);
    assert_eq!(missed, Some(0.0), "the other one served them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_counts_each_of_its_requests() {
    let shape = Shape {
        schedule: "{ every: 1h }".into(),
        route_lines: "    replay: { every: 2s }\n".into(),
        deadline: "10s",
        ..Shape::default()
    };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let _monitor = serve(&place);
    let of_kind = |all: &[Value]| all.iter().filter(|c| c["kind"] == "replay").count() as f64;
    until("two replays", 60, || {
        let seen = of_kind(&canaries(&place));
        if seen >= 2.0 { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
    pause(&place);
    let all = until_all_have_verdicts(&place);
    // One that is aborted, two at once, and the one after which it is known.
    let (replays, others) = (of_kind(&all), all.len() as f64 - of_kind(&all));
    until("four requests a replay", 20, || {
        let page = place.scrape().ok_or("no page")?;
        let of = |result| {
            page.value(
                "delivery_canary_submissions_total",
                &[("result", result), ("route", "webhook/receipts")],
            )
        };
        let seen: f64 = ["accepted", "refused", "unknown"].into_iter().filter_map(of).sum();
        if seen >= 4.0 * replays + others {
            Ok(())
        } else {
            Err(format!("{seen} of {replays} replays and {others} others"))
        }
    });
}

/// Slow submissions under way at a stop are answered and written down within the grace time.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_at_a_stop_is_written_down() {
    let world = World::new(Shape { deadline: "20s", ..Shape::default() }).await;
    world.simulator.switch(FaultOrder::on(Fault::AcceptanceSlow).seconds(2.0)).await.unwrap();
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).unwrap();
    let patient = text
        .replacen("      total_timeout: 1s\n", "      total_timeout: 10s\n", 1)
        .replace("grace: 8s", "grace: 20s");
    assert_ne!(patient, text);
    fs::write(&place.config, patient).unwrap();
    let mut monitor = serve(&place);
    until("submissions under way", 60, || {
        let (came, planned) = (world.simulator.totals().accepted, canaries(&place).len() as u64);
        if planned > came && came >= 1 { Ok(()) } else { Err(format!("{planned} planned, {came} answered")) }
    });
    assert_eq!(monitor.terminate(), Some(0));
    assert!(!place.log().contains("under_way"), "{}", place.log());
    let all = canaries(&place);
    for canary in &all {
        let shown = place.command(&["canary", "show", canary["canary_id"].as_str().unwrap(), "--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        assert!(shown["timeline"].to_string().contains("accepted"), "{shown}");
    }
    assert_eq!(world.simulator.totals().submissions, all.len() as u64, "one request a canary");
}
