//! What is installed: a simulated service, the configuration of a monitor, its rules and its Alertmanager's tree, each for a clock.

use super::{
    clock::Clock,
    receivers::{DEAD_MAN, OWNERS, PAGE, Receivers, TICKET},
    scaled,
    servers::Servers,
    world::{Place, RECIPIENT, free_address, process::PROGRAM},
};
use crate::common::queries;
use chrono::{DateTime, SecondsFormat, Utc};
use delivery_canary::{
    alerts::{ALERTMANAGER, RULES, plan::Plan},
    config::{self, Loaded},
    simulator::{LedgerOptions, Simulator, SimulatorOptions},
};
use std::{collections::BTreeMap, fs, net::SocketAddr, path::PathBuf, process::Command};
use tempfile::TempDir;

/// A configuration. Durations stand in `~`, as in a real installation with a canary a minute.
const TEXT: &str = r#"
location: here
listeners:
  metrics: ${METRICS}
  health: ${HEALTH}
store:
  STORE
log: { level: info }
grace: 5s
acceptances:
  service:
    http:
      url: http://SERVICE/v1/notifications
      body: |
        {"recipient": {{ recipient | tojson }}, "template": "payment_receipt", "amount": "12.34", "channel": "webhook",
         "route": {{ service_route | tojson }}, "callback_url": {{ callback_url | tojson }},
         "metadata": {"canary_id": {{ canary_id | tojson }}}}
      accepted: { statuses: [200, 201], id: /notification_id }
      connect_timeout: ~10s~
      total_timeout: ~20s~
      max_submissions: 2
      resubmit_after: ~5s~
receivers:
  sink:
    webhook:
      listen: ${RECEIPTS}
      public_url: ${PUBLIC_URL}
      token_secrets: [a-secret-of-this-test-alone]
      self_receipt_every: ~20s~
ledgers:
  attempts:
    database:
      sqlite: { path: LEDGER }
    freshness: ~60s~
    overlap: ~2m~
    refresh_every: ~20s~
    statement_timeout: ~20s~
    lookup:
      sql: |
        LOOKUP_SQL
        where n.notification_id in (select value from json_each(:ids)) or n.idempotency_key in (select value from json_each(:keys)) limit :limit
      columns:
        notification_id: notification_id
        idempotency_key: idempotency_key
        route: route
        accepted_at: { name: accepted_at, time: iso }
        not_before: { name: not_before, time: iso }
        attempt_id: attempt_id
        attempt_status: outcome
        attempt_at: { name: started_at, time: iso }
        policy_version: policy_version
    pending:
      sql: |
        PENDING_SQL and not n.is_canary limit :limit
      columns: { route: route, accepted_at: { name: accepted_at, time: iso }, not_before: { name: not_before, time: iso }, status: outcome }
      routes: { WORDS }
    notifications:
      sql: |
        NOTIFICATIONS_SQL
      columns: { notification_id: notification_id, route: route, accepted_at: { name: accepted_at, time: iso }, not_before: { name: not_before, time: iso }, canary: is_canary }
      cursor: { at: { name: accepted_at, time: iso }, id: notification_id }
      routes: { WORDS }
    attempts:
      sql: |
        ATTEMPTS_SQL
      columns: { attempt_id: attempt_id, notification_id: notification_id, status: outcome, at: { name: started_at, time: iso } }
      cursor: { at: { name: ended_at, time: iso }, id: attempt_id }
    statuses: { delivered: delivered, retryable: retryable, permanent_rejection: rejected_service, suppressed: suppressed, unknown: unknown }
MAINTENANCEalerts:
  service: notifications
  runbooks: https://runbooks.example.com/delivery-canary
  office_hours: { days: ["sunday:saturday"], from: "00:00", until: "24:00", zone: UTC }
  receivers:
    page: { name: page, url: "http://TOLD/page" }
    ticket: { name: ticket, url: "http://TOLD/ticket" }
    owners: { name: owners, url: "http://TOLD/owners" }
    watchdog: { receiver: { name: dead-man, url: "http://TOLD/dead-man" }, patience: 15m }
  routes: ALERTS
routes:
"#;

/// A route, all on the defaults of evidence and confirmations.
const ROUTE: &str = r"
  - channel: webhook
    name: NAME
    schedule: { every: ~60s~ }
    deadline: ~60s~
    settle: ~60s~
    follow_for: ~1d~
    acceptance: service
    variables: { service_route: NAME }
    recipients: [RECIPIENT]
    receipt:
      receiver: sink
      expect: [{ name: amount, at: { pointer: /text }, matches: '12\.34' }]
    ledger: attempts
    hourly_cap: CAP
    confirmations: { every: ~60s~ }
    evidence: { sustain: ~5m~ }
";

/// What differs between installations.
pub struct Shape {
    /// The routes' names.
    pub routes: Vec<&'static str>,
    /// The routes on which slow delivery is a page.
    pub slow_pages: Vec<&'static str>,
    /// Planned work on a route, and its end.
    pub maintenance: Option<(&'static str, DateTime<Utc>)>,
    /// The store, as YAML.
    pub store: &'static str,
}

/// An installation without its processes.
pub struct Installation {
    /// The folder of all files.
    pub folder: TempDir,
    /// The monitored service.
    pub simulator: Simulator,
    /// Those who are told.
    pub receivers: Receivers,
    /// The clock.
    pub clock: Clock,
}

impl Installation {
    /// Starts the service and those who are told.
    pub async fn new(change: impl FnOnce(&mut SimulatorOptions)) -> Self {
        let folder =
            tempfile::Builder::new().prefix("delivery-canary-paged-").tempdir().expect("a temporary folder");
        let mut options = SimulatorOptions::new(LedgerOptions::Sqlite(folder.path().join("ledger.db")));
        change(&mut options);
        let simulator = Simulator::start(options).await.expect("the simulator starts");
        Self { folder, simulator, receivers: Receivers::start().await, clock: Clock::of_this_run() }
    }

    /// The address at which the test writes into the ledger.
    pub fn ledger_url(&self) -> String {
        format!("sqlite:{}", self.folder.path().join("ledger.db").display())
    }

    fn text(&self, shape: &Shape, clock: Clock) -> String {
        let words: Vec<String> = shape.routes.iter().map(|name| format!("{name}: webhook/{name}")).collect();
        let slow: Vec<String> =
            shape.slow_pages.iter().map(|name| format!("webhook/{name}: {{ slow: page }}")).collect();
        let maintenance = shape.maintenance.map_or(String::new(), |(route, until)| {
            let until = until.to_rfc3339_opts(SecondsFormat::Millis, true);
            format!(
                "maintenance:\n  - {{ routes: [webhook/{route}], owner: payments, reason: planned work, until: {until} }}\n"
            )
        });
        let whole = TEXT
            .replace("NOTIFICATIONS_SQL", queries::NOTIFICATIONS)
            .replace("LOOKUP_SQL", queries::LOOKUP)
            .replace("PENDING_SQL", queries::PENDING)
            .replace("ATTEMPTS_SQL", queries::ATTEMPTS)
            .replace("STORE", shape.store)
            .replace("LEDGER", &self.folder.path().join("ledger.db").display().to_string())
            .replace("SERVICE", &self.simulator.addresses().acceptance.to_string())
            .replace("WORDS", &words.join(", "))
            .replace("TOLD", &self.receivers.address.to_string())
            .replace("ALERTS", &format!("{{ {} }}", slow.join(", ")))
            .replace("MAINTENANCE", &maintenance);
        let cap = clock.per_hour(130).to_string();
        let routes: String = shape
            .routes
            .iter()
            .map(|name| ROUTE.replace("NAME", name).replace("RECIPIENT", RECIPIENT).replace("CAP", &cap))
            .collect();
        // What stands between two `~` is a duration.
        let parts = whole + routes.trim_start_matches('\n');
        let shortened =
            |(n, part): (usize, &str)| if n % 2 == 1 { clock.span(part) } else { part.to_owned() };
        parts.split('~').enumerate().map(shortened).collect()
    }

    /// Writes the configuration of this run, makes its rules with the program, and starts the servers over these processes.
    pub fn serve(&self, shape: &Shape, processes: &[&Process]) -> Servers {
        let real = self.folder.path().join("real.yaml");
        fs::write(&real, self.text(shape, Clock::REAL)).expect("it is written");
        let made = self.folder.path().join("made");
        let output = Command::new(PROGRAM)
            .args(["alerts", "generate", "--config"])
            .arg(&real)
            .arg("--out")
            .arg(&made)
            .envs(&processes[0].environment)
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "alerts generate: {output:?}");
        let environment = |name: &str| processes[0].environment.get(name).cloned();
        let load = |path| config::load(path, &environment).unwrap_or_else(|faults| panic!("{faults}"));
        let Loaded { config, hash, .. } = load(&real);
        let plan = Plan::new(&config, config.alerts.as_ref().expect("it has alerts"), hash, false);
        fs::write(self.config(), self.text(shape, self.clock)).expect("it is written");
        let running = load(&self.config()).hash;
        let text = |name| fs::read_to_string(made.join(name)).expect("it is made");
        let rules = scaled::rules(&text(RULES), &plan, self.clock, running);
        let tree = scaled::alertmanager(&text(ALERTMANAGER), self.clock);
        let targets: Vec<SocketAddr> = processes.iter().map(|process| process.place.metrics).collect();
        Servers::start(self.folder.path(), self.clock, &rules, &tree, &targets)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("running.yaml")
    }

    /// A process of the monitor: where it is, and what it has in its environment. It is reached at its own listener, or at this address.
    pub fn process(
        &self,
        name: &str,
        reached_at: Option<SocketAddr>,
        environment: &[(&str, &str)],
    ) -> Process {
        let place = Place {
            config: self.config(),
            log: self.folder.path().join(format!("{name}.log")),
            metrics: free_address(),
            health: free_address(),
            receipts: free_address(),
        };
        let public = reached_at.unwrap_or(place.receipts);
        let mut all: BTreeMap<String, String> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.insert("METRICS".into(), place.metrics.to_string());
        all.insert("HEALTH".into(), place.health.to_string());
        all.insert("RECEIPTS".into(), place.receipts.to_string());
        all.insert("PUBLIC_URL".into(), format!("http://{public}/receipts"));
        Process { place, environment: all }
    }
}

/// A process of the monitor that can be started.
pub struct Process {
    /// Where it is.
    pub place: Place,
    /// What it has in its environment.
    pub environment: BTreeMap<String, String>,
}

impl Process {
    /// Starts it.
    pub fn start(&self) -> super::world::process::Monitor {
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.place.serve_with(&environment)
    }
}

#[test]
fn the_receivers_are_configured_under_their_names() {
    for name in [PAGE, TICKET, OWNERS, DEAD_MAN] {
        assert!(TEXT.contains(&format!("name: {name}, url: \"http://TOLD/{name}\"")), "{name}");
    }
}
