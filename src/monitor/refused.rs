//! What arrived with a genuine token and was refused by us, until it is written down. Bounded, whatever comes.

use crate::domain::{evidence::ArrivalRefusal, route::CanaryId};
use chrono::{DateTime, Utc};
use std::collections::HashSet;

/// Most that waits to be written down, and most that is known to have been remembered.
const MOST: usize = 1024;

/// One refusal.
type Entry = (CanaryId, DateTime<Utc>, ArrivalRefusal);

/// Refusals that wait to be written down. Of each canary and reason the first is enough.
#[derive(Debug, Default)]
pub struct Refused {
    waiting: Vec<Entry>,
    known: HashSet<(CanaryId, ArrivalRefusal)>,
}

impl Refused {
    /// Remembers a refusal. `false` where there is no room: then it is lost.
    pub fn remember(&mut self, canary_id: CanaryId, at: DateTime<Utc>, reason: ArrivalRefusal) -> bool {
        if self.known.contains(&(canary_id, reason)) {
            return true;
        }
        if self.waiting.len() >= MOST {
            return false;
        }
        if self.known.len() >= MOST {
            // What is forgotten here may be written a second time, which changes nothing.
            self.known = self.waiting.iter().map(|(canary, _, reason)| (*canary, *reason)).collect();
        }
        self.known.insert((canary_id, reason));
        self.waiting.push((canary_id, at, reason));
        true
    }

    /// What waits of one canary.
    pub fn waiting_of(&self, canary_id: CanaryId) -> Vec<(DateTime<Utc>, ArrivalRefusal)> {
        let of_it = self.waiting.iter().filter(|(canary, _, _)| *canary == canary_id);
        of_it.map(|(_, at, reason)| (*at, *reason)).collect()
    }

    /// What waits, the oldest first.
    pub fn waiting(&self) -> Vec<Entry> {
        self.waiting.clone()
    }

    /// So many of the oldest are written down.
    pub fn written(&mut self, number: usize) {
        self.waiting.drain(..number.min(self.waiting.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + seconds, 0).expect("an instant")
    }

    fn canary(n: usize) -> CanaryId {
        CanaryId(Uuid::from_u128(n as u128))
    }

    #[test]
    fn the_first_refusal_of_each_reason_is_remembered_once_and_kept_until_it_is_written() {
        let mut refused = Refused::default();
        for seconds in 0..5 {
            assert!(refused.remember(canary(1), at(seconds), ArrivalRefusal::Unavailable));
        }
        assert!(refused.remember(canary(1), at(5), ArrivalRefusal::TooLarge));
        let expected =
            [(canary(1), at(0), ArrivalRefusal::Unavailable), (canary(1), at(5), ArrivalRefusal::TooLarge)];
        assert_eq!(refused.waiting(), expected);
        assert_eq!(refused.waiting_of(canary(1)).len(), 2);
        assert_eq!(refused.waiting_of(canary(2)), []);
        refused.written(1);
        assert_eq!(refused.waiting(), expected[1..]);
        refused.written(1);
        assert!(refused.remember(canary(1), at(9), ArrivalRefusal::TooLarge));
        assert!(refused.waiting().is_empty(), "it is written already");
    }

    #[test]
    fn a_flood_is_bounded_and_says_so() {
        let mut refused = Refused::default();
        for n in 0..MOST {
            assert!(refused.remember(canary(n), at(0), ArrivalRefusal::WrongRoute));
        }
        assert!(!refused.remember(canary(MOST), at(0), ArrivalRefusal::WrongRoute));
        refused.written(MOST);
        for n in 0..10 * MOST {
            refused.remember(canary(n), at(0), ArrivalRefusal::WrongRoute);
            assert!(refused.known.len() <= MOST && refused.waiting.len() <= MOST);
        }
    }
}
