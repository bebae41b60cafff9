//! The readings of one ledger fail apart: what is broken stays broken until it is mended, and only what verdicts need changes verdicts.

use super::{send, show, until_sighted};
use crate::common::{
    postgres::Postgres,
    world::{Place, Shape, World, process::signal, until},
};
use delivery_canary::simulator::Fault;
use std::fs;

const LEDGER: [(&str, &str); 1] = [("observer", "ledger/attempts")];
const ROUTE: [(&str, &str); 2] = [("location", "here"), ("route", "webhook/receipts")];

/// How many canaries come to their verdict while nothing may change.
const MANY: f64 = 10.0;

fn verdicts(place: &Place, verdict: &str) -> f64 {
    place.value("delivery_canary_verdicts", &[ROUTE[0], ROUTE[1], ("verdict", verdict)]).unwrap_or_default()
}

fn ledger_up(place: &Place) -> Option<f64> {
    place.value("delivery_monitor_observer_up", &LEDGER)
}

fn until_ledger(place: &Place, up: f64) {
    until(&format!("the ledger to be {up}"), 60, || match ledger_up(place) {
        Some(seen) if seen == up => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
}

/// Looks at the ledger's state again and again while canaries come to this verdict: it must stay down.
fn stays_down(place: &Place, verdict: &str) {
    let before = verdicts(place, verdict);
    until(&format!("{MANY} canaries {verdict}"), 90, || {
        assert_eq!(ledger_up(place), Some(0.0), "nothing changed; log:\n{}", place.log());
        let seen = verdicts(place, verdict) - before;
        if seen >= MANY { Ok(()) } else { Err(format!("{seen}; log:\n{}", place.log())) }
    });
}

/// The lines of the log on this reading of the ledger.
fn told(place: &Place, event: &str, reading: &str) -> usize {
    let (event, reading) = (format!("\"event\":\"{event}\""), format!("\"reading\":\"{reading}\""));
    place.log().lines().filter(|line| line.contains(&event) && line.contains(&reading)).count()
}

/// Changes the configuration of a monitor; gives what it was.
fn change(place: &Place, from: &str, to: &str) -> String {
    let text = fs::read_to_string(&place.config).expect("the configuration is there");
    assert_eq!(text.matches(from).count(), 1, "{from:?} in {text}");
    fs::write(&place.config, text.replace(from, to)).expect("it can be written");
    text
}

fn stopped_at(place: &Place, stage: &str) -> f64 {
    place.value("delivery_canary_stopped_at", &[ROUTE[0], ROUTE[1], ("stage", stage)]).unwrap_or_default()
}

/// The canaries with this verdict, as `canary show` has them.
fn shown(place: &Place, verdict: &str) -> Vec<String> {
    let listed = place.command(&["canary", "list", "--verdict", verdict, "--limit", "50"]);
    let listed = String::from_utf8(listed.stdout).expect("it is text");
    let ids = listed.lines().skip(1).filter_map(|line| line.split(' ').next());
    let show = |id| place.command(&["canary", "show", id]).stdout;
    ids.map(|id| String::from_utf8(show(id)).expect("it is text")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_that_can_not_read_its_rows_is_down_until_it_is_mended_and_names_no_stage() {
    let server = Postgres::start();
    let shape = Shape { ledger_url: Some(server.fresh_database().await), ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    // A whole number where a time is expected: it shows only in rows, and a canary that was refused has none.
    let good = "n.route, n.accepted_at, n.not_before, a.attempt_id";
    let bad = "n.route, extract(epoch from n.accepted_at)::bigint as accepted_at, n.not_before, a.attempt_id";
    let mended = change(&place, good, bad);
    let monitor = place.serve();
    until_sighted(&place);
    until_ledger(&place, 0.0);
    // Lookups that find nothing come in between: what is accepted while the service is down has no row.
    stays_down(&place, "on_time");
    world.simulator.fault_on(Fault::AcceptanceDown).await.expect("it can be switched");
    stays_down(&place, "refused");
    world.simulator.fault_off(Fault::AcceptanceDown).await.expect("it can be switched");
    world.simulator.fault_on(Fault::SilentDrop).await.expect("it can be switched");
    stays_down(&place, "overdue");
    assert!(place.value("delivery_ledger_snapshot_timestamp_seconds", &[("ledger", "attempts")]).is_some());
    assert_eq!((told(&place, "observer_down", "lookup"), told(&place, "observer_up", "lookup")), (1, 0));
    assert_eq!(told(&place, "observer_down", "pending"), 0, "it is read well");
    assert_eq!((stopped_at(&place, "monitor"), stopped_at(&place, "sink")), (1.0, 0.0));
    let overdue = shown(&place, "overdue");
    assert!(overdue.len() >= 10, "{overdue:#?}");
    for text in &overdue {
        assert!(text.contains("the ledger was not read late enough, so it is not known whether"), "{text}");
        assert!(!text.contains("it stands at: "), "{text}");
    }
    fs::write(&place.config, mended).expect("it can be written");
    signal(monitor.id(), "HUP");
    until_ledger(&place, 1.0);
    until("the sink to be named", 60, || match stopped_at(&place, "sink") {
        1.0 => Ok(()),
        other => Err(format!("{other}; log:\n{}", place.log())),
    });
    assert_eq!(told(&place, "observer_up", "lookup"), 1);
    // What was told of the route all the while is its turns, not its canaries.
    let log = place.log();
    let turns = log.lines().filter(|line| line.contains("\"event\":\"delivery_")).count();
    assert!((1..10).contains(&turns), "{turns} turns; log:\n{log}");
    assert!(log.contains("\"event\":\"delivery_failing\""), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_query_that_fails_is_down_all_the_while_and_hides_nothing_of_the_canaries() {
    let world = World::new(Shape::default()).await;
    let place = world.configure("monitor");
    let mended = change(
        &place,
        "from notifications n where n.settled_at is null",
        "from notifications n where n.gone is null",
    );
    let monitor = place.serve();
    until_sighted(&place);
    until_ledger(&place, 0.0);
    stays_down(&place, "on_time");
    world.simulator.fault_on(Fault::SilentDrop).await.expect("it can be switched");
    stays_down(&place, "overdue");
    assert_eq!(stopped_at(&place, "sink"), 1.0, "canaries are looked up as ever");
    assert_eq!(verdicts(&place, "undetermined"), 0.0);
    assert_eq!((told(&place, "observer_down", "pending"), told(&place, "observer_up", "pending")), (1, 0));
    assert_eq!(told(&place, "observer_down", "lookup"), 0, "it works");
    let pending = place.value("delivery_ledger_pending", &[ROUTE[1], ("state", "unattempted")]);
    assert_eq!(pending, None, "what could not be read is absent");
    let read_at = || place.value("delivery_ledger_snapshot_timestamp_seconds", &[("ledger", "attempts")]);
    assert_eq!(read_at(), None, "it was never read");
    let broken = fs::read_to_string(&place.config).expect("the configuration is there");
    fs::write(&place.config, mended).expect("it can be written");
    signal(monitor.id(), "HUP");
    until_ledger(&place, 1.0);
    until("a time of the reading", 60, || read_at().map(drop).ok_or_else(|| place.log()));
    // Once it was read, its time is there to grow old.
    fs::write(&place.config, broken).expect("it can be written");
    signal(monitor.id(), "HUP");
    until_ledger(&place, 0.0);
    let seen = read_at().expect("the time of the last good reading stays");
    stays_down(&place, "overdue");
    assert_eq!(place.value("delivery_ledger_pending", &[ROUTE[1], ("state", "unattempted")]), None);
    assert_eq!(read_at(), Some(seen), "it is the last good reading's, and no newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_that_can_not_run_is_seen_before_the_first_canary_and_again_when_it_can() {
    let world = World::new(Shape { schedule: "{ every: 24h }".into(), ..Shape::default() }).await;
    let place = world.configure("monitor");
    let mended = change(&place, "a.started_at, a.policy_version\n", "a.gone, a.policy_version\n");
    let monitor = place.serve();
    until("the lookup to be told", 60, || match told(&place, "observer_down", "lookup") {
        1 => Ok(()),
        other => Err(format!("{other} times; log:\n{}", place.log())),
    });
    until_ledger(&place, 0.0);
    fs::write(&place.config, mended).expect("it can be written");
    signal(monitor.id(), "HUP");
    // No canary is due: it is asked again all the same.
    until_ledger(&place, 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_past_its_deadline_is_overdue_so_far() {
    let shape = Shape {
        schedule: "{ every: 24h }".into(),
        deadline: "1s",
        settle: "20s",
        with_ledger: false,
        ..Shape::default()
    };
    let world = World::new(shape).await;
    world.simulator.fault_on(Fault::SilentDrop).await.expect("it can be switched");
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_sighted(&place);
    let id = send(&place);
    until("it to be overdue so far", 15, || {
        let canary = show(&place, &id);
        match canary["overdue_so_far_seconds"].as_f64() {
            Some(by) if by > 0.0 && canary["verdict"].is_null() => Ok(()),
            _ => Err(canary.to_string()),
        }
    });
    for command in [&["canary", "show", &id][..], &["canary", "list"]] {
        let said = String::from_utf8(place.command(command).stdout).expect("it is text");
        assert!(said.contains("overdue so far, by ") && said.contains("s; verdict by "), "{said}");
        assert!(!said.contains("on its way"), "{said}");
    }
}
