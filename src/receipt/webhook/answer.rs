//! One request from its head to its answer: read, judge, write down, answer.

use super::{body, connections::Seat};
use crate::receipt::{
    Keeper,
    message::Message,
    rules::{Judgement, Rules},
    stats::{ArrivalResult, ReceiverStats},
    token::Verified,
};
use crate::{
    clock,
    domain::{evidence::ArrivalRefusal, watch::Way},
};
use chrono::{DateTime, Utc};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// The bounds of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub body_bytes: usize,
    pub whole: Duration,
    pub head: Duration,
    pub keeper: Duration,
}

/// Answers requests, and sees to it that what arrived is written down even if its sender hangs up.
pub(super) struct Answerer {
    keeper: Arc<dyn Keeper>,
    stats: Arc<ReceiverStats>,
    writing: TaskTracker,
    places: Arc<Semaphore>,
}

/// What goes to the keeper.
enum Record {
    Canary(crate::receipt::Arrival),
    Proof { receiver: String, way: Way, at: DateTime<Utc> },
}

impl Answerer {
    /// With at most so many records being written at a time.
    pub fn new(keeper: Arc<dyn Keeper>, stats: Arc<ReceiverStats>, at_a_time: usize) -> Self {
        let places = Arc::new(Semaphore::new(at_a_time.clamp(1, Semaphore::MAX_PERMITS)));
        Self { keeper, stats, writing: TaskTracker::new(), places }
    }

    /// Waits until all that arrived has been written down or refused.
    pub async fn finish(&self) {
        self.writing.close();
        self.writing.wait().await;
    }

    /// Counts what became of a connection.
    pub fn count(&self, result: ArrivalResult) {
        self.stats.count(result);
    }

    /// Counts a request whose head never came whole.
    pub fn count_unasked(&self, error: &hyper::Error) {
        self.count(if error.is_timeout() {
            ArrivalResult::TooSlow
        } else if error.is_parse() {
            ArrivalResult::MalformedRequest
        } else {
            ArrivalResult::Broken
        });
    }

    /// The answer. Where none can be given, the connection is closed anyway.
    pub async fn answer(
        &self,
        request: Request<Incoming>,
        seat: &Seat,
        rules: &Rules,
        limits: &Limits,
    ) -> Result<Response<String>, Infallible> {
        seat.asked();
        let read = self.read(request, seat, rules, limits).await;
        seat.has_read();
        let result = match read {
            Ok(record) => self.write(record, limits.keeper).await,
            Err(refused) => {
                tracing::debug!(result = refused.word(), "a request to the receiver was refused");
                self.count(refused);
                refused
            }
        };
        Ok(response(result))
    }

    async fn read(
        &self,
        request: Request<Incoming>,
        seat: &Seat,
        rules: &Rules,
        limits: &Limits,
    ) -> Result<Record, ArrivalResult> {
        let (head, body) = request.into_parts();
        let by_head = if head.method == Method::POST {
            rules.token_of_path(head.uri.path(), clock::now())
        } else {
            Err(ArrivalResult::Method)
        };
        // A refused request is read too, and thrown away: a sender gets its answer only if all it wrote was read.
        let end = seat.since() + limits.whole;
        let bytes = body::read(body, limits.body_bytes, end, by_head.is_ok()).await;
        let token = by_head?;
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(refused) => {
                self.remember(rules, refused, token, &Message::new(&head.headers, &[]));
                return Err(refused);
            }
        };
        let message = Message::new(&head.headers, &bytes);
        judge(rules, token, &message).inspect_err(|refused| self.remember(rules, *refused, token, &message))
    }

    /// A genuine canary that we refused has arrived all the same.
    fn remember(&self, rules: &Rules, result: ArrivalResult, token: Option<Verified>, message: &Message<'_>) {
        let now = clock::now();
        if let Some((canary_id, reason)) = rules.refused_canary(result, token, message, now) {
            self.keeper.refused(canary_id, now, reason);
        }
    }

    async fn write(&self, record: Record, limit: Duration) -> ArrivalResult {
        let arrived = match &record {
            Record::Canary(arrival) => Some((arrival.canary_id, arrival.receipt.at)),
            Record::Proof { .. } => None,
        };
        let result = self.write_down(record, limit).await;
        if let (Some((canary_id, at)), ArrivalResult::Unavailable) = (arrived, result) {
            self.keeper.refused(canary_id, at, ArrivalRefusal::Unavailable);
        }
        result
    }

    async fn write_down(&self, record: Record, limit: Duration) -> ArrivalResult {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            self.count(ArrivalResult::Unavailable);
            return ArrivalResult::Unavailable;
        };
        let (keeper, stats) = (Arc::clone(&self.keeper), Arc::clone(&self.stats));
        let written = self.writing.spawn(async move {
            let _place = place;
            let result = match tokio::time::timeout(limit, keep(&*keeper, record)).await {
                Ok(result) => result,
                Err(_) => {
                    tracing::warn!(
                        event = "arrival_not_written_in_time",
                        limit_ms = limit.as_millis(),
                        "an arrival could not be written down in time"
                    );
                    ArrivalResult::Unavailable
                }
            };
            stats.count(result);
            result
        });
        written.await.unwrap_or_else(|_| {
            // The keeper panicked; nothing was counted.
            self.count(ArrivalResult::Unavailable);
            ArrivalResult::Unavailable
        })
    }
}

/// Judges in one go: a parsed body never outlives it, so that many at a time can't fill the memory.
fn judge(rules: &Rules, token: Option<Verified>, message: &Message<'_>) -> Result<Record, ArrivalResult> {
    let now = clock::now();
    match rules.judge(token, message, now, Uuid::now_v7().to_string()) {
        Judgement::Canary(arrival) => Ok(Record::Canary(arrival)),
        Judgement::SelfReceipt(way) => {
            Ok(Record::Proof { receiver: rules.receiver().to_owned(), way, at: now })
        }
        Judgement::Refused(result) => Err(result),
    }
}

async fn keep(keeper: &dyn Keeper, record: Record) -> ArrivalResult {
    match record {
        Record::Canary(arrival) => keeper.arrived(arrival).await.into(),
        Record::Proof { receiver, way, at } => {
            keeper.proved(&receiver, way, at).await;
            ArrivalResult::SelfReceipt
        }
    }
}

fn response(result: ArrivalResult) -> Response<String> {
    let mut response = Response::new(format!("{}\n", result.word()));
    *response.status_mut() = result.status().unwrap_or(StatusCode::BAD_REQUEST);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    match result {
        ArrivalResult::Method => headers.insert(ALLOW, HeaderValue::from_static("POST")),
        ArrivalResult::Unavailable => headers.insert(RETRY_AFTER, HeaderValue::from_static("5")),
        _ => None,
    };
    response
}
