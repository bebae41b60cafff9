//! What was accepted and never written: the ledger's count held against one that is independent of it, end to end.

mod beyond;
mod dated_back;
mod page;
mod uncounted;

use crate::{
    books::service,
    common::{postgres, prometheus, world},
};
use chrono::{DateTime, DurationRound, SecondsFormat, TimeDelta, Utc};
use postgres::Postgres;
use prometheus::Prometheus;
use serde_json::Value;
use service::Service;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use std::fs;
use world::until;

const FULL: &str = "webhook/receipts";

/// How many are accepted in each hour, and how many of them are written.
const ACCEPTED: i64 = 12;
const WRITTEN: i64 = 10;

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last two full hours: whichever of them is the last closed one, the other is as full.
fn hours() -> [DateTime<Utc>; 2] {
    let now = Utc::now().duration_trunc(TimeDelta::hours(1)).expect("a time of today");
    [now - TimeDelta::hours(2), now - TimeDelta::hours(1)]
}

/// When each notification of an hour is accepted.
fn times(hour: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    (0..ACCEPTED).map(move |n| hour + TimeDelta::minutes(10 + n))
}

/// Writes fewer into the ledger than are accepted, with a notification to two destinations each.
async fn fill(service: &Service) {
    for (number, hour) in (0..).zip(hours()) {
        for (n, at) in (0..WRITTEN).zip(times(hour)) {
            service.message(1_000 * (number + 1) + n, "receipts", at, &[("a", &["ok"]), ("b", &[])]).await;
        }
    }
}

/// Adds the independent count to the configuration; the ledger's own counts messages, whatever their destinations.
fn configure(service: &Service, source: &str) {
    let elsewhere = format!(
        r#"    accepted_elsewhere:
      source:
{source}
      routes: {{ receipts: webhook/receipts }}
      in_ledger:
        sql: |
          select route, count(*) as n from message where made_at >= :from_ts and made_at < :until_ts group by route
        columns: {{ route: route, count: n }}
        routes: {{ receipts: webhook/receipts }}
"#
    );
    let whole = fs::read_to_string(&service.place.config).expect("it was written");
    let (head, tail) = whole.split_once("    statuses: {").expect("there are statuses");
    fs::write(&service.place.config, format!("{head}{elsewhere}    statuses: {{{tail}"))
        .expect("it can be written");
}

fn reconcile(service: &Service, hour: DateTime<Utc>, more: &[&str]) -> std::process::Output {
    let (from, to) = (stamp(hour), stamp(hour + TimeDelta::hours(1)));
    service.place.command(&[&["ledger", "reconcile", "--from", &from, "--to", &to], more].concat())
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// What the page says of a route: counted elsewhere, and by the ledger.
fn seen(service: &Service, route: &str) -> (Option<f64>, Option<f64>) {
    let value = |name: &str| service.place.value(name, &[("route", route)]);
    (value("delivery_ledger_accepted_elsewhere"), value("delivery_ledger_accepted_here"))
}

/// The pair on the page, and the command, show what was accepted and never written.
async fn what_was_never_written_shows(service: &Service, most: Option<i64>) {
    let check = service.place.command(&["check", "--online"]);
    assert!(
        text(&check.stdout).contains("accepted_elsewhere"),
        "{}{}",
        text(&check.stdout),
        text(&check.stderr)
    );
    let _monitor = service.place.serve();
    service.until_followed();
    until("both counts of the closed hour", 40, || match seen(service, FULL) {
        (Some(12.0), Some(10.0)) => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", service.place.log())),
    });
    let residue = || service.place.value("delivery_ledger_residue", &[("route", FULL)]);
    assert_eq!(residue(), Some(0.0), "the ledger's own books balance: nothing of it shows there");

    let [hour, _] = hours();
    let off = reconcile(service, hour, &["--json"]);
    let answer = json(&off);
    assert_eq!((off.status.code(), &answer["balanced"]), (Some(1), &false.into()), "{answer:#}");
    let ledger = &answer["ledgers"][0];
    let routes = ledger["routes"].as_array().expect("there are routes");
    let book = routes.iter().find(|book| book["route"] == FULL).expect("the route is there");
    let expected = serde_json::json!({
        "in_ledger": WRITTEN, "elsewhere_least": ACCEPTED, "elsewhere_most": most, "missing": ACCEPTED - WRITTEN,
    });
    assert_eq!((&book["accepted"], &book["residue"]), (&expected, &0.into()), "{answer:#}");
    assert!(ledger["elsewhere_unknown"].is_null(), "{answer:#}");
    let table = text(&reconcile(service, hour, &[]).stdout);
    assert!(table.contains("10 in the ledger: 2 accepted and never written"), "{table}");
    let lines = text(&reconcile(service, hour, &["--csv"]).stdout);
    assert!(lines.contains(",elsewhere_least,12,,,,,,2\n"), "{lines}");

    // What is written late after all balances the books.
    for (n, at) in (WRITTEN..ACCEPTED).zip(times(hour).skip(10)) {
        service.message(1_000 + n, "receipts", at, &[("a", &["ok"])]).await;
    }
    let settled = json(&reconcile(service, hour, &["--json"]));
    let routes = settled["ledgers"][0]["routes"].as_array().expect("there are routes");
    let book = routes.iter().find(|book| book["route"] == FULL).expect("the route is there");
    assert_eq!(book["accepted"]["missing"], 0, "{settled:#}");
}

async fn by_sql(ledger_url: Option<String>, other_url: Option<String>) {
    let service = Service::new(ledger_url, "2s").await;
    fill(&service).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gateway.db");
    let url = other_url.clone().unwrap_or_else(|| format!("sqlite:{}?mode=rwc", file.display()));
    let mut gateway = AnyConnection::connect(&url).await.expect("the gateway's database is there");
    let kind = if other_url.is_some() { "timestamptz" } else { "text" };
    let mut sql =
        format!("create table request (route text not null, status int not null, at {kind} not null);");
    for at in hours().into_iter().flat_map(times) {
        sql += &format!("insert into request values ('receipts', 202, '{}');", stamp(at));
        sql += &format!("insert into request values ('receipts', 500, '{}');", stamp(at));
    }
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut gateway).await.expect("the gateway logs");
    gateway.close().await.expect("the connection closes");
    let (database, column) = match &other_url {
        Some(url) => (format!("postgres: {{ url: {url} }}"), "at".to_owned()),
        None => (format!("sqlite: {{ path: {} }}", file.display()), "{ name: at, time: iso }".to_owned()),
    };
    configure(
        &service,
        &format!(
            r#"        sql:
          database: {{ {database} }}
          sql: select route, count(*) as n from request where status = 202 and at >= :from_ts and at < :until_ts group by route
          columns: {{ route: route, count: n }}
          accepted_at: {column}"#
        ),
    );
    what_was_never_written_shows(&service, Some(ACCEPTED)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_written_shows_by_another_database_on_postgresql() {
    let server = Postgres::start();
    by_sql(Some(server.fresh_database().await), Some(server.fresh_database().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_written_shows_by_another_database_on_sqlite() {
    by_sql(None, None).await;
}

/// Two processes of a service that count, scraped each minute: each takes every second notification.
fn past() -> String {
    let [first, last] = hours();
    let mut page = "# TYPE gateway_accepted counter\n".to_owned();
    for process in ["a", "b"] {
        let mut at = first - TimeDelta::minutes(10);
        while at < last + TimeDelta::minutes(60) {
            let hour = at.duration_trunc(TimeDelta::hours(1)).expect("a time of today");
            let counted = times(hour)
                .enumerate()
                .filter(|(n, when)| (n % 2 == 0) == (process == "a") && *when <= at)
                .count();
            let before = if process == "a" { 1_000 } else { 0 };
            let hours_before = usize::try_from((hour - first).num_hours().max(0)).expect("a few hours");
            let sum = before + hours_before * 6 + if hour < first { 0 } else { counted };
            page += &format!(
                "gateway_accepted_total{{route=\"receipts\",process=\"{process}\"}} {sum} {}\n",
                at.timestamp()
            );
            at += TimeDelta::minutes(1);
        }
    }
    page + "# EOF\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_written_shows_by_a_prometheus() {
    let prometheus = Prometheus::with_past(&past());
    let service = Service::new(None, "2s").await;
    fill(&service).await;
    configure(
        &service,
        &format!(
            r#"        promql:
          url: {}
          query: sum by (route) (gateway_accepted_total @ :until - gateway_accepted_total @ :from)
          route_label: route"#,
            prometheus.url()
        ),
    );
    what_was_never_written_shows(&service, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_counted_elsewhere_is_absent_and_said() {
    let service = Service::new(None, "2s").await;
    fill(&service).await;
    configure(
        &service,
        &format!(
            "        promql: {{ url: \"http://{}\", query: \"x @ :until - x @ :from\", route_label: route }}",
            world::free_address()
        ),
    );
    let mut monitor = service.place.serve();
    service.until_followed();
    until("it to be said", 40, || {
        if service.place.log().contains("accepted_not_counted") { Ok(()) } else { Err(service.place.log()) }
    });
    assert_eq!(seen(&service, FULL), (None, None), "absent, and no zero");
    uncounted::until_up(&service.place, 0.0);
    assert_eq!(uncounted::told(&service.place, "observer_down"), ["accepted_elsewhere"]);
    monitor.kill();
    let [hour, _] = hours();
    let open = reconcile(&service, hour, &["--json"]);
    assert_eq!(
        open.status.code(),
        Some(75),
        "the books balance, and the question is open: {}",
        text(&open.stderr)
    );
    assert!(text(&open.stderr).contains("no connection came to be"), "{}", text(&open.stderr));
    let answer = json(&open);
    assert!(
        answer["ledgers"][0]["elsewhere_unknown"].is_string(),
        "the accounts are there all the same: {answer:#}"
    );
    let check = service.place.command(&["check", "--online"]);
    assert!(text(&check.stdout).contains("FAILED"), "{}", text(&check.stdout));
}
