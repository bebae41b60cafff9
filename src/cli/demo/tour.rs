//! `demo --tour`: five faults, what was seen of each, and how long it took.

use super::{stage::Stage, view};
use crate::cli::out::say;
use crate::{
    domain::{
        following::Stopped,
        route::{Channel, RouteName},
        verdict::Verdict,
    },
    monitor::snapshot::RouteSnapshot,
    simulator::{Fault, FaultOrder},
};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// A fault on one route, and what must be seen of it.
struct Stop {
    fault: Fault,
    route: &'static str,
    says: &'static str,
    /// The stage that the monitor must name.
    stage: Stopped,
    /// A verdict that it must come to.
    verdict: Verdict,
}

const STOPS: [Stop; 5] = [
    Stop {
        fault: Fault::ProviderDown,
        route: "receipts",
        says: "the provider refuses everything; the service accepts and retries",
        stage: Stopped::Provider,
        verdict: Verdict::Overdue,
    },
    Stop {
        fault: Fault::SilentDrop,
        route: "transfer-alerts",
        says: "the provider says delivered and sends nothing",
        stage: Stopped::Sink,
        verdict: Verdict::Overdue,
    },
    Stop {
        fault: Fault::Malformed,
        route: "reconciliation",
        says: "messages arrive with an unrendered template",
        stage: Stopped::Content,
        verdict: Verdict::Malformed,
    },
    Stop {
        fault: Fault::StuckWorker,
        route: "refunds",
        says: "accepted, and no worker takes them up",
        stage: Stopped::Ledger,
        verdict: Verdict::Overdue,
    },
    Stop {
        fault: Fault::Acceptance5xx,
        route: "payouts",
        says: "the acceptance answers 500, which says nothing certain",
        stage: Stopped::Acceptance,
        verdict: Verdict::Unknown,
    },
];

/// Longest wait for one thing to be seen.
const LIMIT: Duration = Duration::from_secs(40);

/// Walks through the faults.
pub async fn walk(stage: &Stage) -> Result<()> {
    let began = Instant::now();
    for (name, _) in super::stage::ROUTES {
        until(stage, name, "arriving", |route, _| route.newest_arrival.is_some()).await?;
    }
    say!(
        "{:>4}s  all routes are arriving; customers' notifications are followed in the ledger",
        began.elapsed().as_secs()
    );
    for stop in &STOPS {
        let switched = Instant::now();
        say!("{:>4}s  {} on {}: {}", began.elapsed().as_secs(), stop.fault, stop.route, stop.says);
        let order = |on| FaultOrder {
            route: Some(stop.route.into()),
            ..if on { FaultOrder::on(stop.fault) } else { FaultOrder::off(stop.fault) }
        };
        stage.simulator.switch(order(true)).await?;
        let is_seen = |route: &RouteSnapshot, pages: bool| {
            pages
                && route.stopped_at == Some(stop.stage)
                && route.verdicts.get(&stop.verdict).is_some_and(|n| *n > 0)
        };
        until(stage, stop.route, "a page", is_seen).await?;
        let took = switched.elapsed().as_secs();
        say!(
            "{:>4}s    seen: {}, stops at {}; would page after {took}s",
            began.elapsed().as_secs(),
            stop.verdict.word(),
            stop.stage.word()
        );
        stage.simulator.switch(order(false)).await?;
    }
    say!("{:>4}s  done: five faults, each named by the stage where it stopped", began.elapsed().as_secs());
    Ok(())
}

/// Waits until a route is seen so, and says its last state when it never is.
async fn until(
    stage: &Stage,
    route: &str,
    what: &str,
    is_so: impl Fn(&RouteSnapshot, bool) -> bool,
) -> Result<()> {
    let name = RouteName::new(Channel::Webhook, route);
    let shared = stage.monitor.shared();
    let began = Instant::now();
    loop {
        let snapshot = shared.snapshot.load();
        let active = shared.active.load();
        let (Some(seen), Some(rules)) = (snapshot.routes.get(&name), active.routes.get(&name)) else {
            bail!("the route {name} is not configured");
        };
        if is_so(seen, view::would_page(seen, &rules.weights)) {
            return Ok(());
        }
        if began.elapsed() > LIMIT {
            bail!("waited {}s for {what} on {name}; last seen: {seen:?}", LIMIT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
