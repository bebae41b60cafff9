//! What is counted when a pass has read to the end: the last closed hour on all sides, and what came where no stream shows it.

use super::Follower;
use crate::{
    config::ledger::Ledger,
    monitor::{
        flow::{behind::Looked, elsewhere::AcceptedError, pass::Following},
        shared::Shared,
        sight::{Look, Reading},
    },
};
use chrono::{DateTime, Utc};

impl Follower {
    /// Has the ledger count the last closed hour exactly.
    pub(super) async fn count(&mut self, shared: &Shared, following: &Following, as_of: DateTime<Utc>) {
        if !self.reader.has_partition() {
            self.forget(shared, Reading::Partition);
            return;
        }
        match self.residue.look(&*self.reader, following, as_of).await {
            Ok(Some(look)) => self.observed(shared, Reading::Partition, look),
            Ok(None) => {}
            Err(error) => {
                let reason = error.to_string();
                self.observed(shared, Reading::Partition, Look::of(&error, &reason));
                tracing::warn!(event = "ledger_not_counted", ledger = self.name, reason);
            }
        }
    }

    /// Holds the accepted of the last closed hour against a count that is independent of the ledger.
    pub(super) async fn hold(&mut self, shared: &Shared, following: &Following, as_of: DateTime<Utc>) {
        let Some(elsewhere) = self.reader.elsewhere() else {
            [Reading::Elsewhere, Reading::InLedger]
                .into_iter()
                .for_each(|reading| self.forget(shared, reading));
            return;
        };
        // A page is looked at each minute, whatever becomes of an hour.
        let is_page = elsewhere.page().is_some();
        let held = self.accepted.look(&self.name, &*self.reader, following, as_of).await;
        let good = |reading| {
            if !(is_page && reading == Reading::Elsewhere) {
                self.observed(shared, reading, Look::Good);
            }
        };
        match &held {
            Ok(true) => [Reading::Elsewhere, Reading::InLedger].into_iter().for_each(good),
            Ok(false) => {}
            Err(AcceptedError::Elsewhere(error)) => {
                self.observed(shared, Reading::Elsewhere, Look::failed(&error.to_string()));
            }
            Err(AcceptedError::Ledger(error)) => {
                good(Reading::Elsewhere);
                self.observed(shared, Reading::InLedger, Look::of(error, &error.to_string()));
            }
        }
        if let Err(error) = held {
            tracing::warn!(event = "accepted_not_counted", ledger = self.name, reason = %error);
        }
        match self.accepted.newest_look() {
            Some(Ok(())) => self.observed(shared, Reading::Elsewhere, Look::Good),
            Some(Err(reason)) => self.observed(shared, Reading::Elsewhere, Look::failed(&reason)),
            None => {}
        }
    }

    /// Counts what is pending before the history that is followed, and looks for what came behind the cursor.
    pub(super) async fn look_behind(
        &mut self,
        shared: &Shared,
        following: &mut Following,
        as_of: DateTime<Utc>,
        config: &Ledger,
    ) {
        let every = config.dated_back.every();
        let pending =
            self.beyond.look(&*self.reader, following.horizon(), every).await.unwrap_or_else(|error| {
                tracing::warn!(event = "ledger_beyond_not_counted", ledger = self.name, reason = %error);
                None
            });
        let looked = Looked {
            ledger: &self.name,
            config,
            reader: &*self.reader,
            store: &*shared.store,
            erased: &self.erased,
            as_of,
        };
        if let Err(error) = self.behind.look(&looked, (&self.beyond, pending.as_deref()), following).await {
            tracing::warn!(event = "ledger_dated_back_not_read", ledger = self.name, reason = %error);
        }
    }
}
