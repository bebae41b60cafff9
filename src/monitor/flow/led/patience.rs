//! How long a process that leads goes on while its readings fail, before it leaves the ledger to others.

use std::time::Duration;
use tokio::time::Instant;

/// How many readings in a row must have failed: one may have met a server that is changed for another.
const FAILED: u32 = 2;

/// For how long none may have come to its end: a switch-over takes seconds, and whoever reads every second would have met it twice.
const FAILED_FOR: Duration = Duration::from_secs(20);

/// How long to wait before the first trial after a ledger was given up, where it is not read more seldom anyway. It doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(3);

/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// What came of the readings of a ledger by this process.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How many failed in a row.
    failed: u32,
    /// When one last came to its end; or when, after it, this process began to read.
    good_at: Instant,
    /// Where the ledger is given up, how often it was tried since.
    trials: Option<u32>,
}

impl Patience {
    /// Nothing was read yet.
    pub const fn new(now: Instant) -> Self {
        Self { failed: 0, good_at: now, trials: None }
    }

    /// A reading came to its end, or there is none to be made.
    pub const fn good(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// A reading failed.
    pub const fn failed(&mut self) {
        self.failed = self.failed.saturating_add(1);
    }

    /// How many failed in a row, and for how long none has come to its end.
    pub fn tally(&self, now: Instant) -> (u32, Duration) {
        (self.failed, now.saturating_duration_since(self.good_at))
    }

    /// Whether it is time to give the ledger up.
    pub fn is_over(&self, now: Instant) -> bool {
        self.trials.is_none() && self.failed >= FAILED && self.tally(now).1 >= FAILED_FOR
    }

    /// The ledger is given up.
    pub const fn give_up(&mut self) {
        self.trials = Some(0);
    }

    /// Whether the ledger is given up, and no reading has come to its end since.
    pub const fn has_given_up(&self) -> bool {
        self.trials.is_some()
    }

    /// How long to wait before the next trial of a ledger that is given up and was read so often.
    pub fn wait(&mut self, every: Duration) -> Duration {
        let trials = self.trials.unwrap_or(0);
        self.trials = Some(trials.saturating_add(1));
        FIRST_WAIT.saturating_mul(1 << trials.min(8)).min(LONGEST_WAIT).max(every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_failure_however_long_ago_and_many_at_once_are_waited_for() {
        let begun = Instant::now();
        let mut patience = Patience::new(begun);
        patience.failed();
        assert!(!patience.is_over(begun + seconds(3_600)), "one is not enough");
        patience.good(begun + seconds(100));
        for _ in 0..10 {
            patience.failed();
        }
        assert!(!patience.is_over(begun + seconds(119)), "they all came at once");
        assert!(patience.is_over(begun + seconds(120)));
        patience.give_up();
        assert!(!patience.is_over(begun + seconds(200)), "it is given up once");
        patience.good(begun + seconds(300));
        assert!(!patience.has_given_up());
        assert_eq!(patience.tally(begun + seconds(301)), (0, seconds(1)));
    }

    #[test]
    fn trials_become_seldom_and_not_more_so_than_readings_were_or_15_s() {
        let mut patience = Patience::new(Instant::now());
        patience.give_up();
        let waits = [(); 6].map(|()| patience.wait(seconds(1)).as_secs());
        assert_eq!(waits, [3, 6, 12, 15, 15, 15]);
        for _ in 0..100 {
            assert_eq!(patience.wait(seconds(60)), seconds(60));
        }
    }
}
