//! How a canary is submitted: a request is made of its plan, guarded, sent, and its answer classified.
//!
//! * [`guard`]: pure. Whether a request names anybody who is not on the route's allow-list.
//! * `template`: the request's parts, compiled once.
//! * `classify`: pure. What an answer means.
//! * `prepare`: a finished request, or why the guard stops it.
//! * [`http`]: the submitter that joins them.

mod classify;
mod error;
pub mod guard;
pub mod http;
mod prepare;
mod rehearsal;
mod template;

pub use error::BuildError;
pub use prepare::Stop;
pub use rehearsal::Rehearsal;

use crate::{
    config::acceptance::Acceptance,
    domain::{canary::Plan, evidence::Submission, route::RouteName},
    trust::probe::{Connected, ProbeError},
};
use async_trait::async_trait;
use guard::GuardReason;
use std::{collections::BTreeMap, sync::Arc};

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
    async fn probe(&self) -> Result<Connected, ProbeError>;
}

/// Called each time the guard stops a request, with its route and why. It must not block.
pub type OnStop = Arc<dyn Fn(&RouteName, GuardReason) + Send + Sync>;

/// Makes the submitter of a configured acceptance API. Reads certificates; connects to nothing.
pub fn build(acceptance: &Acceptance, on_stop: OnStop) -> Result<Arc<dyn Submitter>, BuildError> {
    match acceptance {
        Acceptance::Http(config) => Ok(Arc::new(http::HttpSubmitter::new(config, on_stop)?)),
    }
}
