//! What alert rules are made from.

use super::{names::refer_route, text};
use crate::{
    config::{
        alerts::{AlertReceiver, Alerts, OfficeHours},
        draft::Draft,
        near,
        report::{At, Report},
        scalar::Span,
    },
    domain::schedule::Schedule,
};
use std::time::Duration;

/// In the order of the Alertmanager, whose week begins on Sunday: it refuses a range that runs over its end.
const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

pub(super) fn check(alerts: &Alerts, draft: &Draft, at: &At, report: &mut Report) {
    text::name(&alerts.service, &at.key("service"), report);
    runbooks(&alerts.runbooks, &at.key("runbooks"), report);
    if let Some(address) = &alerts.alertmanager {
        text::web_address(address, &at.key("alertmanager"), report);
    }
    if let Some(receivers) = &alerts.receivers {
        let at = at.key("receivers");
        for (key, receiver) in
            [("page", &receivers.page), ("ticket", &receivers.ticket), ("owners", &receivers.owners)]
        {
            self::receiver(receiver, &at.key(key), report);
        }
        let at = at.key("watchdog");
        receiver(&receivers.watchdog.receiver, &at.key("receiver"), report);
        between(
            receivers.watchdog.patience,
            Duration::from_secs(180),
            Duration::from_secs(86_400),
            &at.key("patience"),
            report,
        );
    }
    office_hours(&alerts.office_hours, &at.key("office_hours"), report);
    let day = Duration::from_secs(86_400);
    between(alerts.slo_period, day * 7, day * 92, &at.key("slo_period"), report);
    between(alerts.reconcile_after, Duration::from_secs(60), day * 30, &at.key("reconcile_after"), report);
    let false_pages = alerts.false_pages_a_year;
    if !(false_pages > 0.0 && false_pages <= 1_000.0) {
        let message = format!("{false_pages} false pages a year");
        report.fault(
            &at.key("false_pages_a_year"),
            message,
            "write a number above 0, such as 1; none at all is promised by nobody",
        );
    }
    locations(alerts, draft, &at.key("locations"), report);
    for (name, route) in &alerts.routes {
        let at = at.keys(&["routes", name]);
        refer_route(name, draft, &at.name(), report);
        if let Some(after) = route.forgotten_after {
            between(after, Duration::from_secs(60), day * 30, &at.key("forgotten_after"), report);
        }
        if let Some(keep) = route.keep_firing {
            between(keep, Duration::ZERO, Duration::from_secs(3_600), &at.key("keep_firing"), report);
        }
        if let Some(accepted) = route.accepted_per_day
            && !(accepted >= 0.0 && accepted.is_finite())
        {
            report.fault(
                &at.key("accepted_per_day"),
                format!("{accepted} notifications a day"),
                "write a number, 0 or more",
            );
        }
    }
}

fn between(span: Span, least: Duration, most: Duration, at: &At, report: &mut Report) {
    if !(least..=most).contains(&span.get()) {
        let hint = format!("write {} to {}", Span(least), Span(most));
        report.fault(at, format!("{span} is out of range here"), hint);
    }
}

fn runbooks(address: &str, at: &At, report: &mut Report) {
    if let Some(url) = text::web_address(address, at, report)
        && url.scheme() != "https"
    {
        report.fault(
            at,
            "runbooks are read in an emergency, and this address is not https",
            "write `https://host/path`",
        );
    }
}

fn receiver(receiver: &AlertReceiver, at: &At, report: &mut Report) {
    let name = receiver.name.trim();
    if name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
        report.fault(
            &at.key("name"),
            "this is not a receiver's name",
            "write the name that the Alertmanager shall have for it",
        );
    }
    if receiver.url.is_some() && receiver.url_file.is_some() {
        report.fault(at, "there are two addresses: `url` and `url_file`", "keep one of them");
    }
    if let Some(address) = &receiver.url
        && let Some(url) = text::web_address(address, &at.key("url"), report)
    {
        let here = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
        if url.scheme() != "https" && !here {
            report.fault(
                &at.key("url"),
                "alerts would be sent in the clear",
                "write an `https` address; `http` is for loopback alone",
            );
        }
    }
    if receiver.url_file.as_deref().is_some_and(|file| !file.starts_with('/')) {
        report.fault(
            &at.key("url_file"),
            "this file is read by the Alertmanager, so its path must not depend on where we are",
            "write a path that starts with `/`",
        );
    }
}

fn office_hours(hours: &OfficeHours, at: &At, report: &mut Report) {
    if hours.days.is_empty() {
        report.fault(&at.key("days"), "on no day would a ticket be sent", "write `[monday:friday]`, say");
    }
    for (n, days) in hours.days.iter().enumerate() {
        let places: Vec<_> = days.split(':').map(|day| DAYS.iter().position(|known| *known == day)).collect();
        let sound =
            matches!(places[..], [Some(_)]) || matches!(places[..], [Some(from), Some(to)] if from <= to);
        if !sound {
            let hint = "write a day in small letters, or two with a colon, the earlier first: `monday:friday`; the Alertmanager's week begins on Sunday";
            report.fault(&at.key("days").key(n), "these are no days of a week", hint);
        }
    }
    let (from, until) = (minutes(&hours.from), minutes(&hours.until));
    for (key, minutes) in [("from", from), ("until", until)] {
        if minutes.is_none() {
            report.fault(&at.key(key), "this is no time of day", "write hours and minutes, such as `08:00`");
        }
    }
    if let (Some(from), Some(until)) = (from, until)
        && from >= until
    {
        report.fault(&at.key("until"), "these hours end before they start", "put `until` after `from`");
    }
    if Schedule::parse("0 0 * * *", &hours.zone).is_err() {
        report.fault(&at.key("zone"), "there is no such zone", "write an IANA zone, such as `Europe/Berlin`");
    }
}

/// Minutes since midnight.
fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| (text.len() == 2).then(|| text.parse::<u16>().ok()).flatten();
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (minutes < 60 && hours * 60 + minutes <= 24 * 60).then_some(hours * 60 + minutes)
}

fn locations(alerts: &Alerts, draft: &Draft, at: &At, report: &mut Report) {
    let known: Vec<&str> = if draft.locations.is_empty() {
        draft.location.iter().map(String::as_str).collect()
    } else {
        draft.locations.iter().map(String::as_str).collect()
    };
    for (n, name) in alerts.locations.iter().enumerate() {
        if !known.is_empty() && !known.contains(&name.as_str()) {
            let hint = near::hint(name, known.iter().copied());
            report.fault(&at.key(n), format!("there is no location `{}`", name.escape_debug()), hint);
        }
    }
}
