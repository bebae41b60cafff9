//! `check --online`: connects to everything that a configuration names, and sends nothing.

use super::{
    check::{CheckResult, Status},
    wiring,
};
use crate::{
    config::{Config, Loaded, receipt::Receiver},
    ledger::{self, check::Level},
    monitor::counters::Counters,
    store,
};
use std::{sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};

/// Limit on one connection.
const LIMIT: Duration = Duration::from_secs(5);

fn result(name: String, outcome: Result<String, String>, hint: &str) -> CheckResult {
    let (status, detail) = match outcome {
        Ok(detail) => (Status::Ok, detail),
        Err(detail) => (Status::Failed, detail),
    };
    CheckResult { name, status, detail, hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

/// Everything that a configuration names, each with what was seen of it.
pub async fn run(loaded: &Loaded) -> Vec<CheckResult> {
    let config = &loaded.config;
    let mut results = vec![store(config).await];
    for (name, settings) in &config.ledgers {
        match ledger::open(name, settings) {
            Ok(adapter) => results.extend(adapter.check().await.into_iter().map(|finding| CheckResult {
                name: format!("ledger {name}: {}", finding.name),
                status: match finding.level {
                    Level::Ok => Status::Ok,
                    Level::Warn => Status::Warn,
                    Level::Failed => Status::Failed,
                },
                detail: finding.detail,
                hint: finding.hint,
            })),
            Err(error) => results.push(result(format!("ledger {name}"), Err(error.to_string()), "")),
        }
    }
    match wiring::adapters(config, &Arc::<Counters>::default()) {
        Ok(adapters) => {
            for (name, acceptance) in &adapters.acceptances {
                let probed = acceptance.probe().await.map(|()| "connects; nothing was sent".to_owned());
                results.push(result(format!("acceptance {name}"), probed, ""));
            }
        }
        Err(error) => results.push(result("adapters".into(), Err(format!("{error:#}")), "")),
    }
    for (name, Receiver::Webhook(webhook)) in &config.receivers {
        let listens = TcpListener::bind(webhook.listen).await;
        let is_free = listens.is_ok();
        let hint = "a monitor that runs holds its own port; anything else there must go";
        let held = listens
            .map(|_| format!("{} is free", webhook.listen))
            .map_err(|e| format!("{}: {e}", webhook.listen));
        results.push(CheckResult {
            status: if is_free { Status::Ok } else { Status::Warn },
            ..result(format!("receiver {name}: listen"), held, hint)
        });
        results.push(public_address(name, &webhook.public_url, is_free).await);
    }
    results
}

async fn store(config: &Config) -> CheckResult {
    let tried = async {
        let store = store::open(&config.store).await.map_err(|error| error.to_string())?;
        store.ping().await.map_err(|error| error.to_string())?;
        Ok("can be written".to_owned())
    };
    result("store".into(), tried.await, "")
}

/// Whether the public address takes connections. While no monitor listens, an ingress may rightly refuse.
async fn public_address(name: &str, url: &str, is_free: bool) -> CheckResult {
    let connect = async {
        let url = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
        let host = url.host_str().ok_or("it has no host")?.trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().ok_or("it has no port")?;
        match tokio::time::timeout(LIMIT, TcpStream::connect((host.as_str(), port))).await {
            Ok(Ok(_)) => Ok(format!("{host}:{port} takes connections")),
            Ok(Err(error)) => Err(format!("{host}:{port}: {error}")),
            Err(_) => Err(format!("{host}:{port}: no connection within 5s")),
        }
    };
    let outcome: Result<String, String> = connect.await;
    let refused_while_down = outcome.is_err() && is_free;
    let hint = if refused_while_down {
        "no monitor listens yet; check again while `serve` runs"
    } else {
        "the service must reach this address: look at DNS, the ingress and the firewall"
    };
    let checked = result(format!("receiver {name}: public address"), outcome, hint);
    if refused_while_down { CheckResult { status: Status::Warn, ..checked } } else { checked }
}
