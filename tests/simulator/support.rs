//! What the simulator's tests share: a sink that remembers webhooks, a client, a reader of the ledger, and a wait.

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use chrono::{DateTime, Utc};
use delivery_canary::simulator::{LedgerOptions, ReaderAddress, Simulator, SimulatorOptions};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use std::{
    fmt::Debug,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

/// Asks again and again until the answer is there; panics with the last state seen.
pub async fn until<T, S: Debug, F: Future<Output = Result<T, S>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(seen) => return seen,
            Err(state) if began.elapsed() > Duration::from_secs(30) => {
                panic!("{what} did not come; last seen: {state:?}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// A webhook that arrived.
#[derive(Clone, Debug)]
pub struct Arrived {
    pub headers: HeaderMap,
    pub raw: Bytes,
    pub body: Value,
}

/// A sink that remembers what arrives.
#[derive(Clone, Default)]
pub struct Sink {
    arrived: Arc<Mutex<Vec<Arrived>>>,
    status: Arc<AtomicU16>,
    pub url: String,
}

impl Sink {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let sink = Self { url, ..Self::default() };
        sink.answer_with(200);
        let router = Router::new().route("/hook", post(Self::receive)).with_state(sink.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        sink
    }

    /// What the sink answers from now on.
    pub fn answer_with(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    async fn receive(State(sink): State<Self>, headers: HeaderMap, raw: Bytes) -> StatusCode {
        let body = serde_json::from_slice(&raw).unwrap();
        sink.arrived.lock().unwrap().push(Arrived { headers, raw, body });
        StatusCode::from_u16(sink.status.load(Ordering::SeqCst)).unwrap()
    }

    pub fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    /// Waits until so many webhooks are there.
    pub async fn has(&self, number: usize) -> Vec<Arrived> {
        until(&format!("webhook {number}"), || async {
            let arrived = self.arrived();
            if arrived.len() >= number { Ok(arrived) } else { Err(arrived.len()) }
        })
        .await
    }
}

/// A simulator, a sink and a client.
pub struct World {
    pub simulator: Simulator,
    pub sink: Sink,
    pub client: Client,
    _folder: tempfile::TempDir,
}

/// Options that make a test quick: short waits.
pub fn quick(ledger: LedgerOptions) -> SimulatorOptions {
    let mut options = SimulatorOptions::new(ledger);
    options.backoff_base = Duration::from_millis(20);
    options.backoff_most = Duration::from_millis(100);
    options.provider_timeout = Duration::from_millis(700);
    options.callback_timeout = Duration::from_millis(500);
    options.most_attempts = 1_000;
    options
}

pub fn client() -> Client {
    // Another test of this process may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().timeout(Duration::from_secs(20)).pool_max_idle_per_host(0).build().unwrap()
}

impl World {
    /// On SQLite, with these changes to the options.
    pub async fn with(change: impl FnOnce(&mut SimulatorOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = quick(LedgerOptions::Sqlite(folder.path().join("ledger.db")));
        change(&mut options);
        let simulator = Simulator::start(options).await.unwrap();
        Self { simulator, sink: Sink::start().await, client: client(), _folder: folder }
    }

    /// Of a simulator that runs already.
    pub fn of(simulator: Simulator, sink: Sink) -> Self {
        Self { simulator, sink, client: client(), _folder: tempfile::tempdir().unwrap() }
    }

    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub fn body(&self) -> Value {
        json!({
            "recipient": "canary@canaries.example.test",
            "template": "receipt",
            "amount": "12.34 EUR",
            "channel": "webhook",
            "route": "receipts",
            "callback_url": self.sink.url,
            "metadata": { "canary_id": "c-1", "token": "t-1" },
        })
    }

    pub async fn send(&self, key: &str, body: &Value) -> reqwest::Result<Response> {
        let url = format!("http://{}/v1/notifications", self.simulator.addresses().acceptance);
        self.client
            .post(url)
            .header("Idempotency-Key", key)
            .header("traceparent", TRACE)
            .json(body)
            .send()
            .await
    }

    /// Submits, and gives status and JSON.
    pub async fn submit(&self, key: &str) -> (u16, Value) {
        let answer = self.send(key, &self.body()).await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Submits, and gives the id of the new notification.
    pub async fn accepted(&self, key: &str) -> String {
        let (status, answer) = self.submit(key).await;
        assert_eq!(status, 201, "{answer}");
        answer["notification_id"].as_str().unwrap().to_owned()
    }

    pub async fn rows(&self, id: &str) -> Vec<Row> {
        rows(&self.simulator.ledger_reader(), id).await.unwrap()
    }

    /// Waits until the attempts of a notification are as asked.
    pub async fn ledger_shows(&self, id: &str, what: &str, fits: impl Fn(&[Row]) -> bool) -> Vec<Row> {
        until(what, || async {
            let rows = self.rows(id).await;
            if fits(&rows) { Ok(rows) } else { Err(rows) }
        })
        .await
    }

    pub async fn admin(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let url = format!("http://{}{path}", self.simulator.addresses().admin);
        let mut request = self.client.request(method, url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }
}

pub const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A row of an attempt, joined with its notification; times as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub attempt_number: i64,
    pub outcome: String,
    pub provider_code: String,
    pub started_at: DateTime<Utc>,
    pub accepted_at: DateTime<Utc>,
    pub traceparent: Option<String>,
    pub policy_version: String,
    pub is_settled: bool,
    pub is_canary: bool,
}

type Columns = (i64, String, String, DateTime<Utc>, DateTime<Utc>, Option<String>, String, bool, bool);

impl Row {
    fn of(columns: Columns) -> Self {
        let (attempt_number, outcome, provider_code, started_at, accepted_at, traceparent, ..) = columns;
        let (.., policy_version, is_settled, is_canary) = columns;
        Self {
            attempt_number,
            outcome,
            provider_code,
            started_at,
            accepted_at,
            traceparent,
            policy_version,
            is_settled,
            is_canary,
        }
    }
}

/// Reads the attempts of a notification as any reader of the ledger would: by its address, read-only.
pub async fn rows(address: &ReaderAddress, id: &str) -> Result<Vec<Row>, sqlx::Error> {
    match address {
        ReaderAddress::Sqlite(path) => {
            let options = SqliteConnectOptions::new().filename(path).read_only(true);
            let options = options.busy_timeout(Duration::from_millis(500));
            let mut connection = SqliteConnection::connect_with(&options).await?;
            let rows = sqlx::query_as::<_, Columns>(
                "select attempt_number, outcome, provider_code, started_at, accepted_at, traceparent, a.policy_version,
                    settled_at is not null as is_settled, is_canary
                 from notifications join delivery_attempts a using (notification_id)
                 where notification_id = ? order by attempt_number",
            );
            Ok(rows.bind(id).fetch_all(&mut connection).await?.into_iter().map(Row::of).collect())
        }
        ReaderAddress::Postgres(url) => {
            let mut connection = PgConnection::connect(url).await?;
            let rows = sqlx::query_as::<_, Columns>(
                "select attempt_number::bigint, outcome, provider_code, started_at, accepted_at, traceparent,
                    a.policy_version, settled_at is not null as is_settled, is_canary
                 from notifications join delivery_attempts a using (notification_id)
                 where notification_id = $1::uuid order by attempt_number",
            );
            Ok(rows.bind(id).fetch_all(&mut connection).await?.into_iter().map(Row::of).collect())
        }
    }
}

pub fn outcomes(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.outcome.as_str()).collect()
}
