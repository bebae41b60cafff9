//! Contradictions between the three views: findings of their own, whatever the verdict is.

use super::{
    audit::compare::{Change, Seen, after_terminal},
    canary::{Canary, CanaryKind},
    evidence::{ArrivalRefusal, LedgerRow},
    flow::rows::Standing,
    outcome::{Cause, Outcome},
    pending::Tried,
    verdict::{AcceptanceState, LedgerState, SinkState},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How the views contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disagreement {
    /// The ledger says delivered, and the sink, which could have seen it, did not.
    DeliveredWithoutReceipt,
    /// It arrived, and the ledger never says delivered.
    ReceiptWithoutDelivered,
    /// The API accepted it, and the ledger has no row of it.
    AcceptedWithoutLedgerRow,
    /// The API refused it, and the ledger has a row of it.
    LedgerRowWithoutAcceptance,
    /// It arrived more often than the ledger has attempts.
    MoreReceiptsThanAttempts,
    /// It arrived more than once.
    DuplicateReceipt,
    /// One key had more than one notification.
    SecondEffectForOneKey,
    /// The outcome of an attempt was changed away from a terminal one.
    OutcomeRewritten,
    /// An attempt that was there is gone.
    AttemptVanished,
    /// There was an attempt after a terminal one.
    AttemptAfterTerminal,
    /// The sink should carry the correlation value and does not.
    CorrelationLost,
    /// An attempt has no policy version where the ledger has a column for it.
    PolicyVersionMissing,
}

impl Disagreement {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::DeliveredWithoutReceipt,
        Self::ReceiptWithoutDelivered,
        Self::AcceptedWithoutLedgerRow,
        Self::LedgerRowWithoutAcceptance,
        Self::MoreReceiptsThanAttempts,
        Self::DuplicateReceipt,
        Self::SecondEffectForOneKey,
        Self::OutcomeRewritten,
        Self::AttemptVanished,
        Self::AttemptAfterTerminal,
        Self::CorrelationLost,
        Self::PolicyVersionMissing,
    ];

    /// The word for it in labels, logs and the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::DeliveredWithoutReceipt => "delivered_without_receipt",
            Self::ReceiptWithoutDelivered => "receipt_without_delivered",
            Self::AcceptedWithoutLedgerRow => "accepted_without_ledger_row",
            Self::LedgerRowWithoutAcceptance => "ledger_row_without_acceptance",
            Self::MoreReceiptsThanAttempts => "more_receipts_than_attempts",
            Self::DuplicateReceipt => "duplicate_receipt",
            Self::SecondEffectForOneKey => "second_effect_for_one_key",
            Self::OutcomeRewritten => "outcome_rewritten",
            Self::AttemptVanished => "attempt_vanished",
            Self::AttemptAfterTerminal => "attempt_after_terminal",
            Self::CorrelationLost => "correlation_lost",
            Self::PolicyVersionMissing => "policy_version_missing",
        }
    }

    /// The kind of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.word() == word)
    }
}

/// Every contradiction that is proven at `now`. What a view has not had time to show is no contradiction.
pub fn disagreements(canary: &Canary, now: DateTime<Utc>) -> BTreeSet<Disagreement> {
    use Disagreement as D;
    let views = canary.views(now);
    let settled = now >= canary.settles_at();
    let arrived = canary.sink.intact_at();
    let row = canary.ledger.row.as_ref();
    // A reading taken at least the overlap after the arrival shows every attempt that was made for it.
    let ledger_caught_up =
        |since: DateTime<Utc>| row.is_some_and(|(as_of, _)| *as_of >= since + canary.plan.ledger_overlap);
    let past_service = canary.plan.kind.is_control();
    let mut found = BTreeSet::new();
    let mut note = |holds: bool, kind: D| {
        if holds {
            found.insert(kind);
        }
    };
    note(
        settled && views.ledger == LedgerState::Delivered && views.sink == SinkState::Nothing,
        D::DeliveredWithoutReceipt,
    );
    note(
        arrived.is_some_and(ledger_caught_up) && views.ledger != LedgerState::Delivered && !past_service,
        D::ReceiptWithoutDelivered,
    );
    note(
        !past_service && views.acceptance == AcceptanceState::Accepted && views.ledger == LedgerState::NoRow,
        D::AcceptedWithoutLedgerRow,
    );
    note(views.acceptance == AcceptanceState::Refused && row.is_some(), D::LedgerRowWithoutAcceptance);
    let attempts = row.map_or(0, |(_, row)| row.attempts.len());
    let last_receipt = canary.sink.receipts.last().map(|r| r.at);
    // What we turn away for want of the store may have been written all the same, and is sent again because we said so.
    let receipts = if canary.sink.was_refused(ArrivalRefusal::Unavailable) {
        canary.sink.receipts.len().min(1)
    } else {
        canary.sink.receipts.len()
    };
    note(last_receipt.is_some_and(ledger_caught_up) && receipts > attempts, D::MoreReceiptsThanAttempts);
    note(receipts > 1, D::DuplicateReceipt);
    note(canary.notification_ids().len() > 1, D::SecondEffectForOneKey);
    note(canary.plan.kind == CanaryKind::Replay && canary.sink.distinct() > 1, D::SecondEffectForOneKey);
    note(canary.ledger.was_rewritten(), D::OutcomeRewritten);
    note(canary.ledger.has_vanished(), D::AttemptVanished);
    note(canary.sink.receipts.iter().any(|r| r.correlated == Some(false)), D::CorrelationLost);
    if let Some((_, row)) = row {
        note(has_attempt_after_terminal(row), D::AttemptAfterTerminal);
        let unversioned = |a: &super::evidence::AttemptFact| {
            a.policy_version.is_none() && matches!(a.outcome, Outcome::Suppressed | Outcome::Delivered)
        };
        note(row.has_policy_version && row.attempts.iter().any(unversioned), D::PolicyVersionMissing);
    }
    found
}

/// Whether an attempt came after a terminal one. A late bounce is none.
fn has_attempt_after_terminal(row: &LedgerRow) -> bool {
    let leaves = |outcome| match outcome {
        Outcome::Delivered => Standing::Delivered,
        // Whose matter it is is known of the newest one.
        Outcome::PermanentRejection if row.cause == Some(Cause::Recipient) => Standing::RejectedRecipient,
        Outcome::PermanentRejection => Standing::RejectedService,
        Outcome::Suppressed => Standing::Suppressed,
        Outcome::Retryable => Standing::Pending(Tried::WillRetry),
        Outcome::Unknown => Standing::Pending(Tried::OutcomeUnknown),
    };
    let seen =
        row.attempts.iter().map(|a| Seen { destination: 0, at: a.at, leaves: Some(leaves(a.outcome)) });
    let seen: BTreeMap<u64, Seen> = (0..).zip(seen).collect();
    after_terminal(&seen).iter().any(|found| found.change == Change::AttemptAfterTerminal)
}
