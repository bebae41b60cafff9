//! A process whose clock is wrong, beside one whose clock is right, on one store: no verdict and no slot comes of the difference.
//!
//! The shifted clock is made by libfaketime, which changes what the program's calls for the time of day answer and leaves the
//! monotonic clock alone.

use crate::common::{postgres, world};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::simulator::{Channel, TrafficOptions, TrafficRoute};
use postgres::Postgres;
use serde_json::Value;
use sqlx::{Connection, Row};
use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};
use world::{Place, Shape, World, process::Monitor, until};

const SKEW: &str = "delivery_monitor_clock_skew_seconds";

/// The library that shifts a clock.
fn library() -> String {
    let folders = fs::read_dir("/usr/lib").expect("/usr/lib can be read").flatten();
    let candidates = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let found: Option<PathBuf> = candidates.into_iter().find(|path| path.exists());
    let found = found.expect("libfaketime is there: install the Debian package `faketime`");
    found.to_str().expect("its path is UTF-8").to_owned()
}

/// Starts a monitor whose clock is shifted as the file of shifts says, again at each call.
fn serve_shifted(place: &Place, shift: &str) -> Monitor {
    set_shift(place, shift);
    let (library, file) = (library(), shift_file(place));
    place.serve_with(&[
        ("LD_PRELOAD", &library),
        ("FAKETIME_TIMESTAMP_FILE", file.to_str().expect("its path is UTF-8")),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ])
}

fn shift_file(place: &Place) -> PathBuf {
    place.config.with_extension("shift")
}

/// Sets the clock of a monitor. The file is never seen half written.
fn set_shift(place: &Place, shift: &str) {
    let (file, new) = (shift_file(place), place.config.with_extension("shift.new"));
    fs::write(&new, format!("{shift}\n")).expect("it can be written");
    fs::rename(new, file).expect("it can be put in place");
}

fn canaries(place: &Place) -> Vec<Value> {
    let output = place.command(&["canary", "list", "--json", "--limit", "5000"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

fn slot_of(canary: &Value) -> DateTime<Utc> {
    let slot = canary["slot"].as_str().expect("a slot");
    DateTime::parse_from_rfc3339(slot).expect("a time").to_utc()
}

fn until_skew_is(place: &Place, seconds: f64) {
    until(&format!("a skew of {seconds} s"), 60, || match place.value(SKEW, &[("against", "store")]) {
        Some(seen) if (seen - seconds).abs() < 2.0 => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
}

fn until_settled(place: &Place, more: usize) {
    let settled = || canaries(place).iter().filter(|canary| !canary["verdict"].is_null()).count();
    let before = settled();
    until(&format!("{more} verdicts more"), 90, || {
        let seen = settled();
        if seen >= before + more { Ok(()) } else { Err(format!("{seen}, {before} before")) }
    });
}

/// All is as if every clock were right: each slot once, none of a time that is still to come, each arrived in time, no contradiction.
fn assert_sound(place: &Place) {
    let now = Utc::now();
    let all = canaries(place);
    let slots: BTreeSet<_> = all.iter().map(|c| (c["route"].to_string(), slot_of(c))).collect();
    assert_eq!(slots.len(), all.len(), "a canary a slot");
    let wrong: Vec<_> = all
        .iter()
        .filter(|c| !c["verdict"].is_null() && c["verdict"] != "on_time")
        .chain(all.iter().filter(|c| slot_of(c) > now + TimeDelta::seconds(5)))
        .collect();
    let shown = |canary: &&Value| {
        place.command(&["canary", "show", canary["canary_id"].as_str().unwrap_or_default()])
    };
    let shown = wrong.first().map(shown).map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    assert!(wrong.is_empty(), "{wrong:#?}\n{}\nlog:\n{}", shown.unwrap_or_default(), place.log());
    let page = place.scrape().expect("it answers");
    let contradictions = page.label_sets("delivery_canary_disagreements");
    assert!(contradictions.is_empty(), "{contradictions:?}\nlog:\n{}", place.log());
}

async fn world(server: &Postgres) -> World {
    let routes = (0..4).map(|n| format!("route-{n}")).collect();
    let store_url = Some(server.fresh_database().await);
    // A busy machine is slow: what it does late, and what is repeated for that, is no matter of clocks. A clock that is a minute and a
    // half off is further off than all of this.
    let shape = Shape { store_url, routes, deadline: "20s", settle: "5s", ..Shape::default() };
    World::with(shape, |options| {
        options.provider_timeout = Duration::from_secs(10);
        options.callback_timeout = Duration::from_secs(9);
    })
    .await
}

/// Configures a monitor that has patience with a busy machine.
fn configure(world: &World, name: &str) -> Place {
    let place = world.configure(name);
    let mut text = fs::read_to_string(&place.config).expect("the configuration is there");
    for (impatient, patient) in [
        ("connect_timeout: 500ms", "connect_timeout: 5s"),
        ("total_timeout: 1s", "total_timeout: 10s"),
        ("overlap: 2s", "overlap: 20s"),
    ] {
        assert!(text.contains(impatient), "{impatient}");
        text = text.replacen(impatient, patient, 1);
    }
    fs::write(&place.config, text).expect("it can be written");
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_clock_is_ahead_or_behind_makes_no_false_verdict() {
    let server = Postgres::start();
    let world = world(&server).await;
    let [right, ahead, behind] = ["right", "ahead", "behind"].map(|name| configure(&world, name));
    let mut of_right = right.serve();
    let mut of_ahead = serve_shifted(&ahead, "+90s");
    until_skew_is(&right, 0.0);
    until_skew_is(&ahead, -90.0);
    until_settled(&ahead, 20);
    assert_sound(&right);
    assert!(ahead.log().contains("clock_skewed") && !right.log().contains("clock_skewed"));

    // Alone, it goes on: nothing is missed because of its clock. (What a killed one was just submitting would be submitted again, with
    // the address of another receiver; here each has its own.)
    assert_eq!(of_right.terminate(), Some(0));
    until_settled(&ahead, 20);
    assert_sound(&ahead);

    // Another that is three minutes behind it.
    let _of_behind = serve_shifted(&behind, "-90s");
    until_skew_is(&behind, 90.0);
    until_settled(&behind, 20);
    assert_sound(&behind);
    assert_eq!(of_ahead.terminate(), Some(0));
    until_settled(&behind, 20);
    assert_sound(&behind);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_while_it_runs_changes_no_verdict() {
    let server = Postgres::start();
    let world = world(&server).await;
    let place = configure(&world, "monitor");
    let _monitor = serve_shifted(&place, "+0s");
    until_skew_is(&place, 0.0);
    until_settled(&place, 10);
    for (shift, skew) in [("+90s", -90.0), ("-3600s", 3600.0), ("+0s", 0.0)] {
        set_shift(&place, shift);
        until_skew_is(&place, skew);
        until_settled(&place, 20);
    }
    assert_sound(&place);
    let log = place.log();
    assert!(log.contains("clock_skewed") && log.contains("clock_skew_ended"), "{log}");
    assert!(!log.contains("clock_stepped"), "the time by which it goes did not step: {log}");
}

/// One number that a statement answers, of the monitor's SQLite store.
async fn number(world: &World, statement: &str) -> i64 {
    try_number(world, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

/// The same; an error where the store, or what is asked for, isn't there yet.
async fn try_number(world: &World, statement: &str) -> Result<i64, sqlx::Error> {
    let address = format!("sqlite:{}", world.folder.path().join("monitor.db").display());
    let mut connection = sqlx::AnyConnection::connect(&address).await?;
    let row = sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).fetch_one(&mut connection).await?;
    row.try_get(0)
}

async fn until_number(world: &World, place: &Place, what: &str, statement: &str) {
    for _ in 0..600 {
        if try_number(world, statement).await.is_ok_and(|number| number > 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no {what}; log:\n{}", place.log());
}

/// Ten hours ahead is longer than single minutes are kept. The clock says so for a while, and is then right again.
#[tokio::test(flavor = "multi_thread")]
async fn a_jump_ahead_of_the_clock_forgets_nothing_of_a_followed_ledger() {
    sqlx::any::install_default_drivers();
    let world = World::with(Shape { is_followed: true, ..Shape::default() }, |options| {
        let receipts = TrafficRoute { name: "receipts".into(), channel: Channel::Webhook };
        options.traffic =
            Some(TrafficOptions { per_second: 5.0, routes: vec![receipts], dead_recipients: 0.0 });
    })
    .await;
    let place = world.configure("monitor");
    let _monitor = serve_shifted(&place, "+0s");
    let minutes = "SELECT COUNT(*) FROM follower_cell WHERE level = 60";
    until_number(&world, &place, "minute", minutes).await;
    let first = number(&world, "SELECT MIN(bucket) FROM follower_cell WHERE level = 60").await;

    set_shift(&place, "+36000s");
    let hour_ahead = (Utc::now() + TimeDelta::hours(1)).timestamp_micros();
    let saved = format!("SELECT COUNT(*) FROM follower WHERE saved_at > {hour_ahead}");
    until_number(&world, &place, "pass in the jump", &saved).await;
    set_shift(&place, "+0s");
    until("the clock to be back", 60, || {
        let log = place.log();
        let is_told = log.contains("ledger_clock_jumped") && log.contains("ledger_clock_jump_ended");
        if is_told { Ok(()) } else { Err(log) }
    });
    let kept = format!("{minutes} AND bucket = {first}");
    assert_eq!(number(&world, &kept).await, 1, "the first minute; log:\n{}", place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_online_says_how_far_the_clocks_are_apart() {
    let server = Postgres::start();
    let world = world(&server).await;
    let place = world.configure("monitor");
    // A check makes no store.
    let mut monitor = place.serve();
    until("the store to be there", 30, || match place.probe("/ready") {
        Some(200) => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
    assert_eq!(monitor.terminate(), Some(0));
    let library = library();
    for (shift, status) in [("+0s", "ok"), ("+20s", "warn"), ("-90s", "failed")] {
        let output = std::process::Command::new(world::process::PROGRAM)
            .args(["check", "--online", "--json", "--config"])
            .arg(&place.config)
            .env("LD_PRELOAD", &library)
            .env("FAKETIME", shift)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            .output()
            .expect("the program runs");
        let said: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        let checks = said["checks"].as_array().expect("checks");
        let store = checks.iter().find(|check| check["name"] == "store").expect("one is of the store");
        assert_eq!(store["status"], status, "{shift}: {store}");
        assert!(store["detail"].as_str().is_some_and(|d| d.contains("clock less this machine's")), "{store}");
    }
}
