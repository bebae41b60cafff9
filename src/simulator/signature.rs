//! Standard Webhooks signatures: how the provider proves that a webhook is its own.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretSlice};
use sha2::Sha256;

/// A secret that signs webhooks.
#[derive(Clone, Debug)]
pub struct SigningSecret(SecretSlice<u8>);

/// Why a text is no signing secret.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("a signing secret is `whsec_` and the base64 of 16 to 64 bytes")]
pub struct SecretError;

impl SigningSecret {
    /// Reads `whsec_<base64>`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix("whsec_").ok_or(SecretError)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError)?;
        if !(16..=64).contains(&bytes.len()) {
            return Err(SecretError);
        }
        Ok(Self(bytes.into()))
    }

    /// The value of `webhook-signature` for a message's id, its time in seconds since 1970 and its body.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> Result<String, SecretError> {
        // HMAC takes keys of any length, so this error can't come; it is passed on all the same.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret()).map_err(|_: _| SecretError)?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_worked_out_by_another_program() {
        let secret = SigningSecret::parse("whsec_MDEyMzQ1Njc4OWFiY2RlZg==").unwrap();
        let signature = secret.sign("msg_1", 1_700_000_000, b"{}").unwrap();
        assert_eq!(signature, "v1,3uojc/2kvL+KpJkw4ZNrA/5YjEs9cdfKdc3lXIvRjkk=");
    }

    #[test]
    fn refuses_what_is_no_secret() {
        for bad in ["", "whsec_", "whsec_!!", "MDEyMzQ1Njc4OWFiY2RlZg==", "whsec_c2hvcnQ="] {
            assert!(SigningSecret::parse(bad).is_err(), "{bad}");
        }
    }
}
