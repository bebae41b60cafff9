//! A receiver that runs, a keeper in memory, and a plain HTTP client that shows all it gets.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::domain::watch::Way;
use delivery_canary::{
    config::receipt::{RouteReceipt, WebhookReceiver as Settings},
    domain::{
        evidence::ArrivalRefusal,
        route::{CanaryId, RouteName},
    },
    receipt::{
        Admission, Arrival, Keeper, rules::RouteRules, stats::ArrivalResult, webhook::WebhookReceiver,
    },
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub const NAME: &str = "sink";
pub const SECRET: &str = "a secret of the tests, long enough";
/// The limit of all waits. Only a failing test reaches it.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Keeps in memory. What is not planned is unknown.
#[derive(Default)]
pub struct Memory {
    pub planned: Mutex<HashMap<CanaryId, RouteName>>,
    pub arrivals: Mutex<Vec<Arrival>>,
    pub proofs: Mutex<Vec<(String, Way, DateTime<Utc>)>>,
    pub refused: Mutex<Vec<(CanaryId, ArrivalRefusal)>>,
    /// Arrivals that were begun to be written down.
    pub begun: AtomicUsize,
    /// While there is one, each arrival takes a permit of it before it is written down.
    pub gate: Mutex<Option<Arc<Semaphore>>>,
}

#[async_trait]
impl Keeper for Memory {
    async fn arrived(&self, arrival: Arrival) -> Admission {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let gate = self.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        if self.planned.lock().unwrap().get(&arrival.canary_id) != Some(&arrival.route) {
            return Admission::UnknownCanary;
        }
        let mut arrivals = self.arrivals.lock().unwrap();
        let again = arrivals.iter().any(|a| a.canary_id == arrival.canary_id);
        arrivals.push(arrival);
        if again { Admission::Duplicate } else { Admission::Recorded }
    }

    fn refused(&self, canary_id: CanaryId, _at: DateTime<Utc>, reason: ArrivalRefusal) {
        self.refused.lock().unwrap().push((canary_id, reason));
    }

    async fn proved(&self, receiver: &str, way: Way, at: DateTime<Utc>) {
        self.proofs.lock().unwrap().push((receiver.to_owned(), way, at));
    }
}

/// Settings of a receiver on a free port; `more` is laid over them.
pub fn settings(more: Value) -> Settings {
    let mut all = json!({
        "listen": "127.0.0.1:0",
        "public_url": "http://127.0.0.1:1/hooks",
        "token_secrets": [SECRET],
    });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

pub fn route(name: &str) -> RouteName {
    RouteName::from_text(format!("webhook/{name}"))
}

/// The rules of a route, of its configuration.
pub fn rules(name: &str, receipt: Value) -> RouteRules {
    let mut all = json!({ "receiver": NAME });
    all.as_object_mut().unwrap().extend(receipt.as_object().unwrap().clone());
    let receipt: RouteReceipt = serde_json::from_value(all).unwrap();
    RouteRules::compile(route(name), &receipt).unwrap()
}

/// A receiver that runs until it is stopped or dropped.
pub struct Running {
    pub receiver: Arc<WebhookReceiver>,
    pub keeper: Arc<Memory>,
    pub cancel: CancellationToken,
    pub task: JoinHandle<std::io::Result<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Running {
    pub fn start(settings: &Settings, routes: Vec<RouteRules>) -> Self {
        Self::of(WebhookReceiver::bind(NAME, settings, routes).unwrap())
    }

    pub fn of(receiver: WebhookReceiver) -> Self {
        let (receiver, keeper, cancel) =
            (Arc::new(receiver), Arc::new(Memory::default()), CancellationToken::new());
        let (running, kept, until) = (Arc::clone(&receiver), Arc::clone(&keeper), cancel.clone());
        let task = tokio::spawn(async move { running.run(kept, until).await });
        Self { receiver, keeper, cancel, task }
    }

    /// A canary that is planned, with its token.
    pub fn plan(&self, name: &str) -> (CanaryId, String) {
        let id = CanaryId(Uuid::now_v7());
        self.keeper.planned.lock().unwrap().insert(id, route(name));
        (id, self.receiver.issue(id, &route(name), Utc::now() + TimeDelta::hours(1)))
    }

    pub fn addr(&self) -> SocketAddr {
        self.receiver.local_addr()
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.keeper.arrivals.lock().unwrap().clone()
    }

    /// Posts and returns the status and the body of the answer.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        send(self.addr(), "POST", path, headers, body).await
    }

    /// Waits until the receiver has counted so many of a result.
    pub async fn counted(&self, result: ArrivalResult, at_least: u64) {
        let stats = self.receiver.stats();
        eventually(|| {
            let all: Vec<_> = stats.all().filter(|(_, n)| *n > 0).map(|(r, n)| (r.word(), n)).collect();
            (stats.of(result) >= at_least).then_some(()).ok_or(format!("{all:?}"))
        })
        .await;
    }
}

/// Looks again and again until it finds something; after the limit it says what it last saw.
pub async fn eventually<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    let waiting = async {
        loop {
            match look() {
                Ok(found) => return found,
                Err(seen) => last = seen,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(LIMIT, waiting).await {
        Ok(found) => found,
        Err(_) => panic!("not within {LIMIT:?}; last seen: {last}"),
    }
}

/// The bytes of a request.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: sink\r\n");
    for (name, value) in headers {
        bytes += &format!("{name}: {value}\r\n");
    }
    bytes += &format!("content-length: {}\r\n\r\n", body.len());
    [bytes.as_bytes(), body].concat()
}

/// Sends one request and reads its answer to the end.
pub async fn send(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, String) {
    let answer = exchange(addr, &request(method, path, headers, body)).await;
    parse(&answer).unwrap_or_else(|| panic!("no answer, but {answer:?}"))
}

/// Writes these bytes and reads until the other side closes.
pub async fn exchange(addr: SocketAddr, bytes: &[u8]) -> String {
    let talk = async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        read_all(&mut stream).await
    };
    tokio::time::timeout(LIMIT, talk).await.expect("an answer within the limit")
}

/// All that comes until the other side closes, or breaks off.
pub async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut some = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut some).await {
        answer.extend_from_slice(&some[..n]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status and the body of an answer.
pub fn parse(answer: &str) -> Option<(u16, String)> {
    let status = answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, body.trim_end().to_owned()))
}
