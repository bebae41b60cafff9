//! Submitting over HTTP.

use super::{
    OnStop, Request, Submitter,
    classify::{AnswerBody, AnswerRules, NoAnswer},
    error::BuildError,
    guard::GuardReason,
    prepare::{Prepared, Preparer, Stop},
};
use crate::{
    clock,
    config::acceptance::{HttpAcceptance, Idempotency, Method},
    domain::evidence::{RefusalReason, Submission, SubmissionResult},
    trust::{
        self,
        probe::{Connected, ProbeError, Target},
    },
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

/// A submitter over HTTP/1.1.
pub struct HttpSubmitter {
    client: reqwest::Client,
    method: reqwest::Method,
    preparer: Preparer,
    rules: AnswerRules,
    answer_limit: usize,
    connect_timeout: Duration,
    ca_file: Option<PathBuf>,
    target: Target,
    repeats_safely: bool,
    on_stop: OnStop,
}

impl HttpSubmitter {
    /// Makes a submitter of its configuration. Reads certificates; connects to nothing.
    pub fn new(config: &HttpAcceptance, on_stop: OnStop) -> Result<Self, BuildError> {
        let (connect_timeout, total_timeout) = (config.connect_timeout.get(), config.total_timeout.get());
        if connect_timeout.is_zero() || connect_timeout >= total_timeout {
            return Err(BuildError::Timeouts);
        }
        let preparer = Preparer::new(config)?;
        let rules = AnswerRules::new(config)?;
        let mut tls = trust::client_config(config.ca_file.as_deref())?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            // One request a connection, over HTTP/1.1. A connection from a pool may have been closed by its other end just now, and
            // nobody could tell whether the request was read: each such race would be a false `Ambiguous`. It costs a handshake for
            // each canary, which a customer's first request has to pay as well, and each canary sees the name, the port and the
            // certificate as they are now.
            .http1_only()
            .pool_max_idle_per_host(0)
            .connect_timeout(connect_timeout)
            .timeout(total_timeout)
            .build()
            .map_err(|error| BuildError::Client { fault: error.to_string() })?;
        Ok(Self {
            client,
            method: match config.method {
                Method::Post => reqwest::Method::POST,
                Method::Put => reqwest::Method::PUT,
            },
            target: preparer.target(),
            preparer,
            rules,
            answer_limit: config.max_answer_bytes,
            connect_timeout,
            ca_file: config.ca_file.clone(),
            repeats_safely: config.idempotency != Idempotency::None,
            on_stop,
        })
    }

    async fn send(&self, prepared: Prepared) -> Result<(Option<u16>, SubmissionResult), Stop> {
        let request = self
            .client
            .request(self.method.clone(), prepared.url)
            .headers(prepared.headers)
            .body(prepared.body)
            .build()
            .map_err(|_| Stop {
                reason: GuardReason::Template,
                key: "url".into(),
                fault: "the request cannot be made".into(),
            })?;
        let mut response = match self.client.execute(request).await {
            Ok(response) => response,
            Err(error) => return Ok((None, NoAnswer::of(&error).result())),
        };
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        let body = if self.rules.needs_body(status) {
            read(&mut response, &mut bytes, self.answer_limit).await
        } else {
            AnswerBody::Unread
        };
        Ok((Some(status), self.rules.judge(status, &body)))
    }

    /// Counts and logs what was stopped, without anything of the request itself.
    fn stopped(&self, request: &Request, stop: &Stop) -> SubmissionResult {
        tracing::warn!(
            event = "guard_stopped",
            canary_id = %request.plan.canary_id,
            route = %request.plan.route,
            reason = stop.reason.word(),
            key = stop.key,
            fault = stop.fault,
            hint = stop.hint(),
            "the guard stopped a request before it left",
        );
        (self.on_stop)(&request.plan.route, stop.reason);
        SubmissionResult::Refused { reason: RefusalReason::Guard }
    }
}

#[async_trait]
impl Submitter for HttpSubmitter {
    async fn submit(&self, request: &Request) -> Submission {
        let (started_at, clock) = (clock::now(), Instant::now());
        let sent = match self.preparer.prepare(request, started_at) {
            Ok(prepared) => self.send(prepared).await,
            Err(stop) => Err(stop),
        };
        let (status, result) = sent.unwrap_or_else(|stop| (None, self.stopped(request, &stop)));
        Submission {
            started_at,
            ended_at: end(started_at, clock.elapsed()),
            status,
            way: None,
            ledger: None,
            result,
        }
    }

    fn repeats_safely(&self) -> bool {
        self.repeats_safely
    }

    async fn probe(&self) -> Result<Connected, ProbeError> {
        trust::probe::probe(&self.target, self.ca_file.as_deref(), self.connect_timeout).await
    }
}

/// The end of what began at `started_at` and took so long by the monotonic clock: a wall clock that steps back in between
/// must not make it end before it began.
fn end(started_at: DateTime<Utc>, took: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(took).ok().and_then(|took| started_at.checked_add_signed(took)).unwrap_or(started_at)
}

/// Reads the body of an answer, up to the limit.
async fn read<'a>(response: &mut reqwest::Response, bytes: &'a mut Vec<u8>, limit: usize) -> AnswerBody<'a> {
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() > limit => return AnswerBody::TooLarge,
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return AnswerBody::Whole(bytes),
            Err(error) if error.is_timeout() => return AnswerBody::TimedOut,
            Err(_) => return AnswerBody::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_never_ends_before_it_began() {
        let start = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        assert_eq!(end(start, Duration::ZERO), start);
        assert_eq!(end(start, Duration::from_millis(1500)), start + TimeDelta::milliseconds(1500));
        assert_eq!(end(start, Duration::MAX), start);
        assert_eq!(end(DateTime::<Utc>::MAX_UTC, Duration::from_secs(1)), DateTime::<Utc>::MAX_UTC);
    }
}
