//! Scenarios of the alerts on what canaries show.

use super::{
    About, Change, Scenario, about, change,
    monitor::unmeasured_after,
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
    domain::{failure_evidence::Question, verdict::Verdict},
};

/// A process whose loops stand still. Its page is scraped all the same, and shows old data.
pub(super) fn hung(instance: &str) -> Change {
    change(&f::MONITOR_LOOP_LAST_SUCCESS, &[], Seg::Is(-1_000.0)).always().at(instance)
}

/// Nor is its page made anew: not even what is configured is shown as it is now.
pub(super) fn shows_old_pages(instance: &str) -> [Change; 2] {
    [hung(instance), change(&f::MONITOR_SNAPSHOT, &[], Seg::Is(-1_000.0)).always().at(instance)]
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
            let begun = evidence(route, Question::Arrives, 1.1, 0.7);
            about.fires("they have only begun not to arrive", &and(&late, &begun));
            let all = instances(plan);
            let first = all.first().map(|(_, location)| *location);
            let other = all.iter().find(|(_, location)| Some(*location) != first);
            if let (Some(first), Some((other, _)), Some(_)) = (first, other, &route.route.receipt)
                && route.route.page_on == PageOn::Majority
            {
                let here = lost.map(|change| change.labelled("location", first));
                let down = change(&f::MONITOR_OBSERVER_UP, &[], Seg::Is(0.0)).at(other);
                let changes = and(&late, &and(&here, &[down]));
                about.silent("they do not arrive at all, by those that can look", &changes);
            }
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
    let all = instances(plan);
    if let Some((replica, _)) = all.last() {
        let [value, since] = failing.clone().map(|change| change.at(replica));
        let unseen = Change { seg: Seg::Is(0.0), ..value };
        let others = all.iter().filter(|(instance, _)| instance != replica);
        let mut known: Vec<_> =
            others.flat_map(|(instance, _)| failing.clone().map(|change| change.at(instance))).collect();
        let later = Change { seg: Seg::Ago(route.route.evidence.sustain.get().as_secs_f64() * 0.7), ..since };
        known.push(unseen);
        about.fires("one replica does not know it yet", &known);
        known.pop();
        known.extend([failing[0].clone().at(replica), later]);
        if route.route.page_on == PageOn::Majority && plan.locations().len() == 2 {
            about.silent("one replica says that it began later", &known);
        }
    }
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
        let muted = and(&shows_old_pages(replica), &[maintenance().at(replica)]);
        about.fires("a hung replica says that work is planned", &and(&failing, &muted));
    }
    if plan.locations().len() == 2 && route.route.page_on == PageOn::Majority {
        voteless(about, plan, route, question);
    }
    if plan.locations().len() == 2 {
        let here = failing.clone().map(|change| change.labelled("location", first));
        match route.route.page_on {
            PageOn::Majority => about.silent("one of two locations", &here),
            PageOn::Any => about.fires("one of two locations", &here),
        }
        let other = all.iter().find(|(_, location)| location != first);
        if let Some((instance, _)) = other {
            about.fires("one of two locations, and the other can't look", &and(&here, &[hung(instance)]));
            let there = failing.clone().map(|change| change.at(instance));
            if route.route.page_on == PageOn::Majority {
                let half =
                    evidence(route, question, 0.55, 1.3).map(|change| change.labelled("location", first));
                about.silent(
                    "one of two locations, and each process of the other has half of it",
                    &and(&there, &half),
                );
            }
            match route.route.page_on {
                PageOn::Majority => about.silent("the other of two locations", &there),
                PageOn::Any => about.fires("the other of two locations", &there),
            }
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

/// One of two locations fails, and the other has no say: it is paused there, or its canaries say nothing.
fn voteless(about: &mut About<'_>, plan: &Plan<'_>, route: &RoutePlan<'_>, question: Question) {
    let failing = &evidence(route, question, 1.1, 1.3);
    let all = instances(plan);
    let Some((replica, first)) = all.last() else { return };
    let Some((other, _)) = all.iter().find(|(_, location)| location != first) else { return };
    let Some((sibling, _)) = all.iter().find(|(name, location)| location == first && name != replica) else {
        return;
    };
    let here = failing.clone().map(|change| change.labelled("location", first));
    let there = failing.clone().map(|change| change.at(other));
    let paused = change(&f::CANARY_PAUSED, &[], Seg::Is(1.0));
    let elsewhere = and(&here, &[paused.clone().at(other)]);
    about.fires("one of two locations, and the other is paused", &elsewhere);
    about.through_gap("one of two locations, and the other is paused", &elsewhere);
    if question == Question::InTime {
        // That they do not arrive at all is another alert's.
        let lost =
            evidence(route, Question::Arrives, 1.1, 1.3).map(|change| change.labelled("location", first));
        about.silent(
            "they do not arrive at one of two locations, and the other is paused",
            &and(&elsewhere, &lost),
        );
    }
    about.silent("one of two locations, and both are paused", &and(&here, std::slice::from_ref(&paused)));
    let one = paused.at(replica);
    about.silent(
        "one of two locations, and a process of the other says that it is paused",
        &and(&there, std::slice::from_ref(&one)),
    );
    about.fires(
        "one of two locations, and of the other only a hung process says that it sends",
        &and(&there, &[one, hung(sibling)]),
    );
    let quiet = |seconds: f64| {
        change(&f::CANARY_UNMEASURED_SINCE, &[("verdict", Verdict::Suppressed.word())], Seg::Ago(seconds))
            .at(other)
    };
    let after = unmeasured_after(route);
    about.fires(
        "one of two locations, and the other's canaries say nothing",
        &and(&here, &[quiet(after + 20.0)]),
    );
    about.silent(
        "one of two locations, and the other's canaries say nothing, but not for long",
        &and(&here, &[quiet(after - 20.0)]),
    );
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
        about.fires("three in a day, by one process", &[change(family, &[], Seg::Is(3.0)).at(&replica)]);
        let mixed = instances(plan).into_iter().map(|(instance, _)| {
            let count = if instance == replica { 3.0 } else { 1.0 };
            change(family, &[], Seg::Is(count)).at(&instance)
        });
        about.fires("three in a day by one process, and one by each other", &mixed.collect::<Vec<_>>());
        about.silent("one in a day", &[change(family, &[], Seg::Is(1.0))]);
        let stale = change(family, &[], Seg::Is(3.0)).at(&replica);
        about.silent("a hung replica says so", &[stale, hung(&replica)]);
        about.too_short(&[change(family, &[], Seg::Is(3.0))]);
    }
}

fn missing(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let Some((replica, _)) = instances(plan).pop() else { return };
    let Some(mut about) = about(plan, alerts, catalog::MISSING.name, route, out) else { return };
    let since = |intervals: f64| change(&f::CANARY_OVERDUE_SLOT, &[], Seg::Ago(EVERY * intervals));
    let late = [since(3.0)];
    about.fires("no canary for three intervals after a slot", &late);
    about.silent("no canary for one interval and a half after a slot", &[since(1.5)]);
    about.silent(
        "the night of a schedule of office hours",
        &[change(&f::CANARY_LAST_SUBMIT, &[], Seg::Ago(EVERY * 50.0))],
    );
    let one: Vec<_> = instances(plan)
        .iter()
        .map(|(instance, _)| since(if *instance == replica { 3.0 } else { 0.5 }).at(instance))
        .collect();
    about.fires("no canary from one process for three intervals", &one);
    let every = change(&f::CANARY_INTERVAL, &[], Seg::Is(1e6)).at(&replica);
    about.fires("a hung replica has another interval", &and(&late, &[every, hung(&replica)]));
    let older = change(&f::CANARY_INTERVAL, &[], Seg::Is(EVERY / 3.0)).at(&replica);
    about.silent("a process of an older configuration has another interval", &[since(1.5), older]);
    about.silent("a hung replica has sent none", &[since(3.0).at(&replica), hung(&replica)]);
    about.too_short(&late);
    // Hours of three days and more, of processes that begin anew before a slot comes.
    about.pace = Pace { step: 3_600, before: 4, during: 72, after: 6 };
    let never = change(&f::CANARY_LAST_SUBMIT, &[], Seg::Absent).always();
    let every = |days: f64| change(&f::CANARY_INTERVAL, &[], Seg::Is(days * 86_400.0)).always();
    let paused = change(&f::CANARY_PAUSED, &[], Seg::Is(1.0)).during(60, 66).at(&replica);
    let removed = change(&f::CANARY_INTERVAL, &[], Seg::Absent).during(70, 82);
    let fires = vec![(70, Vec::new()), (75, about.fired.clone())];
    let silent = vec![(75, Vec::new())];
    about.add("it never ran", std::slice::from_ref(&never), fires.clone());
    about.add("it never ran, once a day", &[never.clone(), every(1.0)], fires);
    about.add("it never ran, every two days", &[never.clone(), every(2.0)], silent.clone());
    about.add(
        "it never ran, and one was paused a while ago",
        &[never.clone(), paused.clone()],
        silent.clone(),
    );
    let all = Change { labels: Vec::new(), ..paused };
    about.add("it never ran, and was paused a while ago", &[never.clone(), all], silent.clone());
    about.add("it never ran, and is no longer configured", &[never, removed], silent.clone());
    about.add("it has been known for days, and runs", &[], silent);
}

fn guard_and_pause(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    if let Some(mut about) = about(plan, alerts, catalog::GUARD.name, route, out) {
        about.pace = Pace { step: 3_600, before: 4, during: 80, after: 6 };
        let fired = about.fired.clone();
        let grows = |seg, from, until| change(&f::CANARY_GUARD_REFUSALS, &[], seg).during(from, until);
        let changes = [grows(Seg::Grows(1.0), 10, 14), grows(Seg::Is(3.0), 14, 90)];
        let checks = vec![(9, vec![]), (16, fired.clone()), (60, fired), (88, vec![])];
        about.add("requests are stopped", &changes, checks.clone());
        let replica = instances(plan).pop().map(|(instance, _)| instance).unwrap_or_default();
        about.add("one process stops requests", &changes.map(|change| change.at(&replica)), checks);
    }
    if let Some(mut about) = about(plan, alerts, catalog::PAUSED.name, route, out) {
        pauses(plan, &mut about);
    }
}

fn pauses(plan: &Plan<'_>, about: &mut About<'_>) {
    about.pace = Pace { step: 1_800, before: 4, during: 60, after: 8 };
    let fired = about.fired.clone();
    let all = instances(plan);
    let Some((last, others)) = all.split_last() else { return };
    let does = |seg, from, until| change(&f::CANARY_PAUSED, &[], seg).during(from, until);
    let paused = |from, until| does(Seg::Is(1.0), from, until);
    let gone = |from, until| does(Seg::Absent, from, until);
    // Of the last process, and of each of the others.
    let of = |one: &[Change], rest: &[Change]| -> Vec<Change> {
        let rest = others
            .iter()
            .flat_map(|(instance, _)| rest.iter().map(move |change| change.clone().at(instance)));
        one.iter().map(|change| change.clone().at(&last.0)).chain(rest).collect()
    };
    let fires = || vec![(3, vec![]), (62, fired.clone()), (70, vec![])];
    about.add("paused for more than a day", &[paused(4, 64)], fires());
    about.add("paused for twenty hours", &[paused(4, 44)], vec![(43, vec![]), (46, vec![])]);
    about.add("paused since our eyes are open", &[paused(0, 20)], vec![(2, vec![]), (19, vec![])]);
    let born = of(&[gone(0, 52), paused(52, 72)], &[paused(4, 10), paused(50, 72)]);
    about.add("a pause a day after another, and a process that began in it", &born, vec![(56, vec![])]);
    let replaced = of(&[gone(0, 38), paused(38, 64)], &[paused(4, 40), gone(40, 72)]);
    about.add("processes are replaced in a pause of more than a day", &replaced, fires());
    about.add("paused in one of two stores for more than a day", &of(&[paused(4, 64)], &[]), fires());
    let ended = of(&[paused(4, 52), gone(52, 72)], &[paused(4, 52)]);
    about.add("a process that knew nothing but the pause is gone", &ended, vec![(56, vec![])]);
    let day = 24 * 60;
    about.pace = Pace { step: 60, before: 10, during: day + 30, after: 5 };
    let late = day + 20..=day + 22;
    let changes = [change(&f::CANARY_PAUSED, &[], Seg::Is(1.0))];
    about.add("two scrapes failed a day ago", &changes, late.map(|step| (step, fired.clone())).collect());
    if let Some(added) = about.out.last_mut() {
        added.gap = Some((20, 22));
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
    let by_one = missed(4.0).map(|change| change.at(&replica));
    about.add("four of seventy, by one process", &by_one, fires.clone());
    about.add("two of seventy", &missed(2.0), silent.clone());
    about.add("thirty of two thousand", &and(&missed(30.0), &[every(10.0)]), fires.clone());
    about.add("fifteen of two thousand", &and(&missed(15.0), &[every(10.0)]), silent);
    let replica = [change(&f::CANARY_INTERVAL, &[], Seg::Is(0.1)).at(&replica).always(), hung(&replica)];
    about.add("a hung replica has another interval", &and(&missed(4.0), &replica), fires);
}
