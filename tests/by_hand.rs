//! Commands by hand, beside a monitor that runs.

use crate::common::world;
use delivery_canary::simulator::Fault;
use serde_json::Value;
use world::{Place, Shape, World, until};

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
