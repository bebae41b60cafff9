//! When canaries are due: cron as Kubernetes reads it, intervals, offsets, pauses and maintenance.
//!
//! A [`Schedule`] is a cron expression in a zone, or an interval. Its slots are UTC instants, strictly increasing,
//! before any offset of a route. What happens when the clocks change is written in `docs/schedules.md`.

mod clock_change;
mod count;
mod density;
mod due;
mod error;
mod expression;
mod field;
mod interval;
mod offset;
#[cfg(test)]
mod properties;
mod window;
mod zone;

use std::time::Duration;

use chrono::{DateTime, Datelike, Utc};
use chrono_tz::Tz;

pub use count::{Counted, LONGEST_COUNT};
pub use due::DueSlots;
pub use error::ScheduleError;
pub use expression::CronExpression;
pub use interval::Interval;
pub use offset::offset_for;
pub use window::{Maintenance, Pause};
pub use zone::parse_zone;

use expression::{CronFields, Meaning};

/// The scheduled instant that a canary belongs to, before the route's offset is added.
pub type Slot = DateTime<Utc>;

/// How many gaps [`Schedule::typical_interval`] looks at.
pub const TYPICAL_GAPS: usize = 101;

/// No slot is served later than this.
const LATEST: Duration = Duration::from_secs(30);

/// When canaries of one route are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Cron { fields: CronFields, zone: Tz },
    Every(Interval),
}

impl Schedule {
    /// By a cron expression, read in `zone`. `@every` counts from 1970 and takes no notice of the zone.
    pub fn cron(expression: &CronExpression, zone: Tz) -> Self {
        let kind = match expression.meaning() {
            Meaning::Fields(fields) => Kind::Cron { fields: *fields, zone },
            Meaning::Every(interval) => Kind::Every(*interval),
        };
        Self { kind }
    }

    /// At an interval, counted from 1970.
    pub fn every(interval: Interval) -> Self {
        Self { kind: Kind::Every(interval) }
    }

    /// From the text of an expression and the name of an IANA zone.
    ///
    /// # Errors
    /// When the expression can't be read, never fires, or the zone isn't known.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        Ok(Self::cron(&CronExpression::parse(expression)?, parse_zone(zone)?))
    }

    /// The first slot strictly after `after`. `None` only outside the years 1 to 9990.
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<Slot> {
        if !(1..=9990).contains(&after.year()) {
            return None;
        }
        match &self.kind {
            Kind::Cron { fields, zone } => clock_change::next_after(fields, *zone, after),
            Kind::Every(interval) => interval.next_after(after),
        }
    }

    /// The slots with `after < slot <= until`, oldest first, at most `limit` of them.
    pub fn slots_between(
        &self,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> impl Iterator<Item = Slot> + '_ {
        let mut last = after;
        std::iter::from_fn(move || {
            let slot = self.next_after(last).filter(|slot| *slot <= until)?;
            debug_assert!(slot > last, "slots must increase: {slot} after {last}");
            last = slot;
            Some(slot)
        })
        .take(limit)
    }

    /// An upper bound of the slots in any 60 minutes, clock changes included; 1 to 3600.
    ///
    /// Exact but for expressions whose days keep them away from a clock change: every day is taken to match.
    /// It looks at twenty years of clock changes: ask when the configuration is read, and keep the answer.
    pub fn max_per_hour(&self) -> u32 {
        self.density().max_per_hour
    }

    /// A lower bound of the time between two slots, clock changes included; never zero.
    ///
    /// Exact but for the day fields: every day is taken to match, so a monthly schedule answers up to 24 hours.
    /// As dear as [`Self::max_per_hour`].
    pub fn shortest_gap(&self) -> Duration {
        self.density().shortest_gap
    }

    /// How late a slot may still be served; later it is missed. As dear as [`Self::max_per_hour`].
    pub fn tolerance(&self) -> Duration {
        (self.shortest_gap() / 2).min(LATEST)
    }

    /// The median of the next [`TYPICAL_GAPS`] gaps between slots after `after`.
    ///
    /// A median, because a night without slots must not stretch the interval of a schedule of office hours.
    /// `None` only where [`Self::next_after`] ends.
    pub fn typical_interval(&self, after: DateTime<Utc>) -> Option<Duration> {
        let mut last = self.next_after(after)?;
        let mut gaps: Vec<Duration> = std::iter::from_fn(|| {
            let slot = self.next_after(last)?;
            let gap = (slot - last).to_std().ok()?;
            last = slot;
            Some(gap)
        })
        .take(TYPICAL_GAPS)
        .collect();
        gaps.sort_unstable();
        gaps.get(gaps.len().saturating_sub(1) / 2).copied()
    }

    /// This route's fixed offset, to be asked once: [`offset_for`], and less than the shortest gap, so that a slot goes out before the next.
    pub fn offset_for(&self, route_name: &str, spread: Duration) -> Duration {
        offset_for(route_name, spread.min(self.shortest_gap()))
    }

    /// How many slots there are with `after < slot <= until`; see [`Counted`] for very long spans.
    pub fn count_between(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> Counted {
        count::count_between(self, after, until)
    }

    /// What to do at `now`, when everything up to and with `last_handled` is done; see [`DueSlots`].
    pub fn due(&self, last_handled: DateTime<Utc>, now: DateTime<Utc>, tolerance: Duration) -> DueSlots {
        due::decide(self, last_handled, now, tolerance)
    }

    fn density(&self) -> density::Density {
        match &self.kind {
            Kind::Cron { fields, zone } => density::of_cron(fields, *zone),
            Kind::Every(interval) => density::of_interval(*interval),
        }
    }
}
