//! What the log says when the evidence on a route turns: rises above zero, reaches its bound, falls below it, is zero again. A line a turn,
//! however many canaries fail in between.

use super::evidence::Evidence;
use crate::domain::{
    failure_evidence::{Question, Stream, Weights},
    following::Stopped,
    route::{Location, RouteName},
};
use chrono::SecondsFormat;
use std::collections::BTreeMap;

/// How much speaks against a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    Clear,
    /// Something, and less than a page needs.
    InQuestion,
    /// As much as a page needs.
    Failing,
}

impl Level {
    fn of(stream: &Stream, weights: &Weights) -> Self {
        match stream.value {
            _ if stream.is_sustained(weights) => Self::Failing,
            value if value > 0.0 => Self::InQuestion,
            _ => Self::Clear,
        }
    }
}

/// The question on which most speaks against a route, that on arrival before that on time, and how much does.
fn worst(evidence: &Evidence, weights: &Weights) -> (Question, Stream, Level) {
    let (arrives, in_time) = (Level::of(&evidence.arrives, weights), Level::of(&evidence.in_time, weights));
    if arrives >= in_time {
        (Question::Arrives, evidence.arrives, arrives)
    } else {
        (Question::InTime, evidence.in_time, in_time)
    }
}

/// What was last told of each route. In the beginning nothing speaks against any.
#[derive(Debug, Default)]
pub struct Turns(BTreeMap<RouteName, Level>);

impl Turns {
    /// Forgets routes that are configured no more.
    pub fn retain(&mut self, is_configured: impl Fn(&RouteName) -> bool) {
        self.0.retain(|route, _| is_configured(route));
    }

    /// Tells of a route, if it turned since it was last told of.
    pub fn look(&mut self, route: &RouteName, location: &Location, evidence: &Evidence, weights: &Weights) {
        let (question, stream, level) = worst(evidence, weights);
        let before = self.0.insert(route.clone(), level).unwrap_or_default();
        if level == before {
            return;
        }
        let (route, location, question) = (route.as_str(), location.as_str(), question.word());
        let (value, bound) = ((stream.value * 100.0).round() / 100.0, weights.bound);
        let since = stream.failing_since.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true));
        let failures = stream.consecutive;
        let stopped_at = evidence.stopped.map(Stopped::word);
        match (before, level) {
            (_, Level::Failing) => tracing::warn!(
                event = "delivery_failing",
                route,
                location,
                question,
                evidence = value,
                bound,
                since,
                failures,
                stopped_at,
                "canaries of this route have failed for as long as a page needs"
            ),
            (_, Level::Clear) => {
                tracing::info!(
                    event = "delivery_recovered",
                    route,
                    location,
                    "nothing speaks against this route any more"
                );
            }
            // A process that begins while the evidence comes down has seen nothing fail.
            (_, Level::InQuestion) if before == Level::Failing || failures == 0 => tracing::info!(
                event = "delivery_recovering",
                route,
                location,
                question,
                evidence = value,
                bound,
                "canaries of this route arrive again: what speaks against it is less than a page needs"
            ),
            (_, Level::InQuestion) => tracing::warn!(
                event = "delivery_in_question",
                route,
                location,
                question,
                evidence = value,
                bound,
                since,
                failures,
                stopped_at,
                "a canary of this route failed: a page is due once the evidence is at its bound"
            ),
        }
    }
}
