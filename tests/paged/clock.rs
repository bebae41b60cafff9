//! One factor by which everything is faster here than where the rules are used: the schedule, the deadlines, the rules, the Alertmanager.
//!
//! Times in this suite are those of a real installation, with a canary a minute, and are divided when something is waited for. What the
//! program counts in fixed time stays as it is: its loops' own pace, and the windows of `/metrics`.

use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::config::scalar::Span;
use std::time::Duration;

/// How many times faster the clocks run, unless `PAGED_FACTOR` says otherwise. 1 is the real pace, for a run by hand.
const FACTOR: u32 = 20;

/// Seconds of a real installation.
pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// By how much time is shortened.
#[derive(Clone, Copy, Debug)]
pub struct Clock(u32);

impl Clock {
    /// The pace of a real installation.
    pub const REAL: Self = Self(1);

    /// The pace of this run. A canary a minute has to stay a whole number of seconds.
    pub fn of_this_run() -> Self {
        let Ok(text) = std::env::var("PAGED_FACTOR") else { return Self(FACTOR) };
        let factor: u32 = text.parse().unwrap_or_else(|_| panic!("PAGED_FACTOR is {text:?}, and no number"));
        assert!(factor > 0 && 60 % factor == 0, "PAGED_FACTOR must divide 60, and is {factor}");
        Self(factor)
    }

    /// How long this takes here.
    pub fn short(self, real: Duration) -> Duration {
        real / self.0
    }

    /// How long what took so long here takes in a real installation.
    pub fn real(self, here: TimeDelta) -> TimeDelta {
        here * i32::try_from(self.0).expect("a small factor")
    }

    /// A duration as it is written, shortened. It must come out in whole milliseconds.
    pub fn span(self, written: &str) -> String {
        let real: Span = written.parse().unwrap_or_else(|error| panic!("{error}"));
        let short = self.short(real.get());
        assert_eq!(short.subsec_nanos() % 1_000_000, 0, "{written} can't be divided by {}", self.0);
        Span(short).to_string()
    }

    /// A number of seconds as it is written, shortened.
    pub fn seconds(self, written: &str) -> String {
        let real: f64 = written.parse().unwrap_or_else(|_| panic!("{written} is no number of seconds"));
        (real / f64::from(self.0)).to_string()
    }

    /// A count in a fixed time, such as canaries an hour.
    pub fn per_hour(self, count: u32) -> u32 {
        count * self.0
    }

    /// The instant that is so long after another, here.
    pub fn after(self, at: DateTime<Utc>, real: Duration) -> DateTime<Utc> {
        at + TimeDelta::from_std(self.short(real)).expect("a short time")
    }
}
