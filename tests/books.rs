//! The books of a followed ledger: held against its own count, and rid of what is erased. A ledger with fan-out, made here.

pub mod service;
mod torn;

use crate::common::{postgres, world};
use chrono::{DateTime, DurationRound, SecondsFormat, TimeDelta, Utc};
use postgres::Postgres;
use serde_json::Value;
use service::Service;
use std::process::Output;
use world::until;

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Two hours ago, at the full hour.
fn hour() -> DateTime<Utc> {
    Utc::now().duration_trunc(TimeDelta::hours(1)).expect("a time of today") - TimeDelta::hours(2)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn reconcile(service: &Service, from: DateTime<Utc>, to: DateTime<Utc>, more: &[&str]) -> Output {
    let (from, to) = (stamp(from), stamp(to));
    let arguments = [&["ledger", "reconcile", "--from", &from, "--to", &to], more].concat();
    service.place.command(&arguments)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// The two accounts of a route, each as delivered, rejected by recipient, by service, and pending.
fn accounts(answer: &Value, route: &str) -> [[i64; 4]; 2] {
    let routes = answer["ledgers"][0]["routes"].as_array().expect("there are routes");
    let book = routes.iter().find(|book| book["route"] == route).expect("the route is there");
    ["followed", "counted"].map(|side| {
        ["delivered", "rejected_recipient", "rejected_service", "pending"]
            .map(|place| book[side][place].as_i64().expect("a count"))
    })
}

/// A message a minute to two destinations each: `a` is delivered, `b` by the minute.
async fn fill(service: &Service, hour: DateTime<Utc>) {
    for minute in 0..40 {
        let (id, at) = (100 + minute, hour + TimeDelta::minutes(minute));
        let to_b = match minute % 4 {
            0 => &["again", "ok"][..],
            1 => &["dead"],
            2 => &["broken"],
            _ => &[],
        };
        service.message(id, "receipts", at, &[("a", &["ok"]), ("b", to_b)]).await;
    }
    service.message(900, "elsewhere", hour, &[("a", &["ok"])]).await;
}

async fn the_books_balance_and_what_does_not_is_named(ledger_url: Option<String>) {
    let service = Service::new(ledger_url, "2s").await;
    let (from, to) = (hour(), hour() + TimeDelta::hours(1));
    fill(&service, from).await;

    let unread = reconcile(&service, from, to, &[]);
    assert_eq!(unread.status.code(), Some(75), "nobody has followed it: {}", text(&unread.stderr));
    assert!(text(&unread.stderr).contains("yet"), "{}", text(&unread.stderr));
    let mut monitor = service.place.serve();
    service.until_followed();
    monitor.kill();

    let before = service.kept().await;
    let balanced = reconcile(&service, from, to, &["--json"]);
    let answer = json(&balanced);
    assert_eq!(balanced.status.code(), Some(0), "{answer:#}");
    assert_eq!(answer["balanced"], true);
    assert_eq!(accounts(&answer, "webhook/receipts"), [[50, 10, 10, 10]; 2]);
    assert_eq!(accounts(&answer, "other"), [[1, 0, 0, 0]; 2]);
    assert_eq!(service.kept().await, before, "it only reads");

    // What came while nobody followed is read by the command itself.
    service.message(950, "receipts", from + TimeDelta::minutes(50), &[("a", &[]), ("b", &["ok"])]).await;
    let of_route = json(&reconcile(&service, from, to, &["--json", "--route", "webhook/receipts"]));
    assert_eq!(accounts(&of_route, "webhook/receipts"), [[51, 10, 10, 11]; 2]);

    // One that became visible long after it could be, one that changed, and one that went.
    service.message(960, "receipts", from + TimeDelta::minutes(20), &[("c", &["ok"])]).await;
    service.execute("update call set result = 'broken' where message_id = 105 and dest = 'a'").await;
    service.forget(107).await;
    let off = reconcile(&service, from, to, &["--json", "--ids"]);
    assert_eq!(off.status.code(), Some(1));
    let answer = json(&off);
    let routes = answer["ledgers"][0]["routes"].as_array().expect("there are routes");
    let differ = routes[0]["differ"].as_array().expect("they were asked for");
    let exact = |id: &str| {
        let found = differ.iter().find(|unit| unit["notification_id"] == id);
        found.unwrap_or_else(|| panic!("{id} is not named: {answer:#}")).clone()
    };
    let changed = exact("105");
    assert_eq!((&changed["destination"], &changed["certainty"]), (&"a".into(), &"exact".into()));
    assert_eq!(
        (&changed["followed"], &changed["in_ledger"]),
        (&"delivered".into(), &"rejected_service".into())
    );
    let late = exact("960");
    assert_eq!((&late["followed"], &late["in_ledger"]), (&Value::Null, &"delivered".into()));
    assert!(differ.iter().any(|unit| unit["notification_id"].is_null() && unit["followed"] == "delivered"));
    assert_eq!(changed["due_in"], stamp(from + TimeDelta::minutes(5)));
    assert!(differ.iter().all(|unit| unit["certainty"] == "exact"), "{answer:#}");
    // The one that went and the one that came late make up for each other over the hour, and not in their minutes.
    assert_eq!((&routes[0]["residue"], &routes[1]["differ"]), (&1.into(), &Value::Null), "{answer:#}");

    let table = text(&reconcile(&service, from, to, &["--ids"]).stdout);
    assert!(table.contains("105 to a  followed: delivered, ledger: rejected_service"), "{table}");
    assert!(table.ends_with("not balanced\n"), "{table}");
    let csv = text(&reconcile(&service, from, to, &["--csv"]).stdout);
    assert!(csv.starts_with("ledger,from,until,route,account,accepted,delivered,"), "{csv}");
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let csv = text(&reconcile(&service, from, to, &["--csv", "--ids"]).stdout);
    assert!(csv.contains(",105,a,delivered,rejected_service,exact\n"), "{csv}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_and_what_does_not_is_named_on_sqlite() {
    the_books_balance_and_what_does_not_is_named(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_and_what_does_not_is_named_on_postgresql() {
    let server = Postgres::start();
    the_books_balance_and_what_does_not_is_named(Some(server.fresh_database().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_that_cannot_be_counted_is_refused_with_what_to_write() {
    let service = Service::new(None, "2s").await;
    let (from, to) = (hour(), hour() + TimeDelta::hours(1));
    fill(&service, from).await;
    let mut monitor = service.place.serve();
    service.until_followed();
    monitor.kill();
    let half_past = from - TimeDelta::days(2) + TimeDelta::minutes(30);
    for (from, to, code, says) in [
        (to, from, 2, "--from must be before --to"),
        (from, to + TimeDelta::seconds(1), 2, "no whole minute"),
        (half_past, to, 2, "no whole hour"),
        (
            from,
            Utc::now().duration_trunc(TimeDelta::hours(1)).expect("a time") + TimeDelta::hours(1),
            2,
            "at the latest now",
        ),
        (from - TimeDelta::days(60), to, 2, "at the earliest"),
    ] {
        let refused = reconcile(&service, from, to, &[]);
        let error = text(&refused.stderr);
        assert_eq!((refused.status.code(), error.contains(says)), (Some(code), true), "{says}: {error}");
    }
    let hours = reconcile(&service, from - TimeDelta::days(2), to, &[]);
    assert_eq!(hours.status.code(), Some(0), "{}{}", text(&hours.stdout), text(&hours.stderr));
    for (more, says) in
        [(["--ledger", "nowhere"], "there is no ledger"), (["--route", "sms/x"], "there is no route")]
    {
        let unknown = reconcile(&service, from, to, &more);
        assert_eq!(unknown.status.code(), Some(4), "{}", text(&unknown.stderr));
        assert!(text(&unknown.stderr).contains(says), "{}", text(&unknown.stderr));
    }
    service.remove();
    let gone = reconcile(&service, from, to, &[]);
    assert_eq!(gone.status.code(), Some(75), "{}", text(&gone.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_erased_leaves_the_follower_and_stays_away() {
    // Whatever is made while this runs stays open: its row is read in every pass.
    let service = Service::new(None, "10m").await;
    let old = Utc::now() - TimeDelta::minutes(30);
    for id in [7, 70, 8] {
        service.message(id, "receipts", old, &[("a", &[]), ("b", &["again"])]).await;
    }
    service.message(9, "receipts", Utc::now(), &[("a", &[]), ("b", &[])]).await;
    let _monitor = service.place.serve();
    service.until_followed();
    service.until_pending(8);
    service.until_sampled(3);

    let closed = service.place.command(&["canary", "erase", "7", "--notification", "--owner", "test"]);
    assert_eq!(closed.status.code(), Some(0), "{}", text(&closed.stderr));
    assert!(
        text(&closed.stdout).contains("3 rows"),
        "both destinations, and the audit: {}",
        text(&closed.stdout)
    );
    service.until_pending(6);
    let open = service.place.command(&["canary", "erase", "9", "--notification", "--owner", "test"]);
    assert_eq!(open.status.code(), Some(4), "it is in memory alone: {}", text(&open.stdout));
    assert!(text(&open.stderr).contains("from now on"), "{}", text(&open.stderr));
    service.until_pending(4);

    // Passes go on, and neither comes back.
    service.message(10, "receipts", Utc::now(), &[("a", &[])]).await;
    service.until_pending(5);
    until("the kept rows to be those of what is left", 20, || {
        let left =
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(service.kept_units()));
        if left == 4 { Ok(()) } else { Err(format!("{left} rows")) }
    });
}
