//! Rules: their metrics, labels, annotations and numbers.

use super::{Findings, get, items, text, text_of};
use crate::{
    alerts::{number::literals, scenarios::names},
    catalog::{self, families::PROCESS_FAMILIES},
    config::tree::{Content, Node},
};
use std::collections::BTreeSet;

/// Labels that name a process or where it runs: whoever reads them acts on it.
const OF_PLACES: [&str; 5] = ["pod", "instance", "container", "node", "host"];

/// What ratios of counters are made by. They mislead on sparse events.
const OF_COUNTERS: [&str; 5] = ["rate(", "irate(", "increase(", "delta(", "idelta("];

/// Numbers that need no reason: yes, no, and all.
const PLAIN: [&str; 2] = ["0", "1"];

pub(super) fn check(groups: &Node, findings: &mut Findings<'_>) {
    let rules: Vec<&Node> =
        items(groups).iter().filter_map(|group| get(group, "rules")).flat_map(items).collect();
    let recorded: BTreeSet<&str> = rules.iter().filter_map(|rule| text_of(rule, "record")).collect();
    for rule in rules {
        let Some(expr) = get(rule, "expr") else {
            findings.add(rule.mark, "a rule without `expr`", "write one, or remove the rule");
            continue;
        };
        metrics(expr, &recorded, findings);
        if get(rule, "alert").is_some() {
            alert(rule, expr, findings);
        }
    }
}

/// Every metric of ours that is named exists.
fn metrics(expr: &Node, recorded: &BTreeSet<&str>, findings: &mut Findings<'_>) {
    for name in names(text(expr).unwrap_or_default()) {
        let is_exported = || {
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            [name, family].iter().any(|name| catalog::family(name).is_some())
                || PROCESS_FAMILIES.contains(&name)
        };
        if !recorded.contains(name) && !is_exported() {
            findings.add(
                expr.mark,
                format!("there is no metric `{name}`"),
                "see docs/metrics.md, or record it in this file",
            );
        }
    }
}

fn alert(rule: &Node, expr: &Node, findings: &mut Findings<'_>) {
    let name = text_of(rule, "alert").unwrap_or_default().to_owned();
    let written = text(expr).unwrap_or_default();
    let labels = get(rule, "labels");
    let label = |key: &str| labels.and_then(|labels| text_of(labels, key));
    let is_page = label("severity") == Some("page");
    for key in ["severity", "audience"] {
        if label(key).is_none_or(str::is_empty) {
            findings.add(
                rule.mark,
                format!("{name} has no label `{key}`"),
                "say how urgent it is (`severity`) and who answers for it (`audience`)",
            );
        }
    }
    if is_page && let Some(function) = OF_COUNTERS.iter().find(|function| has_call(written, function)) {
        findings.add(
            expr.mark,
            format!("{name} pages by `{function})`"),
            "counters mislead on sparse events; read a gauge of a fixed window",
        );
    }
    if let Some(Content::Map(entries)) = labels.map(|labels| &labels.content) {
        for (key, _) in entries.iter().filter(|(key, _)| OF_PLACES.contains(&key.text.as_str())) {
            findings.add(
                key.mark,
                format!("{name} has the label `{}`", key.text),
                "an alert names a route, never a process",
            );
        }
    }
    if let Some(label) = grouped_by_place(written) {
        findings.add(
            expr.mark,
            format!("{name} is grouped by `{label}`"),
            "an alert names a route, never a process: take `max by (route)`",
        );
    }
    annotations(rule, &name, written, findings);
}

fn has_call(expr: &str, function: &str) -> bool {
    let starts_word =
        |at: usize| !expr[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
    expr.match_indices(function).any(|(at, _)| starts_word(at))
}

/// What is followed by a list of labels that the result has.
const LISTS: [&str; 3] = ["by", "group_left", "group_right"];

/// A place's label by which an aggregation groups, or that a match brings in.
fn grouped_by_place(expr: &str) -> Option<&'static str> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
    let lists = expr.match_indices('(').filter_map(|(at, _)| {
        let word = expr[..at].trim_end().rsplit(is_end).next()?;
        let is_list = LISTS.iter().any(|list| word.eq_ignore_ascii_case(list));
        is_list.then(|| expr[at + 1..].split(')').next()).flatten()
    });
    lists
        .flat_map(|list| list.split(','))
        .find_map(|label| OF_PLACES.iter().find(|place| **place == label.trim()).copied())
}

fn annotations(rule: &Node, name: &str, expr: &str, findings: &mut Findings<'_>) {
    let annotations = get(rule, "annotations");
    let of = |key: &str| annotations.and_then(|annotations| text_of(annotations, key)).unwrap_or_default();
    if of("summary").is_empty() {
        findings.add(rule.mark, format!("{name} has no `summary`"), "say in one line what happened where");
    }
    if !of("runbook_url").starts_with("https://") {
        findings.add(
            rule.mark,
            format!("{name} has no `runbook_url` with https"),
            "say where to read on, also when the own network is down",
        );
    }
    for word in ["canary_id", "notification_id", "attempt_id"] {
        if of("summary").contains(word) {
            findings.add(
                rule.mark,
                format!("the summary of {name} has an identifier: `{word}`"),
                "a summary names routes and stages",
            );
        }
    }
    let numbers = of("numbers");
    let noted: BTreeSet<&str> = numbers.lines().filter_map(|line| line.split(": ").next()).collect();
    if let Some(literal) = literals(expr)
        .iter()
        .find(|literal| !PLAIN.contains(&literal.as_str()) && !noted.contains(literal.as_str()))
    {
        findings.add(
            rule.mark,
            format!("{name} has the number {literal}, and doesn't say where it comes from"),
            "write a line into its annotation `numbers`: `VALUE: what it is (measured, derived or chosen: why)`",
        );
    }
}
