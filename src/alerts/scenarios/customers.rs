//! Scenarios of the alerts on everybody's notifications.

use super::{
    About, Change, Fired, Scenario, about,
    canary::{and, hung, maintenance, shows_old_pages},
    change, pending,
    track::{Pace, Seg},
    world::{ACCEPTED_ELSEWHERE, COMPARED, COUNTED, accepted, instances},
};
use crate::{
    alerts::{
        catalog,
        eligibility::{DAY, FAST, Pair, SLOW},
        plan::{Plan, RoutePlan},
        rules::AlertRule,
    },
    catalog::{families as f, labels::Window},
};

/// Readings of ledgers by one process are old. Its page is scraped all the same, and shows old data.
pub(super) fn frozen(instance: &str) -> Change {
    change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0)).always().at(instance)
}

/// Readings by all processes are old from the bad time on.
pub(super) fn all_frozen() -> Change {
    change(&f::LEDGER_SNAPSHOT, &[], Seg::Is(-1_000.0))
}

pub(super) fn accepted_in(window: Window, count: f64) -> Change {
    change(&f::LEDGER_WINDOW_ACCEPTED, &[("window", window.word())], Seg::Is(count))
}

fn bad_in(window: Window, count: f64) -> Change {
    change(&f::LEDGER_WINDOW_BAD, &[("window", window.word())], Seg::Is(count))
}

pub(super) fn failures(count: f64) -> Change {
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
    pending::scenarios(plan, alerts, route, &replica, out);
    low_volume(plan, alerts, route, out);
    stopped(plan, alerts, route, out);
    never_written(plan, alerts, route, &replica, out);
    rewritten(plan, alerts, route, out);
    let counts = [(catalog::RESIDUE.name, &f::LEDGER_RESIDUE), (catalog::LEAK.name, &f::LEDGER_CANARY_LEAKS)];
    for (alert, family) in counts {
        if let Some(mut about) = about(plan, alerts, alert, route, out) {
            let some = [change(family, &[], Seg::Is(2.0))];
            about.fires("two of them", &some);
            about.fires("two of them, by one process", &some.clone().map(|change| change.at(&replica)));
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
    about.fires("one more was accepted, by one process", &more.clone().map(|change| change.at(replica)));
    let behind = change(&f::LEDGER_ACCEPTED_HERE, &[], Seg::Is(ACCEPTED_ELSEWHERE - 5.0)).at(replica);
    about.silent("a process has seen fewer written", &[behind]);
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
    if let Some((replica, _)) = instances(plan).pop() {
        about.fires(
            "an outcome was rewritten, says one process",
            &changed.clone().map(|change| change.at(&replica)),
        );
        let stale = changed.clone().map(|change| change.at(&replica));
        about.silent("a hung replica says so", &and(&stale, &[hung(&replica)]));
    }
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
    let begun = burning.clone().map(|change| Change { seg: Seg::Is(0.0), ..change }.at(replica));
    let none = [accepted_in(pair.long, 0.0), accepted_in(pair.short, 0.0)].map(|change| change.at(replica));
    let all = instances(plan);
    let others = all.iter().filter(|(instance, _)| instance != replica);
    let seen: Vec<_> =
        others.flat_map(|(instance, _)| burning.clone().map(|change| change.at(instance))).collect();
    about.fires("a sustained loss, and one process has only begun to read", &and(&seen, &and(&begun, &none)));
    about.silent("a smaller loss", &bad_shares(plan, route, pair, 0.7));
    about.silent("a loss that is over", &burning[..1]);
    about.silent("a short loss", &burning[1..]);
    few(about, plan, route, pair);
    if route.ledger.is_some_and(|ledger| ledger.partition.is_some()) {
        // Beyond one in a hundred of what is counted.
        let residue = |hundredths: f64| change(&f::LEDGER_RESIDUE, &[], Seg::Is(COUNTED * 0.01 * hundredths));
        about.silent("the books don't balance", &and(&burning, &[residue(1.25)]));
        let stale = and(&[residue(1.25).at(replica)], &[frozen(replica)]);
        about.fires("a stale replica's books don't balance", &and(&burning, &stale));
        if about.alert == catalog::BURN_FAST.name {
            let none = change(&f::LEDGER_COUNTED, &[], Seg::Is(0.0)).at(replica);
            about.fires("late bounces are counted", &and(&burning, &[residue(0.75), none]));
            let one = residue(1.25).at(replica);
            about.silent("the books don't balance, says one process", &and(&burning, &[one]));
            about.silent_through_gap("the books don't balance", &and(&burning, &[residue(1.25)]));
            let many = [change(&f::LEDGER_COUNTED, &[], Seg::Is(COUNTED * 1e3)).at(replica), frozen(replica)];
            about.silent("a stale replica counted many more", &and(&burning, &and(&[residue(1.25)], &many)));
        }
    }
    let found = |count: f64| change(&f::LEDGER_HISTORY_IN_SAMPLE, &[], Seg::Is(count));
    let compared = |count: f64| change(&f::LEDGER_HISTORY_COMPARED, &[], Seg::Is(count));
    let many = found(COMPARED * 0.015);
    about.silent("the ledger's history was changed", &and(&burning, std::slice::from_ref(&many)));
    let stale = [many.clone().at(replica), hung(replica)];
    about.fires("a hung replica says that history was changed", &and(&burning, &stale));
    if about.alert == catalog::BURN_FAST.name {
        let none = compared(0.0).at(replica);
        about.fires("a few were sent again by hand", &and(&burning, &[found(COMPARED * 0.0075), none]));
        let one = many.clone().at(replica);
        about.silent("the ledger's history was changed, says one process", &and(&burning, &[one]));
        let changed = and(&burning, std::slice::from_ref(&many));
        about.silent_through_gap("the ledger's history was changed", &changed);
        about.fires(
            "one of a small sample was sent again by hand",
            &and(&burning, &[found(1.0), compared(50.0)]),
        );
        let canaries = change(&f::LEDGER_HISTORY_VIOLATIONS, &[], Seg::Is(9.0));
        about.fires("canaries show a changed history", &and(&burning, &[canaries]));
        let stale = [many, compared(COMPARED * 1e3).at(replica), hung(replica)];
        about.silent("a hung replica compared many more", &and(&burning, &stale));
    }
    if about.alert != catalog::BURN_TICKET.name {
        about.silent("planned work", &and(&burning, &[maintenance()]));
        let muted = and(&shows_old_pages(replica), &[maintenance().at(replica)]);
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
