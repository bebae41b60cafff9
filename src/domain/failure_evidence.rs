//! Failure evidence: a capped cumulative sum over the settled canaries of one route and location (Page, 1954).
//!
//! For each canary that failed log10(p1/p0) is added, for each that did not log10((1-p1)/(1-p0)), and the sum is kept
//! between 0 and bound + 1. It reads in powers of ten: 5 is a hundred thousand to one that the failure rate is
//! p1 and not p0. The cap is what lets it come down after a long outage.
//!
//! Failures in a row may be one blip: they are as little independent as the rain of one cloud. So a *run* of failures, broken by no success, is
//! worth little more than its first one until it has lasted `sustain`; then it counts in full. And until the newest failure is `sustain` after the
//! first one since zero, the sum is held below the bound. So what is at the bound is sustained: a page needs nothing but
//! the sum (docs/adr/0011-a-blip-is-one-event.md).

use super::verdict::{Class, ExpectedEnd, Verdict};
use chrono::{DateTime, TimeDelta, Utc};
use std::fmt;

/// What a run that has not lasted adds to its first failure: this share of what that leaves to the bound. Measured: up to 0.48 a year's 48 blips
/// of three minutes make at most one page at each healthy rate of docs/alerting.md, and below 0.46 partial outages are found later.
const RUN_SHARE: f64 = 0.46;

/// Where the sum is held until the failing has lasted: this share of the bound.
const HELD_SHARE: f64 = 0.9;

/// The two questions that are asked of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// The healthy failure rate.
    pub p0: f64,
    /// The failure rate worth waking somebody for.
    pub p1: f64,
    /// Added for a failure.
    pub up: f64,
    /// Added for a success; negative.
    pub down: f64,
    /// At which a page is due.
    pub bound: f64,
    /// How long the failing must have lasted before the sum can be at its bound.
    pub sustain: TimeDelta,
}

impl Weights {
    /// The weights for a healthy failure rate `p0` and a failure rate `p1` worth waking somebody for.
    ///
    /// `0 < p0 < p1 < 1` and `bound > 0` are checked where the configuration is read.
    pub fn new(p0: f64, p1: f64, bound: f64, sustain: TimeDelta) -> Self {
        Self { p0, p1, up: (p1 / p0).log10(), down: ((1.0 - p1) / (1.0 - p0)).log10(), bound, sustain }
    }

    /// The largest sum.
    pub fn cap(&self) -> f64 {
        self.bound + 1.0
    }

    /// The most that a run of failures is worth before it has lasted `sustain`.
    pub fn short_run(&self) -> f64 {
        self.up + RUN_SHARE * (self.bound - self.up).max(0.0)
    }

    /// The largest sum before the failing has lasted `sustain`.
    pub fn held(&self) -> f64 {
        HELD_SHARE * self.bound
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, sustain, .. } = self;
        let (p0, p1) = (rounded(self.p0), rounded(self.p1));
        write!(f, "p0 {p0}, p1 {p1}, bound {bound}, sustain {}s", sustain.as_seconds_f64())
    }
}

/// To six digits, for people: half of an error budget of 0.1 % is not exact.
fn rounded(share: f64) -> f64 {
    let scale = 10f64.powf(5.0 - share.log10().floor());
    (share * scale).round() / scale
}

/// The evidence on one question. The default is a route of which nothing bad is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stream {
    /// The sum, in powers of ten.
    pub value: f64,
    /// The slot of the first failure since the sum was zero.
    pub failing_since: Option<DateTime<Utc>>,
    /// How many failures in a row there were to the end.
    pub consecutive: u32,
    /// The run of failures at the end, if there is one.
    pub run: Option<Run>,
}

/// Failures in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The slot of the first of them.
    pub since: DateTime<Utc>,
    /// The sum before it.
    pub before: f64,
}

impl Stream {
    /// Takes the next canary, in the order of (slot, id).
    pub fn observe(&mut self, weights: &Weights, slot: DateTime<Utc>, failed: bool) {
        if failed {
            self.fail(weights, slot);
        } else {
            self.consecutive = 0;
            self.run = None;
            self.value = (self.value + weights.down).max(0.0);
        }
        if self.value <= 0.0 {
            self.failing_since = None;
        }
    }

    fn fail(&mut self, weights: &Weights, slot: DateTime<Utc>) {
        let has_lasted = |since: DateTime<Utc>| slot - since >= weights.sustain;
        let since = *self.failing_since.get_or_insert(slot);
        let run = *self.run.get_or_insert(Run { since: slot, before: self.value });
        self.consecutive = self.consecutive.saturating_add(1);
        let all = f64::from(self.consecutive) * weights.up;
        let worth = if has_lasted(run.since) { all } else { all.min(weights.short_run()) };
        let most = if has_lasted(since) { weights.cap() } else { weights.held() };
        // A failure never takes anything away, whatever the sum was held at.
        self.value = (run.before + worth).min(most).max(self.value);
    }

    /// Whether the evidence is at its bound: a page is due. Then the failing has lasted `sustain`.
    pub fn is_sustained(&self, weights: &Weights) -> bool {
        self.value >= weights.bound
    }
}
