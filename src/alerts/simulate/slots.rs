//! The slots of a schedule as a ring: those of some whole weeks, over and over, nights and weekends without any included.

use super::Millis;
use crate::{
    config::model::ScheduleConfig,
    domain::schedule::{Schedule, ScheduleError},
};
use chrono::{DateTime, TimeDelta, Utc};

/// A Monday, 2026-01-05 00:00 UTC. The ring begins at a fixed instant, so that the same configuration gives the same figures on every day.
const BEGIN_SECONDS: i64 = 1_767_571_200;

/// Most slots that a ring has, unless one week alone has more.
const MOST: u64 = 60_000;

/// Weeks of a ring, if the slots are few enough.
const WEEKS: u64 = 52;

const WEEK: i64 = 7 * 86_400;

/// Slots that come again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    begin: Millis,
    period: Millis,
    /// Those of one period, from its beginning, increasing. Never empty.
    offsets: Vec<Millis>,
}

impl Slots {
    /// At an interval, counted from 1970. The interval is above zero.
    pub fn every(interval: Millis) -> Self {
        Self { begin: 0, period: interval.max(1), offsets: vec![0] }
    }

    /// Those of a configured schedule.
    ///
    /// # Errors
    /// When the schedule can't be used.
    pub fn of(config: &ScheduleConfig) -> Result<Self, ScheduleError> {
        match config {
            ScheduleConfig::Every(span) => {
                Ok(Self::every(i64::try_from(span.get().as_millis()).unwrap_or(i64::MAX)))
            }
            ScheduleConfig::Cron(_) => Ok(Self::ring(&config.schedule()?)),
        }
    }

    fn ring(schedule: &Schedule) -> Self {
        let begin = DateTime::from_timestamp(BEGIN_SECONDS, 0).unwrap_or_default();
        // Slots stand on whole seconds, and the first bound is left out.
        let before = begin - TimeDelta::seconds(1);
        let end = |weeks: u64| before + TimeDelta::seconds(WEEK * weeks as i64);
        let yearly = schedule.count_between(before, end(WEEKS)).slots;
        let weeks = (WEEKS * MOST / yearly.max(1)).clamp(1, WEEKS);
        let offsets: Vec<Millis> = schedule
            .slots_between(before, end(weeks), usize::MAX)
            .map(|slot| (slot - begin).num_milliseconds())
            .collect();
        if offsets.is_empty() {
            return Self::rare(schedule, begin);
        }
        Self { begin: begin.timestamp_millis(), period: WEEK * weeks as i64 * 1_000, offsets }
    }

    /// Of a schedule that has no slot within a year, such as that of leap days: its first gap, over and over.
    fn rare(schedule: &Schedule, begin: DateTime<Utc>) -> Self {
        let first = schedule.next_after(begin);
        match (first, first.and_then(|first| schedule.next_after(first))) {
            (Some(first), Some(second)) => Self {
                begin: first.timestamp_millis(),
                period: (second - first).num_milliseconds(),
                offsets: vec![0],
            },
            // Beyond the years that schedules know there is none: as good as once in all of them.
            _ => Self::every(WEEK * WEEKS as i64 * 1_000 * 8_000),
        }
    }

    fn count(&self) -> i64 {
        // A ring has some 600,000 slots at the most: one a second for a week.
        self.offsets.len() as i64
    }

    /// The slot of this index; they are counted from the ring's beginning, and go on below 0.
    pub fn at(&self, index: i64) -> Millis {
        let rounds = index.div_euclid(self.count());
        self.begin + rounds * self.period + self.offsets[index.rem_euclid(self.count()) as usize]
    }

    /// The index of the first slot at this instant or after it.
    pub fn from(&self, at: Millis) -> i64 {
        let since = at - self.begin;
        let within = since.rem_euclid(self.period);
        let before = self.offsets.partition_point(|offset| *offset < within) as i64;
        since.div_euclid(self.period) * self.count() + before
    }

    /// The ring's beginning, and how long it is.
    pub const fn round(&self) -> (Millis, Millis) {
        (self.begin, self.period)
    }

    /// How many there are in one round.
    pub fn in_round(&self) -> i64 {
        self.count()
    }

    /// The mean time between two of them.
    pub fn mean_gap(&self) -> Millis {
        (self.period / self.count()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::CronConfig;
    use proptest::prelude::*;

    fn cron(expression: &str, zone: &str) -> ScheduleConfig {
        ScheduleConfig::Cron(CronConfig { expression: expression.into(), zone: zone.into() })
    }

    #[test]
    fn office_hours_have_nights_and_weekends_and_few_slots_fill_a_year() {
        let config = cron("*/15 8-17 * * 1-5", "Europe/Berlin");
        let slots = Slots::of(&config).expect("a schedule");
        assert_eq!(slots.in_round(), 52 * 5 * 40);
        let longest = (0..slots.in_round()).map(|n| slots.at(n + 1) - slots.at(n)).max();
        let weekend = 2 * 24 + 24 - 10;
        assert_eq!(
            longest,
            Some(weekend * 3_600_000 + 15 * 60_000 + 3_600_000),
            "the night of the clock change is longest"
        );
    }

    #[test]
    fn many_slots_fill_fewer_weeks_and_rare_ones_still_come() {
        let slots = Slots::of(&cron("* * * * *", "UTC")).expect("a schedule");
        assert_eq!((slots.in_round(), slots.mean_gap()), (5 * 7 * 1_440, 60_000));
        let leap = Slots::of(&cron("0 0 29 2 *", "UTC")).expect("a schedule");
        assert_eq!((leap.in_round(), leap.mean_gap()), (1, 1_461 * 86_400_000));
    }

    proptest! {
        #[test]
        fn an_index_is_found_again(index in -100_000i64..100_000, before in 0i64..60_000) {
            for slots in [Slots::every(300_000), Slots::of(&cron("*/7 9-17 * * 1-5", "Europe/Berlin")).expect("a schedule")] {
                let at = slots.at(index);
                prop_assert!(slots.at(index - 1) < at);
                prop_assert_eq!(slots.from(at), index);
                prop_assert_eq!(slots.from(at - before), index);
                prop_assert_eq!(slots.from(at + 1), index + 1);
            }
        }
    }
}
