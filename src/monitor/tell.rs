//! What is told of a written decision: one terminal line for each canary, a line for each correction and contradiction.

use super::{
    shared::Shared,
    stages::stages,
    terminal::{Occasion, TerminalLine},
};
use crate::{
    domain::{
        canary::{Canary, Event, Judgement},
        following::stopped_at,
        verdict::Class,
    },
    store::{Decision, Stored},
};

/// Tells what a written decision says.
pub fn decided(shared: &Shared, stored: &Stored, decision: &Decision) {
    let mut canary = stored.canary.clone();
    decision.events.iter().for_each(|event| canary.apply(event));
    for event in &decision.events {
        match event {
            Event::Settled(judgement) => {
                if canary.plan.kind.is_evidence() && judgement.class == Class::Good {
                    // Only what went well is timed: a failure has no duration.
                    for (stage, duration) in stages(&canary) {
                        shared.counters.observe_stage(&canary.plan.route, stage, duration);
                    }
                }
                line(&canary, judgement, Occasion::Settled);
            }
            Event::Corrected(judgement) => line(&canary, judgement, Occasion::Corrected),
            Event::Disagreed { kind, .. } => tracing::warn!(
                event = "evidence_disagreement",
                canary_id = %canary.plan.canary_id,
                route = canary.plan.route.as_str(),
                location = canary.plan.location.as_str(),
                kind = kind.word(),
            ),
            _ => {}
        }
    }
}

fn line(canary: &Canary, judgement: &Judgement, occasion: Occasion) {
    // By the name: a route that is configured no more has canaries that end all the same.
    let Some(channel) = canary.plan.route.channel() else { return };
    let stopped = if judgement.class == Class::Good {
        None
    } else {
        stopped_at(canary, judgement.verdict, judgement.at)
    };
    TerminalLine::new(canary, channel, judgement, stopped, occasion).emit();
}
