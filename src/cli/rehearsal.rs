//! What the guard would stop: the request of each route is made and looked through as before a submission, and never sent.

use crate::{
    acceptance::{
        Rehearsal, Request, Stop,
        guard::{Guard, GuardReason},
    },
    config::{
        Config, Fault, Loaded, Route,
        acceptance::{Acceptance, HttpAcceptance},
        receipt::Receiver,
    },
    domain::{
        canary::{CanaryKind, Plan},
        route::{CanaryId, IdempotencyKey, Location},
        traceparent::traceparent,
    },
    receipt::{public_url::PublicUrl, token::TokenSigner},
};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Where something stands that would be stopped: its keys, and the line inside a template of several lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Culprit {
    keys: Vec<String>,
    line: Option<usize>,
    what: String,
}

/// Every fault for which the guard would stop the canaries of a route, each once, with its place. They show no value.
pub fn faults(loaded: &Loaded, now: DateTime<Utc>) -> Vec<Fault> {
    let config = &loaded.config;
    let mut culprits: BTreeMap<Culprit, BTreeSet<String>> = BTreeMap::new();
    let mut rehearsals = BTreeMap::new();
    for (name, acceptance) in &config.acceptances {
        match Rehearsal::new(acceptance) {
            Ok(rehearsal) => {
                rehearsals.insert(name.as_str(), (rehearsal, acceptance));
            }
            Err(error) => {
                let keys = ["acceptances", name, "http"].map(str::to_owned).to_vec();
                culprits.entry(Culprit { keys, line: None, what: error.to_string() }).or_default();
            }
        }
    }
    for (number, route) in config.routes.iter().enumerate() {
        for (kind, name) in ways(route) {
            let Some((rehearsal, Acceptance::Http(http))) = rehearsals.get(name) else { continue };
            for stop in rehearsal.stops(&request(config, route, kind, now), now) {
                let culprit = culprit(&stop, (name, http), (number, route));
                culprits.entry(culprit).or_default().insert(route.full_name().to_string());
            }
        }
    }
    culprits.into_iter().map(|(culprit, routes)| fault(loaded, culprit, &routes)).collect()
}

/// The acceptances by which canaries of a route are submitted.
fn ways(route: &Route) -> impl Iterator<Item = (CanaryKind, &str)> {
    let controls = [
        (CanaryKind::ControlSink, &route.controls.sink),
        (CanaryKind::ControlProvider, &route.controls.provider),
    ];
    let controls =
        controls.into_iter().filter_map(|(kind, arm)| Some((kind, arm.as_ref()?.acceptance.as_str())));
    std::iter::once((CanaryKind::Scheduled, route.acceptance.as_str())).chain(controls)
}

/// A request like those that will be made for the route.
fn request(config: &Config, route: &Route, kind: CanaryKind, now: DateTime<Utc>) -> Request {
    let canary_id = CanaryId(Uuid::now_v7());
    let (name, location) = (route.full_name(), Location::from_text(config.location.clone()));
    let plan = Plan {
        canary_id,
        key: IdempotencyKey::derive(&name, &location, kind, now),
        route: name.clone(),
        location,
        kind,
        slot: now,
        planned_at: now,
        deadline: route.deadline.delta(),
        settle: route.settle.delta(),
        follow_for: route.follow_for.delta(),
        ledger_overlap: chrono::TimeDelta::zero(),
        expected_end: route.expected_end,
        has_ledger: route.ledger.is_some(),
        has_sink: route.receipt.is_some(),
        traceparent: traceparent(canary_id),
        parent: None,
    };
    let webhook = route.receipt.as_ref().and_then(|receipt| config.receivers.get(&receipt.receiver));
    let issued = webhook.and_then(|Receiver::Webhook(webhook)| {
        let signer = TokenSigner::new(&webhook.token_secrets).ok()?;
        let token = signer.issue(canary_id, &name, now + route.follow_for.delta());
        let url = PublicUrl::parse(&webhook.public_url).ok()?.with(&token);
        Some((token, url))
    });
    let (token, callback_url) = issued.unzip();
    Request {
        plan,
        recipient: route.recipients.first().cloned().unwrap_or_default(),
        allowed: route.recipients.clone(),
        token: token.unwrap_or_default(),
        callback_url,
        variables: route.variables.clone(),
    }
}

/// What is to be changed so that this stop does not come: the template where it holds the address itself, else the variable that does.
fn culprit(stop: &Stop, (name, http): (&str, &HttpAcceptance), (number, route): (usize, &Route)) -> Culprit {
    let owned = |keys: Vec<&str>| keys.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let what = match stop.reason {
        GuardReason::MailAddress => "a mail address that is not among the route's `recipients`".to_owned(),
        GuardReason::PhoneNumber => {
            "what looks like a phone number that is not among the route's `recipients`".to_owned()
        }
        GuardReason::Template => format!("`{}`: {}", stop.key, stop.fault),
    };
    let number = number.to_string();
    if stop.key == "recipients" {
        return Culprit { keys: owned(vec!["routes", &number, "recipients"]), line: None, what };
    }
    let (keys, source) = source(stop, http);
    let guard = Guard::new(&route.recipients, []);
    let names_somebody = |text: &str| matches!(guard.text(text), Err(reason) if reason == stop.reason);
    if stop.reason != GuardReason::Template && !names_somebody(source) {
        let variable = route.variables.iter().find(|(_, value)| names_somebody(value));
        if let Some((variable, _)) = variable {
            return Culprit { keys: owned(vec!["routes", &number, "variables", variable]), line: None, what };
        }
    }
    let line = source.lines().position(names_somebody).filter(|_| source.lines().nth(1).is_some());
    Culprit {
        keys: owned([vec!["acceptances", name, "http"], keys].concat()),
        line: line.map(|line| line + 1),
        what,
    }
}

/// The keys below `http` of what was stopped, and what is written there. Headers are known by their names in small letters.
fn source<'a>(stop: &Stop, http: &'a HttpAcceptance) -> (Vec<&'a str>, &'a str) {
    let Some(header) = stop.key.strip_prefix("headers.") else {
        return match stop.key.as_str() {
            "url" => (vec!["url"], &http.url),
            "body" => (vec!["body"], &http.body),
            _ => (Vec::new(), ""),
        };
    };
    let open = http.headers.iter().map(|(name, value)| ("headers", name.as_str(), value.as_str()));
    let secret =
        http.secret_headers.iter().map(|(name, value)| ("secret_headers", name.as_str(), value.expose()));
    let named = open.chain(secret).find(|(_, name, _)| name.eq_ignore_ascii_case(header));
    named.map_or((Vec::new(), ""), |(section, name, value)| (vec![section, name], value))
}

fn fault(loaded: &Loaded, culprit: Culprit, routes: &BTreeSet<String>) -> Fault {
    let keys: Vec<&str> = culprit.keys.iter().map(String::as_str).collect();
    let Some(first) = routes.first() else {
        return loaded.places.fault(&keys, culprit.what, "see docs/acceptance.md".to_owned());
    };
    let others = match routes.len() {
        1 => String::new(),
        more => format!(" and of {} more", more - 1),
    };
    let line =
        culprit.line.map_or_else(String::new, |line| format!(", on line {line} of what is written there"));
    let message = format!(
        "the guard would stop each canary of `{first}`{others} before it left: here is {}{line}",
        culprit.what
    );
    let hint = "write `{{ recipient }}` where the recipient belongs, or a variable of the route; an address of your own that \
                must be in it goes into the route's `recipients`, after the first one (docs/acceptance.md, \"The guard\")";
    loaded.places.fault(&keys, message, hint.to_owned())
}
