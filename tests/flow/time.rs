//! What time it is for a follower, whatever its clocks say.

use super::model::at;
use delivery_canary::domain::flow::time::{Passing, surely};
use proptest::prelude::*;
use std::time::{Duration, Instant};

proptest! {
    /// A clock that is off by a little is taken at its word; one that jumps ahead moves nothing, as often and for as long as it does.
    #[test]
    fn no_jump_ahead_moves_the_time(
        first in -5_i64..=5,
        readings in prop::collection::vec((0_u64..5_000, prop_oneof![
            6 => -5_i64..=5, 1 => Just(36_000_i64), 1 => Just(2_764_800_i64), 1 => Just(-3_600_i64),
        ]), 1..60),
    ) {
        let beginning = Instant::now();
        let (mut passing, mut gone) = (Passing::default(), 0_u64);
        passing.read(beginning, at(first));
        for (gap, off) in readings {
            gone += gap;
            let right = gone.cast_signed();
            let now = passing.read(beginning + Duration::from_secs(gone), at(right + off));
            prop_assert!(now.at <= at(right + 5), "{:?} at {}", now, right);
            prop_assert_eq!(now.jumped.is_some(), off > 5, "{:?}", now);
            if off <= 5 {
                prop_assert_eq!(now.at, at(right + off));
            }
        }
    }

    #[test]
    fn the_clock_that_is_behind_is_believed(ours in -400_i64..400, database in -400_i64..400) {
        prop_assert_eq!(surely(at(ours), at(database)), at(ours.min(database)));
    }
}

/// A process that stood still, or whose clock was far behind and is set right, goes on by the monotonic clock.
#[test]
fn after_a_jump_that_stays_time_still_goes_by() {
    let beginning = Instant::now();
    let mut passing = Passing::default();
    passing.read(beginning, at(0));
    for second in [10_u64, 20, 3_600] {
        let now = passing.read(beginning + Duration::from_secs(second), at(36_000 + second.cast_signed()));
        assert_eq!(
            (now.at, now.jumped.map(|ahead| ahead.num_seconds())),
            (at(second.cast_signed()), Some(36_000))
        );
    }
}
