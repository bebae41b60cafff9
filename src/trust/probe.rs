//! A connection that sends no request: TCP, and the TLS handshake with the check of the certificate.

use super::{TrustError, provider, roots};
use chrono::{DateTime, Utc};
use rustls::{
    CertificateError, ClientConfig, Error as TlsError,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::{io, net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::net::TcpStream;

/// How long before its end a certificate is said to end. Whoever renews by hand needs some days for it.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Where to connect, and by which keys of the configuration that is changed.
#[derive(Clone, Debug)]
pub struct Target {
    /// The name or address, without the brackets of IPv6.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether TLS is spoken.
    pub is_tls: bool,
    /// The protocols that the program offers inside TLS.
    pub protocols: &'static [&'static str],
    /// The key that says where to connect.
    pub address_key: &'static str,
    /// The key that says how long to wait, where there is one.
    pub limit_key: Option<&'static str>,
}

/// What was seen of a peer that can be connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// When its certificate, or that of an issuer of it, ends, where that is within 14 days.
    pub ends_soon: Option<DateTime<Utc>>,
}

/// Why no connection came to be. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The name has no address here.
    #[error("{0}")]
    NoName(String),
    /// Nothing takes connections there.
    #[error("{0}")]
    Unreached(String),
    /// Something takes connections, and TLS with it fails.
    #[error("{0}")]
    Tls(String),
    /// Whom to trust isn't known.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Connects within the limit as a client of this trust would, and hangs up.
///
/// # Errors
/// When no connection comes to be, or the peer is not one that a client would speak to.
pub async fn probe(
    target: &Target,
    ca_file: Option<&Path>,
    limit: Duration,
) -> Result<Connected, ProbeError> {
    let Target { host, port, .. } = target;
    let raise = target.limit_key.map_or_else(String::new, |key| format!(", or raise `{key}`"));
    let too_slow = || {
        ProbeError::Unreached(format!(
            "{host}:{port} did not answer within {limit:?}: check that the port is right and that no firewall or network policy drops \
             the packets{raise}"
        ))
    };
    let by = tokio::time::Instant::now() + limit;
    let addresses = tokio::time::timeout_at(by, resolve(target)).await.unwrap_or_else(|_| {
        let key = target.address_key;
        Err(ProbeError::NoName(format!(
            "the name {host} did not resolve within {limit:?}: check `{key}` and the resolver of this place"
        )))
    })?;
    let connecting = async {
        let stream = connect(target, &addresses).await.map_err(ProbeError::Unreached)?;
        if target.is_tls { shake_hands(target, ca_file, stream).await } else { Ok(Connected::default()) }
    };
    tokio::time::timeout_at(by, connecting).await.unwrap_or_else(|_| Err(too_slow()))
}

async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, ProbeError> {
    let Target { host, port, address_key: key, .. } = target;
    let found = tokio::net::lookup_host((host.as_str(), *port)).await;
    let what = match found.map(Iterator::collect::<Vec<_>>) {
        Ok(addresses) if addresses.is_empty() => "has no address".to_owned(),
        Ok(addresses) => return Ok(addresses),
        Err(error) => format!("does not resolve ({error})"),
    };
    Err(ProbeError::NoName(format!("the name {host} {what}: check `{key}` and the resolver of this place")))
}

async fn connect(target: &Target, addresses: &[SocketAddr]) -> Result<TcpStream, String> {
    let Target { host, port, address_key: key, .. } = target;
    TcpStream::connect(addresses).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!(
                "{host}:{port} refuses connections: check the port in `{key}`, and that something listens there"
            )
        }
        _ => format!("{host}:{port} cannot be reached ({error}): check the route and the firewalls to it"),
    })
}

async fn shake_hands(
    target: &Target,
    ca_file: Option<&Path>,
    stream: TcpStream,
) -> Result<Connected, ProbeError> {
    let Target { host, port, address_key: key, .. } = target;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(ca_file)?), provider())
        .build()
        .map_err(|error| TrustError::Tls(TlsError::General(error.to_string())))?;
    let mut tls = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Tls)?
        .with_webpki_verifier(Arc::clone(&verifier))
        .with_no_client_auth();
    tls.alpn_protocols = target.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(host.clone()).map_err(|_| {
        ProbeError::Tls(format!("{host} is no name that a certificate can have: check `{key}`"))
    })?;
    let stream = tokio_rustls::TlsConnector::from(Arc::new(tls))
        .connect(name.clone(), stream)
        .await
        .map_err(|error| ProbeError::Tls(advice(host, *port, key, &error)))?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(Connected { ends_soon: ends_by(&verifier, chain, &name, Utc::now(), SOON) })
}

/// When a chain that is valid `now` ends, if it does so within this time: it is checked once more, as of then.
fn ends_by(
    verifier: &WebPkiServerVerifier,
    chain: &[CertificateDer<'_>],
    name: &ServerName<'_>,
    now: DateTime<Utc>,
    within: Duration,
) -> Option<DateTime<Utc>> {
    let (own, others) = chain.split_first()?;
    let now = Duration::from_secs(u64::try_from(now.timestamp()).ok()?);
    let then = UnixTime::since_unix_epoch(now.checked_add(within)?);
    match verifier.verify_server_cert(own, others, name, &[], then) {
        Err(TlsError::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            DateTime::from_timestamp(i64::try_from(not_after.as_secs()).ok()?, 0)
        }
        _ => None,
    }
}

fn advice(host: &str, port: u16, key: &str, error: &io::Error) -> String {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) else {
        return format!(
            "{host}:{port} broke off the TLS handshake ({error}): check that TLS is spoken on this port"
        );
    };
    match tls {
        TlsError::InvalidCertificate(fault) => match fault {
            // A signature that does not fit comes of an issuer that has the name of a trusted one, and another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
                "the certificate of {host}:{port} comes from an unknown issuer: give the issuer's certificate in `ca_file`"
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                format!(
                    "the certificate of {host}:{port} has expired{}: renew it, or check the clock of this place",
                    since(fault)
                )
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                format!("the certificate of {host}:{port} is not valid yet: check the clock of this place")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
                "the certificate of {host}:{port} has another name: use a name in `{key}` that the certificate has"
            ),
            other => format!("the certificate of {host}:{port} is not valid ({other}): have it replaced"),
        },
        TlsError::InvalidMessage(_) => {
            format!("{host}:{port} does not speak TLS: check the port in `{key}`, or write `http:`")
        }
        other => {
            format!("the TLS handshake with {host}:{port} failed ({other}): check its TLS settings")
        }
    }
}

/// When a certificate ended, where that is told.
fn since(fault: &CertificateError) -> String {
    let CertificateError::ExpiredContext { not_after, .. } = fault else { return String::new() };
    let at = i64::try_from(not_after.as_secs()).ok().and_then(|secs| DateTime::from_timestamp(secs, 0));
    at.map_or_else(String::new, |at| format!(" on {}", at.format("%Y-%m-%d")))
}
