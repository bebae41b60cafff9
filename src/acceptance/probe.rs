//! A connection that sends no request: TCP, and the TLS handshake with the check of the certificate.

use rustls::{CertificateError, ClientConfig, Error as TlsError};
use rustls_pki_types::ServerName;
use std::{io, sync::Arc, time::Duration};
use tokio::net::TcpStream;

/// Where to connect.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The name or address, without the brackets of IPv6.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether TLS is spoken.
    pub is_tls: bool,
}

/// Connects within the limit, and hangs up. The error says what is wrong and what to do.
pub(super) async fn probe(target: &Target, tls: &Arc<ClientConfig>, limit: Duration) -> Result<(), String> {
    let Target { host, port, .. } = target;
    match tokio::time::timeout(limit, connect(target, tls)).await {
        Ok(result) => result,
        Err(_) => Err(format!(
            "{host}:{port} did not answer within {limit:?}: check that the port is right and that no firewall or network policy drops \
             the packets, or raise `connect_timeout`"
        )),
    }
}

async fn connect(target: &Target, tls: &Arc<ClientConfig>) -> Result<(), String> {
    let Target { host, port, is_tls } = target;
    let addresses: Vec<_> = tokio::net::lookup_host((host.as_str(), *port))
        .await
        .map_err(|error| {
            format!("the name {host} does not resolve ({error}): check `url` and the resolver of this place")
        })?
        .collect();
    if addresses.is_empty() {
        return Err(format!("the name {host} has no address: check `url` and the resolver of this place"));
    }
    let stream = TcpStream::connect(&addresses[..]).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!(
                "{host}:{port} refuses connections: check the port in `url`, and that the service listens"
            )
        }
        _ => format!("{host}:{port} cannot be reached ({error}): check the route and the firewalls to it"),
    })?;
    if !is_tls {
        return Ok(());
    }
    let name = ServerName::try_from(host.clone())
        .map_err(|_| format!("{host} is no name that a certificate can have: check `url`"))?;
    match tokio_rustls::TlsConnector::from(tls.clone()).connect(name, stream).await {
        Ok(_) => Ok(()),
        Err(error) => Err(advice(host, *port, &error)),
    }
}

fn advice(host: &str, port: u16, error: &io::Error) -> String {
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
                    "the certificate of {host}:{port} has expired: renew it, or check the clock of this place"
                )
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                format!("the certificate of {host}:{port} is not valid yet: check the clock of this place")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
                "the certificate of {host}:{port} has another name: use a name in `url` that the certificate has"
            ),
            other => format!("the certificate of {host}:{port} is not valid ({other}): have it replaced"),
        },
        TlsError::InvalidMessage(_) => {
            format!("{host}:{port} does not speak TLS: check the port in `url`, or write `http:`")
        }
        other => {
            format!("the TLS handshake with {host}:{port} failed ({other}): check the service's TLS settings")
        }
    }
}
