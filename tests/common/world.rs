//! A whole world for end-to-end tests: a simulated service in this process, and monitors as processes of their own, so that they can be killed.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use super::scrape::Scrape;
use delivery_canary::simulator::{LedgerOptions, ReaderAddress, Simulator, SimulatorOptions};
use std::{
    fs::{self, File},
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_delivery-canary");

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
        select n.notification_id, n.idempotency_key, n.accepted_at, a.attempt_id, a.outcome, a.started_at, a.policy_version
        from notifications n left join delivery_attempts a on a.notification_id = n.notification_id
        where n.notification_id {by_ids} or n.idempotency_key {by_keys} limit :limit
      columns:
        notification_id: notification_id
        idempotency_key: idempotency_key
        accepted_at: {accepted_at}
        attempt_id: attempt_id
        attempt_status: outcome
        attempt_at: {started_at}
        policy_version: policy_version
    pending:
      sql: |
        select n.route, n.accepted_at, n.not_before,
               (select a.outcome from delivery_attempts a where a.notification_id = n.notification_id
                order by a.attempt_number desc limit 1) as outcome
        from notifications n where n.settled_at is null limit :limit
      columns: {{ route: route, accepted_at: {accepted_at}, not_before: {not_before}, status: outcome }}
      routes: {{ {mapped} }}
    statuses: {{ delivered: delivered, retryable: retryable, permanent_rejection: rejected_service, suppressed: suppressed, unknown: unknown }}
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

/// Where one monitor is configured and can be reached.
#[derive(Clone)]
pub struct Place {
    /// Its configuration.
    pub config: PathBuf,
    /// Its log.
    pub log: PathBuf,
    /// `/metrics`.
    pub metrics: SocketAddr,
    /// Its own probes.
    pub health: SocketAddr,
    /// Its webhook listener.
    pub receipts: SocketAddr,
}

impl Place {
    /// Starts the monitor.
    pub fn serve(&self) -> Monitor {
        self.serve_with(&[])
    }

    /// Starts the monitor with these variables in its environment.
    pub fn serve_with(&self, environment: &[(&str, &str)]) -> Monitor {
        let log = fs::OpenOptions::new().create(true).append(true).open(&self.log).expect("the log opens");
        let child = Command::new(PROGRAM)
            .arg("serve")
            .arg("--config")
            .arg(&self.config)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log opens twice"))
            .stderr(log)
            .spawn()
            .expect("the monitor starts");
        Monitor { child, place: self.clone() }
    }

    /// Runs a command of the program on this configuration.
    pub fn command(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--config").arg(&self.config).stdin(Stdio::null());
        command.output().expect("the program runs")
    }

    /// A scrape, if the monitor answers.
    pub fn scrape(&self) -> Option<Scrape> {
        let page = get(self.metrics, "/metrics")?;
        Some(
            Scrape::read(&page.1)
                .unwrap_or_else(|fault| panic!("the page can't be read: {fault}\n{}", page.1)),
        )
    }

    /// The status of a probe, if it answers.
    pub fn probe(&self, path: &str) -> Option<u16> {
        get(self.health, path).map(|(status, _)| status)
    }

    /// The value of a series of the first route, or of what has no route.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.scrape()?.value(name, labels)
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    use std::io::Read as _;
    let mut stream = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.into()
    };
    Some((status, body))
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// A monitor that runs. It is killed when this is dropped.
pub struct Monitor {
    child: Child,
    /// Where it is.
    pub place: Place,
}

impl Monitor {
    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Asks it to stop, and waits; gives its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status.code();
            }
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "it did not stop in 30s; log:\n{}",
                self.place.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_some()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process, by its id.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(status.is_ok_and(|s| s.success()), "kill -{name} {process}");
}

/// Waits until something holds, at most so many seconds, and says the last state seen when it never does.
pub fn until(what: &str, seconds: u64, mut state: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    loop {
        match state() {
            Ok(()) => return,
            Err(seen) => assert!(
                began.elapsed() < Duration::from_secs(seconds),
                "waited {seconds}s for {what}; last seen: {seen}"
            ),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A look at a path that is read as SQLite by the tests themselves.
pub fn sqlite(path: &Path) -> String {
    format!("sqlite://{}?mode=ro", path.display())
}
