//! What the follower's core is told once.

use super::rows::RouteNo;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// How much longer than the greatest deadline single minutes are kept: the widest window that ends at the minute (six hours), and
/// an hour to spare.
const FINE_BEYOND_DEADLINE: Duration = Duration::from_secs(7 * 3_600);

/// What the follower's core is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The deadlines of the configured routes, by their place. The place after the last is that of `other`, which has none.
    pub deadlines: Vec<Duration>,
    /// The windows of the figures.
    pub windows: Vec<Duration>,
    /// What was due before and is still pending is told apart.
    pub baseline: Option<DateTime<Utc>>,
    /// Where the first read began. Notifications due before it are none of ours.
    pub horizon: Option<DateTime<Utc>>,
    /// How long hours are kept.
    pub history: Duration,
    /// How long minutes are kept. See [`Settings::fine_for`].
    pub fine_for: Duration,
    /// How late a commit may become visible.
    pub overlap: Duration,
    /// How many units may be kept.
    pub max_pending: usize,
    /// How many pending units are looked up again in a pass.
    pub sweep_per_pass: usize,
    /// How many lookups a pass may ask for besides, to settle what new rows alone don't.
    pub settle_per_pass: usize,
}

impl Settings {
    /// The place of the notifications whose route isn't configured.
    pub fn other(&self) -> RouteNo {
        RouteNo(u16::try_from(self.deadlines.len()).unwrap_or(u16::MAX))
    }

    /// The deadline of a route; nothing for `other`.
    pub fn deadline(&self, route: RouteNo) -> Option<Duration> {
        self.deadlines.get(usize::from(route.0)).copied()
    }

    /// How far back of now the cohorts of a route's windows end. `other` takes the greatest deadline of all.
    pub fn cohort_lag(&self, route: RouteNo) -> Duration {
        self.deadline(route).or_else(|| self.deadlines.iter().max().copied()).unwrap_or_default()
    }

    /// How long minutes have to be kept under these deadlines.
    pub fn fine_for(deadlines: &[Duration]) -> Duration {
        deadlines.iter().max().copied().unwrap_or_default() + FINE_BEYOND_DEADLINE
    }

    /// The place itself, or that of `other` where nothing is configured there.
    pub(super) fn place(&self, route: RouteNo) -> RouteNo {
        route.min(self.other())
    }
}
