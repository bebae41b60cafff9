//! The webhook that the provider posts to a message's callback.

use crate::simulator::{
    message::Message,
    render::Rendered,
    signature::SigningSecret,
    statistics::{Event, Statistics},
};
use chrono::Utc;
use reqwest::{Client, StatusCode, header::CONTENT_TYPE};
use std::sync::Arc;
use uuid::Uuid;

/// By what a webhook can be told.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The message's id: the notification's, where the service sent it.
    pub id: Uuid,
    /// The idempotency key that it came under, for the statistics.
    pub key: Option<String>,
    /// The trace that it belongs to.
    pub traceparent: Option<String>,
}

/// Posts webhooks.
#[derive(Clone, Debug)]
pub struct WebhookSender {
    pub client: Client,
    pub secret: Option<SigningSecret>,
    pub statistics: Arc<Statistics>,
}

impl WebhookSender {
    /// Posts once. The result is the provider's own answer to its caller.
    pub async fn send(&self, mark: &Mark, message: &Message, rendered: &Rendered) -> (StatusCode, String) {
        let done = self.post(mark, message, rendered).await;
        if done.0.is_success() {
            self.statistics.count(mark.key.as_deref(), Event::WebhookSent);
        } else {
            self.statistics.add(|totals| totals.webhooks_failed += 1);
        }
        done
    }

    async fn post(&self, mark: &Mark, message: &Message, rendered: &Rendered) -> (StatusCode, String) {
        let now = Utc::now();
        let body = serde_json::json!({
            "type": "notification",
            "notification_id": mark.id,
            "recipient": message.recipient,
            "channel": message.channel,
            "route": message.route,
            "template": message.template,
            "amount": message.amount,
            "subject": rendered.subject,
            "text": rendered.text,
            "metadata": message.metadata,
            "traceparent": mark.traceparent,
            "sent_at": now,
        })
        .to_string();
        let (id, timestamp) = (format!("msg_{}", mark.id), now.timestamp());
        let mut post = self
            .client
            .post(&message.callback_url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", timestamp);
        if let Some(secret) = &self.secret {
            match secret.sign(&id, timestamp, body.as_bytes()) {
                Ok(signature) => post = post.header("webhook-signature", signature),
                Err(_) => return (StatusCode::INTERNAL_SERVER_ERROR, "signing_failed".into()),
            }
        }
        if let Some(traceparent) = &mark.traceparent {
            post = post.header("traceparent", traceparent);
        }
        match post.body(body).send().await {
            Ok(answer) if answer.status().is_success() => (StatusCode::OK, "delivered".into()),
            Ok(answer) => (StatusCode::BAD_GATEWAY, format!("callback_{}", answer.status().as_u16())),
            Err(error) if error.is_connect() => (StatusCode::BAD_GATEWAY, "callback_unreachable".into()),
            Err(error) if error.is_timeout() => (StatusCode::GATEWAY_TIMEOUT, "callback_timeout".into()),
            // It may have arrived before the connection broke.
            Err(_) => (StatusCode::GATEWAY_TIMEOUT, "callback_broken".into()),
        }
    }
}
