//! Which slot to serve now, and which were missed.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Schedule, Slot};

/// What is due: at most one slot, however long nobody looked.
///
/// After a downtime the missed slots are counted and never fired in a burst. The next `last_handled` is the `now` of
/// this decision, or the slot that was fired; both give the same slots from then on, and none twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueSlots {
    /// The newest slot, if it is not older than the tolerance.
    pub fire: Option<Slot>,
    /// How many other slots there were since the last handled one.
    pub missed: u64,
    /// The downtime was longer than [`super::LONGEST_COUNT`]: `missed` holds only what was in its last ten years.
    pub capped: bool,
}

/// Everything up to and with `last_handled` is done. A `now` that is not later, as after a clock that was put back, has
/// nothing due. A route with an offset passes `now` minus that offset.
pub(super) fn decide(
    schedule: &Schedule,
    last_handled: DateTime<Utc>,
    now: DateTime<Utc>,
    tolerance: Duration,
) -> DueSlots {
    if now <= last_handled {
        return DueSlots { fire: None, missed: 0, capped: false };
    }
    let fire = newest_fresh(schedule, last_handled, now, tolerance);
    let counted = schedule.count_between(last_handled, now);
    let missed = counted.slots.saturating_sub(u64::from(fire.is_some()));
    DueSlots { fire, missed, capped: counted.capped }
}

/// The newest slot after `last_handled` that is not older than the tolerance, looked for in spans that grow backwards,
/// so that a large tolerance over a dense schedule stays cheap.
fn newest_fresh(
    schedule: &Schedule,
    last_handled: DateTime<Utc>,
    now: DateTime<Utc>,
    tolerance: Duration,
) -> Option<Slot> {
    // A slot that is exactly as old as the tolerance is fresh; `next_after` leaves its argument out.
    let oldest_fresh = TimeDelta::from_std(tolerance)
        .ok()
        .and_then(|tolerance| now.checked_sub_signed(tolerance))
        .and_then(|oldest| oldest.checked_sub_signed(TimeDelta::nanoseconds(1)))
        .unwrap_or(DateTime::<Utc>::MIN_UTC);
    let floor = oldest_fresh.max(last_handled);
    let mut span = TimeDelta::minutes(1);
    loop {
        let from = now.checked_sub_signed(span).unwrap_or(floor).max(floor);
        let newest = schedule.slots_between(from, now, usize::MAX).last();
        if newest.is_some() || from == floor {
            return newest;
        }
        span = span * 4;
    }
}
