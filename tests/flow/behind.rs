//! Notifications that the stream did not show in time, or not at all.

use super::{
    model::at,
    runner::{Store, settings},
    single::{CLOSED, OPEN, attempt, first_pending, notification, of_all_time, pass, truth, unit},
};
use delivery_canary::domain::{
    accounting::Place,
    flow::{
        durable::Saved,
        follow::{Flow, Reach},
        rows::{NotificationRow, RouteNo, Standing, UnitId},
        settings::Settings,
    },
    outcome::Outcome,
    pending::Tried,
};
use proptest::prelude::*;
use std::time::Duration;

const RETRY: Standing = Standing::Pending(Tried::WillRetry);

#[test]
fn a_notification_that_came_too_late_is_found_by_its_attempt() {
    let mut flow = Flow::new(settings());
    let delivered = attempt(1, 1, 5, Standing::Delivered);
    let there = |_: &UnitId| Some(truth(0, &[attempt(1, 1, 5, Standing::Delivered)]));
    pass(&mut flow, 60, &[], &[(delivered, CLOSED)], there);
    pass(&mut flow, 70, &[], &[], there);
    assert_eq!(of_all_time(&flow, Place::Delivered), 1);
    let figures = flow.figures(at(70));
    assert_eq!((figures.totals.found_late, figures.routes[0].came_behind), (1, 1));
}

#[test]
fn what_was_accepted_before_the_horizon_is_none_of_ours() {
    let mut flow = Flow::new(Settings { horizon: Some(at(0)), ..settings() });
    let delivered = attempt(1, 1, 5, Standing::Delivered);
    let before = |_: &UnitId| Some(truth(-1, &[attempt(1, 1, 5, Standing::Delivered)]));
    pass(&mut flow, 60, &[], &[(delivered, CLOSED)], before);
    assert_eq!(of_all_time(&flow, Place::Delivered), 0);
    let figures = flow.figures(at(60));
    assert_eq!((figures.strays, figures.totals.strays_given_up), (0, 0));
    let hour = figures.routes[0].windows[&Duration::from_secs(3_600)];
    assert_eq!(hour.attempts(Outcome::Delivered), 1, "the attempt was made all the same");
    assert!(!flow.take_in(notification(2, -1), &truth(-1, &[]), None));
}

/// What is pending and never came by is taken in once, is written down, and goes on as any other.
#[test]
fn what_came_behind_the_cursor_is_taken_in_with_its_age() {
    let mut flow = Flow::new(settings());
    let mut store = Store::default();
    let failed = attempt(1, 7, 40, RETRY);
    let there = |unit: &UnitId| {
        Some(if *unit == self::unit(7) { truth(30, std::slice::from_ref(&failed)) } else { truth(0, &[]) })
    };
    pass(&mut flow, 100, &[(notification(1, 0), CLOSED), (notification(2, 90), OPEN)], &[], there);
    for known in [1, 2] {
        assert!(!flow.take_in(notification(known, 0), &truth(0, &[]), None), "{known} is known");
    }
    let settled = truth(30, &[attempt(1, 8, 40, Standing::Delivered)]);
    assert!(!flow.take_in(notification(8, 30), &settled, None), "it is settled");
    assert!(flow.take_in(notification(7, 30), &truth(30, std::slice::from_ref(&failed)), None));
    assert!(
        !flow.take_in(notification(7, 30), &truth(30, std::slice::from_ref(&failed)), None),
        "it is known by now"
    );
    let figures = flow.figures(at(100));
    let pending = first_pending(&figures);
    assert_eq!((pending.unattempted, pending.retrying, pending.oldest_due), (2, 1, Some(at(0))));
    assert!((pending.age_sum_seconds - 180.0).abs() < 1e-9, "{pending:?}");
    assert_eq!((figures.routes[0].came_behind, flow.pending_by_hour().into_values().sum::<u64>()), (1, 3));

    flow.begin_pass(at(110));
    flow.wanted(Reach::End).iter().for_each(|unit| flow.truth(unit, there(unit)));
    store.write(flow.end_pass().unwrap());
    assert!(store.units.contains_key("i7"), "{:?}", store.units.keys());
    let saved = Saved { units: store.units.values().cloned().collect(), ..Default::default() };
    let mut again = Flow::restore(settings(), saved).unwrap();
    let done = attempt(2, 7, 120, Standing::Delivered);
    pass(&mut again, 160, &[], &[(done, CLOSED)], |_| None);
    assert_eq!((of_all_time(&again, Place::Delivered), of_all_time(&again, Place::Pending)), (1, 0));
}

/// What was settled and is pending again leaves the place that it was counted in.
#[test]
fn what_was_set_back_is_counted_once() {
    let mut flow = Flow::new(settings());
    let delivered = attempt(1, 1, 5, Standing::Delivered);
    pass(&mut flow, 60, &[(notification(1, 0), CLOSED)], &[(delivered, CLOSED)], |_| None);
    assert_eq!(of_all_time(&flow, Place::Delivered), 1);
    assert!(flow.take_in(notification(1, 0), &truth(0, &[]), Some(Place::Delivered)));
    pass(&mut flow, 70, &[], &[], |_| Some(truth(0, &[])));
    assert_eq!((of_all_time(&flow, Place::Delivered), of_all_time(&flow, Place::Pending)), (0, 1));
}

proptest! {
    /// Whatever part of the pending was shown by the stream, and whatever was taken in, all ends in the same figures.
    #[test]
    fn it_makes_no_difference_how_the_pending_became_known(dues in prop::collection::vec((0i64..7_000, any::<bool>(), 0u16..4), 1..40)) {
        let rows: Vec<(NotificationRow, bool)> = (0..)
            .zip(&dues)
            .map(|(number, (due, is_shown, route))| (NotificationRow { route: RouteNo(*route), ..notification(number, *due) }, *is_shown))
            .collect();
        let answer = |unit: &UnitId| {
            let (row, _) = rows.iter().find(|(row, _)| row.unit == *unit)?;
            Some(super::single::of_route(row.route, row.due))
        };
        let (mut by_stream, mut taken_in) = (Flow::new(settings()), Flow::new(settings()));
        let all: Vec<_> = rows.iter().map(|(row, _)| (row.clone(), CLOSED)).collect();
        pass(&mut by_stream, 8_000, &all, &[], answer);
        let shown: Vec<_> = rows.iter().filter(|(_, is_shown)| *is_shown).map(|(row, _)| (row.clone(), CLOSED)).collect();
        pass(&mut taken_in, 8_000, &shown, &[], answer);
        for (row, is_shown) in &rows {
            let truth = super::single::of_route(row.route, row.due);
            prop_assert_eq!(taken_in.take_in(row.clone(), &truth, None), !is_shown);
        }
        prop_assert_eq!(by_stream.pending_by_hour(), taken_in.pending_by_hour());
        for _ in 0..2 {
            let (one, other) = (by_stream.figures(at(8_000)), taken_in.figures(at(8_000)));
            for (place, (one, other)) in one.routes.iter().zip(&other.routes).enumerate() {
                prop_assert_eq!(&one.pending, &other.pending, "route {}", place);
                prop_assert_eq!(&one.windows, &other.windows, "route {}", place);
            }
            pass(&mut by_stream, 8_000, &[], &[], answer);
            pass(&mut taken_in, 8_000, &[], &[], answer);
        }
    }
}
