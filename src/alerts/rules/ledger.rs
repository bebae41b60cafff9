//! Alerts on what the ledger shows of everybody's notifications, by age and by count.

use super::{
    ALL_ROUTES, AlertRule, budget,
    names::{
        ACCEPTED, ALLOWED, ATTEMPTS, CONSECUTIVE, DEADLINE, HISTORY, MAINTENANCE, OLDEST, OVER, RESIDUE,
        UNKNOWN, braces,
    },
    of_monitor, of_routes,
    recorded::read,
};
use crate::{
    alerts::{
        catalog::{self, Severity},
        number::{Numbers, Source},
        plan::Plan,
    },
    catalog::{families as f, labels::Window},
    domain::outcome::Outcome,
};

pub(super) fn rules(plan: &Plan<'_>, rules: &mut Vec<AlertRule>) {
    if plan.ledgers.is_empty() {
        return;
    }
    let any = |has: bool, rule: fn(&Plan<'_>) -> AlertRule, rules: &mut Vec<AlertRule>| {
        if has {
            rules.push(rule(plan));
        }
    };
    let is_followed = !plan.ledgers_with(|ledger| ledger.notifications.is_some()).is_empty();
    let has_attempts = !plan.ledgers_with(|ledger| ledger.attempts.is_some()).is_empty();
    let is_counted = !plan.ledgers_with(|ledger| ledger.partition.is_some()).is_empty();
    let is_counted_elsewhere = !plan.ledgers_with(|ledger| ledger.accepted_elsewhere.is_some()).is_empty();
    rules.push(over_deadline(has_attempts));
    forgotten(plan, rules);
    rules.push(unknown(plan));
    any(is_followed, budget::low_volume, rules);
    any(is_followed, |_| stopped(Severity::Ticket), rules);
    any(is_followed, |_| stopped(Severity::Page), rules);
    any(is_counted, |_| residue(), rules);
    any(is_counted_elsewhere, never_written, rules);
    any(is_followed, leak, rules);
    rules.push(history());
}

fn over_deadline(has_attempts: bool) -> AlertRule {
    let mut n = Numbers::default();
    let few = n.put("pending past the deadline", 3.0, Source::Chosen, "so few may be a retry each");
    // Where it isn't known what a day has, nothing is told of by its number.
    let mut expr = format!("({OVER} > {few}\nand on (route) {OVER} > on (route) {ALLOWED}");
    let old = n.put("deadlines of age", 4.0, Source::Chosen, "far beyond what a retry explains");
    let failing = n.put("canaries failed in a row", 2.0, Source::Chosen, "one may be chance");
    expr.push_str(&format!("\nor time() - {OLDEST} > on (route) {old} * {DEADLINE}"));
    if has_attempts {
        let delivered = Outcome::Delivered.word();
        expr.push_str(&format!(
            "\nunless on (route) max by (route) ({ATTEMPTS}{{outcome=\"{delivered}\"}}) > 0"
        ));
    }
    expr.push_str(&format!("\nand on (route) {CONSECUTIVE} >= {failing})\nunless on (route) {MAINTENANCE}"));
    let mut rule = of_routes(
        &catalog::OVER_DEADLINE,
        &expr,
        "10m",
        "accepted notifications are stuck past their deadline",
        n,
    );
    let over = f::LEDGER_PENDING_OVER_DEADLINE.name;
    let or_more = or_more("");
    rule.details = format!(
        "{{{{ with printf \"max by (route) ({over}{{route='%s'}})\" $labels.route | query }}}}\
         Pending past their deadline: {{{{ . | first | value | humanize }}}}{or_more}.\
         {{{{ else }}}}How many are past their deadline is not known.{{{{ end }}}}"
    );
    rule
}

/// What a page says behind a number of pending notifications while a reading is cut at its row limit. `selector` may name the ledger.
pub(super) fn or_more(selector: &str) -> String {
    let cut = f::LEDGER_TRUNCATED.name;
    let selector = braces(selector);
    format!(
        "{{{{ with query \"max({cut}{selector}) == 1\" }}}}, or more: the reading was cut at its row limit{{{{ end }}}}"
    )
}

fn forgotten(plan: &Plan<'_>, rules: &mut Vec<AlertRule>) {
    let summary = "a notification has been pending for very long";
    // The time of the oldest is absent when nothing is pending, and bridged for a while then. The count is not.
    let still = format!("and on (route) {OVER} > 0");
    let mut others = Vec::new();
    for route in plan.routes.iter().filter(|route| route.ledger.is_some()) {
        let Some(after) = route.differs.forgotten_after else { continue };
        let mut n = Numbers::default();
        let written =
            n.seconds("seconds of age", after.get(), Source::Configured, "`forgotten_after` of the route");
        let expr = format!("time() - {OLDEST}{{route=\"{}\"}} > {written}\n{still}", route.name);
        let mut rule = of_routes(&catalog::FORGOTTEN, &expr, "10m", summary, n);
        rule.labels = vec![("route", route.name.to_string())];
        rules.push(rule);
        others.push(route.name.as_str());
    }
    let mut n = Numbers::default();
    let times = n.put("deadlines of age", 10.0, Source::Chosen, "no retry takes so long");
    let but = if others.is_empty() { String::new() } else { format!("{{route!~\"{}\"}}", others.join("|")) };
    let expr = format!("time() - {OLDEST}{but} > on (route) {times} * {DEADLINE}\n{still}");
    rules.push(of_routes(&catalog::FORGOTTEN, &expr, "10m", summary, n));
}

fn unknown(plan: &Plan<'_>) -> AlertRule {
    let mut n = Numbers::default();
    let after = n.seconds(
        "seconds of age",
        plan.alerts.reconcile_after.get(),
        Source::Configured,
        "`reconcile_after`",
    );
    let expr = format!("time() - {UNKNOWN} > {after}");
    of_routes(&catalog::UNKNOWN, &expr, "10m", "the fate of a notification is not known", n)
}

fn stopped(severity: Severity) -> AlertRule {
    let mut n = Numbers::default();
    let hour = format!("{ACCEPTED}{{window=\"{}\"}}", Window::Hour.word());
    let week = n.span("time between the two hours", "7d", Source::Chosen, "the same hour of the same day");
    let busy = n.put("accepted in that hour", 20.0, Source::Chosen, "of fewer, none is no surprise");
    let mut expr = format!(
        "max by (route) ({hour}) == 0\nand on (route) max by (route) ({hour} offset {week}) >= {busy}"
    );
    if severity == Severity::Page {
        let failing = n.put("canaries failed in a row", 2.0, Source::Chosen, "one may be chance");
        expr.push_str(&format!(
            "\nand on (route) {CONSECUTIVE} >= {failing}\nunless on (route) {MAINTENANCE}"
        ));
    }
    let mut rule = of_routes(&catalog::STOPPED, &expr, "10m", "nothing was accepted for an hour", n);
    rule.severity = severity;
    rule
}

fn residue() -> AlertRule {
    let summary = "the followed figures and the ledger's own count differ";
    of_routes(&catalog::RESIDUE, &format!("{RESIDUE} != 0"), "10m", summary, Numbers::default())
}

/// An exact count says how many were written, and an independent one that at least so many were accepted.
fn never_written(plan: &Plan<'_>) -> AlertRule {
    let mut n = Numbers::default();
    let counted = plan.ledgers_with(|ledger| ledger.accepted_elsewhere.is_some());
    let mut of = |family| format!("max by (route) (\n{}\n)", read(&counted, family, "", &mut n));
    let expr = format!("{} > {}", of(&f::LEDGER_ACCEPTED_ELSEWHERE), of(&f::LEDGER_ACCEPTED_HERE));
    of_routes(&catalog::NEVER_WRITTEN, &expr, "10m", "notifications were accepted and never written", n)
}

fn history() -> AlertRule {
    let summary = "the history of the ledger {{ $labels.ledger }} was changed";
    let mut rule = of_monitor(&catalog::HISTORY, format!("{HISTORY} > 0"), "5m", summary, Numbers::default());
    // It is of no one route, and what may be inhibited has all labels that decide it.
    rule.labels = vec![("route", ALL_ROUTES.to_owned()), ("channel", ALL_ROUTES.to_owned())];
    rule
}

fn leak(plan: &Plan<'_>) -> AlertRule {
    let mut n = Numbers::default();
    let followed = plan.ledgers_with(|ledger| ledger.notifications.is_some());
    let read = read(&followed, &f::LEDGER_CANARY_LEAKS, "", &mut n);
    let expr = format!("max by (route) (\n{read}\n) > 0");
    of_routes(&catalog::LEAK, &expr, "10m", "canaries came by as customers' notifications", n)
}
