//! An independent count of the accepted: what a counter that was looked at now and then surely came to in an interval.
//!
//! A counter shows a sum at the moments of our looks alone, and a ledger has times of its own. So an interval has no single figure but two bounds: the
//! looks just inside of it give the least, those just outside the most. What lies between them is not known, and nothing is concluded from it.

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// Between two looks, as long as no hour's edge is near.
const EVERY: TimeDelta = TimeDelta::seconds(60);

/// How long before the edge of an hour the look is begun that has to end by then.
const LEAD: TimeDelta = TimeDelta::seconds(1);

/// How far from an edge the nearest look may be: one that failed, and some delay.
const REACH: TimeDelta = TimeDelta::seconds(90);

/// How far apart two readings of one process's start may be: some are computed anew each time.
const SAME_START: TimeDelta = TimeDelta::seconds(2);

/// How far the two clocks may drift apart between two looks before the wall clock was set.
const CLOCK_SET: TimeDelta = TimeDelta::seconds(1);

/// How many were accepted, as far as that is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// At least so many.
    pub least: u64,
    /// At most so many, where that is known.
    pub most: Option<u64>,
}

impl Bounds {
    /// A count that is certain.
    pub const fn exactly(count: u64) -> Self {
        Self { least: count, most: Some(count) }
    }

    /// How many of them a ledger that has so many surely lacks.
    pub const fn missing_of(&self, here: u64) -> u64 {
        self.least.saturating_sub(here)
    }

    /// Both counts together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let most = self.most.zip(other.most).map(|(mine, theirs)| mine.saturating_add(theirs));
        Self { least: self.least.saturating_add(other.least), most }
    }
}

/// The accepted of one interval, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How many the ledger has.
    pub here: u64,
    /// What was counted independently of it.
    pub elsewhere: Bounds,
}

impl Accepted {
    /// How many the ledger surely lacks.
    pub const fn missing(&self) -> u64 {
        self.elsewhere.missing_of(self.here)
    }

    /// Those of two ledgers together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { here: self.here.saturating_add(other.here), elsewhere: self.elsewhere.and(other.elsewhere) }
    }
}

/// One look at a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<K> {
    /// Our time before it.
    pub began: DateTime<Utc>,
    /// Our time after it. The sums are those of some moment in between.
    pub ended: DateTime<Utc>,
    /// A clock that nobody sets, when it began.
    pub uptime: Duration,
    /// When the process that counts has started, where it says so.
    pub process: Option<DateTime<Utc>>,
    /// The sums since then. What isn't here is 0.
    pub sums: BTreeMap<K, f64>,
}

/// Why nothing can be said of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// No look near enough.
    #[error("no look at the counter is near enough to both edges of the interval")]
    NotCovered,
    /// It fell, and the page doesn't say whether its process is another one.
    #[error("the counter fell, and its page has no `process_start_time_seconds` to tell a restart by")]
    Fell,
    /// It fell, and its process is the same.
    #[error("the counter fell while its process went on: it is no counter")]
    NoCounter,
    /// The process is an older one than before.
    #[error("the page comes from several processes in turn: ask each by itself, or a Prometheus that does")]
    Several,
}

/// The looks at a counter over the last hours.
#[derive(Clone, Debug)]
pub struct Samples<K> {
    held: VecDeque<Sample<K>>,
    keep: TimeDelta,
}

impl<K: Ord + Clone> Samples<K> {
    /// None yet. They are kept for so long.
    pub const fn new(keep: TimeDelta) -> Self {
        Self { held: VecDeque::new(), keep }
    }

    /// Takes a look. Where our clock was set since the one before, the times of all before mean nothing any more.
    pub fn push(&mut self, sample: Sample<K>) {
        if let Some(last) = self.held.back() {
            let went_by = sample.uptime.checked_sub(last.uptime).and_then(|by| TimeDelta::from_std(by).ok());
            let was_set = went_by.is_none_or(|by| ((sample.began - last.began) - by).abs() > CLOCK_SET);
            if was_set || sample.began < last.ended {
                self.held.clear();
            }
        }
        let oldest = sample.began - self.keep;
        while self.held.front().is_some_and(|first| first.ended < oldest) {
            self.held.pop_front();
        }
        self.held.push_back(sample);
    }

    /// What was counted at or after `from` and before `until`, by times that may be off by `edge`.
    ///
    /// # Errors
    /// When nothing can be said that is certain.
    pub fn increase(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        edge: TimeDelta,
    ) -> Result<BTreeMap<K, Bounds>, Unknown> {
        let (first, last) = (self.first_after(from + edge), self.last_before(until - edge));
        let (Some(first), Some(last)) = (first, last) else { return Err(Unknown::NotCovered) };
        if first > last {
            return Err(Unknown::NotCovered);
        }
        let (least, _) = self.sum(first, last)?;
        let outer = match (self.last_before(from - edge), self.first_after(until + edge)) {
            (Some(first), Some(last)) => Some(self.sum(first, last)?),
            _ => None,
        };
        let most = outer.filter(|(_, is_whole)| *is_whole).map(|(sums, _)| sums);
        let bounds = |(key, sum): (K, f64)| {
            let most = most.as_ref().map(|most| whole(most.get(&key).copied().unwrap_or(sum).ceil()));
            (key, Bounds { least: whole(sum.floor()), most })
        };
        Ok(least.into_iter().map(bounds).collect())
    }

    /// The first look that began at or after this, if it is near.
    fn first_after(&self, at: DateTime<Utc>) -> Option<usize> {
        let place = self.held.iter().position(|sample| sample.began >= at)?;
        (self.held[place].began - at <= REACH).then_some(place)
    }

    /// The last look that had ended at or before this, if it is near.
    fn last_before(&self, at: DateTime<Utc>) -> Option<usize> {
        let place = self.held.iter().rposition(|sample| sample.ended <= at)?;
        (at - self.held[place].ended <= REACH).then_some(place)
    }

    /// What was counted from one look to another, at least; and whether that is all.
    fn sum(&self, first: usize, last: usize) -> Result<(BTreeMap<K, f64>, bool), Unknown> {
        let looks = self.held.range(first..=last);
        let mut sums: BTreeMap<K, f64> =
            looks.clone().flat_map(|sample| sample.sums.keys().cloned()).map(|key| (key, 0.0)).collect();
        let mut is_whole = true;
        for (before, after) in looks.clone().zip(looks.skip(1)) {
            let went_on = after.follows(before)?;
            is_whole &= went_on == Some(true);
            for (key, sum) in &mut sums {
                let of = |sample: &Sample<K>| sample.sums.get(key).copied().unwrap_or(0.0);
                // A new process counts from 0. What the one before it counted after our last look is lost.
                let base = if went_on == Some(false) { 0.0 } else { of(before) };
                let more = of(after) - base;
                if more < 0.0 {
                    return Err(if went_on.is_some() { Unknown::NoCounter } else { Unknown::Fell });
                }
                *sum += more;
            }
        }
        Ok((sums, is_whole))
    }
}

impl<K> Sample<K> {
    /// Whether the process is the same as in the look before, or a new one; nothing where that isn't said.
    fn follows(&self, before: &Self) -> Result<Option<bool>, Unknown> {
        let (Some(old), Some(new)) = (before.process, self.process) else { return Ok(None) };
        if (new - old).abs() <= SAME_START {
            return Ok(Some(true));
        }
        if new > old { Ok(Some(false)) } else { Err(Unknown::Several) }
    }
}

/// When to look next: at each minute, and close to the edges of the hours, of which times may be off by `edge`.
pub fn next_look(after: DateTime<Utc>, edge: TimeDelta) -> DateTime<Utc> {
    let floor = |step: TimeDelta| after.duration_trunc(step).unwrap_or(after);
    let hour = floor(TimeDelta::hours(1));
    let edges = [hour, hour + TimeDelta::hours(1)].into_iter().flat_map(|at| [at - edge - LEAD, at + edge]);
    let marks = edges.chain([floor(EVERY) + EVERY]);
    marks.filter(|at| *at > after).min().unwrap_or(after + EVERY)
}

/// A sum as a count. Counters are far below 2^53.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, and never negative")]
fn whole(sum: f64) -> u64 {
    sum.max(0.0) as u64
}

#[cfg(test)]
mod tests;
