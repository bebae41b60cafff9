//! What must hold of the audit whatever a ledger does: honest growth is never a violation, each mutation is one of its kind.

use super::{
    compare::{Change, History, Seen},
    sample::Settings,
    tests::{Audit, OPEN, TERMINAL, at, id, seen, settings},
};
use crate::domain::flow::rows::Standing;
use chrono::TimeDelta;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// One step of a ledger that keeps to the rules.
#[derive(Clone, Debug)]
enum Step {
    /// An attempt begins, or becomes visible late, with this outcome.
    Append { terminal: bool, which: usize, late: bool },
    /// An attempt without a terminal outcome gets another one, in place.
    Finish { terminal: bool, which: usize },
    /// What was delivered bounces: by a new attempt, or in place.
    Bounce { in_place: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), 0..4usize, any::<bool>())
            .prop_map(|(terminal, which, late)| Step::Append { terminal, which, late }),
        2 => (any::<bool>(), 0..4usize).prop_map(|(terminal, which)| Step::Finish { terminal, which }),
        1 => any::<bool>().prop_map(|in_place| Step::Bounce { in_place }),
    ]
}

/// How a reading is made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Look {
    /// Of the ledger as it is.
    Fresh,
    /// Of what the ledger was before, as a replica shows it that says nothing of its lag. Never twice in a row.
    Stale,
    /// The same, after a restart.
    FreshAfterRestart,
}

/// A ledger that keeps to the rules.
#[derive(Clone, Debug, Default)]
struct Honest {
    history: History,
    next: i64,
    reversals: u64,
}

impl Honest {
    /// The first terminal attempt.
    fn terminal(&self) -> Option<(u64, Seen)> {
        let all = self.history.attempts.iter().map(|(print, seen)| (*print, *seen));
        all.filter(|(_, seen)| seen.leaves.is_some_and(Standing::is_terminal)).min_by_key(|(_, seen)| seen.at)
    }

    fn apply(&mut self, step: &Step) {
        let print = u64::try_from(self.next).expect("a small number") * 7_919 % 1_009;
        match (step, self.terminal()) {
            (Step::Append { terminal, which, late: false }, None) => {
                let leaves = if *terminal { TERMINAL[*which] } else { OPEN[which % 2] };
                self.history.attempts.insert(print, seen(10 * self.next, leaves));
            }
            // It began before what is there, and was committed after it.
            (Step::Append { which, late: true, .. }, known) => {
                let before =
                    known.and_then(|(_, seen)| seen.at).map_or(at(0), |at| at - TimeDelta::seconds(5));
                let late = Seen { at: Some(before), ..seen(0, OPEN[which % 2]) };
                self.history.attempts.insert(print, late);
            }
            (Step::Finish { terminal, which }, None) => {
                // The newest one, so that nothing comes after it.
                let newest = self.history.attempts.values_mut().max_by_key(|seen| seen.at);
                let leaves = if *terminal { TERMINAL[*which] } else { OPEN[which % 2] };
                newest.into_iter().for_each(|seen| seen.leaves = Some(leaves));
            }
            (Step::Bounce { in_place }, Some((delivered, seen_before)))
                if seen_before.leaves == Some(Standing::Delivered) && self.reversals == 0 =>
            {
                self.reversals = 1;
                if *in_place {
                    let attempt = self.history.attempts.get_mut(&delivered);
                    attempt.into_iter().for_each(|seen| seen.leaves = Some(Standing::RejectedRecipient));
                } else {
                    let bounce = seen(10 * self.next, Standing::RejectedRecipient);
                    self.history.attempts.insert(print, bounce);
                }
            }
            _ => {}
        }
        self.next += 1;
    }
}

fn violations(found: &BTreeMap<Change, u64>) -> Vec<Change> {
    found.keys().copied().filter(|change| Change::VIOLATIONS.contains(change)).collect()
}

proptest! {
    #[test]
    fn honest_growth_is_never_a_violation(
        steps in prop::collection::vec((prop::collection::vec(step(), 0..4), 0..3u8), 1..12),
    ) {
        let mut audit = Audit::of_one(Settings {
            // Often enough that each step can be followed by a reading.
            ages: (1..40).map(|n| TimeDelta::seconds(300 * n)).collect(),
            ..settings(100)
        });
        let mut honest = Honest { next: 1, ..Honest::default() };
        let (mut before, mut last) = (honest.history.clone(), Look::Fresh);
        let mut reversals = 0;
        for (changes, look) in &steps {
            let look = match look {
                0 if last != Look::Stale => Look::Stale,
                1 => Look::FreshAfterRestart,
                _ => Look::Fresh,
            };
            if look != Look::Stale {
                before = honest.history.clone();
            }
            changes.iter().for_each(|step| honest.apply(step));
            if look == Look::FreshAfterRestart {
                audit.restart();
            }
            let shown = if look == Look::Stale { &before } else { &honest.history };
            let found = audit.read(Some(shown)).expect("readings are left");
            prop_assert_eq!(violations(&found), vec![], "{:?}", honest);
            reversals += found.get(&Change::LateReversal).copied().unwrap_or(0);
            last = look;
        }
        let found = audit.read(Some(&honest.history)).expect("readings are left");
        reversals += found.get(&Change::LateReversal).copied().unwrap_or(0);
        prop_assert_eq!(violations(&found), vec![]);
        // A bounce in place is seen only where what was delivered had been read.
        prop_assert!(reversals <= honest.reversals, "{reversals} seen of {}", honest.reversals);
    }

    #[test]
    fn each_mutation_is_found_once_as_what_it_is(
        terminal in 0..4usize,
        other in 0..4usize,
        open in 0..2usize,
        reading in 1..3usize,
        mutation in 0..6usize,
    ) {
        let mut history = History::default();
        history.attempts.insert(11, seen(10, OPEN[open]));
        history.attempts.insert(22, seen(20, TERMINAL[terminal]));
        let mut audit = Audit::of_one(settings(100));
        for _ in 0..reading {
            prop_assert_eq!(audit.read(Some(&history)), Some(BTreeMap::new()));
        }
        let is_bounce = |new| TERMINAL[terminal] == Standing::Delivered && new == Standing::RejectedRecipient;
        let (after, expected) = match mutation {
            0 if other != terminal => {
                history.attempts.insert(22, seen(20, TERMINAL[other]));
                let change =
                    if is_bounce(TERMINAL[other]) { Change::LateReversal } else { Change::OutcomeRewritten };
                (Some(history), Some((change, 1)))
            }
            1 => {
                history.attempts.insert(22, seen(20, OPEN[open]));
                (Some(history), Some((Change::OutcomeRewritten, 1)))
            }
            2 => {
                history.attempts.remove(if open == 0 { &11 } else { &22 });
                (Some(history), Some((Change::AttemptVanished, 1)))
            }
            3 => (None, Some((Change::AttemptVanished, 2))),
            4 => {
                history.attempts.insert(33, seen(30, TERMINAL[other]));
                let change = if is_bounce(TERMINAL[other]) {
                    Change::LateReversal
                } else {
                    Change::AttemptAfterTerminal
                };
                (Some(history), Some((change, 1)))
            }
            5 => {
                history.shares_key = true;
                (Some(history), Some((Change::SecondEffectForOneKey, 1)))
            }
            _ => (Some(history), None),
        };
        let expected: BTreeMap<Change, u64> = expected.into_iter().collect();
        prop_assert_eq!(audit.read_to_the_end(after.as_ref()), expected);
        prop_assert!(audit.sample.is_empty(), "after its last age it leaves the sample");
        audit.write();
        prop_assert!(audit.kept.is_empty());
    }

    #[test]
    fn the_sample_is_the_same_in_whatever_order_they_come(
        numbers in prop::collection::btree_set(0..5_000i64, 0..300),
        rotated in 0..300usize,
        size in 0..120usize,
    ) {
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let choose = |order: &mut dyn Iterator<Item = i64>| {
            let mut audit = Audit::new(settings(size));
            for number in order {
                audit.sample.offer(&id(number), at(10 * number - 50_000), at(0));
                assert!(audit.sample.len() <= size);
            }
            audit.write();
            audit.kept.into_keys().collect::<BTreeSet<_>>()
        };
        let forwards = choose(&mut numbers.iter().copied());
        let half = numbers.len().min(rotated);
        let turned = numbers[half..].iter().rev().chain(&numbers[..half]).copied();
        prop_assert_eq!(&forwards, &choose(&mut turned.into_iter()));
        let few = size / 25;
        if !numbers.is_empty() && few > 0 {
            prop_assert!(forwards.len() >= few.min(numbers.len()), "{} of {}", forwards.len(), numbers.len());
        }
    }

    #[test]
    fn a_restart_changes_nothing(
        steps in prop::collection::vec(prop::collection::vec(step(), 0..4), 1..6),
        stops in prop::collection::vec(any::<bool>(), 6),
    ) {
        let (mut one, mut other) = (Audit::of_one(settings(10)), Audit::of_one(settings(10)));
        let mut honest = Honest { next: 1, ..Honest::default() };
        for (number, changes) in steps.iter().enumerate() {
            changes.iter().for_each(|step| honest.apply(step));
            // Not so honest: every third reading finds nothing.
            let shown = (number % 3 != 2).then_some(&honest.history);
            if stops[number] {
                other.restart();
            }
            prop_assert_eq!(one.read(shown), other.read(shown));
        }
    }
}
