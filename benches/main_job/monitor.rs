//! The real binary, on a configuration that is made here.

use crate::{load::client, process::Running};
use anyhow::{Context, Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::model::{SqliteStore, StoreConfig},
    store::{self, Filter, Store, Stored},
};
use std::{
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_delivery-canary");

/// The secret that signs tokens.
pub const SECRET: &str = "a secret of the bench alone";

/// The place of observation.
pub const LOCATION: &str = "bench";

/// The body of each submission.
pub const BODY: &str =
    r#"{"recipient": "canary-endpoint", "template": "payment_receipt", "callback_url": "CALLBACK"}"#;

/// The body of each webhook.
pub const WEBHOOK: &str = r#"{"text": "Your payment of 12.34 was received"}"#;

/// What a monitor is given to do.
pub struct Setting {
    /// How many routes.
    pub routes: usize,
    /// Their schedule's interval.
    pub every: &'static str,
    /// Canaries an hour and route, at the most.
    pub hourly_cap: u32,
    /// The deadline, below which nothing settles that has not arrived.
    pub deadline: &'static str,
    /// Where canaries are submitted to.
    pub target: SocketAddr,
    /// How long a submission waits for its answer.
    pub total_timeout: &'static str,
    /// A ledger in an SQLite file, with the simulated service's tables.
    pub ledger: Option<PathBuf>,
}

/// A monitor that is configured, and perhaps runs.
pub struct Monitor {
    folder: TempDir,
    metrics: SocketAddr,
    health: SocketAddr,
    /// Where webhooks are delivered to.
    pub receipts: SocketAddr,
    running: Option<Running>,
}

fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

impl Monitor {
    /// Writes the configuration.
    pub fn configure(setting: &Setting) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("delivery-canary-bench-").tempdir()?;
        let this = Self { metrics: free()?, health: free()?, receipts: free()?, folder, running: None };
        fs::write(this.folder.path().join("config.yaml"), this.text(setting)?)?;
        Ok(this)
    }

    fn text(&self, setting: &Setting) -> Result<String> {
        let body = BODY
            .replace("\"CALLBACK\"", "{{ callback_url | tojson }}")
            .replace("\"canary-endpoint\"", "{{ recipient | tojson }}");
        let mut text = format!(
            "location: {LOCATION}\nlisteners: {{ metrics: {}, health: {} }}\nstore: {{ sqlite: {{ path: {} }} }}\n\
             acceptances:\n  service:\n    http:\n      url: http://{}/v1/notifications\n      body: '{body}'\n      \
             accepted: {{ statuses: [201], id: /notification_id }}\n      connect_timeout: 1s\n      total_timeout: {}\n\
             receivers:\n  sink:\n    webhook: {{ listen: {}, public_url: 'http://{}/receipts', token_secrets: ['{SECRET}'] }}\n",
            self.metrics,
            self.health,
            self.store_path().display(),
            setting.target,
            setting.total_timeout,
            self.receipts,
            self.receipts,
        );
        if let Some(path) = &setting.ledger {
            text += &ledger(path);
        }
        text += "routes:\n";
        let ledger = if setting.ledger.is_some() { ", ledger: attempts" } else { "" };
        for number in 0..setting.routes {
            writeln!(
                text,
                "  - {{ channel: webhook, name: {}, schedule: {{ every: {} }}, deadline: {}, acceptance: service, \
                 recipients: [canary-endpoint], receipt: {{ receiver: sink, expect: [{{ name: amount, at: {{ pointer: /text }}, \
                 matches: '12\\.34' }}] }}, hourly_cap: {}, confirmations: {{ max: 0 }}{ledger} }}",
                name(number),
                setting.every,
                setting.deadline,
                setting.hourly_cap,
            )?;
        }
        Ok(text)
    }

    fn store_path(&self) -> PathBuf {
        self.folder.path().join("monitor.db")
    }

    /// The store, opened beside the monitor.
    pub async fn store(&self) -> Result<Arc<dyn Store>> {
        Ok(store::open(&StoreConfig::Sqlite(SqliteStore { path: self.store_path() })).await?)
    }

    /// Starts the binary, and waits until it is ready.
    pub async fn start(&mut self) -> Result<()> {
        let log = self.folder.path().join("log");
        let child = Command::new(PROGRAM)
            .args(["serve", "--config"])
            .arg(self.folder.path().join("config.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .with_context(|| format!("{PROGRAM} can't be started"))?;
        let running = self.running.insert(Running::new(child));
        let (client, limit, began) =
            (client(Duration::from_secs(5))?, Duration::from_secs(60), Instant::now());
        loop {
            let seen = match client.get(format!("http://{}/ready", self.health)).send().await {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => answer.status().to_string(),
                Err(error) => error.to_string(),
            };
            if running.has_ended()? || began.elapsed() > limit {
                bail!("the monitor is not ready: {seen}; its log:\n{}", fs::read_to_string(&log)?);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The process.
    pub fn process(&self) -> Result<&Running> {
        self.running.as_ref().context("the monitor does not run")
    }

    /// Ends the process as `kill -9` does. The store stays.
    pub fn end(&mut self) {
        self.running = None;
    }

    /// The canaries of the slots in this span, which are a whole number of `step` apart.
    pub async fn canaries(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        step: TimeDelta,
    ) -> Result<Vec<Stored>> {
        let store = self.store().await?;
        let mut all = Vec::new();
        let mut at = from;
        while at < until {
            let filter =
                Filter { from: Some(at), until: Some(at + step), limit: 10_000, ..Filter::default() };
            all.extend(store.list(&filter).await?);
            at += step;
        }
        Ok(all)
    }
}

/// The name of a route.
pub fn name(number: usize) -> String {
    format!("route-{number}")
}

fn ledger(path: &std::path::Path) -> String {
    format!(
        "ledgers:
  attempts:
    database:
      sqlite: {{ path: {} }}
    lookup:
      sql: |
        select n.notification_id, n.idempotency_key, n.accepted_at, a.attempt_id, a.outcome, a.started_at, a.policy_version
        from notifications n left join delivery_attempts a on a.notification_id = n.notification_id
        where n.notification_id in (select value from json_each(:ids)) or n.idempotency_key in (select value from json_each(:keys))
        limit :limit
      columns:
        notification_id: notification_id
        idempotency_key: idempotency_key
        accepted_at: {{ name: accepted_at, time: iso }}
        attempt_id: attempt_id
        attempt_status: outcome
        attempt_at: {{ name: started_at, time: iso }}
        policy_version: policy_version
    statuses: {{ delivered: delivered, retryable: retryable, permanent_rejection: rejected_service, suppressed: suppressed, unknown: unknown }}
",
        path.display()
    )
}
