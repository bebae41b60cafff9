//! Scenarios of the alerts on what is far above the route's own last week.

use super::{
    About, Change, Scenario, about,
    canary::and,
    change,
    customers::frozen,
    track::{Pace, Seg},
    world::instances,
};
use crate::{
    alerts::{catalog, plan::Plan, rules::AlertRule},
    catalog::{bounds::DISPOSITION_WINDOW, families as f},
    domain::outcome::Outcome,
};

pub(super) fn scenarios(plan: &Plan<'_>, alerts: &[&AlertRule], out: &mut Vec<Scenario>) {
    let Some(route) = plan.routes.iter().find(|route| route.is_followed()) else { return };
    let Some((replica, _)) = instances(plan).pop() else { return };
    let attempts = |outcome: Outcome, count: f64| {
        change(&f::LEDGER_WINDOW_ATTEMPTS, &[("outcome", outcome.word())], Seg::Is(count))
    };
    // The usual share is 10 of 610.
    let retries = |retryable: f64, delivered: f64| {
        [attempts(Outcome::Retryable, retryable), attempts(Outcome::Delivered, delivered)]
    };
    if let Some(mut about) = about(plan, alerts, catalog::RETRY_SURGE.name, route, out) {
        about.pace = Pace::HOURS;
        let surge = retries(80.0, 1_200.0);
        about.fires("four times the usual share", &surge);
        about.too_short(&surge);
        let none = |changes: &[Change]| -> Vec<Change> {
            let others = instances(plan).into_iter().filter(|(instance, _)| *instance != replica);
            let seen = others
                .flat_map(|(instance, _)| changes.iter().map(move |change| change.clone().at(&instance)));
            let none =
                changes.iter().map(|change| Change { seg: Seg::Is(0.0), ..change.clone() }.at(&replica));
            seen.chain(none).collect()
        };
        about.fires("a surge, and one process has only begun to read", &none(&surge));
        let mixed = [
            attempts(Outcome::Retryable, 40.0),
            attempts(Outcome::Unknown, 40.0),
            attempts(Outcome::Delivered, 1_200.0),
        ];
        about.fires("a surge of some to be tried again and some unknown", &mixed);
        about.silent("not quite three times the usual share", &retries(60.0, 1_165.0));
        about.silent("twice the usual share", &retries(60.0, 1_650.0));
        about.silent("a surge of few", &retries(40.0, 300.0));
        let before = attempts(Outcome::Retryable, 600.0).during(0, 10);
        about.silent("such a surge is usual", &and(&surge, &[before]));
        let stale: Vec<_> = surge.into_iter().map(|change| change.at(&replica)).collect();
        about.silent("a stale replica shows a surge", &and(&stale, &[frozen(&replica)]));
    }
    let suppressed = |count: f64| change(&f::LEDGER_WINDOW_NOTIFICATIONS, &[], Seg::Is(count));
    let accepted = |count: f64| {
        let window = ("window", DISPOSITION_WINDOW.word());
        change(&f::LEDGER_WINDOW_ACCEPTED, &[window], Seg::Is(count))
    };
    if let Some(mut about) = about(plan, alerts, catalog::SUPPRESSION.name, route, out) {
        about.pace = Pace { step: 1_800, before: 16, during: 8, after: 20 };
        // The usual share is 10 of 7,200.
        let surge = [suppressed(80.0), accepted(12_000.0)];
        about.fires("five times the usual share", &surge);
        let one = [suppressed(0.0).at(&replica), accepted(12_000.0)];
        let others = instances(plan).into_iter().filter(|(instance, _)| *instance != replica);
        let others: Vec<_> = others.map(|(instance, _)| suppressed(80.0).at(&instance)).collect();
        about.fires("a surge, and one process has only begun to read", &and(&others, &one));
        about.silent("twice the usual share", &[suppressed(60.0), accepted(20_000.0)]);
        about.silent("a surge of few", &[suppressed(40.0)]);
        about.silent("such a surge is usual", &and(&surge, &[suppressed(720.0).during(0, 4)]));
        let stale = surge.map(|change| change.at(&replica));
        about.silent("a stale replica shows a surge", &and(&stale, &[frozen(&replica)]));
        by_the_minute(&mut about, 6, &[suppressed(80.0), accepted(12_000.0)]);
    }
    if let Some(mut about) = about(plan, alerts, catalog::REJECTIONS.name, route, out) {
        about.pace = Pace { step: 1_800, before: 60, during: 40, after: 60 };
        let rejected = |count: f64| change(&f::LEDGER_WINDOW_REJECTED, &[], Seg::Is(count));
        let usual = |count: f64| -> Vec<Change> {
            vec![rejected(count).during(0, 60), rejected(count).during(100, 160)]
        };
        about.fires("five times as many as usual", &[rejected(55.0)]);
        let others = instances(plan).into_iter().filter(|(instance, _)| *instance != replica);
        let others: Vec<_> = others.map(|(instance, _)| rejected(55.0).at(&instance)).collect();
        let begun = and(&others, &[rejected(0.0).at(&replica)]);
        about.fires("five times as many as usual, and one process has only begun to read", &begun);
        about.silent("twice as many as usual", &and(&usual(25.0), &[rejected(60.0)]));
        about.silent("a surge of few", &[rejected(40.0)]);
        about.silent("such a surge is usual", &[rejected(300.0).during(0, 5), rejected(55.0)]);
        let stale = rejected(55.0).at(&replica);
        about.silent("a stale replica shows a surge", &[stale, frozen(&replica)]);
        by_the_minute(&mut about, 24, &[rejected(55.0)]);
    }
}

/// What takes minutes, of an alert that holds a window of so many hours against those before.
fn by_the_minute(about: &mut About<'_>, hours: u32, surge: &[Change]) {
    about.pace = Pace { step: 60, before: hours * 60 + 30, during: 40, after: 10 };
    about.through_gap("a surge", surge);
    about.too_short(surge);
}
