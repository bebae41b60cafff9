//! The Alertmanager's configuration: its tree, its receivers, and what keeps what quiet.

use super::{Findings, get, items, text, text_of};
use crate::{
    alerts::catalog,
    config::tree::{Content, Node},
};
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of receivers that tell a person.
const KINDS: [&str; 13] = [
    "webhook_configs",
    "email_configs",
    "pagerduty_configs",
    "opsgenie_configs",
    "slack_configs",
    "victorops_configs",
    "pushover_configs",
    "telegram_configs",
    "msteams_configs",
    "discord_configs",
    "webex_configs",
    "wechat_configs",
    "sns_configs",
];

/// What to do about a receiver that isn't in the file.
const WHERE_IT_IS: &str = "write it under `receivers`; if this file is a part, such as that of `alerts generate`, merge first, and give the whole";

pub(super) fn check(root: &Node, target_hosts: &BTreeSet<String>, findings: &mut Findings<'_>) {
    let Some(tree) = get(root, "route") else { return };
    let receivers = get(root, "receivers");
    let known: BTreeMap<&str, &Node> = receivers
        .into_iter()
        .flat_map(items)
        .filter_map(|receiver| Some((text_of(receiver, "name")?, receiver)))
        .collect();
    match text_of(tree, "receiver") {
        None => findings.add(tree.mark, "the root has no receiver", "let it be the one that takes tickets"),
        Some(name) => match known.get(name) {
            Some(receiver) if tells_nobody(receiver) => findings.add(
                receiver.mark,
                format!("the root receiver `{name}` tells nobody"),
                "whatever no route foresees must become a ticket",
            ),
            None if receivers.is_some() => {
                findings.add(tree.mark, format!("there is no receiver `{name}`"), WHERE_IT_IS);
            }
            _ => {}
        },
    }
    branch(tree, &known, receivers.is_some(), Above::default(), findings);
    for (name, receiver) in &known {
        kinds(name, receiver, target_hosts, findings);
    }
    for rule in get(root, "inhibit_rules").into_iter().flat_map(items) {
        inhibition(rule, findings);
    }
}

fn tells_nobody(receiver: &Node) -> bool {
    match &receiver.content {
        Content::Map(entries) => {
            !entries.iter().any(|(key, value)| key.text.ends_with("_configs") && !items(value).is_empty())
        }
        _ => true,
    }
}

/// The values that these matchers ask of a label, where they ask for one exactly.
fn asked(node: &Node, keys: [&str; 2], label: &str) -> Vec<String> {
    let listed = get(node, keys[0]).into_iter().flat_map(items).filter_map(text);
    let plain = listed.map(|matcher| matcher.split_whitespace().collect::<String>().replace(['"', '\''], ""));
    let value = |matcher: String| {
        let (name, value) = matcher.split_once('=')?;
        (name == label && !value.starts_with('~')).then(|| value.to_owned())
    };
    let mapped = get(node, keys[1]).and_then(|map| text_of(map, label)).map(str::to_owned);
    plain.filter_map(value).chain(mapped).collect()
}

/// Whether this list of matchers lets tickets through alone.
fn is_of_tickets(node: &Node, keys: [&str; 2]) -> bool {
    asked(node, keys, "severity").iter().any(|value| value == "ticket")
}

/// Whether these matchers leave none of our alerts that tell somebody. What they ask by a pattern may be ours.
fn is_of_others(node: &Node, keys: [&str; 2]) -> bool {
    let ours = |name: &String| catalog::ALL.iter().any(|entry| entry.name == name);
    let names = asked(node, keys, "alertname");
    let severities = asked(node, keys, "severity");
    names.iter().any(|name| !ours(name))
        || (names.is_empty()
            && severities.iter().any(|severity| !["page", "ticket"].contains(&severity.as_str())))
}

/// What is known of a route by those above it.
#[derive(Clone, Copy, Default)]
struct Above {
    /// Only tickets come here.
    tickets_alone: bool,
    /// None of ours comes here.
    of_others: bool,
    /// There is one: it isn't the root.
    is_there: bool,
}

/// A route and all below it. Times in which nothing is sent are for tickets alone.
fn branch(
    node: &Node,
    known: &BTreeMap<&str, &Node>,
    is_whole: bool,
    above: Above,
    findings: &mut Findings<'_>,
) {
    let keys = ["matchers", "match"];
    let here = Above {
        tickets_alone: above.tickets_alone || is_of_tickets(node, keys),
        of_others: above.of_others || is_of_others(node, keys),
        is_there: true,
    };
    for key in ["mute_time_intervals", "active_time_intervals"] {
        if let Some(times) = get(node, key)
            && !here.tickets_alone
        {
            findings.add(
                times.mark,
                format!("`{key}` can keep pages quiet here"),
                "put it on a route with the matcher `severity=\"ticket\"`",
            );
        }
    }
    if let Some(receiver) = get(node, "receiver")
        && let Some(name) = text(receiver)
    {
        match known.get(name) {
            None if is_whole => {
                let message = format!("there is no receiver `{name}`");
                findings.add(receiver.mark, message, WHERE_IT_IS);
            }
            Some(kept) if above.is_there && tells_nobody(kept) && !here.of_others => findings.add(
                receiver.mark,
                format!("the receiver `{name}` tells nobody, and pages or tickets may come here"),
                "name one that tells a person, or let only alerts of others come here",
            ),
            _ => {}
        }
    }
    for route in get(node, "routes").into_iter().flat_map(items) {
        branch(route, known, is_whole, here, findings);
    }
}

fn kinds(name: &str, receiver: &Node, target_hosts: &BTreeSet<String>, findings: &mut Findings<'_>) {
    let Content::Map(entries) = &receiver.content else { return };
    for (key, configs) in entries.iter().filter(|(key, _)| key.text != "name") {
        if !KINDS.contains(&key.text.as_str()) {
            findings.add(
                key.mark,
                format!("the receiver `{name}` has `{}`, which isn't known to tell a person", key.text),
                "take one of the usual kinds",
            );
        }
        for config in items(configs) {
            addresses(name, config, target_hosts, findings);
        }
    }
}

fn addresses(name: &str, node: &Node, target_hosts: &BTreeSet<String>, findings: &mut Findings<'_>) {
    match &node.content {
        Content::Scalar(scalar) => {
            let Ok(url) = reqwest::Url::parse(&scalar.text) else { return };
            let Some(host) = url.host_str() else { return };
            let is_here = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
            if target_hosts.contains(host) {
                findings.add(
                    node.mark,
                    format!("the receiver `{name}` goes through `{host}`, a host of the monitored service"),
                    "the alert path must work while that service doesn't",
                );
            }
            if url.scheme() == "http" && !is_here {
                findings.add(
                    node.mark,
                    format!("the receiver `{name}` sends in the clear"),
                    "write an `https` address",
                );
            }
            if host.ends_with(".svc") || host.ends_with(".cluster.local") {
                findings.add(
                    node.mark,
                    format!("the receiver `{name}` is inside of the cluster: `{host}`"),
                    "a person is told by something that stands outside of what fails",
                );
            }
        }
        Content::List(items) => items.iter().for_each(|item| addresses(name, item, target_hosts, findings)),
        Content::Map(entries) => {
            entries.iter().for_each(|(_, value)| addresses(name, value, target_hosts, findings));
        }
    }
}

/// Only tickets may be inhibited, and only by what has something in common with them.
fn inhibition(rule: &Node, findings: &mut Findings<'_>) {
    if !is_of_tickets(rule, ["target_matchers", "target_match"]) {
        findings.add(
            rule.mark,
            "this inhibition can keep a page quiet",
            "give its target the matcher `severity=\"ticket\"`",
        );
    }
    let equal: Vec<&str> = get(rule, "equal").into_iter().flat_map(items).filter_map(text).collect();
    let hint = "write `equal: [service, channel, route]`";
    if equal.is_empty() {
        let message = "this inhibition needs nothing in common: one page would keep all tickets quiet";
        findings.add(rule.mark, message, hint);
    } else if !equal.contains(&"route") && !is_of_others(rule, ["target_matchers", "target_match"]) {
        // A label that is missing on both sides is equal.
        let message = format!(
            "this inhibition needs only `{}` in common, and not the route: one page would keep tickets of others quiet",
            equal.join("`, `")
        );
        findings.add(rule.mark, message, hint);
    }
}
