//! The HTTP clients of the service: plain HTTP, no proxies, no redirects, bounded in time.

use std::time::Duration;

/// Why a client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The TLS part, which is never used.
    #[error("the TLS part of the HTTP client can't be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The client itself.
    #[error("the HTTP client can't be set up: {0}")]
    Client(#[from] reqwest::Error),
}

/// A client whose calls end after `total`.
pub fn client(total: Duration) -> Result<reqwest::Client, ClientError> {
    // The library was built without a TLS provider of its own. Only plain HTTP is spoken here, so the client gets one
    // that trusts nobody, and the process needs no global provider.
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(total)
        .pool_idle_timeout(Duration::from_secs(5))
        .build()?;
    Ok(client)
}
