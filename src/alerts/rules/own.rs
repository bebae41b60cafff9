//! Alerts on the monitor's own promise, and the Watchdog.

use super::{
    AlertRule,
    names::{EVERY, newest},
    of_monitor, of_routes,
};
use crate::{
    alerts::{
        catalog::{self, Severity},
        number::{Numbers, Source},
        plan::Plan,
    },
    catalog::{Family, families as f, hash_value},
};

pub(super) fn rules(plan: &Plan<'_>, rules: &mut Vec<AlertRule>) {
    rules.push(slots());
    rules.push(flag(&catalog::STORE, &f::MONITOR_STORE_UP, "the monitor's own store can't be used"));
    rules.push(flag(&catalog::RELOAD, &f::MONITOR_RELOAD_SUCCESSFUL, "a new configuration was refused"));
    rules.push(stale(plan));
    rules.push(skew());
    let mut watchdog = of_monitor(
        &catalog::WATCHDOG,
        "vector(1)".into(),
        "0m",
        "the alert path is alive",
        Numbers::default(),
    );
    watchdog.severity = Severity::None;
    rules.push(watchdog);
}

fn slots() -> AlertRule {
    let mut n = Numbers::default();
    let window = n.span(
        "time looked back",
        "6h",
        Source::Chosen,
        "long enough for slow routes, short enough to end the same day",
    );
    let seconds = n.put("seconds looked back", 21_600.0, Source::Derived, "six hours");
    let share = n.put("share of the slots", 0.01, Source::Chosen, "a start and a stop miss less");
    let least = n.put("missed slots", 3.0, Source::Chosen, "of a quarter-hourly route one is four per cent");
    let missed = format!("max by (route) (increase({}[{window}]))", f::CANARY_MISSED_SLOTS.name);
    let expr =
        format!("{missed} > on (route) {share} * {seconds} / {EVERY}\nand on (route) {missed} >= {least}");
    of_routes(&catalog::SLOTS, &expr, "0m", "slots of the schedule are missed", n)
}

/// Some process says no.
fn flag(entry: &'static catalog::Entry, family: &Family, summary: &str) -> AlertRule {
    let mut n = Numbers::default();
    let expr = format!("min({}) == 0", newest(family, "", &mut n));
    of_monitor(entry, expr, "10m", summary, n)
}

fn stale(plan: &Plan<'_>) -> AlertRule {
    let mut n = Numbers::default();
    let newest = newest(&f::MONITOR_CONFIG_HASH, "", &mut n);
    let why = format!("the configuration {} that these rules were made from", plan.hash);
    let hash = n.put("hash", hash_value(plan.hash.get()), Source::Derived, why);
    let expr = format!("count({newest} != {hash}) > 0");
    of_monitor(&catalog::RULES_STALE, expr, "10m", "these rules are of another configuration", n)
}

fn skew() -> AlertRule {
    let mut n = Numbers::default();
    let newest = newest(&f::MONITOR_CLOCK_SKEW, "", &mut n);
    let bound = n.put(
        "seconds of difference",
        60.0,
        Source::Chosen,
        "a ledger's ages of minutes are then wrong by a good part, and a machine's clock is kept by nobody",
    );
    let expr = format!("max by (against) (abs({newest})) > {bound}");
    of_monitor(&catalog::SKEW, expr, "10m", "the clock of {{ $labels.against }} differs from ours", n)
}
