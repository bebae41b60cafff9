//! Alerts on what is far above the route's own last week.
//!
//! The week ends before the surge may have begun, so that a surge isn't its own measure.

use super::{
    AlertRule,
    names::{ATTEMPTS, REJECTED, RETRIES, SUPPRESSED, SUPPRESSED_SHARE},
    of_routes,
    recorded::retried,
};
use crate::alerts::{
    catalog,
    number::{Numbers, Source},
    plan::Plan,
};

/// How many there must be at least.
const LEAST: f64 = 50.0;

pub(super) fn rules(plan: &Plan<'_>, rules: &mut Vec<AlertRule>) {
    if !plan.ledgers_with(|ledger| ledger.attempts.is_some()).is_empty() {
        let mut n = Numbers::default();
        let counted = format!("sum by (route) ({ATTEMPTS}{{{}}})", retried());
        let expr = surge(RETRIES, &counted, "1h", &mut n);
        let summary = "far more attempts than usual have to be tried again";
        rules.push(of_routes(&catalog::RETRY_SURGE, &expr, "15m", summary, n));
    }
    if !plan.ledgers_with(|ledger| ledger.notifications.is_some()).is_empty() {
        let mut n = Numbers::default();
        let expr = surge(REJECTED, REJECTED, "1d", &mut n);
        let summary = "far more recipients than usual are rejected";
        rules.push(of_routes(&catalog::REJECTIONS, &expr, "15m", summary, n));
        let mut n = Numbers::default();
        let expr = surge(SUPPRESSED_SHARE, SUPPRESSED, "6h", &mut n);
        let summary = "far more notifications than usual are suppressed";
        rules.push(of_routes(&catalog::SUPPRESSION, &expr, "15m", summary, n));
    }
}

/// Where `measure` is far above the mean of its last week, and `counted` is enough.
fn surge(measure: &str, counted: &str, before: &'static str, n: &mut Numbers) -> String {
    let week = n.span("time looked back", "7d", Source::Chosen, "a week has each day once");
    let before = n.span(
        "end of that week",
        before,
        Source::Chosen,
        "the window of the measure, which the surge may fill",
    );
    let times = n.put("times the usual", 3.0, Source::Chosen, "days differ by less");
    let least = n.put("least number", LEAST, Source::Chosen, "of fewer, a multiple is chance");
    format!(
        "{measure} > on (route) {times} * avg_over_time({measure}[{week}] offset {before})\n\
         and on (route) {counted} >= {least}"
    )
}
