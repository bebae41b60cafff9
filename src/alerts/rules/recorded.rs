//! What is recorded: everything that alerts read more than once, and only from processes that look.
//!
//! Data is old when its own timestamp is old, not when its scrape is: an exporter that stands still shows old data for ever.

use super::{
    Rule,
    names::{
        ACCEPTED, ALLOWED, ATTEMPTS, BAD, BOOKS, BUDGET, CONSECUTIVE, DAILY, DEADLINE, EVERY, EVIDENCE,
        HISTORY, MAINTENANCE, OBSERVER_UP, OLDEST, OVER, PAUSED, READING, REJECTED, RESIDUE, RETRIES,
        REWRITTEN, RUNNER, SILENT, SINCE, SUPPRESSED, SUPPRESSED_SHARE, UNKNOWN, UNMEASURED, newest, one_of,
        seen,
    },
};
use crate::{
    alerts::{
        number::{Numbers, Source},
        plan::{LedgerPlan, Plan, RoutePlan},
    },
    catalog::{
        Family,
        bounds::{ATTEMPT_WINDOW, CAUSE_WINDOW, DISPOSITION_WINDOW},
        families as f,
        labels::{LoopName, Window},
    },
    config::ledger::Ledger,
    domain::outcome::{Cause, Disposition, Outcome},
};
use std::time::Duration;

/// The loops without which nothing is known of canaries.
const LOOPS: [LoopName; 3] = [LoopName::Evidence, LoopName::Scheduler, LoopName::Settler];

/// How old the newest success of a loop may be. Each tries once a second, or more often.
const RUNNER_FRESH: Duration = Duration::from_secs(180);

pub(super) fn rules(plan: &Plan<'_>) -> Vec<Rule> {
    let mut rules = vec![runner()];
    let mut record = |name, around: (&str, &str), expr: &dyn Fn(&mut Numbers) -> String| {
        let mut numbers = Numbers::default();
        let inner = expr(&mut numbers);
        let expr = format!("{} (\n{inner}\n){}", around.0, around.1);
        rules.push(Rule::Record { name, expr, numbers: numbers.all().to_vec() });
    };
    let by_question = ("max by (route, location, question)", "");
    record(EVIDENCE, by_question, &|n| seen(&f::CANARY_FAILURE_EVIDENCE, "", n));
    record(SINCE, by_question, &|n| seen(&f::CANARY_FAILING_SINCE, "", n));
    let by_verdict = ("max by (route, location, verdict)", "");
    record(UNMEASURED, by_verdict, &|n| seen(&f::CANARY_UNMEASURED_SINCE, "", n));
    let ledgers = plan.ledgers.iter().map(|ledger| observer_of(ledger.name));
    let observers: Vec<_> = observers(plan).into_iter().chain(ledgers).collect();
    if !observers.is_empty() {
        record(OBSERVER_UP, ("max by (location, observer)", ""), &|n| {
            let up = seen(&f::MONITOR_OBSERVER_UP, &one_of("observer", &observers), n);
            let place = newest(&f::CANARY_CONSECUTIVE_FAILURES, "", n);
            format!(
                "(\n{up}\n) * on (job, instance) group_left (location)\ngroup by (job, instance, location) ({place})"
            )
        });
    }
    record(PAUSED, ("min by (route, location)", ""), &|n| {
        let paused = seen(&f::CANARY_PAUSED, "", n);
        let place = newest(&f::CANARY_CONSECUTIVE_FAILURES, "", n);
        format!(
            "(\n{paused}\n) * on (job, instance) group_left (location)\ngroup by (job, instance, location) ({place})"
        )
    });
    let by_route = ("max by (route)", "");
    record(CONSECUTIVE, by_route, &|n| seen(&f::CANARY_CONSECUTIVE_FAILURES, "", n));
    record(MAINTENANCE, ("max by (route)", " == 1"), &planned_work);
    record(EVERY, by_route, &|n| seen(&f::CANARY_INTERVAL, "", n));
    record(DEADLINE, by_route, &|n| newest(&f::ROUTE_DEADLINE, "", n));
    record(BUDGET, ("1 - max by (route)", ""), &|n| newest(&f::ROUTE_OBJECTIVE, "", n));
    rules.push(silent());
    if plan.ledgers.is_empty() {
        return rules;
    }
    rules.push(readings(plan));
    let all = plan.ledgers_with(|_| true);
    let followed = plan.ledgers_with(|ledger| ledger.notifications.is_some());
    let attempts = plan.ledgers_with(|ledger| ledger.attempts.is_some());
    let counted = plan.ledgers_with(|ledger| ledger.partition.is_some());
    let mut record = |ledgers: &[&LedgerPlan<'_>], name, by: &str, family: &Family, selector: &str| {
        if !ledgers.is_empty() {
            let mut numbers = Numbers::default();
            let expr = format!("{by} (\n{}\n)", read(ledgers, family, selector, &mut numbers));
            rules.push(Rule::Record { name, expr, numbers: numbers.all().to_vec() });
        }
    };
    let by_route = "max by (route)";
    record(&all, OVER, by_route, &f::LEDGER_PENDING_OVER_DEADLINE, "");
    record(&all, OLDEST, "min by (route)", &f::LEDGER_OLDEST_PENDING_DUE, "");
    record(&all, UNKNOWN, "min by (route)", &f::LEDGER_OLDEST_UNKNOWN, "");
    record(&followed, ACCEPTED, "max by (route, window)", &f::LEDGER_WINDOW_ACCEPTED, "");
    record(&followed, BAD, "max by (route, window)", &f::LEDGER_WINDOW_BAD, "");
    let window = ATTEMPT_WINDOW.word();
    let selector = format!("window=\"{window}\"");
    record(&attempts, ATTEMPTS, "max by (route, outcome)", &f::LEDGER_WINDOW_ATTEMPTS, &selector);
    let selector = format!(
        "window=\"{}\", disposition=\"{}\"",
        DISPOSITION_WINDOW.word(),
        Disposition::Suppressed.word()
    );
    record(&followed, SUPPRESSED, by_route, &f::LEDGER_WINDOW_NOTIFICATIONS, &selector);
    let selector = format!("window=\"{}\", cause=\"{}\"", CAUSE_WINDOW.word(), Cause::Recipient.word());
    record(&followed, REJECTED, by_route, &f::LEDGER_WINDOW_REJECTED, &selector);
    record(&counted, RESIDUE, by_route, &f::LEDGER_RESIDUE, "");
    if !followed.is_empty() {
        rules.push(daily());
    }
    rules.push(allowed(plan));
    if !counted.is_empty() {
        rules.push(doubtful_books(&counted));
    }
    rules.push(history());
    rules.push(rewritten());
    let mut share = |name, expr: String| rules.push(Rule::Record { name, expr, numbers: Vec::new() });
    if !attempts.is_empty() {
        let retried = retried();
        share(
            RETRIES,
            format!(
                "sum by (route) ({ATTEMPTS}{{{retried}}})\n/ on (route) (sum by (route) ({ATTEMPTS}) > 0)"
            ),
        );
    }
    if !followed.is_empty() {
        let window = DISPOSITION_WINDOW.word();
        share(
            SUPPRESSED_SHARE,
            format!("{SUPPRESSED}\n/ on (route) (max by (route) ({ACCEPTED}{{window=\"{window}\"}}) > 0)"),
        );
    }
    rules
}

/// Receivers, and ledgers that only canaries are looked up in: what is not told by its readings.
pub(super) fn observers(plan: &Plan<'_>) -> Vec<String> {
    let read: Vec<_> = plan.ledgers.iter().map(|ledger| ledger.name).collect();
    let looked_up = plan.config.ledgers.keys().filter(|name| !read.contains(&name.as_str()));
    let receivers = plan.config.receivers.keys().map(|name| format!("receiver/{name}"));
    receivers.chain(looked_up.map(|name| observer_of(name))).collect()
}

/// The label of a ledger as an observer.
pub(super) fn observer_of(ledger: &str) -> String {
    format!("ledger/{ledger}")
}

/// A matcher of the attempts that are to be tried again, or whose fate is unknown.
pub(super) fn retried() -> String {
    one_of("outcome", &[Outcome::Retryable.word(), Outcome::Unknown.word()])
}

/// Of replicas the greatest, of kinds the sum.
fn history() -> Rule {
    let mut n = Numbers::default();
    let seen = seen(&f::LEDGER_HISTORY_VIOLATIONS, "", &mut n);
    let expr = format!("sum by (ledger) (max by (ledger, kind) (\n{seen}\n))");
    Rule::Record { name: HISTORY, expr, numbers: n.all().to_vec() }
}

/// Where what the sample shows can't be a few that somebody sent again by hand. What canaries show of the history is theirs.
fn rewritten() -> Rule {
    let mut n = Numbers::default();
    let mut of = |family| format!("max by (ledger) (\n{}\n)", seen(family, "", &mut n));
    let (found, compared) = (of(&f::LEDGER_HISTORY_IN_SAMPLE), of(&f::LEDGER_HISTORY_COMPARED));
    let share = n.put("share of the comparisons", 0.01, Source::Chosen, "of fewer, a ratio stays what it is");
    // Of a small sample one is a large share, and no pattern.
    let expr = format!("{found}\n> on (ledger) clamp_min({share} * {compared}, 1)");
    Rule::Record { name: REWRITTEN, expr, numbers: n.all().to_vec() }
}

/// Where the residue is more than what a late bounce or two make of it.
fn doubtful_books(counted: &[&LedgerPlan<'_>]) -> Rule {
    let mut n = Numbers::default();
    let exact = read(counted, &f::LEDGER_COUNTED, "", &mut n);
    let share = n.put("share of the counted", 0.01, Source::Chosen, "of fewer, a ratio stays what it is");
    let expr = format!("{RESIDUE} > on (route) {share} * max by (route) (\n{exact}\n)");
    Rule::Record { name: BOOKS, expr, numbers: n.all().to_vec() }
}

/// A day's accepted. What is known stays known while nobody follows, for as long as that takes: without it nothing would be too many.
fn daily() -> Rule {
    let mut n = Numbers::default();
    let hour = n.span(
        "time without an evaluation",
        "1h",
        Source::Chosen,
        "each goes on from the one before; this covers a Prometheus that begins anew",
    );
    let day = format!("max by (route) ({ACCEPTED}{{window=\"{}\"}})", Window::Day.word());
    let expr = format!("{day}\nor on (route) last_over_time({DAILY}[{hour}])");
    Rule::Record { name: DAILY, expr, numbers: n.all().to_vec() }
}

/// What a day's accepted leave of the budget, as the ledger shows them, and else as they are configured. Where a ledger is followed, and
/// shows no day yet, it is not known. Where it isn't followed there is nothing to wait for.
fn allowed(plan: &Plan<'_>) -> Rule {
    let mut n = Numbers::default();
    let mut all = Vec::new();
    if plan.routes.iter().any(RoutePlan::is_followed) {
        all.push(format!("{BUDGET} * on (route) {DAILY}"));
    }
    for route in plan.routes.iter().filter(|route| route.ledger.is_some()) {
        let known = route.differs.accepted_per_day.map(|daily| daily * route.budget());
        let (number, why) = match known {
            Some(_) => (known, "`accepted_per_day` of the route, times its budget"),
            None => ((!route.is_followed()).then_some(0.0), "it is not known how many are accepted"),
        };
        if let Some(number) = number {
            let number =
                n.put("pending past the deadline in the budget of a day", number, Source::Derived, why);
            all.push(format!("label_replace(vector({number}), \"route\", \"{}\", \"\", \"\")", route.name));
        }
    }
    Rule::Record { name: ALLOWED, expr: all.join("\nor on (route) "), numbers: n.all().to_vec() }
}

/// So long do canaries of a route say nothing before it is told, in seconds: an expression by route.
pub(super) fn silence(n: &mut Numbers) -> String {
    let intervals = n.put(
        "intervals in which no canary said anything",
        3.0,
        Source::Chosen,
        "one canary may be blinded by a process that begins anew",
    );
    let deadlines = n.put(
        "deadlines that have passed",
        2.0,
        Source::Chosen,
        "a new beginning blinds those of one deadline, and they are settled a deadline later",
    );
    format!("{intervals} * {EVERY} + {deadlines} * {DEADLINE}")
}

/// Locations that have no say on a route: what they show of it is from before. Where it is paused everywhere, all stay as they were.
fn silent() -> Rule {
    let mut n = Numbers::default();
    let silence = silence(&mut n);
    let expr = format!(
        "group by (route, location) (time() - {UNMEASURED} > on (route) group_left () {silence})\n\
         or group by (route, location) ({PAUSED} == 1 and on (route) {PAUSED} == 0)"
    );
    Rule::Record { name: SILENT, expr, numbers: n.all().to_vec() }
}

/// Planned work is in the configuration. The store may be away in it, so that no loop succeeds: a page that is made is enough.
fn planned_work(n: &mut Numbers) -> String {
    let planned = newest(&f::CANARY_MAINTENANCE, "", n);
    let made = newest(&f::MONITOR_SNAPSHOT, "", n);
    let fresh = n.seconds(
        "seconds since what is shown was put together",
        RUNNER_FRESH,
        Source::Chosen,
        "it is each second, store or no store; this covers two failed scrapes a minute apart",
    );
    format!("{planned}\nand on (job, instance) time() - {made} < {fresh}")
}

fn runner() -> Rule {
    let mut n = Numbers::default();
    let loops = one_of("loop", &LOOPS.map(LoopName::word));
    let newest = newest(&f::MONITOR_LOOP_LAST_SUCCESS, &loops, &mut n);
    let fresh = n.seconds(
        "seconds since a loop last succeeded",
        RUNNER_FRESH,
        Source::Chosen,
        "loops try every second or more often; this covers two failed scrapes a minute apart",
    );
    let count = n.seconds(
        "loops that must run",
        Duration::from_secs(LOOPS.len() as u64),
        Source::Derived,
        "those without which nothing is known of canaries",
    );
    let expr = format!("count by (job, instance) (\ntime() - {newest} < {fresh}\n) == {count}");
    Rule::Record { name: RUNNER, expr, numbers: n.all().to_vec() }
}

/// How old a reading of a ledger may be before it counts as not seen.
fn reading_fresh(ledger: &Ledger) -> Duration {
    RUNNER_FRESH.max(ledger.freshness.get() + 2 * ledger.refresh_every.get() + Duration::from_secs(60))
}

fn readings(plan: &Plan<'_>) -> Rule {
    let mut n = Numbers::default();
    let each: Vec<_> = plan
        .ledgers
        .iter()
        .map(|ledger| {
            let newest = newest(&f::LEDGER_SNAPSHOT, &format!("ledger=\"{}\"", ledger.name), &mut n);
            let fresh = n.seconds(
                "seconds since the ledger was last read well",
                reading_fresh(ledger.ledger),
                Source::Derived,
                format!(
                    "`{}`: freshness {}, two refreshes of {} and a minute, at least 180",
                    ledger.name, ledger.ledger.freshness, ledger.ledger.refresh_every
                ),
            );
            format!("time() - {newest} < {fresh}")
        })
        .collect();
    Rule::Record { name: READING, expr: each.join("\nor "), numbers: n.all().to_vec() }
}

/// The newest values of a family of these ledgers' routes, each while its ledger's reading is fresh.
pub(super) fn read(
    ledgers: &[&LedgerPlan<'_>],
    family: &Family,
    selector: &str,
    numbers: &mut Numbers,
) -> String {
    let each: Vec<_> = ledgers
        .iter()
        .map(|ledger| {
            let names: Vec<_> = ledger.routes.iter().map(|route| route.as_str()).collect();
            let mut all = one_of("route", &names);
            if !selector.is_empty() {
                all = format!("{all}, {selector}");
            }
            let newest = newest(family, &all, numbers);
            format!("{newest}\nand on (job, instance) {READING}{{ledger=\"{}\"}}", ledger.name)
        })
        .collect();
    each.join("\nor ")
}
