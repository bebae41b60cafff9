//! How many canaries of all kinds a route can come to need in one hour: its `hourly_cap` must hold them.

use crate::{
    config::model::{Confirmations, Route, ScheduleConfig},
    domain::schedule::{Schedule, ScheduleError},
};
use std::fmt;

const HOUR_MS: u128 = 3_600_000;

/// The most canaries of each kind in one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Need {
    /// By the schedule.
    pub scheduled: u32,
    /// After failures.
    pub confirmations: u32,
    /// Replays of one key.
    pub replays: u32,
    /// Control arms.
    pub controls: u32,
}

impl Need {
    /// What a route needs.
    ///
    /// # Errors
    /// When one of its schedules can't be used.
    pub fn of(route: &Route) -> Result<Self, ScheduleError> {
        let schedule = route.schedule.schedule()?;
        let hourly = |config: Option<&ScheduleConfig>| -> Result<u32, ScheduleError> {
            config.map_or(Ok(0), |config| config.schedule().map(|schedule| schedule.max_per_hour()))
        };
        let arm =
            |arm: &Option<crate::config::model::ControlArm>| hourly(arm.as_ref().map(|arm| &arm.schedule));
        Ok(Self {
            scheduled: schedule.max_per_hour(),
            confirmations: confirmations(&schedule, &route.confirmations),
            replays: hourly(route.replay.as_ref())?,
            controls: arm(&route.controls.sink)?.saturating_add(arm(&route.controls.provider)?),
        })
    }

    /// All together.
    pub fn total(self) -> u32 {
        self.scheduled
            .saturating_add(self.confirmations)
            .saturating_add(self.replays)
            .saturating_add(self.controls)
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by schedule", self.scheduled)?;
        for (count, what) in [
            (self.confirmations, "to confirm"),
            (self.replays, "to replay"),
            (self.controls, "by control arms"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// The most confirmations in one hour, when everything fails.
///
/// At most `max` follow one scheduled canary. Those of several scheduled canaries overlap where they last longer than the
/// schedule's gap, but one chain runs at a time, so that there is never more than one confirmation for each `every`.
fn confirmations(schedule: &Schedule, confirmations: &Confirmations) -> u32 {
    let every = confirmations.every.get().as_millis();
    if every == 0 || confirmations.max == 0 {
        return 0;
    }
    let by_interval = u32::try_from(HOUR_MS.div_ceil(every)).unwrap_or(u32::MAX);
    let chain_ms = every.saturating_mul(u128::from(confirmations.max));
    // Chains that reach into the hour began in it, or less than a chain's length before.
    let hours = u32::try_from(chain_ms.div_ceil(HOUR_MS)).unwrap_or(u32::MAX).saturating_add(1);
    let chains = schedule.max_per_hour().saturating_mul(hours);
    by_interval.min(confirmations.max.saturating_mul(chains))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::scalar::Span;

    #[test]
    fn confirmations_are_bounded_by_their_interval_and_by_their_number() {
        let most = |schedule: u64, every: u64, max: u32| {
            let schedule = ScheduleConfig::Every(Span::seconds(schedule)).schedule().expect("an interval");
            confirmations(&schedule, &Confirmations { every: Span::seconds(every), max })
        };
        assert_eq!(most(300, 60, 14), 60);
        assert_eq!(most(3600, 60, 14), 28, "one chain may end in the hour in which the next one begins");
        assert_eq!(most(300, 60, 0), 0);
        assert_eq!(most(86_400, 7, 1000), 515);
    }
}
