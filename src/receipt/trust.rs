//! Whom we trust when we call our own public address.

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, pem, pem::PemObject};
use std::{path::Path, sync::Arc};

/// A TLS client that trusts the system's certificates, or the built-in ones where the system has none, and those of
/// `ca_file`. The error says what to do.
pub(super) fn client(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    // One unreadable certificate among the system's is no reason to trust none of them.
    let (known, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if known == 0 {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = ca_file {
        add(&mut roots, path).map_err(|fault| format!("`ca_file` {}: {fault}", path.display()))?;
    }
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(roots).with_no_client_auth())
        .map_err(|error| format!("TLS can't be set up: {error}"))
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error: pem::Error| error.to_string())?;
    if certificates.is_empty() {
        return Err("no PEM certificate is in it".into());
    }
    certificates.into_iter().try_for_each(|one| roots.add(one)).map_err(|error| error.to_string())
}
