//! Whom our TLS clients trust: the system's certificates, else those of Mozilla, and those of a `ca_file` besides.
//!
//! * [`probe`]: a connection under this trust that sends no request.

pub mod probe;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
};
use rustls_pki_types::{CertificateDer, pem, pem::PemObject};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Why a client can't be made.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file of certificates that cannot be read.
    #[error("`ca_file`: {path} cannot be read: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// A file without certificates.
    #[error("`ca_file`: {path} holds no certificate: it must have at least one `BEGIN CERTIFICATE` block", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A certificate that cannot be trusted.
    #[error("`ca_file`: certificate {number} of {path} cannot be used: {source}", path = path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        number: usize,
        /// Why.
        source: rustls::Error,
    },
    /// TLS itself can't be set up.
    #[error("TLS can't be set up: {0}")]
    Tls(rustls::Error),
}

/// The TLS side of a client. Reads files; connects to nothing.
///
/// # Errors
/// When `ca_file` can't be used; the text says what to do.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, TrustError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Tls)?;
    Ok(builder.with_root_certificates(roots(ca_file)?).with_no_client_auth())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The issuers that are trusted.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    // Certificates of the system that cannot be read are common and no fault: the others serve.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = ca_file {
        add_file(&mut roots, path)?;
    }
    Ok(roots)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    let unreadable = |source| TrustError::Unreadable { path: path.to_owned(), source };
    let mut number = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        number += 1;
        roots.add(certificate.map_err(unreadable)?).map_err(|source| TrustError::Certificate {
            path: path.to_owned(),
            number,
            source,
        })?;
    }
    if number == 0 {
        return Err(TrustError::Empty { path: path.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_without_a_usable_certificate_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let refusal = || client_config(Some(&path)).unwrap_err().to_string();
        assert!(refusal().contains("cannot be read"), "{}", refusal());
        fs::write(&path, "no certificate\n").unwrap();
        assert!(refusal().contains("BEGIN CERTIFICATE"), "{}", refusal());
        fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(refusal().contains("certificate 1 of"), "{}", refusal());
        assert!(client_config(None).is_ok());
    }
}
