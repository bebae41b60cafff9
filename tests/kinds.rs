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
async fn faults_of_the_demo_are_told_in_words_and_for_machines_in_json() {
    let world = World::new(Shape::default()).await;
    let admin = format!("http://{}", world.simulator.addresses().admin);
    let fault = |arguments: &[&str], admin: &str| {
        let mut command = std::process::Command::new(world::process::PROGRAM);
        let output =
            command.args(["demo", "fault"]).args(arguments).args(["--admin", admin]).output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    let (code, text) = fault(&["provider-5xx", "on", "--route", "receipts", "--ratio", "0.5"], &admin);
    assert_eq!((code, text.as_str()), (Some(0), "on now: provider-5xx on receipts, for 0.5 of the cases\n"));
    let (code, text) = fault(&[], &admin);
    assert!(code == Some(0) && text.contains("silent-drop") && !text.contains('{'), "{text}");
    let (code, text) = fault(&["--json"], &admin);
    assert!(code == Some(0) && serde_json::from_str::<Value>(&text).unwrap()["on"].is_array(), "{text}");
    for refused in [vec!["nonsense"], vec!["acceptance-down", "on", "--route", "receipts"]] {
        let (code, text) = fault(&refused, &admin);
        assert!(code == Some(2) && !text.contains("{\""), "{code:?} {text}");
    }
    assert_eq!(fault(&[], "http://127.0.0.1:1").0, Some(75));
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
async fn a_canary_by_hand_waits_explains_and_can_be_erased() {
    let world = World::new(Shape { schedule: "{ every: 1h }".into(), ..Shape::default() }).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until("the monitor to be ready", 30, || match place.probe("/ready") {
        Some(200) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let sent = place.command(&["canary", "send", "receipts", "--json"]);
    assert!(sent.status.success(), "{sent:?}");
    assert!(!String::from_utf8_lossy(&sent.stderr).contains("nobody seems to serve"), "{sent:?}");
    let canary: Value = serde_json::from_slice(&sent.stdout).expect("JSON");
    assert_eq!(canary["verdict"], "on_time");
    let id = canary["canary_id"].as_str().unwrap();
    let notification = canary["notification_ids"][0].as_str().unwrap();
    for spelt in [notification.to_owned(), notification.to_uppercase()] {
        let shown = place.command(&["canary", "show", "--notification", &spelt, "--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        assert_eq!(shown["canary_id"], id, "{spelt}");
    }
    let unknown = "00000000-0000-7000-8000-000000000000";
    let none = place.command(&["canary", "erase", unknown, "--owner", "test"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(none.status.code() == Some(4) && said.contains("--notification"), "{none:?}");
    let erased = place.command(&["canary", "erase", id, "--owner", "test"]);
    assert!(erased.status.success(), "{erased:?}");
    let again = place.command(&["canary", "erase", id, "--owner", "test"]);
    assert!(
        again.status.success() && String::from_utf8_lossy(&again.stdout).contains("erased before"),
        "{again:?}"
    );
    let shown = place.command(&["canary", "show", id, "--json"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(!text.contains(notification), "{text}");
    assert!(text.contains("on_time"), "the verdict stays: {text}");
    let gone = place.command(&["canary", "show", notification, "--notification"]);
    assert_eq!(gone.status.code(), Some(4), "{gone:?}");
    let none = place.command(&["canary", "show", unknown]);
    assert_eq!(none.status.code(), Some(4));
    let nowhere = place.command(&["canary", "send", "webhook/nope"]);
    assert_eq!(nowhere.status.code(), Some(4), "{nowhere:?}");
    let for_ever = place.command(&["pause", "--for", "100000d", "--owner", "test", "--reason", "for ever"]);
    assert!(
        for_ever.status.code() == Some(2) && String::from_utf8_lossy(&for_ever.stderr).contains("30d"),
        "{for_ever:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_wrongly_is_refused_as_usage_and_the_right_way_is_shown() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    for (arguments, words) in [
        (vec!["canary", "list", "--limit", "0"], "such as 20"),
        (vec!["canary", "list", "--limit", "-1"], "such as 20"),
        (vec!["canary", "list", "--from", "nonsense"], "such as 2026-11-29T10:00:00Z"),
        (
            vec!["canary", "list", "--from", "2026-11-29T11:00:00Z", "--until", "2026-11-29T10:00:00Z"],
            "--from 2026-11-29T11:00:00Z is not before --until 2026-11-29T10:00:00Z",
        ),
        (
            vec!["canary", "list", "--from", "2026-11-29T11:00:00Z", "--until", "2026-11-29T12:00:00+01:00"],
            "the earlier time as --from",
        ),
        (vec!["canary", "list", "--verdict", "fine"], "on_time"),
        (vec!["canary", "show", "nonsense"], "looks like"),
        (vec!["canary", "show", "+15005550006"], "`masked:sha256:"),
        (vec!["canary", "erase", "nonsense", "--owner", "test"], "looks like"),
        (vec!["canary", "erase", "nonsense", "--owner", "test"], "write --notification"),
        (vec!["pause", "--for", "0s", "--owner", "test", "--reason", "none"], "such as 30m"),
        (vec!["pause", "--for", "5m", "--owner", " ", "--reason", "none"], "--owner NAME"),
        (vec!["schedule", "next", "--expression", "nonsense"], "--expression"),
        (vec!["schedule", "next", "--count", "0"], "--count"),
        (vec!["schedule", "next", "--after", "nonsense"], "2026-11-29T10:00:00"),
        (vec!["schedule", "next", "--expression", "@hourly", "--zone", "Nowhere"], "--zone"),
    ] {
        let output = place.command(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_one_sqlite_file_is_refused_and_commands_are_not() {
    let world = World::new(Shape::default()).await;
    let (one, other) = (world.configure("one"), world.configure("other"));
    let ready = |place: &Place| {
        until("the monitor to be ready", 30, || match place.probe("/ready") {
            Some(200) => Ok(()),
            seen => Err(format!("{seen:?}; log:\n{}", place.log())),
        });
    };
    let mut first = one.serve();
    ready(&one);
    let mut second = other.serve();
    until("the second one to give up", 30, || match second.exit_code() {
        Some(75) => Ok(()),
        seen => Err(format!("{seen:?}; log:\n{}", other.log())),
    });
    for words in ["monitor.db", "another process serves", "PostgreSQL"] {
        assert!(other.log().contains(words), "`{words}` is not in:\n{}", other.log());
    }
    for arguments in [
        vec!["canary", "list"],
        vec!["canary", "send", "receipts", "--no-wait"],
        vec!["pause", "--for", "1m", "--owner", "test", "--reason", "beside"],
        vec!["check", "--online"],
    ] {
        let output = one.command(&arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    first.kill();
    let _third = other.serve();
    ready(&other);
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
async fn an_online_check_connects_to_everything_and_sends_nothing() {
    let world =
        World::new(Shape { schedule: "{ cron: { expression: \"0 0 1 1 *\" } }".into(), ..Shape::default() })
            .await;
    let place = world.configure("monitor");
    // The monitor that runs is what the public address leads to.
    let _monitor = place.serve();
    until("the monitor to be ready", 30, || match place.probe("/ready") {
        Some(200) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let checked = place.command(&["check", "--online"]);
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{text}{}", String::from_utf8_lossy(&checked.stderr));
    for words in
        ["ok      store", "ledger attempts:", "ok      acceptance service", "receiver sink: public address"]
    {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
    assert_eq!(world.simulator.totals().submissions, 0, "nothing is sent");
    world.simulator.fault_on(Fault::AcceptanceDown).await.unwrap();
    let failed = place.command(&["check", "--online"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(String::from_utf8_lossy(&failed.stdout).contains("FAILED  acceptance service"), "{failed:?}");
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
