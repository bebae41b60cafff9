//! Sets the demo's stage: a simulator, a configuration that fits it, and a monitor.

use super::super::{serve, wiring};
use crate::simulator::{Channel, LedgerOptions, Simulator, SimulatorOptions, TrafficOptions, TrafficRoute};
use anyhow::{Context, Result};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

/// The routes of the demo, with the templates of the simulator that their canaries ask for.
pub const ROUTES: [(&str, &str); 5] = [
    ("receipts", "payment_receipt"),
    ("transfer-alerts", "transfer_alert"),
    ("reconciliation", "reconciliation_notice"),
    ("refunds", "payment_receipt"),
    ("payouts", "transfer_alert"),
];

/// The usual ports, so that addresses can be learned by heart; where one is taken, a free one.
pub const ADMIN_PORT: u16 = 9470;
const ACCEPTANCE_PORT: u16 = 9471;
const METRICS_PORT: u16 = 9464;
const HEALTH_PORT: u16 = 9465;
const RECEIPTS_PORT: u16 = 9466;

/// A stage that is set.
pub struct Stage {
    /// The service that is watched.
    pub simulator: Simulator,
    /// The monitor that watches it.
    pub monitor: serve::Running,
    /// The configuration that was made for it.
    pub config: PathBuf,
}

/// An address on loopback: the usual port, or a free one.
fn address(usual: u16) -> Result<SocketAddr> {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, usual));
    let listener = TcpListener::bind(usual).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    listener.and_then(|l| l.local_addr()).context("no free port on loopback")
}

fn route(name: &str, template: &str) -> String {
    format!(
        "  - channel: webhook\n    name: {name}\n    provider: simulated\n    schedule: {{ every: 2s }}\n    deadline: 3s\n    \
         settle: 2s\n    follow_for: 10m\n    objective_percent: 99.9\n    acceptance: service\n    variables: {{ template: {template}, \
         service_route: {name} }}\n    recipients: [canary@example.invalid]\n    receipt:\n      receiver: sink\n      expect:\n        \
         - {{ name: amount, at: {{ pointer: /text }}, matches: '12\\.34' }}\n        - {{ name: rendered, at: {{ pointer: /text }}, \
         must_not_match: '\\{{\\{{|undefined|null' }}\n    ledger: attempts\n    hourly_cap: 6000\n    confirmations: {{ every: 2s, max: 0 }}\n    \
         evidence: {{ sustain: 6s }}\n"
    )
}

fn configuration(folder: &Path, simulator: &Simulator, level: &str) -> Result<String> {
    let addresses = simulator.addresses();
    let ledger = folder.join("ledger.db");
    let routes: String = ROUTES.iter().map(|(name, template)| route(name, template)).collect();
    let mapped: Vec<String> = ROUTES.iter().map(|(name, _)| format!("{name}: webhook/{name}")).collect();
    // A secret of this run alone.
    let secret = uuid::Uuid::new_v4().simple().to_string();
    let text = include_str!("config.yaml")
        .replace("__METRICS__", &address(METRICS_PORT)?.to_string())
        .replace("__HEALTH__", &address(HEALTH_PORT)?.to_string())
        .replace("__RECEIPTS__", &address(RECEIPTS_PORT)?.to_string())
        .replace("__ACCEPTANCE__", &addresses.acceptance.to_string())
        .replace("__STORE__", &folder.join("monitor.db").display().to_string())
        .replace("__LEDGER__", &ledger.display().to_string())
        .replace("__SECRET__", &secret)
        .replace("__LEVEL__", level)
        .replace("__MAPPED__", &mapped.join(", "))
        .replace("__ROUTES__", &routes);
    Ok(text)
}

/// Starts the simulator, and a monitor that watches it.
pub async fn set(folder: &Path, level: &str) -> Result<Stage> {
    let mut options = SimulatorOptions::new(LedgerOptions::Sqlite(folder.join("ledger.db")));
    options.admin = address(ADMIN_PORT)?;
    options.acceptance = address(ACCEPTANCE_PORT)?;
    options.provider_timeout = Duration::from_secs(1);
    options.callback_timeout = Duration::from_millis(800);
    options.backoff_most = Duration::from_secs(2);
    options.traffic = Some(TrafficOptions {
        per_second: 5.0,
        routes: ROUTES.map(|(name, _)| TrafficRoute { name: name.into(), channel: Channel::Webhook }).into(),
        dead_recipients: 0.01,
    });
    let simulator = Simulator::start(options).await.context("the simulator can't start")?;
    let config = folder.join("demo.yaml");
    fs::write(&config, configuration(folder, &simulator, level)?)
        .context("the configuration can't be written")?;
    let monitor = serve::start(wiring::Where { path: config.clone(), location: None }).await?;
    Ok(Stage { simulator, monitor, config })
}
