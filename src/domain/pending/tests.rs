use super::*;
use crate::domain::route::Channel;
use chrono::TimeDelta;
use proptest::prelude::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn route(name: &str) -> RouteName {
    RouteName::new(Channel::Email, name)
}

fn deadlines(seconds: u64) -> BTreeMap<RouteName, Duration> {
    BTreeMap::from([
        (route("a"), Duration::from_secs(seconds)),
        (route("b"), Duration::from_secs(2 * seconds)),
    ])
}

fn row(name: &str, due: Option<DateTime<Utc>>, tried: Tried, count: u64) -> PendingRow {
    PendingRow { route: Some(route(name)), due, tried, count }
}

fn rows() -> impl Strategy<Value = Vec<PendingRow>> {
    let one = (
        prop_oneof![Just(Some("a")), Just(Some("b")), Just(Some("gone")), Just(None)],
        prop_oneof![8 => (-400_000_000i64..=1_000_000).prop_map(Some), 1 => Just(None)],
        prop_oneof![Just(Tried::Never), Just(Tried::WillRetry), Just(Tried::OutcomeUnknown)],
        0u64..5,
    );
    let one = one.prop_map(|(name, due_ms, tried, count)| PendingRow {
        route: name.map(route),
        due: due_ms.map(|ms| at(0) + TimeDelta::milliseconds(ms)),
        tried,
        count,
    });
    prop::collection::vec(one, 0..60)
}

/// The naive model: every notification by itself, counted by filters.
fn naive(rows: &[PendingRow], name: &str, deadline: Duration) -> RoutePending {
    let mine = |r: &&PendingRow| r.route == Some(route(name));
    let all: Vec<&PendingRow> = rows
        .iter()
        .filter(mine)
        .flat_map(|r| std::iter::repeat_n(r, usize::try_from(r.count).unwrap()))
        .collect();
    let aged: Vec<(i64, &PendingRow)> = all
        .iter()
        .filter_map(|r| Some(((at(0) - r.due?).num_milliseconds(), *r)))
        .filter(|(age_ms, _)| *age_ms >= 0)
        .collect();
    let count = |tried| aged.iter().filter(|(_, r)| r.tried == tried).count() as u64;
    let mut ages = [0; 12];
    for (age_ms, _) in &aged {
        let bucket =
            AGE_BOUNDS_SECONDS.iter().filter(|bound| *age_ms > 1_000 * i64::try_from(**bound).unwrap());
        ages[bucket.count()] += 1;
    }
    RoutePending {
        scheduled: all.iter().filter(|r| r.due.is_some_and(|due| due > at(0))).count() as u64,
        unattempted: count(Tried::Never),
        retrying: count(Tried::WillRetry),
        unknown: count(Tried::OutcomeUnknown),
        refused_times: all.iter().filter(|r| r.due.is_none()).count() as u64,
        ages,
        age_sum_seconds: aged.iter().map(|(age_ms, _)| *age_ms as f64 / 1_000.0).sum(),
        over_deadline: Some(
            aged.iter().filter(|(age_ms, _)| *age_ms > i64::try_from(deadline.as_millis()).unwrap()).count()
                as u64,
        ),
        oldest_due: aged.iter().filter_map(|(_, r)| r.due).min(),
        oldest_unknown: aged
            .iter()
            .filter(|(_, r)| r.tried == Tried::OutcomeUnknown)
            .filter_map(|(_, r)| r.due)
            .min(),
    }
}

proptest! {
    #[test]
    fn the_fold_is_the_naive_count(rows in rows(), deadline in 1u64..400_000) {
        let snapshot = PendingSnapshot::fold(at(0), &deadlines(deadline), rows.clone(), 0, false);
        let figures = snapshot.exact().unwrap();
        for (name, factor) in [("a", 1), ("b", 2)] {
            let mut found = figures.routes[&route(name)].clone();
            let expected = naive(&rows, name, Duration::from_secs(factor * deadline));
            prop_assert!((found.age_sum_seconds - expected.age_sum_seconds).abs() < 1e-3);
            found.age_sum_seconds = expected.age_sum_seconds;
            prop_assert_eq!(found, expected);
        }
        let folded = rows.iter().filter(|r| r.route.as_ref().is_none_or(|r| !deadlines(1).contains_key(r)));
        prop_assert_eq!(figures.folded_rows, folded.count() as u64);
        prop_assert_eq!(figures.other.over_deadline, None);
    }

    #[test]
    fn order_and_grouping_of_rows_change_nothing(rows in rows(), deadline in 1u64..400_000) {
        let fold = |rows: Vec<PendingRow>| PendingSnapshot::fold(at(0), &deadlines(deadline), rows, 0, false);
        let single = rows.iter().flat_map(|r| (0..r.count).map(|_| PendingRow { count: 1, ..r.clone() })).rev().collect();
        let (one, other) = (fold(rows), fold(single));
        for (name, found) in &one.at_least().routes {
            let mut found = found.clone();
            let expected = &other.at_least().routes[name];
            prop_assert!((found.age_sum_seconds - expected.age_sum_seconds).abs() < 1e-3);
            found.age_sum_seconds = expected.age_sum_seconds;
            prop_assert_eq!(&found, expected);
        }
    }

    #[test]
    fn each_notification_is_counted_once(rows in rows()) {
        let snapshot = PendingSnapshot::fold(at(0), &deadlines(60), rows.clone(), 0, false);
        let figures = snapshot.exact().unwrap();
        let of = |p: &RoutePending| PendingState::ALL.iter().map(|s| p.in_state(*s)).sum::<u64>() + p.refused_times;
        let counted: u64 = figures.routes.values().chain([&figures.other]).map(of).sum();
        prop_assert_eq!(counted, rows.iter().map(|r| r.count).sum::<u64>());
        for pending in figures.routes.values().chain([&figures.other]) {
            let aged = pending.unattempted + pending.retrying + pending.unknown;
            prop_assert_eq!(pending.ages.iter().sum::<u64>(), aged);
        }
    }
}

#[test]
fn trial_28_a_drained_route_is_explicit() {
    let stuck = vec![row("a", Some(at(-7_200)), Tried::WillRetry, 1)];
    let before = PendingSnapshot::fold(at(0), &deadlines(60), stuck, 0, false);
    assert_eq!(before.exact().unwrap().routes[&route("a")].oldest_due, Some(at(-7_200)));
    let after = PendingSnapshot::fold(at(15), &deadlines(60), [], 0, false);
    assert_eq!(after.exact().unwrap().routes[&route("a")], RoutePending::drained());
    assert_eq!(after.exact().unwrap().routes[&route("b")], RoutePending::drained());
}

#[test]
fn trial_29_ages_run_from_the_due_time() {
    let scheduled = row("a", Some(at(3_600)), Tried::Never, 1);
    let before = PendingSnapshot::fold(at(0), &deadlines(60), [scheduled.clone()], 0, false);
    let pending = &before.exact().unwrap().routes[&route("a")];
    assert_eq!((pending.scheduled, pending.unattempted, pending.ages.iter().sum::<u64>()), (1, 0, 0));
    assert_eq!((pending.oldest_due, pending.over_deadline), (None, Some(0)));
    let after = PendingSnapshot::fold(at(3_610), &deadlines(60), [scheduled], 0, false);
    let pending = &after.exact().unwrap().routes[&route("a")];
    assert_eq!((pending.scheduled, pending.unattempted, pending.ages[0]), (0, 1, 1));
    assert!((pending.age_sum_seconds - 10.0).abs() < 1e-9);
}

#[test]
fn past_the_deadline_means_older_than_it() {
    for (age, over) in [(59, 0), (60, 0), (61, 7)] {
        let rows = [row("a", Some(at(-age)), Tried::Never, 7)];
        let snapshot = PendingSnapshot::fold(at(0), &deadlines(60), rows, 0, false);
        assert_eq!(snapshot.exact().unwrap().routes[&route("a")].over_deadline, Some(over), "age {age}");
    }
}

#[test]
fn a_result_that_was_cut_has_bounds_and_no_facts() {
    let rows = [row("a", Some(at(-100)), Tried::Never, 3)];
    let snapshot = PendingSnapshot::fold(at(0), &deadlines(60), rows, 0, true);
    assert!(snapshot.is_truncated());
    assert_eq!(snapshot.exact(), None);
    assert_eq!(snapshot.at_least().routes[&route("a")].over_deadline, Some(3));
}

#[test]
fn trial_30_a_route_that_left_the_configuration_is_folded() {
    let rows =
        [row("gone", Some(at(-100)), Tried::OutcomeUnknown, 2), row("b", Some(at(-1)), Tried::Never, 1)];
    let snapshot = PendingSnapshot::fold(at(0), &deadlines(60), rows, 0, false);
    let figures = snapshot.exact().unwrap();
    assert!(!figures.routes.contains_key(&route("gone")));
    assert_eq!((figures.other.unknown, figures.folded_rows), (2, 1));
    assert_eq!(figures.other.oldest_unknown, Some(at(-100)));
}
