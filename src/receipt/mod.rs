//! How a canary is received: tokens, sinks, and the check of what arrived.

use crate::domain::{
    evidence::Receipt,
    route::{CanaryId, RouteName},
};
use async_trait::async_trait;

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
    /// Writes an arrival down.
    async fn arrived(&self, arrival: Arrival) -> Admission;
}
