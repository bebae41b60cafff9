//! Those who are told: four webhooks that note each notification of the Alertmanager with its time.

use axum::{
    Json, Router,
    extract::{Path, State},
    routing::post,
};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// The names under which they are configured.
pub const PAGE: &str = "page";
/// Takes tickets.
pub const TICKET: &str = "ticket";
/// The monitor's owners.
pub const OWNERS: &str = "owners";
/// The dead man's switch.
pub const DEAD_MAN: &str = "dead-man";

/// Labels that say what an alert is about, beyond its name.
const ABOUT: [&str; 6] = ["route", "kind", "blind", "location", "ledger", "observer"];

/// One time that one alert fired, as its receiver learnt of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// The receiver.
    pub receiver: String,
    /// The alert's name.
    pub alert: String,
    /// What it is about: a route, or what is blind.
    pub about: String,
    /// When the receiver was told that it fires.
    pub came: DateTime<Utc>,
    /// When the receiver was told that it is over.
    pub went: Option<DateTime<Utc>>,
}

type Noted = Arc<Mutex<Vec<(DateTime<Utc>, String, Value)>>>;

/// The receivers.
pub struct Receivers {
    /// Where they listen; a receiver is at the path of its name.
    pub address: SocketAddr,
    noted: Noted,
}

async fn note(State(noted): State<Noted>, Path(receiver): Path<String>, Json(body): Json<Value>) {
    noted.lock().unwrap_or_else(PoisonError::into_inner).push((Utc::now(), receiver, body));
}

impl Receivers {
    /// Starts to listen.
    pub async fn start() -> Self {
        let noted = Noted::default();
        let router = Router::new().route("/{receiver}", post(note)).with_state(Arc::clone(&noted));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, noted }
    }

    /// When this receiver was told anything.
    pub fn told(&self, receiver: &str) -> Vec<DateTime<Utc>> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.iter().filter(|(_, to, _)| to == receiver).map(|(at, ..)| *at).collect()
    }

    /// What came, in the order in which it came. A notification that repeats what was known is none of its own.
    pub fn episodes(&self) -> Vec<Episode> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: BTreeMap<(String, String, String), usize> = BTreeMap::new();
        let mut episodes: Vec<Episode> = Vec::new();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for (at, receiver, body) in noted.iter().filter(|(_, to, _)| to != DEAD_MAN) {
            for alert in body["alerts"].as_array().into_iter().flatten() {
                let key = (receiver.clone(), text(&alert["fingerprint"]), text(&alert["startsAt"]));
                let is_over = alert["status"] == "resolved";
                let labels = &alert["labels"];
                // A group that is told anew has all that is over in it, also what nobody was ever told of.
                if is_over && !known.contains_key(&key) {
                    continue;
                }
                let place = *known.entry(key).or_insert_with(|| {
                    let about: Vec<&str> = ABOUT
                        .iter()
                        .filter_map(|name| labels[*name].as_str())
                        .filter(|v| *v != "all")
                        .collect();
                    episodes.push(Episode {
                        receiver: receiver.clone(),
                        alert: text(&labels["alertname"]),
                        about: about.join(" "),
                        came: *at,
                        went: None,
                    });
                    episodes.len() - 1
                });
                if is_over {
                    episodes[place].went.get_or_insert(*at);
                }
            }
        }
        episodes
    }
}
