//! Whether a receiver's public address can be connected to, as our messages to ourselves are. Nothing is sent.

use crate::{
    config::receipt::WebhookReceiver as Settings,
    trust::probe::{Target, probe},
};
use reqwest::Url;
use std::time::Duration;

pub use crate::trust::probe::{Connected, ProbeError};

/// Connects to the public address within the limit, TLS included, with the trust of messages to ourselves, and hangs up.
///
/// # Errors
/// When no connection comes to be, or its certificate is not one that is trusted. The text says what to do.
pub async fn reach(settings: &Settings, limit: Duration) -> Result<Connected, ProbeError> {
    let url = Url::parse(&settings.public_url)
        .map_err(|error| ProbeError::Unreached(format!("`public_url` is no address: {error}")))?;
    let target = Target {
        host: url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned(),
        port: url.port_or_known_default().unwrap_or_default(),
        is_tls: url.scheme() == "https",
        protocols: &[],
        address_key: "public_url",
        limit_key: None,
    };
    probe(&target, settings.ca_file.as_deref(), limit).await
}
