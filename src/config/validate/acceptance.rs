//! Acceptances: what can be said of one by itself, and what comes out when a route uses it.

use super::{
    template::{self, ALWAYS, LOCATION, OF_RECEIPT, Template},
    text, times,
};
use crate::config::{
    acceptance::{HttpAcceptance, Idempotency},
    model::Route,
    near,
    report::{At, Report},
    scalar::Span,
};
use reqwest::header::HeaderValue;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Words in a header's name that say that its value is a credential.
const CREDENTIAL_WORDS: [&str; 7] =
    ["authorization", "cookie", "token", "secret", "api-key", "apikey", "password"];

pub(super) fn check(http: &HttpAcceptance, at: &At, report: &mut Report) {
    statuses(http, at, report);
    headers(http, at, report);
    if let Some(id) = &http.accepted.id {
        text::pointer(id, &at.keys(&["accepted", "id"]), report);
    }
    for (n, condition) in http.error_when.iter().enumerate() {
        text::pointer(&condition.pointer, &at.key("error_when").key(n).key("pointer"), report);
    }
    for (key, span) in [("connect_timeout", http.connect_timeout), ("total_timeout", http.total_timeout)] {
        times::limit(span, &at.key(key), report);
    }
    if http.total_timeout <= http.connect_timeout {
        let message = format!(
            "`total_timeout` is {}, and `connect_timeout` is {}",
            http.total_timeout, http.connect_timeout
        );
        report.fault(
            &at.key("total_timeout"),
            message,
            "the whole submission can't end before it has connected",
        );
    }
    if http.resubmit_after.get() > std::time::Duration::from_secs(600) {
        let message = format!("a wait of {} before the second submission", http.resubmit_after);
        report.fault(&at.key("resubmit_after"), message, "write at most 10m");
    }
    idempotency(http, at, report);
    let authority = http.url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#', '\\']).next());
    if authority.unwrap_or(&http.url).contains(['{', '}']) {
        let hint = "write scheme, host and port as plain text; variables may stand behind them";
        report.fault(&at.key("url"), "a variable would choose where the request goes", hint);
    }
}

/// A part that is a template: its keys, and the template where it can be read.
pub(super) struct Part<'a> {
    keys: Vec<&'a str>,
    template: Option<Template>,
}

impl Part<'_> {
    /// Whether its template can be read, so that all its variables are known.
    pub(super) fn is_readable(&self) -> bool {
        self.template.is_some()
    }
}

/// The parts of each acceptance, by its name. They are compiled once, and tried with the values of each route.
pub(super) type PartsByName<'a> = BTreeMap<&'a str, Vec<Part<'a>>>;

/// Compiles the parts of an acceptance that are templates.
pub(super) fn compile<'a>(http: &'a HttpAcceptance, at: &At, report: &mut Report) -> Vec<Part<'a>> {
    let headers = http.headers.iter().map(|(name, value)| (vec!["headers", name.as_str()], value));
    let sources = [(vec!["url"], &http.url)].into_iter().chain(headers).chain([(vec!["body"], &http.body)]);
    let mut compile = |(keys, source): (Vec<&'a str>, &String)| {
        let template = Template::compile(source).map_err(|problem| {
            let hint = "write `{{ name }}` for a variable, and `{{ name | tojson }}` inside JSON";
            report.fault(&at.keys(&keys), format!("this template can't be read: {problem}"), hint);
        });
        Part { keys, template: template.ok() }
    };
    sources.map(&mut compile).collect()
}

fn statuses(http: &HttpAcceptance, at: &At, report: &mut Report) {
    let lists = [
        ("`accepted.statuses`", &http.accepted.statuses, at.keys(&["accepted", "statuses"])),
        ("`refused_statuses`", &http.refused_statuses, at.key("refused_statuses")),
        ("`ask_ledger_statuses`", &http.ask_ledger_statuses, at.key("ask_ledger_statuses")),
    ];
    let mut seen: BTreeMap<u16, usize> = BTreeMap::new();
    for (which, (name, list, list_at)) in lists.iter().enumerate() {
        for (n, status) in list.iter().enumerate() {
            let status_at = list_at.key(n);
            let (range, kind) = if which == 0 { (200..=299, "2xx") } else { (200..=599, "HTTP") };
            if !range.contains(status) {
                let hint = format!("write {} to {}", range.start(), range.end());
                report.fault(&status_at, format!("{status} is no {kind} status"), hint);
            }
            match seen.get(status) {
                Some(first) if *first == which => {
                    report.fault(
                        &status_at,
                        format!("{status} stands twice in {name}"),
                        "keep one of the two",
                    );
                }
                Some(first) => {
                    let (other, _, other_at) = &lists[*first];
                    // The fault belongs to what was written, not to a default.
                    let place = if report.is_written(&status_at) { &status_at } else { other_at };
                    report.fault(
                        place,
                        format!("{status} stands in {other} and in {name}"),
                        format!("an answer means one thing: take it out of one of them; where {other} or {name} is not written, its default holds"),
                    );
                }
                None => {
                    seen.insert(*status, which);
                }
            }
        }
    }
    if http.accepted.statuses.is_empty() {
        report.fault(
            &at.keys(&["accepted", "statuses"]),
            "no status means accepted",
            "write at least one, such as 201",
        );
    }
}

fn headers(http: &HttpAcceptance, at: &At, report: &mut Report) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let open = http.headers.keys().map(|name| ("headers", name));
    for (section, name) in open.chain(http.secret_headers.keys().map(|name| ("secret_headers", name))) {
        let header_at = at.keys(&[section, name]);
        text::header(name, &header_at.name(), report);
        let lower = name.to_lowercase();
        if section == "headers" && CREDENTIAL_WORDS.iter().any(|word| lower.contains(word)) {
            report.conceal(&header_at);
            report.warn(
                &header_at,
                format!("`{name}` looks like a credential"),
                "move it to `secret_headers`",
            );
        }
        if matches!(lower.as_str(), "traceparent" | "content-type" | "content-length" | "host") {
            let hint = if lower == "content-type" { "write `content_type`" } else { "leave it out" };
            report.fault(&header_at, format!("the header `{name}` is set by the monitor"), hint);
        }
        if !seen.insert(lower) {
            report.fault(&header_at, format!("the header `{name}` is there twice"), "keep one of the two");
        }
    }
    for (name, value) in &http.secret_headers {
        if HeaderValue::from_str(value.expose()).is_err() {
            let hint = "a line feed inside it, perhaps? Only one at the end of a file is dropped";
            report.fault(&at.keys(&["secret_headers", name]), "this secret can't stand in a header", hint);
        }
    }
    if HeaderValue::from_str(&http.content_type).is_err() || !http.content_type.contains('/') {
        report.fault(
            &at.key("content_type"),
            "this is not a media type",
            "write one such as `application/json`",
        );
    }
}

fn idempotency(http: &HttpAcceptance, at: &At, report: &mut Report) {
    let key_at = at.key("idempotency");
    match &http.idempotency {
        Idempotency::Standard => {}
        Idempotency::Header(name) => text::header(name, &key_at.key("header"), report),
        Idempotency::Body => {
            if Template::compile(&http.body).is_ok_and(|body| !body.variables.contains("key")) {
                let hint = "write `{{ key | tojson }}` into `body`";
                report.fault(&key_at, "the key goes into the body, and the body has no `key`", hint);
            }
        }
        Idempotency::None if http.max_submissions > 1 => {
            let message = format!(
                "without idempotency an ambiguous submission is never repeated, whatever `max_submissions` says ({})",
                http.max_submissions
            );
            report.warn(&key_at, message, "write `max_submissions: 1`");
        }
        Idempotency::None => {}
    }
    if !(1..=10).contains(&http.max_submissions) {
        let message = format!("{} submissions of one key", http.max_submissions);
        report.fault(&at.key("max_submissions"), message, "write 1 to 10");
    }
}

/// Warns of an acceptance that may still be submitting when the canary should have arrived long since.
///
/// `at` is where the acceptance stands, and where the route does.
pub(super) fn patience(
    (name, http): (&str, &HttpAcceptance),
    (at, route_at): (&At, &At),
    route: &Route,
    report: &mut Report,
) {
    let repeats = if http.idempotency == Idempotency::None { 1 } else { http.max_submissions };
    // Each wait is twice the one before.
    let waits = 2u32.saturating_pow(repeats.saturating_sub(1)).saturating_sub(1);
    let longest = http.total_timeout.get().saturating_mul(repeats);
    let longest = longest.saturating_add(http.resubmit_after.get().saturating_mul(waits));
    if longest <= route.deadline.get().saturating_mul(2) {
        return;
    }
    let keys = ["total_timeout", "max_submissions", "resubmit_after"].map(|key| at.key(key));
    // It is said where somebody wrote something, not at a default.
    let place =
        keys.into_iter().find(|key| report.is_written(key)).unwrap_or_else(|| route_at.key("deadline"));
    let message = format!(
        "submitting by `{name}` may take {} ({repeats} times {}, and the waits between them), and the deadline of `{}` is {}",
        Span(longest),
        http.total_timeout,
        route.full_name(),
        route.deadline
    );
    let hint = "a canary that is accepted so late has its verdict long after its slot: lower `total_timeout` or `max_submissions`, or \
                write a longer `deadline`";
    report.warn(&place, message, hint);
}

/// Tries an acceptance with a route's own values. Gives the variables that its templates read.
///
/// `at` is where the acceptance stands, and where the route does.
pub(super) fn try_with(
    (name, http): (&str, &HttpAcceptance),
    parts: &[Part<'_>],
    (at, route_at): (&At, &At),
    route: &Route,
    report: &mut Report,
) -> BTreeSet<String> {
    let recipient = route.recipients.first().map(String::as_str).unwrap_or_default();
    let values = template::trial(route.full_name().as_str(), recipient, &route.variables);
    let known: BTreeSet<&str> = ALWAYS
        .into_iter()
        .chain([LOCATION])
        .chain(OF_RECEIPT.into_iter().filter(|_| route.receipt.is_some()))
        .chain(route.variables.keys().map(String::as_str))
        .collect();
    let mut read = BTreeSet::new();
    for Part { keys, template } in parts {
        let Some(template) = template else { continue };
        let part = keys.join(".");
        let missing: Vec<&str> =
            template.variables.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
        // Without a receipt there is a fault of its own, which says more.
        for variable in missing.iter().filter(|name| !OF_RECEIPT.contains(name)) {
            let near = near::nearest(variable, known.iter().copied())
                .map_or_else(String::new, |near| format!("did you mean `{near}`? or "));
            report.fault(
                route_at,
                format!("the acceptance `{name}` needs a variable `{variable}` in its `{part}`"),
                format!("{near}give this route `variables: {{ {variable}: ... }}`"),
            );
        }
        if missing.is_empty() {
            match template.render(&values) {
                Ok(text) => rendered(http, keys, &text, &at.keys(keys), report),
                Err(problem) => report.fault(
                    &at.keys(keys),
                    format!("this template fails for the route `{}`: {problem}", route.full_name()),
                    "see docs/acceptance.md",
                ),
            }
        }
        read.extend(template.variables.iter().cloned());
    }
    read
}

/// Checks what came out of one template.
fn rendered(http: &HttpAcceptance, key: &[&str], text: &str, at: &At, report: &mut Report) {
    match key {
        ["url"] => {
            text::web_address(text, at, report);
        }
        ["body"] if http.content_type.starts_with("application/json") => {
            if let Err(error) = serde_json::from_str::<Value>(text) {
                let message = format!(
                    "the body is not JSON once its variables are in: line {}, column {} of what is rendered",
                    error.line(),
                    error.column()
                );
                let hint = "write `{{ name | tojson }}` without quotes around it, or another `content_type`";
                report.fault(at, message, hint);
            }
        }
        ["headers", _] if HeaderValue::from_str(text).is_err() => {
            report.fault(at, "this can't stand in a header", "remove line feeds and control characters");
        }
        _ => {}
    }
}
