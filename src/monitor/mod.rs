//! The loops, and all that the outside may see of them.
//!
//! Each loop is idempotent and retries by its next activation; each wait has a limit. The store is the only memory
//! that matters: a process may be killed at any point, and the next one goes on.

pub mod active;
pub mod adapters;
pub mod agenda;
pub mod counters;
pub mod crash;
pub mod decide;
pub mod evidence;
pub mod evidence_loop;
pub mod flow;
pub mod follow;
pub mod follower;
mod handled;
pub mod janitor;
pub mod keeper;
pub mod ledger_watch;
pub mod loops;
pub mod planner;
pub mod presence;
pub mod progress;
pub mod prover;
pub mod publisher;
pub mod refused;
pub mod reloader;
pub mod scheduler;
pub mod shared;
pub mod sight;
pub mod snapshot;
pub mod stages;
pub mod steady;
pub mod store_watch;
pub mod submitter;
pub mod tell;
pub mod terminal;
pub mod turns;
pub mod unanswered;

use shared::Shared;
use std::{sync::Arc, time::Duration};
use submitter::Submissions;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The loops of a monitor that runs.
pub struct Monitor {
    shared: Arc<Shared>,
    submissions: Submissions,
    planning: CancellationToken,
    submitting: CancellationToken,
    following: CancellationToken,
    loops: TaskTracker,
}

impl Monitor {
    /// Starts all loops.
    pub fn start(shared: Arc<Shared>, source: Box<dyn reloader::Source>, asked: mpsc::Receiver<()>) -> Self {
        let (planning, submitting, following) =
            (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let submissions = Submissions::new(Arc::clone(&shared), submitting.clone());
        let loops = TaskTracker::new();
        let scheduler = scheduler::Scheduler::default();
        loops.spawn(scheduler.run(Arc::clone(&shared), submissions.clone(), planning.clone()));
        loops.spawn(submissions.clone().take_over(planning.clone()));
        loops.spawn(reloader::run(Arc::clone(&shared), source, asked, planning.clone()));
        loops.spawn(follower::run(Arc::clone(&shared), following.clone()));
        loops.spawn(evidence_loop::run(Arc::clone(&shared), following.clone()));
        loops.spawn(prover::run(Arc::clone(&shared), following.clone()));
        loops.spawn(ledger_watch::run(Arc::clone(&shared), following.clone()));
        loops.spawn(flow::run(Arc::clone(&shared), following.clone()));
        loops.spawn(store_watch::run(Arc::clone(&shared), following.clone()));
        loops.spawn(publisher::run(Arc::clone(&shared), following.clone()));
        loops.spawn(janitor::run(Arc::clone(&shared), following.clone()));
        loops.spawn(presence::run(Arc::clone(&shared), following.clone()));
        loops.close();
        Self { shared, submissions, planning, submitting, following, loops }
    }

    /// What the loops share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Stops within `grace`: no new slots at once; submissions under way get two thirds of it to be answered and written
    /// down; what is not is taken over by the next process under the same key.
    pub async fn stop(self, grace: Duration) {
        self.planning.cancel();
        if tokio::time::timeout(grace * 2 / 3, self.submissions.drained()).await.is_err() {
            tracing::warn!(event = "stopped_with_submissions_under_way");
        }
        self.submitting.cancel();
        self.following.cancel();
        if tokio::time::timeout(grace / 4, self.loops.wait()).await.is_err() {
            tracing::warn!(event = "stopped_with_loops_under_way");
        }
    }
}
