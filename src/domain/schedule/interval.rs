//! Slots at an interval, counted from 1970.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::error::ScheduleError;

/// The longest interval: a leap year.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// An interval between slots: whole seconds, 1 second to 366 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    seconds: u32,
}

impl Interval {
    /// Checks an interval.
    ///
    /// # Errors
    /// When it is shorter than a second, longer than 366 days, or not of whole seconds.
    pub fn new(interval: Duration) -> Result<Self, ScheduleError> {
        let refuse = |what| Err(ScheduleError::Interval { interval, what });
        if interval < Duration::from_secs(1) {
            return refuse("is too short");
        }
        if interval > LONGEST {
            return refuse("is too long");
        }
        if interval.subsec_nanos() != 0 {
            return refuse("has a fraction of a second");
        }
        u32::try_from(interval.as_secs())
            .map_or_else(|_| refuse("is too long"), |seconds| Ok(Self { seconds }))
    }

    /// Its length.
    pub fn length(self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    /// The first multiple strictly after `after`.
    pub(super) fn next_after(self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let step = i64::from(self.seconds);
        let next = self.index_of(after).checked_add(1)?.checked_mul(step)?;
        DateTime::from_timestamp(next, 0)
    }

    /// How many multiples there are since 1970, up to and with `at`; negative before it.
    pub(super) fn index_of(self, at: DateTime<Utc>) -> i64 {
        // `timestamp` is the floor of the second, also before 1970.
        at.timestamp().div_euclid(i64::from(self.seconds))
    }
}
