//! The figures: what is settled from the cells, and what isn't from the units in memory.

use super::{
    cells::{Aligned, Cell},
    follow::{Flow, Totals},
    rows::{RouteNo, Standing},
    unit::{Deciding, Flag, Unit, micros},
};
use crate::domain::{
    accounting::{Partition, Place},
    outcome::Outcome,
    pending::{PendingRow, RoutePending},
};
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, time::Duration};

/// One window of one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFigures {
    /// The cohort: what was due in this interval.
    pub due_in: Aligned,
    /// Where it stands.
    pub cohort: Partition,
    /// Attempts that started in the window that ends now, in the order of [`Outcome::ALL`].
    pub attempts: [i64; 5],
}

impl WindowFigures {
    /// How many were accepted.
    pub fn accepted(&self) -> u64 {
        count(self.cohort.accepted())
    }

    /// How many stand in this place.
    pub fn in_place(&self, place: Place) -> u64 {
        count(self.cohort.count(place))
    }

    /// How many were rejected for a cause of the service's own, or are pending past the deadline.
    pub fn bad(&self) -> u64 {
        self.in_place(Place::RejectedService) + self.in_place(Place::Pending)
    }

    /// How many attempts came to this.
    pub const fn attempts(&self, outcome: Outcome) -> u64 {
        count(self.attempts[outcome as usize])
    }
}

/// A count is below zero only where the ledger showed rows later than the overlap allows; the residue tells it.
const fn count(number: i64) -> u64 {
    if number < 0 { 0 } else { number.unsigned_abs() }
}

/// The figures of one route.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFigures {
    /// Its pending notifications.
    pub pending: RoutePending,
    /// Its windows, by length.
    pub windows: BTreeMap<Duration, WindowFigures>,
    /// How many were due before the baseline and are still pending: in no other figure.
    pub stuck_before_baseline: u64,
    /// How many canaries were found among the customers' notifications since this process began to follow.
    pub leaks: u64,
    /// How many pending notifications came behind the cursor and were found all the same, since this process began to follow.
    pub came_behind: u64,
}

/// All figures as of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowFigures {
    /// Our time before the pass, less the ledger's known lag.
    pub as_of: DateTime<Utc>,
    /// By the place of the route; the last is `other`. A route with nothing pending is here, and drained.
    pub routes: Vec<RouteFigures>,
    /// What was seen since this process began to follow.
    pub totals: Totals,
    /// How many units are in memory.
    pub units: usize,
    /// How many closed attempts wait for their unit.
    pub strays: usize,
}

impl Flow {
    /// The figures of the passes that have ended, as of this moment. Costs a walk over the pending.
    pub fn figures(&self, as_of: DateTime<Utc>) -> FlowFigures {
        let last = self.settings.other();
        let mut routes: Vec<RouteFigures> =
            (0..=last.0).map(|route| self.settled(RouteNo(route), as_of)).collect();
        let baseline = self.settings.baseline.map_or(i64::MIN, micros);
        self.each_live(|print, unit, standing| {
            let Some(route) = routes.get_mut(usize::from(unit.route.0)) else { return };
            if let Standing::Pending(tried) = standing {
                if unit.due < baseline {
                    route.stuck_before_baseline += 1;
                    return;
                }
                let due = DateTime::from_timestamp_micros(unit.due);
                let row = PendingRow { route: None, due, tried, count: 1 };
                route.pending.add(&row, as_of, self.settings.deadline(unit.route));
            }
            for window in route.windows.values_mut().filter(|window| window.due_in.holds(unit.due)) {
                window.cohort.add(standing.into(), print());
            }
        });
        self.each_open_attempt(|route, attempt| {
            let windows = routes.get_mut(usize::from(route.0)).map(|route| &mut route.windows);
            for (length, window) in windows.into_iter().flatten() {
                if self.attempts_in(*length, as_of).holds(attempt.at)
                    && let Some(outcome) = attempt.leaves.outcome()
                {
                    window.attempts[outcome as usize] += 1;
                }
            }
        });
        FlowFigures { as_of, routes, totals: self.totals, units: self.held(), strays: self.strays.count() }
    }

    /// How many units are in memory.
    pub fn held(&self) -> usize {
        self.units.len() + self.open.units.len()
    }

    /// What was due in the interval, divided by where it stands. The bounds should be whole hours: others are moved back to whole minutes, or
    /// to whole hours where minutes aren't kept any more. Units from before the baseline are in it.
    pub fn partition(&self, route: RouteNo, from: DateTime<Utc>, until: DateTime<Utc>) -> Partition {
        let over = self.cells.align(from.timestamp(), until.timestamp());
        let mut partition = self.cells.sum(route, over).partition();
        self.each_live(|print, unit, standing| {
            if unit.route == route && over.holds(unit.due) {
                partition.add(standing.into(), print());
            }
        });
        partition
    }

    /// From when on, in seconds since 1970, counts are kept: by minute, and by hour.
    pub const fn kept_from(&self) -> (i64, i64) {
        self.cells.kept_from()
    }

    /// The part of a route's figures that is in cells.
    fn settled(&self, route: RouteNo, as_of: DateTime<Utc>) -> RouteFigures {
        let window = |length: &Duration| {
            let until = as_of - self.settings.cohort_lag(route);
            let due_in = self.cells.align((until - *length).timestamp(), until.timestamp());
            let Cell { attempts, .. } = self.cells.sum(route, self.attempts_in(*length, as_of));
            let cohort = self.cells.sum(route, due_in).partition();
            (*length, WindowFigures { due_in, cohort, attempts })
        };
        let has_deadline = self.settings.deadline(route).is_some();
        RouteFigures {
            pending: if has_deadline { RoutePending::drained() } else { RoutePending::default() },
            windows: self.settings.windows.iter().map(window).collect(),
            stuck_before_baseline: 0,
            leaks: self.leaks.get(&route).copied().unwrap_or(0),
            came_behind: self.came_behind.get(&route).copied().unwrap_or(0),
        }
    }

    fn attempts_in(&self, window: Duration, as_of: DateTime<Utc>) -> Aligned {
        self.cells.align((as_of - window).timestamp(), as_of.timestamp())
    }

    /// Each unit in memory that is no canary, with its fingerprint (on demand) and where it stands by all that was read.
    pub(super) fn each_live(&self, mut each: impl FnMut(&dyn Fn() -> u64, &Unit, Standing)) {
        for (key, unit) in self.units.iter().filter(|(_, unit)| !unit.has(Flag::Canary)) {
            each(&|| key.fingerprint(), unit, unit.standing_with(self.open.deciding(key)));
        }
        for (key, unit) in self.open.units.iter().filter(|(_, unit)| !unit.has(Flag::Canary)) {
            let waiting = self.strays.of(key).iter().map(|stray| stray.deciding);
            let newest =
                waiting.chain(self.open.deciding(key)).max_by_key(|deciding: &Deciding| deciding.rank());
            each(&|| key.fingerprint(), unit, unit.standing_with(newest));
        }
    }

    /// Each attempt that is in no cell yet and whose route is known.
    fn each_open_attempt(&self, mut each: impl FnMut(RouteNo, Deciding)) {
        let known = |key| self.units.get(key).or_else(|| self.open.units.get(key));
        let route_of = |key| known(key).filter(|unit| !unit.has(Flag::Canary)).map(|unit| unit.route);
        for attempt in self.open.attempts.values() {
            if let Some(route) = route_of(&attempt.unit) {
                each(route, attempt.deciding);
            }
        }
        for (key, strays) in self.strays.iter() {
            if let Some(route) = route_of(key) {
                strays.iter().for_each(|stray| each(route, stray.deciding));
            }
        }
    }
}
