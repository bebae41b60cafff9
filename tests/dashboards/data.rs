//! Every query of the dashboards, on a real Prometheus that scrapes a real monitor.

use super::{
    postgres::Postgres,
    prometheus::Prometheus,
    queries,
    world::{Shape, World, process::get, until},
};
use delivery_canary::simulator::{Channel, Fault, TrafficOptions, TrafficRoute};
use regex::Regex;
use serde_json::Value;
use std::{collections::BTreeMap, net::SocketAddr};

/// Panels that have nothing to show here, and why.
const EMPTY: [(&str, &str); 3] = [
    ("delivery-canary-ledger: Replica lag", "the server is no replica"),
    ("delivery-canary-ledger: Accepted, and not in the ledger", "no independent count is configured"),
    ("delivery-canary-ledger: Residue of the last closed hour", "no hour was closed since the ledger began"),
];

/// What only shows while something fails.
const FAILING: [&str; 3] = ["failing_since", "stopped_at", "oldest_pending"];

/// A query with the reader's choices, and without a last filter that hides zeros.
fn asked(expr: &str) -> String {
    let expr =
        expr.replace("$__rate_interval", "15s").replace("$location", "here").replace("$ledger", "attempts");
    let expr = expr.replace("$route", "webhook/receipts");
    expr.strip_suffix(" > 0").map_or(expr.clone(), str::to_owned)
}

/// How many series a query gives now.
fn series(address: SocketAddr, expr: &str) -> Result<usize, String> {
    let url = reqwest::Url::parse_with_params("http://prometheus/api/v1/query", [("query", expr)]);
    let url = url.expect("it is a URL");
    let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    let (status, body) = get(address, &path).ok_or("no answer")?;
    let answer: Value = serde_json::from_str(&body).map_err(|error| format!("{status}: {error}"))?;
    let result = answer["data"]["result"].as_array().ok_or_else(|| format!("{status}: {body}"))?;
    let is_number = |one: &&Value| one["value"][1].as_str().is_some_and(|value| value != "NaN");
    Ok(result.iter().filter(is_number).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_returns_data_on_a_real_prometheus() {
    let server = Postgres::start();
    let shape =
        Shape { ledger_url: Some(server.fresh_database().await), is_followed: true, ..Shape::default() };
    let world = World::with(shape, |options| {
        let route = TrafficRoute { name: "receipts".into(), channel: Channel::Webhook };
        options.traffic = Some(TrafficOptions { per_second: 2.0, routes: vec![route], dead_recipients: 0.0 });
    })
    .await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    let prometheus = Prometheus::scraping(place.metrics);
    let mut open: BTreeMap<String, String> = queries()
        .into_iter()
        .filter(|(title, _)| EMPTY.iter().all(|(empty, _)| empty != title))
        .map(|(title, expr)| (asked(&expr), title))
        .collect();
    let left = Regex::new(r"\$").expect("a pattern");
    assert!(open.keys().all(|expr| !left.is_match(expr)), "a variable is left in {open:?}");
    let mut look = |is_left: &dyn Fn(&str) -> bool| {
        open.retain(|expr, title| match series(prometheus.address(), expr) {
            Ok(count) => count == 0,
            Err(fault) => panic!("{title}: {expr}: {fault}"),
        });
        let left: Vec<_> = open.iter().filter(|(expr, _)| is_left(expr)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("nothing from {left:#?}; log:\n{}", place.log())) }
    };
    // While everything arrives, and arrives twice.
    world.simulator.fault_on(Fault::Duplicate).await.expect("the fault is there");
    let is_of_failing = |expr: &str| FAILING.iter().any(|name| expr.contains(name));
    until("all but what shows failing to return data", 120, || look(&|expr| !is_of_failing(expr)));
    world.simulator.fault_on(Fault::ProviderDown).await.expect("the fault is there");
    until("every query to have returned data", 120, || look(&|_| true));
}
