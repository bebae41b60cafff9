//! Failure evidence: a capped cumulative sum over the settled canaries of one route and location (Page, 1954).
//!
//! For each canary that failed log10(p1/p0) is added, for each that did not log10((1-p1)/(1-p0)), and the sum is kept
//! between 0 and bound + 1. It reads in powers of ten: 5 is a hundred thousand to one that the failure rate is
//! p1 and not p0. The cap is what lets it come down after a long outage.

use super::verdict::{Class, ExpectedEnd, Verdict};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// The two questions that are asked of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Does it arrive?
    Arrives,
    /// Does it arrive in time?
    InTime,
}

impl Question {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Arrives, Self::InTime];

    /// The word for it in labels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Arrives => "arrives",
            Self::InTime => "in_time",
        }
    }

    /// Whether this verdict is a failure (`true`), a success (`false`) or says nothing on a route of this expected end.
    ///
    /// `unknown` is a failure here, though it is on neither side of an SLI: a service whose answers leave everything
    /// unknown must not look healthy. Suppressed and undetermined neither count nor reset.
    pub fn vote(self, verdict: Verdict, expected: ExpectedEnd) -> Option<bool> {
        match verdict.class(expected) {
            Class::Outside => None,
            Class::Good => Some(false),
            Class::Unknown => Some(true),
            Class::Bad => {
                let arrived_late = verdict == Verdict::Late && expected == ExpectedEnd::Delivered;
                Some(!(arrived_late && self == Self::Arrives))
            }
        }
    }
}

/// The weights and bounds of one route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Added for a failure.
    pub up: f64,
    /// Added for a success; negative.
    pub down: f64,
    /// At which a page is due.
    pub bound: f64,
    /// How long after the first failure since zero the newest must be.
    pub sustain: TimeDelta,
}

impl Weights {
    /// The weights for a healthy failure rate `p0` and a failure rate `p1` worth waking somebody for.
    ///
    /// `0 < p0 < p1 < 1` and `bound > 0` are checked where the configuration is read.
    pub fn new(p0: f64, p1: f64, bound: f64, sustain: TimeDelta) -> Self {
        Self { up: (p1 / p0).log10(), down: ((1.0 - p1) / (1.0 - p0)).log10(), bound, sustain }
    }

    /// The largest sum.
    pub fn cap(&self) -> f64 {
        self.bound + 1.0
    }
}

/// The evidence on one question. The default is a route of which nothing bad is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The sum, in powers of ten.
    pub value: f64,
    /// The slot of the first failure since the sum was zero.
    pub failing_since: Option<DateTime<Utc>>,
    /// The slot of the newest failure since then.
    pub newest_failure: Option<DateTime<Utc>>,
    /// How many failures in a row there were to the end.
    pub consecutive: u32,
}

impl Stream {
    /// Takes the next canary, in the order of (slot, id).
    pub fn observe(&mut self, weights: &Weights, slot: DateTime<Utc>, failed: bool) {
        if failed {
            if self.failing_since.is_none() {
                self.failing_since = Some(slot);
            }
            self.newest_failure = Some(slot);
            self.consecutive = self.consecutive.saturating_add(1);
            self.value = (self.value + weights.up).min(weights.cap());
        } else {
            self.consecutive = 0;
            self.value = (self.value + weights.down).max(0.0);
        }
        if self.value <= 0.0 {
            self.failing_since = None;
            self.newest_failure = None;
        }
    }

    /// Whether the evidence is at its bound, and the failing has lasted.
    pub fn is_sustained(&self, weights: &Weights) -> bool {
        match (self.failing_since, self.newest_failure) {
            (Some(first), Some(newest)) => self.value >= weights.bound && newest - first >= weights.sustain,
            _ => false,
        }
    }
}
