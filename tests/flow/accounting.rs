//! How far two divisions are apart, and which units make them so.

use delivery_canary::domain::{
    accounting::{Misplaced, Partition, Place, explain, residue},
    flow::{
        key::UnitKey,
        rows::{LedgerId, Standing, UnitId},
    },
    pending::Tried,
};
use proptest::{array::uniform5, collection::vec, prelude::*, sample::select};

const STANDINGS: [Standing; 5] = [
    Standing::Delivered,
    Standing::RejectedRecipient,
    Standing::RejectedService,
    Standing::Suppressed,
    Standing::Pending(Tried::WillRetry),
];

fn unit(number: usize) -> UnitId {
    UnitId { notification: LedgerId::Int(i64::try_from(number).unwrap()), destination: None }
}

fn partition(units: &[(UnitId, Standing)]) -> Partition {
    let mut partition = Partition::default();
    for (unit, standing) in units {
        partition.add(Place::from(*standing), UnitKey::from(unit.clone()).fingerprint());
    }
    partition
}

fn units() -> impl Strategy<Value = Vec<(UnitId, Standing)>> {
    vec(select(STANDINGS.as_slice()), 1..30).prop_map(|standings| {
        standings.into_iter().enumerate().map(|(number, standing)| (unit(number), standing)).collect()
    })
}

fn counts() -> impl Strategy<Value = Partition> {
    uniform5(0_i64..20).prop_map(|counts| Partition { counts, ..Partition::default() })
}

proptest! {
    #[test]
    fn the_residue_is_the_least_number_of_moves(ours in counts(), theirs in counts()) {
        // Plainly: move one at a time from where there is too much to where there is too little.
        let (mut counts, mut moves) = (ours.counts, 0);
        loop {
            let too_many = (0..5).find(|place| counts[*place] > theirs.counts[*place]);
            let too_few = (0..5).find(|place| counts[*place] < theirs.counts[*place]);
            if let Some(place) = too_many { counts[place] -= 1; }
            if let Some(place) = too_few { counts[place] += 1; }
            if too_many.is_none() && too_few.is_none() { break; }
            moves += 1;
        }
        prop_assert_eq!(residue(&ours, &theirs), moves);
        prop_assert_eq!(residue(&theirs, &ours), moves);
    }

    #[test]
    fn one_misplaced_unit_is_named(fresh in units(), which in any::<prop::sample::Index>(), other in select(STANDINGS.as_slice())) {
        let mut followed = fresh.clone();
        let (unit, standing) = &mut followed[which.index(fresh.len())];
        let expected = Misplaced { unit: unit.clone(), followed: Some(other.into()), fresh: (*standing).into() };
        let is_same = *standing == other;
        *standing = other;
        let explanation = explain(&partition(&followed), &fresh);
        prop_assert_eq!(explanation.exact, if is_same { vec![] } else { vec![expected] });
        prop_assert!(explanation.candidates.is_empty());
    }

    #[test]
    fn one_unit_that_was_not_followed_is_named(fresh in units(), which in any::<prop::sample::Index>()) {
        let mut followed = fresh.clone();
        let (unit, standing) = followed.remove(which.index(fresh.len()));
        let explanation = explain(&partition(&followed), &fresh);
        prop_assert_eq!(explanation.exact, vec![Misplaced { unit, followed: None, fresh: standing.into() }]);
    }

    #[test]
    fn one_unit_that_is_gone_is_told_by_its_place(followed in units(), which in any::<prop::sample::Index>()) {
        let mut fresh = followed.clone();
        let (_, standing) = fresh.remove(which.index(followed.len()));
        let explanation = explain(&partition(&followed), &fresh);
        prop_assert_eq!(explanation.only_followed, Some(Place::from(standing)));
        prop_assert!(explanation.exact.is_empty() && explanation.candidates.is_empty());
    }

    #[test]
    fn several_misplaced_units_are_among_the_candidates(fresh in units(), moved in vec(select(STANDINGS.as_slice()), 1..30)) {
        let mut followed = fresh.clone();
        followed.iter_mut().zip(moved).for_each(|((_, standing), other)| *standing = other);
        let explanation = explain(&partition(&followed), &fresh);
        for (before, (unit, now)) in followed.iter().zip(&fresh) {
            let is_named = explanation.exact.iter().any(|misplaced| misplaced.unit == *unit)
                || explanation.candidates.contains(&(unit.clone(), Place::from(*now)));
            prop_assert!(before.1 == *now || is_named, "{:?} in {:?}", unit, explanation);
        }
    }
}

#[test]
fn places_have_words_and_one_order() {
    assert_eq!(
        Place::ALL.map(Place::word),
        ["delivered", "rejected_recipient", "rejected_service", "suppressed", "pending"]
    );
    assert_eq!(Place::ALL[..4], Place::TERMINAL);
}
