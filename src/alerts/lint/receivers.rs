//! The Alertmanager's configuration: its tree, its receivers, and what keeps what quiet.

use super::{Findings, get, items, text, text_of};
use crate::{
    alerts::catalog,
    config::tree::{Content, Node},
};
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of receivers that tell a person.
const KINDS: [&str; 16] = [
    "msteamsv2_configs",
    "jira_configs",
    "rocketchat_configs",
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
    if let Some(global) = get(root, "global") {
        addresses("global", global, target_hosts, findings);
    }
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
    // Several may stand in one text, as in `{alertname="A",severity="page"}`.
    let plain = listed.flat_map(|matchers| {
        let inner = matchers.trim().trim_start_matches('{').trim_end_matches('}');
        separate(inner).into_iter().map(|matcher| matcher.replace(['"', '\''], "")).collect::<Vec<_>>()
    });
    let value = |matcher: String| {
        let (name, value) = matcher.split_once('=')?;
        (name == label && !value.starts_with('~')).then(|| value.to_owned())
    };
    let mapped = get(node, keys[1]).and_then(|map| text_of(map, label)).map(str::to_owned);
    plain.filter_map(value).chain(mapped).collect()
}

/// The matchers of a text, without blanks: a comma outside of quotes separates them.
fn separate(text: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in text.chars() {
        quoted ^= c == '"';
        match all.last_mut() {
            Some(last) if (quoted || c != ',') && !c.is_whitespace() => last.push(c),
            Some(_) if c == ',' && !quoted => all.push(String::new()),
            _ => {}
        }
    }
    all
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
            let url = reqwest::Url::parse(&scalar.text).ok().filter(reqwest::Url::has_host);
            // A mail relay stands without a scheme, as `host:587`.
            let bare = scalar.text.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
            let Some(host) = url.as_ref().and_then(|url| url.host_str()).or(bare.map(|(host, _)| host))
            else {
                return;
            };
            let is_here = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
            if target_hosts.contains(host) {
                findings.add(
                    node.mark,
                    format!("the receiver `{name}` goes through `{host}`, a host of the monitored service"),
                    "the alert path must work while that service doesn't",
                );
            }
            if url.as_ref().is_some_and(|url| url.scheme() == "http") && !is_here {
                findings.add(
                    node.mark,
                    format!("the receiver `{name}` sends in the clear"),
                    "write an `https` address",
                );
            }
            let is_inside = [".svc", ".cluster.local", ".internal.svc"].iter().any(|end| host.ends_with(end));
            if is_inside || (url.is_some() && !is_here && !host.contains(['.', ':'])) {
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
