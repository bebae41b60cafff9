//! The way from what is known to who is told: scraped, judged by a rule that must hold for a time, and sent after the group's wait.

use crate::alerts::simulate::{Millis, Random};

/// How often Prometheus scrapes, and rules are evaluated: the interval of the rules, and that of a scrape that fits it.
pub const TICK: Millis = 30_000;

/// From a settlement until `/metrics` shows it: the loops look every half second, and the page is made every second.
pub const SHOWN_AFTER: Millis = 1_000;

/// A rule as Prometheus evaluates it: it sees what the newest scrape saw, and holds its tongue until that has been so for a time.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The instants of scrapes, modulo a tick.
    phase: Millis,
    /// From a scrape to the evaluation that reads it.
    lag: Millis,
    /// How many ticks it must hold.
    hold: i64,
    /// The first tick from which on it has held.
    since: Option<i64>,
}

impl Watch {
    /// Scrapes and evaluations at any moment of their interval.
    pub fn new(hold: Millis, random: &mut Random) -> Self {
        let hold = hold.div_euclid(TICK) + i64::from(hold.rem_euclid(TICK) > 0);
        Self { phase: random.below(TICK), lag: random.below(TICK), hold, since: None }
    }

    /// Whether it fires now.
    pub fn is_firing(&self, until: Millis) -> bool {
        self.since.is_some_and(|since| since + self.hold < self.tick_from(until))
    }

    /// The first tick at this instant or after it.
    fn tick_from(&self, at: Millis) -> i64 {
        -(self.phase - at).div_euclid(TICK)
    }

    /// From one instant until just before another it was so. Tells when the alert begins to fire in that time.
    pub fn see(&mut self, from: Millis, until: Millis, is_bad: bool) -> Option<Millis> {
        let (first, end) = (self.tick_from(from), self.tick_from(until));
        if first >= end {
            // Nobody looked.
            return None;
        }
        if !is_bad {
            self.since = None;
            return None;
        }
        let fires = *self.since.get_or_insert(first) + self.hold;
        (first..end).contains(&fires).then(|| self.phase + fires * TICK + self.lag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(hold: Millis) -> Watch {
        Watch { phase: 10_000, lag: 5_000, hold: hold / TICK, since: None }
    }

    #[test]
    fn it_fires_once_when_it_has_held_and_begins_anew_when_it_was_seen_to_be_well() {
        let mut watch = watch(60_000);
        assert_eq!(watch.see(0, 40_000, true), None, "held since 10 s");
        assert_eq!(watch.see(40_000, 70_000, true), None, "seen at 40 s");
        assert_eq!(watch.see(70_000, 500_000, true), Some(75_000), "scraped at 70 s, judged at 75 s");
        assert!(watch.is_firing(500_000) && !watch.is_firing(70_000));
        assert_eq!(watch.see(500_000, 600_000, true), None);
        assert_eq!(watch.see(600_000, 605_000, false), None, "well between two scrapes: nobody saw it");
        assert!(watch.is_firing(605_000));
        assert_eq!(watch.see(605_000, 700_000, false), None);
        assert!(!watch.is_firing(700_000));
        assert_eq!(watch.see(700_000, 800_000, true), Some(765_000));
    }

    #[test]
    fn a_hold_of_no_whole_ticks_ends_with_the_next() {
        let mut random = Random::new(1);
        assert_eq!(Watch::new(45_000, &mut random).hold, 2);
        assert_eq!(Watch::new(60_000, &mut random).hold, 2);
        assert_eq!(Watch::new(0, &mut random).hold, 0);
    }
}
