//! Reading a page over HTTP: one answer, whole, within limits.

use super::ElsewhereError;
use crate::{config::scalar::Secret, ledger::LedgerError, trust};
use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use std::{path::Path, time::Duration};

/// The largest answer that is read, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// Reads pages of one server.
pub struct Web {
    client: Client,
    /// What it is, in errors.
    what: &'static str,
}

impl Web {
    /// A reader with this header and these certificates. It connects to nothing.
    ///
    /// # Errors
    /// When they can't be used.
    pub fn new(
        what: &'static str,
        authorization: Option<&Secret>,
        ca_file: Option<&Path>,
        timeout: Duration,
    ) -> Result<Self, LedgerError> {
        let fault = |reason: String| LedgerError::Configuration { part: "accepted_elsewhere", reason };
        let mut headers = HeaderMap::new();
        if let Some(secret) = authorization {
            let value = HeaderValue::from_str(secret.expose());
            let mut value = value.map_err(|_| fault("`authorization` can't be a header's value".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut tls = trust::client_config(ca_file).map_err(|error| fault(error.to_string()))?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .default_headers(headers)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .pool_max_idle_per_host(0)
            .timeout(timeout)
            .build()
            .map_err(|error| fault(error.to_string()))?;
        Ok(Self { client, what })
    }

    /// The status of a page, and its text.
    ///
    /// # Errors
    /// When there is no whole answer in time, or none that is text of a fair size.
    pub async fn get(&self, url: Url) -> Result<(u16, String), ElsewhereError> {
        let unreachable = |error: &reqwest::Error| {
            let reason = match error {
                error if error.is_timeout() => "no answer came in time",
                error if error.is_connect() => "no connection came to be",
                _ => "the connection broke",
            };
            ElsewhereError::Unreachable(self.what, reason.into())
        };
        let mut response = self.client.get(url).send().await.map_err(|error| unreachable(&error))?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
            if bytes.len() + chunk.len() > MOST_BYTES {
                return Err(self.unusable(format!("it is larger than {MOST_BYTES} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(bytes).map_err(|_| self.unusable("it is not text in UTF-8"))?;
        Ok((status, text))
    }

    /// An answer that can't be used.
    pub fn unusable(&self, reason: impl Into<String>) -> ElsewhereError {
        ElsewhereError::Answer(self.what, reason.into())
    }
}
