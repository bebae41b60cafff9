//! How dense the slots of a schedule can get: what caps and offsets must allow for.

use std::time::Duration;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::clock_change::{local_of, next_after, offset_of};
use super::expression::CronFields;
use super::interval::Interval;

/// The span in which clock changes are looked for: 2020 to 2040. Zones that stop or start changing later are not seen.
const LOOK_FROM_SECONDS: i64 = 1_577_836_800;
const LOOKS: i64 = 20 * 26;
/// Summer time and the break that Morocco makes in it for a month are both longer.
const LOOK_EVERY_SECONDS: i64 = 14 * 86_400;

/// What a clock change can touch before and after it: an hour, and the largest jump of these years, three hours.
const NEAR: TimeDelta = TimeDelta::hours(4);
/// The same for slots that are a day apart.
const FAR: TimeDelta = TimeDelta::hours(28);

/// Bounds over all time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Density {
    /// Most slots in any 60 minutes.
    pub max_per_hour: u32,
    /// Shortest time between two slots.
    pub shortest_gap: Duration,
}

pub(super) fn of_interval(interval: Interval) -> Density {
    let seconds = interval.length().as_secs().max(1);
    let max_per_hour = u32::try_from(3600_u64.div_ceil(seconds)).unwrap_or(u32::MAX);
    Density { max_per_hour, shortest_gap: interval.length() }
}

/// Every day is taken to match, so that the answer doesn't depend on which dates the clocks change.
pub(super) fn of_cron(fields: &CronFields, zone: Tz) -> Density {
    let fields = fields.on_every_day();
    let mut density = on_usual_days(&fields);
    // Slots stand on whole minutes: nothing is denser than one a minute.
    if density.max_per_hour < 60 {
        for change in kinds_of_change(zone) {
            around(&fields, zone, change, &mut density);
        }
    }
    density
}

/// Where the clock doesn't change: an hour has each minute of the field once, the gaps are those of one day in a ring.
fn on_usual_days(fields: &CronFields) -> Density {
    let minutes: Vec<u32> = fields
        .hour
        .values()
        .flat_map(|hour| fields.minute.values().map(move |minute| hour * 60 + minute))
        .collect();
    let ring = minutes.first().map(|first| first + 24 * 60);
    let gap =
        minutes.iter().zip(minutes.iter().skip(1).chain(&ring)).map(|(a, b)| b - a).min().unwrap_or(24 * 60);
    Density { max_per_hour: fields.minute.len(), shortest_gap: Duration::from_secs(u64::from(gap) * 60) }
}

/// One clock change for each kind that the zone has: the same time of day and the same jump give the same slots.
fn kinds_of_change(zone: Tz) -> Vec<DateTime<Utc>> {
    let mut kinds: Vec<(NaiveTime, TimeDelta)> = Vec::new();
    let mut changes = Vec::new();
    let look = |n| DateTime::from_timestamp(LOOK_FROM_SECONDS + n * LOOK_EVERY_SECONDS, 0);
    for (from, until) in (0..LOOKS).filter_map(|n| Some((look(n)?, look(n + 1)?))) {
        let jump = offset_of(zone, until) - offset_of(zone, from);
        if jump.is_zero() {
            continue;
        }
        let change = change_between(zone, from, until);
        let kind = (local_of(zone, change).time(), jump);
        if !kinds.contains(&kind) {
            kinds.push(kind);
            changes.push(change);
        }
    }
    changes
}

/// The first second of the new offset.
fn change_between(zone: Tz, from: DateTime<Utc>, until: DateTime<Utc>) -> DateTime<Utc> {
    let old = offset_of(zone, from);
    let (mut before, mut after) = (from, until);
    while after - before > TimeDelta::seconds(1) {
        let middle = before + TimeDelta::seconds((after - before).num_seconds() / 2);
        if offset_of(zone, middle) == old { before = middle } else { after = middle }
    }
    after
}

/// Takes the slots around one clock change into the bounds. Away from it they are those of usual days.
fn around(fields: &CronFields, zone: Tz, change: DateTime<Utc>, density: &mut Density) {
    let mut slots = slots_near(fields, zone, change, NEAR);
    if slots.first().is_none_or(|first| *first >= change) {
        slots = slots_near(fields, zone, change, FAR);
    }
    for pair in slots.windows(2) {
        if let Ok(gap) = (pair[1] - pair[0]).to_std() {
            density.shortest_gap = density.shortest_gap.min(gap);
        }
    }
    let mut oldest = 0;
    for (newest, slot) in slots.iter().enumerate() {
        while *slot - slots[oldest] >= TimeDelta::hours(1) {
            oldest += 1;
        }
        density.max_per_hour =
            density.max_per_hour.max(u32::try_from(newest - oldest + 1).unwrap_or(u32::MAX));
    }
}

/// The slots from `before` the change on, with the first that is more than [`NEAR`] after it.
fn slots_near(fields: &CronFields, zone: Tz, change: DateTime<Utc>, before: TimeDelta) -> Vec<DateTime<Utc>> {
    let mut slots = Vec::new();
    let mut last = change - before;
    while last <= change + NEAR {
        let Some(slot) = next_after(fields, zone, last) else { break };
        slots.push(slot);
        last = slot;
    }
    slots
}
