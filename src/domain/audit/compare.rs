//! The attempts of one notification, held against what was seen of them before.

use crate::domain::{
    disagreement::Disagreement,
    flow::{from_code, rows::Standing, to_code},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most attempts of one notification that are held.
const MOST_HELD: usize = 200;

/// How a history changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The outcome of an attempt was changed away from a terminal one.
    OutcomeRewritten,
    /// An attempt that was there is gone.
    AttemptVanished,
    /// There was an attempt after a terminal one.
    AttemptAfterTerminal,
    /// One key had more than one notification.
    SecondEffectForOneKey,
    /// Delivered, then rejected because of the recipient: a late bounce, which is allowed.
    LateReversal,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OutcomeRewritten,
        Self::AttemptVanished,
        Self::AttemptAfterTerminal,
        Self::SecondEffectForOneKey,
        Self::LateReversal,
    ];

    /// Those that history does not allow.
    pub const VIOLATIONS: [Self; 4] = [
        Self::OutcomeRewritten,
        Self::AttemptVanished,
        Self::AttemptAfterTerminal,
        Self::SecondEffectForOneKey,
    ];

    /// The word for it in labels, logs and the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::OutcomeRewritten => "outcome_rewritten",
            Self::AttemptVanished => "attempt_vanished",
            Self::AttemptAfterTerminal => "attempt_after_terminal",
            Self::SecondEffectForOneKey => "second_effect_for_one_key",
            Self::LateReversal => "late_reversal",
        }
    }

    /// The one of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.word() == word)
    }

    /// What a contradiction found on a canary says of the ledger's history.
    pub const fn of(found: Disagreement) -> Option<Self> {
        match found {
            Disagreement::OutcomeRewritten => Some(Self::OutcomeRewritten),
            Disagreement::AttemptVanished => Some(Self::AttemptVanished),
            Disagreement::AttemptAfterTerminal => Some(Self::AttemptAfterTerminal),
            Disagreement::SecondEffectForOneKey => Some(Self::SecondEffectForOneKey),
            Disagreement::DeliveredWithoutReceipt
            | Disagreement::ReceiptWithoutDelivered
            | Disagreement::AcceptedWithoutLedgerRow
            | Disagreement::LedgerRowWithoutAcceptance
            | Disagreement::MoreReceiptsThanAttempts
            | Disagreement::DuplicateReceipt
            | Disagreement::CorrelationLost
            | Disagreement::PolicyVersionMissing => None,
        }
    }

    /// Whether an older view of the ledger would look just like it.
    const fn needs_second_reading(self) -> bool {
        matches!(self, Self::OutcomeRewritten | Self::AttemptVanished)
    }
}

/// One attempt as a reading shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// A digest of the destination; zero where a notification has but one.
    pub destination: u64,
    /// When it started, where that is known.
    pub at: Option<DateTime<Utc>>,
    /// What it leaves its notification in; nothing while it is under way.
    pub leaves: Option<Standing>,
}

/// All that one reading shows of one notification. Where the ledger has no attempts, its own status is in the place of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The attempts by digests of their ids.
    pub attempts: BTreeMap<u64, Seen>,
    /// Whether another notification has the same key.
    pub shares_key: bool,
}

/// One change that a comparison found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub change: Change,
    /// The attempt, by the digest of its id; zero where it is of the whole notification.
    pub attempt: u64,
}

/// An attempt in its place among others: destination, time, digest of its id, and what it left.
type Known = (u64, DateTime<Utc>, u64, Standing);

/// The attempts that started after a terminal one of the same destination. A late bounce is the first rejection because of the recipient
/// after what was delivered.
pub fn after_terminal<'a>(attempts: impl IntoIterator<Item = (&'a u64, &'a Seen)>) -> BTreeSet<Finding> {
    let known = attempts
        .into_iter()
        .filter_map(|(print, seen)| Some((seen.destination, seen.at?, *print, seen.leaves?)));
    let mut known: Vec<Known> = known.collect();
    known.sort_unstable();
    let mut found = BTreeSet::new();
    let same_time = |one: &Known, other: &Known| (one.0, one.1) == (other.0, other.1);
    // Of the newest terminal attempts before this time: the destination, and whether one of them delivered.
    let mut before: Option<(u64, bool)> = None;
    for together in known.chunk_by(same_time) {
        before = before.filter(|(destination, _)| *destination == together[0].0);
        if let Some((_, is_delivered)) = before {
            found.extend(together.iter().map(|(_, _, attempt, leaves)| {
                let is_bounce = is_delivered && *leaves == Standing::RejectedRecipient;
                let change = if is_bounce { Change::LateReversal } else { Change::AttemptAfterTerminal };
                Finding { change, attempt: *attempt }
            }));
        }
        let terminal = || together.iter().map(|(.., leaves)| *leaves).filter(|leaves| leaves.is_terminal());
        if terminal().next().is_some() {
            before = Some((together[0].0, terminal().any(|leaves| leaves == Standing::Delivered)));
        }
    }
    found
}

impl History {
    /// Attempts with a greater digest are not held: there are too many.
    fn greatest_held(&self) -> u64 {
        self.attempts.keys().nth(MOST_HELD - 1).copied().unwrap_or(u64::MAX)
    }
}

/// What is held of one notification between two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    attempts: BTreeMap<u64, HeldAttempt>,
    shares_key: bool,
}

/// A code for what the attempt left its notification in, and whether it was found to come after a terminal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HeldAttempt(u8, bool);

impl HeldAttempt {
    fn leaves(self) -> Option<Standing> {
        from_code(self.0)
    }
}

impl Held {
    /// How a reading differs from what is held, as far as history does not allow it or counts it apart. `None`: the ledger has no such
    /// notification.
    pub fn compare(&self, seen: Option<&History>) -> BTreeSet<Finding> {
        let nothing = History::default();
        let seen = seen.unwrap_or(&nothing);
        let mut found = BTreeSet::new();
        for (print, held) in &self.attempts {
            let Some(before) = held.leaves() else { continue };
            let change = match seen.attempts.get(print).map(|now| now.leaves) {
                None => Some(Change::AttemptVanished),
                Some(now) if !before.is_terminal() || now == Some(before) => None,
                Some(Some(Standing::RejectedRecipient)) if before == Standing::Delivered => {
                    Some(Change::LateReversal)
                }
                Some(_) => Some(Change::OutcomeRewritten),
            };
            found.extend(change.map(|change| Finding { change, attempt: *print }));
        }
        let greatest = seen.greatest_held();
        let is_told = |print: &u64| self.attempts.get(print).is_some_and(|held| held.1);
        let after = after_terminal(&seen.attempts).into_iter();
        found.extend(after.filter(|found| found.attempt <= greatest && !is_told(&found.attempt)));
        if seen.shares_key && !self.shares_key {
            found.insert(Finding { change: Change::SecondEffectForOneKey, attempt: 0 });
        }
        found
    }

    /// Divides what a comparison found into what is certain, and what a second reading has to show. `doubtful` is what the last reading
    /// left to this one.
    pub fn judge(
        found: BTreeSet<Finding>,
        doubtful: &BTreeSet<Finding>,
    ) -> (BTreeSet<Finding>, BTreeSet<Finding>) {
        found.into_iter().partition(|one| !one.change.needs_second_reading() || doubtful.contains(one))
    }

    /// Holds what a reading shows from now on, but for attempts that are still in doubt.
    pub fn hold(&mut self, seen: Option<&History>, doubtful: &BTreeSet<Finding>) {
        let before = std::mem::take(&mut self.attempts);
        let doubted: BTreeSet<u64> = doubtful.iter().map(|finding| finding.attempt).collect();
        self.attempts.extend(before.iter().filter(|(print, _)| doubted.contains(*print)));
        let Some(seen) = seen else { return };
        self.shares_key |= seen.shares_key;
        let after: BTreeSet<u64> =
            after_terminal(&seen.attempts).into_iter().map(|found| found.attempt).collect();
        let greatest = seen.greatest_held();
        for (print, now) in seen.attempts.range(..=greatest) {
            let known = before.get(print);
            // An attempt that is tried again in place keeps what it was, until it has an outcome again.
            let unfinished = || known.filter(|held| held.leaves().is_some_and(|l| !l.is_terminal()));
            let leaves = if doubted.contains(print) {
                known.map(|held| held.0)
            } else {
                now.leaves.map(|leaves| to_code(Some(leaves))).or_else(|| unfinished().map(|held| held.0))
            };
            if let Some(leaves) = leaves {
                let is_told = after.contains(print) || known.is_some_and(|held| held.1);
                self.attempts.insert(*print, HeldAttempt(leaves, is_told));
            }
        }
    }
}
