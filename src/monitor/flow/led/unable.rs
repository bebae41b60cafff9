//! A ledger that this process can't read is left to others. It is read now and then, as if it were followed and with nothing written; and asked for
//! again when that goes well. So two processes of which neither can read it don't take it from each other.

use super::{ASK_EVERY, Follower};
use crate::{
    catalog::labels::FollowerMode,
    config::ledger::Ledger,
    monitor::{
        flow::{behind::Behind, beyond::Beyond, error::PassError, residue::Residue},
        shared::Shared,
    },
};
use tokio::time::Instant;

impl Follower {
    /// A reading failed: where too much has, the ledger is given up.
    pub(super) async fn reading_failed(&mut self, shared: &Shared, reason: &str) {
        self.patience.failed();
        if self.patience.is_over(Instant::now()) {
            self.give_up(shared, reason).await;
        }
    }

    async fn give_up(&mut self, shared: &Shared, reason: &str) {
        let (failed, since) = self.patience.tally(Instant::now());
        self.patience.give_up();
        // Another may write from now on. What looks at a text page goes on: what it has seen stays true, whoever follows.
        self.following = None;
        self.is_caught_up = false;
        self.audit.reload();
        self.residue = Residue::default();
        self.behind = Behind::default();
        self.beyond = Beyond::default();
        self.publish(shared, FollowerMode::Unable, None);
        // Where it can't be said, another takes over when the lease ends: it is kept no more.
        let _ = tokio::time::timeout(ASK_EVERY, shared.store.step_down(&self.name, &shared.owner)).await;
        self.hold_back();
        tracing::warn!(
            event = "ledger_given_up",
            ledger = self.name,
            failed,
            seconds = since.as_secs(),
            reason,
            "another process may follow it; this one asks for it again when it can read it"
        );
    }

    /// Lets some time pass before the next trial.
    pub(super) fn hold_back(&mut self) {
        self.next = Instant::now() + self.patience.wait(self.every);
        self.ask_at = self.next;
    }

    /// Makes a pass of which nothing is written. Where it comes to its end, the lead is asked for at once.
    pub(super) async fn try_reading(&mut self, shared: &Shared, config: &Ledger) -> Result<(), PassError> {
        let mut following = self.load(shared, config).await?;
        match following.pass(&*shared.store, &self.erased, &mut self.passing).await {
            // That more is pending than may be held was read.
            Ok(_) | Err(PassError::TooMany(_)) => {}
            Err(error) => return Err(error),
        }
        let now = Instant::now();
        self.patience.good(now);
        (self.next, self.ask_at) = (now, now);
        tracing::info!(event = "ledger_readable_again", ledger = self.name);
        Ok(())
    }
}
