//! How the sender of a webhook proves itself, besides by the canary's token.

use super::message::{Message, PlaceError, header};
use crate::config::{
    receipt::{BASE64, LEAST_KEY_BYTES, Sender, standard_key},
    scalar::Secret,
};
use base64::Engine;
use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, Mac};
use hyper::header::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;
use thiserror::Error;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Why a sender could never prove itself so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SenderError {
    /// There is no secret.
    #[error("`secrets` of the sender is empty: give at least one, or leave `sender` out")]
    NoSecret,
    /// A secret is empty.
    #[error("secret {place} of the sender is empty")]
    EmptySecret {
        /// Which one, counted from 1.
        place: usize,
    },
    /// A Standard Webhooks secret that isn't one.
    #[error(
        "secret {place} of the sender is not a Standard Webhooks secret: `whsec_` and base64 of at least {LEAST_KEY_BYTES} bytes"
    )]
    NotAKey {
        /// Which one, counted from 1.
        place: usize,
    },
    /// The header can't be.
    #[error("`header` of the sender: {0}")]
    Header(#[from] PlaceError),
}

/// What proves a sender, compiled.
#[derive(Clone)]
pub enum SenderProof {
    /// The token alone.
    Token,
    /// A header with a shared secret.
    SharedSecret {
        /// The header.
        header: HeaderName,
        /// SHA-256 of each secret. Digests are compared, so that the time does not tell a secret's length.
        digests: Vec<[u8; 32]>,
    },
    /// A Standard Webhooks signature.
    StandardWebhooks {
        /// One for each secret.
        keys: Vec<Hmac<Sha256>>,
        /// How far the signed time may be from ours.
        tolerance: TimeDelta,
    },
}

impl fmt::Debug for SenderProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "Token",
            Self::SharedSecret { .. } => "SharedSecret",
            Self::StandardWebhooks { .. } => "StandardWebhooks",
        })
    }
}

impl SenderProof {
    /// Checks and compiles.
    pub fn compile(sender: &Sender) -> Result<Self, SenderError> {
        match sender {
            Sender::Token => Ok(Self::Token),
            Sender::SharedSecret(shared) => Ok(Self::SharedSecret {
                header: header(&shared.header)?,
                digests: each(&shared.secrets, |secret| Some(Sha256::digest(secret.as_bytes()).into()))?,
            }),
            Sender::StandardWebhooks(standard) => Ok(Self::StandardWebhooks {
                keys: each(&standard.secrets, key_of)?,
                tolerance: standard.tolerance.delta(),
            }),
        }
    }

    /// Whether the sender of this message has proven itself.
    pub fn accepts(&self, message: &Message<'_>, now: DateTime<Utc>) -> bool {
        match self {
            Self::Token => true,
            Self::SharedSecret { header, digests } => only(message, header).is_some_and(|given| {
                let given: [u8; 32] = Sha256::digest(given.as_bytes()).into();
                digests.iter().fold(false, |found, digest| bool::from(digest.ct_eq(&given)) | found)
            }),
            Self::StandardWebhooks { keys, tolerance } => signed(message, keys, *tolerance, now).is_some(),
        }
    }
}

fn each<T>(secrets: &[Secret], one: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, SenderError> {
    if secrets.is_empty() {
        return Err(SenderError::NoSecret);
    }
    let numbered = secrets.iter().enumerate().map(|(i, secret)| (i + 1, secret.expose()));
    numbered
        .map(|(place, secret)| match secret {
            "" => Err(SenderError::EmptySecret { place }),
            secret => one(secret).ok_or(SenderError::NotAKey { place }),
        })
        .collect()
}

fn key_of(secret: &str) -> Option<Hmac<Sha256>> {
    Hmac::new_from_slice(&standard_key(secret)?).ok()
}

/// The value of a header that came exactly once.
fn only<'a>(message: &'a Message<'_>, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = message.headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Verifies as Standard Webhooks says: the signed text is `id.timestamp.body`, and one `v1` signature of one secret is enough.
fn signed(
    message: &Message<'_>,
    keys: &[Hmac<Sha256>],
    tolerance: TimeDelta,
    now: DateTime<Utc>,
) -> Option<()> {
    let id = only(message, &ID)?.as_bytes();
    let timestamp = only(message, &TIMESTAMP)?.to_str().ok()?;
    let signatures = only(message, &SIGNATURE)?.to_str().ok()?;
    let sent_at = DateTime::from_timestamp(timestamp.parse().ok()?, 0)?;
    if id.is_empty() || now.signed_duration_since(sent_at).abs() > tolerance {
        return None;
    }
    let given: Vec<Vec<u8>> = signatures
        .split(' ')
        .filter_map(|one| one.strip_prefix("v1,"))
        .filter_map(|one| BASE64.decode(one).ok())
        .collect();
    let fits = keys.iter().fold(false, |found, key| {
        let text = key.clone().chain_update(id).chain_update(b".").chain_update(timestamp);
        let right = text.chain_update(b".").chain_update(message.body).finalize().into_bytes();
        given.iter().fold(found, |found, one| bool::from(right.as_slice().ct_eq(one)) | found)
    });
    fits.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        receipt::{SharedSecret, StandardWebhooks},
        scalar::Span,
    };
    use hyper::HeaderMap;

    fn standard(secrets: &[&str]) -> Result<SenderProof, SenderError> {
        let secrets = secrets.iter().map(|s| Secret::new(*s)).collect();
        let tolerance = Span::seconds(300);
        SenderProof::compile(&Sender::StandardWebhooks(StandardWebhooks { secrets, tolerance }))
    }

    /// `openssl dgst -sha256 -mac HMAC` gives the same, so that not only our own two sides agree.
    #[test]
    fn a_signature_made_by_another_program_is_understood() {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", HeaderValue::from_static("msg_p5jXN8AQM9LWM0D4loKWxJek"));
        headers.insert("webhook-timestamp", HeaderValue::from_static("1614265330"));
        headers.insert(
            "webhook-signature",
            HeaderValue::from_static("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        );
        let message = Message::new(&headers, b"{\"test\": 2432232314}");
        let proof = standard(&["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).unwrap();
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        assert!(proof.accepts(&message, at(1_614_265_330)));
        assert!(proof.accepts(&message, at(1_614_265_630)) && proof.accepts(&message, at(1_614_265_030)));
        assert!(!proof.accepts(&message, at(1_614_265_631)) && !proof.accepts(&message, at(1_614_265_029)));
    }

    #[test]
    fn secrets_that_could_prove_nothing_are_refused_by_place_and_never_shown() {
        let good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(standard(&[]).unwrap_err(), SenderError::NoSecret);
        for bad in ["whsec_", "whsec_c2hvcnQ=", "not base64!", "sesame-sesame-sesame."] {
            let error = standard(&[good, bad]).unwrap_err();
            assert_eq!(error, SenderError::NotAKey { place: 2 });
            assert!(!error.to_string().contains("sesame"));
        }
        let shared = |header: &str, secret: &str| {
            let shared = SharedSecret { header: header.into(), secrets: vec![Secret::new(secret)] };
            SenderProof::compile(&Sender::SharedSecret(shared))
        };
        assert_eq!(shared("x-key", "").unwrap_err(), SenderError::EmptySecret { place: 1 });
        assert!(matches!(shared("no header", "sesame").unwrap_err(), SenderError::Header(_)));
        assert!(!format!("{:?}", shared("x-key", "sesame").unwrap()).contains("sesame"));
    }
}
