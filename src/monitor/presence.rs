//! Since when this process could take arrivals without a break: its start, or the end of a time in which it did not run or could not
//! trust its clock. Both clocks are looked at twice a second, and before anything is concluded from a message to ourselves.

use super::shared::Shared;
use crate::clock;
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);

/// A wall clock that moved by less than this against the monotonic one was adjusted, not set.
const LEAST_STEP: TimeDelta = TimeDelta::seconds(5);

/// A look that comes later than this was not late by a busy machine alone.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What a look noticed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noticed {
    /// The wall clock was set forward by so much, or back. A machine that was suspended shows the same.
    Stepped(TimeDelta),
    /// Nothing of this process ran for so long.
    Stalled(Duration),
}

/// Compares each look at the two clocks with the look before.
#[derive(Debug, Default)]
pub struct Looks {
    last: Option<(DateTime<Utc>, Instant)>,
}

impl Looks {
    /// Takes a look. The first one notices nothing.
    pub fn look(&mut self, wall: DateTime<Utc>, monotonic: Instant) -> Option<Noticed> {
        let (last_wall, last_monotonic) = self.last.replace((wall, monotonic))?;
        let went_by = monotonic.saturating_duration_since(last_monotonic);
        let step = (wall - last_wall).checked_sub(&TimeDelta::from_std(went_by).ok()?)?;
        if step.abs() > LEAST_STEP {
            return Some(Noticed::Stepped(step));
        }
        (went_by > LONGEST_PAUSE).then_some(Noticed::Stalled(went_by))
    }
}

/// Since when this process could take arrivals without a break.
#[derive(Debug)]
pub struct Presence(Mutex<State>);

#[derive(Debug)]
struct State {
    looks: Looks,
    since: DateTime<Utc>,
}

impl Presence {
    /// Since now.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self(Mutex::new(State { looks: Looks::default(), since: now }))
    }

    /// Takes a look at the clocks. Whatever it notices is a break that ends now, and is logged.
    pub fn look(&self, wall: DateTime<Utc>, monotonic: Instant) {
        let mut state = self.state();
        let noticed = state.looks.look(wall, monotonic);
        if noticed.is_some() {
            state.since = wall;
        }
        drop(state);
        tell(noticed);
    }

    /// Nothing is certain of the time before now: something that arrived can't be remembered.
    pub fn unsure(&self, now: DateTime<Utc>) {
        self.state().since = now;
    }

    /// The end of the newest break.
    pub fn since(&self) -> DateTime<Utc> {
        self.state().since
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        shared.presence.look(clock::now(), Instant::now());
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

fn tell(noticed: Option<Noticed>) {
    match noticed {
        Some(Noticed::Stepped(step)) => tracing::warn!(
            event = "clock_stepped",
            step_seconds = step.as_seconds_f64(),
            "the clock by which we go was set, or the machine was suspended; what was under way can be judged by a deadline that moved"
        ),
        Some(Noticed::Stalled(pause)) => tracing::warn!(
            event = "process_stalled",
            stalled_seconds = pause.as_secs_f64(),
            "nothing of this process ran for a while; what came in that time was read late"
        ),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Looks at half a second each, with a step of the wall clock and a pause before the last.
    fn noticed(step: TimeDelta, pause: Duration) -> Vec<Option<Noticed>> {
        let (mut wall, mut monotonic) = (DateTime::from_timestamp(1_790_000_000, 0).unwrap(), Instant::now());
        let mut looks = Looks::default();
        let mut all = vec![looks.look(wall, monotonic)];
        for (step, pause) in [(TimeDelta::zero(), EVERY), (step, pause), (TimeDelta::zero(), EVERY)] {
            wall += TimeDelta::from_std(pause).unwrap() + step;
            monotonic += pause;
            all.push(looks.look(wall, monotonic));
        }
        all
    }

    #[test]
    fn an_hour_forward_and_an_hour_back_are_noticed_once_with_their_size() {
        for hours in [1, -1] {
            let step = TimeDelta::hours(hours);
            assert_eq!(noticed(step, EVERY), [None, None, Some(Noticed::Stepped(step)), None]);
        }
    }

    #[test]
    fn thirteen_seconds_of_standing_still_are_noticed() {
        let pause = Duration::from_secs(13);
        assert_eq!(noticed(TimeDelta::zero(), pause), [None, None, Some(Noticed::Stalled(pause)), None]);
    }

    #[test]
    fn a_break_ends_when_it_is_noticed() {
        let (wall, monotonic) = (DateTime::from_timestamp(1_790_000_000, 0).unwrap(), Instant::now());
        let presence = Presence::new(wall);
        let after = |seconds: i64| {
            let went_by = TimeDelta::seconds(seconds);
            presence.look(wall + went_by, monotonic + went_by.to_std().unwrap());
            presence.since() - wall
        };
        assert_eq!([0, 1, 2].map(after), [TimeDelta::zero(); 3]);
        assert_eq!([15, 16].map(after), [TimeDelta::seconds(15); 2], "it stood still for 13 seconds");
    }

    proptest! {
        #[test]
        fn what_is_small_is_no_step_and_no_pause(step in -5_000i64..=5_000, pause in 0u64..=5_000) {
            let all = noticed(TimeDelta::milliseconds(step), Duration::from_millis(pause));
            prop_assert!(all.iter().all(Option::is_none), "{:?}", all);
        }
    }
}
