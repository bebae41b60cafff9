//! How a canary is submitted: a request is made of its plan, guarded, sent, and its answer classified.

use crate::domain::{canary::Plan, evidence::Submission};
use async_trait::async_trait;
use std::collections::BTreeMap;

/// All that goes into one submission.
#[derive(Clone, Debug)]
pub struct Request {
    /// The canary's plan.
    pub plan: Plan,
    /// The non-customer recipient, from the route's allow-list.
    pub recipient: String,
    /// The whole allow-list: what a request may name.
    pub allowed: Vec<String>,
    /// The token by which the receipt is known.
    pub token: String,
    /// The address to which the service delivers, where the sink is a webhook.
    pub callback_url: Option<String>,
    /// Further variables of the templates.
    pub variables: BTreeMap<String, String>,
}

/// A way to submit canaries. One value serves many routes and calls at a time.
#[async_trait]
pub trait Submitter: Send + Sync {
    /// Submits once, under the plan's key. Never fails: what went wrong is the result.
    async fn submit(&self, request: &Request) -> Submission;

    /// Whether a submission whose fate is ambiguous may be repeated under the same key.
    fn repeats_safely(&self) -> bool;

    /// Connects, TLS included, and sends no request. The error says what to do.
    async fn probe(&self) -> Result<(), String>;
}
