//! Whether each observer can look: a state of its own for each of its readings, and all of them together.
//!
//! Readings of one ledger fail apart: its lookup may be broken while its pending are read well. With one state for both the ledger would be
//! up and down in turn, so that nothing that has to hold for minutes ever would.

use super::snapshot::Observer;
use crate::ledger::LedgerError;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// What is read of an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading {
    /// Messages to ourselves, through a receiver.
    Message,
    /// The canaries of a ledger: what verdicts need.
    Lookup,
    /// Everybody's pending notifications of a ledger.
    Pending,
    /// What is new in a ledger, by its follower.
    Follow,
    /// What the follower looks up again.
    Reread,
    /// The exact count of the last closed hour.
    Partition,
    /// Who counts what is accepted independently of a ledger.
    Elsewhere,
    /// The ledger's own count of the same.
    InLedger,
}

impl Reading {
    /// Those that are made by whoever follows a ledger, and by nobody else.
    pub const OF_THE_FOLLOWER: [Self; 5] =
        [Self::Follow, Self::Reread, Self::Partition, Self::Elsewhere, Self::InLedger];

    /// The word for it in logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Lookup => "lookup",
            Self::Pending => "pending",
            Self::Follow => "follow",
            Self::Reread => "reread",
            Self::Partition => "partition",
            Self::Elsewhere => "accepted_elsewhere",
            Self::InLedger => "in_ledger",
        }
    }
}

/// What came of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look<'a> {
    /// It succeeded.
    Good,
    /// It succeeded and found nothing: whether rows can be read was not tried.
    Empty,
    /// It failed.
    Failed {
        /// Why.
        reason: &'a str,
        /// Whether it was a row that could not be read: an empty answer is then no sign that one can.
        in_rows: bool,
    },
}

impl<'a> Look<'a> {
    /// A failure of this reason, before any row.
    pub const fn failed(reason: &'a str) -> Self {
        Self::Failed { reason, in_rows: false }
    }

    /// What a ledger's error comes to. `reason` is its text.
    pub const fn of(error: &LedgerError, reason: &'a str) -> Self {
        Self::Failed { reason, in_rows: matches!(error, LedgerError::Shape { .. }) }
    }
}

/// What is known of one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sight {
    /// Whether it works.
    pub up: bool,
    /// When it last succeeded.
    pub last_success: Option<DateTime<Utc>>,
    /// Whether, since it last worked, a row could not be read.
    in_rows: bool,
}

/// A change of one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It does not work any more, or never did.
    Down,
    /// It works again.
    Up,
}

/// All readings of all observers.
#[derive(Clone, Debug, Default)]
pub struct Sights(BTreeMap<Observer, BTreeMap<Reading, Sight>>);

impl Sights {
    /// Notes what came of a reading. The first one that works is no change.
    pub fn note(
        &mut self,
        observer: &Observer,
        reading: Reading,
        look: Look<'_>,
        now: DateTime<Utc>,
    ) -> Option<Turn> {
        let readings = self.0.entry(observer.clone()).or_default();
        let known = readings.get(&reading).copied();
        let before = known.unwrap_or_default();
        let after = match look {
            Look::Empty if before.in_rows => return None,
            Look::Good | Look::Empty => Sight { up: true, last_success: Some(now), in_rows: false },
            Look::Failed { in_rows, .. } => Sight { up: false, in_rows: in_rows || before.in_rows, ..before },
        };
        readings.insert(reading, after);
        match (known.map(|sight| sight.up), after.up) {
            (Some(false), true) => Some(Turn::Up),
            (None | Some(true), false) => Some(Turn::Down),
            _ => None,
        }
    }

    /// All is configured anew: that a row could not be read before says nothing of whether it can be read now. Until it is tried, what failed
    /// stays so.
    pub fn renew(&mut self) {
        self.0.values_mut().flat_map(BTreeMap::values_mut).for_each(|sight| sight.in_rows = false);
    }

    /// Forgets a reading that is not made any more: what it last came to says nothing of now.
    pub fn forget(&mut self, observer: &Observer, reading: Reading) {
        if let Some(readings) = self.0.get_mut(observer) {
            readings.remove(&reading);
        }
    }

    /// What is known of one reading.
    pub fn get(&self, observer: &Observer, reading: Reading) -> Option<Sight> {
        self.0.get(observer)?.get(&reading).copied()
    }

    /// Whether a reading works, as far as is known.
    pub fn is_reading_up(&self, observer: &Observer, reading: Reading) -> bool {
        self.get(observer, reading).is_some_and(|sight| sight.up)
    }

    /// Whether an observer can look: it was looked at, and none of its readings fails.
    pub fn is_up(&self, observer: &Observer) -> bool {
        self.0
            .get(observer)
            .is_some_and(|readings| !readings.is_empty() && readings.values().all(|sight| sight.up))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MISFIT: Look<'static> = Look::Failed { reason: "column `at`: an integer", in_rows: true };

    fn ledger() -> Observer {
        Observer::Ledger("attempts".into())
    }

    fn note(sights: &mut Sights, reading: Reading, look: Look<'_>) -> Option<Turn> {
        sights.note(&ledger(), reading, look, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn one_reading_that_fails_is_enough_and_another_one_does_not_hide_it() {
        for (broken, well) in [
            (Reading::Lookup, Reading::Pending),
            (Reading::Pending, Reading::Lookup),
            (Reading::Reread, Reading::Follow),
        ] {
            let mut sights = Sights::default();
            assert!(!sights.is_up(&ledger()), "nobody has looked");
            assert_eq!(note(&mut sights, well, Look::Good), None);
            assert!(sights.is_up(&ledger()));
            assert_eq!(note(&mut sights, broken, Look::failed("no such column")), Some(Turn::Down));
            for _ in 0..5 {
                assert_eq!(note(&mut sights, well, Look::Good), None);
                assert!(!sights.is_up(&ledger()), "{broken:?} fails still");
                assert_eq!(note(&mut sights, broken, Look::failed("no such column")), None);
            }
            assert_eq!(note(&mut sights, broken, Look::Good), Some(Turn::Up));
            assert!(sights.is_up(&ledger()));
        }
    }

    #[test]
    fn an_empty_answer_is_no_sign_that_rows_can_be_read() {
        let mut sights = Sights::default();
        assert_eq!(note(&mut sights, Reading::Pending, Look::Empty), None);
        assert!(sights.is_up(&ledger()), "nothing speaks against it");
        assert_eq!(note(&mut sights, Reading::Pending, MISFIT), Some(Turn::Down));
        assert_eq!(note(&mut sights, Reading::Pending, Look::failed("it can't be reached")), None);
        assert_eq!(
            note(&mut sights, Reading::Pending, Look::Empty),
            None,
            "that a row could not be read is not forgotten"
        );
        assert!(!sights.is_up(&ledger()));
        assert_eq!(note(&mut sights, Reading::Pending, Look::Good), Some(Turn::Up));
        assert_eq!(
            note(&mut sights, Reading::Pending, Look::failed("it can't be reached")),
            Some(Turn::Down)
        );
        assert_eq!(note(&mut sights, Reading::Pending, Look::Empty), Some(Turn::Up));
    }

    #[test]
    fn with_another_configuration_an_empty_answer_is_enough() {
        let mut sights = Sights::default();
        note(&mut sights, Reading::Pending, MISFIT);
        sights.renew();
        assert!(!sights.is_up(&ledger()), "it was not tried yet");
        assert_eq!(note(&mut sights, Reading::Pending, Look::Empty), Some(Turn::Up));
    }

    #[test]
    fn what_is_read_no_more_counts_no_more() {
        let mut sights = Sights::default();
        note(&mut sights, Reading::Pending, MISFIT);
        note(&mut sights, Reading::Follow, Look::Good);
        assert!(!sights.is_up(&ledger()));
        sights.forget(&ledger(), Reading::Pending);
        assert!(sights.is_up(&ledger()));
        assert_eq!(sights.get(&ledger(), Reading::Pending), None);
    }

    proptest! {
        #[test]
        fn up_is_that_the_newest_of_each_reading_was_good(looks in prop::collection::vec((0usize..4, any::<bool>()), 1..60)) {
            let readings = [Reading::Lookup, Reading::Pending, Reading::Follow, Reading::Reread];
            let (mut sights, mut newest, mut turns) = (Sights::default(), BTreeMap::new(), BTreeMap::new());
            for (which, is_good) in looks {
                let look = if is_good { Look::Good } else { MISFIT };
                let turn = note(&mut sights, readings[which], look);
                let before = newest.insert(which, is_good);
                // A turn is told exactly when the reading's own state turns.
                prop_assert_eq!(turn.is_some(), before.unwrap_or(true) != is_good);
                *turns.entry(which).or_insert(0) += u32::from(turn.is_some());
                prop_assert_eq!(sights.is_up(&ledger()), newest.values().all(|good| *good));
            }
        }
    }
}
