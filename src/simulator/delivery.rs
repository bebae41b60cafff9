//! One attempt: policy, rendering, the provider's answer, and what follows.

use super::{
    backoff,
    clock::LedgerClock,
    fault::Fault,
    faults::Faults,
    ledger::{Attempt, Next, Outcome, Work},
    provider::{PATH, ProviderAnswer, ProviderMessage},
    render::render,
};
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Client, StatusCode};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use uuid::Uuid;

/// How the workers deliver.
pub struct Deliverer {
    pub client: Client,
    pub provider: SocketAddr,
    pub clock: LedgerClock,
    pub faults: Arc<Faults>,
    pub policy_version: String,
    pub most_attempts: u32,
    pub backoff_base: Duration,
    pub backoff_most: Duration,
}

/// An outcome and the code that goes with it.
type Result = (Outcome, String);

impl Deliverer {
    /// Makes one attempt, and says what it came to.
    pub async fn attempt(&self, work: &Work) -> Attempt {
        let (attempt_id, started_at) = (Uuid::now_v7(), self.clock.now());
        let (outcome, provider_code) = self.outcome(work).await;
        let attempt_number = work.attempts_made.saturating_add(1);
        let (outcome, provider_code) =
            if outcome == Outcome::Retryable && attempt_number >= self.most_attempts {
                // The service gives up: that is its own permanent decision, and the ledger says whose.
                (Outcome::PermanentRejection, "attempts_exhausted".to_owned())
            } else {
                (outcome, provider_code)
            };
        Attempt {
            attempt_id,
            notification_id: work.notification_id,
            attempt_number,
            outcome,
            provider_code,
            started_at,
            ended_at: self.clock.now(),
            policy_version: self.policy_version.clone(),
        }
    }

    /// What follows an attempt that ended at `now`, on the real clock.
    pub fn next(&self, attempt: &Attempt, now: DateTime<Utc>) -> Next {
        if attempt.outcome.is_terminal() {
            return Next::Settled;
        }
        if attempt.attempt_number >= self.most_attempts {
            return Next::Parked;
        }
        let spread = rand::random::<f64>();
        let wait = backoff::wait(attempt.attempt_number, self.backoff_base, self.backoff_most, spread);
        // The options hold waits to an hour, far within what a delta can hold.
        Next::Retry(now + TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(1)))
    }

    async fn outcome(&self, work: &Work) -> Result {
        let message = &work.message;
        let suppressed = self.faults.strikes(Fault::Suppression, &message.route).is_some();
        if suppressed || message.is_suppressed_by_policy() {
            return (Outcome::Suppressed, "policy".into());
        }
        let malformed = self.faults.strikes(Fault::Malformed, &message.route);
        let rendered = render(message, malformed.map(|params| params.kind.unwrap_or_default()));
        let request = ProviderMessage::of_service(work.notification_id, message, rendered);
        let mut call = self.client.post(format!("http://{}{PATH}", self.provider)).json(&request);
        if let Some(traceparent) = &work.traceparent {
            call = call.header("traceparent", traceparent);
        }
        match call.send().await {
            Ok(response) => {
                let status = response.status();
                let answer = response.json::<ProviderAnswer>().await;
                classify(status, answer.map(|answer| answer.code).ok())
            }
            Err(error) if error.is_connect() => (Outcome::Retryable, "connect_failed".into()),
            Err(error) if error.is_timeout() => (Outcome::Unknown, "timeout".into()),
            // The request may have left before the connection broke.
            Err(_) => (Outcome::Unknown, "connection_lost".into()),
        }
    }
}

/// What a provider's answer means. An answer whose body broke off still has its status.
fn classify(status: StatusCode, code: Option<String>) -> Result {
    let outcome = match status.as_u16() {
        200..=299 => Outcome::Delivered,
        422 => Outcome::PermanentRejection,
        // The provider itself does not know.
        504 => Outcome::Unknown,
        _ => Outcome::Retryable,
    };
    (outcome, code.unwrap_or_else(|| format!("http_{}", status.as_u16())))
}
