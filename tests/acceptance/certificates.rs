//! Certificates of a test's own authority.

use chrono::{Datelike, TimeDelta, Utc};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls_pki_types::PrivatePkcs8KeyDer;
use std::sync::Arc;

/// An authority that nobody knows but who is given its certificate.
pub struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug)]
pub enum Validity {
    Now,
    /// For five days more.
    Soon,
    Past,
    Future,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// The TLS side of a server that has a certificate for this name.
    pub fn server(&self, name: &str, validity: Validity) -> Arc<rustls::ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let day = |year| (year, 1, 1);
        let soon = (Utc::now() + TimeDelta::days(5)).date_naive();
        let soon = (soon.year(), soon.month() as u8, soon.day() as u8);
        let (from, until) = match validity {
            Validity::Now => (day(2020), day(2999)),
            Validity::Soon => (day(2020), soon),
            Validity::Past => (day(2010), day(2020)),
            Validity::Future => (day(2900), day(2999)),
        };
        params.not_before = date_time_ymd(from.0, from.1, from.2);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![certificate.der().clone()],
                    PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
                )
                .unwrap();
        Arc::new(config)
    }
}
