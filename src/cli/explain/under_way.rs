//! What is said of a canary that has no verdict yet.

use super::stamp;
use crate::domain::{canary::Canary, verdict::ExpectedEnd};
use chrono::{DateTime, TimeDelta, Utc};

/// Where a canary without a verdict stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnderWay {
    /// Its deadline is to come.
    OnItsWay,
    /// It has arrived; the verdict waits for what else is to be known.
    Arrived,
    /// It should have arrived so long ago.
    Overdue(TimeDelta),
    /// Its deadline was so long ago, and it is not expected to arrive.
    Past(TimeDelta),
}

impl UnderWay {
    /// Where this canary stands at `now`; nothing where it has a verdict.
    pub fn of(canary: &Canary, now: DateTime<Utc>) -> Option<Self> {
        if canary.standing().is_some() {
            return None;
        }
        let late = now - canary.deadline();
        Some(if !canary.sink.receipts.is_empty() {
            Self::Arrived
        } else if late <= TimeDelta::zero() {
            Self::OnItsWay
        } else if canary.plan.expected_end == ExpectedEnd::Delivered {
            Self::Overdue(late)
        } else {
            Self::Past(late)
        })
    }

    /// By how much it is overdue so far, in seconds.
    pub fn overdue_seconds(self) -> Option<f64> {
        match self {
            Self::Overdue(by) => Some(by.as_seconds_f64()),
            Self::OnItsWay | Self::Arrived | Self::Past(_) => None,
        }
    }

    fn words(self) -> String {
        let seconds = |by: TimeDelta| format!("{:.1}s", by.as_seconds_f64());
        match self {
            Self::OnItsWay => "on its way".to_owned(),
            Self::Arrived => "arrived, and not judged yet".to_owned(),
            Self::Overdue(by) => format!("overdue so far, by {}", seconds(by)),
            Self::Past(by) => format!("not judged yet, {} after its deadline", seconds(by)),
        }
    }

    /// All of it, in a few words: where it stands, and when its verdict is due.
    pub fn told(self, canary: &Canary, now: DateTime<Utc>) -> String {
        let due = canary.settles_at();
        // Somebody has to serve for a verdict to come.
        let verdict = if now <= due { "verdict by" } else { "its verdict was due at" };
        format!("{}; {verdict} {}", self.words(), stamp(due))
    }
}
