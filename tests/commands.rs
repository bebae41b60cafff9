//! Commands beside a monitor: what they say when something is not as they need it.

use crate::common::world;
use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
};
use world::{Place, Shape, World, process::PROGRAM, until};

const ROUTE: [(&str, &str); 2] = [("location", "here"), ("route", "webhook/receipts")];

fn quiet() -> Shape {
    Shape { schedule: "{ every: 1h }".into(), ..Shape::default() }
}

fn ready(place: &Place, status: u16) {
    until(&format!("/ready to say {status}"), 40, || match place.probe("/ready") {
        Some(seen) if seen == status => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_seen_enough_ends_a_list() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until("canaries to be listed", 40, || {
        let listed = place.command(&["canary", "list", "--limit", "500"]).stdout;
        let lines = listed.iter().filter(|byte| **byte == b'\n').count();
        if lines > 8 { Ok(()) } else { Err(format!("{lines} lines")) }
    });
    let mut list = Command::new(PROGRAM)
        .args(["canary", "list", "--limit", "500", "--config"])
        .arg(&place.config)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(list.stdout.take());
    let mut said = String::new();
    list.stderr.take().expect("a pipe").read_to_string(&mut said).expect("it is text");
    assert_eq!((list.wait().expect("it ends").code(), said.as_str()), (Some(0), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_makes_no_store_of_its_own() {
    let world = World::new(quiet()).await;
    let place = world.configure("monitor");
    let pause = ["pause", "--for", "1h", "--owner", "o", "--reason", "r"];
    for arguments in [&["canary", "list"][..], &pause, &["canary", "send", "receipts"]] {
        let output = place.command(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(75), "{arguments:?}: {said}");
        assert!(said.contains("there is no store") && said.contains("serve"), "{arguments:?}: {said}");
    }
    let made: Vec<_> =
        fs::read_dir(world.folder.path()).expect("a folder").flatten().map(|e| e.path()).collect();
    assert!(!made.iter().any(|path| path.to_string_lossy().contains("monitor.db")), "{made:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_file_is_gone_is_down() {
    let world = World::new(quiet()).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    ready(&place, 200);
    let stores: Vec<_> = fs::read_dir(world.folder.path())
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("monitor.db")))
        .collect();
    assert!(!stores.is_empty());
    stores.iter().for_each(|path| fs::remove_file(path).expect("it goes"));
    ready(&place, 503);
    until("the store to be down", 20, || match place.value("delivery_monitor_store_up", &[]) {
        Some(0.0) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert!(place.log().contains("is gone"), "{}", place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_sent_by_another_configuration_is_said_to_be() {
    let world = World::new(quiet()).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    ready(&place, 200);
    let warning = "has another configuration in force";
    until("the configuration in force to be noted", 20, || {
        let sent = place.command(&["canary", "send", "receipts", "--no-wait"]);
        let said = String::from_utf8_lossy(&sent.stderr).into_owned();
        if said.contains(warning) || !sent.status.success() { Err(said) } else { Ok(()) }
    });
    let text = fs::read_to_string(&place.config).expect("it was written");
    let other = world.folder.path().join("other.yaml");
    fs::write(&other, text.replace("deadline: 2s", "deadline: 3s")).expect("it can be written");
    let sent = Place { config: other, ..place.clone() }.command(&["canary", "send", "receipts", "--no-wait"]);
    let said = String::from_utf8_lossy(&sent.stderr).into_owned();
    assert!(sent.status.success() && said.contains(warning), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_done_now_and_what_nobody_can_say_have_their_own_codes() {
    let world = World::new(Shape { hourly_cap: 2, ..quiet() }).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    ready(&place, 200);
    until("the route to be served", 20, || match place.value("delivery_canary_paused", &ROUTE[1..]) {
        Some(0.0) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let send = || place.command(&["canary", "send", "receipts", "--no-wait"]);
    let codes: Vec<_> = (0..3).map(|_| send().status.code()).collect();
    assert_eq!(codes.last(), Some(&Some(75)), "the cap: {codes:?}");
    let pause = place.command(&["pause", "--for", "1h", "--owner", "o", "--reason", "r"]);
    assert!(pause.status.success(), "{pause:?}");
    let paused = send();
    assert_eq!(paused.status.code(), Some(75), "{paused:?}");
    let said = String::from_utf8_lossy(&paused.stderr).into_owned();
    assert!(
        said.contains("all routes are paused by o until ")
            && said.contains("(r): `delivery-canary resume --owner"),
        "{said}"
    );
    let resume = |route: &[&str]| {
        let output = place.command(&[&["resume", "--owner", "o"], route].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = resume(&["webhook/receipts"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("no pause of its own\nall routes are paused by o"), "{said}");
    let pause = place.command(&["pause", "webhook/receipts", "--for", "1h", "--owner", "p", "--reason", "s"]);
    assert!(pause.status.success(), "{pause:?}");
    let (code, said) = resume(&["webhook/receipts"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("is ended\nall routes are still paused by o"), "{said}");
    assert_eq!(resume(&[]), (Some(0), "all routes are resumed\n".to_owned()));
}

/// Runs what stands between the first two backticks as a shell would, with this program in the place of its name.
fn paste(said: &str) -> (Option<i32>, String) {
    let command = said.split('`').nth(1).unwrap_or_else(|| panic!("no command in {said}"));
    let command = command.strip_prefix("delivery-canary").expect("it begins with the program's name");
    let output = Command::new("/bin/sh").args(["-c", &format!("exec \"$0\"{command}"), PROGRAM]).output();
    let output = output.expect("a shell");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_that_ends_a_pause_works_as_it_is_printed() {
    let world = World::new(quiet()).await;
    let named = world.configure("monitor of ours");
    let _monitor = named.serve();
    ready(&named, 200);
    for route in [&["webhook/receipts"][..], &[]] {
        let pause = [&["pause"], route, &["--for", "1h", "--owner", "on call", "--reason", "r"]].concat();
        let output = named.command(&pause);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("` ends that sooner"), "{output:?}");
        // Whoever meets the pause is told the same way.
        let sent = named.command(&["canary", "send", "receipts", "--no-wait", "--owner", "it's me"]);
        let met = String::from_utf8_lossy(&sent.stderr).into_owned();
        assert_eq!(sent.status.code(), Some(75), "{met}");
        let (code, ended) = paste(&met);
        assert_eq!((code, ended.contains("resumed")), (Some(0), true), "{met}: {ended}");
        let (code, again) = paste(&said);
        assert_eq!(code, Some(4), "{said}: it is ended already: {again}");
    }
}
