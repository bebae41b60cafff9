//! `POST /v1/notifications`: the durable commitment to deliver.

use super::{
    clock::LedgerClock,
    fault::{Fault, FaultParams},
    faults::Faults,
    http::{dropped, read_body, refusal},
    ledger::{Ledger, LedgerError, NewNotification, Written},
    statistics::{Event, Statistics},
    submission::{Submission, SubmissionError, traceparent},
};
use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Response, StatusCode},
    response::IntoResponse,
    routing::post,
};
use chrono::Utc;
use std::{sync::Arc, time::Duration};
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

/// What acceptance works with.
pub struct Acceptance {
    pub ledger: Arc<dyn Ledger>,
    pub clock: LedgerClock,
    pub faults: Arc<Faults>,
    pub statistics: Arc<Statistics>,
    /// Wakes the workers.
    pub work: Arc<Notify>,
    pub policy_version: String,
    pub callbacks_anywhere: bool,
    pub most_body_bytes: usize,
    /// Places for submissions that are under way, those among them whose caller went away.
    pub under_way: Arc<Semaphore>,
}

/// The routes of the acceptance listener.
pub fn router(acceptance: Arc<Acceptance>) -> Router {
    Router::new().route("/v1/notifications", post(submit)).with_state(acceptance)
}

async fn submit(State(here): State<Arc<Acceptance>>, headers: HeaderMap, body: Body) -> Response<Body> {
    let header = |name| headers.get(name).map(axum::http::HeaderValue::as_bytes);
    let read = match read_body(body, here.most_body_bytes).await {
        Ok(body) => Submission::read(&body, header("idempotency-key"), here.callbacks_anywhere),
        Err(answer) => {
            here.statistics.count(None, Event::Submitted);
            return here.refused(answer);
        }
    };
    let submission = match read {
        Ok(submission) => submission,
        Err(error) => {
            here.statistics.count(None, Event::Submitted);
            return here.refused(unfit(&error));
        }
    };
    here.statistics.count(submission.key.as_deref(), Event::Submitted);
    let traceparent = traceparent(header("traceparent"));
    let Ok(place) = Arc::clone(&here.under_way).try_acquire_owned() else {
        let message = "too many submissions are under way";
        return here.refused(refusal(StatusCode::SERVICE_UNAVAILABLE, "busy", message));
    };
    // On a task of its own: what a caller who goes away has submitted may still be accepted, as with any service.
    let acceptance = Arc::clone(&here);
    let work = tokio::spawn(async move {
        let answer = acceptance.take(submission, traceparent).await;
        drop(place);
        answer
    });
    work.await.unwrap_or_else(|_| {
        refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the submission broke off")
    })
}

impl Acceptance {
    async fn take(&self, submission: Submission, traceparent: Option<String>) -> Response<Body> {
        let route = submission.message.route.clone();
        if let Some(wait) = self.faults.wait(Fault::AcceptanceSlow, &route, 3.0) {
            tokio::time::sleep(wait).await;
        }
        if let Some(FaultParams { status, .. }) = self.faults.strikes(Fault::Acceptance5xx, &route) {
            let status = status.and_then(|code| StatusCode::from_u16(code).ok());
            let status = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            return self.refused(refusal(status, "unavailable", "the service can't accept just now"));
        }
        if self.faults.strikes(Fault::ErrorIn200, &route).is_some() {
            return self.refused(refusal(StatusCode::OK, "queue_full", "the notification was not accepted"));
        }
        let (notification_id, key) = (Uuid::now_v7(), submission.key.clone());
        if self.faults.strikes(Fault::WriteLost, &route).is_some() {
            self.statistics.count(key.as_deref(), Event::Accepted(&route));
            self.statistics.add(|totals| totals.writes_lost += 1);
            return answer(StatusCode::CREATED, notification_id);
        }
        let (now, policy_version) = (Utc::now(), self.policy_version.clone());
        let new = NewNotification {
            notification_id,
            idempotency_key: submission.key,
            digest: submission.digest,
            message: submission.message,
            traceparent,
            accepted_at: self.clock.now(),
            not_before: submission.not_before,
            first_attempt_at: submission.not_before.map_or(now, |not_before| not_before.max(now)),
            policy_version,
        };
        // Linked before it is written: a worker may have delivered it before this task runs again.
        self.statistics.link(notification_id, key.as_deref());
        let written = self.ledger.accept(&new).await;
        let answer = self.answer(written, key.as_deref(), &route);
        match self.faults.strikes(Fault::AcceptanceAmbiguous, &route) {
            None => answer,
            Some(FaultParams { seconds: None, .. }) => dropped(),
            // Its work was announced: it may be delivered before this answer comes.
            Some(FaultParams { seconds: Some(seconds), .. }) => {
                tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
                answer
            }
        }
    }

    fn answer(
        &self,
        written: Result<Written, LedgerError>,
        key: Option<&str>,
        route: &str,
    ) -> Response<Body> {
        match written {
            Ok(Written::Created(id)) => {
                self.statistics.count(key, Event::Accepted(route));
                self.work.notify_one();
                answer(StatusCode::CREATED, id)
            }
            Ok(Written::Replayed(id)) => {
                self.statistics.count(key, Event::Replayed);
                answer(StatusCode::OK, id)
            }
            Ok(Written::Conflict) => {
                self.statistics.count(key, Event::Conflict);
                let message = "this idempotency key was used with another body";
                refusal(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", message)
            }
            Err(error) => {
                tracing::warn!(%error, "simulator: a notification could not be written");
                let message = "the ledger can't be written just now";
                self.refused(refusal(StatusCode::SERVICE_UNAVAILABLE, "ledger_unavailable", message))
            }
        }
    }

    fn refused(&self, answer: Response<Body>) -> Response<Body> {
        self.statistics.add(|totals| totals.refused += 1);
        answer
    }
}

fn answer(status: StatusCode, notification_id: Uuid) -> Response<Body> {
    (status, Json(serde_json::json!({ "notification_id": notification_id }))).into_response()
}

fn unfit(error: &SubmissionError) -> Response<Body> {
    let code = match error {
        SubmissionError::Json(_) => "body",
        SubmissionError::Message(_) | SubmissionError::NotBefore => "field",
        SubmissionError::Key | SubmissionError::TwoKeys => "idempotency_key",
    };
    refusal(StatusCode::BAD_REQUEST, code, &error.to_string())
}
