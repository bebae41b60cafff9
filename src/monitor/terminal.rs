//! The one terminal log event of a canary. It holds identifiers, states, classes and durations, and has no place for more.

use super::stages::stages;
use crate::{
    catalog::labels::Stage,
    domain::{
        canary::{Canary, CanaryKind, Judgement},
        disclosure,
        following::Stopped,
        outcome::Outcome,
        route::{CanaryId, Channel, Location, RouteName},
        verdict::{Class, Verdict},
    },
};
use chrono::{DateTime, SecondsFormat, Utc};
use std::fmt::Write;

/// The target of these events: what a filter or a collector names to keep them.
pub const TARGET: &str = "delivery_canary::canary";

/// Most ids that one list in a line shows. The record has them all.
const IDS_SHOWN: usize = 32;

/// Which judgement a line tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The first: the terminal event of the canary.
    Settled,
    /// A later one, by evidence that came after.
    Corrected,
}

impl Occasion {
    /// The value of the field `event`.
    pub const fn event(self) -> &'static str {
        match self {
            Self::Settled => "canary_settled",
            Self::Corrected => "canary_corrected",
        }
    }
}

/// All that a terminal event says. docs/logs.md says what each field is.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalLine {
    /// Which judgement it tells of.
    pub occasion: Occasion,
    /// The canary.
    pub canary_id: CanaryId,
    /// Why it was sent.
    pub kind: CanaryKind,
    /// Its route.
    pub route: RouteName,
    /// The route's channel.
    pub channel: Channel,
    /// Where it was sent from.
    pub location: Location,
    /// The instant it belongs to.
    pub slot: DateTime<Utc>,
    /// Every id under which the service or its ledger has it.
    pub notification_ids: Vec<String>,
    /// The ledger's ids of its attempts.
    pub attempt_ids: Vec<String>,
    /// The class of its newest attempt, where the ledger has one.
    pub outcome: Option<Outcome>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict's class on this route.
    pub class: Class,
    /// Where it stopped, if it failed.
    pub stopped_at: Option<Stopped>,
    /// The stages that it went through, in whole milliseconds; negative where two clocks disagree.
    pub stages_ms: Vec<(Stage, i64)>,
    /// The correlation value that went out with it.
    pub traceparent: String,
    /// The policy version of its newest attempt, where the ledger has one.
    pub policy_version: Option<String>,
}

impl TerminalLine {
    /// The line for a judgement on this canary.
    pub fn new(
        canary: &Canary,
        channel: Channel,
        judgement: &Judgement,
        stopped_at: Option<Stopped>,
        occasion: Occasion,
    ) -> Self {
        let plan = &canary.plan;
        let attempts = canary.ledger.row.iter().flat_map(|(_, row)| &row.attempts);
        let newest = attempts.clone().max_by_key(|attempt| attempt.at);
        Self {
            occasion,
            canary_id: plan.canary_id,
            kind: plan.kind,
            route: plan.route.clone(),
            channel,
            location: plan.location.clone(),
            slot: plan.slot,
            notification_ids: canary.notification_ids().into_iter().map(ToString::to_string).collect(),
            attempt_ids: attempts.map(|attempt| attempt.attempt_id.clone()).collect(),
            outcome: newest.map(|attempt| attempt.outcome),
            verdict: judgement.verdict,
            class: judgement.class,
            stopped_at,
            stages_ms: stages(canary).into_iter().map(|(s, d)| (s, d.num_milliseconds())).collect(),
            traceparent: plan.traceparent.clone(),
            policy_version: newest.and_then(|attempt| attempt.policy_version.clone()),
        }
    }

    fn stage_ms(&self, wanted: Stage) -> Option<i64> {
        self.stages_ms.iter().find(|(stage, _)| *stage == wanted).map(|(_, ms)| *ms)
    }

    /// Writes the event. A field whose value isn't known is left out.
    pub fn emit(&self) {
        tracing::info!(
            target: TARGET,
            event = self.occasion.event(),
            canary_id = %self.canary_id,
            kind = self.kind.word(),
            route = self.route.as_str(),
            channel = self.channel.word(),
            location = self.location.as_str(),
            slot = self.slot.to_rfc3339_opts(SecondsFormat::Millis, true),
            notification_ids = id_list(&self.notification_ids),
            attempt_ids = id_list(&self.attempt_ids),
            outcome = self.outcome.map(Outcome::word),
            verdict = self.verdict.word(),
            class = self.class.word(),
            stopped_at = self.stopped_at.map(Stopped::word),
            accept_ms = self.stage_ms(Stage::Accept),
            first_attempt_ms = self.stage_ms(Stage::FirstAttempt),
            ledger_delivered_ms = self.stage_ms(Stage::LedgerDelivered),
            receipt_ms = self.stage_ms(Stage::Receipt),
            traceparent = self.traceparent.as_str(),
            policy_version = self.policy_version.as_deref().map(escaped),
        );
    }
}

/// Ids joined by commas, those that look like recipients by their digest; nothing for none.
fn id_list(ids: &[String]) -> Option<String> {
    let mut list =
        ids.iter().take(IDS_SHOWN).map(|id| escaped(&disclosure::shown(id))).collect::<Vec<_>>().join(",");
    if let Some(more) = ids.len().checked_sub(IDS_SHOWN).filter(|more| *more > 0) {
        // Writing to a string can't fail.
        let _ = write!(list, ",+{more}");
    }
    (!list.is_empty()).then_some(list)
}

/// Foreign text in a line: at most 128 characters, and percent-encoded wherever it could be taken for something else.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars().take(128) {
        if character.is_ascii_alphanumeric() || "-_.:/".contains(character) {
            safe.push(character);
        } else {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string can't fail.
                let _ = write!(safe, "%{byte:02X}");
            }
        }
    }
    safe
}
