//! Scenarios of the alerts on what canaries show.

use super::{
    About, Change, Scenario, about, change,
    track::{Pace, Seg},
    world::{EVERY, instances},
};
use crate::{
    alerts::{
        catalog,
        plan::{Plan, RoutePlan},
        rules::AlertRule,
    },
    catalog::families as f,
    config::{alerts::SlowSeverity, model::PageOn},
    domain::failure_evidence::Question,
};

/// A process whose loops stand still. Its page is scraped all the same, and shows old data.
pub(super) fn hung(instance: &str) -> Change {
    change(&f::MONITOR_LOOP_LAST_SUCCESS, &[], Seg::Is(-1_000.0)).always().at(instance)
}

/// All processes hang from the bad time on.
pub(super) fn all_hung() -> Change {
    change(&f::MONITOR_LOOP_LAST_SUCCESS, &[], Seg::Is(-1_000.0))
}

/// Evidence on a question at this many bounds, of failing for this many times `sustain`.
pub(super) fn evidence(route: &RoutePlan<'_>, question: Question, bounds: f64, sustains: f64) -> [Change; 2] {
    let label = [("question", question.word())];
    let configured = &route.route.evidence;
    let since = configured.sustain.get().as_secs_f64() * sustains;
    [
        change(&f::CANARY_FAILURE_EVIDENCE, &label, Seg::Is(configured.bound * bounds)),
        change(&f::CANARY_FAILING_SINCE, &label, Seg::Ago(since)),
    ]
}

/// These changes and others.
pub(super) fn and(changes: &[Change], others: &[Change]) -> Vec<Change> {
    changes.iter().chain(others).cloned().collect()
}

pub(super) fn maintenance() -> Change {
    change(&f::CANARY_MAINTENANCE, &[], Seg::Is(1.0))
}

pub(super) fn scenarios(plan: &Plan<'_>, alerts: &[&AlertRule], out: &mut Vec<Scenario>) {
    let Some(route) = plan.routes.first() else { return };
    for pages_when_slow in [false, true] {
        let slow = |route: &&RoutePlan<'_>| (route.differs.slow == SlowSeverity::Page) == pages_when_slow;
        if let Some(route) = plan.routes.iter().find(slow)
            && let Some(mut about) = about(plan, alerts, catalog::CANARY_SLOW.name, route, out)
        {
            sustained(&mut about, plan, route, Question::InTime, pages_when_slow);
            let lost = evidence(route, Question::Arrives, 1.1, 1.3);
            let late = evidence(route, Question::InTime, 1.1, 1.3);
            about.silent("they do not arrive at all", &and(&late, &lost));
        }
    }
    let any = plan.routes.iter().find(|route| route.route.page_on == PageOn::Any);
    for route in [Some(route), any].into_iter().flatten() {
        if let Some(mut about) = about(plan, alerts, catalog::CANARY_FAILING.name, route, out) {
            sustained(&mut about, plan, route, Question::Arrives, true);
        }
    }
    counted(plan, alerts, route, out);
    missing(plan, alerts, route, out);
    guard_and_pause(plan, alerts, route, out);
    slots(plan, alerts, route, out);
}

fn sustained(
    about: &mut About<'_>,
    plan: &Plan<'_>,
    route: &RoutePlan<'_>,
    question: Question,
    is_muted: bool,
) {
    let failing = evidence(route, question, 1.1, 1.3);
    about.fires("a sustained outage", &failing);
    let [value, since] = failing.clone();
    let Pace { before, during, .. } = about.pace;
    about.too_short(&[value, since.during(before, before + during)]);
    about.silent("an isolated failure", &evidence(route, question, 0.55, 1.3));
    about.silent("a blip", &evidence(route, question, 1.1, 0.7));
    about.silent("a hung monitor says that it fails", &and(&failing, &[all_hung()]));
    if is_muted {
        about.silent("planned work", &and(&failing, &[maintenance()]));
    }
    let all = instances(plan);
    let Some((replica, first)) = all.last() else { return };
    let another = Seg::Ago(1.0);
    let since = change(&f::CANARY_FAILING_SINCE, &[("question", question.word())], another);
    let mut with_replica = failing.to_vec();
    with_replica.retain(|change| change.family.name != f::CANARY_FAILING_SINCE.name);
    for (instance, _) in &all {
        let seg = if instance == replica { since.clone() } else { failing[1].clone() };
        with_replica.push(seg.at(instance));
    }
    about.fires("a hung replica says that it began just now", &and(&with_replica, &[hung(replica)]));
    if is_muted {
        let muted = [hung(replica), maintenance().at(replica)];
        about.fires("a hung replica says that work is planned", &and(&failing, &muted));
    }
    if plan.locations().len() == 2 {
        let here = failing.clone().map(|mut change| {
            change.labels.push(("location", (*first).to_owned()));
            change
        });
        match route.route.page_on {
            PageOn::Majority => about.silent("one of two locations", &here),
            PageOn::Any => about.fires("one of two locations", &here),
        }
        let other = all.iter().find(|(_, location)| location != first);
        if let Some((instance, _)) = other {
            about.fires("one of two locations, and the other can't look", &and(&here, &[hung(instance)]));
            if route.route.receipt.is_some() {
                let down = change(&f::MONITOR_OBSERVER_UP, &[], Seg::Is(0.0));
                about.fires(
                    "one of two locations, and the other's receivers prove nothing",
                    &and(&here, &[down.clone().at(instance)]),
                );
                about.fires("both locations, and no receiver proves anything now", &and(&failing, &[down]));
            }
        }
    }
}

fn counted(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let Some((replica, _)) = instances(plan).pop() else { return };
    let families = [
        (catalog::DISAGREEMENT.name, &f::CANARY_DISAGREEMENTS),
        (catalog::SUPPRESSED.name, &f::CANARY_VERDICTS),
    ];
    for (alert, family) in families {
        let Some(mut about) = about(plan, alerts, alert, route, out) else { continue };
        about.fires("three in a day", &[change(family, &[], Seg::Is(3.0))]);
        about.silent("one in a day", &[change(family, &[], Seg::Is(1.0))]);
        let stale = change(family, &[], Seg::Is(3.0)).at(&replica);
        about.silent("a hung replica says so", &[stale, hung(&replica)]);
        about.too_short(&[change(family, &[], Seg::Is(3.0))]);
    }
}

fn missing(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let Some((replica, _)) = instances(plan).pop() else { return };
    let Some(mut about) = about(plan, alerts, catalog::MISSING.name, route, out) else { return };
    let late = [change(&f::CANARY_LAST_SUBMIT, &[], Seg::Ago(EVERY * 4.0))];
    about.fires("no canary for four intervals", &late);
    about
        .silent("no canary for two intervals", &[change(&f::CANARY_LAST_SUBMIT, &[], Seg::Ago(EVERY * 2.0))]);
    about.silent("sending is paused", &and(&late, &[change(&f::CANARY_PAUSED, &[], Seg::Is(1.0))]));
    let loaded = change(&f::MONITOR_RELOAD_SUCCESS_TIME, &[], Seg::Ago(EVERY * 2.0)).always();
    about.silent("the route is new", &and(&late, &[loaded]));
    let never = change(&f::CANARY_LAST_SUBMIT, &[], Seg::Absent).always();
    let fired = about.fired.clone();
    let late_step = about.pace.late();
    about.add("it never ran", &[never], vec![(late_step, fired)]);
    let every = change(&f::CANARY_INTERVAL, &[], Seg::Is(1e6)).at(&replica);
    about.fires("a hung replica has another interval", &and(&late, &[every, hung(&replica)]));
    about.too_short(&late);
}

fn guard_and_pause(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    if let Some(mut about) = about(plan, alerts, catalog::GUARD.name, route, out) {
        about.pace = Pace::HOURS;
        let fired = about.fired.clone();
        let grows = |seg, from, until| change(&f::CANARY_GUARD_REFUSALS, &[], seg).during(from, until);
        let changes = [grows(Seg::Grows(1.0), 60, 65), grows(Seg::Is(4.0), 65, 140)];
        about.add("requests are stopped", &changes, vec![(59, vec![]), (85, fired), (135, vec![])]);
    }
    if let Some(mut about) = about(plan, alerts, catalog::PAUSED.name, route, out) {
        about.pace = Pace { step: 1_800, before: 4, during: 60, after: 8 };
        let fired = about.fired.clone();
        let paused = |from, until| [change(&f::CANARY_PAUSED, &[], Seg::Is(1.0)).during(from, until)];
        about.add("paused for more than a day", &paused(4, 64), vec![(3, vec![]), (62, fired), (70, vec![])]);
        about.add("paused for twenty hours", &paused(4, 44), vec![(43, vec![]), (46, vec![])]);
        about.add("paused since our eyes are open", &paused(0, 20), vec![(2, vec![]), (19, vec![])]);
    }
}

fn slots(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let Some((replica, _)) = instances(plan).pop() else { return };
    let Some(mut about) = about(plan, alerts, catalog::SLOTS.name, route, out) else { return };
    about.pace = Pace::HOURS;
    let fired = about.fired.clone();
    let missed = |count: f64| {
        let grows = change(&f::CANARY_MISSED_SLOTS, &[], Seg::Grows(count / 4.0)).during(60, 65);
        [grows, change(&f::CANARY_MISSED_SLOTS, &[], Seg::Is(count)).during(65, 140)]
    };
    let every = |seconds: f64| change(&f::CANARY_INTERVAL, &[], Seg::Is(seconds)).always();
    let fires = vec![(59, Vec::new()), (95, fired)];
    let silent = vec![(59, Vec::new()), (95, Vec::new())];
    about.add("four of seventy", &missed(4.0), fires.clone());
    about.add("two of seventy", &missed(2.0), silent.clone());
    about.add("thirty of two thousand", &and(&missed(30.0), &[every(10.0)]), fires.clone());
    about.add("fifteen of two thousand", &and(&missed(15.0), &[every(10.0)]), silent);
    let replica = [change(&f::CANARY_INTERVAL, &[], Seg::Is(0.1)).at(&replica).always(), hung(&replica)];
    about.add("a hung replica has another interval", &and(&missed(4.0), &replica), fires);
}
