//! Sums at several levels of time, so that a window is made of few rows however long it is.
//!
//! Each sum stands in a bucket of each level. A window takes the largest buckets that lie whole within it, and smaller ones at
//! its two edges: 30 days are at most some 100 buckets of a route, where minutes would be 43,200. A bucket belongs to the window
//! that holds its beginning.

use chrono::{DateTime, Utc};

const SECOND: i64 = 1_000_000;

/// A level of sums: the length of its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level {
    /// The length in seconds.
    pub(super) seconds: i64,
    /// Whether it is kept as long as sums by minute, or as long as sums by hour.
    pub(super) is_fine: bool,
}

/// The levels, the finest first. Each length divides the next.
pub(super) const LEVELS: [Level; 4] = [
    Level { seconds: 60, is_fine: true },
    Level { seconds: 600, is_fine: true },
    Level { seconds: 3_600, is_fine: false },
    Level { seconds: 86_400, is_fine: false },
];

impl Level {
    /// The beginning of the bucket that holds this instant, in microseconds.
    pub(super) const fn bucket(self, micros: i64) -> i64 {
        micros - micros.rem_euclid(self.micros())
    }

    const fn micros(self) -> i64 {
        self.seconds * SECOND
    }

    /// The first beginning of a bucket at or after this instant.
    const fn next(self, micros: i64) -> i64 {
        self.bucket(micros + self.micros() - 1)
    }
}

/// Buckets of one level with a beginning in [from, until), in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The level.
    pub(super) level: Level,
    /// The first beginning.
    pub(super) from: i64,
    /// Before this.
    pub(super) until: i64,
}

/// The ranges that make up [from, until): no instant twice, and none left out that a level still has.
///
/// `kept_from` says, for each level, from when on it still has its sums. Where the finer ones are gone, the left edge is as exact as
/// the finest that is left.
pub(super) fn cover(from: DateTime<Utc>, until: DateTime<Utc>, kept_from: [i64; LEVELS.len()]) -> Vec<Range> {
    let (mut from, mut until) = (from.timestamp_micros(), until.timestamp_micros());
    let mut ranges = Vec::new();
    // The finest level decides what the window holds, as long as it is there; where it is not, the next.
    for (place, level) in LEVELS.into_iter().enumerate() {
        if place + 1 == LEVELS.len() {
            push(&mut ranges, level, from.max(kept_from[place]), until);
            break;
        }
        let coarser = LEVELS[place + 1];
        let (left, right) = (coarser.next(from), coarser.bucket(until));
        if left >= right {
            push(&mut ranges, level, from.max(kept_from[place]), until);
            break;
        }
        if kept_from[place] <= from {
            push(&mut ranges, level, from, left);
        }
        push(&mut ranges, level, right.max(kept_from[place]), until);
        (from, until) = (left, right);
    }
    ranges
}

fn push(ranges: &mut Vec<Range>, level: Level, from: i64, until: i64) {
    if from < until {
        ranges.push(Range { level, from, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(micros).expect("an instant")
    }

    /// The minutes of a range, by their beginnings.
    fn minutes(range: &Range) -> impl Iterator<Item = i64> + use<> {
        let (length, until) = (range.level.micros(), range.until);
        let buckets =
            (range.level.next(range.from)..until).step_by(usize::try_from(length).expect("positive"));
        buckets.flat_map(move |bucket| (bucket..bucket + length).step_by(60 * 1_000_000))
    }

    proptest! {
        // Each case looks at every minute of weeks.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_window_holds_each_of_its_minutes_once(
            until in 0i64..4_000_000 * SECOND,
            length in 0i64..3_000_000 * SECOND,
        ) {
            let from = until - length;
            let ranges = cover(at(from), at(until), [i64::MIN; LEVELS.len()]);
            let mut covered: Vec<i64> = ranges.iter().flat_map(minutes).collect();
            covered.sort_unstable();
            let first = LEVELS[0].next(from);
            let expected: Vec<i64> = (first..until).step_by(60 * 1_000_000).collect();
            prop_assert_eq!(covered, expected);
            prop_assert!(ranges.len() < 2 * LEVELS.len());
        }

        #[test]
        fn a_window_reads_few_buckets(until in 0i64..4_000_000 * SECOND, days in 0i64..40) {
            let from = until - days * 86_400 * SECOND;
            let ranges = cover(at(from), at(until), [i64::MIN; LEVELS.len()]);
            let buckets: i64 = ranges.iter().map(|range| (range.until - range.from) / range.level.micros() + 1).sum();
            prop_assert!(buckets <= days + 2 * (10 + 6 + 24));
        }

        #[test]
        fn where_fine_levels_are_gone_only_the_left_edge_is_rounded(
            until in 3_000_000 * SECOND..4_000_000 * SECOND,
            length in 200_000 * SECOND..2_000_000 * SECOND,
        ) {
            let from = until - length;
            let kept = LEVELS.map(|level| if level.is_fine { level.bucket(until - 100_000 * SECOND) } else { 0 });
            let mut covered: Vec<i64> = cover(at(from), at(until), kept).iter().flat_map(minutes).collect();
            covered.sort_unstable();
            let first = LEVELS[2].next(from);
            let expected: Vec<i64> = (first..until).step_by(60 * 1_000_000).collect();
            prop_assert_eq!(covered, expected);
        }
    }
}
