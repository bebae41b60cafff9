//! The Alertmanager's configuration: its tree, its receivers, and what keeps what quiet.

use super::{Findings, get, items, text, text_of};
use crate::config::tree::{Content, Node};
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
    branch(tree, &known, receivers.is_some(), false, findings);
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

/// Whether this list of matchers lets tickets through alone.
fn is_of_tickets(node: &Node, keys: [&str; 2]) -> bool {
    let listed = get(node, keys[0]).into_iter().flat_map(items).filter_map(text);
    let mut plain = listed.map(|matcher| matcher.split_whitespace().collect::<String>().replace('"', ""));
    let mapped = get(node, keys[1]).and_then(|map| text_of(map, "severity"));
    plain.any(|matcher| matcher == "severity=ticket") || mapped == Some("ticket")
}

/// A route and all below it. Times in which nothing is sent are for tickets alone.
fn branch(
    node: &Node,
    known: &BTreeMap<&str, &Node>,
    is_whole: bool,
    tickets_alone: bool,
    findings: &mut Findings<'_>,
) {
    let tickets_alone = tickets_alone || is_of_tickets(node, ["matchers", "match"]);
    for key in ["mute_time_intervals", "active_time_intervals"] {
        if let Some(times) = get(node, key)
            && !tickets_alone
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
        && is_whole
        && !known.contains_key(name)
    {
        findings.add(receiver.mark, format!("there is no receiver `{name}`"), WHERE_IT_IS);
    }
    for route in get(node, "routes").into_iter().flat_map(items) {
        branch(route, known, is_whole, tickets_alone, findings);
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
    if get(rule, "equal").is_none_or(|equal| items(equal).is_empty()) {
        findings.add(
            rule.mark,
            "this inhibition needs nothing in common: one page would keep all tickets quiet",
            "write `equal: [service, channel, route]`",
        );
    }
}
