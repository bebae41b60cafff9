//! A world in which all is well: every series that rules read, from three processes at the configured locations.

use super::track::Seg;
use crate::{
    alerts::plan::{Plan, RoutePlan},
    catalog::{
        Family,
        bounds::{ATTEMPT_WINDOW, CAUSE_WINDOW, DISPOSITION_WINDOW, LEDGER_WINDOWS},
        families as f, hash_value,
        labels::{FollowerMode, GuardReason, LoopName, Window},
    },
    domain::{
        audit::compare::Change,
        disagreement::Disagreement,
        failure_evidence::Question,
        outcome::{Cause, Disposition, Outcome},
        verdict::Verdict,
    },
};
use std::collections::BTreeMap;

/// A series, and what it does while all is well.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its family.
    pub family: &'static Family,
    /// Its labels.
    pub labels: BTreeMap<&'static str, String>,
    /// What it does.
    pub normal: Seg,
}

impl Series {
    /// Its name and labels, in the notation of promtool.
    pub fn notation(&self) -> String {
        let labels: Vec<_> = self.labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
        format!("{}{{{}}}", self.family.name, labels.join(", "))
    }

    /// Whether it has all of these labels.
    pub fn has(&self, labels: &[(&'static str, String)]) -> bool {
        labels.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }
}

/// How many notifications are accepted in five minutes while all is well.
pub const ACCEPTED_IN_FIVE_MINUTES: f64 = 100.0;
/// The time between two canaries.
pub const EVERY: f64 = 300.0;
/// How many attempts of half an hour have to be tried again while all is well, of how many that deliver.
pub const RETRIED: (f64, f64) = (10.0, 600.0);
/// How many are rejected in a day, and suppressed in six hours, while all is well.
pub const FEW: f64 = 10.0;

/// How many were accepted in the last closed hour, by both counts, while all is well.
pub const ACCEPTED_ELSEWHERE: f64 = 1_200.0;

/// How many the exact count of the last closed hour has.
pub const COUNTED: f64 = 1_200.0;

/// How many comparisons of the sample a day has.
pub const COMPARED: f64 = 400.0;

/// How many are accepted in a window while all is well.
pub fn accepted(window: Window) -> f64 {
    ACCEPTED_IN_FIVE_MINUTES * window.duration().as_secs_f64() / 300.0
}

/// The processes: two at the first location, one at each other.
pub fn instances<'a>(plan: &Plan<'a>) -> Vec<(String, &'a str)> {
    let locations = plan.locations();
    let mut all: Vec<_> = locations.iter().map(|location| (format!("{location}-a"), *location)).collect();
    all.extend(locations.first().map(|location| (format!("{location}-b"), *location)));
    all
}

/// All series of a world with one route.
pub fn world(plan: &Plan<'_>, route: &RoutePlan<'_>) -> Vec<Series> {
    let mut all = Vec::new();
    for (instance, location) in instances(plan) {
        let mut put = |family: &'static Family, labels: &[(&'static str, &str)], normal| {
            let mut with =
                BTreeMap::from([("job", "delivery-canary".to_owned()), ("instance", instance.clone())]);
            with.extend(labels.iter().map(|(key, value)| (*key, (*value).to_owned())));
            all.push(Series { family, labels: with, normal });
        };
        of_canaries(&mut put, route, location);
        if route.ledger.is_some() {
            of_customers(&mut put, route);
        }
        for ledger in plan.ledgers.iter().map(|ledger| ("ledger", ledger.name)) {
            put(&f::LEDGER_SNAPSHOT, &[ledger], Seg::Ago(15.0));
            put(&f::LEDGER_TRUNCATED, &[ledger], Seg::Is(0.0));
            for kind in Change::VIOLATIONS.map(|kind| ("kind", kind.word())) {
                put(&f::LEDGER_HISTORY_VIOLATIONS, &[ledger, kind], Seg::Is(0.0));
            }
            put(&f::LEDGER_HISTORY_IN_SAMPLE, &[ledger], Seg::Is(0.0));
            put(&f::LEDGER_HISTORY_COMPARED, &[ledger], Seg::Is(COMPARED));
            put(&f::LEDGER_FOLLOWER, &[ledger, ("mode", FollowerMode::Following.word())], Seg::Is(1.0));
        }
        for name in [LoopName::Evidence, LoopName::Scheduler, LoopName::Settler] {
            put(&f::MONITOR_LOOP_LAST_SUCCESS, &[("loop", name.word())], Seg::Ago(5.0));
        }
        let receivers = plan.config.receivers.keys().map(|name| format!("receiver/{name}"));
        let ledgers = plan.ledgers.iter().map(|ledger| format!("ledger/{}", ledger.name));
        for observer in receivers.chain(ledgers) {
            put(&f::MONITOR_OBSERVER_UP, &[("observer", observer.as_str())], Seg::Is(1.0));
        }
        put(&f::MONITOR_STORE_UP, &[], Seg::Is(1.0));
        put(&f::MONITOR_RELOAD_SUCCESSFUL, &[], Seg::Is(1.0));
        put(&f::MONITOR_SNAPSHOT, &[], Seg::Ago(1.0));
        put(&f::MONITOR_CONFIG_HASH, &[], Seg::Is(hash_value(plan.hash.get())));
        put(&f::MONITOR_CLOCK_SKEW, &[("against", "store")], Seg::Is(0.1));
    }
    all
}

type Put<'a> = dyn FnMut(&'static Family, &[(&'static str, &str)], Seg) + 'a;

fn of_canaries(put: &mut Put<'_>, route: &RoutePlan<'_>, location: &str) {
    let name = ("route", route.name.as_str());
    let here = ("location", location);
    put(&f::CANARY_INTERVAL, &[name], Seg::Is(EVERY));
    put(&f::CANARY_LAST_SUBMIT, &[name, here], Seg::Ago(30.0));
    put(&f::CANARY_OVERDUE_SLOT, &[name, here], Seg::Absent);
    put(&f::CANARY_CONSECUTIVE_FAILURES, &[name, here], Seg::Is(0.0));
    for question in Question::ALL.map(|question| ("question", question.word())) {
        put(&f::CANARY_FAILURE_EVIDENCE, &[name, here, question], Seg::Is(0.0));
        put(&f::CANARY_FAILING_SINCE, &[name, here, question], Seg::Absent);
    }
    for verdict in Verdict::OUTSIDE.map(|verdict| ("verdict", verdict.word())) {
        put(&f::CANARY_UNMEASURED_SINCE, &[name, here, verdict], Seg::Absent);
    }
    let suppressed = ("verdict", Verdict::Suppressed.word());
    put(&f::CANARY_VERDICTS, &[name, here, suppressed], Seg::Is(0.0));
    let kind = ("kind", Disagreement::ALL[0].word());
    put(&f::CANARY_DISAGREEMENTS, &[name, kind], Seg::Absent);
    put(&f::CANARY_PAUSED, &[name], Seg::Is(0.0));
    put(&f::CANARY_MAINTENANCE, &[name], Seg::Is(0.0));
    put(&f::CANARY_GUARD_REFUSALS, &[name, ("reason", GuardReason::ALL[0].word())], Seg::Is(0.0));
    put(&f::CANARY_MISSED_SLOTS, &[name], Seg::Is(0.0));
    put(&f::ROUTE_DEADLINE, &[name], Seg::Is(route.route.deadline.get().as_secs_f64()));
    put(&f::ROUTE_OBJECTIVE, &[name], Seg::Is(1.0 - route.budget()));
}

fn of_customers(put: &mut Put<'_>, route: &RoutePlan<'_>) {
    let name = ("route", route.name.as_str());
    put(&f::LEDGER_PENDING_OVER_DEADLINE, &[name], Seg::Is(0.0));
    put(&f::LEDGER_OLDEST_PENDING_DUE, &[name], Seg::Absent);
    put(&f::LEDGER_OLDEST_UNKNOWN, &[name], Seg::Absent);
    if !route.is_followed() {
        return;
    }
    for window in LEDGER_WINDOWS {
        let label = ("window", window.word());
        put(&f::LEDGER_WINDOW_ACCEPTED, &[name, label], Seg::Is(accepted(*window)));
        put(&f::LEDGER_WINDOW_BAD, &[name, label], Seg::Is(0.0));
    }
    let window = ("window", ATTEMPT_WINDOW.word());
    let attempts =
        [(Outcome::Retryable, RETRIED.0), (Outcome::Unknown, 0.0), (Outcome::Delivered, RETRIED.1)];
    for (outcome, count) in attempts {
        put(&f::LEDGER_WINDOW_ATTEMPTS, &[name, window, ("outcome", outcome.word())], Seg::Is(count));
    }
    let suppressed = ("disposition", Disposition::Suppressed.word());
    let window = ("window", DISPOSITION_WINDOW.word());
    put(&f::LEDGER_WINDOW_NOTIFICATIONS, &[name, window, suppressed], Seg::Is(FEW));
    let (window, cause) = (("window", CAUSE_WINDOW.word()), ("cause", Cause::Recipient.word()));
    put(&f::LEDGER_WINDOW_REJECTED, &[name, window, cause], Seg::Is(FEW));
    put(&f::LEDGER_RESIDUE, &[name], Seg::Is(0.0));
    put(&f::LEDGER_COUNTED, &[name], Seg::Is(COUNTED));
    put(&f::LEDGER_CANARY_LEAKS, &[name], Seg::Is(0.0));
    if route.ledger.is_some_and(|ledger| ledger.accepted_elsewhere.is_some()) {
        put(&f::LEDGER_ACCEPTED_ELSEWHERE, &[name], Seg::Is(ACCEPTED_ELSEWHERE));
        put(&f::LEDGER_ACCEPTED_HERE, &[name], Seg::Is(ACCEPTED_ELSEWHERE));
    }
}
