//! How long each stage of a canary's way took, as far as the views show it.

use crate::{
    catalog::labels::Stage,
    domain::{
        canary::Canary,
        evidence::{AmbiguityReason, Submission, SubmissionResult},
        outcome::Outcome,
    },
};
use chrono::{DateTime, TimeDelta, Utc};

/// The stages that a canary went through, with their durations. A negative one comes of clocks that disagree.
pub fn stages(canary: &Canary) -> Vec<(Stage, TimeDelta)> {
    // When a process that is gone submitted it nobody knows, and so not how long anything took.
    let is_known = |s: &&Submission| {
        !matches!(s.result, SubmissionResult::Ambiguous { reason: AmbiguityReason::TakenOver })
    };
    let submitted = canary.acceptance.submissions.first().filter(is_known).map(|s| s.started_at);
    let accepted = canary.acceptance.accepted().map(|s| s.ended_at);
    let attempts = canary.ledger.row.iter().flat_map(|(_, row)| &row.attempts);
    let first_attempt = attempts.clone().filter_map(|a| a.at).min();
    let delivered = attempts.filter(|a| a.outcome == Outcome::Delivered).filter_map(|a| a.at).min();
    let span = |from: Option<DateTime<Utc>>, to: Option<DateTime<Utc>>| Some(to? - from?);
    // All stages are counted from the first submission: a receipt may come before the acceptance's answer does, and a stage
    // counted from that answer would be negative without any clock being wrong.
    [
        (Stage::Accept, span(submitted, accepted)),
        (Stage::FirstAttempt, span(submitted, first_attempt)),
        (Stage::LedgerDelivered, span(submitted, delivered)),
        (Stage::Receipt, span(submitted, canary.sink.intact_at())),
    ]
    .into_iter()
    .filter_map(|(stage, duration)| Some((stage, duration?)))
    .collect()
}
