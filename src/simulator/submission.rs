//! A request to accept one notification: its JSON, its key and what makes two of them the same.

use super::message::{Channel, Message, MessageError};
use chrono::{DateTime, Datelike, Utc};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The body of `POST /v1/notifications`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    recipient: String,
    template: String,
    #[serde(default)]
    amount: Amount,
    channel: Channel,
    route: String,
    callback_url: String,
    #[serde(default)]
    not_before: Option<DateTime<Utc>>,
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    #[serde(default)]
    idempotency_key: Option<String>,
}

/// An amount, written as text or as a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// As text.
    Text(String),
    /// As a number.
    Number(serde_json::Number),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        match amount {
            Amount::Text(text) => text,
            Amount::Number(number) => number.to_string(),
        }
    }
}

/// A submission that has been read and found fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// What is to be delivered.
    pub message: Message,
    /// Not before this time.
    pub not_before: Option<DateTime<Utc>>,
    /// The idempotency key; without one every submission is a new notification.
    pub key: Option<String>,
    /// What makes two submissions the same: a digest of all but the key.
    pub digest: String,
}

/// Why a submission can't be taken.
#[derive(Debug, thiserror::Error)]
pub enum SubmissionError {
    /// Not the JSON that is asked for.
    #[error("the body does not fit: {0}")]
    Json(#[from] serde_json::Error),
    /// A part out of bounds.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// No usable key.
    #[error("the idempotency key must be 1 to 255 visible ASCII characters")]
    Key,
    /// A time that no ledger can hold in order.
    #[error("`not_before` must be in the years 1970 to 9999")]
    NotBefore,
    /// Two different keys.
    #[error("the idempotency key in the header is not the one in the body")]
    TwoKeys,
}

impl Submission {
    /// Reads a submission from a body and the key of its header.
    pub fn read(body: &[u8], header_key: Option<&[u8]>, anywhere: bool) -> Result<Self, SubmissionError> {
        let body: Body = serde_json::from_slice(body)?;
        let header_key = header_key.map(|key| String::from_utf8_lossy(key).into_owned());
        let key = match (header_key, body.idempotency_key) {
            (Some(header), Some(body)) if header != body => return Err(SubmissionError::TwoKeys),
            (header, body) => header.or(body),
        };
        let fits = |key: &String| (1..=255).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic());
        if key.as_ref().is_some_and(|key| !fits(key)) {
            return Err(SubmissionError::Key);
        }
        if body.not_before.is_some_and(|time| !(1970..=9999).contains(&time.year())) {
            return Err(SubmissionError::NotBefore);
        }
        let message = Message {
            recipient: body.recipient,
            template: body.template,
            amount: body.amount.into(),
            channel: body.channel,
            route: body.route,
            callback_url: body.callback_url,
            metadata: body.metadata,
        };
        message.check(anywhere)?;
        let canonical = serde_json::to_vec(&(&message, body.not_before))?;
        let digest = hex::encode(Sha256::digest(canonical));
        Ok(Self { message, not_before: body.not_before, key, digest })
    }
}

/// The `traceparent` of a request, when it has the shape of one.
pub fn traceparent(value: Option<&[u8]>) -> Option<String> {
    let text = std::str::from_utf8(value?).ok()?;
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let fits = matches!(parts.as_slice(), [v, t, s, f] if v.len() == 2 && t.len() == 32 && s.len() == 16 && f.len() == 2);
    (fits && parts.into_iter().all(hex)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"recipient":"a@example.test","template":"receipt","amount":1.50,"channel":"email",
        "route":"receipts","callback_url":"http://127.0.0.1:9/x","metadata":{"canary_id":"c"}}"#;

    #[test]
    fn the_digest_is_of_the_content_and_not_of_the_key_or_the_spelling() {
        let one = Submission::read(BODY.as_bytes(), Some(b"k1"), false).unwrap();
        let same = Submission::read(BODY.replace('\n', " ").as_bytes(), Some(b"k2"), false).unwrap();
        let other = Submission::read(BODY.replace("1.50", "1.51").as_bytes(), Some(b"k1"), false).unwrap();
        assert_eq!(one.digest, same.digest);
        assert_ne!(one.digest, other.digest);
        assert!(one.message.is_canary());
    }

    #[test]
    fn keys_must_agree_and_fit() {
        let keyed = BODY.replace("\"metadata\"", "\"idempotency_key\":\"k\",\"metadata\"");
        assert_eq!(Submission::read(keyed.as_bytes(), None, false).unwrap().key.as_deref(), Some("k"));
        assert!(matches!(
            Submission::read(keyed.as_bytes(), Some(b"other"), false),
            Err(SubmissionError::TwoKeys)
        ));
        assert!(matches!(Submission::read(BODY.as_bytes(), Some(b""), false), Err(SubmissionError::Key)));
        assert!(matches!(Submission::read(BODY.as_bytes(), Some(b"a b"), false), Err(SubmissionError::Key)));
    }

    #[test]
    fn only_a_traceparent_is_kept_as_one() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(traceparent(Some(good.as_bytes())).as_deref(), Some(good));
        for bad in ["", "00-1-2-3", &good.to_uppercase(), &format!("{good}-x")] {
            assert_eq!(traceparent(Some(bad.as_bytes())), None, "{bad}");
        }
    }
}
