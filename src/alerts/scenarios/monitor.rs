//! Scenarios of the alerts on the monitor itself, and of what must keep quiet while it is blind.

use super::{
    Change, Fired, Scenario, about,
    canary::{all_hung, and, evidence, hung},
    change,
    track::{Pace, Seg},
    world::{EVERY, instances, world},
};
use crate::{
    alerts::{
        catalog,
        plan::{Plan, RoutePlan},
        rules::AlertRule,
    },
    catalog::{Family, families as f, hash_value},
    domain::{failure_evidence::Question, verdict::Verdict},
};
use std::collections::BTreeMap;

pub(super) fn scenarios(plan: &Plan<'_>, alerts: &[&AlertRule], out: &mut Vec<Scenario>) {
    let judged = plan.routes.iter().find(|route| route.ledger.is_some());
    let Some(route) = judged.or(plan.routes.first()) else { return };
    blind(plan, alerts, route, out);
    own(plan, alerts, route, out);
    everything(plan, alerts, route, out);
}

/// What fires when this is not seen.
fn not_seen(
    plan: &Plan<'_>,
    alerts: &[&AlertRule],
    what: &str,
    label: &'static str,
    names: &[&str],
) -> Vec<Fired> {
    let is_it = |rule: &&&AlertRule| {
        rule.entry.name == catalog::BLIND.name && rule.labels.iter().any(|(_, value)| value == what)
    };
    let severity = alerts.iter().find(is_it).map_or("", |rule| rule.sent_as(plan.shadow).word());
    let one = |name: &&str| {
        vec![
            ("alertname", catalog::BLIND.name.to_owned()),
            ("severity", severity.to_owned()),
            ("blind", what.to_owned()),
            (label, (*name).to_owned()),
        ]
    };
    names.iter().map(one).collect()
}

fn blind(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let all = instances(plan);
    let (Some((replica, first)), Some(mut about)) =
        (all.last().cloned(), about(plan, alerts, catalog::BLIND.name, route, out))
    else {
        return;
    };
    let locations = plan.locations();
    about.fired = not_seen(plan, alerts, "runner", "location", &locations);
    about.fires("all loops stand still", &[all_hung()]);
    let stuck = change(&f::MONITOR_LOOP_LAST_SUCCESS, &[("loop", "settler")], Seg::Is(-1_000.0));
    about.fires("one loop stands still", &[stuck]);
    // Six minutes after the newest success of its loops, and not four.
    let bad = about.pace.before;
    let newest = Seg::Is(f64::from(bad * about.pace.step));
    let held = change(&f::MONITOR_LOOP_LAST_SUCCESS, &[], newest);
    let fired = about.fired.clone();
    about.add(
        "it is told after some minutes",
        std::slice::from_ref(&held),
        vec![(bad + 4, vec![]), (bad + 6, fired)],
    );
    about.silent("the loops are slow", &[change(&f::MONITOR_LOOP_LAST_SUCCESS, &[], Seg::Ago(120.0))]);
    about.silent("a replica hangs", &[hung(&replica)]);
    about.fired = not_seen(plan, alerts, "runner", "location", &[first]);
    let here: Vec<_> = all
        .iter()
        .filter(|(_, location)| *location == first)
        .map(|(instance, _)| change(&f::MONITOR_LOOP_LAST_SUCCESS, &[], Seg::Is(-1_000.0)).at(instance))
        .collect();
    about.fires("one location hangs", &here);
    let short = change(&f::MONITOR_LOOP_LAST_SUCCESS, &[], Seg::Is(-1_000.0)).during(bad, bad + 1);
    about.add("it does not last", &[short], (bad..bad + 3).map(|step| (step, Vec::new())).collect());

    let ledgers: Vec<_> = plan.ledgers.iter().map(|ledger| ledger.name).collect();
    if !ledgers.is_empty() {
        (about.fired, about.has_gap) = (not_seen(plan, alerts, "ledger", "ledger", &ledgers), false);
        let fired = about.fired.clone();
        about.fires("no ledger is read", &[change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0))]);
        let cut = [change(&f::LEDGER_TRUNCATED, &[], Seg::Is(1.0))];
        about.fires("readings are cut", &cut);
        about.through_gap("readings are cut", &cut);
        about.fires("readings of one process are cut", &cut.clone().map(|change| change.at(&replica)));
        let held = change(&f::LEDGER_SNAPSHOT, &[], newest);
        about.add(
            "it is told after some minutes: ledger",
            &[held],
            vec![(bad + 4, vec![]), (bad + 6, fired)],
        );
        about.silent("readings are slow", &[change(&f::LEDGER_SNAPSHOT, &[], Seg::Ago(120.0))]);
        let cut = change(&f::LEDGER_TRUNCATED, &[], Seg::Is(1.0)).at(&replica);
        about.silent("a hung replica says that readings are cut", &[cut, hung(&replica)]);
        let short = change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0)).during(bad, bad + 1);
        about.add(
            "it does not last: ledger",
            &[short],
            (bad..bad + 3).map(|step| (step, Vec::new())).collect(),
        );
        // Everybody's pending are read, and canaries can't be looked up, as far as one location can tell.
        let observers: Vec<_> = ledgers.iter().map(|name| format!("ledger/{name}")).collect();
        let down = |instance: &str| {
            let down = |observer| {
                change(&f::MONITOR_OBSERVER_UP, &[("observer", observer)], Seg::Is(0.0)).at(instance)
            };
            observers.iter().map(|observer| down(observer.as_str())).collect::<Vec<_>>()
        };
        let here: Vec<_> =
            all.iter().filter(|(_, location)| *location == first).flat_map(|(name, _)| down(name)).collect();
        about.fires("one reading fails at one location", &here);
        about.silent("one process of a location can make all readings", &down(&replica));
        let short: Vec<_> = here.iter().map(|change| change.clone().during(bad, bad + 4)).collect();
        let checks = (bad..bad + 8).map(|step| (step, Vec::new())).collect();
        about.add("it does not last: one reading", &short, checks);
    }
    let followed = plan.ledgers_with(|ledger| ledger.notifications.is_some());
    let followed: Vec<_> = followed.iter().map(|ledger| ledger.name).collect();
    if !followed.is_empty() {
        about.pace = Pace::HOURS;
        (about.fired, about.has_gap) = (not_seen(plan, alerts, "follower", "ledger", &followed), false);
        let other = change(&f::LEDGER_FOLLOWER, &[], Seg::Is(0.0));
        about.fires("nobody follows", std::slice::from_ref(&other));
        about.silent("somebody follows", &[other.clone().at(&replica)]);
        let others = all.iter().filter(|(instance, _)| *instance != replica);
        let others: Vec<_> = others.map(|(instance, _)| other.clone().at(instance)).collect();
        about.fires("a hung replica says that it follows", &and(&others, &[hung(&replica)]));
        let short = other.during(60, 85);
        let checks = (80..92).map(|step| (step, Vec::new())).collect();
        about.add("it does not last: follower", &[short], checks);
        about.pace = Pace::MINUTES;
    }
    let receivers: Vec<_> = plan.config.receivers.keys().map(|name| format!("receiver/{name}")).collect();
    if !receivers.is_empty() {
        let names: Vec<_> = receivers.iter().map(String::as_str).collect();
        let everywhere = not_seen(plan, alerts, "observer", "observer", &names);
        let at = |location: &str| -> Vec<Fired> {
            let with =
                |fired: &Fired| fired.iter().cloned().chain([("location", location.to_owned())]).collect();
            everywhere.iter().map(with).collect()
        };
        about.fired = at(first);
        let down = |name: &str| change(&f::MONITOR_OBSERVER_UP, &[("observer", name)], Seg::Is(0.0));
        let down: Vec<_> = names.iter().map(|name| down(name)).collect();
        let at_instance =
            |instance: &str| down.iter().map(|down| down.clone().at(instance)).collect::<Vec<_>>();
        let here = all.iter().filter(|(_, location)| *location == first);
        let here: Vec<_> = here.flat_map(|(instance, _)| at_instance(instance)).collect();
        about.fires("receivers prove nothing at one location", &here);
        about.has_gap = false;
        about.fired = locations.iter().flat_map(|location| at(location)).collect();
        about.fires("receivers prove nothing", &down);
        about.silent("one process of a location sees", &at_instance(&replica));
        let stale = all.iter().filter(|(instance, _)| *instance != replica);
        let stale: Vec<_> = stale.flat_map(|(instance, _)| at_instance(instance)).collect();
        about.fires("only a hung replica says that it sees", &and(&stale, &[hung(&replica)]));
        let checks = (bad..bad + 8).map(|step| (step, Vec::new())).collect();
        let short: Vec<_> = down.iter().map(|down| down.clone().during(bad, bad + 4)).collect();
        about.add("it does not last: receivers", &short, checks);
        let unsaid = since(Verdict::Undetermined, unmeasured_after(route) + 600.0);
        about.fires("where receivers prove nothing, canaries say nothing either", &and(&down, &[unsaid]));
    }
    about.fired = not_seen(plan, alerts, "canaries", "location", &locations);
    let after = unmeasured_after(route);
    let unsaid = since(Verdict::Undetermined, after + 20.0);
    about.has_gap = false;
    about.fires("nobody can say what became of canaries", std::slice::from_ref(&unsaid));
    about.silent(
        "a hung replica says that canaries say nothing",
        &[unsaid.clone().at(&replica), hung(&replica)],
    );
    about.silent("canaries say nothing, but not for long", &[since(Verdict::Undetermined, after - 20.0)]);
    if let (Some((one, _)), Some((another, _))) = (all.first(), all.last()) {
        let later = since(Verdict::Undetermined, 10.0).at(another);
        about.silent(
            "by one process of a location they said something since",
            &[unsaid.clone().at(one), later],
        );
    }
    let paused = change(&f::CANARY_PAUSED, &[], Seg::Is(1.0));
    about.silent("canaries say nothing, and it is paused", &[unsaid.clone(), paused]);
    about.silent("policy keeps canaries back", &[since(Verdict::Suppressed, after + 600.0)]);
    // What is gone is bridged for five minutes.
    let checks = (bad..bad + 14).map(|step| (step, Vec::new())).collect();
    about.add("it does not last: canaries", &[unsaid.during(bad, bad + 4)], checks);
}

/// Canaries in a row say nothing, the first of them so many seconds ago.
fn since(verdict: Verdict, seconds: f64) -> Change {
    change(&f::CANARY_UNMEASURED_SINCE, &[("verdict", verdict.word())], Seg::Ago(seconds))
}

/// After how many seconds that is told, in the world of scenarios.
pub(super) fn unmeasured_after(route: &RoutePlan<'_>) -> f64 {
    3.0 * EVERY + 2.0 * route.route.deadline.get().as_secs_f64()
}

fn own(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let hash = hash_value(plan.hash.get());
    let cases: [(&'static str, &'static Family, f64); 4] = [
        (catalog::STORE.name, &f::MONITOR_STORE_UP, 0.0),
        (catalog::RELOAD.name, &f::MONITOR_RELOAD_SUCCESSFUL, 0.0),
        (catalog::RULES_STALE.name, &f::MONITOR_CONFIG_HASH, hash + 1.0),
        (catalog::SKEW.name, &f::MONITOR_CLOCK_SKEW, -80.0),
    ];
    for (alert, family, value) in cases {
        let Some(mut about) = about(plan, alerts, alert, route, out) else { continue };
        let bad = [change(family, &[], Seg::Is(value))];
        about.fires("it lasts", &bad);
        if let Some((replica, _)) = instances(plan).pop() {
            about.fires("it lasts at one process", &bad.clone().map(|change| change.at(&replica)));
        }
        about.too_short(&bad);
        if alert == catalog::SKEW.name {
            about.silent("a smaller difference", &[change(family, &[], Seg::Is(40.0))]);
        }
    }
    if let Some(mut about) = about(plan, alerts, catalog::WATCHDOG.name, route, out) {
        let fired = about.fired.clone();
        about.add("it is always there", &[], vec![(0, fired.clone()), (60, fired)]);
    }
}

/// All that can be seen is looked at: while the monitor is blind, that it is blind is all that is said.
fn everything(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let locations = plan.locations();
    let blind = not_seen(plan, alerts, "runner", "location", &locations);
    let mut add = |name: &str, changes: Vec<Change>, fired: Vec<Fired>| {
        // What holds for half an hour must be seen to keep quiet too.
        let pace = if fired.is_empty() { Pace::MINUTES } else { Pace::HOURS };
        out.push(Scenario {
            alert: None,
            name: name.to_owned(),
            route: route.name.to_string(),
            pace,
            changes,
            gap: None,
            checks: vec![(pace.before - 1, Vec::new()), (pace.late(), fired)],
        });
    };
    let families: BTreeMap<_, _> =
        world(plan, route).into_iter().map(|series| (series.family.name, series.family)).collect();
    let all_gone = || families.values().map(|family| change(family, &[], Seg::Absent));
    add("all is well", Vec::new(), Vec::new());
    add("the monitor is killed", all_gone().collect(), blind.clone());
    let outage = evidence(route, Question::Arrives, 1.1, 1.3);
    let stuck = [
        change(&f::LEDGER_PENDING_OVER_DEADLINE, &[], Seg::Is(1_000.0)),
        change(&f::LEDGER_OLDEST_PENDING_DUE, &[], Seg::Ago(1e6)),
        change(&f::LEDGER_OLDEST_UNKNOWN, &[], Seg::Ago(1e6)),
        change(&f::LEDGER_WINDOW_BAD, &[], Seg::Is(1_000.0)),
        change(&f::LEDGER_RESIDUE, &[], Seg::Is(5.0)),
    ];
    let stale = change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0));
    let shown = and(&and(&outage, &stuck), &[stale, all_hung()]);
    add("the monitor hangs, and shows old troubles", shown, blind);
    let ledgers: Vec<_> = plan.ledgers.iter().map(|ledger| ledger.name).collect();
    let stale = change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0));
    let not_read = not_seen(plan, alerts, "ledger", "ledger", &ledgers);
    if !ledgers.is_empty() {
        add("the ledger is not read, and shows old troubles", and(&stuck, &[stale]), not_read);
    }
    let failed = change(&f::CANARY_CONSECUTIVE_FAILURES, &[], Seg::Is(1.0));
    let one = [evidence(route, Question::Arrives, 0.55, 0.5), evidence(route, Question::InTime, 0.55, 0.5)]
        .concat();
    let late = change(&f::LEDGER_PENDING_OVER_DEADLINE, &[], Seg::Is(1.0));
    let bad = change(&f::LEDGER_WINDOW_BAD, &[], Seg::Is(1.0));
    let disagreement = change(&f::CANARY_DISAGREEMENTS, &[], Seg::Is(1.0));
    add("one of everything goes wrong", and(&one, &[failed, late, bad, disagreement]), Vec::new());
}
