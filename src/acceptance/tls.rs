//! Whom we trust: the system's certificates, else those of Mozilla, and those of `ca_file` besides.

use super::error::BuildError;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::{path::Path, sync::Arc};

/// The TLS side of a client. Reads files; connects to nothing.
pub(super) fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, BuildError> {
    let mut roots = RootCertStore::empty();
    // Certificates of the system that cannot be read are common and no fault: the others serve.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = ca_file {
        add_file(&mut roots, path)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| BuildError::Client { fault: error.to_string() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), BuildError> {
    let unreadable = |source| BuildError::CaFileUnreadable { path: path.to_owned(), source };
    let mut number = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        number += 1;
        roots.add(certificate.map_err(unreadable)?).map_err(|source| BuildError::CaFileCertificate {
            path: path.to_owned(),
            number,
            source,
        })?;
    }
    if number == 0 {
        return Err(BuildError::CaFileEmpty { path: path.to_owned() });
    }
    Ok(())
}
