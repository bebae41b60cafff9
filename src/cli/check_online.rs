//! `check --online`: connects to everything that a configuration names, and sends nothing.

use super::{
    check::{CheckResult, Status},
    wiring,
};
use crate::{
    clock::Skew,
    config::{
        Config, Loaded,
        receipt::{Receiver, WebhookReceiver},
    },
    ledger,
    monitor::{counters::Counters, store_watch::MOST_SKEW},
    receipt::reach::{Connected, ProbeError, reach},
    store,
};
use chrono::{SecondsFormat, TimeDelta};
use std::{sync::Arc, time::Duration};
use tokio::net::TcpListener;

/// Clocks that are further apart than this raise `ClockSkew`: what starts so starts with a ticket.
const ALERTED_SKEW: TimeDelta = TimeDelta::seconds(60);

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
            Ok(adapter) => {
                let findings = adapter.check().await;
                results
                    .extend(findings.into_iter().map(|finding| super::ledger::check_result(name, finding)));
            }
            Err(error) => results.push(result(format!("ledger {name}"), Err(error.to_string()), "")),
        }
    }
    match wiring::adapters(config, &Arc::<Counters>::default()) {
        Ok(adapters) => {
            for (name, acceptance) in &adapters.acceptances {
                let hint = "renew it: from then on no canary could be submitted";
                let probed = acceptance.probe().await;
                results.push(connected(format!("acceptance {name}"), probed, hint));
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
        results.push(public_address(name, webhook, is_free).await);
    }
    results
}

async fn store(config: &Config) -> CheckResult {
    let looked = match store::look_at(&config.store).await {
        Ok(store::Standing::Current) => None,
        Ok(store::Standing::Empty) => {
            Some("can be reached; it is empty, and `serve` makes what it needs: check again then, for its clock too".to_owned())
        }
        Ok(store::Standing::Older { step, known }) => Some(format!(
            "can be reached; it is at step {step}, and `serve` of this release brings it to {known}: older releases do not start on it then"
        )),
        Err(error) => return result("store".into(), Err(error.to_string()), ""),
    };
    if let Some(detail) = looked {
        return result("store".into(), Ok(detail), "");
    }
    let tried = async {
        let store = store::open(&config.store).await.map_err(|error| error.to_string())?;
        let look = store.look().await.map_err(|error| error.to_string())?;
        store.ping().await.map_err(|error| error.to_string())?;
        Ok(look.skew)
    };
    match tried.await {
        Ok(skew) => can_be_written(skew),
        Err(reason) => result("store".into(), Err(reason), ""),
    }
}

/// What is said of a store that can be written, by how far its clock is ahead of this machine's.
fn can_be_written(skew: Option<Skew>) -> CheckResult {
    let detail = |skew: Skew| {
        let (ahead, error) = (skew.ahead.num_milliseconds(), skew.error.num_milliseconds());
        format!("can be written; its clock less this machine's: {ahead} ms, give or take {error} ms")
    };
    let (is_off, is_far_off) = match skew {
        Some(skew) => (skew.exceeds(MOST_SKEW), skew.exceeds(ALERTED_SKEW)),
        None => (false, false),
    };
    CheckResult {
        name: "store".into(),
        status: match (is_off, is_far_off) {
            (_, true) => Status::Failed,
            (true, _) => Status::Warn,
            _ => Status::Ok,
        },
        detail: skew.map_or_else(|| "can be written".to_owned(), detail),
        hint: is_off.then(|| {
            "a monitor goes by the store's clock, so that nothing is judged wrong between its processes; set the wrong one right all \
             the same: slots, pauses and times on /metrics are as wrong as the store's clock is"
                .to_owned()
        }),
    }
}

/// What came of a connection on which nothing was sent. The hint is for a certificate that ends soon; an error has its own.
fn connected(name: String, probed: Result<Connected, ProbeError>, renew: &str) -> CheckResult {
    match probed {
        Ok(Connected { ends_soon: None }) => result(name, Ok("connects; nothing was sent".to_owned()), ""),
        Ok(Connected { ends_soon: Some(at) }) => CheckResult {
            name,
            status: Status::Warn,
            detail: format!(
                "connects; its certificate ends on {}",
                at.to_rfc3339_opts(SecondsFormat::Secs, true)
            ),
            hint: Some(renew.to_owned()),
        },
        Err(error) => result(name, Err(error.to_string()), ""),
    }
}

/// Whether the public address takes connections as the service and our messages to ourselves need it. While no monitor listens
/// an ingress may rightly refuse; its name and its certificate have to be good all the same.
async fn public_address(name: &str, webhook: &WebhookReceiver, is_free: bool) -> CheckResult {
    let probed = reach(webhook, LIMIT).await;
    let is_unreached = matches!(probed, Err(ProbeError::Unreached(_)));
    let has_no_name = matches!(probed, Err(ProbeError::NoName(_)));
    let hint = "renew it: from then on no webhook could come, and messages to ourselves neither";
    let checked = connected(format!("receiver {name}: public address"), probed, hint);
    match (is_unreached, is_free) {
        (true, true) => CheckResult {
            status: Status::Warn,
            hint: Some("no monitor listens yet; check again while `serve` runs".into()),
            ..checked
        },
        (true, false) => CheckResult {
            hint: Some(
                "the service must reach this address: look at DNS, the ingress and the firewall".into(),
            ),
            ..checked
        },
        (false, _) if has_no_name => CheckResult {
            hint: Some(
                "give the name an address in the DNS that this place asks, or correct `public_url`: `serve` does not mend it, and \
                 without the name no webhook comes and no message to ourselves"
                    .into(),
            ),
            ..checked
        },
        (false, _) => checked,
    }
}
