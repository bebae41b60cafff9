//! How many slots lie in a span, without walking over each of them.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::clock_change::{first_instant, local_of, next_after, offset_of};
use super::expression::CronFields;
use super::{Kind, Schedule};

/// The longest span whose slots are counted: ten years.
pub const LONGEST_COUNT: TimeDelta = TimeDelta::days(3653);

/// A number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How many there are in the span, or in its last ten years.
    pub slots: u64,
    /// The span was longer than [`LONGEST_COUNT`]; what lies before is not counted.
    pub capped: bool,
}

/// The slots with `after < slot <= until`. It takes a step a day, not a step a slot.
pub(super) fn count_between(schedule: &Schedule, after: DateTime<Utc>, until: DateTime<Utc>) -> Counted {
    let (after, until) = (within_years(after), within_years(until));
    let capped = until - after > LONGEST_COUNT;
    let after = if capped { until - LONGEST_COUNT } else { after };
    let slots = match &schedule.kind {
        Kind::Every(interval) => {
            u64::try_from(interval.index_of(until) - interval.index_of(after)).unwrap_or_default()
        }
        Kind::Cron { fields, zone } => cron_slots(fields, *zone, after, until),
    };
    Counted { slots, capped }
}

/// The nearest instant in the years 1 to 9990, for which there is a next slot.
fn within_years(at: DateTime<Utc>) -> DateTime<Utc> {
    let first_of =
        |year| NaiveDate::from_ymd_opt(year, 1, 1).map(|date| date.and_time(NaiveTime::MIN).and_utc());
    match (first_of(1), first_of(9991)) {
        (Some(from), Some(end)) => at.clamp(from, end - TimeDelta::seconds(1)),
        _ => at,
    }
}

fn cron_slots(fields: &CronFields, zone: Tz, after: DateTime<Utc>, until: DateTime<Utc>) -> u64 {
    let mut slots = 0;
    // All slots with `slot <= done` are counted.
    let mut done = after;
    let mut date = local_of(zone, after).date();
    while done < until {
        let Some(next_date) = date.succ_opt() else { break };
        let (Some(start), Some(end)) = (midnight(zone, date), midnight(zone, next_date)) else { break };
        // Slots stand on whole seconds, so up to a second before midnight is all of the day.
        let last = end - TimeDelta::seconds(1);
        let whole = done < start && last <= until;
        if whole && is_usual(zone, start, end) {
            slots += if fields.matches_day(date) { u64::from(fields.per_day()) } else { 0 };
            done = last;
        } else if last > done {
            slots += walked(fields, zone, done, last.min(until));
            done = last;
        }
        date = next_date;
    }
    slots
}

/// The first instant of a day.
fn midnight(zone: Tz, date: NaiveDate) -> Option<DateTime<Utc>> {
    first_instant(zone, date.and_time(NaiveTime::MIN))
}

/// Whether a day is without a clock change, also none at its very start: the end of a gap may have a slot of its own.
fn is_usual(zone: Tz, start: DateTime<Utc>, end: DateTime<Utc>) -> bool {
    let before = start - TimeDelta::seconds(1);
    end - start == TimeDelta::days(1) && offset_of(zone, before) == offset_of(zone, end)
}

fn walked(fields: &CronFields, zone: Tz, after: DateTime<Utc>, until: DateTime<Utc>) -> u64 {
    let mut slots = 0;
    let mut last = after;
    while let Some(slot) = next_after(fields, zone, last).filter(|slot| *slot <= until) {
        slots += 1;
        last = slot;
    }
    slots
}
