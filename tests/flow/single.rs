//! Single things that the follower must get right, each told apart.

use super::{
    model::at,
    runner::{Store, settings},
};
use chrono::{DateTime, Utc};
use delivery_canary::domain::{
    accounting::Place,
    flow::{
        durable::{DurableUnit, Saved},
        figures::FlowFigures,
        follow::{Flow, Reach, TooMany},
        rows::{AttemptRow, LedgerId, NotificationRow, RouteNo, Standing, Truth, UnitId},
        settings::Settings,
    },
    outcome::Outcome,
    pending::{RoutePending, Tried},
};
use std::time::Duration;

const RETRY: Standing = Standing::Pending(Tried::WillRetry);
const UNKNOWN: Standing = Standing::Pending(Tried::OutcomeUnknown);
pub const CLOSED: bool = true;
pub const OPEN: bool = false;

pub fn unit(number: i64) -> UnitId {
    UnitId { notification: LedgerId::Int(number), destination: None }
}

pub fn notification(number: i64, due: i64) -> NotificationRow {
    let unit = unit(number);
    NotificationRow {
        unit,
        route: RouteNo(0),
        due: at(due),
        own: None,
        is_marked_canary: false,
        has_canary_key: false,
    }
}

pub fn attempt(number: i64, of: i64, second: i64, leaves: Standing) -> AttemptRow {
    AttemptRow { attempt: LedgerId::Int(number), unit: unit(of), at: at(second), leaves }
}

pub fn truth(due: i64, attempts: &[AttemptRow]) -> Truth {
    Truth { route: Some(RouteNo(0)), due: Some(at(due)), own: None, attempts: attempts.to_vec() }
}

/// All that is said of one of this route that nothing was tried for.
pub fn of_route(route: RouteNo, due: DateTime<Utc>) -> Truth {
    Truth { route: Some(route), due: Some(due), own: None, attempts: Vec::new() }
}

/// One pass to the end of the streams; each lookup is answered with this. Gives what was asked for.
pub fn pass(
    flow: &mut Flow,
    second: i64,
    notifications: &[(NotificationRow, bool)],
    attempts: &[(AttemptRow, bool)],
    answer: impl Fn(&UnitId) -> Option<Truth>,
) -> Vec<UnitId> {
    flow.begin_pass(at(second));
    notifications.iter().cloned().for_each(|(row, is_closed)| flow.notification(row, is_closed));
    attempts.iter().cloned().for_each(|(row, is_closed)| flow.attempt(row, is_closed));
    let wanted = flow.wanted(Reach::End);
    wanted.iter().for_each(|unit| flow.truth(unit, answer(unit)));
    flow.end_pass().unwrap();
    wanted
}

fn nowhere(_: &UnitId) -> Option<Truth> {
    None
}

pub fn first_pending(figures: &FlowFigures) -> &RoutePending {
    &figures.routes[0].pending
}

pub fn of_all_time(flow: &Flow, place: Place) -> i64 {
    flow.partition(RouteNo(0), at(-7_200), at(7_200)).count(place)
}

/// Trial 29: a hold has no age, and one that is released is as old as its release.
#[test]
fn trial_29_ages_run_from_the_end_of_a_hold() {
    let mut flow = Flow::new(settings());
    let held = notification(1, 3_600);
    pass(&mut flow, 60, &[(held.clone(), CLOSED)], &[], |_| Some(truth(3_600, &[])));
    let figures = flow.figures(at(3_599));
    let pending = first_pending(&figures);
    assert_eq!((pending.scheduled, pending.unattempted, pending.oldest_due), (1, 0, None));
    let figures = flow.figures(at(3_610));
    let pending = first_pending(&figures);
    assert_eq!((pending.scheduled, pending.unattempted, pending.oldest_due), (0, 1, Some(at(3_600))));
    assert!((pending.age_sum_seconds - 10.0).abs() < 1e-9 && pending.ages[0] == 1, "{pending:?}");

    // Released early: the row now says so.
    pass(&mut flow, 600, &[], &[], |_| Some(truth(590, &[])));
    let figures = flow.figures(at(600));
    let pending = first_pending(&figures);
    assert_eq!((pending.scheduled, pending.unattempted, pending.oldest_due), (0, 1, Some(at(590))));
    assert!((pending.age_sum_seconds - 10.0).abs() < 1e-9, "{pending:?}");
}

/// Trial 28: a queue that has drained says so.
#[test]
fn trial_28_drained_is_explicit() {
    let mut flow = Flow::new(settings());
    pass(&mut flow, 60, &[(notification(1, 0), CLOSED)], &[], |_| Some(truth(0, &[])));
    assert_eq!(first_pending(&flow.figures(at(600))).over_deadline, Some(1));
    pass(&mut flow, 610, &[], &[(attempt(1, 1, 605, Standing::Delivered), OPEN)], |_| Some(truth(0, &[])));
    assert_eq!(first_pending(&flow.figures(at(610))), &RoutePending::drained());
    pass(&mut flow, 660, &[], &[(attempt(1, 1, 605, Standing::Delivered), CLOSED)], nowhere);
    let figures = flow.figures(at(660));
    assert_eq!(first_pending(&figures), &RoutePending::drained());
    assert_eq!(figures.units, 0);
}

/// Trial 30: a route that empties is still there, with nothing in it.
#[test]
fn trial_30_a_route_that_empties_stays_with_zeros() {
    let mut flow = Flow::new(settings());
    let delivered = attempt(1, 1, 5, Standing::Delivered);
    pass(&mut flow, 60, &[(notification(1, 0), CLOSED)], &[(delivered, CLOSED)], nowhere);
    let hour = Duration::from_secs(3_600);
    assert_eq!(flow.figures(at(120)).routes[0].windows[&hour].accepted(), 1);
    pass(&mut flow, 9_000, &[], &[], nowhere);
    let figures = flow.figures(at(9_000));
    assert_eq!(figures.routes.len(), 4);
    for route in &figures.routes {
        assert_eq!(route.windows.len(), 4);
        assert_eq!((route.windows[&hour].accepted(), route.windows[&hour].bad()), (0, 0));
    }
    assert_eq!(figures.routes[0].windows[&Duration::from_secs(21_600)].accepted(), 1);
}

#[test]
fn windows_divide_the_cohort_one_deadline_back() {
    let mut flow = Flow::new(settings());
    let rows: Vec<_> = (1..=6).map(|number| (notification(number, 600), CLOSED)).collect();
    let attempts = [
        attempt(1, 1, 601, Standing::Delivered),
        attempt(2, 2, 601, Standing::RejectedRecipient),
        attempt(3, 3, 601, Standing::RejectedService),
        attempt(4, 4, 601, Standing::Suppressed),
        attempt(5, 5, 601, RETRY),
    ]
    .map(|row| (row, CLOSED));
    pass(&mut flow, 650, &rows, &attempts, nowhere);
    // Due at 600 and with a deadline of 60 s: nothing can be bad before 660.
    let window = |second: i64| flow.figures(at(second)).routes[0].windows[&Duration::from_secs(300)];
    assert_eq!(window(659).accepted(), 0);
    let later = window(720);
    assert_eq!(Place::ALL.map(|place| later.in_place(place)), [1, 1, 1, 1, 2]);
    assert_eq!((later.accepted(), later.bad()), (6, 3));
    assert_eq!(Outcome::ALL.map(|outcome| later.attempts(outcome)), [1, 1, 2, 1, 0]);
}

#[test]
fn what_was_stuck_before_the_baseline_is_apart() {
    let mut flow = Flow::new(Settings { baseline: Some(at(100)), ..settings() });
    pass(&mut flow, 160, &[(notification(1, 99), CLOSED), (notification(2, 100), CLOSED)], &[], nowhere);
    let figures = flow.figures(at(400));
    let route = &figures.routes[0];
    assert_eq!(
        (route.stuck_before_baseline, route.pending.unattempted, route.pending.over_deadline),
        (1, 1, Some(1))
    );
    assert_eq!(route.windows[&Duration::from_secs(3_600)].accepted(), 1);
    assert_eq!(of_all_time(&flow, Place::Pending), 2, "the partition is that of the whole ledger");
}

#[test]
fn a_bounce_after_long_moves_its_notification_and_is_counted_apart() {
    let mut flow = Flow::new(settings());
    let (delivered, bounced) =
        (attempt(1, 1, 5, Standing::Delivered), attempt(2, 1, 3_000, Standing::RejectedRecipient));
    pass(&mut flow, 60, &[(notification(1, 0), CLOSED)], &[(delivered.clone(), CLOSED)], nowhere);
    assert_eq!(of_all_time(&flow, Place::Delivered), 1);
    let both = [delivered, bounced.clone()];
    assert_eq!(pass(&mut flow, 3_060, &[], &[(bounced, CLOSED)], |_| Some(truth(0, &both))), [unit(1)]);
    assert_eq!(pass(&mut flow, 3_070, &[], &[], |_| Some(truth(0, &both))), [unit(1)]);
    assert_eq!((of_all_time(&flow, Place::Delivered), of_all_time(&flow, Place::RejectedRecipient)), (0, 1));
    let totals = flow.figures(at(3_070)).totals;
    assert_eq!((totals.late_reversal, totals.attempt_after_terminal), (1, 0));
    assert!(pass(&mut flow, 3_080, &[], &[], nowhere).is_empty());
}

#[test]
fn a_bounce_of_what_was_never_counted_moves_nothing() {
    let mut flow = Flow::new(settings());
    let marked = NotificationRow { is_marked_canary: true, ..notification(1, 0) };
    let (delivered, bounced) =
        (attempt(1, 1, 5, Standing::Delivered), attempt(2, 1, 3_000, Standing::RejectedRecipient));
    // Two more of the hour: their cell alone doesn't tell whether the canary is in it, that of their minute does.
    let rows = [(marked, CLOSED), (notification(2, 60), CLOSED), (notification(3, 60), CLOSED)];
    let attempts = [
        (delivered.clone(), CLOSED),
        (attempt(3, 2, 65, Standing::Delivered), CLOSED),
        (attempt(4, 3, 65, Standing::Delivered), CLOSED),
    ];
    pass(&mut flow, 120, &rows, &attempts, nowhere);
    let both = [delivered, bounced.clone()];
    for (second, rows) in [(3_060, vec![(bounced, CLOSED)]), (3_070, vec![])] {
        pass(&mut flow, second, &[], &rows, |_| Some(truth(0, &both)));
    }
    assert_eq!((of_all_time(&flow, Place::Delivered), of_all_time(&flow, Place::RejectedRecipient)), (2, 0));
}

#[test]
fn changes_of_open_attempts_are_seen_once_and_leave_no_trace() {
    let mut flow = Flow::new(settings());
    let rows = [(notification(1, 0), OPEN), (notification(2, 0), OPEN), (notification(3, 0), OPEN)];
    let first = [
        (attempt(1, 1, 1, Standing::Delivered), OPEN),
        (attempt(2, 2, 1, RETRY), OPEN),
        (attempt(3, 3, 1, Standing::Delivered), OPEN),
    ];
    pass(&mut flow, 10, &rows, &first, nowhere);
    assert_eq!(of_all_time(&flow, Place::Delivered), 2);
    // The first becomes retryable, the second vanishes, the third bounces.
    let second = [(attempt(1, 1, 1, UNKNOWN), OPEN), (attempt(3, 3, 1, Standing::RejectedRecipient), OPEN)];
    for time in [20, 25] {
        pass(&mut flow, time, &rows, &second, nowhere);
        let figures = flow.figures(at(time));
        let pending = first_pending(&figures);
        assert_eq!((pending.unattempted, pending.retrying, pending.unknown), (1, 0, 1));
        assert_eq!(of_all_time(&flow, Place::RejectedRecipient), 1);
        let totals = figures.totals;
        assert_eq!((totals.outcome_rewritten, totals.attempt_vanished, totals.late_reversal), (1, 1, 1));
    }
}

#[test]
fn an_open_attempt_that_lookups_see_too_leaves_no_trace() {
    let mut flow = Flow::new(settings());
    let delivered = attempt(1, 1, 50, Standing::Delivered);
    let seen = [delivered.clone()];
    let rows = [(notification(1, 0), CLOSED)];
    pass(&mut flow, 60, &rows, &[(delivered.clone(), OPEN)], |_| Some(truth(0, &seen)));
    pass(&mut flow, 70, &[], &[(delivered, OPEN)], |_| Some(truth(0, &seen)));
    assert_eq!(of_all_time(&flow, Place::Delivered), 1);
    pass(&mut flow, 80, &[], &[], |_| Some(truth(0, &[])));
    assert_eq!((of_all_time(&flow, Place::Delivered), of_all_time(&flow, Place::Pending)), (0, 1));
}

#[test]
fn a_settled_notification_waits_for_its_open_attempts() {
    let mut flow = Flow::new(settings());
    let (delivered, again) = (attempt(1, 1, 5, Standing::Delivered), attempt(2, 1, 50, RETRY));
    let there =
        |_: &UnitId| Some(truth(0, &[attempt(1, 1, 5, Standing::Delivered), attempt(2, 1, 50, RETRY)]));
    pass(
        &mut flow,
        60,
        &[(notification(1, 0), CLOSED)],
        &[(delivered, CLOSED), (again.clone(), OPEN)],
        there,
    );
    assert_eq!((flow.figures(at(60)).units, of_all_time(&flow, Place::Delivered)), (1, 1));
    pass(&mut flow, 90, &[], &[(again, CLOSED)], there);
    let figures = flow.figures(at(90));
    assert_eq!((figures.units, figures.strays, of_all_time(&flow, Place::Delivered)), (0, 0, 1));
    assert_eq!(figures.totals.attempt_after_terminal, 1);
}

#[test]
fn a_settled_notification_goes_also_when_its_open_attempt_vanished_during_a_restart() {
    let mut flow = Flow::new(settings());
    flow.begin_pass(at(60));
    flow.notification(notification(1, 0), CLOSED);
    flow.attempt(attempt(1, 1, 5, Standing::Delivered), CLOSED);
    flow.attempt(attempt(2, 1, 50, RETRY), OPEN);
    let mut store = Store::default();
    store.write(flow.end_pass().unwrap());
    assert_eq!(store.units.len(), 1);
    let mut flow = store.restore(settings());
    flow.begin_pass(at(70));
    store.write(flow.end_pass().unwrap());
    assert!(store.units.is_empty(), "{:?}", store.units);
    assert_eq!((flow.figures(at(70)).units, of_all_time(&flow, Place::Delivered)), (0, 1));
}

#[test]
fn open_rows_that_a_cut_page_did_not_reach_stay_as_they_were() {
    let mut flow = Flow::new(settings());
    let delivered = attempt(1, 1, 5, Standing::Delivered);
    pass(
        &mut flow,
        10,
        &[(notification(1, 0), OPEN), (notification(2, 0), OPEN)],
        &[(delivered, OPEN)],
        nowhere,
    );
    flow.begin_pass(at(20));
    flow.notification(notification(1, 0), OPEN);
    assert!(flow.wanted(Reach::Page).is_empty());
    flow.end_pass().unwrap();
    assert_eq!((of_all_time(&flow, Place::Delivered), of_all_time(&flow, Place::Pending)), (1, 1));
    let totals = flow.figures(at(20)).totals;
    assert_eq!((totals.vanished, totals.attempt_vanished), (0, 0));
}

#[test]
fn attempts_of_one_instant_are_told_apart_by_a_lookup() {
    let mut flow = Flow::new(settings());
    let (older, newer) = (attempt(1, 1, 5, UNKNOWN), attempt(2, 1, 5, RETRY));
    let both = [older.clone(), newer.clone()];
    // The ledger shows the newer one first: its commit came earlier.
    pass(&mut flow, 60, &[(notification(1, 0), CLOSED)], &[(newer, CLOSED)], |_| Some(truth(0, &both)));
    assert_eq!(pass(&mut flow, 70, &[], &[(older, CLOSED)], |_| Some(truth(0, &both))).len(), 1);
    pass(&mut flow, 80, &[], &[], |_| Some(truth(0, &both)));
    let figures = flow.figures(at(90));
    assert_eq!((first_pending(&figures).retrying, first_pending(&figures).unknown), (1, 0));
}

#[test]
fn a_pending_notification_leaves_after_two_misses() {
    let mut flow = Flow::new(settings());
    pass(&mut flow, 60, &[(notification(1, 0), CLOSED)], &[], nowhere);
    assert_eq!(of_all_time(&flow, Place::Pending), 1, "one miss is not enough");
    pass(&mut flow, 70, &[], &[], |_| Some(truth(0, &[])));
    pass(&mut flow, 80, &[], &[], nowhere);
    assert_eq!(of_all_time(&flow, Place::Pending), 1, "the two must follow each other");
    pass(&mut flow, 90, &[], &[], nowhere);
    assert_eq!(of_all_time(&flow, Place::Pending), 0);
    assert_eq!(flow.figures(at(90)).totals.vanished, 1);
}

#[test]
fn an_attempt_without_a_notification_waits_for_the_overlap_and_no_longer() {
    let mut flow = Flow::new(settings());
    let lonely = (attempt(1, 1, 5, Standing::Delivered), CLOSED);
    pass(&mut flow, 60, &[], &[lonely], nowhere);
    pass(&mut flow, 89, &[], &[], nowhere);
    assert_eq!(flow.figures(at(89)).strays, 1);
    pass(&mut flow, 90, &[], &[], nowhere);
    let figures = flow.figures(at(90));
    assert_eq!((figures.strays, figures.totals.strays_given_up), (0, 1));
}

#[test]
fn more_pending_than_may_be_kept_is_an_error() {
    let mut flow = Flow::new(Settings { max_pending: 2, ..settings() });
    flow.begin_pass(at(60));
    (1..=3).for_each(|number| flow.notification(notification(number, 0), CLOSED));
    assert_eq!(flow.end_pass(), Err(TooMany { units: 3, limit: 2 }));
}

#[test]
fn lookups_are_bounded_and_every_pending_one_has_its_turn() {
    let mut flow = Flow::new(settings());
    let rows: Vec<_> = (1..=8).map(|number| (notification(number, 0), CLOSED)).collect();
    let there = |_: &UnitId| Some(truth(0, &[]));
    let mut asked = pass(&mut flow, 60, &rows, &[], there);
    assert_eq!(asked.len(), 3);
    asked.extend(pass(&mut flow, 70, &[], &[], there));
    asked.extend(pass(&mut flow, 80, &[], &[], there));
    assert_eq!(asked, (1..=8).map(unit).collect::<Vec<_>>());
    assert_eq!(pass(&mut flow, 90, &[], &[], there), [unit(1), unit(2), unit(3)]);
}

#[test]
fn a_kept_row_that_means_nothing_is_refused() {
    let mut flow = Flow::new(settings());
    flow.begin_pass(at(60));
    flow.notification(notification(1, 0), CLOSED);
    let mut store = Store::default();
    store.write(flow.end_pass().unwrap());
    let breaks: [fn(&mut DurableUnit); 3] =
        [|row| row.own = 8, |row| row.route = -1, |row| row.key = "?".into()];
    for break_it in breaks {
        let mut saved = Saved { units: store.units.values().cloned().collect(), ..Default::default() };
        break_it(&mut saved.units[0]);
        let error = Flow::restore(settings(), saved).unwrap_err().to_string();
        assert!(error.contains("let the ledger be read again"), "{error}");
    }
}
