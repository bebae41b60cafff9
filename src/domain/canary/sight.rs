//! What our own sight lets a canary's sink and acceptance say.

use super::Canary;
use crate::domain::{
    evidence::{RefusalReason, SinkTimes},
    verdict::{AcceptanceState, ExpectedEnd, SinkState},
};

impl Canary {
    /// The times by which its sink is judged.
    pub fn sink_times(&self) -> SinkTimes {
        let from = self.acceptance.submissions.first().map_or(self.plan.planned_at, |s| s.started_at);
        SinkTimes { from, deadline: self.deadline(), settles_at: self.settles_at() }
    }

    /// The state of the sink's view.
    pub fn sink_state(&self) -> SinkState {
        match self.sink.state(&self.sink_times()) {
            // On a route where each arrival is bad, it does not matter when it came.
            SinkState::Unclear
                if self.plan.expected_end != ExpectedEnd::Delivered && self.sink.intact_at().is_some() =>
            {
                SinkState::IntactLate
            }
            state => state,
        }
    }

    /// Whether no more is known than that no connection came to be, and nothing proves that our own network worked meanwhile. A
    /// message to ourselves that arrived since the first submission would. Where the route has no receiver of ours nothing can,
    /// and nothing is asked.
    pub fn is_cut_off(&self) -> bool {
        let times = self.sink_times();
        self.plan.has_sink
            && self.acceptance.state() == AcceptanceState::Refused
            && self.acceptance.refusal_is_only(RefusalReason::Unreachable)
            && self.sink.proofs.range(times.from..=times.settles_at).next().is_none()
    }

    /// The state of the acceptance API's view. What was cut off from it has no answer of it.
    pub fn acceptance_state(&self) -> AcceptanceState {
        if self.is_cut_off() { AcceptanceState::Unobserved } else { self.acceptance.state() }
    }

    /// Whether a message to ourselves may yet show more of it before its settlement: whether it was late, or refused.
    pub fn awaits_proof(&self) -> bool {
        self.is_cut_off() || (self.sink_state() == SinkState::Unclear && self.sink.intact_at().is_some())
    }
}
