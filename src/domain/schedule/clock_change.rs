//! From a local clock to instants, where clocks change.
//!
//! In the gap of spring a time on the wall never comes; in the fold of autumn it comes twice.
//! A job of fixed hour fires at the end of the gap, and in the first pass of the fold. A job of wildcard hour fires
//! whenever the clock on the wall shows a matching minute.

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};

use super::expression::CronFields;

/// No zone ever put its clock back by more.
const LARGEST_FOLD: TimeDelta = TimeDelta::hours(26);

/// The first slot strictly after `after`.
pub(super) fn next_after(fields: &CronFields, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if fields.has_wildcard_hour() {
        next_by_wall(fields, zone, after)
    } else {
        next_fixed(fields, zone, after)
    }
}

/// Each local time has one instant, and a later local time never an earlier one: so the first that is late enough is it.
/// Several times in one gap have the same instant, which is one slot.
fn next_fixed(fields: &CronFields, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let mut local = local_of(zone, after);
    loop {
        local = fields.next_local(local)?;
        let instant = first_instant(zone, local)?;
        if instant > after {
            return Some(instant);
        }
    }
}

/// Each local time has no, one or two instants. Later local times never have an earlier *first* instant, so nothing
/// after the first one that is late enough can beat it; only second passes of times before it can.
fn next_by_wall(fields: &CronFields, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let mut local = local_of(zone, after) - fold_ahead(zone, after);
    let mut second_pass: Option<DateTime<Utc>> = None;
    while let Some(next) = fields.next_local(local) {
        local = next;
        let instants = zone.from_local_datetime(&local).map(|instant| instant.to_utc());
        let (Some(first), Some(last)) = (instants.earliest(), instants.latest()) else { continue };
        if first > after {
            return Some(second_pass.map_or(first, |second| second.min(first)));
        }
        if last > after && second_pass.is_none() {
            second_pass = Some(last);
        }
    }
    second_pass
}

/// By how much the clock goes back within that same time after `at`. Local times seen that long ago come again.
fn fold_ahead(zone: Tz, at: DateTime<Utc>) -> TimeDelta {
    let far = offset_of(zone, at) - offset_of(zone, at + LARGEST_FOLD);
    if far > TimeDelta::zero() && offset_of(zone, at + far) < offset_of(zone, at) {
        far
    } else {
        TimeDelta::zero()
    }
}

/// The instant of a local time: the first of two, or the end of the gap. `None` where the zone's data ends.
pub(super) fn first_instant(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&local).earliest() {
        Some(instant) => Some(instant.to_utc()),
        None => Some(GapInfo::new(&local, &zone)?.end?.to_utc()),
    }
}

/// What the clock on the wall shows.
pub(super) fn local_of(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    at.with_timezone(&zone).naive_local()
}

/// How far the zone's clock is ahead of UTC.
pub(super) fn offset_of(zone: Tz, at: DateTime<Utc>) -> TimeDelta {
    let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    TimeDelta::seconds(i64::from(offset.local_minus_utc()))
}
