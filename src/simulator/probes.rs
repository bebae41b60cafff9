//! The service's own probes, narrow on purpose: they say how this process is and nothing about delivery. And its counters.

use super::{dispatcher::Heartbeat, statistics::Statistics};
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The dispatcher's loop goes round within this time, or the process is not alive.
const ALIVE_WITHIN: Duration = Duration::from_secs(15);

/// What the probes look at.
#[derive(Debug, Default)]
pub struct Condition {
    pub started: AtomicBool,
    pub stopping: AtomicBool,
    pub heartbeat: Arc<Heartbeat>,
    pub statistics: Arc<Statistics>,
}

/// The routes of the probes' listener.
pub fn router(condition: Arc<Condition>) -> Router {
    Router::new()
        .route("/startup", get(startup))
        .route("/ready", get(ready))
        .route("/live", get(live))
        .route("/metrics", get(metrics))
        .with_state(condition)
}

const fn word(good: bool) -> (StatusCode, &'static str) {
    if good { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "no\n") }
}

async fn startup(State(condition): State<Arc<Condition>>) -> impl IntoResponse {
    word(condition.started.load(Ordering::Acquire))
}

async fn ready(State(condition): State<Arc<Condition>>) -> impl IntoResponse {
    let (started, stopping) = (&condition.started, &condition.stopping);
    word(started.load(Ordering::Acquire) && !stopping.load(Ordering::Acquire))
}

async fn live(State(condition): State<Arc<Condition>>) -> impl IntoResponse {
    word(condition.heartbeat.age() < ALIVE_WITHIN)
}

async fn metrics(State(condition): State<Arc<Condition>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], page(&condition.statistics))
}

fn page(statistics: &Statistics) -> String {
    let totals = statistics.totals();
    let mut page = String::new();
    let mut family = |name: &str, help: &str, samples: &[(String, u64)]| {
        // Writing to a String can't fail.
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} counter");
        for (labels, value) in samples {
            let _ = writeln!(page, "{name}{labels} {value}");
        }
    };
    let one = |value| vec![(String::new(), value)];
    let routes = totals.accepted_by_route.iter();
    let by_route: Vec<_> = routes.map(|(route, n)| (format!("{{route=\"{route}\"}}"), *n)).collect();
    let outcomes = totals.attempts.iter();
    let by_outcome: Vec<_> = outcomes.map(|(word, n)| (format!("{{outcome=\"{word}\"}}"), *n)).collect();
    family("service_accepted_total", "Notifications that were accepted.", &one(totals.accepted));
    family("service_route_accepted_total", "Notifications that were accepted, by route.", &by_route);
    family("service_refused_total", "Submissions that were refused.", &one(totals.refused));
    family("service_replayed_total", "Submissions under a known key.", &one(totals.replayed));
    family("service_attempts_total", "Delivery attempts, by outcome.", &by_outcome);
    family("service_webhooks_sent_total", "Webhooks answered with 2xx.", &one(totals.webhooks_sent));
    page
}
