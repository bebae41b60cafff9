//! Writes arrivals down before their sender is answered.

use super::{crash, shared::Shared, snapshot::Observer};
use crate::{
    domain::canary::Event,
    receipt::{Admission, Arrival, Keeper},
    store::{Append, Appended},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::sync::Arc;

/// The keeper of arrivals: the store, and a word to the follower.
pub struct StoreKeeper {
    shared: Arc<Shared>,
}

impl StoreKeeper {
    /// Keeps arrivals in the store that the loops share.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

#[async_trait]
impl Keeper for StoreKeeper {
    async fn arrived(&self, arrival: Arrival) -> Admission {
        let look_by = Some(arrival.receipt.at);
        let append = Append {
            canary_id: arrival.canary_id,
            events: vec![Event::Received(arrival.receipt)],
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

    async fn proved(&self, receiver: &str, at: DateTime<Utc>) {
        match self.shared.store.prove_sink(receiver, at).await {
            Ok(()) => self.shared.observed(&Observer::Receiver(receiver.to_owned()), Ok(()), at),
            Err(error) => tracing::debug!(event = "proof_not_written", receiver, reason = %error),
        }
    }
}
