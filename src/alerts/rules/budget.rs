//! How fast the error budget burns over real traffic, and what judges where too little goes on for that.
//!
//! A pair judges only where enough was accepted for `K` to be bad at its bound. So at least `K` are bad whenever it fires.

use super::{
    AlertRule,
    names::{ACCEPTED, BAD, BOOKS, BUDGET, MAINTENANCE, REWRITTEN},
    of_routes,
};
use crate::{
    alerts::{
        catalog::{self, Entry, Severity},
        eligibility::{DAY, DAYS, FAST, K_PAGE, K_TICKET, Pair, SLOW},
        number::{Numbers, Source, full},
        plan::{LeftOut, Plan, RoutePlan},
    },
    catalog::labels::Window,
};

/// The alerts and their pairs.
const ALERTS: [(&Entry, &[Pair]); 3] =
    [(&catalog::BURN_FAST, &[FAST]), (&catalog::BURN_SLOW, &[SLOW]), (&catalog::BURN_TICKET, &[DAY, DAYS])];

pub(super) fn rules(
    plan: &Plan<'_>,
    route: &RoutePlan<'_>,
    rules: &mut Vec<AlertRule>,
    left_out: &mut Vec<LeftOut>,
) {
    if !route.is_followed() {
        return;
    }
    for (entry, pairs) in ALERTS {
        let mut numbers = Numbers::default();
        let mut sides = Vec::new();
        for pair in pairs {
            match pair.could_judge(plan.period(), route.budget(), route.differs.accepted_per_day) {
                Ok(()) => sides.push(side(plan, route, *pair, &mut numbers)),
                Err(reason) => left_out.push(LeftOut {
                    alert: entry.name,
                    window: pair.long.word(),
                    route: route.name.clone(),
                    reason,
                }),
            }
        }
        if sides.is_empty() {
            continue;
        }
        let mut expr = format!("({})", sides.join("\nor "));
        if route.ledger.is_some_and(|ledger| ledger.partition.is_some()) {
            expr.push_str(&format!("\nunless on (route) {BOOKS}{{route=\"{}\"}}", route.name));
        }
        if let Some(ledger) = &route.route.ledger {
            expr.push_str(&format!("\nunless on () {REWRITTEN}{{ledger=\"{ledger}\"}}"));
        }
        if entry.severity == Severity::Page {
            expr.push_str(&format!("\nunless on (route) {MAINTENANCE}"));
        }
        rules.push(AlertRule {
            entry,
            severity: entry.severity,
            expr,
            hold: "1m",
            keep_firing: None,
            labels: vec![("route", route.name.to_string()), ("channel", route.route.channel.word().into())],
            summary: format!("{}: the error budget burns too fast", route.name),
            details: format!(
                "Bad share now: {{{{ $value | humanizePercentage }}}}. Provider: {}.",
                route.route.provider.as_deref().unwrap_or("not configured")
            ),
            numbers,
        });
    }
}

fn side(plan: &Plan<'_>, route: &RoutePlan<'_>, pair: Pair, n: &mut Numbers) -> String {
    let (period, budget) = (plan.period(), route.budget());
    let why = format!(
        "{} x a budget of {}: {} of the budget of {} gone in {}",
        full(pair.factor(period)),
        full(budget),
        full(pair.share),
        plan.alerts.slo_period,
        pair.long.word()
    );
    let bound = n.put("bad share", pair.bound(period, budget), Source::Derived, why);
    let why = format!("so that at least {} are bad at the bound", full(pair.k));
    let least = n.put("accepted in the window", pair.least_accepted(period, budget), Source::Derived, why);
    let of = |family: &str, window: Window| {
        format!("{family}{{route=\"{}\", window=\"{}\"}}", route.name, window.word())
    };
    let share = |window| format!("{} / on (route) ({} > 0)", of(BAD, window), of(ACCEPTED, window));
    format!(
        "{} > {bound}\nand on (route) {} > {bound}\nand on (route) {} >= {least}",
        share(pair.long),
        share(pair.short),
        of(ACCEPTED, pair.long)
    )
}

/// Repeated failures where no ratio is eligible now.
pub(super) fn low_volume(plan: &Plan<'_>) -> AlertRule {
    let mut n = Numbers::default();
    let day = Window::Day.word();
    let least = n.put("bad in a day", 2.0, Source::Chosen, "one bad event is no repetition");
    let mut expr = format!("max by (route) ({BAD}{{window=\"{day}\"}}) >= {least}");
    for (pair, k) in [(FAST, K_PAGE), (SLOW, K_PAGE), (DAY, K_TICKET)] {
        let window = pair.long.word();
        let why = format!("{} of the budget gone in {window}", full(pair.share));
        let factor = n.put("factor", pair.factor(plan.period()), Source::Derived, why);
        let k = n.put("bad at the bound", k, Source::Chosen, "a ratio of fewer says little");
        expr.push_str(&format!(
            "\nunless on (route) max by (route) ({ACCEPTED}{{window=\"{window}\"}}) * on (route) {BUDGET} * {factor} >= {k}"
        ));
    }
    of_routes(&catalog::LOW_VOLUME, &expr, "10m", "repeated failures, too few for a ratio", n)
}
