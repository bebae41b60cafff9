//! The Alertmanager's configuration: who is told what, how alerts are grouped, and what keeps what quiet.
//!
//! The root receiver takes tickets, so that nothing is lost that no route foresaw. Nothing keeps a page quiet.

use super::{
    catalog::{self, Audience, Severity},
    plan::Plan,
    rules::INTERVAL,
    yaml::Yaml,
};
use crate::config::{
    alerts::{AlertReceiver, AlertReceivers},
    scalar::Span,
};
use std::collections::BTreeSet;

/// The labels that a page and the tickets of its route have in common. Each alert that can match has every one of them:
/// a label that is missing on both sides counts as equal.
pub const EQUAL: [&str; 3] = ["service", "channel", "route"];

/// The name of the hours in which tickets are sent.
const OFFICE: &str = "office-hours";

/// Longer than the interval of the rules, so that a page is there before the tickets that it keeps quiet.
pub const GROUP_WAIT: &str = "45s";

/// How soon a page that is out says that one more route fails, or that all is well again. Tickets are in no such hurry.
const PAGE_GROUP_INTERVAL: &str = "1m";

/// The configuration, with lines of comment for its head; nothing without receivers.
pub fn configuration(plan: &Plan<'_>) -> Option<(Yaml, Vec<String>)> {
    let receivers = plan.alerts.receivers.as_ref()?;
    let office = &plan.alerts.office_hours;
    let hours = Yaml::map([
        ("name", Yaml::text(OFFICE)),
        (
            "time_intervals",
            Yaml::List(vec![Yaml::map([
                ("weekdays", Yaml::texts(office.days.iter())),
                (
                    "times",
                    Yaml::List(vec![Yaml::map([
                        ("start_time", Yaml::text(&office.from)),
                        ("end_time", Yaml::text(&office.until)),
                    ])]),
                ),
                ("location", Yaml::text(&office.zone)),
            ])]),
        ),
    ]);
    let mut all = vec![
        ("route", tree(receivers)),
        ("inhibit_rules", Yaml::List(vec![inhibition()])),
        ("time_intervals", Yaml::List(vec![hours])),
    ];
    let written: Vec<_> = distinct(receivers).into_iter().filter_map(written).collect();
    if !written.is_empty() {
        all.push(("receivers", Yaml::List(written)));
    }
    let missing: Vec<_> = distinct(receivers)
        .into_iter()
        .filter(|receiver| receiver.url.is_none() && receiver.url_file.is_none())
        .map(|receiver| receiver.name.clone())
        .collect();
    let mut head = vec![
        format!(
            "Alertmanager configuration for the service {}, to be merged into yours.",
            plan.alerts.service
        ),
        "Group waits are longer than the interval of the rules (".to_owned()
            + INTERVAL
            + "), so that a page comes before its tickets.",
    ];
    if !missing.is_empty() {
        head.push(format!("Receivers of your own, to be added under `receivers`: {}.", missing.join(", ")));
    }
    Some((Yaml::map(all), head))
}

fn matchers(all: &[(&str, &str)]) -> Yaml {
    Yaml::texts(all.iter().map(|(label, value)| format!("{label}=\"{value}\"")))
}

fn tree(receivers: &AlertReceivers) -> Yaml {
    let by = |labels: &[&str]| Yaml::texts(labels.iter().copied());
    // The Watchdog is sent three times within the patience of the dead man's switch. A group is looked at each `group_interval`, and what was
    // sent a moment less than `repeat_interval` ago waits for the next look: with both alike it would be sent half as often.
    let every = receivers.watchdog.patience.get() / 3;
    let look = every / 5;
    let watchdog = Yaml::map([
        ("matchers", matchers(&[("audience", Audience::DeadMan.word())])),
        ("receiver", Yaml::text(&receivers.watchdog.receiver.name)),
        ("group_by", by(&["service", "alertname"])),
        ("group_wait", Yaml::text("0s")),
        ("group_interval", Yaml::text(Span(look).to_string())),
        ("repeat_interval", Yaml::text(Span(every - look).to_string())),
    ]);
    let (page, ticket) = (Severity::Page.word(), Severity::Ticket.word());
    let owners = ("audience", Audience::Owners.word());
    let blind = Yaml::map([
        ("matchers", matchers(&[owners, ("severity", page)])),
        ("receiver", Yaml::text(&receivers.owners.name)),
        ("group_by", by(&["service", "alertname", "blind"])),
        ("group_interval", Yaml::text(PAGE_GROUP_INTERVAL)),
        ("repeat_interval", Yaml::text("1h")),
    ]);
    let pages = Yaml::map([
        ("matchers", matchers(&[("severity", page)])),
        ("receiver", Yaml::text(&receivers.page.name)),
        ("group_by", by(&["service", "channel", "alertname"])),
        ("group_interval", Yaml::text(PAGE_GROUP_INTERVAL)),
        ("repeat_interval", Yaml::text("4h")),
    ]);
    let tickets = |matching, receiver: &AlertReceiver| {
        Yaml::map([
            ("matchers", matching),
            ("receiver", Yaml::text(&receiver.name)),
            ("active_time_intervals", by(&[OFFICE])),
        ])
    };
    Yaml::map([
        ("receiver", Yaml::text(&receivers.ticket.name)),
        ("group_by", by(&["service", "channel", "alertname"])),
        ("group_wait", Yaml::text(GROUP_WAIT)),
        ("group_interval", Yaml::text("5m")),
        ("repeat_interval", Yaml::text("1d")),
        (
            "routes",
            Yaml::List(vec![
                watchdog,
                blind,
                tickets(matchers(&[owners, ("severity", ticket)]), &receivers.owners),
                pages,
                tickets(matchers(&[("severity", ticket)]), &receivers.ticket),
            ]),
        ),
    ])
}

/// A page keeps the tickets of its route quiet, but those that say why it may stay: that nothing is measured any more. Nothing keeps a
/// page quiet.
fn inhibition() -> Yaml {
    let service = ("audience", Audience::Service.word());
    let unmeasured =
        [&catalog::SUPPRESSED, &catalog::PAUSED, &catalog::MISSING, &catalog::GUARD].map(|entry| entry.name);
    let tickets = [
        format!("audience=\"{}\"", Audience::Service.word()),
        format!("severity=\"{}\"", Severity::Ticket.word()),
        format!("alertname!~\"{}\"", unmeasured.join("|")),
    ];
    Yaml::map([
        ("source_matchers", matchers(&[service, ("severity", Severity::Page.word())])),
        ("target_matchers", Yaml::texts(tickets)),
        ("equal", Yaml::texts(EQUAL)),
    ])
}

/// The receivers, each name once.
fn distinct(receivers: &AlertReceivers) -> Vec<&AlertReceiver> {
    let mut seen = BTreeSet::new();
    [&receivers.page, &receivers.ticket, &receivers.owners, &receivers.watchdog.receiver]
        .into_iter()
        .filter(|receiver| seen.insert(receiver.name.as_str()))
        .collect()
}

/// A receiver, unless it is one of the user's own.
fn written(receiver: &AlertReceiver) -> Option<Yaml> {
    let address = match (&receiver.url, &receiver.url_file) {
        (Some(url), _) => ("url", url),
        (None, Some(file)) => ("url_file", file),
        (None, None) => return None,
    };
    let hook = Yaml::map([(address.0, Yaml::text(address.1)), ("send_resolved", Yaml::Plain("true".into()))]);
    Some(Yaml::map([("name", Yaml::text(&receiver.name)), ("webhook_configs", Yaml::List(vec![hook]))]))
}
