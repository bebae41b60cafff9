//! Whether something works, said steadily: a single fault, or a single success, does not turn the answer.
//!
//! Pure: time comes in as a duration since some fixed moment.

use std::time::Duration;

/// How long a change must last before the answer turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long there must have been faults and no success before the answer becomes no.
    pub failing_for: Duration,
    /// How long there must have been successes and no fault before it becomes yes again.
    pub working_for: Duration,
    /// How old the newest report may be before the answer is no.
    pub silent_for: Duration,
}

impl Default for Patience {
    /// Chosen: three looks at two seconds each until no, twice that until yes again, and a quarter of a minute of silence.
    fn default() -> Self {
        Self {
            failing_for: Duration::from_secs(6),
            working_for: Duration::from_secs(12),
            silent_for: Duration::from_secs(15),
        }
    }
}

/// The answer at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It works.
    Yes,
    /// Nothing was reported yet.
    NeverReported,
    /// It fails, or has not worked for long enough since.
    Failing,
    /// Nobody has looked for too long.
    Silent,
}

/// Reports, and the answer that they add up to.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    patience: Patience,
    /// The answer that reports have turned; nothing before the first of them.
    works: Option<bool>,
    /// Since when the reports have all been alike, and what they say.
    run: Option<(bool, Duration)>,
    newest: Duration,
}

impl Steady {
    /// Nothing reported yet.
    pub const fn new(patience: Patience) -> Self {
        Self { patience, works: None, run: None, newest: Duration::ZERO }
    }

    /// Takes a report. The first decides at once; later ones turn the answer when they last.
    pub fn report(&mut self, now: Duration, works: bool) {
        let silent = self.works.is_some() && self.is_silent(now);
        if silent {
            // Nobody saw what was in between: it works again when that has lasted, as after any other fault.
            self.works = Some(false);
        }
        match self.run {
            Some((said, _)) if said == works && !silent => {}
            _ => self.run = Some((works, now)),
        }
        self.newest = now;
        self.turn(works);
    }

    /// The answer now.
    pub fn answer(&self, now: Duration) -> Answer {
        match self.works {
            None => Answer::NeverReported,
            Some(_) if self.is_silent(now) => Answer::Silent,
            Some(true) => Answer::Yes,
            Some(false) => Answer::Failing,
        }
    }

    fn is_silent(&self, now: Duration) -> bool {
        now.saturating_sub(self.newest) > self.patience.silent_for
    }

    /// Turns the answer if it is the first, or if the run of reports that are alike has lasted to the newest.
    fn turn(&mut self, works: bool) {
        let Some((_, since)) = self.run else { return };
        let needed = if works { self.patience.working_for } else { self.patience.failing_for };
        if self.works.is_none() || self.newest.saturating_sub(since) >= needed {
            self.works = Some(works);
        }
    }
}
