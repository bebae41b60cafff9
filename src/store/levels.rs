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
