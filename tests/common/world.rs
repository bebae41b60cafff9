//! A whole world for end-to-end tests: a simulated service in this process, and monitors as processes of their own, so that they can be killed.

pub use super::process;

use super::queries::{ATTEMPTS, LOOKUP, NOTIFICATIONS, PENDING};
use delivery_canary::simulator::{LedgerOptions, ReaderAddress, Simulator, SimulatorOptions};
use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Mutex,
    time::Duration,
};
use tempfile::TempDir;

pub use process::{Place, until};

/// A recipient that must be in no log line, no metric and no row of the store.
pub const RECIPIENT: &str = "canary-recipient@example.invalid";

/// A free address on loopback that no other test takes: below the ports that the system gives to connections, and claimed by a
/// lock that is held while this process lives.
pub fn free_address() -> SocketAddr {
    static CLAIMS: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = std::env::temp_dir().join("delivery-canary-test-ports");
    fs::create_dir_all(&folder).expect("a folder of claims");
    let mut claims = CLAIMS.lock().expect("no test has panicked in here");
    // Processes begin at different places, so that they seldom ask for the same port.
    let first = std::process::id().wrapping_mul(2_654_435_761) % 20_000;
    for n in 0..20_000 {
        let port = u16::try_from(12_000 + (first + n) % 20_000).expect("it is below 32000");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let claim = File::create(folder.join(port.to_string())).expect("a claim can be written");
        if claim.try_lock().is_ok() && TcpListener::bind(address).is_ok() {
            claims.push(claim);
            return address;
        }
    }
    panic!("no port from 12000 to 32000 is free on loopback");
}

/// How a world is made.
#[derive(Clone)]
pub struct Shape {
    /// The store: a PostgreSQL URL, or an SQLite file of the world's own.
    pub store_url: Option<String>,
    /// The ledger: a PostgreSQL URL, or an SQLite file of the world's own.
    pub ledger_url: Option<String>,
    /// The routes' schedule, as YAML.
    pub schedule: String,
    /// The routes' names.
    pub routes: Vec<String>,
    /// The routes' deadline.
    pub deadline: &'static str,
    /// How long a verdict waits after it.
    pub settle: &'static str,
    /// How long a canary is followed.
    pub follow_for: &'static str,
    /// Further lines of each route, indented by four.
    pub route_lines: String,
    /// Whether routes have the ledger.
    pub with_ledger: bool,
    /// Whether the ledger is followed.
    pub is_followed: bool,
    /// Further lines of the ledger, indented by four.
    pub ledger_lines: String,
    /// Canaries an hour, at the most.
    pub hourly_cap: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            store_url: None,
            ledger_url: None,
            schedule: "{ every: 1s }".into(),
            routes: vec!["receipts".into()],
            deadline: "2s",
            settle: "2s",
            follow_for: "10m",
            route_lines: String::new(),
            with_ledger: true,
            is_followed: false,
            ledger_lines: String::new(),
            hourly_cap: 20_000,
        }
    }
}

/// A simulated service, and where monitors of it keep their state.
pub struct World {
    /// The folder of all files.
    pub folder: TempDir,
    /// The service.
    pub simulator: Simulator,
    /// How it was made.
    pub shape: Shape,
}

impl World {
    /// Starts the service.
    pub async fn new(shape: Shape) -> Self {
        Self::with(shape, |_| {}).await
    }

    /// Starts the service with other options.
    pub async fn with(shape: Shape, change: impl FnOnce(&mut SimulatorOptions)) -> Self {
        let folder =
            tempfile::Builder::new().prefix("delivery-canary-test-").tempdir().expect("a temporary folder");
        let ledger = match &shape.ledger_url {
            Some(url) => LedgerOptions::Postgres(url.clone()),
            None => LedgerOptions::Sqlite(folder.path().join("ledger.db")),
        };
        let mut options = SimulatorOptions::new(ledger);
        options.provider_timeout = Duration::from_secs(1);
        options.callback_timeout = Duration::from_millis(800);
        options.backoff_base = Duration::from_millis(200);
        options.backoff_most = Duration::from_secs(1);
        change(&mut options);
        let simulator = Simulator::start(options).await.expect("the simulator starts");
        Self { folder, simulator, shape }
    }

    /// Writes a configuration for one monitor of this world.
    pub fn configure(&self, name: &str) -> Place {
        let place = Place {
            config: self.folder.path().join(format!("{name}.yaml")),
            log: self.folder.path().join(format!("{name}.log")),
            metrics: free_address(),
            health: free_address(),
            receipts: free_address(),
        };
        fs::write(&place.config, self.text(&place)).expect("the configuration is written");
        place
    }

    fn text(&self, place: &Place) -> String {
        let folder = self.folder.path();
        let store = match &self.shape.store_url {
            Some(url) => format!("postgres: {{ url: {url} }}"),
            None => format!("sqlite: {{ path: {} }}", folder.join("monitor.db").display()),
        };
        let (database, lists) = match self.simulator.ledger_reader() {
            ReaderAddress::Sqlite(path) => (
                format!("sqlite: {{ path: {} }}", path.display()),
                ["in (select value from json_each(:ids))", "in (select value from json_each(:keys))"],
            ),
            ReaderAddress::Postgres(url) => {
                (format!("postgres: {{ url: {url} }}"), ["= any(:ids::uuid[])", "= any(:keys)"])
            }
        };
        let time = |column: &str| {
            if self.shape.ledger_url.is_some() {
                column.to_owned()
            } else {
                format!("{{ name: {column}, time: iso }}")
            }
        };
        let routes: String = self.shape.routes.iter().map(|name| self.route(name)).collect();
        let mapped: Vec<String> =
            self.shape.routes.iter().map(|name| format!("{name}: webhook/{name}")).collect();
        format!(
            r#"location: here
listeners: {{ metrics: {metrics}, health: {health} }}
store:
  {store}
log: {{ level: debug }}
grace: 8s
acceptances:
  service:
    http:
      url: http://{acceptance}/v1/notifications
      body: |
        {{"recipient": {{{{ recipient | tojson }}}}, "template": "payment_receipt", "amount": "12.34", "channel": "webhook",
         "route": {{{{ service_route | tojson }}}}, "callback_url": {{{{ callback_url | tojson }}}},
         "metadata": {{"canary_id": {{{{ canary_id | tojson }}}}}}}}
      accepted: {{ statuses: [200, 201], id: /notification_id }}
      error_when: [{{ pointer: /error }}]
      connect_timeout: 500ms
      total_timeout: 1s
      max_submissions: 3
      resubmit_after: 200ms
  provider:
    http:
      url: http://{provider}/provider/v1/messages
      body: |
        {{"recipient": {{{{ recipient | tojson }}}}, "template": "payment_receipt", "amount": "12.34", "channel": "webhook",
         "route": {{{{ service_route | tojson }}}}, "callback_url": {{{{ callback_url | tojson }}}},
         "metadata": {{"canary_id": {{{{ canary_id | tojson }}}}}}}}
      accepted: {{ statuses: [200, 201, 202] }}
      connect_timeout: 1s
      total_timeout: 2s
  sink:
    http:
      url: "http://{receipts}/receipts/{{{{ token }}}}"
      body: '{{"text": "12.34"}}'
      accepted: {{ statuses: [200, 202, 204] }}
      connect_timeout: 1s
      total_timeout: 2s
receivers:
  sink:
    webhook:
      listen: {receipts}
      public_url: http://{receipts}/receipts
      token_secrets: [a-secret-of-this-test-alone]
      self_receipt_every: 500ms
ledgers:
  attempts:
    database:
      {database}
    overlap: 2s
    refresh_every: 1s
    statement_timeout: 1s
    lookup:
      sql: |
        {LOOKUP}
        where n.notification_id {by_ids} or n.idempotency_key {by_keys} limit :limit
      columns:
        notification_id: notification_id
        idempotency_key: idempotency_key
        route: route
        accepted_at: {accepted_at}
        not_before: {not_before}
        attempt_id: attempt_id
        attempt_status: outcome
        attempt_at: {started_at}
        policy_version: policy_version
    pending:
      sql: |
        {PENDING} limit :limit
      columns: {{ route: route, accepted_at: {accepted_at}, not_before: {not_before}, status: outcome }}
      routes: {{ {mapped} }}
{followed}{ledger_lines}    statuses: {{ delivered: delivered, retryable: retryable, permanent_rejection: rejected_service, suppressed: suppressed, unknown: unknown }}
routes:
{routes}"#,
            metrics = place.metrics,
            health = place.health,
            receipts = place.receipts,
            acceptance = self.simulator.addresses().acceptance,
            provider = self.simulator.addresses().provider,
            by_ids = lists[0],
            by_keys = lists[1],
            accepted_at = time("accepted_at"),
            started_at = time("started_at"),
            not_before = time("not_before"),
            mapped = mapped.join(", "),
            followed = if self.shape.is_followed { self.followed(&mapped.join(", ")) } else { String::new() },
            ledger_lines = self.shape.ledger_lines,
        )
    }

    /// The queries by which the ledger is followed. They leave no canary out: the monitor has to know its own.
    fn followed(&self, mapped: &str) -> String {
        let is_postgres = self.shape.ledger_url.is_some();
        let column =
            |name: &str| if is_postgres { name.into() } else { format!("{{ name: {name}, time: iso }}") };
        let greatest = if is_postgres {
            "greatest(n.accepted_at, n.not_before)"
        } else {
            "max(n.accepted_at, coalesce(n.not_before, ''))"
        };
        format!(
            r#"    notifications:
      sql: |
        {NOTIFICATIONS}
      columns: {{ notification_id: notification_id, route: route, accepted_at: {accepted_at}, not_before: {not_before}, canary: is_canary }}
      cursor: {{ at: {accepted_at}, id: notification_id }}
      routes: {{ {mapped} }}
    attempts:
      sql: |
        {ATTEMPTS}
      columns: {{ attempt_id: attempt_id, notification_id: notification_id, status: outcome, at: {started_at} }}
      cursor: {{ at: {ended_at}, id: attempt_id }}
    partition:
      sql: |
        select n.route, (select a.outcome from delivery_attempts a where a.notification_id = n.notification_id
                         order by a.attempt_number desc limit 1) as outcome, count(*) as n
        from notifications n
        where not n.is_canary and {greatest} >= :from_ts and {greatest} < :until_ts
        group by 1, 2
      columns: {{ route: route, status: outcome, count: n }}
      routes: {{ {mapped} }}
"#,
            accepted_at = column("accepted_at"),
            not_before = column("not_before"),
            started_at = column("started_at"),
            ended_at = column("ended_at"),
        )
    }

    fn route(&self, name: &str) -> String {
        let shape = &self.shape;
        let ledger = if shape.with_ledger { "    ledger: attempts\n" } else { "" };
        format!(
            "  - channel: webhook\n    name: {name}\n    schedule: {}\n    deadline: {}\n    settle: {}\n    follow_for: {}\n    \
             acceptance: service\n    variables: {{ service_route: {name} }}\n    recipients: [{RECIPIENT}]\n    receipt:\n      \
             receiver: sink\n      expect: [{{ name: amount, at: {{ pointer: /text }}, matches: '12\\.34' }}]\n{ledger}    \
             hourly_cap: {}\n    confirmations: {{ every: 1s, max: 0 }}\n    evidence: {{ sustain: 3s }}\n{}",
            shape.schedule,
            shape.deadline,
            shape.settle,
            shape.follow_for,
            shape.hourly_cap,
            shape.route_lines
        )
    }
}
