//! Failure evidence of every route, folded from settled canaries in the order (slot, id).
//!
//! What settles in order is added; what settles out of order, or is corrected, refolds its route from a checkpoint
//! that lies before everything that can still be corrected. A route with new weights is refolded from its beginning, and
//! shows the evidence by its old ones until then.

use crate::{
    domain::{
        failure_evidence::{Question, Stream, Weights},
        following::Stopped,
        route::{CanaryId, RouteName},
        verdict::Verdict,
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
    /// The canaries in a row, up to the newest, that say nothing.
    pub unmeasured: Option<Unmeasured>,
    last: Option<Place>,
}

/// Canaries in a row that are neither a success nor a failure: what the evidence says is from before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmeasured {
    /// The slot of the first of them.
    pub since: DateTime<Utc>,
    /// What the newest of them came to.
    pub verdict: Verdict,
    /// How many they are.
    pub canaries: u32,
}

/// So many canaries in a row that say nothing are told. One or two may be blinded by a process that begins anew, and the next may come after a
/// night without slots.
pub const SILENT_FROM: u32 = 3;

impl Evidence {
    /// Takes the next settled canary.
    ///
    /// Judged by the end that was expected of it: what was good by an older configuration is no failure by a newer one.
    fn observe(&mut self, weights: &Weights, settled: &Settled) {
        let mut says_nothing = true;
        for (question, stream) in
            [(Question::Arrives, &mut self.arrives), (Question::InTime, &mut self.in_time)]
        {
            if let Some(failed) = question.vote(settled.verdict, settled.expected) {
                says_nothing = false;
                stream.observe(weights, settled.slot, failed);
                if failed {
                    self.stopped = settled.stopped;
                }
            }
        }
        self.unmeasured = says_nothing.then(|| {
            let (since, before) = self
                .unmeasured
                .map_or((settled.slot, 0), |unmeasured| (unmeasured.since, unmeasured.canaries));
            Unmeasured { since, verdict: settled.verdict, canaries: before.saturating_add(1) }
        });
        self.last = Some((settled.slot, settled.canary_id));
    }

    /// Whether either sum is above zero: there is a question to settle.
    pub fn is_open(&self) -> bool {
        self.arrives.value > 0.0 || self.in_time.value > 0.0
    }
}

/// What a fold of a route from its beginning came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refolded {
    /// The weights by which it was folded before; nothing: it was not.
    pub old: Option<Weights>,
    /// The weights in force.
    pub new: Weights,
    /// How many canaries were folded.
    pub canaries: usize,
    /// The slot of the first of them.
    pub from: Option<DateTime<Utc>>,
    /// The evidence before.
    pub before: Evidence,
    /// The evidence now.
    pub now: Evidence,
}

/// A route's weights and evidence.
#[derive(Clone, Debug)]
struct Entry {
    weights: Weights,
    /// The weights of `current`, where they are not those in force.
    folded_by: Option<Weights>,
    /// Whether all of it has to be folded, by the weights in force.
    is_due: bool,
    checkpoint: Evidence,
    current: Evidence,
}

/// The evidence of all configured routes.
#[derive(Debug, Default)]
pub struct Book {
    routes: HashMap<RouteName, Entry>,
}

impl Book {
    /// Sets a route's weights. With other weights than before it is due to be folded from its beginning.
    pub fn set_weights(&mut self, route: &RouteName, weights: Weights) {
        let Some(entry) = self.routes.get_mut(route) else {
            let fresh = Evidence::default();
            let entry = Entry { weights, folded_by: None, is_due: true, checkpoint: fresh, current: fresh };
            self.routes.insert(route.clone(), entry);
            return;
        };
        if entry.weights == weights {
            return;
        }
        if !entry.is_due {
            entry.folded_by = Some(entry.weights);
        }
        entry.weights = weights;
        entry.is_due = true;
    }

    /// Forgets routes that are configured no more.
    pub fn retain(&mut self, is_configured: impl Fn(&RouteName) -> bool) {
        self.routes.retain(|route, _| is_configured(route));
    }

    /// The evidence on a route.
    pub fn get(&self, route: &RouteName) -> Evidence {
        self.routes.get(route).map(|e| e.current).unwrap_or_default()
    }

    /// Whether what is said of a route was folded from its history. Until then nothing is known of it.
    pub fn is_folded(&self, route: &RouteName) -> bool {
        self.routes.get(route).is_some_and(|entry| entry.folded_by.is_some() || !entry.is_due)
    }

    /// The routes with a question to settle.
    pub fn open_routes(&self) -> Vec<RouteName> {
        let open = self.routes.iter().filter(|(_, entry)| entry.current.is_open());
        open.map(|(route, _)| route.clone()).collect()
    }

    /// The routes that have to be folded from their beginning.
    pub fn due(&self) -> Vec<RouteName> {
        self.routes.iter().filter(|(_, entry)| entry.is_due).map(|(route, _)| route.clone()).collect()
    }

    /// Takes a canary that settled. Where it is not next in the order, answers from which slot on the route has to
    /// be refolded, and by `None` inside, that it has to be from the beginning.
    pub fn take(&mut self, settled: &Settled) -> Option<Option<DateTime<Utc>>> {
        let entry = self.routes.get_mut(&settled.route)?;
        if entry.is_due {
            return Some(None);
        }
        let place = (settled.slot, settled.canary_id);
        if entry.current.last.is_none_or(|last| last < place) {
            entry.current.observe(&entry.weights, settled);
            return None;
        }
        match entry.checkpoint.last {
            Some(checkpoint) if checkpoint < place => Some(Some(checkpoint.0)),
            _ => Some(None),
        }
    }

    /// Refolds a route from its settled canaries, in order. With `from_checkpoint` those at or before the checkpoint are skipped; a
    /// route that is due has to be folded without, and only then there is something to tell.
    /// The new checkpoint is the state before `stable`: nothing older can still be corrected.
    pub fn refold(
        &mut self,
        route: &RouteName,
        settled: &[Settled],
        from_checkpoint: bool,
        stable: DateTime<Utc>,
    ) -> Option<Refolded> {
        let entry = self.routes.get_mut(route)?;
        if from_checkpoint && entry.is_due {
            return None;
        }
        let mut state = if from_checkpoint { entry.checkpoint } else { Evidence::default() };
        let start = state.last;
        let mut checkpoint = state;
        let mut canaries = 0;
        for one in settled.iter().filter(|s| start.is_none_or(|last| (s.slot, s.canary_id) > last)) {
            state.observe(&entry.weights, one);
            canaries += 1;
            if one.slot < stable {
                checkpoint = state;
            }
        }
        let refolded = entry.is_due.then(|| Refolded {
            old: entry.folded_by,
            new: entry.weights,
            canaries,
            from: settled.first().map(|one| one.slot),
            before: entry.current,
            now: state,
        });
        entry.is_due = false;
        entry.folded_by = None;
        entry.current = state;
        entry.checkpoint = checkpoint;
        refolded
    }
}
