//! Scenarios of the alerts on everybody's notifications.

use super::{
    About, Change, Fired, Scenario, about,
    canary::{and, hung, maintenance},
    change,
    track::{Pace, Seg},
    world::{ACCEPTED_ELSEWHERE, accepted, instances},
};
use crate::{
    alerts::{
        catalog,
        eligibility::{DAY, FAST, Pair, SLOW},
        plan::{Plan, RoutePlan},
        rules::AlertRule,
    },
    catalog::{families as f, labels::Window},
    domain::outcome::Outcome,
};

/// Readings of ledgers by one process are old. Its page is scraped all the same, and shows old data.
pub(super) fn frozen(instance: &str) -> Change {
    change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0)).always().at(instance)
}

/// Readings by all processes are old from the bad time on.
fn all_frozen() -> Change {
    change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0))
}

fn accepted_in(window: Window, count: f64) -> Change {
    change(&f::LEDGER_WINDOW_ACCEPTED, &[("window", window.word())], Seg::Is(count))
}

fn bad_in(window: Window, count: f64) -> Change {
    change(&f::LEDGER_WINDOW_BAD, &[("window", window.word())], Seg::Is(count))
}

fn failures(count: f64) -> Change {
    change(&f::CANARY_CONSECUTIVE_FAILURES, &[], Seg::Is(count))
}

pub(super) fn scenarios(plan: &Plan<'_>, alerts: &[&AlertRule], out: &mut Vec<Scenario>) {
    let followed = plan.routes.iter().find(|route| route.is_followed());
    let read = followed.or_else(|| plan.routes.iter().find(|route| route.ledger.is_some()));
    let Some(route) = read else { return };
    let Some((replica, _)) = instances(plan).pop() else { return };
    for (alert, pair) in
        [(catalog::BURN_FAST.name, FAST), (catalog::BURN_SLOW.name, SLOW), (catalog::BURN_TICKET.name, DAY)]
    {
        if let Some(mut about) = about(plan, alerts, alert, route, out) {
            burn(&mut about, plan, route, pair, &replica);
        }
    }
    if let Some(mut about) = about(plan, alerts, catalog::BURN_TICKET.name, route, out) {
        let days = bad_shares(plan, route, crate::alerts::eligibility::DAYS, 1.3);
        about.fires("a slow loss over days", &days);
        about.silent("a slow loss over days, not now", &days[..1]);
        about.silent(
            "a slower loss over days",
            &bad_shares(plan, route, crate::alerts::eligibility::DAYS, 0.7),
        );
        few(&mut about, plan, route, crate::alerts::eligibility::DAYS);
    }
    over_deadline(plan, alerts, route, &replica, out);
    forgotten(plan, alerts, &replica, out);
    if let Some(mut about) = about(plan, alerts, catalog::UNKNOWN.name, route, out) {
        let after = plan.alerts.reconcile_after.get().as_secs_f64();
        aged(&mut about, &f::LEDGER_OLDEST_UNKNOWN, after, &[], &replica);
    }
    low_volume(plan, alerts, route, out);
    stopped(plan, alerts, route, out);
    never_written(plan, alerts, route, &replica, out);
    rewritten(plan, alerts, route, out);
    let counts = [(catalog::RESIDUE.name, &f::LEDGER_RESIDUE), (catalog::LEAK.name, &f::LEDGER_CANARY_LEAKS)];
    for (alert, family) in counts {
        if let Some(mut about) = about(plan, alerts, alert, route, out) {
            let some = [change(family, &[], Seg::Is(2.0))];
            about.fires("two of them", &some);
            about.too_short(&some);
            let stale = change(family, &[], Seg::Is(2.0)).at(&replica);
            about.silent("a stale replica says so", &[stale, frozen(&replica)]);
        }
    }
}

fn never_written(
    plan: &Plan<'_>,
    alerts: &[&AlertRule],
    route: &RoutePlan<'_>,
    replica: &str,
    out: &mut Vec<Scenario>,
) {
    let Some(mut about) = about(plan, alerts, catalog::NEVER_WRITTEN.name, route, out) else { return };
    let more = [change(&f::LEDGER_ACCEPTED_ELSEWHERE, &[], Seg::Is(ACCEPTED_ELSEWHERE + 1.0))];
    about.fires("one more was accepted than written", &more);
    about.too_short(&more);
    let fewer = [change(&f::LEDGER_ACCEPTED_ELSEWHERE, &[], Seg::Is(ACCEPTED_ELSEWHERE - 1.0))];
    about.silent("a count that knows only some", &fewer);
    about.silent("the ledger is not read any more", &and(&more, &[all_frozen()]));
    let written = change(&f::LEDGER_ACCEPTED_HERE, &[], Seg::Is(ACCEPTED_ELSEWHERE + 5.0)).at(replica);
    about.fires("a stale replica has seen more written", &and(&more, &[written, frozen(replica)]));
    let stale = more.map(|change| change.at(replica));
    about.silent("a stale replica says so", &and(&stale, &[frozen(replica)]));
}

fn rewritten(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let ledgers = plan.ledgers.iter().map(|ledger| ledger.name);
    let Some(mut about) = about(plan, alerts, catalog::HISTORY.name, route, out) else { return };
    let one = about.fired.concat();
    about.fired =
        ledgers.map(|ledger| one.iter().cloned().chain([("ledger", ledger.to_owned())]).collect()).collect();
    let kind = ("kind", crate::domain::audit::compare::Change::VIOLATIONS[0].word());
    let changed = [change(&f::LEDGER_HISTORY_VIOLATIONS, &[kind], Seg::Is(1.0))];
    about.fires("an outcome was rewritten", &changed);
    about.too_short(&changed);
}

/// So many times the bound of a pair are bad, over the long window and over the short one.
fn bad_shares(plan: &Plan<'_>, route: &RoutePlan<'_>, pair: Pair, times: f64) -> [Change; 2] {
    let share = pair.bound(plan.period(), route.budget()) * times;
    [pair.long, pair.short].map(|window| bad_in(window, accepted(window) * share))
}

fn burn(about: &mut About<'_>, plan: &Plan<'_>, route: &RoutePlan<'_>, pair: Pair, replica: &str) {
    let burning = bad_shares(plan, route, pair, 1.3);
    about.fires("a sustained loss", &burning);
    about.too_short(&burning);
    about.silent("a smaller loss", &bad_shares(plan, route, pair, 0.7));
    about.silent("a loss that is over", &burning[..1]);
    about.silent("a short loss", &burning[1..]);
    few(about, plan, route, pair);
    if route.ledger.is_some_and(|ledger| ledger.partition.is_some()) {
        let residue = change(&f::LEDGER_RESIDUE, &[], Seg::Is(2.0));
        about.silent("the books don't balance", &and(&burning, &[residue]));
        let stale = change(&f::LEDGER_RESIDUE, &[], Seg::Is(2.0)).at(replica);
        about.fires("a stale replica's books don't balance", &and(&burning, &[stale, frozen(replica)]));
    }
    let history = |instance: Option<&str>| {
        let changed = change(&f::LEDGER_HISTORY_VIOLATIONS, &[], Seg::Is(1.0));
        instance.map_or(changed.clone(), |instance| changed.at(instance))
    };
    about.silent("the ledger's history was changed", &and(&burning, &[history(None)]));
    let stale = [history(Some(replica)), hung(replica)];
    about.fires("a hung replica says that history was changed", &and(&burning, &stale));
    if about.alert != catalog::BURN_TICKET.name {
        about.silent("planned work", &and(&burning, &[maintenance()]));
        let muted = [hung(replica), maintenance().at(replica)];
        about.fires("a hung replica says that work is planned", &and(&burning, &muted));
    }
    about.silent("the ledger is not read any more", &and(&burning, &[all_frozen()]));
    let many = accepted_in(pair.long, accepted(pair.long) * 1e3).at(replica);
    about.fires("a stale replica has seen many more", &and(&burning, &[many, frozen(replica)]));
    let stale = burning.map(|change| change.at(replica));
    about.silent("a stale replica has seen a loss", &and(&stale, &[frozen(replica)]));
}

/// So few that they don't tell: less than are needed, and less than twice as many.
fn few(about: &mut About<'_>, plan: &Plan<'_>, route: &RoutePlan<'_>, pair: Pair) {
    let least = pair.least_accepted(plan.period(), route.budget());
    let share = (pair.bound(plan.period(), route.budget()) * 1.5).min(1.0);
    let mut at = |name: &str, count: f64, fires: bool| {
        let short = bad_in(pair.short, accepted(pair.short) * share);
        let changes = [accepted_in(pair.long, count), bad_in(pair.long, count * share), short];
        if fires { about.fires(name, &changes) } else { about.silent(name, &changes) }
    };
    at("a loss among too few", (least * 0.7).floor(), false);
    at("a loss among just enough", (least * 1.3).ceil(), true);
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
    // Quiet enough that the budget of a day is one notification.
    let quiet = accepted_in(Window::Day, 1.0 / route.budget());
    about.fires("five on a quiet route", &[over(5.0), quiet.clone()]);
    about.too_short(&[over(5.0), quiet.clone()]);
    about.silent("two on a quiet route", &[over(2.0), quiet.clone()]);
    about.silent("planned work", &[over(5.0), quiet.clone(), maintenance()]);
    about.silent("the ledger is not read any more", &[over(5.0), quiet.clone(), all_frozen()]);
    if route.is_followed() {
        let allowed = accepted(Window::Day) * route.budget();
        about.silent("within the budget of a busy day", &[over(allowed * 0.7)]);
        about.fires("beyond the budget of a busy day", &[over(allowed * 1.3)]);
    }
    about.fires(
        "the ledger is not followed",
        &[over(5.0), change(&f::LEDGER_WINDOW_ACCEPTED, &[], Seg::Absent)],
    );
    let deadline = route.route.deadline.get().as_secs_f64();
    let old = |deadlines: f64| change(&f::LEDGER_OLDEST_PENDING_DUE, &[], Seg::Ago(deadline * deadlines));
    let none = change(&f::LEDGER_WINDOW_ATTEMPTS, &[("outcome", Outcome::Delivered.word())], Seg::Is(0.0));
    let stuck = [old(5.0), none.clone(), failures(3.0)];
    about.fires("one old one, nothing delivered, canaries fail", &stuck);
    about.through_gap("one old one, nothing delivered, canaries fail", &stuck);
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

/// It fires on an age beyond `after` seconds, while there is what makes it count.
fn aged(
    about: &mut About<'_>,
    family: &'static crate::catalog::Family,
    after: f64,
    counts: &[Change],
    replica: &str,
) {
    let age = |times: f64| change(family, &[], Seg::Ago(after * times));
    let old = and(counts, &[age(1.3)]);
    about.fires("an old one", &old);
    about.too_short(&old);
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
        aged(&mut about, &f::LEDGER_OLDEST_PENDING_DUE, after, &[one], replica);
        let old = change(&f::LEDGER_OLDEST_PENDING_DUE, &[], Seg::Ago(after * 1.3));
        about.silent("the last old one was delivered, and its time is still bridged", &[old]);
    }
}

fn low_volume(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let Some(mut about) = about(plan, alerts, catalog::LOW_VOLUME.name, route, out) else { return };
    let pairs = [FAST, SLOW, DAY];
    let least = |pair: &Pair| pair.k / pair.bound(plan.period(), route.budget());
    // So many times as many as are needed over one of the windows, and a tenth over the others.
    let volume = |eligible: Option<(usize, f64)>| -> Vec<Change> {
        let of = |(n, pair): (usize, &Pair)| {
            let times = eligible.filter(|(which, _)| *which == n).map_or(0.1, |(_, times)| times);
            accepted_in(pair.long, least(pair) * times)
        };
        pairs.iter().enumerate().map(of).collect()
    };
    let bad = |count| bad_in(Window::Day, count);
    let three = and(&volume(None), &[bad(3.0)]);
    about.fires("three in a day", &three);
    about.too_short(&three);
    about.silent("one in a day", &and(&volume(None), &[bad(1.0)]));
    for (n, pair) in pairs.iter().enumerate() {
        let window = pair.long.word();
        about
            .silent(&format!("enough for a ratio over {window}"), &and(&volume(Some((n, 1.4))), &[bad(3.0)]));
        about
            .fires(&format!("too few for a ratio over {window}"), &and(&volume(Some((n, 0.7))), &[bad(3.0)]));
    }
}

fn stopped(plan: &Plan<'_>, alerts: &[&AlertRule], route: &RoutePlan<'_>, out: &mut Vec<Scenario>) {
    let Some(mut about) = about(plan, alerts, catalog::STOPPED.name, route, out) else { return };
    about.pace = Pace { step: 1_800, before: 340, during: 8, after: 4 };
    let late = about.pace.late();
    let ticket: Vec<Fired> = about.fired.clone();
    let page = alerts.iter().find(|rule| {
        rule.entry.name == catalog::STOPPED.name && rule.severity == crate::alerts::catalog::Severity::Page
    });
    let word = page.map_or("page", |rule| rule.sent_as(plan.shadow).word());
    let mut both = ticket.clone();
    if word != "ticket" {
        let with = |fired: &Fired| {
            let other = fired
                .iter()
                .map(|(key, value)| (*key, if *key == "severity" { word.to_owned() } else { value.clone() }));
            other.collect()
        };
        both.extend(ticket.iter().map(with));
    }
    let busy = |count: f64| accepted_in(Window::Hour, count).during(0, 340);
    let none = accepted_in(Window::Hour, 0.0);
    let quiet = |count: f64| [busy(count), none.clone()];
    let checks = |fired: &[Fired]| vec![(339, Vec::new()), (late, fired.to_vec()), (351, Vec::new())];
    about.add("a busy route is quiet", &quiet(30.0), checks(&ticket));
    about.add("a quiet route is quiet", &quiet(15.0), checks(&[]));
    about.add("a quiet route is quiet, and canaries fail", &and(&quiet(15.0), &[failures(3.0)]), checks(&[]));
    about.add(
        "a busy route is quiet, and canaries fail",
        &and(&quiet(30.0), &[failures(3.0)]),
        checks(&both),
    );
    about.add(
        "a busy route is quiet, and one canary failed",
        &and(&quiet(30.0), &[failures(1.0)]),
        checks(&ticket),
    );
    let planned = [failures(3.0), maintenance()];
    about.add("a busy route is quiet by planned work", &and(&quiet(30.0), &planned), checks(&ticket));
    // A week by the minute, once.
    let week = 7 * 24 * 60;
    about.pace = Pace { step: 60, before: week + 20, during: 30, after: 5 };
    let busy = accepted_in(Window::Hour, 30.0).during(0, week + 20);
    about.too_short(&[busy, accepted_in(Window::Hour, 0.0), failures(3.0)]);
}
