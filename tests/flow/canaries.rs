//! Canaries among the customers' notifications are in no figure.

use super::{
    model::at,
    runner::settings,
    single::{CLOSED, OPEN, attempt, first_pending, notification, of_all_time, pass, truth, unit},
};
use delivery_canary::domain::{
    accounting::Place,
    flow::{
        follow::{Flow, Reach},
        rows::{AttemptRow, NotificationRow, Standing},
    },
    outcome::Outcome,
    pending::RoutePending,
};
use std::time::Duration;

#[test]
fn canaries_are_in_no_figure_and_unmarked_ones_are_leaks_once() {
    let mut flow = Flow::new(settings());
    let marked = NotificationRow { is_marked_canary: true, has_canary_key: true, ..notification(1, 0) };
    let by_key = NotificationRow { has_canary_key: true, ..notification(2, 0) };
    let (by_id, mut part) = (notification(3, 0), notification(4, 0));
    part.unit.destination = Some("one".into());
    let rows = [marked, by_key, by_id, part.clone()];
    for (second, is_closed) in [(10, OPEN), (20, OPEN), (60, CLOSED), (70, CLOSED)] {
        let rows: Vec<_> = rows.iter().filter(|_| second < 70).map(|row| (row.clone(), is_closed)).collect();
        flow.begin_pass(at(second));
        flow.canaries(&[unit(3), unit(4)]);
        rows.into_iter().for_each(|(row, is_closed)| flow.notification(row, is_closed));
        let delivered = AttemptRow { unit: part.unit.clone(), ..attempt(1, 4, 5, Standing::Delivered) };
        flow.attempt(delivered, false);
        flow.wanted(Reach::End);
        flow.end_pass().unwrap();
        let figures = flow.figures(at(500));
        assert_eq!(first_pending(&figures), &RoutePending::drained());
        let window = figures.routes[0].windows[&Duration::from_secs(3_600)];
        assert_eq!((window.accepted(), window.attempts(Outcome::Delivered)), (0, 0));
        assert_eq!(figures.routes[0].leaks, if second < 60 { 0 } else { 3 });
    }
}

#[test]
fn a_canary_that_is_known_only_later_is_taken_out() {
    let mut flow = Flow::new(settings());
    pass(&mut flow, 60, &[(notification(1, 0), CLOSED)], &[], |_| Some(truth(0, &[])));
    assert_eq!(of_all_time(&flow, Place::Pending), 1);
    for second in [70, 80] {
        flow.begin_pass(at(second));
        flow.canaries(&[unit(1)]);
        flow.end_pass().unwrap();
        assert_eq!(of_all_time(&flow, Place::Pending), 0);
        assert_eq!(flow.figures(at(second)).routes[0].leaks, 1);
    }
}
