//! All kinds of canary, and what the views must not contradict: replays, control arms, confirmations, duplicates, the guard, expected ends.

use crate::common::world;
use delivery_canary::simulator::Fault;
use serde_json::{Value, json};
use std::fs;
use world::{Place, RECIPIENT, Shape, World, until};

const ROUTE: [(&str, &str); 2] = [("location", "here"), ("route", "webhook/receipts")];

fn canaries(place: &Place) -> Vec<Value> {
    let output = place.command(&["canary", "list", "--json", "--limit", "500"]);
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

fn until_settled(place: &Place, kind: &str, verdict: &str, at_least: usize) {
    until(&format!("{at_least} canaries of kind {kind} to be {verdict}"), 60, || {
        let all = canaries(place);
        let of_kind: Vec<&Value> = all.iter().filter(|c| c["kind"] == kind).collect();
        let seen = of_kind.iter().filter(|c| c["verdict"] == verdict).count();
        if seen >= at_least { Ok(()) } else { Err(format!("{seen} of {of_kind:?}; log:\n{}", place.log())) }
    });
}

/// How often a contradiction was found. A kind that was not found has no series; a page that is not there is no answer.
fn disagreements(place: &Place, kind: &str) -> f64 {
    let labels = [("kind", kind), ("route", "webhook/receipts")];
    let Some(page) = place.scrape() else { return -1.0 };
    page.value("delivery_canary_disagreements", &labels).unwrap_or(0.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_and_controls_go_out_and_stay_out_of_the_sli() {
    let lines = "    replay: { every: 2s }\n    controls:\n      sink: { acceptance: sink, schedule: { every: 2s } }\n      \
                 provider: { acceptance: provider, schedule: { every: 2s } }\n";
    let shape = Shape { schedule: "{ every: 1h }".into(), route_lines: lines.into(), ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    for kind in ["replay", "control_sink", "control_provider"] {
        until_settled(&place, kind, "on_time", 2);
    }
    assert_eq!(disagreements(&place, "second_effect_for_one_key"), 0.0, "one key, one effect");
    assert_eq!(disagreements(&place, "duplicate_receipt"), 0.0);
    let sli = [ROUTE[0], ROUTE[1], ("verdict", "on_time")];
    assert_eq!(
        place.value("delivery_canary_verdicts", &sli),
        Some(0.0),
        "only scheduled canaries are in the SLI"
    );
    for arm in ["sink", "provider"] {
        let good = [("arm", arm), ("class", "good"), ROUTE[0], ROUTE[1]];
        until(&format!("the arm {arm} to be told"), 30, || {
            match place.value("delivery_canary_controls", &good) {
                Some(count) if count >= 2.0 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
        let bad = [("arm", arm), ("class", "bad"), ROUTE[0], ROUTE[1]];
        assert_eq!(place.value("delivery_canary_controls", &bad), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_there_is_evidence_confirmations_are_sent_and_not_before() {
    let shape = Shape { schedule: "{ every: 10s }".into(), ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).unwrap();
    fs::write(&place.config, text.replace("{ every: 1s, max: 0 }", "{ every: 1s, max: 9 }")).unwrap();
    let _monitor = place.serve();
    until_settled(&place, "scheduled", "on_time", 1);
    assert!(canaries(&place).iter().all(|c| c["kind"] == "scheduled"), "{:?}", canaries(&place));
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    until_settled(&place, "confirmation", "overdue", 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_weights_by_a_reload_weigh_the_history_anew_and_say_so() {
    let world = World::new(Shape::default()).await;
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    let place = world.configure("monitor");
    let _monitor = place.serve();
    let evidence = |place: &Place| {
        place.value("delivery_canary_failure_evidence", &[ROUTE[0], ("question", "arrives"), ROUTE[1]])
    };
    until("the evidence to be at its cap", 60, || match evidence(&place) {
        Some(value) if value >= 6.0 => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
    let text = fs::read_to_string(&place.config).unwrap();
    let changed = text.replace("evidence: { sustain: 3s }", "evidence: { sustain: 3s, p0: 0.01, bound: 8 }");
    assert_ne!(text, changed);
    fs::write(&place.config, changed).unwrap();
    until("the log to say so", 60, || {
        if place.log().contains("evidence_refolded") { Ok(()) } else { Err(place.log()) }
    });
    let log = place.log();
    let mut lines = log.lines().filter(|line| line.contains("evidence_refolded"));
    let line: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(lines.next(), None, "once");
    assert_eq!((&line["route"], &line["location"]), (&"webhook/receipts".into(), &"here".into()));
    assert_eq!(line["old"], "p0 0.0005, p1 0.3, bound 5, sustain 3s");
    assert_eq!(line["new"], "p0 0.01, p1 0.3, bound 8, sustain 3s");
    let folded = usize::try_from(line["canaries"].as_u64().unwrap()).unwrap();
    let all = canaries(&place);
    let settled = all.iter().filter(|c| !c["verdict"].is_null()).count();
    assert!(folded >= 5 && folded <= settled, "{folded} of {settled}");
    assert_eq!(line["arrives_before"].as_f64(), Some(6.0));
    // The outage goes on, so the evidence is soon at its new cap, which a count of only new canaries would reach later than the log's.
    assert!(line["arrives"].as_f64().unwrap() > 6.0, "{line}");
    until("the new cap to show", 30, || match evidence(&place) {
        Some(value) if (value - 9.0).abs() < 1e-9 => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_webhook_is_a_duplicate_and_the_canary_is_good() {
    let world = World::new(Shape::default()).await;
    world.simulator.fault_on(Fault::Duplicate).await.unwrap();
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until("a duplicate to be seen", 40, || match disagreements(&place, "duplicate_receipt") {
        n if n >= 1.0 => Ok(()),
        n => Err(format!("{n}; log:\n{}", place.log())),
    });
    until_settled(&place, "scheduled", "on_time", 2);
    // What the alert's runbook begins with.
    let listed = |kind: &[&str]| {
        let output = place.command(&[&["canary", "list", "--limit", "5", "--contradiction"], kind].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let any = listed(&[]);
    assert!(
        any.lines().skip(1).all(|line| line.ends_with("duplicate_receipt")) && any.lines().count() > 1,
        "{any}"
    );
    let as_json = listed(&["duplicate_receipt", "--json"]);
    assert!(!as_json.is_empty());
    for line in as_json.lines() {
        let canary: Value = serde_json::from_str(line).unwrap();
        assert_eq!(canary["disagreements"], json!(["duplicate_receipt"]), "{line}");
    }
    assert!(listed(&["outcome_rewritten"]).ends_with("none\n"));
    let wrong = place.command(&["canary", "list", "--contradiction", "nonsense"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("duplicate_receipt"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customers_address_never_leaves_and_is_counted() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).unwrap();
    let leak = text.replace(
        "\"template\": \"payment_receipt\"",
        "\"template\": \"payment_receipt\", \"cc\": \"somebody@example.test\"",
    );
    assert_ne!(leak, text);
    fs::write(&place.config, leak).unwrap();
    let _monitor = place.serve();
    until("the guard to stop a request", 30, || {
        let seen =
            place.value("delivery_canary_guard_refusals_total", &[("reason", "mail_address"), ROUTE[1]]);
        if seen.is_some_and(|n| n >= 1.0) { Ok(()) } else { Err(format!("{seen:?}; log:\n{}", place.log())) }
    });
    assert_eq!(world.simulator.totals().submissions, 0, "nothing has left");
    assert!(
        place.log().contains("list it in the route's `recipients`"),
        "the log says what to change: {}",
        place.log()
    );
    let checked = place.command(&["check"]);
    let faults = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(78), "{checked:?}");
    assert!(faults.contains("monitor.yaml:") && faults.contains("{{ recipient }}"), "{faults}");
    assert!(!faults.contains("somebody@example.test"), "{faults}");
    assert!(!place.log().contains("somebody@example.test") && !place.log().contains(RECIPIENT));
    // That nothing arrives is then the monitor's doing, and says nothing of the service.
    until_settled(&place, "scheduled", "undetermined", 1);
    let sent = place.command(&["canary", "send", "receipts"]);
    let text = String::from_utf8_lossy(&sent.stdout).into_owned();
    assert!(text.contains("the guard stopped it, `delivery-canary check` says where"), "{sent:?}");
    assert!(text.contains("not among the route's recipients") && !text.contains("somebody@"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_26_the_hourly_cap_holds_over_a_restart() {
    let shape = Shape { ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).unwrap();
    // The schedule fits its cap; canaries by hand come on top of it.
    let text = text
        .replace("schedule: { every: 1s }", "schedule: { cron: { expression: \"0 0 1 1 *\" } }")
        .replace("hourly_cap: 20000", "hourly_cap: 3");
    fs::write(&place.config, text).unwrap();
    let serve_for_a_moment = || {
        let mut monitor = place.serve();
        until("the monitor to be ready", 30, || match place.probe("/ready") {
            Some(200) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        monitor.kill();
    };
    serve_for_a_moment();
    let send = || place.command(&["canary", "send", "webhook/receipts", "--no-wait"]);
    for _ in 0..2 {
        let sent = send();
        assert!(sent.status.success(), "{sent:?}");
        assert!(String::from_utf8_lossy(&sent.stderr).contains("nobody seems to serve"), "{sent:?}");
    }
    serve_for_a_moment();
    assert!(send().status.success());
    let refused = send();
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("cap of 3"),
        "{refused:?}"
    );
    assert!(world.simulator.totals().accepted <= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_expects_suppression_is_good_when_it_happens() {
    let world =
        World::new(Shape { route_lines: "    expected_end: suppressed\n".into(), ..Shape::default() }).await;
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).unwrap();
    fs::write(&place.config, text.replace(RECIPIENT, "suppressed-canary@example.invalid")).unwrap();
    let _monitor = place.serve();
    until_settled(&place, "scheduled", "suppressed", 2);
    let all = canaries(&place);
    assert!(all.iter().filter(|c| c["verdict"] == "suppressed").all(|c| c["class"] == "good"), "{all:?}");
    let labels = [ROUTE[0], ("question", "arrives"), ROUTE[1]];
    assert_eq!(place.value("delivery_canary_failure_evidence", &labels), Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definite_refusal_is_settled_long_before_its_deadline() {
    let shape = Shape { deadline: "10m", settle: "10m", follow_for: "2h", ..Shape::default() };
    let world = World::new(shape).await;
    world.simulator.fault_on(Fault::ErrorIn200).await.unwrap();
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_settled(&place, "scheduled", "refused", 1);
    world.simulator.reset().await.unwrap();
    world.simulator.fault_on(Fault::AcceptanceDown).await.unwrap();
    let sent = place.command(&["canary", "send", "receipts", "--json"]);
    let canary: Value = serde_json::from_slice(&sent.stdout).unwrap_or_else(|_| panic!("{sent:?}"));
    assert_eq!(canary["verdict"], "refused", "{canary}");
    let tries = canary["timeline"].as_array().unwrap().iter().filter(|e| e["event"] == "submitted").count();
    assert_eq!(tries, 3, "only after the last try: {canary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refused_submission_is_counted_once_and_has_its_canary() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).unwrap();
    // The service refuses a channel that it doesn't know.
    let unfit = text.replace("\"channel\": \"webhook\"", "\"channel\": \"pigeon\"");
    assert_ne!(unfit, text);
    fs::write(&place.config, unfit).unwrap();
    let _monitor = place.serve();
    let settled = "delivery_canary_consecutive_failures";
    until("ten refused canaries to settle", 60, || match place.value(settled, &ROUTE) {
        Some(n) if n >= 10.0 => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
    let paused = place.command(&["pause", "--for", "10m", "--owner", "test", "--reason", "counting"]);
    assert!(paused.status.success(), "{paused:?}");
    until("as many submissions as canaries", 20, || {
        let counted = place.value("delivery_canary_submissions_total", &[("result", "refused"), ROUTE[1]]);
        let (listed, came) = (canaries(&place).len() as f64, world.simulator.totals().submissions as f64);
        if counted == Some(listed) && came == listed {
            Ok(())
        } else {
            Err(format!("{counted:?} counted, {listed} listed, {came} came"))
        }
    });
}
