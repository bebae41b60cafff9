//! Routes: their times, schedules, recipients and caps, and what they refer to.

use super::{
    acceptance::{self, PartsByName},
    capacity::Need,
    evidence,
    names::refer,
    receipt,
    template::{ALWAYS, LOCATION, OF_RECEIPT},
};
use crate::{
    config::{
        acceptance::{Acceptance, Idempotency},
        draft::Draft,
        ledger::{Ledger, Meaning},
        model::{Route, ScheduleConfig},
        receipt::Receiver,
        report::{At, Report},
        scalar::Span,
    },
    domain::{route::Channel, schedule::ScheduleError, verdict::ExpectedEnd, watch},
};
use std::{collections::BTreeSet, time::Duration};

const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn check(route: &Route, draft: &Draft, parts: &PartsByName<'_>, at: &At, report: &mut Report) {
    times(route, at, report);
    evidence::check(route, at, report);
    recipients(route, at, report);
    variables(route, at, report);
    let http = use_acceptance(&route.acceptance, route, draft, parts, &at.key("acceptance"), at, report);
    if let Some((http, _)) = http.as_ref().filter(|_| !route.deadline.get().is_zero()) {
        let http_at = At::root().keys(&["acceptances", &route.acceptance, "http"]);
        acceptance::patience((route.acceptance.as_str(), *http), (&http_at, at), route, report);
    }
    let ledger = route
        .ledger
        .as_ref()
        .and_then(|name| refer("ledger", name, &draft.ledgers, &at.key("ledger"), report));
    use_receipt(route, draft, at, report);
    expected_end(route, ledger, at, report);
    if let Some(ledger) = ledger {
        settled_too_early(route, ledger, at, report);
    }
    if let (Some((http, _)), Some(ledger)) = (&http, ledger) {
        let by_key = super::ledger::look(&ledger.lookup.sql, &ledger.database).parameters.contains("keys");
        if http.accepted.id.is_none() && !by_key {
            let hint =
                "give the acceptance `accepted: { id: /pointer }`, or bind `:keys` in the ledger's `lookup`";
            report.fault(
                &at.key("ledger"),
                "its answers have no id, and the ledger is not asked by key",
                hint,
            );
        }
    }
    if let (Some((http, _)), Some(_)) = (&http, &route.replay)
        && http.idempotency == Idempotency::None
    {
        let message =
            format!("a replay needs idempotency, and the acceptance `{}` has none", route.acceptance);
        report.fault(&at.key("replay"), message, "remove `replay`, or say where the key goes");
    }
    // Of a template that can't be read nobody knows what it sends; that has a fault of its own.
    let is_readable = parts
        .get(route.acceptance.as_str())
        .is_some_and(|parts| parts.iter().all(acceptance::Part::is_readable));
    if let Some((_, read)) = http.as_ref().filter(|_| is_readable)
        && !read.contains("recipient")
    {
        report.warn(
            &at.key("acceptance"),
            format!("`{}` never names `recipient`: whom its notifications reach, the guard can't see", route.acceptance),
            "write `{{ recipient | tojson }}` where the service takes the recipient, and list it under the route's `recipients`",
        );
    }
    if let (Some((_, read)), Some(_), true) = (&http, &route.receipt, is_readable)
        && OF_RECEIPT.iter().all(|name| !read.contains(*name))
    {
        let message = format!(
            "no receipt could be recognised: `{}` sends neither `callback_url` nor `token`",
            route.acceptance
        );
        report.fault(
            &at.key("acceptance"),
            message,
            "put one of them into its body, a header or its address",
        );
    }
    for (key, arm) in [("sink", &route.controls.sink), ("provider", &route.controls.provider)] {
        if let Some(arm) = arm {
            let arm_at = at.keys(&["controls", key]);
            use_acceptance(&arm.acceptance, route, draft, parts, &arm_at.key("acceptance"), &arm_at, report);
        }
    }
    capacity(route, at, report);
}

/// Looks up an acceptance and tries it with the route's values. Gives it, and the variables that it reads.
fn use_acceptance<'a>(
    name: &str,
    route: &Route,
    draft: &'a Draft,
    parts: &PartsByName<'_>,
    name_at: &At,
    user_at: &At,
    report: &mut Report,
) -> Option<(&'a crate::config::acceptance::HttpAcceptance, BTreeSet<String>)> {
    let Acceptance::Http(http) = refer("acceptance", name, &draft.acceptances, name_at, report)?;
    let http_at = At::root().keys(&["acceptances", name, "http"]);
    let read = acceptance::try_with((name, http), parts.get(name)?, (&http_at, user_at), route, report);
    Some((http, read))
}

fn times(route: &Route, at: &At, report: &mut Report) {
    let end = Span(route.deadline.get().saturating_add(route.settle.get()));
    if route.deadline.get().is_zero() {
        report.fault(
            &at.key("deadline"),
            "a deadline of nothing",
            "write how long a delivery may take, such as `60s`",
        );
    } else if route.deadline > route.follow_for {
        let message =
            format!("the deadline is {}, and following ends after {}", route.deadline, route.follow_for);
        report.fault(&at.key("deadline"), message, "write less, or a longer `follow_for`");
    } else if route.follow_for < end {
        let message = format!(
            "following ends after {}, and the verdict is settled {end} after acceptance",
            route.follow_for
        );
        report.fault(&at.key("follow_for"), message, format!("write at least {end}"));
    }
    // What is left of the kept marks is for the submission, and for the messages to ourselves around it.
    let longest = watch::KEPT.to_std().unwrap_or_default().saturating_sub(Duration::from_secs(3_600));
    if route.receipt.is_some() && end.get() > longest {
        let message = format!(
            "a verdict is due {end} after acceptance, and whether something could have arrived is known for {}",
            Span(longest)
        );
        report.fault(
            &at.key("deadline"),
            message,
            format!("`deadline` and `settle` together: at most {}", Span(longest)),
        );
    }
    if route.settle < Span::seconds(1) || route.settle.get() > DAY {
        report.fault(&at.key("settle"), format!("a settling time of {}", route.settle), "write 1s to 1d");
    }
    if route.follow_for.get() > DAY * 30 {
        report.fault(
            &at.key("follow_for"),
            format!("following for {}", route.follow_for),
            "write at most 30d",
        );
    }
    if route.confirmations.max > 0 && route.confirmations.every < Span::seconds(1) {
        let message = format!("a confirmation every {}", route.confirmations.every);
        report.fault(
            &at.keys(&["confirmations", "every"]),
            message,
            "write at least 1s, or `max: 0` for none",
        );
    }
}

fn recipients(route: &Route, at: &At, report: &mut Report) {
    let at = at.key("recipients");
    if route.recipients.is_empty() {
        report.fault(&at, "there is no recipient", "write an address that belongs to nobody but you");
    }
    let mut seen = BTreeSet::new();
    for (n, recipient) in route.recipients.iter().enumerate() {
        let at = at.key(n);
        if !seen.insert(recipient) {
            report.fault(&at, "this recipient is listed twice", "keep one of the two");
        }
        let (sound, hint) = match route.channel {
            Channel::Email => (is_mail(recipient), "write a mail address, such as `canary@example.com`"),
            Channel::Sms => {
                (is_phone(recipient), "write an E.164 number in quotes, such as `\"+15005550006\"`")
            }
            Channel::Webhook | Channel::Push => (
                is_opaque(recipient),
                "write an id or an address without white space, at most 512 characters",
            ),
        };
        if !sound {
            report.fault(
                &at,
                format!("this is no recipient of the channel `{}`", route.channel.word()),
                hint,
            );
        }
    }
}

fn is_mail(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    is_opaque(text)
        && !local.is_empty()
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && domain.contains('.')
        && !local.contains('@')
        && !domain.contains("..")
}

fn is_phone(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (8..=15).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.starts_with('0')
    })
}

fn is_opaque(text: &str) -> bool {
    (1..=512).contains(&text.len()) && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn variables(route: &Route, at: &At, report: &mut Report) {
    for name in route.variables.keys() {
        let at = at.keys(&["variables", name]).name();
        let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !first || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            let message = format!("`{}` is not a variable's name", name.escape_debug());
            report.fault(&at, message, "use letters, digits and `_`, a letter first");
        } else if ALWAYS.iter().chain([&LOCATION]).chain(&OF_RECEIPT).any(|known| known == name) {
            report.fault(&at, format!("`{name}` is a variable of the monitor's own"), "take another name");
        }
    }
}

fn use_receipt(route: &Route, draft: &Draft, at: &At, report: &mut Report) {
    let Some(receipt) = &route.receipt else {
        let message = format!(
            "the route `{}` has no `receipt`: nothing could prove that a canary arrived",
            route.full_name()
        );
        report.fault(at, message, "write `receipt: { receiver: NAME }`");
        return;
    };
    let at = at.key("receipt");
    receipt::check_route(receipt, &at, report);
    let receiver = refer("receiver", &receipt.receiver, &draft.receivers, &at.key("receiver"), report);
    if let Some(Receiver::Webhook(webhook)) = receiver
        && webhook.self_receipt_every.get().saturating_mul(2) > route.settle.get()
    {
        let message = format!(
            "the receiver `{}` proves itself every {}, and {} settles in {}",
            receipt.receiver,
            webhook.self_receipt_every,
            route.full_name(),
            route.settle
        );
        let hint = format!(
            "a proof is needed between deadline and settlement: `self_receipt_every` at most {}, or a longer `settle`",
            Span(route.settle.get() / 2)
        );
        let every_at = At::root().keys(&["receivers", &receipt.receiver, "webhook", "self_receipt_every"]);
        let settle_at = at.parent().unwrap_or_default().key("settle");
        let place =
            if report.is_written(&settle_at) || !report.is_written(&every_at) { settle_at } else { every_at };
        report.fault(&place, message, hint);
    }
}

fn expected_end(route: &Route, ledger: Option<&Ledger>, at: &At, report: &mut Report) {
    let at = at.key("expected_end");
    let (word, meanings): (_, &[Meaning]) = match route.expected_end {
        ExpectedEnd::Delivered => return,
        ExpectedEnd::Suppressed => ("suppressed", &[Meaning::Suppressed]),
        ExpectedEnd::Rejected => ("rejected", &[Meaning::RejectedRecipient, Meaning::RejectedService]),
    };
    if route.ledger.is_none() {
        let message = format!("only a ledger can show that a canary was {word}, and this route has none");
        report.fault(&at, message, "write `ledger: NAME`");
    } else if let Some(ledger) = ledger
        && !ledger.statuses.values().any(|meaning| meanings.contains(meaning))
    {
        let message = format!("no status of this route's ledger means {word}");
        report.fault(&at, message, "add one to the ledger's `statuses`");
    }
}

/// Warns of a verdict that is due while its row may still come into the ledger: what has no row is then not known to have none.
fn settled_too_early(route: &Route, ledger: &Ledger, at: &At, report: &mut Report) {
    let settled = route.deadline.get().saturating_add(route.settle.get());
    if settled >= ledger.overlap.get() {
        return;
    }
    let message = format!(
        "a verdict on `{}` is due {} after acceptance, and a row may come into its ledger for {} (`overlap`)",
        route.full_name(),
        Span(settled),
        ledger.overlap
    );
    let hint = "until then nobody can say that a row is missing: a longer `settle`, or a shorter `overlap` if the service's rows are visible sooner";
    report.warn(&at.key("deadline"), message, hint);
}

fn capacity(route: &Route, at: &At, report: &mut Report) {
    let mut sound = true;
    let arms = [("sink", &route.controls.sink), ("provider", &route.controls.provider)];
    let schedules = [(at.key("schedule"), Some(&route.schedule)), (at.key("replay"), route.replay.as_ref())]
        .into_iter()
        .chain(arms.map(|(key, arm)| {
            (at.keys(&["controls", key, "schedule"]), arm.as_ref().map(|arm| &arm.schedule))
        }));
    for (at, config) in schedules {
        if let Some(config) = config
            && let Err(error) = config.schedule()
        {
            schedule_fault(&error, config, &at, report);
            sound = false;
        }
    }
    if !sound {
        return;
    }
    if let Ok(need) = Need::of(route) {
        let total = need.total();
        if route.hourly_cap < total {
            let message =
                format!("a cap of {} an hour, and this route can need {total}: {need}", route.hourly_cap);
            report.fault(&at.key("hourly_cap"), message, format!("write at least {total}, or send less"));
        } else if route.hourly_cap / 10 > total {
            let message = format!(
                "a cap of {} an hour, and this route never needs more than {total}",
                route.hourly_cap
            );
            report.warn(&at.key("hourly_cap"), message, "a cap near the need stops a runaway");
        }
    }
}

fn schedule_fault(error: &ScheduleError, config: &ScheduleConfig, at: &At, report: &mut Report) {
    let at = match config {
        ScheduleConfig::Every(_) => at.key("every"),
        ScheduleConfig::Cron(_) if matches!(error, ScheduleError::UnknownZone { .. }) => {
            at.keys(&["cron", "zone"])
        }
        ScheduleConfig::Cron(_) => at.keys(&["cron", "expression"]),
    };
    match error {
        ScheduleError::Expression { column, what, hint } => {
            report.fault(&at, format!("column {column} of the expression: {what}"), hint.clone());
        }
        ScheduleError::Interval { interval, what } => {
            let message = format!("the interval {} {what}", Span(*interval));
            report.fault(&at, message, "write whole seconds, from 1s to 366d");
        }
        error => report.fault(&at, error.to_string(), ""),
    }
}
