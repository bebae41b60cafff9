//! Whatever happens in a ledger, and whenever the follower looks, stops or is taken over: in the end its figures are those of a plain
//! recomputation over all rows that are there.
//!
//! Rows that are gone, and clocks that are wrong, claim less than that:
//! * What vanished while it was pending or open is in no figure. What vanished after it was settled and read for good counts as it was decided.
//!   What moved into an archive after it was read for good is there, as long as a lookup by id finds it.
//! * Of our clock and the database's one may be wrong, ahead or behind, by any amount and for any time. Where both are ahead, rows that become
//!   visible late may be passed by; what is known already stays known.
//! * After our clock was set back, an attempt that came before its notification may be missing among the attempts; where the notification stands is right.
//! * The lead may be lost in any pass and taken back: what a pass did not write, nobody has seen.

use super::{
    model::{Ledger, START, at},
    plan::plan,
    runner::{DEADLINES, Runner, WINDOWS},
};
use delivery_canary::domain::{
    accounting::{Partition, Place, residue},
    flow::{
        cells::Aligned,
        figures::FlowFigures,
        key::UnitKey,
        rows::{AttemptRow, NotificationRow, RouteNo, Standing},
    },
    pending::{PendingRow, PendingSnapshot, RoutePending, Tried},
    route::{Channel, RouteName},
};
use proptest::prelude::*;
use std::time::Duration;

/// Where a notification stands, plainly.
fn standing(row: &NotificationRow, attempts: &[&AttemptRow]) -> Standing {
    let mut newest_first = attempts.to_vec();
    newest_first.sort_by_key(|attempt| std::cmp::Reverse((attempt.at, attempt.attempt.clone())));
    let terminal = newest_first.iter().find(|attempt| attempt.leaves.is_terminal());
    let deciding = terminal.or(newest_first.first()).map(|attempt| attempt.leaves);
    row.own.or(deciding).unwrap_or(Standing::Pending(Tried::Never))
}

fn partition(ledger: &Ledger, second: i64, route: RouteNo, over: Aligned) -> Partition {
    let mut partition = Partition::default();
    for (unit, (row, attempts)) in ledger.customers(second) {
        if row.route == route && (over.from..over.until).contains(&row.due.timestamp()) {
            partition.add(Place::from(standing(row, &attempts)), UnitKey::from(unit).fingerprint());
        }
    }
    partition
}

fn attempts(ledger: &Ledger, second: i64, route: RouteNo, over: std::ops::Range<i64>) -> [i64; 5] {
    let mut counts = [0; 5];
    for (row, attempts) in ledger.customers(second).into_values() {
        let made =
            attempts.iter().filter(|attempt| row.route == route && over.contains(&attempt.at.timestamp()));
        for outcome in made.filter_map(|attempt| attempt.leaves.outcome()) {
            counts[outcome as usize] += 1;
        }
    }
    counts
}

fn pending(ledger: &Ledger, second: i64, route: RouteNo) -> RoutePending {
    let name = |place: usize| RouteName::new(Channel::Email, &format!("route-{place}"));
    let deadlines = DEADLINES
        .iter()
        .enumerate()
        .map(|(place, deadline)| (name(place), Duration::from_secs(*deadline)))
        .collect();
    let customers = ledger.customers(second);
    let rows = customers.values().filter_map(|(row, attempts)| match standing(row, attempts) {
        Standing::Pending(tried) => {
            let place = usize::from(row.route.0);
            let route = (place < DEADLINES.len()).then(|| name(place));
            Some(PendingRow { route, due: Some(row.due), tried, count: 1 })
        }
        _ => None,
    });
    let snapshot = PendingSnapshot::fold(at(second), &deadlines, rows, 0, false);
    let figures = snapshot.exact().unwrap();
    figures.routes.get(&name(usize::from(route.0))).unwrap_or(&figures.other).clone()
}

fn check(runner: &Runner) -> Result<FlowFigures, TestCaseError> {
    let (ledger, second) = (&runner.ledger, runner.second);
    let figures = runner.flow.figures(at(second));
    let now = START + second;
    for (place, route) in figures.routes.iter().enumerate() {
        let number = RouteNo(u16::try_from(place).unwrap());
        let all = Aligned { from: START - 7_200, until: START + 720_000 };
        let (from, until) = (at(-7_200), at(720_000));
        let (ours, theirs) =
            (runner.flow.partition(number, from, until), partition(ledger, second, number, all));
        prop_assert_eq!(ours, theirs, "the partition of route {}", place);
        prop_assert_eq!(residue(&ours, &theirs), 0);
        prop_assert_eq!(&route.pending, &pending(ledger, second, number), "the pending of route {}", place);
        let deadline = DEADLINES.get(place).or(DEADLINES.last()).unwrap().cast_signed();
        for (length, window) in WINDOWS.iter().zip(route.windows.values()) {
            let length = length.cast_signed();
            let cohort = partition(ledger, second, number, window.due_in);
            prop_assert_eq!(window.cohort, cohort, "the cohort of route {} over {} s", place, length);
            let until = now - deadline;
            let slack = |bound: i64| bound - 3_600..=bound;
            prop_assert!(
                slack(until - length).contains(&window.due_in.from),
                "{:?}, {}",
                window.due_in,
                until
            );
            prop_assert!(
                (until - 60..=until).contains(&window.due_in.until),
                "{:?}, {}",
                window.due_in,
                until
            );
            if !ledger.has_rewritten_attempts {
                // Minutes are kept for an hour at least; before, hours.
                let kept = if length <= 3_600 { 60 } else { 3_600 };
                let from = (now - length) - (now - length).rem_euclid(kept);
                let made = attempts(ledger, second, number, from..now - now.rem_euclid(60));
                prop_assert_eq!(window.attempts, made, "the attempts of route {} over {} s", place, length);
            }
        }
    }
    Ok(figures)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(600), ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_ends_in_the_figures_of_a_plain_recomputation(plan in plan()) {
        let mut runner = Runner::new(&plan);
        for pass in &plan.passes {
            runner.pass(pass);
        }
        runner.quiet();
        let figures = check(&runner)?;
        prop_assert_eq!(figures.strays, 0, "attempts still wait: {:?}", runner.store.strays);
prop_assert_eq!(figures.totals.found_late, 0);
        prop_assert!(figures.totals.strays_given_up == 0 || runner.ledger.has_removed_notifications);
        // What is kept is what is pending, and what was written says the same as what is in memory.
        runner.flow = runner.store.restore(super::runner::settings());
        runner.flow.begin_pass(at(runner.second));
        runner.flow.wanted(delivery_canary::domain::flow::follow::Reach::End);
        prop_assert!(runner.flow.end_pass().unwrap().is_empty(), "a restart alone changes what is written");
        let restored = check(&runner)?;
        prop_assert_eq!(restored.routes.iter().map(|route| &route.pending).collect::<Vec<_>>(),
            figures.routes.iter().map(|route| &route.pending).collect::<Vec<_>>());
        let kept = runner.store.units.len();
        let pending = runner.ledger.customers(runner.second).into_values()
            .filter(|(row, attempts)| !standing(row, attempts).is_terminal()).count();
        prop_assert!(kept >= pending && kept <= pending + runner.ledger.canaries.len(), "{} kept, {} pending", kept, pending);
    }
}
