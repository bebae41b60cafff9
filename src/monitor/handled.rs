//! How far the slots of each stream have been handled.

use crate::domain::route::CanaryId;
use chrono::{DateTime, TimeDelta, Utc};

/// What was handled may lie so far ahead of now: clocks of replicas differ, and are adjusted. What lies further ahead was handled by a
/// clock that was wrong, and must not hold the schedule back. Going on from now is safe: a slot's key is the same whenever it is planned.
pub const AHEAD: TimeDelta = TimeDelta::seconds(5);

/// How far a stream of slots has been handled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handled {
    /// Slots up to here are handled.
    pub until: DateTime<Utc>,
    /// The newest scheduled slot that was served: confirmations are counted from it.
    pub newest: Option<(DateTime<Utc>, CanaryId)>,
}

impl Handled {
    /// The same, but for what lies ahead of this slot time.
    pub fn not_ahead_of(self, until: DateTime<Utc>) -> Self {
        if self.until <= until + AHEAD {
            return self;
        }
        Self { until, newest: self.newest.filter(|(slot, _)| *slot <= until) }
    }
}

/// Where a stream was left, by the newest slot in the store; `until` where there is none, or one that can't have come yet.
pub fn left_at(newest: Option<DateTime<Utc>>, until: DateTime<Utc>) -> Handled {
    Handled { until: newest.unwrap_or(until), newest: None }.not_ahead_of(until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + seconds, 0).expect("an instant")
    }

    #[test]
    fn a_slot_that_a_wrong_clock_planned_does_not_hold_the_schedule_back() {
        assert_eq!(left_at(Some(at(3_600)), at(0)).until, at(0), "an hour ahead: it goes on from now");
        assert_eq!(left_at(Some(at(3)), at(0)).until, at(3), "a replica's clock is a little ahead");
        assert_eq!(left_at(Some(at(-600)), at(0)).until, at(-600), "slots since then were missed");
        assert_eq!(left_at(None, at(0)).until, at(0), "the very first start");
    }

    #[test]
    fn a_clock_that_is_set_back_takes_what_it_handled_back_with_it() {
        let parent = CanaryId(uuid::Uuid::from_u128(1));
        let ahead = Handled { until: at(3_600), newest: Some((at(3_600), parent)) };
        assert_eq!(ahead.not_ahead_of(at(40)), Handled { until: at(40), newest: None });
        let here = Handled { until: at(30), newest: Some((at(30), parent)) };
        assert_eq!(here.not_ahead_of(at(40)), here);
    }

    proptest! {
        #[test]
        fn nothing_handled_stays_further_ahead_than_clocks_differ(newest in -9_000i64..9_000, now in -9_000i64..9_000) {
            let handled = left_at(Some(at(newest)), at(now));
            prop_assert!(handled.until <= at(now) + AHEAD);
            prop_assert!(handled.until == at(newest) || newest > now);
        }
    }
}
