//! Scenarios of the alerts on what is pending, by number and by age.

use super::{
    About, Change, Scenario, about,
    canary::{all_hung, and, hung, maintenance},
    change,
    customers::{accepted_in, all_frozen, failures, frozen},
    track::{Pace, Seg},
    world::{accepted, instances},
};
use crate::{
    alerts::{
        catalog,
        plan::{Plan, RoutePlan},
        rules::AlertRule,
    },
    catalog::{families as f, labels::Window},
    domain::outcome::Outcome,
};

pub(super) fn scenarios(
    plan: &Plan<'_>,
    alerts: &[&AlertRule],
    route: &RoutePlan<'_>,
    replica: &str,
    out: &mut Vec<Scenario>,
) {
    over_deadline(plan, alerts, route, replica, out);
    let is_counted = |other: &&RoutePlan<'_>| {
        other.differs.accepted_per_day.is_some() == route.differs.accepted_per_day.is_some()
    };
    let other = plan.routes.iter().filter(|other| other.is_followed()).find(|other| !is_counted(other));
    if let Some(other) = other
        && let Some(mut about) = about(plan, alerts, catalog::OVER_DEADLINE.name, other, out)
    {
        not_caught_up(&mut about, other);
    }
    forgotten(plan, alerts, replica, out);
    if let Some(mut about) = about(plan, alerts, catalog::UNKNOWN.name, route, out) {
        let after = plan.alerts.reconcile_after.get().as_secs_f64();
        aged(&mut about, plan, &f::LEDGER_OLDEST_UNKNOWN, after, &[], replica);
    }
}

fn over_deadline(
    plan: &Plan<'_>,
    alerts: &[&AlertRule],
    route: &RoutePlan<'_>,
    replica: &str,
    out: &mut Vec<Scenario>,
) {
    let Some(mut about) = about(plan, alerts, catalog::OVER_DEADLINE.name, route, out) else { return };
    let over = |count: f64| change(&f::LEDGER_PENDING_OVER_DEADLINE, &[], Seg::Is(count));
    let configured = route.differs.accepted_per_day.map(|daily| daily * route.budget());
    // Quiet enough that the budget of a day is one notification; a ledger that isn't followed shows no day.
    let (few, stuck) = if route.is_followed() {
        let quiet = accepted_in(Window::Day, 1.0 / route.budget());
        (vec![over(2.0), quiet.clone()], vec![over(5.0), quiet])
    } else {
        let allowed = configured.unwrap_or(0.0).max(3.0);
        (vec![over((allowed * 0.7).floor())], vec![over((allowed * 1.3).ceil())])
    };
    about.fires("five on a quiet route", &stuck);
    about.too_short(&stuck);
    about.silent("two on a quiet route", &few);
    let mut by_one = stuck.clone();
    by_one[0] = by_one[0].clone().at(replica);
    about.fires("five on a quiet route, by one process", &by_one);
    about.silent("five on a quiet route, says a stale replica", &and(&by_one, &[frozen(replica)]));
    about.silent("planned work, shown by one process", &and(&stuck, &[maintenance().at(replica)]));
    about.silent("planned work", &and(&stuck, &[maintenance()]));
    about.silent("planned work, and the store is away", &and(&stuck, &[maintenance(), all_hung()]));
    let shown = |age: f64| change(&f::MONITOR_SNAPSHOT, &[], Seg::Ago(age));
    about.silent("planned work, shown two minutes ago", &and(&stuck, &[maintenance(), shown(120.0)]));
    about.fires("planned work, shown four minutes ago", &and(&stuck, &[maintenance(), shown(240.0)]));
    about.silent("the ledger is not read any more", &and(&stuck, &[all_frozen()]));
    if route.is_followed() {
        let day = accepted(Window::Day) * route.budget();
        about.silent("within the budget of a busy day", &[over(day * 0.7)]);
        about.fires("beyond the budget of a busy day", &[over(day * 1.3)]);
        let older = change(&f::ROUTE_OBJECTIVE, &[], Seg::Is(1.0 - route.budget() * 2.0)).at(replica);
        about.fires("a process has another objective, of an older configuration", &[over(day * 1.3), older]);
        // What was known a while ago goes before what is configured.
        let away = change(&f::LEDGER_WINDOW_ACCEPTED, &[], Seg::Absent);
        let between = configured.map_or(day * 1.3, |configured| day.midpoint(configured));
        let begun_anew = [over(between), away];
        match configured {
            Some(configured) if configured < day => {
                about.silent("a busy day is caught up with again", &begun_anew);
            }
            _ => about.fires("a busy day is caught up with again", &begun_anew),
        }
        not_caught_up(&mut about, route);
        // Nobody follows for two hours. What a day has is known all the same.
        let pace = about.pace;
        about.pace = Pace { before: 150, ..pace };
        let gone = change(&f::LEDGER_WINDOW_ACCEPTED, &[], Seg::Absent).during(20, u32::MAX);
        let many = day.max(configured.unwrap_or(0.0)) * 1.3;
        about.fires("nobody has followed for two hours", &[over(many), gone]);
        about.pace = pace;
    }
    let deadline = route.route.deadline.get().as_secs_f64();
    let old = |deadlines: f64| change(&f::LEDGER_OLDEST_PENDING_DUE, &[], Seg::Ago(deadline * deadlines));
    let none = change(&f::LEDGER_WINDOW_ATTEMPTS, &[("outcome", Outcome::Delivered.word())], Seg::Is(0.0));
    let stuck = [old(5.0), none.clone(), failures(3.0)];
    about.fires("one old one, nothing delivered, canaries fail", &stuck);
    about.through_gap("one old one, nothing delivered, canaries fail", &stuck);
    let by_one = [old(5.0), none.clone(), failures(3.0).at(replica)];
    about.fires("one old one, nothing delivered, canaries fail at one process", &by_one);
    about.silent("one late one, nothing delivered, canaries fail", &[old(3.0), none.clone(), failures(3.0)]);
    about.silent(
        "one old one, nothing delivered, one canary failed",
        &[old(5.0), none.clone(), failures(1.0)],
    );
    if route.ledger.is_some_and(|ledger| ledger.attempts.is_some()) {
        about.silent("one old one, others are delivered, canaries fail", &[old(5.0), failures(3.0)]);
    }
    let stale = [failures(3.0).at(replica), hung(replica)];
    about.silent("a hung replica says that canaries fail", &and(&[old(5.0), none], &stale));
}

/// The pending are read, and no window is there yet: it may be minutes after a first start.
fn not_caught_up(about: &mut About<'_>, route: &RoutePlan<'_>) {
    let configured = route.differs.accepted_per_day.map(|daily| daily * route.budget());
    let over = |count: f64| change(&f::LEDGER_PENDING_OVER_DEADLINE, &[], Seg::Is(count));
    let gone = |family| change(family, &[], Seg::Absent).always();
    let never = gone(&f::LEDGER_WINDOW_ACCEPTED);
    match configured {
        None => about.silent("many, and the day is not known yet", &[over(1_000.0), never.clone()]),
        Some(configured) => {
            let many = [over(configured * 1.3), never.clone()];
            about.fires("beyond the configured day, and no day is known yet", &many);
            let usual = [over(configured * 0.7), never.clone()];
            about.silent("within the configured day, and no day is known yet", &usual);
        }
    }
    let old = Seg::Ago(route.route.deadline.get().as_secs_f64() * 5.0);
    let old = change(&f::LEDGER_OLDEST_PENDING_DUE, &[], old);
    let stuck = [old, failures(3.0), never, gone(&f::LEDGER_WINDOW_ATTEMPTS)];
    about.fires("one old one, canaries fail, and no day is known yet", &stuck);
}

/// It fires on an age beyond `after` seconds, while there is what makes it count.
fn aged(
    about: &mut About<'_>,
    plan: &Plan<'_>,
    family: &'static crate::catalog::Family,
    after: f64,
    counts: &[Change],
    replica: &str,
) {
    let age = |times: f64| change(family, &[], Seg::Ago(after * times));
    let old = and(counts, &[age(1.3)]);
    about.fires("an old one", &old);
    about.too_short(&old);
    let by_one = instances(plan).into_iter().map(|(instance, _)| {
        let times = if instance == replica { 1.3 } else { 0.1 };
        age(times).at(&instance)
    });
    about.fires("an old one, seen by one process", &and(counts, &by_one.collect::<Vec<_>>()));
    // It grows older while it is bridged: so much is left out.
    about.silent("a younger one", &and(counts, &[age(0.7)]));
    about.silent("a stale replica has an old one", &and(counts, &[age(1.3).at(replica), frozen(replica)]));
}

fn forgotten(plan: &Plan<'_>, alerts: &[&AlertRule], replica: &str, out: &mut Vec<Scenario>) {
    for is_configured in [false, true] {
        let wanted = |route: &&RoutePlan<'_>| {
            route.ledger.is_some() && route.differs.forgotten_after.is_some() == is_configured
        };
        let Some(route) = plan.routes.iter().find(wanted) else { continue };
        let Some(mut about) = about(plan, alerts, catalog::FORGOTTEN.name, route, out) else { continue };
        let after = match route.differs.forgotten_after {
            Some(after) => after.get(),
            None => route.route.deadline.get() * 10,
        };
        let after = after.as_secs_f64();
        let one = change(&f::LEDGER_PENDING_OVER_DEADLINE, &[], Seg::Is(1.0));
        aged(&mut about, plan, &f::LEDGER_OLDEST_PENDING_DUE, after, &[one], replica);
        let old = change(&f::LEDGER_OLDEST_PENDING_DUE, &[], Seg::Ago(after * 1.3));
        about.silent("the last old one was delivered, and its time is still bridged", &[old]);
        if !is_configured {
            let one = change(&f::LEDGER_PENDING_OVER_DEADLINE, &[], Seg::Is(1.0));
            let younger = change(&f::LEDGER_OLDEST_PENDING_DUE, &[], Seg::Ago(after * 0.7));
            let deadline = route.route.deadline.get().as_secs_f64() / 2.0;
            let older = change(&f::ROUTE_DEADLINE, &[], Seg::Is(deadline)).at(replica);
            let changes = [one, younger, older];
            about.silent("a process has another deadline, of an older configuration", &changes);
        }
    }
}
