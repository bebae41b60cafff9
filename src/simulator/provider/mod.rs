//! The provider: it takes messages over HTTP, and really posts each to its callback.

mod memory;
mod webhook;

pub use memory::Memory;
pub use webhook::{Mark, WebhookSender};

use super::{
    fault::Fault,
    faults::Faults,
    http::{read_body, refusal},
    message::{Channel, Message},
    render::{Rendered, render},
    statistics::Statistics,
    submission::{Amount, traceparent},
};
use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Response, StatusCode},
    response::IntoResponse,
    routing::post,
};
use memory::Seen;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Where messages are posted.
pub const PATH: &str = "/provider/v1/messages";
/// How long an answer is withheld by `ambiguous-timeout`, unless the caller goes away earlier.
const WITHHELD: Duration = Duration::from_secs(60);

/// The body of a message to the provider. The service sends subject and text; who sends none has them rendered here. What
/// else is in the body is not read, so the body of a notification is good as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProviderMessage {
    /// The sender's id: one message of one id is delivered once. Without one, the `Idempotency-Key` header makes it.
    #[serde(default)]
    message_id: Option<Uuid>,
    recipient: String,
    #[serde(default)]
    template: Option<String>,
    #[serde(default)]
    amount: Option<Value>,
    channel: Channel,
    route: String,
    callback_url: String,
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    text: Option<String>,
}

impl ProviderMessage {
    /// The service's hand-over of a notification.
    pub fn of_service(notification: Uuid, message: &Message, rendered: Rendered) -> Self {
        let message = message.clone();
        Self {
            message_id: Some(notification),
            recipient: message.recipient,
            template: Some(message.template),
            amount: Some(Value::String(message.amount)),
            channel: message.channel,
            route: message.route,
            callback_url: message.callback_url,
            metadata: message.metadata,
            subject: Some(rendered.subject),
            text: Some(rendered.text),
        }
    }

    /// What is to be delivered.
    fn into_parts(self) -> Result<(Option<Uuid>, Message, Rendered), serde_json::Error> {
        let amount = self.amount.map(serde_json::from_value::<Amount>).transpose()?.unwrap_or_default();
        let message = Message {
            recipient: self.recipient,
            template: self.template.unwrap_or_else(|| "general".into()),
            amount: amount.into(),
            channel: self.channel,
            route: self.route,
            callback_url: self.callback_url,
            metadata: self.metadata,
        };
        let own = render(&message, None);
        let rendered =
            Rendered { subject: self.subject.unwrap_or(own.subject), text: self.text.unwrap_or(own.text) };
        Ok((self.message_id, message, rendered))
    }
}

/// The provider's answer, whatever its status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProviderAnswer {
    /// The id under which the message is known.
    #[serde(default)]
    pub message_id: Option<Uuid>,
    /// What became of it, in the provider's own words.
    pub code: String,
}

/// The provider.
pub struct Provider {
    pub faults: Arc<Faults>,
    pub statistics: Arc<Statistics>,
    pub sender: WebhookSender,
    pub deliveries: Arc<Semaphore>,
    pub callbacks_anywhere: bool,
    pub most_body_bytes: usize,
    pub memory: Memory,
}

/// The routes of the provider's listener.
pub fn router(provider: Arc<Provider>) -> Router {
    Router::new().route(PATH, post(take)).with_state(provider)
}

async fn take(State(here): State<Arc<Provider>>, headers: HeaderMap, body: Body) -> Response<Body> {
    let body = match read_body(body, here.most_body_bytes).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let parts = serde_json::from_slice::<ProviderMessage>(&body).and_then(ProviderMessage::into_parts);
    let (id, message, rendered) = match parts {
        Ok(parts) => parts,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, "body", &error.to_string()),
    };
    if let Err(error) = message.check(here.callbacks_anywhere) {
        return refusal(StatusCode::BAD_REQUEST, "field", &error.to_string());
    }
    let header = |name| headers.get(name).map(axum::http::HeaderValue::as_bytes);
    let id = id.or_else(|| header("idempotency-key").map(id_of)).unwrap_or_else(Uuid::now_v7);
    let carried = traceparent(header("traceparent"));
    let Ok(place) = Arc::clone(&here.deliveries).try_acquire_owned() else {
        return answer(StatusCode::TOO_MANY_REQUESTS, id, "busy");
    };
    let route = message.route.clone();
    // On a task of its own: a caller that goes away must not stop a delivery that is under way.
    let provider = Arc::clone(&here);
    let work = tokio::spawn(async move {
        let done = provider.handle(id, message, rendered, carried).await;
        drop(place);
        done
    });
    let Ok((status, code)) = work.await else {
        return answer(StatusCode::INTERNAL_SERVER_ERROR, id, "internal");
    };
    if status.is_success() && here.faults.strikes(Fault::AmbiguousTimeout, &route).is_some() {
        tokio::time::sleep(WITHHELD).await;
    }
    answer(status, id, &code)
}

/// The id of a message that came under a key: the same for the same key.
fn id_of(key: &[u8]) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(key).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

fn answer(status: StatusCode, message_id: Uuid, code: &str) -> Response<Body> {
    (status, Json(ProviderAnswer { message_id: Some(message_id), code: code.into() })).into_response()
}

type Done = (StatusCode, String);

impl Provider {
    async fn handle(
        &self,
        id: Uuid,
        message: Message,
        rendered: Rendered,
        traceparent: Option<String>,
    ) -> Done {
        let route = message.route.clone();
        if self.faults.strikes(Fault::ProviderDown, &route).is_some() {
            return (StatusCode::SERVICE_UNAVAILABLE, "route_down".into());
        }
        if let Some(params) = self.faults.strikes(Fault::Provider5xx, &route) {
            let status = params.status.and_then(|code| StatusCode::from_u16(code).ok());
            return (status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE), "server_error".into());
        }
        if message.is_dead_recipient() {
            return (StatusCode::UNPROCESSABLE_ENTITY, "recipient_unknown".into());
        }
        if let Some(params) = self.faults.strikes(Fault::Rejection, &route) {
            let code = params.code.unwrap_or_else(|| "recipient_unknown".into());
            return (StatusCode::UNPROCESSABLE_ENTITY, code);
        }
        match self.memory.begin(id) {
            Seen::Delivered => return (StatusCode::OK, "delivered_before".into()),
            Seen::UnderWay => return (StatusCode::CONFLICT, "under_way".into()),
            Seen::New => {}
        }
        if let Some(wait) = self.faults.wait(Fault::ProviderSlow, &route, 3.0) {
            tokio::time::sleep(wait).await;
        }
        let done = self.send(id, message, rendered, traceparent).await;
        self.memory.end(id, done.0.is_success());
        done
    }

    async fn send(
        &self,
        id: Uuid,
        message: Message,
        rendered: Rendered,
        traceparent: Option<String>,
    ) -> Done {
        let route = message.route.clone();
        if self.faults.strikes(Fault::SilentDrop, &route).is_some() {
            return (StatusCode::OK, "delivered".into());
        }
        let lost = self.faults.strikes(Fault::CorrelationLost, &route).is_some();
        let mark = Mark { id, key: self.statistics.key_of(id), traceparent: traceparent.filter(|_| !lost) };
        let sent = self.sender.send(&mark, &message, &rendered).await;
        if sent.0.is_success() && self.faults.strikes(Fault::Duplicate, &route).is_some() {
            // What becomes of the second one is nobody's promise.
            let _ = self.sender.send(&mark, &message, &rendered).await;
        }
        sent
    }
}
