//! The three views of one canary, as joins: what is known never depends on the order in which it came.

use super::{
    outcome::{Cause, Disposition, Outcome},
    route::NotificationId,
    verdict::{AcceptanceState, LedgerState, SinkState},
    watch::Way,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The result of one submission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum SubmissionResult {
    /// The service accepted it.
    Accepted {
        /// The id in the answer, where the API gives one.
        notification_id: Option<NotificationId>,
    },
    /// The service definitely did not take it.
    Refused {
        /// Why.
        reason: RefusalReason,
    },
    /// It may have taken effect.
    Ambiguous {
        /// Why nobody knows.
        reason: AmbiguityReason,
    },
}

/// Why a submission was definitely refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// By a status that means refused.
    Status,
    /// By an error inside an accepted status.
    ErrorInAnswer,
    /// No connection came to be: refused, no such host, TLS handshake failed, connect timeout.
    Unreachable,
    /// Our own guard stopped it before it left.
    Guard,
}

/// Why the fate of a submission isn't known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AmbiguityReason {
    /// No answer within the limit.
    Timeout,
    /// The connection broke after the request may have left.
    Broken,
    /// A status that is in no list.
    Status,
    /// A status that says: ask the ledger.
    AskLedger,
    /// An accepted status whose answer could not be read as configured.
    Answer,
    /// The process that was to submit it is gone, and did not write down what came of it.
    TakenOver,
}

/// One submission of a canary's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Submission {
    /// When the request was begun, on our clock.
    pub started_at: DateTime<Utc>,
    /// When its result was known, on our clock.
    pub ended_at: DateTime<Utc>,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// By which way its receipt comes to us; nothing where it has no receiver of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// The ledger, by its name, that its route had then; nothing where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// What came of it.
    #[serde(flatten)]
    pub result: SubmissionResult,
}

/// All submissions of one canary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptanceView {
    /// In the order of their start.
    pub submissions: BTreeSet<Submission>,
}

impl AcceptanceView {
    /// The state of the view. An ambiguous submission outweighs a refused one: it may have taken effect.
    /// What our own guard stopped never left, and is no answer of the service's.
    pub fn state(&self) -> AcceptanceState {
        let mut state = AcceptanceState::Unobserved;
        for submission in &self.submissions {
            match (&submission.result, state) {
                (SubmissionResult::Accepted { .. }, _) => return AcceptanceState::Accepted,
                (SubmissionResult::Ambiguous { .. }, _) => state = AcceptanceState::Ambiguous,
                (SubmissionResult::Refused { reason: RefusalReason::Guard }, _) => {}
                (SubmissionResult::Refused { .. }, AcceptanceState::Unobserved) => {
                    state = AcceptanceState::Refused
                }
                (SubmissionResult::Refused { .. }, _) => {}
            }
        }
        state
    }

    /// The first submission that was accepted.
    pub fn accepted(&self) -> Option<&Submission> {
        self.submissions.iter().find(|s| matches!(s.result, SubmissionResult::Accepted { .. }))
    }

    /// The ways by which a receipt may come: more than one where the public address was changed between two submissions.
    pub fn ways(&self) -> BTreeSet<Way> {
        self.submissions.iter().filter_map(|s| s.way).collect()
    }

    /// The ledgers in which a row of it may be: more than one where the route's was changed between two submissions.
    pub fn ledgers(&self) -> BTreeSet<&str> {
        self.submissions.iter().filter_map(|s| s.ledger.as_deref()).collect()
    }

    /// Every notification id that was answered. More than one is a second effect for one key.
    pub fn notification_ids(&self) -> BTreeSet<&NotificationId> {
        self.submissions
            .iter()
            .filter_map(|s| match &s.result {
                SubmissionResult::Accepted { notification_id } => notification_id.as_ref(),
                _ => None,
            })
            .collect()
    }

    /// Whether each refusal was for this reason, but for what our own guard stopped.
    pub fn refusal_is_only(&self, wanted: RefusalReason) -> bool {
        self.submissions.iter().all(|s| match s.result {
            SubmissionResult::Refused { reason } => reason == wanted || reason == RefusalReason::Guard,
            _ => true,
        })
    }

    /// Why the newest definite refusal was given.
    pub fn refusal(&self) -> Option<RefusalReason> {
        self.submissions.iter().rev().find_map(|s| match s.result {
            SubmissionResult::Refused { reason } => Some(reason),
            _ => None,
        })
    }
}

/// One attempt, as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptFact {
    /// The ledger's id of it.
    pub attempt_id: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// When it began, on the ledger's clock.
    pub at: Option<DateTime<Utc>>,
    /// The policy version under which it was routed or suppressed.
    pub policy_version: Option<String>,
}

/// A notification, as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Every notification id under the canary's id or key. More than one is a second effect.
    pub notification_ids: BTreeSet<NotificationId>,
    /// When it was accepted, on the ledger's clock.
    pub accepted_at: Option<DateTime<Utc>>,
    /// Where it stands.
    pub disposition: Disposition,
    /// Whose matter a permanent rejection is.
    pub cause: Option<Cause>,
    /// Its attempts.
    pub attempts: BTreeSet<AttemptFact>,
    /// Whether the ledger has a column for the policy version.
    pub has_policy_version: bool,
}

/// The times of the first and the last reading of something.
type FirstAndLast = (DateTime<Utc>, DateTime<Utc>);

/// All readings of the ledger for one canary, joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerView {
    /// The newest reading that had a row, with its time on the ledger's clock.
    pub row: Option<(DateTime<Utc>, LedgerRow)>,
    /// The newest reading that had none.
    pub absent_as_of: Option<DateTime<Utc>>,
    /// Every outcome that was read for each attempt, with the times of the first and the last reading that had it.
    outcomes: BTreeMap<String, BTreeMap<Outcome, FirstAndLast>>,
    /// Whether an attempt that one reading had was missing from a newer one.
    readings: BTreeMap<DateTime<Utc>, BTreeSet<String>>,
}

impl LedgerView {
    /// Joins a reading: a row, or its absence.
    pub fn join(&mut self, as_of: DateTime<Utc>, finding: Option<&LedgerRow>) {
        let Some(row) = finding else {
            self.absent_as_of = self.absent_as_of.max(Some(as_of));
            return;
        };
        for attempt in &row.attempts {
            let outcomes = self.outcomes.entry(attempt.attempt_id.clone()).or_default();
            let (first, last) = outcomes.entry(attempt.outcome).or_insert((as_of, as_of));
            (*first, *last) = ((*first).min(as_of), (*last).max(as_of));
        }
        let ids = row.attempts.iter().map(|a| a.attempt_id.clone());
        self.readings.entry(as_of).or_default().extend(ids);
        let candidate = (as_of, row.clone());
        if self.row.as_ref().is_none_or(|known| *known < candidate) {
            self.row = Some(candidate);
        }
    }

    /// The state of the view for a judgement that needs readings not older than `needed`.
    ///
    /// What was seen stands, however old. That nothing is there is known only from a fresh reading.
    pub fn state(&self, needed: DateTime<Utc>) -> LedgerState {
        match (&self.row, self.absent_as_of) {
            (Some((_, row)), _) => match row.disposition {
                Disposition::Delivered => LedgerState::Delivered,
                Disposition::PermanentlyRejected => LedgerState::Rejected,
                Disposition::Suppressed => LedgerState::Suppressed,
                Disposition::Pending => LedgerState::Pending,
            },
            (None, Some(as_of)) if as_of >= needed => LedgerState::NoRow,
            (None, _) => LedgerState::Unobserved,
        }
    }

    /// Whether an attempt that an older reading had is missing from a newer one, or the whole row is.
    pub fn has_vanished(&self) -> bool {
        let mut seen = BTreeSet::new();
        for ids in self.readings.values() {
            if !seen.is_subset(ids) {
                return true;
            }
            seen.clone_from(ids);
        }
        matches!((self.absent_as_of, &self.row), (Some(absent), Some((present, _))) if absent > *present)
    }

    /// Whether the outcome of an attempt changed in a way that history does not allow: away from a terminal one. A late bounce, delivered and
    /// then rejected because of the recipient, is allowed.
    pub fn was_rewritten(&self) -> bool {
        let may_bounce = self.row.as_ref().is_some_and(|(_, row)| row.cause == Some(Cause::Recipient));
        self.outcomes.values().any(|read| {
            let terminal = read.iter().filter(|(outcome, _)| outcome.is_terminal());
            terminal.into_iter().any(|(before, (first, _))| {
                let is_bounce = |after: &Outcome| {
                    may_bounce && (*before, *after) == (Outcome::Delivered, Outcome::PermanentRejection)
                };
                read.iter().any(|(after, (_, last))| {
                    let is_later = first < last || (first == last && after.is_terminal());
                    after != before && is_later && !is_bounce(after)
                })
            })
        })
    }
}

/// What the content of a receipt was found to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "content", rename_all = "snake_case")]
pub enum Content {
    /// All expectations hold.
    Intact,
    /// Some do not.
    Malformed {
        /// The names of those that do not, from the configuration.
        failed: BTreeSet<String>,
    },
}

/// One arrival at the sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Receipt {
    /// When it arrived, on the sink's clock.
    pub at: DateTime<Utc>,
    /// What its content was found to be.
    #[serde(flatten)]
    pub content: Content,
    /// SHA-256 of the body, in hexadecimal.
    pub digest: String,
    /// SHA-256 of the sender's own id of this message, in hexadecimal, where it sends one: a sender's repeat has the same.
    pub message: Option<String>,
    /// Whether the correlation value came along; nothing where the sink is not expected to carry it.
    pub correlated: Option<bool>,
    /// Distinguishes arrivals that are alike in all else.
    pub arrival_id: String,
}

/// Why we ourselves refused an arrival that carried the genuine token of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalRefusal {
    /// It could not be written down.
    Unavailable,
    /// Our receiver knew of no such route.
    WrongRoute,
    /// Its body was above our limit.
    TooLarge,
    /// Its sender did not prove itself, or could not be asked to. It is no receipt, and nothing follows from it but where to look.
    Unproven,
}

impl ArrivalRefusal {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Unavailable, Self::WrongRoute, Self::TooLarge, Self::Unproven];

    /// Whether it says more of us than of what arrived: what it brought is not known.
    pub const fn is_our_trouble(self) -> bool {
        matches!(self, Self::Unavailable | Self::WrongRoute)
    }
}

/// The times by which a sink is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkTimes {
    /// When the canary may first have arrived: its first submission.
    pub from: DateTime<Utc>,
    /// By when it must have arrived.
    pub deadline: DateTime<Utc>,
    /// When its verdict is due.
    pub settles_at: DateTime<Utc>,
}

/// All that the sink showed of one canary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkView {
    /// What arrived, by time.
    pub receipts: BTreeSet<Receipt>,
    /// What arrived and was refused by ourselves: when, and why.
    pub refused: BTreeSet<(DateTime<Utc>, ArrivalRefusal)>,
    /// When it was proven that something could arrive.
    pub proofs: BTreeSet<DateTime<Utc>>,
    /// Spans all through which it is proven that something could arrive, by their first and last instant.
    pub watched: BTreeSet<(DateTime<Utc>, DateTime<Utc>)>,
}

impl SinkView {
    /// When it first arrived whole.
    pub fn intact_at(&self) -> Option<DateTime<Utc>> {
        self.receipts.iter().find(|r| r.content == Content::Intact).map(|r| r.at)
    }

    /// The expectations that the first malformed arrival failed.
    pub fn failed_expectations(&self) -> Option<&BTreeSet<String>> {
        self.receipts.iter().find_map(|r| match &r.content {
            Content::Malformed { failed } => Some(failed),
            Content::Intact => None,
        })
    }

    /// When it first arrived and we could not take it, by no fault of its own.
    pub fn missed_at(&self) -> Option<DateTime<Utc>> {
        self.refused.iter().find(|(_, reason)| reason.is_our_trouble()).map(|(at, _)| *at)
    }

    /// Whether an arrival was ever refused for this.
    pub fn was_refused(&self, reason: ArrivalRefusal) -> bool {
        self.refused.iter().any(|(_, r)| *r == reason)
    }

    /// Whether something could have arrived all through the time in which it should have.
    pub fn is_watched(&self, times: &SinkTimes) -> bool {
        self.watched.iter().any(|(from, until)| *from <= times.from && times.deadline <= *until)
    }

    /// The state of the view. What is missing or late says something only where nothing of ours can have hidden an earlier arrival.
    pub fn state(&self, times: &SinkTimes) -> SinkState {
        let SinkTimes { deadline, settles_at, .. } = *times;
        let watched = self.is_watched(times);
        match (self.intact_at(), self.missed_at()) {
            (Some(at), _) if at <= deadline => SinkState::IntactInTime,
            (Some(_), missed) if !watched || missed.is_some_and(|at| at <= deadline) => SinkState::Unclear,
            (Some(_), _) => SinkState::IntactLate,
            (None, _) if !self.receipts.is_empty() => SinkState::Malformed,
            (None, Some(_)) => SinkState::Unclear,
            (None, None) if self.was_refused(ArrivalRefusal::TooLarge) => SinkState::Malformed,
            (None, None) if watched && self.proofs.range(deadline..=settles_at).next().is_some() => {
                SinkState::Nothing
            }
            (None, None) => SinkState::Unobserved,
        }
    }

    /// How many arrivals there were, a sender's repeats of one message counted once.
    pub fn distinct(&self) -> usize {
        let named: BTreeSet<_> = self.receipts.iter().filter_map(|r| r.message.as_ref()).collect();
        named.len() + self.receipts.iter().filter(|r| r.message.is_none()).count()
    }
}
