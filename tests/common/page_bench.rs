//! A monitor's snapshot and counts in every state that a page can be made of.

use super::scrape::Scrape;
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    catalog::{
        bounds::{ARM_CLASSES, CANARY_WINDOWS, LEDGER_WINDOWS},
        labels::{FollowerMode, GuardReason, LoopName, ReceiptResult, Stage, SubmissionLabel, Window},
    },
    config::Config,
    domain::{
        canary::CanaryKind,
        disagreement::Disagreement,
        elsewhere::{Accepted, Bounds},
        failure_evidence::Stream,
        following::Stopped,
        outcome::{Cause, Disposition, Outcome},
        pending::{PendingRow, PendingSnapshot, Tried},
        route::{Channel, RouteName},
        verdict::{Class, Verdict},
    },
    exposition::{collector::registry, server::render},
    monitor::{
        counters::Counters,
        evidence::Unmeasured,
        flow::{FlowNumbers, FlowReport, RouteFlow, Unbalanced},
        snapshot::{Clock, Configuration, Snapshot, SnapshotCell},
    },
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

pub const FULL: &str = "webhook/receipts";

pub fn instant(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
}

pub fn config(names: &[&str], provider: &str) -> Config {
    let routes: Vec<_> = names
        .iter()
        .map(|name| {
            json!({
                "channel": "webhook", "name": name, "provider": provider, "schedule": {"every": "5m"}, "deadline": "60s",
                "acceptance": "api", "recipients": ["https://canary.invalid"], "hourly_cap": 20,
                "receipt": {"receiver": "hook"}, "ledger": "main",
            })
        })
        .collect();
    let column = |name: &str| json!({ "sql": "select 1", "columns": { "notification_id": name } });
    serde_json::from_value(json!({
        "location": "zurich",
        "store": {"sqlite": {"path": "canary.db"}},
        "acceptances": {},
        "receivers": {"hook": {"webhook": {
            "listen": "127.0.0.1:0", "public_url": "http://localhost", "token_secrets": ["0123456789abcdef"],
        }}},
        "ledgers": {"main": {"database": {"sqlite": {"path": "ledger.db"}}, "lookup": column("id"), "statuses": {}}},
        "routes": routes,
    }))
    .unwrap()
}

/// A monitor's cell and counts, before its first look.
pub struct Bench {
    pub cell: Arc<SnapshotCell>,
    pub counters: Arc<Counters>,
    pub registry: prometheus::Registry,
}

impl Bench {
    pub fn new(config: &Config) -> Self {
        let cell = Arc::new(SnapshotCell::new(first(config)));
        let counters = Arc::new(Counters::default());
        configure(&counters, config);
        let registry = registry(Arc::clone(&cell), Arc::clone(&counters)).unwrap();
        Self { cell, counters, registry }
    }

    pub fn page(&self) -> String {
        render(&self.registry).unwrap()
    }

    pub fn scrape(&self) -> Scrape {
        Scrape::read(&self.page()).unwrap()
    }
}

pub fn first(config: &Config) -> Snapshot {
    Snapshot::of_configuration(config, Configuration::default(), |_| Duration::from_secs(300))
}

pub fn configure(counters: &Counters, config: &Config) {
    counters.configure(
        config.routes.iter().map(|r| (r.full_name(), r.deadline.get())),
        config.ledgers.keys().cloned(),
        config.receivers.keys().cloned(),
    );
}

pub fn reading(config: &Config, truncated: bool) -> PendingSnapshot {
    let deadlines: BTreeMap<_, _> = config.routes.iter().map(|r| (r.full_name(), r.deadline.get())).collect();
    let row = |route: Option<&str>, age: i64, tried, count| PendingRow {
        route: route.map(RouteName::from_text),
        due: Some(instant(-age)),
        tried,
        count,
    };
    let rows = [
        row(Some(FULL), 10, Tried::Never, 4),
        row(Some(FULL), 90, Tried::WillRetry, 3),
        row(Some(FULL), 400_000, Tried::OutcomeUnknown, 1),
        row(Some(FULL), -60, Tried::Never, 2),
        row(None, 700, Tried::OutcomeUnknown, 5),
    ];
    PendingSnapshot::fold(instant(0), &deadlines, rows, 0, truncated)
}

/// What is known of a ledger that is followed, with everything that may be absent.
fn flow(config: &Config) -> FlowReport {
    let each = |windows: &[Window], count| windows.iter().map(|window| (*window, count)).collect();
    let flow = RouteFlow {
        accepted: each(LEDGER_WINDOWS, 100),
        bad: each(LEDGER_WINDOWS, 2),
        dispositions: Disposition::ALL.map(|disposition| (disposition, 25)).into(),
        rejected: Cause::ALL.map(|cause| (cause, 1)).into(),
        attempts: Outcome::ALL.map(|outcome| (outcome, 5)).into(),
        stuck_before_baseline: Some(1),
        leaks: 0,
        came_behind: 1,
        residue: Some(Unbalanced { notifications: 0, counted: 90 }),
        accepted_in_hour: Some(Accepted { here: 90, elsewhere: Bounds::exactly(91) }),
    };
    let routes = config.routes.iter().map(|route| (route.full_name(), flow.clone())).collect();
    FlowReport {
        mode: FollowerMode::Following,
        followed_until: Some(instant(-60)),
        held: Some(8),
        unseen: Some(0),
        as_first_decided: Some(false),
        overdue: Some(0),
        figures: Some(Arc::new(FlowNumbers { as_of: instant(0), routes })),
    }
}

/// A snapshot in which everything that may be absent is there.
pub fn full(config: &Config) -> Snapshot {
    let mut snapshot = first(config);
    snapshot.taken_at = Some(instant(0));
    snapshot.store_up = true;
    snapshot.observers.values_mut().for_each(|up| *up = true);
    snapshot.loops = LoopName::ALL.map(|name| (name, instant(0))).into();
    snapshot.clock_skew =
        [(Clock::Store, TimeDelta::milliseconds(-1_500)), (Clock::Ledger("main".into()), TimeDelta::zero())]
            .into();
    snapshot.configuration =
        Configuration { hash: u64::MAX, last_reload_successful: true, last_reload_success: Some(instant(0)) };
    let ledger = snapshot.ledgers.get_mut("main").unwrap();
    let reading = reading(config, false);
    (ledger.pending_read_at, ledger.pending) = (Some(reading.as_of), Some(reading));
    ledger.flow = flow(config);
    ledger.role_can_write = Some(false);
    ledger.lag = Some(Duration::from_millis(250));
    for route in snapshot.routes.values_mut() {
        let failing =
            Stream { value: 2.5, failing_since: Some(instant(-600)), consecutive: 3, ..Stream::default() };
        route.is_folded = true;
        route.arrives = failing;
        route.in_time = failing;
        route.newest_submission = Some(instant(0));
        route.overdue_slot = Some(instant(-300));
        route.newest_arrival = Some(instant(-700));
        route.oldest_in_flight = Some(instant(-30));
        route.in_flight = 2;
        route.stopped_at = Some(Stopped::Provider);
        route.unmeasured =
            Some(Unmeasured { since: instant(-300), verdict: Verdict::Undetermined, canaries: 3 });
        route.windows = CANARY_WINDOWS.iter().map(|w| (*w, Class::ALL.map(|c| (c, 7)).into())).collect();
        route.verdicts = Verdict::ALL.map(|v| (v, 3)).into();
        route.controls =
            CanaryKind::ARMS.iter().flat_map(|arm| ARM_CLASSES.map(|class| ((*arm, class), 2))).collect();
        route.disagreements = Disagreement::ALL.map(|d| (d, 1)).into();
    }
    snapshot
}

pub fn full_bench() -> (Config, Bench) {
    let config = config(&["receipts"], "acme");
    let bench = Bench::new(&config);
    bench.cell.publish(full(&config));
    let route = RouteName::new(Channel::Webhook, "receipts");
    let counters = bench.counters.route(&route).unwrap();
    counters.submissions(SubmissionLabel::Unknown).inc();
    counters.guard_refusals(GuardReason::MailAddress).inc();
    for millis in [1, 6_000, 60_000, 75_001, 9_000_000] {
        bench.counters.observe_stage(&route, Stage::Receipt, TimeDelta::milliseconds(millis));
    }
    bench.counters.observe_stage(&route, Stage::FirstAttempt, TimeDelta::milliseconds(-300_000));
    bench.counters.receiver("hook").unwrap().results(ReceiptResult::Forged).raise_to(9);
    bench.counters.ledger("main").unwrap().read_seconds.observe(Duration::from_millis(30));
    (config, bench)
}
