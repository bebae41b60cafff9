//! What happens to the service: each fault on a route of its own, all side by side, and a healthy route beside them.

use super::{
    bounds::{INTERVAL, OVERDUE, evidence, good_again, paged, ticketed},
    clock::s,
    installation::{Installation, Shape},
    receivers::{PAGE, TICKET},
    stage::Stage,
    table::{
        Expected,
        Over::{self, After, Not},
        Row,
        When::{self, Began, Ended},
    },
};
use chrono::{SecondsFormat, TimeDelta, Utc};
use delivery_canary::simulator::{Channel, Fault, FaultOrder, TrafficOptions, TrafficRoute};
use sqlx::{Connection, SqliteConnection};
use std::time::Duration;

const ROWS: [Row; 13] = [
    ("healthy", "none"),
    ("one bad event", "one canary is lost"),
    ("total outage", "the provider takes nothing; what is pending is delivered afterwards"),
    ("half outage", "every other submission is answered by 503"),
    ("slow", "everything arrives, half a minute after its deadline"),
    ("slow, to page", "the same, on a route whose configuration says `slow: page`"),
    ("silent drop", "the provider says delivered, and sends nothing"),
    ("acceptance timeouts", "submissions are not answered in time, and nothing comes of them"),
    ("suppression", "the service's policy suppresses whatever goes out on the route"),
    ("stuck backlog", "five notifications of a quiet route are accepted and never tried; canaries arrive"),
    ("stuck for days", "two notifications of a busy route have been pending for five days"),
    ("planned work", "submissions are answered by 503, in planned work and for a while after its end"),
    ("blip, then an hour", "503 for three minutes; when that is forgotten, 503 for an hour"),
];

const ROUTES: [&str; 13] = [
    "healthy",
    "once",
    "total",
    "half",
    "slow",
    "slow-page",
    "drop",
    "timeouts",
    "suppressed",
    "quiet",
    "busy",
    "planned",
    "blip",
];

const FAILING: &str = "CanaryDeliveryFailing";
const SLOW: &str = "CanaryDeliverySlow";

/// The rules' `for`.
const MINUTE: Duration = s(60);
/// The rules' `for`, of what judges ages and counts.
const TEN_MINUTES: Duration = s(600);
const AT_ONCE: Duration = Duration::ZERO;

/// A slow canary is judged when it arrives.
const LATE: Duration = s(90);

/// A reading of the ledger, and the next look of whoever follows it.
const READING: Duration = s(40);

type Expectation =
    (&'static str, &'static str, &'static str, &'static str, When, super::bounds::Bounds, Over);

fn expected() -> Vec<Expected> {
    let unseen = evidence(OVERDUE);
    let over = |row| After(Ended(row), paged(good_again(), AT_ONCE));
    let retried = (AT_ONCE, paged(good_again(), AT_ONCE).1);
    let alternating = (INTERVAL * 6 + OVERDUE - s(10), INTERVAL * 7 + OVERDUE);
    let second_judged = (INTERVAL - s(10), INTERVAL * 2 + OVERDUE);
    let table: [Expectation; 13] = [
        (
            "total outage",
            PAGE,
            FAILING,
            "total",
            Began("total"),
            paged(unseen, MINUTE),
            After(Ended("total"), retried),
        ),
        // What was pending comes late when the provider is back: not lost, and not in time either.
        (
            "total outage",
            TICKET,
            SLOW,
            "total",
            Ended("total"),
            ticketed((AT_ONCE, s(120)), MINUTE),
            After(Ended("total"), ticketed(good_again(), AT_ONCE)),
        ),
        ("half outage", PAGE, FAILING, "half", Began("half"), paged(alternating, MINUTE), over("half")),
        (
            "slow",
            TICKET,
            SLOW,
            "slow",
            Began("slow"),
            ticketed(evidence(LATE), MINUTE),
            After(Ended("slow"), ticketed(good_again(), AT_ONCE)),
        ),
        (
            "slow, to page",
            PAGE,
            SLOW,
            "slow-page",
            Began("slow-page"),
            paged(evidence(LATE), MINUTE),
            over("slow-page"),
        ),
        ("silent drop", PAGE, FAILING, "drop", Began("drop"), paged(unseen, MINUTE), over("drop")),
        // The page keeps it quiet while it lasts.
        (
            "silent drop",
            TICKET,
            "EvidenceDisagreement",
            "drop delivered_without_receipt",
            Ended("drop"),
            ticketed(good_again(), AT_ONCE),
            Not,
        ),
        (
            "acceptance timeouts",
            PAGE,
            FAILING,
            "timeouts",
            Began("timeouts"),
            paged(unseen, MINUTE),
            over("timeouts"),
        ),
        (
            "suppression",
            TICKET,
            "CanaryRouteSuppressed",
            "suppressed",
            Began("suppressed"),
            ticketed(second_judged, TEN_MINUTES),
            Not,
        ),
        (
            "stuck backlog",
            PAGE,
            "PendingOverDeadline",
            "quiet",
            Began("quiet"),
            paged((INTERVAL, INTERVAL + READING), TEN_MINUTES),
            After(Ended("quiet"), paged((AT_ONCE, READING), AT_ONCE)),
        ),
        (
            "stuck for days",
            TICKET,
            "PendingForgotten",
            "busy",
            Began("busy"),
            ticketed((AT_ONCE, s(240)), TEN_MINUTES),
            Not,
        ),
        (
            "planned work",
            PAGE,
            FAILING,
            "planned",
            Ended("planned work"),
            paged((AT_ONCE, AT_ONCE), MINUTE),
            over("planned"),
        ),
        ("blip, then an hour", PAGE, FAILING, "blip", Began("hour"), paged(unseen, MINUTE), over("hour")),
    ];
    let of = |(row, receiver, alert, about, after, comes, over): Expectation| Expected {
        row,
        receiver,
        alert,
        about: format!("webhook/{about}"),
        after,
        comes,
        over,
    };
    table.into_iter().map(of).collect()
}

/// Notifications of customers that nobody ever tries, due so long ago.
async fn insert(stage_url: &str, route: &str, count: usize, ago: TimeDelta) {
    let mut ledger = SqliteConnection::connect(stage_url).await.expect("the ledger opens");
    for _ in 0..count {
        let at = (Utc::now() - ago).to_rfc3339_opts(SecondsFormat::Millis, true);
        sqlx::query(
            "insert into notifications (notification_id, request_digest, route, channel, template, is_canary, accepted_at, policy_version)
             values (?, '', ?, 'webhook', 'receipt', 0, ?, 'policy-1')",
        )
        .bind(uuid::Uuid::now_v7().to_string())
        .bind(route)
        .bind(at)
        .execute(&mut ledger)
        .await
        .expect("it is written");
    }
    ledger.close().await.expect("it closes");
}

/// All that is pending on a route is delivered.
async fn deliver(ledger_url: &str, route: &str) {
    let mut ledger = SqliteConnection::connect(ledger_url).await.expect("the ledger opens");
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    let pending: Vec<String> = sqlx::query_scalar(
        "select notification_id from notifications where route = ? and settled_at is null and not is_canary",
    )
    .bind(route)
    .fetch_all(&mut ledger)
    .await
    .expect("it is read");
    assert!(!pending.is_empty(), "nothing is pending on {route}");
    for id in pending {
        sqlx::query(
            "insert into delivery_attempts (attempt_id, notification_id, attempt_number, outcome, provider_code, started_at, ended_at, policy_version)
             values (?, ?, 1, 'delivered', 'ok', ?, ?, 'policy-1')",
        )
        .bind(uuid::Uuid::now_v7().to_string())
        .bind(&id)
        .bind(&now)
        .bind(&now)
        .execute(&mut ledger)
        .await
        .expect("it is written");
        sqlx::query("update notifications set settled_at = ? where notification_id = ?")
            .bind(&now)
            .bind(&id)
            .execute(&mut ledger)
            .await
            .expect("it is written");
    }
    ledger.close().await.expect("it closes");
}

fn on(fault: Fault, route: &str) -> FaultOrder {
    FaultOrder::on(fault).on_route(route)
}

/// Every other canary is refused, and the first and the last of them are.
async fn half(stage: &Stage, real: Duration) {
    const ROUTE: &str = "half";
    let pairs = real.as_secs() / (2 * INTERVAL.as_secs());
    stage.between_canaries(ROUTE).await;
    stage.mark(Began(ROUTE));
    for _ in 0..pairs {
        stage.switch(on(Fault::Acceptance5xx, ROUTE)).await;
        stage.between_canaries(ROUTE).await;
        stage.switch(FaultOrder::off(Fault::Acceptance5xx).on_route(ROUTE)).await;
        stage.between_canaries(ROUTE).await;
    }
    stage.switch(on(Fault::Acceptance5xx, ROUTE)).await;
    stage.between_canaries(ROUTE).await;
    stage.switch(FaultOrder::off(Fault::Acceptance5xx).on_route(ROUTE)).await;
    stage.mark(Ended(ROUTE));
}

/// Exactly one canary is lost.
async fn once(stage: &Stage) {
    stage.between_canaries("once").await;
    stage.switch(on(Fault::SilentDrop, "once")).await;
    stage.between_canaries("once").await;
    stage.switch(FaultOrder::off(Fault::SilentDrop).on_route("once")).await;
}

async fn stuck(stage: &Stage, real: Duration) {
    let url = stage.here.ledger_url();
    insert(&url, "quiet", 5, TimeDelta::zero()).await;
    stage.mark(Began("quiet"));
    stage.pass(real).await;
    deliver(&url, "quiet").await;
    stage.mark(Ended("quiet"));
}

/// Three minutes, then nothing until it is forgotten, then an hour.
async fn blip_and_hour(stage: &Stage, place: &super::world::Place) {
    stage.between_canaries("blip").await;
    stage.fault("blip", on(Fault::Acceptance5xx, "blip"), s(180)).await;
    let labels = [("route", "webhook/blip"), ("location", "here"), ("question", "arrives")];
    let value = || place.value("delivery_canary_failure_evidence", &labels);
    let is = |wanted: fn(f64) -> bool| {
        move || match value() {
            Some(seen) if wanted(seen) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    stage.until("the blip to be evidence", s(600), is(|seen| seen > 3.0)).await;
    stage.until("the blip to be forgotten", s(2_400), is(|seen| seen == 0.0)).await;
    stage.fault("hour", on(Fault::Acceptance5xx, "blip"), s(3_600)).await;
}

/// The whole of it.
pub async fn run() {
    let here = Installation::new(|options| {
        let clock = super::clock::Clock::of_this_run();
        options.provider_timeout = clock.short(s(160));
        options.backoff_base = clock.short(s(10));
        options.backoff_most = clock.short(s(60));
        options.most_attempts = 500;
        let route = TrafficRoute { name: "busy".into(), channel: Channel::Webhook };
        options.traffic = Some(TrafficOptions { per_second: 2.0, routes: vec![route], dead_recipients: 0.0 });
    })
    .await;
    insert(&here.ledger_url(), "busy", 2, TimeDelta::days(5)).await;
    let until = here.clock.after(Utc::now(), s(1_800));
    let shape = Shape {
        routes: ROUTES.to_vec(),
        slow_pages: vec!["slow-page"],
        maintenance: Some(("planned", until)),
        store: "sqlite: { path: monitor.db }",
    };
    let process = here.process("monitor", None, &[]);
    let servers = here.serve(&shape, &[&process]);
    let stage = Stage::new(here, servers);
    stage.mark(Began("busy"));
    let _monitor = process.start();
    stage.until_watched(ROUTES.len()).await;
    let left = (until - Utc::now()).to_std().unwrap_or_default();
    let least = stage.clock().short(s(900));
    assert!(left > least, "the planned work ends in {left:?}: too soon for an outage in it");
    stage.mark_at(Ended("planned work"), until);
    let slow = |route| on(Fault::ProviderSlow, route).seconds(stage.clock().short(LATE).as_secs_f64());
    let timeouts = on(Fault::AcceptanceSlow, "timeouts").seconds(3_600.0);
    let (total, drop) = (on(Fault::ProviderDown, "total"), on(Fault::SilentDrop, "drop"));
    let (suppressed, planned) = (on(Fault::Suppression, "suppressed"), on(Fault::Acceptance5xx, "planned"));
    tokio::join!(
        once(&stage),
        stage.fault("total", total, s(1_500)),
        half(&stage, s(1_500)),
        stage.fault("slow", slow("slow"), s(1_500)),
        stage.fault("slow-page", slow("slow-page"), s(1_500)),
        stage.fault("drop", drop, s(1_500)),
        stage.fault("timeouts", timeouts, s(1_500)),
        stage.fault("suppressed", suppressed, s(1_800)),
        stuck(&stage, s(1_800)),
        stage.fault("planned", planned, s(2_700)),
        blip_and_hour(&stage, &process.place),
    );
    stage.close(&ROWS, &expected()).await;
}
