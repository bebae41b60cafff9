//! Makes every family anew, at each scrape, from the newest snapshot and the counts of this process.
//!
//! Nothing is kept between scrapes, so what is no longer configured is no longer exported.

use super::page::Page;
use crate::{
    catalog::{
        FAMILIES,
        bounds::{ATTEMPT_WINDOW, CANARY_WINDOWS, CAUSE_WINDOW, DISPOSITION_WINDOW},
        families as f, hash_value,
        labels::{FollowerMode, GuardReason, ReceiptResult, Stage, SubmissionLabel},
    },
    domain::{
        audit::compare::Change,
        failure_evidence::Question,
        pending::{AGE_BOUNDS_SECONDS, PendingState},
        verdict::{Class, Verdict},
    },
    monitor::{
        counters::{Counters, Distribution},
        snapshot::{RouteSnapshot, Snapshot, SnapshotCell},
    },
};
use prometheus::{
    Registry,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::{collections::HashMap, sync::Arc};

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The source revision of this build, from `DELIVERY_CANARY_REVISION` at build time.
pub const REVISION: &str = match option_env!("DELIVERY_CANARY_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

/// The collector of everything but the process metrics.
struct SnapshotCollector {
    cell: Arc<SnapshotCell>,
    counters: Arc<Counters>,
    descriptions: Vec<Desc>,
}

/// A registry of our own with all families, and those of the process.
///
/// # Errors
/// When a name or a label of the catalog is not one that Prometheus takes, or is there twice.
pub fn registry(cell: Arc<SnapshotCell>, counters: Arc<Counters>) -> Result<Registry, prometheus::Error> {
    let describe = |family: &&crate::catalog::Family| {
        let labels = family.labels.iter().map(|label| label.name().to_owned()).collect();
        Desc::new(family.name.into(), family.help.into(), labels, HashMap::new())
    };
    let descriptions = FAMILIES.iter().map(describe).collect::<Result<_, _>>()?;
    let registry = Registry::new();
    registry.register(Box::new(SnapshotCollector { cell, counters, descriptions }))?;
    #[cfg(target_os = "linux")]
    registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
    Ok(registry)
}

impl Collector for SnapshotCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let snapshot = self.cell.load();
        let mut page = Page::default();
        let location = snapshot.location.as_ref().map_or("", |location| location.as_str());
        for (name, route) in &snapshot.routes {
            facts(&mut page, name.as_str(), route);
            canaries(&mut page, name.as_str(), location, route);
        }
        pending(&mut page, &snapshot);
        flows(&mut page, &snapshot);
        ledgers(&mut page, &snapshot);
        monitor(&mut page, &snapshot);
        counts(&mut page, &self.counters);
        page.into_families()
    }
}

fn facts(page: &mut Page, name: &str, route: &RouteSnapshot) {
    let facts = &route.facts;
    let provider = facts.provider.as_deref().unwrap_or("");
    page.set(&f::ROUTE_DEADLINE, &[name], facts.deadline.as_secs_f64());
    page.set(&f::ROUTE_OBJECTIVE, &[name], facts.objective);
    let labels = [name, facts.channel.word(), provider, facts.volume_class.word()];
    page.set(&f::ROUTE_INFO, &labels, 1.0);
    page.set(&f::CANARY_INTERVAL, &[name], facts.interval.as_secs_f64());
    page.flag(&f::CANARY_PAUSED, &[name], route.paused);
    page.flag(&f::CANARY_MAINTENANCE, &[name], route.maintenance);
}

fn canaries(page: &mut Page, name: &str, location: &str, route: &RouteSnapshot) {
    let here = [name, location];
    page.time(&f::CANARY_LAST_SUBMIT, &here, route.newest_submission);
    page.time(&f::CANARY_OVERDUE_SLOT, &here, route.overdue_slot);
    page.time(&f::CANARY_LAST_ARRIVAL, &here, route.newest_arrival);
    // What is not known yet is no 0: a process that begins in an incident would end its page.
    if route.is_folded {
        page.count(&f::CANARY_CONSECUTIVE_FAILURES, &here, route.arrives.consecutive.into());
    }
    let streams = [(Question::Arrives, &route.arrives), (Question::InTime, &route.in_time)];
    for (question, stream) in streams.into_iter().filter(|_| route.is_folded) {
        let labels = [name, location, question.word()];
        page.set(&f::CANARY_FAILURE_EVIDENCE, &labels, stream.value);
        page.time(&f::CANARY_FAILING_SINCE, &labels, stream.failing_since);
    }
    if let Some(stage) = route.stopped_at {
        page.flag(&f::CANARY_STOPPED_AT, &[name, location, stage.word()], true);
    }
    if let Some(unmeasured) = route.unmeasured {
        let labels = [name, location, unmeasured.verdict.word()];
        page.time(&f::CANARY_UNMEASURED_SINCE, &labels, Some(unmeasured.since));
    }
    for window in CANARY_WINDOWS {
        let sums = route.windows.get(window);
        for class in Class::ALL {
            let count = sums.and_then(|sums| sums.get(&class)).copied().unwrap_or(0);
            page.count(&f::CANARY_WINDOW, &[name, location, window.word(), class.word()], count);
        }
    }
    for verdict in Verdict::ALL {
        let count = route.verdicts.get(&verdict).copied().unwrap_or(0);
        page.count(&f::CANARY_VERDICTS, &[name, location, verdict.word()], count);
    }
    for ((arm, class), count) in &route.controls {
        page.count(&f::CANARY_CONTROLS, &[name, location, arm, class.word()], *count);
    }
    page.count(&f::CANARY_IN_FLIGHT, &here, route.in_flight);
    page.time(&f::CANARY_OLDEST_IN_FLIGHT, &here, route.oldest_in_flight);
    for (kind, count) in route.disagreements.iter().filter(|(_, count)| **count > 0) {
        page.count(&f::CANARY_DISAGREEMENTS, &[name, kind.word()], *count);
    }
}

/// The pending of every route that is in a good reading; lower bounds where that was cut.
fn pending(page: &mut Page, snapshot: &Snapshot) {
    for (name, counts) in snapshot.pending() {
        for state in PendingState::ALL {
            page.count(&f::LEDGER_PENDING, &[name, state.word()], counts.in_state(state));
        }
        #[allow(clippy::cast_precision_loss, reason = "the bounds are small whole numbers")]
        let bounds = AGE_BOUNDS_SECONDS.iter().map(|bound| *bound as f64);
        page.histogram(&f::LEDGER_PENDING_AGE, &[name], bounds, &counts.ages, counts.age_sum_seconds);
        if let Some(over) = counts.over_deadline {
            page.count(&f::LEDGER_PENDING_OVER_DEADLINE, &[name], over);
        }
        page.time(&f::LEDGER_OLDEST_PENDING_DUE, &[name], counts.oldest_due);
        page.time(&f::LEDGER_OLDEST_UNKNOWN, &[name], counts.oldest_unknown);
    }
}

/// What real traffic came to, on every route of a ledger that is followed.
fn flows(page: &mut Page, snapshot: &Snapshot) {
    for (name, flow) in snapshot.flows() {
        for (window, count) in &flow.accepted {
            page.count(&f::LEDGER_WINDOW_ACCEPTED, &[name, window.word()], *count);
        }
        for (window, count) in &flow.bad {
            page.count(&f::LEDGER_WINDOW_BAD, &[name, window.word()], *count);
        }
        for (disposition, count) in &flow.dispositions {
            let labels = [name, DISPOSITION_WINDOW.word(), disposition.word()];
            page.count(&f::LEDGER_WINDOW_NOTIFICATIONS, &labels, *count);
        }
        for (cause, count) in &flow.rejected {
            page.count(&f::LEDGER_WINDOW_REJECTED, &[name, CAUSE_WINDOW.word(), cause.word()], *count);
        }
        for (outcome, count) in &flow.attempts {
            page.count(&f::LEDGER_WINDOW_ATTEMPTS, &[name, ATTEMPT_WINDOW.word(), outcome.word()], *count);
        }
        if let Some(stuck) = flow.stuck_before_baseline {
            page.count(&f::LEDGER_STUCK_BEFORE_BASELINE, &[name], stuck);
        }
        page.count(&f::LEDGER_CANARY_LEAKS, &[name], flow.leaks);
        if let Some(residue) = flow.residue {
            page.count(&f::LEDGER_RESIDUE, &[name], residue.notifications);
            page.count(&f::LEDGER_COUNTED, &[name], residue.counted);
        }
        if let Some(accepted) = flow.accepted_in_hour {
            page.count(&f::LEDGER_ACCEPTED_ELSEWHERE, &[name], accepted.elsewhere.least);
            page.count(&f::LEDGER_ACCEPTED_HERE, &[name], accepted.here);
        }
    }
}

fn ledgers(page: &mut Page, snapshot: &Snapshot) {
    for (name, ledger) in &snapshot.ledgers {
        let labels = [name.as_str()];
        page.time(&f::LEDGER_SNAPSHOT, &labels, ledger.pending_read_at);
        if let Some(reading) = &ledger.pending {
            page.count(&f::LEDGER_FOLDED_ROUTES, &labels, reading.at_least().folded_rows);
            page.flag(&f::LEDGER_TRUNCATED, &labels, reading.is_truncated());
        }
        for mode in FollowerMode::ALL {
            page.flag(&f::LEDGER_FOLLOWER, &[name, mode.word()], ledger.flow.mode == mode);
        }
        page.time(&f::LEDGER_FOLLOWED_UNTIL, &labels, ledger.flow.followed_until);
        if let Some(held) = ledger.flow.held {
            page.count(&f::LEDGER_FOLLOWED_NOTIFICATIONS, &labels, held);
        }
        if let Some(figures) = &ledger.flow.figures {
            let found = figures.routes.values().map(|route| route.came_behind).sum();
            page.count(&f::LEDGER_DATED_BACK, &labels, found);
        }
        if let Some(unseen) = ledger.flow.unseen {
            page.count(&f::LEDGER_PENDING_UNSEEN, &labels, unseen);
        }
        if let Some(is_so) = ledger.flow.as_first_decided {
            page.flag(&f::LEDGER_AS_FIRST_DECIDED, &labels, is_so);
        }
        if let Some(overdue) = ledger.flow.overdue {
            page.count(&f::LEDGER_HISTORY_OVERDUE, &labels, overdue);
        }
        if let Some(can_write) = ledger.role_can_write {
            page.flag(&f::LEDGER_ROLE_CAN_WRITE, &labels, can_write);
        }
        if let Some(lag) = ledger.lag {
            page.set(&f::LEDGER_LAG, &labels, lag.as_secs_f64());
        }
        let found = |change: Change| ledger.history.found.get(&change).copied().unwrap_or(0);
        for change in Change::VIOLATIONS {
            page.count(&f::LEDGER_HISTORY_VIOLATIONS, &[name, change.word()], found(change));
        }
        page.count(&f::LEDGER_HISTORY_IN_SAMPLE, &labels, ledger.violations_in_sample);
        page.count(&f::LEDGER_LATE_REVERSALS, &labels, found(Change::LateReversal));
        page.count(&f::LEDGER_HISTORY_COMPARED, &labels, ledger.history.compared);
    }
}

fn monitor(page: &mut Page, snapshot: &Snapshot) {
    for (observer, up) in &snapshot.observers {
        page.flag(&f::MONITOR_OBSERVER_UP, &[&observer.to_string()], *up);
    }
    for (name, at) in &snapshot.loops {
        page.time(&f::MONITOR_LOOP_LAST_SUCCESS, &[name.word()], Some(*at));
    }
    for (clock, ahead) in &snapshot.clock_skew {
        page.set(&f::MONITOR_CLOCK_SKEW, &[&clock.to_string()], ahead.as_seconds_f64());
    }
    page.time(&f::MONITOR_SNAPSHOT, &[], snapshot.taken_at);
    page.flag(&f::MONITOR_STORE_UP, &[], snapshot.store_up);
    let configuration = &snapshot.configuration;
    page.flag(&f::MONITOR_RELOAD_SUCCESSFUL, &[], configuration.last_reload_successful);
    page.time(&f::MONITOR_RELOAD_SUCCESS_TIME, &[], configuration.last_reload_success);
    page.set(&f::MONITOR_CONFIG_HASH, &[], hash_value(configuration.hash));
    page.set(&f::MONITOR_BUILD_INFO, &[VERSION, REVISION], 1.0);
}

fn counts(page: &mut Page, counters: &Counters) {
    let spread = |page: &mut Page, family, labels: &[&str], held: Distribution| {
        page.histogram(family, labels, held.bounds, &held.buckets, held.sum);
    };
    for (name, route) in counters.routes().iter() {
        let name = name.as_str();
        for result in SubmissionLabel::ALL {
            let count = route.submissions(result).get();
            page.count(&f::CANARY_SUBMISSIONS, &[name, result.word()], count);
        }
        for reason in GuardReason::ALL {
            let count = route.guard_refusals(reason).get();
            page.count(&f::CANARY_GUARD_REFUSALS, &[name, reason.word()], count);
        }
        page.count(&f::CANARY_MISSED_SLOTS, &[name], route.missed_slots.get());
        for stage in Stage::ALL {
            spread(page, &f::CANARY_STAGE, &[name, stage.word()], route.stage(stage).read());
        }
    }
    for (name, ledger) in counters.ledgers().iter() {
        let labels = [name.as_str()];
        spread(page, &f::LEDGER_READ, &labels, ledger.read_seconds.read());
        page.count(&f::LEDGER_ROWS_READ, &labels, ledger.rows_read.get());
        page.count(&f::LEDGER_UNMAPPED_STATUSES, &labels, ledger.unmapped_statuses.get());
        page.count(&f::LEDGER_REFUSED_TIMES, &labels, ledger.refused_times.get());
    }
    for (name, receiver) in counters.receivers().iter() {
        for result in ReceiptResult::ALL {
            let count = receiver.results(result).get();
            page.count(&f::MONITOR_RECEIPTS, &[name, result.word()], count);
        }
    }
    for stage in Stage::ALL {
        page.count(&f::MONITOR_NEGATIVE_STAGES, &[stage.word()], counters.negative_stages(stage).get());
    }
}
