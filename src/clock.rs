//! What time it is: by the store's clock, where the store has one of its own, and else by the system's.
//!
//! Several processes share one store on PostgreSQL, and what one of them writes down another one judges. Were each to go by its own
//! clock, one that is wrong would make verdicts of nothing. So all of them keep the store's time, carried from one reading to the
//! next by the monotonic clock: setting the system's clock changes nothing. Why it is made so: docs/adr/0013-the-stores-time.md.
//!
//! A process has one clock, as it has one system's clock; that is why this one is not handed from part to part.

use chrono::{DateTime, TimeDelta, Utc};
use std::{
    sync::{
        LazyLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

/// The clock of this process.
static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock::new(Instant::now()));

/// No reading yet.
const UNKNOWN: i64 = i64::MIN;

/// What time it is, to the microsecond.
pub fn now() -> DateTime<Utc> {
    CLOCK.at(Instant::now()).unwrap_or_else(Utc::now)
}

/// Takes a reading of the store's clock. Answers by how much that moved what time it is.
pub fn learn(reading: &Reading) -> TimeDelta {
    let skew = reading.skew();
    CLOCK.learn(reading).unwrap_or(skew.ahead)
}

/// A reading of another clock: what it said at some moment between two of ours.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// When it was asked, by the monotonic clock.
    pub asked: Instant,
    /// When it was asked, by the system's clock.
    pub asked_at: DateTime<Utc>,
    /// When its answer was there.
    pub answered: Instant,
    /// What it said.
    pub said: DateTime<Utc>,
}

/// How far another clock is ahead of the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// By so much, taken that it was read in the middle of the round trip.
    pub ahead: TimeDelta,
    /// It is at most so far from that: half the round trip.
    pub error: TimeDelta,
}

impl Skew {
    /// Whether the two clocks are further apart than this, beyond the doubt of the reading.
    pub fn exceeds(&self, bound: TimeDelta) -> bool {
        self.ahead.abs() - self.error > bound
    }
}

impl Reading {
    /// How far that clock is ahead of the system's.
    pub fn skew(&self) -> Skew {
        let round_trip = self.answered.saturating_duration_since(self.asked);
        let error = TimeDelta::from_std(round_trip / 2).unwrap_or(TimeDelta::MAX);
        Skew { ahead: self.said - self.asked_at - error, error }
    }
}

/// Another clock, as it is known by its readings.
#[derive(Debug)]
struct Clock {
    beginning: Instant,
    /// What it shows less what the monotonic clock shows since the beginning, in microseconds.
    offset: AtomicI64,
}

impl Clock {
    const fn new(beginning: Instant) -> Self {
        Self { beginning, offset: AtomicI64::new(UNKNOWN) }
    }

    fn since_beginning(&self, at: Instant) -> i64 {
        i64::try_from(at.saturating_duration_since(self.beginning).as_micros()).unwrap_or(i64::MAX)
    }

    /// What it shows at this moment; nothing before the first reading.
    fn at(&self, moment: Instant) -> Option<DateTime<Utc>> {
        let offset = self.offset.load(Ordering::Relaxed);
        if offset == UNKNOWN {
            return None;
        }
        DateTime::from_timestamp_micros(self.since_beginning(moment).checked_add(offset)?)
    }

    /// Takes a reading. It was made at some moment of the round trip, and nobody knows at which: what is known already moves as little
    /// as the reading demands, so that slow answers move nothing. Answers by how much it moved; nothing for the first.
    fn learn(&self, reading: &Reading) -> Option<TimeDelta> {
        let said = reading.said.timestamp_micros();
        let most = said - self.since_beginning(reading.asked);
        let least = said - self.since_beginning(reading.answered);
        let known = self.offset.load(Ordering::Relaxed);
        let offset = if known == UNKNOWN { least + (most - least) / 2 } else { known.clamp(least, most) };
        self.offset.store(offset, Ordering::Relaxed);
        (known != UNKNOWN).then(|| TimeDelta::microseconds(offset - known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn wall(micros: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(1_790_000_000_000_000 + micros).expect("an instant")
    }

    /// A reading of a clock that is `ahead` of ours: asked so long after the beginning, read after the way there, answered after
    /// the way back.
    fn reading(beginning: Instant, asked: u64, there: u64, back: u64, ahead: i64) -> Reading {
        let after = |micros| beginning + Duration::from_micros(micros);
        let at = |micros: u64| wall(i64::try_from(micros).expect("it is small"));
        Reading {
            asked: after(asked),
            asked_at: at(asked),
            answered: after(asked + there + back),
            said: at(asked + there) + TimeDelta::microseconds(ahead),
        }
    }

    #[test]
    fn before_the_first_reading_nothing_is_known() {
        let clock = Clock::new(Instant::now());
        assert_eq!(clock.at(Instant::now()), None);
    }

    #[test]
    fn a_slow_answer_moves_nothing_that_it_does_not_contradict() {
        let beginning = Instant::now();
        let clock = Clock::new(beginning);
        assert_eq!(clock.learn(&reading(beginning, 0, 100, 100, 90_000_000)), None);
        let slow = clock.learn(&reading(beginning, 1_000_000, 10, 4_000_000, 90_000_000));
        assert_eq!(slow, Some(TimeDelta::zero()));
        let set_back = clock.learn(&reading(beginning, 6_000_000, 100, 100, 0));
        assert_eq!(set_back.map(|moved| moved.num_milliseconds()), Some(-89_999), "as little as is needed");
    }

    #[test]
    fn a_difference_within_the_doubt_of_the_reading_is_none() {
        let beginning = Instant::now();
        let fast = reading(beginning, 0, 1_000, 1_000, 6_000_000).skew();
        assert_eq!(fast, Skew { ahead: TimeDelta::seconds(6), error: TimeDelta::milliseconds(1) });
        assert!(fast.exceeds(TimeDelta::seconds(5)));
        let slow = reading(beginning, 0, 4_000_000, 0, 4_000_000).skew();
        assert_eq!(slow, Skew { ahead: TimeDelta::seconds(6), error: TimeDelta::seconds(2) });
        assert!(!slow.exceeds(TimeDelta::seconds(5)));
    }

    proptest! {
        #[test]
        fn what_is_known_is_never_further_off_than_the_newest_round_trip(
            ahead in -10_000_000_000i64..10_000_000_000,
            ways in prop::collection::vec((0u64..3_000_000, 0u64..3_000_000), 1..20),
        ) {
            let beginning = Instant::now();
            let clock = Clock::new(beginning);
            let mut asked = 0;
            for (there, back) in ways {
                clock.learn(&reading(beginning, asked, there, back, ahead));
                asked += 10_000_000;
                let shown = clock.at(beginning + Duration::from_micros(asked)).expect("it is known");
                let true_time = wall(i64::try_from(asked).expect("it is small")) + TimeDelta::microseconds(ahead);
                let off = (shown - true_time).num_microseconds().expect("it is small").unsigned_abs();
                prop_assert!(off <= there + back, "{off} of {}", there + back);
            }
        }

        #[test]
        fn the_skew_of_a_reading_is_right_within_its_error(
            ahead in -10_000_000_000i64..10_000_000_000, there in 0u64..3_000_000, back in 0u64..3_000_000,
        ) {
            let skew = reading(Instant::now(), 0, there, back, ahead).skew();
            let off = (skew.ahead - TimeDelta::microseconds(ahead)).abs();
            prop_assert!(off <= skew.error + TimeDelta::microseconds(1), "{off} {:?}", skew);
        }
    }
}
