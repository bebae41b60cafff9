//! The live view: routes, verdicts, pending ages, and what would page.

use crate::{
    domain::{
        failure_evidence::{Stream, Weights},
        route::RouteName,
        verdict::{Class, ExpectedEnd, Verdict},
    },
    monitor::{
        active::Active,
        snapshot::{RouteSnapshot, Snapshot},
    },
};
use chrono::{DateTime, Utc};
use std::fmt::Write;

/// What is known of one route, in words.
pub fn state(route: &RouteSnapshot, weights: &Weights) -> &'static str {
    if route.paused {
        return "paused";
    }
    match (route.arrives.is_sustained(weights), route.in_time.is_sustained(weights)) {
        (true, _) => "FAILING",
        (false, true) => "SLOW",
        _ if route.arrives.value > 0.0 || route.in_time.value > 0.0 => "in question",
        _ if route.newest_arrival.is_some() => "arriving",
        _ => "no canary yet",
    }
}

/// Whether a page would go out for this route.
pub fn would_page(route: &RouteSnapshot, weights: &Weights) -> bool {
    !route.maintenance && route.arrives.is_sustained(weights)
}

/// The whole view, lines without an end of line, none longer than 120 characters. While it is starting, what can't be seen is not down.
pub fn render(
    active: &Active,
    snapshot: &Snapshot,
    faults: &[String],
    is_starting: bool,
    now: DateTime<Utc>,
) -> Vec<String> {
    let mut lines = vec![sight(snapshot, is_starting), faults_on(faults), String::new()];
    lines.push(format!(
        "{:<26} {:<13} {:>21} {:>9}  {:<10} {:>8} {:>8} {:>6}  {}",
        "route",
        "state",
        "good/bad/out/unknown",
        "evidence",
        "stops at",
        "arrived",
        "pending",
        "oldest",
        "page"
    ));
    for (name, route) in &snapshot.routes {
        if let Some(rules) = active.routes.get(name) {
            lines.push(row(name, route, &rules.weights, snapshot, now));
        }
    }
    lines.push(String::new());
    lines.push(verdicts(snapshot));
    lines
}

fn sight(snapshot: &Snapshot, is_starting: bool) -> String {
    let up = |is_up| match (is_up, is_starting) {
        (true, _) => "yes",
        (false, true) => "starting",
        (false, false) => "NO",
    };
    let mut line = format!("can we see?   store {}", up(snapshot.store_up));
    for (observer, is_up) in &snapshot.observers {
        // Writing to a string can't fail.
        let _ = write!(line, "   {observer} {}", up(*is_up));
    }
    line
}

fn faults_on(faults: &[String]) -> String {
    if faults.is_empty() {
        "faults        none".to_owned()
    } else {
        format!("faults        {}", faults.join(", "))
    }
}

fn row(
    name: &RouteName,
    route: &RouteSnapshot,
    weights: &Weights,
    snapshot: &Snapshot,
    now: DateTime<Utc>,
) -> String {
    // The demo's routes all expect their canaries to arrive.
    let of =
        |class: Class| route.verdicts.iter().filter(move |(v, _)| v.class(ExpectedEnd::Delivered) == class);
    let count = |class: Class| of(class).map(|(_, n)| n).sum::<u64>();
    let counts = Class::ALL.map(|class| count(class).to_string()).join("/");
    let evidence = strongest(route);
    let pending = snapshot.pending();
    let pending = pending.get(name.as_str());
    // The demo has one ledger.
    let is_cut =
        snapshot.ledgers.values().any(|ledger| ledger.pending.as_ref().is_some_and(|p| p.is_truncated()));
    let waiting = pending.map(|p| p.scheduled + p.unattempted + p.retrying + p.unknown);
    format!(
        "{:<26} {:<13} {:>21} {:>9}  {:<10} {:>8} {:>8} {:>6}  {}",
        name.as_str(),
        state(route, weights),
        counts,
        format!("{:.1}/{:.0}", evidence.value, weights.bound),
        route.stopped_at.map_or("", |s| s.word()),
        ago(route.newest_arrival, now),
        waiting.map_or_else(|| "?".to_owned(), |n| format!("{}{n}", if is_cut { ">=" } else { "" })),
        ago(pending.and_then(|p| p.oldest_due), now),
        if would_page(route, weights) { "WOULD PAGE" } else { "" },
    )
}

fn strongest(route: &RouteSnapshot) -> &Stream {
    if route.in_time.value > route.arrives.value { &route.in_time } else { &route.arrives }
}

fn ago(at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> String {
    at.map_or_else(String::new, |at| format!("{}s", (now - at).num_seconds()))
}

fn verdicts(snapshot: &Snapshot) -> String {
    let total =
        |verdict: Verdict| snapshot.routes.values().filter_map(|r| r.verdicts.get(&verdict)).sum::<u64>();
    let seen: Vec<String> = Verdict::ALL
        .into_iter()
        .filter(|verdict| total(*verdict) > 0)
        .map(|verdict| format!("{} {}", verdict.word(), total(verdict)))
        .collect();
    format!("verdicts      {}", if seen.is_empty() { "none yet".to_owned() } else { seen.join("   ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::snapshot::Observer;
    use std::collections::BTreeMap;

    #[test]
    fn what_was_not_looked_at_yet_is_not_said_to_be_down() {
        let observers = BTreeMap::from([(Observer::Ledger("attempts".into()), false)]);
        let snapshot = Snapshot { store_up: true, observers, ..Snapshot::default() };
        assert_eq!(sight(&snapshot, true), "can we see?   store yes   ledger/attempts starting");
        assert_eq!(sight(&snapshot, false), "can we see?   store yes   ledger/attempts NO");
    }
}
