//! The token that a canary carries to its sink: which canary, of which route, until when, and that we made it.
//!
//! It is 46 bytes, written as 92 letters from `a` to `p`, one for each half of a byte. Only letters: so it can't look like
//! a telephone number or a mail address, and passes unchanged through URLs, headers and JSON.

use crate::{
    config::scalar::Secret,
    domain::{
        route::{CanaryId, RouteName},
        watch::Way,
    },
};
use chrono::{DateTime, Utc};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use thiserror::Error;
use uuid::Uuid;

const VERSION: u8 = 1;
const CLAIMS: usize = 1 + 1 + 16 + 8 + 4;
const SEAL: usize = 16;
const LEAST_SECRET_BYTES: usize = 16;
/// Keeps these seals apart from whatever else the same secret may be used for.
const CONTEXT: &[u8] = b"delivery-canary token\n";

/// The length of a token in characters.
pub const TOKEN_LENGTH: usize = 2 * (CLAIMS + SEAL);

/// Eight bytes of the SHA-256 of what a token is bound to: a route's name, or a receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound([u8; 8]);

impl Bound {
    /// Bound to a route.
    pub fn to_route(route: &RouteName) -> Self {
        Self::of("route", route.as_str())
    }

    /// Bound to a receiver: what we send to ourselves.
    pub fn to_receiver(receiver: &str) -> Self {
        Self::of("receiver", receiver)
    }

    fn of(kind: &str, name: &str) -> Self {
        let digest = Sha256::digest(format!("{kind}\n{name}").as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        Self(bytes)
    }
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A canary carries it.
    Canary,
    /// A message to ourselves carries it.
    SelfReceipt,
}

impl Purpose {
    const fn byte(self) -> u8 {
        match self {
            Self::Canary => b'c',
            Self::SelfReceipt => b's',
        }
    }
}

/// What a verified token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// What it is for.
    pub purpose: Purpose,
    /// The canary; for a message to ourselves, the way that it is to prove.
    pub canary_id: CanaryId,
    /// The route, or the receiver, that it is bound to.
    pub bound: Bound,
    /// Until when it holds.
    pub expires_at: DateTime<Utc>,
}

/// Why a token is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It is no token of ours, by its form.
    #[error("not a token")]
    Malformed,
    /// It has the form, but none of our secrets sealed it.
    #[error("a token that we did not make")]
    Forged,
    /// It is ours, and its time is over.
    #[error("an expired token")]
    Expired,
}

/// Why secrets can't sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// There are none.
    #[error("`token_secrets` is empty: give at least one secret")]
    None,
    /// One is too short.
    #[error(
        "secret {place} of `token_secrets` is shorter than {LEAST_SECRET_BYTES} bytes: make one with `openssl rand -hex 32`"
    )]
    Short {
        /// Which one, counted from 1.
        place: usize,
    },
}

/// Makes and verifies tokens. The first secret signs, all verify.
#[derive(Clone)]
pub struct TokenSigner {
    signing: Hmac<Sha256>,
    verifying: Vec<Hmac<Sha256>>,
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenSigner({} secrets)", self.verifying.len())
    }
}

impl TokenSigner {
    /// Of these secrets, the newest first.
    pub fn new(secrets: &[Secret]) -> Result<Self, SecretError> {
        let verifying: Vec<_> = secrets
            .iter()
            .enumerate()
            .map(|(i, secret)| seal_of(secret).ok_or(SecretError::Short { place: i + 1 }))
            .collect::<Result<_, _>>()?;
        let signing = verifying.first().ok_or(SecretError::None)?.clone();
        Ok(Self { signing, verifying })
    }

    /// The token of a canary. Seconds are its grain; it can't hold beyond the year 2106.
    pub fn issue(&self, canary_id: CanaryId, route: &RouteName, expires_at: DateTime<Utc>) -> String {
        self.sign(Purpose::Canary, canary_id, Bound::to_route(route), expires_at)
    }

    /// The token of a message to ourselves, by this way and through this receiver.
    pub fn issue_to_self(&self, way: Way, receiver: &str, expires_at: DateTime<Utc>) -> String {
        self.sign(Purpose::SelfReceipt, CanaryId(way.uuid()), Bound::to_receiver(receiver), expires_at)
    }

    fn sign(&self, purpose: Purpose, id: CanaryId, bound: Bound, expires_at: DateTime<Utc>) -> String {
        let seconds = expires_at.timestamp().clamp(0, i64::from(u32::MAX));
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(CLAIMS + SEAL);
        bytes.extend([VERSION, purpose.byte()]);
        bytes.extend(id.0.as_bytes());
        bytes.extend(bound.0);
        bytes.extend(seconds.to_be_bytes());
        let seal = self.signing.clone().chain_update(&bytes).finalize().into_bytes();
        bytes.extend(&seal[..SEAL]);
        spell(&bytes)
    }

    /// What this token says at `now`, if it is ours and still holds.
    pub fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Verified, Refusal> {
        let bytes = read(token).ok_or(Refusal::Malformed)?;
        let (claims, seal) = bytes.split_at(CLAIMS);
        // Every secret is tried, so that the time tells nothing of which one fits; each comparison takes constant time.
        let ours = self.verifying.iter().fold(false, |found, secret| {
            secret.clone().chain_update(claims).verify_truncated_left(seal).is_ok() | found
        });
        if !ours {
            return Err(Refusal::Forged);
        }
        let purpose = match (claims[0], claims[1]) {
            (VERSION, b'c') => Purpose::Canary,
            (VERSION, b's') => Purpose::SelfReceipt,
            _ => return Err(Refusal::Malformed),
        };
        let (id, rest) = claims[2..].split_first_chunk::<16>().ok_or(Refusal::Malformed)?;
        let (bound, rest) = rest.split_first_chunk::<8>().ok_or(Refusal::Malformed)?;
        let seconds = u32::from_be_bytes(rest.try_into().map_err(|_| Refusal::Malformed)?);
        let expires_at = DateTime::from_timestamp(i64::from(seconds), 0).ok_or(Refusal::Malformed)?;
        if now > expires_at {
            return Err(Refusal::Expired);
        }
        Ok(Verified { purpose, canary_id: CanaryId(Uuid::from_bytes(*id)), bound: Bound(*bound), expires_at })
    }
}

/// Whether this has the form of a token.
pub fn has_form(text: &str) -> bool {
    text.len() == TOKEN_LENGTH && text.bytes().all(|b| (b'a'..=b'p').contains(&b))
}

fn seal_of(secret: &Secret) -> Option<Hmac<Sha256>> {
    let bytes = secret.expose().as_bytes();
    if bytes.len() < LEAST_SECRET_BYTES {
        return None;
    }
    Some(Hmac::<Sha256>::new_from_slice(bytes).ok()?.chain_update(CONTEXT))
}

fn spell(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).map(|half| char::from(b'a' + half)).collect()
}

fn read(token: &str) -> Option<Vec<u8>> {
    has_form(token)
        .then(|| token.as_bytes().chunks_exact(2).map(|p| (p[0] - b'a') << 4 | (p[1] - b'a')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use proptest::prelude::*;

    fn signer(secrets: &[&str]) -> TokenSigner {
        TokenSigner::new(&secrets.iter().map(|s| Secret::new(*s)).collect::<Vec<_>>()).unwrap()
    }

    fn route() -> RouteName {
        RouteName::from_text("webhook/receipts")
    }

    fn at(seconds: u32) -> DateTime<Utc> {
        DateTime::from_timestamp(i64::from(seconds), 0).unwrap()
    }

    const OLD: &str = "the old secret, 16 bytes at least";
    const NEW: &str = "the new secret, 16 bytes at least";

    #[test]
    fn secrets_that_are_missing_or_short_are_refused_by_place() {
        assert_eq!(TokenSigner::new(&[]).unwrap_err(), SecretError::None);
        let error = TokenSigner::new(&[Secret::new(OLD), Secret::new("fifteen bytes!!")]).unwrap_err();
        assert_eq!(error, SecretError::Short { place: 2 });
        assert!(!error.to_string().contains("fifteen"));
    }

    #[test]
    fn secrets_rotate_with_an_overlap() {
        let id = CanaryId(Uuid::from_u128(7));
        let before = signer(&[OLD]).issue(id, &route(), at(100));
        let overlap = signer(&[NEW, OLD]);
        assert_eq!(overlap.verify(&before, at(1)).unwrap().canary_id, id);
        let during = overlap.issue(id, &route(), at(100));
        assert_eq!(signer(&[OLD]).verify(&during, at(1)), Err(Refusal::Forged), "the first secret signs");
        let after = signer(&[NEW]);
        assert!(after.verify(&during, at(1)).is_ok());
        assert_eq!(after.verify(&before, at(1)), Err(Refusal::Forged));
    }

    #[test]
    fn an_expiry_beyond_the_range_stays_within_it() {
        let signer = signer(&[OLD]);
        let far = signer.issue(CanaryId(Uuid::nil()), &route(), at(u32::MAX) + TimeDelta::days(400));
        assert_eq!(signer.verify(&far, at(5)).unwrap().expires_at, at(u32::MAX));
        let past = signer.issue(CanaryId(Uuid::nil()), &route(), at(0) - TimeDelta::days(400));
        assert_eq!(signer.verify(&past, at(1)), Err(Refusal::Expired));
    }

    #[test]
    fn a_seal_of_the_same_secret_for_something_else_does_not_pass() {
        let mut bytes = vec![VERSION, b'c'];
        bytes.extend([0; CLAIMS - 2]);
        let other = Hmac::<Sha256>::new_from_slice(OLD.as_bytes()).unwrap().chain_update(&bytes);
        bytes.extend(&other.finalize().into_bytes()[..SEAL]);
        assert_eq!(signer(&[OLD]).verify(&spell(&bytes), at(0)), Err(Refusal::Forged));
    }

    proptest! {
        #[test]
        fn a_token_says_what_was_put_in_and_holds_to_the_second(id: u128, expiry in 1u32..) {
            let (signer, id) = (signer(&[OLD]), CanaryId(Uuid::from_u128(id)));
            let token = signer.issue(id, &route(), at(expiry));
            prop_assert_eq!(token.len(), TOKEN_LENGTH);
            prop_assert!(token.len() < 100 && token.bytes().all(|b| b.is_ascii_lowercase()));
            let said = signer.verify(&token, at(expiry)).unwrap();
            prop_assert_eq!(said, Verified {
                purpose: Purpose::Canary, canary_id: id, bound: Bound::to_route(&route()), expires_at: at(expiry),
            });
            prop_assert_eq!(signer.verify(&token, at(expiry) + TimeDelta::milliseconds(1)), Err(Refusal::Expired));
        }

        #[test]
        fn any_flipped_bit_is_refused(id: u128, place in 0..TOKEN_LENGTH, bit in 0..7u8) {
            let signer = signer(&[NEW, OLD]);
            let mut token = signer.issue(CanaryId(Uuid::from_u128(id)), &route(), at(1000)).into_bytes();
            token[place] ^= 1u8 << bit;
            let token = String::from_utf8(token).unwrap();
            let refusal = signer.verify(&token, at(1)).unwrap_err();
            prop_assert_eq!(refusal, if has_form(&token) { Refusal::Forged } else { Refusal::Malformed });
        }

        #[test]
        fn no_text_is_taken_or_panics(text in "\\PC{0,200}", letters in "[a-p]{92}") {
            let signer = signer(&[OLD]);
            prop_assert_eq!(signer.verify(&text, at(1)), Err(Refusal::Malformed));
            prop_assert_eq!(signer.verify(&letters, at(1)), Err(Refusal::Forged));
        }

        #[test]
        fn a_token_to_ourselves_is_not_a_canary_of_any_route(id: u128, name in "[a-z]{1,8}") {
            let signer = signer(&[OLD]);
            let token = signer.issue_to_self(Way::from_uuid(Uuid::from_u128(id)), &name, at(9));
            let said = signer.verify(&token, at(1)).unwrap();
            prop_assert_eq!(said.purpose, Purpose::SelfReceipt);
            prop_assert_eq!(said.bound, Bound::to_receiver(&name));
            prop_assert_eq!(said.canary_id.0.as_u128(), id);
            prop_assert_ne!(said.bound, Bound::to_route(&RouteName::from_text(name)));
        }
    }
}
