//! From the three views of a canary to its verdict, and from the verdict to its class.
//!
//! The whole product of view states, with the verdict of each, is checked in as `tests/data/verdicts.tsv`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the acceptance API answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcceptanceState {
    /// Nothing is known of any submission.
    Unobserved,
    /// The request may have taken effect.
    Ambiguous,
    /// It was definitely refused, or no connection came to be.
    Refused,
    /// It was accepted.
    Accepted,
}

/// What the ledger shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LedgerState {
    /// It was not read, or the reading is too old to prove that something is absent.
    Unobserved,
    /// A fresh enough reading has no row.
    NoRow,
    /// A row without a terminal attempt.
    Pending,
    /// Delivered.
    Delivered,
    /// Permanently rejected.
    Rejected,
    /// Suppressed by policy.
    Suppressed,
}

/// What the sink received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SinkState {
    /// Nothing arrived, and whether it could have arrived is not proven.
    Unobserved,
    /// Nothing arrived, and it is proven that it could have, all through the time in which it should have.
    Nothing,
    /// It arrived whole by the deadline.
    IntactInTime,
    /// It arrived whole after the deadline, and it is proven that it could have arrived before.
    IntactLate,
    /// What arrived had wrong content.
    Malformed,
    /// It arrived, and our own trouble hides whether whole and in time.
    Unclear,
}

/// The three views of one canary at one moment, and whether following is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Views {
    /// What the acceptance API answered.
    pub acceptance: AcceptanceState,
    /// What the ledger shows.
    pub ledger: LedgerState,
    /// What the sink received.
    pub sink: SinkState,
    /// Whether `follow_for` has passed.
    pub following_over: bool,
}

/// What became of one canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Verdict {
    OnTime,
    Late,
    Overdue,
    Lost,
    Refused,
    Rejected,
    Suppressed,
    Malformed,
    Unknown,
    Undetermined,
}

/// The class of a verdict: which side of an SLI it is on, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Class {
    Good,
    Bad,
    Outside,
    Unknown,
}

/// The end that a route expects of its canaries.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedEnd {
    /// It arrives.
    #[default]
    Delivered,
    /// Policy keeps it back: an arrival is bad.
    Suppressed,
    /// It is permanently rejected: an arrival is bad.
    Rejected,
}

impl ExpectedEnd {
    /// The word for it in the configuration and in logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Suppressed => "suppressed",
            Self::Rejected => "rejected",
        }
    }
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 10] = [
        Self::OnTime,
        Self::Late,
        Self::Overdue,
        Self::Lost,
        Self::Refused,
        Self::Rejected,
        Self::Suppressed,
        Self::Malformed,
        Self::Unknown,
        Self::Undetermined,
    ];

    /// Those that are on neither side: policy kept it back, or nobody could look.
    pub const OUTSIDE: [Self; 2] = [Self::Suppressed, Self::Undetermined];

    /// The word for it in labels, logs and the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::OnTime => "on_time",
            Self::Late => "late",
            Self::Overdue => "overdue",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Suppressed => "suppressed",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Undetermined => "undetermined",
        }
    }

    /// The verdict of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.word() == word)
    }

    /// The class of this verdict on a route that expects this end.
    pub const fn class(self, expected: ExpectedEnd) -> Class {
        match (self, expected) {
            (Self::Unknown, _) => Class::Unknown,
            (Self::Undetermined, _) | (Self::Suppressed, ExpectedEnd::Delivered) => Class::Outside,
            (Self::OnTime, ExpectedEnd::Delivered)
            | (Self::Suppressed, ExpectedEnd::Suppressed)
            | (Self::Rejected, ExpectedEnd::Rejected) => Class::Good,
            // Policy on a route that expects a rejection: it isn't being measured.
            (Self::Suppressed, ExpectedEnd::Rejected) => Class::Outside,
            _ => Class::Bad,
        }
    }
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 4] = [Self::Good, Self::Bad, Self::Outside, Self::Unknown];

    /// The word for it in labels, logs and the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Outside => "outside",
            Self::Unknown => "unknown",
        }
    }

    /// The class of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.word() == word)
    }
}

/// The verdict on a canary whose settlement is due. The first line that matches decides, as in the contract's table.
pub const fn verdict(views: &Views) -> Verdict {
    use {AcceptanceState as A, LedgerState as L, SinkState as S};
    match views.sink {
        S::IntactInTime => return Verdict::OnTime,
        S::IntactLate => return Verdict::Late,
        S::Malformed => return Verdict::Malformed,
        S::Unclear => return Verdict::Undetermined,
        S::Unobserved | S::Nothing => {}
    }
    if matches!(views.acceptance, A::Refused) {
        return Verdict::Refused;
    }
    if matches!(views.sink, S::Unobserved) {
        return Verdict::Undetermined;
    }
    match (views.ledger, views.acceptance) {
        (L::Suppressed, _) => Verdict::Suppressed,
        (L::Rejected, _) => Verdict::Rejected,
        // It never left us, as far as anybody can tell: the fault is the monitor's, not the service's.
        (L::NoRow | L::Unobserved, A::Unobserved) => Verdict::Undetermined,
        (L::NoRow | L::Unobserved, A::Ambiguous) => Verdict::Unknown,
        _ if !views.following_over => Verdict::Overdue,
        (L::Delivered | L::NoRow, _) => Verdict::Lost,
        (L::Pending | L::Unobserved, _) => Verdict::Unknown,
    }
}
