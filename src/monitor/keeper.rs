//! Writes arrivals down before their sender is answered, and what we refused before anything is concluded from our own messages.

use super::{
    crash,
    refused::Refused,
    shared::Shared,
    sight::{Look, Reading},
    snapshot::Observer,
};
use crate::{
    clock,
    domain::{canary::Event, evidence::ArrivalRefusal, route::CanaryId, watch::Way},
    receipt::{Admission, Arrival, Keeper},
    store::{Append, Appended, StoreError},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// The keeper of arrivals: the store, and a word to the follower.
pub struct StoreKeeper {
    shared: Arc<Shared>,
    refused: Mutex<Refused>,
    /// By way: the end of the newest break of this process that is written down. Held while a proof is written, so that none
    /// overtakes what must be known before it.
    opened: tokio::sync::Mutex<HashMap<Way, DateTime<Utc>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StoreKeeper {
    /// Keeps arrivals in the store that the loops share.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, refused: Mutex::default(), opened: tokio::sync::Mutex::default() }
    }

    /// Writes down what we refused. What can't be written now stays for the next time.
    async fn write_refused(&self) -> Result<(), StoreError> {
        let waiting = lock(&self.refused).waiting();
        if waiting.is_empty() {
            return Ok(());
        }
        let append = |&(canary_id, at, reason): &(CanaryId, DateTime<Utc>, ArrivalRefusal)| Append {
            canary_id,
            events: vec![Event::ArrivalRefused { at, reason }],
            look_by: Some(at),
            release: false,
        };
        let appends: Vec<Append> = waiting.iter().map(append).collect();
        self.shared.store.append(&appends).await?;
        lock(&self.refused).written(waiting.len());
        self.shared.follow.notify_one();
        Ok(())
    }

    fn is_ours(&self, receiver: &str, way: Way) -> bool {
        self.shared.active.load().adapters.sinks.get(receiver).is_some_and(|sink| sink.way() == way)
    }

    /// Writes a proof down, after all that must be known before it proves anything.
    async fn write_proof(&self, way: Way, at: DateTime<Utc>) -> Result<(), StoreError> {
        let mut opened = self.opened.lock().await;
        self.write_refused().await?;
        let since = self.shared.presence.since();
        // It came when this process had not run for a while, or its clock was wrong: the next one proves more.
        if at < since {
            return Ok(());
        }
        let is_written = opened.get(&way) == Some(&since);
        self.shared.store.prove_sink(way, at, (!is_written).then_some(since)).await?;
        opened.insert(way, since);
        Ok(())
    }
}

#[async_trait]
impl Keeper for StoreKeeper {
    async fn arrived(&self, arrival: Arrival) -> Admission {
        let look_by = Some(arrival.receipt.at);
        // With what we refused of it before: a repetition that we asked for must not be taken for a duplicate.
        let refused = lock(&self.refused).waiting_of(arrival.canary_id);
        let refused = refused.into_iter().map(|(at, reason)| Event::ArrivalRefused { at, reason });
        let append = Append {
            canary_id: arrival.canary_id,
            events: refused.chain([Event::Received(arrival.receipt)]).collect(),
            look_by,
            release: false,
        };
        crash::point("arrived_not_written");
        let appended = self.shared.store.append(&[append]).await;
        crash::point("arrival_written");
        match appended.as_deref() {
            Ok([Appended::Written { receipts_before: 0 }]) => {
                self.shared.follow.notify_one();
                Admission::Recorded
            }
            Ok([Appended::Written { .. }]) => {
                self.shared.follow.notify_one();
                Admission::Duplicate
            }
            Ok([Appended::Dropped]) => Admission::Duplicate,
            Ok(_) => Admission::UnknownCanary,
            Err(error) => {
                tracing::debug!(event = "arrival_not_written", reason = %error);
                Admission::Unavailable
            }
        }
    }

    fn refused(&self, canary_id: CanaryId, at: DateTime<Utc>, reason: ArrivalRefusal) {
        if !lock(&self.refused).remember(canary_id, at, reason) {
            tracing::warn!(event = "refusals_forgotten", "more arrivals were refused than can be remembered");
            self.shared.presence.unsure(at);
        }
    }

    async fn proved(&self, receiver: &str, way: Way, at: DateTime<Utc>) {
        self.shared.presence.look(clock::now(), Instant::now());
        if self.is_ours(receiver, way) {
            self.shared.message_came(receiver);
        }
        match self.write_proof(way, at).await {
            // What came by another way, of another place or by an address of before, says nothing of ours.
            Ok(()) if self.is_ours(receiver, way) => {
                let observer = Observer::Receiver(receiver.to_owned());
                self.shared.observed(&observer, Reading::Message, Look::Good, at);
            }
            Ok(()) => {}
            Err(error) => tracing::debug!(event = "proof_not_written", receiver, reason = %error),
        }
    }
}
