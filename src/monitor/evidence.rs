//! Failure evidence of every route, folded from settled canaries in the order (slot, id).
//!
//! What settles in order is added; what settles out of order, or is corrected, refolds its route from a checkpoint
//! that lies before everything that can still be corrected.

use crate::{
    domain::{
        failure_evidence::{Question, Stream, Weights},
        following::Stopped,
        route::{CanaryId, RouteName},
        verdict::ExpectedEnd,
    },
    store::Settled,
};
use chrono::{DateTime, Utc};
use std::collections::HashMap;

/// A canary's place in the order of evidence.
type Place = (DateTime<Utc>, CanaryId);

/// The evidence on one route, at one place of observation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Does it arrive?
    pub arrives: Stream,
    /// Does it arrive in time?
    pub in_time: Stream,
    /// Where the newest failure stopped.
    pub stopped: Option<Stopped>,
    last: Option<Place>,
}

impl Evidence {
    /// Takes the next settled canary.
    fn observe(&mut self, weights: &Weights, expected: ExpectedEnd, settled: &Settled) {
        for (question, stream) in
            [(Question::Arrives, &mut self.arrives), (Question::InTime, &mut self.in_time)]
        {
            if let Some(failed) = question.vote(settled.verdict, expected) {
                stream.observe(weights, settled.slot, failed);
                if failed {
                    self.stopped = settled.stopped;
                }
            }
        }
        self.last = Some((settled.slot, settled.canary_id));
    }

    /// Whether either sum is above zero: there is a question to settle.
    pub fn is_open(&self) -> bool {
        self.arrives.value > 0.0 || self.in_time.value > 0.0
    }
}

/// A route's rules and evidence.
#[derive(Clone, Debug)]
struct Entry {
    weights: Weights,
    expected: ExpectedEnd,
    checkpoint: Evidence,
    current: Evidence,
}

/// The evidence of all configured routes.
#[derive(Debug, Default)]
pub struct Book {
    routes: HashMap<RouteName, Entry>,
}

impl Book {
    /// Sets a route's rules. With other rules than before it has to be refolded from the beginning: `true` says so.
    pub fn set_rules(&mut self, route: &RouteName, weights: Weights, expected: ExpectedEnd) -> bool {
        let is_same = |e: &Entry| e.weights == weights && e.expected == expected;
        if self.routes.get(route).is_some_and(is_same) {
            return false;
        }
        let fresh = Evidence::default();
        self.routes.insert(route.clone(), Entry { weights, expected, checkpoint: fresh, current: fresh });
        true
    }

    /// Forgets routes that are configured no more.
    pub fn retain(&mut self, is_configured: impl Fn(&RouteName) -> bool) {
        self.routes.retain(|route, _| is_configured(route));
    }

    /// The evidence on a route.
    pub fn get(&self, route: &RouteName) -> Evidence {
        self.routes.get(route).map(|e| e.current).unwrap_or_default()
    }

    /// The routes with a question to settle.
    pub fn open_routes(&self) -> Vec<RouteName> {
        let open = self.routes.iter().filter(|(_, entry)| entry.current.is_open());
        open.map(|(route, _)| route.clone()).collect()
    }

    /// Takes a canary that settled. Where it is not next in the order, answers from which slot on the route has to
    /// be refolded, and by `None` inside, that it has to be from the beginning.
    pub fn take(&mut self, settled: &Settled) -> Option<Option<DateTime<Utc>>> {
        let entry = self.routes.get_mut(&settled.route)?;
        let place = (settled.slot, settled.canary_id);
        if entry.current.last.is_none_or(|last| last < place) {
            entry.current.observe(&entry.weights, entry.expected, settled);
            return None;
        }
        match entry.checkpoint.last {
            Some(checkpoint) if checkpoint < place => Some(Some(checkpoint.0)),
            _ => Some(None),
        }
    }

    /// Refolds a route from its settled canaries, in order. With `from_checkpoint` those at or before the checkpoint are skipped.
    /// The new checkpoint is the state before `stable`: nothing older can still be corrected.
    pub fn refold(
        &mut self,
        route: &RouteName,
        settled: &[Settled],
        from_checkpoint: bool,
        stable: DateTime<Utc>,
    ) {
        let Some(entry) = self.routes.get_mut(route) else { return };
        let mut state = if from_checkpoint { entry.checkpoint } else { Evidence::default() };
        let start = state.last;
        let mut checkpoint = state;
        for one in settled.iter().filter(|s| start.is_none_or(|last| (s.slot, s.canary_id) > last)) {
            state.observe(&entry.weights, entry.expected, one);
            if one.slot < stable {
                checkpoint = state;
            }
        }
        entry.current = state;
        entry.checkpoint = checkpoint;
    }
}
