//! The followers of the ledgers: one replica follows each ledger, the others stand by. Each ledger has its own pace: one that is slow keeps
//! no other one waiting.

mod accepted;
mod audit;
mod behind;
mod beyond;
mod books;
mod elsewhere;
mod error;
mod keep;
mod led;
mod pass;
mod report;
mod residue;
mod stream;

pub use accepted::{AcceptedError, accepted_by_day};
pub use audit::{Audit, AuditError, Audited, Recent};
pub use behind::{Behind, Looked};
pub use beyond::Beyond;
pub use books::{Asked, Books, BooksError, Interval, RouteBooks, RouteUnits, reconcile};
pub use error::PassError;
pub use pass::{Following, LedgerToFollow, Passed};
pub use report::{FlowNumbers, FlowReport, RouteFlow};
pub use residue::Unbalanced;

use super::{adapters::LedgerAdapter, shared::Shared};
use crate::{catalog::labels::LoopName, clock, ledger::FlowReader};
use led::{ASK_EVERY, Follower, LIMIT, forget};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// Runs until it is cancelled, and then gives up what it leads.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut followers = Followers::default();
    while !cancel.is_cancelled() {
        followers.configure(&shared);
        followers.start_due(&shared);
        let rest = followers.rest();
        tokio::select! {
            () = cancel.cancelled() => break,
            Some(done) = followers.steps.join_next_with_id() => followers.ended(done),
            () = tokio::time::sleep(rest) => {}
        }
        if followers.all_move() {
            shared.loops.ended(LoopName::LedgerFollower, followers.failing.is_empty(), clock::now());
        }
    }
    // Whatever is under way is dropped: what was written before it is good.
    followers.steps.shutdown().await;
    for name in shared.active.load().adapters.ledgers.keys() {
        // Where it can't be said, another takes over when the lease ends.
        let _ = shared.store.step_down(name, &shared.owner).await;
    }
}

/// The followers of this process: each rests, or makes a step.
#[derive(Default)]
struct Followers {
    resting: BTreeMap<String, Follower>,
    steps: JoinSet<(Follower, bool)>,
    /// Whose step each is, and since when.
    stepping: HashMap<Id, (String, Instant)>,
    /// Those whose last step failed.
    failing: BTreeSet<String>,
}

impl Followers {
    /// Keeps a follower for each ledger that is to be followed. A reader of another configuration may number its routes otherwise, so the
    /// state is then loaded anew, by their names.
    fn configure(&mut self, shared: &Shared) {
        let active = shared.active.load_full();
        let reader = |(name, adapter): (&String, &LedgerAdapter)| Some((name.clone(), adapter.flow.clone()?));
        let readers: BTreeMap<String, Arc<dyn FlowReader>> =
            active.adapters.ledgers.iter().filter_map(reader).collect();
        self.resting.retain(|name, known| readers.get(name).is_some_and(|reader| known.reads_by(reader)));
        self.failing.retain(|name| readers.contains_key(name));
        shared.keep_flows(|name| readers.contains_key(name));
        let not_followed = active.adapters.ledgers.keys().filter(|name| !readers.contains_key(*name));
        not_followed.for_each(|name| forget(shared, name));
        for (name, reader) in readers {
            if !self.stepping.values().any(|(stepping, _)| *stepping == name) {
                self.resting.entry(name.clone()).or_insert_with(|| Follower::new(name, reader));
            }
        }
    }

    /// Starts the steps that are due.
    fn start_due(&mut self, shared: &Arc<Shared>) {
        let now = Instant::now();
        for (name, mut follower) in self.resting.extract_if(.., |_, follower| follower.due() <= now) {
            let shared = Arc::clone(shared);
            let step = self.steps.spawn(async move {
                let is_good = follower.step(&shared).await;
                (follower, is_good)
            });
            self.stepping.insert(step.id(), (name, now));
        }
    }

    /// How long there is nothing to be started.
    fn rest(&self) -> Duration {
        let soonest = self.resting.values().map(Follower::due).min();
        soonest.map_or(ASK_EVERY, |at| at.saturating_duration_since(Instant::now()).min(ASK_EVERY))
    }

    /// Takes a follower back after its step. After a panic it is made anew, from what was kept.
    fn ended(&mut self, done: Result<(Id, (Follower, bool)), JoinError>) {
        let (id, follower) = match done {
            Ok((id, ended)) => (id, Some(ended)),
            Err(error) => (error.id(), None),
        };
        let Some((name, _)) = self.stepping.remove(&id) else { return };
        if follower.as_ref().is_some_and(|(_, is_good)| *is_good) {
            self.failing.remove(&name);
        } else {
            self.failing.insert(name.clone());
        }
        if let Some((follower, _)) = follower {
            self.resting.insert(name, follower);
        }
    }

    /// Whether no step takes longer than its limit allows: it then stands still.
    fn all_move(&self) -> bool {
        self.stepping.values().all(|(_, since)| since.elapsed() <= LIMIT + ASK_EVERY)
    }
}
