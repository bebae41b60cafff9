//! How a canary is received: tokens, sinks, and the check of what arrived.

use crate::domain::{
    evidence::{ArrivalRefusal, Receipt},
    route::{CanaryId, RouteName},
    watch::Way,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};

pub mod content;
pub mod message;
pub mod public_url;
pub mod reach;
pub mod rules;
pub mod self_receipt;
pub mod sender;
pub mod stats;
pub mod token;
pub mod webhook;

/// A canary that arrived at a sink of ours, its token verified and its content checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The canary.
    pub canary_id: CanaryId,
    /// Its route, as the token has it.
    pub route: RouteName,
    /// The receiver's name.
    pub receiver: String,
    /// What arrived.
    pub receipt: Receipt,
}

/// What the keeper of canaries says to an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is written down.
    Recorded,
    /// It is written down, and was not the first.
    Duplicate,
    /// There is no such canary (any more). The sender is told to stop.
    UnknownCanary,
    /// It can't be written down now. The sender is told to come again.
    Unavailable,
}

/// Who writes arrivals down. A sender is answered only after that.
#[async_trait]
pub trait Keeper: Send + Sync {
    /// Writes an arrival down. An arrival whose route is not that of the canary's plan is of an unknown canary.
    ///
    /// It may be called before the submission has its answer, and it is not stopped when the sender hangs up.
    async fn arrived(&self, arrival: Arrival) -> Admission;

    /// Remembers that a canary arrived, by its genuine token, and was refused by us. It waits for nothing.
    fn refused(&self, canary_id: CanaryId, at: DateTime<Utc>, reason: ArrivalRefusal);

    /// Writes down that a message to ourselves arrived at this receiver by this way: something could have arrived by it then. What was
    /// refused before is written down before it.
    async fn proved(&self, receiver: &str, way: Way, at: DateTime<Utc>);
}
