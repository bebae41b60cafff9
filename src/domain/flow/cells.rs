//! What is settled, counted by route and time: minutes for the newest hours, hours for all the history.

use super::rows::RouteNo;
use crate::domain::{
    accounting::{Partition, Place},
    outcome::Outcome,
};
use std::collections::{BTreeMap, HashMap};

const MINUTE: i64 = 60;
pub(super) const HOUR: i64 = 3_600;
const MICROS: i64 = 1_000_000;

/// How long one cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Level {
    /// Its length in seconds.
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Minute => MINUTE,
            Self::Hour => HOUR,
        }
    }
}

/// Which cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// How long it is.
    pub level: Level,
    /// Whose it is.
    pub route: RouteNo,
    /// When it starts, in seconds since 1970.
    pub start: i64,
}

/// The counts of one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Units that were due in it and are settled, in the order of [`Place::TERMINAL`].
    pub settled: [i64; 4],
    /// The wrapping sums of their fingerprints.
    pub prints: [u64; 4],
    /// Attempts that started in it, in the order of [`Outcome::ALL`].
    pub attempts: [i64; 5],
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.settled.iter_mut().zip(other.settled).for_each(|(sum, count)| *sum += count);
        self.prints.iter_mut().zip(other.prints).for_each(|(sum, print)| *sum = sum.wrapping_add(print));
        self.attempts.iter_mut().zip(other.attempts).for_each(|(sum, count)| *sum += count);
    }

    /// The settled units as a division without pending ones.
    pub(super) fn partition(&self) -> Partition {
        let mut partition = Partition::default();
        partition.counts[..4].copy_from_slice(&self.settled);
        partition.prints[..4].copy_from_slice(&self.prints);
        partition
    }
}

/// An interval whose bounds fall on those of cells, in seconds: from is in it, until isn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// Its first second.
    pub from: i64,
    /// The second after its last.
    pub until: i64,
}

impl Aligned {
    /// Whether this instant, in microseconds, is in it.
    pub(super) const fn holds(&self, micros: i64) -> bool {
        // The bounds are whole minutes, so that no unit changes its side when it goes into a cell.
        let second = micros.div_euclid(MICROS);
        self.from <= second && second < self.until
    }
}

/// All cells, and what the running pass adds to them.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    minutes: BTreeMap<(RouteNo, i64), Cell>,
    hours: BTreeMap<(RouteNo, i64), Cell>,
    pass: HashMap<(RouteNo, i64), Cell>,
    /// From here on, in whole hours, minutes are kept.
    fine_from: i64,
    /// From here on hours are kept.
    hours_from: i64,
}

impl Cells {
    /// Cells as they were kept. An hour that isn't the sum of its minutes has lost some of them: minutes count from after it only.
    pub fn new(kept: impl IntoIterator<Item = (CellKey, Cell)>) -> Self {
        let (mut minutes, mut hours) = (BTreeMap::new(), BTreeMap::new());
        for (key, cell) in kept {
            let level = if key.level == Level::Minute { &mut minutes } else { &mut hours };
            level.insert((key.route, key.start), cell);
        }
        let mut sums: BTreeMap<(RouteNo, i64), Cell> = BTreeMap::new();
        for (&(route, start), cell) in &minutes {
            sums.entry((route, floor(start, HOUR))).or_default().add(cell);
        }
        let is_whole = |place: &&(RouteNo, i64)| {
            hours.get(*place).copied().unwrap_or_default() == sums.get(*place).copied().unwrap_or_default()
        };
        let places = hours.keys().chain(sums.keys());
        let fine_from = places.filter(|place| !is_whole(place)).map(|(_, start)| start + HOUR).max();
        Self {
            minutes,
            hours,
            pass: HashMap::new(),
            fine_from: fine_from.unwrap_or(i64::MIN),
            hours_from: i64::MIN,
        }
    }

    /// Forgets what is older than this. The bounds never go back. Tells them: minutes and hours that start before are gone.
    pub fn expire(&mut self, fine_from: i64, hours_from: i64) {
        let (fine_from, hours_from) = (floor(fine_from, HOUR), floor(hours_from, HOUR));
        if fine_from > self.fine_from {
            self.fine_from = fine_from;
            self.minutes.retain(|(_, start), _| *start >= fine_from);
        }
        if hours_from > self.hours_from {
            self.hours_from = hours_from;
            self.hours.retain(|(_, start), _| *start >= hours_from);
        }
    }

    /// Minutes, and hours, that start before these aren't kept.
    pub const fn kept_from(&self) -> (i64, i64) {
        (self.fine_from, self.hours_from)
    }

    /// Adds a settled unit that was due then, in microseconds, or takes it away again.
    pub fn settle(&mut self, route: RouteNo, due: i64, place: Place, fingerprint: u64, is_added: bool) {
        let cell = self.of_pass(route, due);
        // Pending units are in no cell.
        if let Some(count) = cell.settled.get_mut(place as usize) {
            *count += if is_added { 1 } else { -1 };
            let print = &mut cell.prints[place as usize];
            *print = if is_added { print.wrapping_add(fingerprint) } else { print.wrapping_sub(fingerprint) };
        }
    }

    /// Whether a unit that was due then, in microseconds, can be among those that were settled in this place. Certain where there is one.
    pub fn can_hold(&self, route: RouteNo, due: i64, place: Place, fingerprint: u64) -> bool {
        let minute = floor(due.div_euclid(MICROS), MINUTE);
        let is_fine = minute >= self.fine_from;
        let (level, step) = if is_fine { (&self.minutes, MINUTE) } else { (&self.hours, HOUR) };
        let start = floor(minute, step);
        if start < self.hours_from {
            return true;
        }
        let mut cell = level.get(&(route, start)).copied().unwrap_or_default();
        let of_pass =
            self.pass.iter().filter(|((of, minute), _)| *of == route && floor(*minute, step) == start);
        of_pass.for_each(|(_, added)| cell.add(added));
        let (count, print) = (cell.settled.get(place as usize), cell.prints.get(place as usize));
        match count {
            Some(1) => print == Some(&fingerprint),
            count => count.is_some_and(|count| *count > 1),
        }
    }

    /// Counts an attempt that started then, in microseconds.
    pub fn attempt(&mut self, route: RouteNo, at: i64, outcome: Outcome) {
        self.of_pass(route, at).attempts[outcome as usize] += 1;
    }

    /// Counts an attempt that was counted before as one of another outcome.
    pub fn rewrite_attempt(&mut self, route: RouteNo, at: i64, from: Option<Outcome>, to: Option<Outcome>) {
        let attempts = &mut self.of_pass(route, at).attempts;
        if let (Some(from), Some(to)) = (from, to) {
            attempts[from as usize] -= 1;
            attempts[to as usize] += 1;
        }
    }

    fn of_pass(&mut self, route: RouteNo, micros: i64) -> &mut Cell {
        self.pass.entry((route, floor(micros.div_euclid(MICROS), MINUTE))).or_default()
    }

    /// Ends the pass: what it added becomes part of the cells. Gives the cells that changed, as they are now.
    pub fn commit(&mut self) -> Vec<(CellKey, Cell)> {
        let mut changed: Vec<CellKey> = Vec::new();
        for ((route, minute), added) in self.pass.drain() {
            if minute >= self.fine_from {
                self.minutes.entry((route, minute)).or_default().add(&added);
                changed.push(CellKey { level: Level::Minute, route, start: minute });
            }
            let hour = floor(minute, HOUR);
            if hour >= self.hours_from {
                self.hours.entry((route, hour)).or_default().add(&added);
                changed.push(CellKey { level: Level::Hour, route, start: hour });
            }
        }
        changed.sort_unstable();
        changed.dedup();
        let now = |key: CellKey| {
            let level = if key.level == Level::Minute { &self.minutes } else { &self.hours };
            level.get(&(key.route, key.start)).map(|cell| (key, *cell))
        };
        changed.into_iter().filter_map(now).collect()
    }

    /// The interval, in seconds, moved back to bounds of cells: to the minute, and where only hours are left to the hour.
    pub const fn align(&self, from: i64, until: i64) -> Aligned {
        let (from, until) = (floor(from, MINUTE), floor(until, MINUTE));
        Aligned {
            from: if from < self.fine_from { floor(from, HOUR) } else { from },
            until: if until < self.fine_from { floor(until, HOUR) } else { until },
        }
    }

    /// The sum over an interval.
    pub fn sum(&self, route: RouteNo, over: Aligned) -> Cell {
        let mut sum = Cell::default();
        let mut add = |level: &BTreeMap<(RouteNo, i64), Cell>, from: i64, until: i64| {
            if from < until {
                level.range((route, from)..(route, until)).for_each(|(_, cell)| sum.add(cell));
            }
        };
        add(&self.hours, over.from, over.until.min(self.fine_from));
        add(&self.minutes, over.from.max(self.fine_from), over.until);
        sum
    }
}

const fn floor(second: i64, step: i64) -> i64 {
    second.saturating_sub(second.rem_euclid(step))
}
