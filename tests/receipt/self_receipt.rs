//! The message to ourselves: what proves, and how each break of the way is told.

use super::support::{LIMIT, NAME, Running, eventually, rules, settings};
use delivery_canary::{
    domain::{route::Location, watch::Way},
    receipt::self_receipt::{Break, SelfReceiptError},
};
use rcgen::{CertificateParams, CertifiedKey, generate_simple_self_signed};
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::{io::Write, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

fn here() -> Location {
    Location::from_text("here")
}

fn start(more: Value) -> Running {
    Running::start(&settings(more), vec![rules("receipts", json!({}))])
}

/// Sends one message to ourselves by this public address.
async fn send(running: &Running, public_url: &str, more: Value) -> Result<(), SelfReceiptError> {
    let mut all = json!({ "public_url": public_url, "request_timeout": "5s" });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let sender = running.receiver.self_receipt(&here(), &settings(all)).unwrap();
    tokio::time::timeout(LIMIT, sender.send_once()).await.expect("it ends by its own limit")
}

fn broken_at(sent: Result<(), SelfReceiptError>) -> (Break, Option<u16>) {
    match sent {
        Err(SelfReceiptError::Failed { at, status, receiver }) if receiver == NAME => (at, status),
        other => panic!("{other:?}"),
    }
}

/// An ingress that ends TLS and leads to the receiver. Returns its port and its certificate as PEM.
async fn ingress(key: CertifiedKey<rcgen::KeyPair>, to: SocketAddr) -> (u16, String) {
    let pem = key.cert.pem();
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut outside) = acceptor.accept(stream).await else { return };
                let mut inside = TcpStream::connect(to).await.unwrap();
                let _ = copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    (port, pem)
}

fn localhost() -> CertifiedKey<rcgen::KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

fn ca_file(pem: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn the_arrival_is_the_proof_and_it_needs_no_proof_of_the_sender() {
    for sender in [
        json!("token"),
        json!({ "shared_secret": { "header": "x-key", "secrets": ["sesame"] } }),
        json!({ "standard_webhooks": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] } }),
    ] {
        let running = start(json!({ "sender": sender }));
        let before = chrono::Utc::now();
        let url = format!("http://{}/hooks", running.addr());
        send(&running, &url, json!({})).await.unwrap();
        let proofs = running.keeper.proofs.lock().unwrap().clone();
        assert_eq!(proofs.len(), 1);
        let wanted = Way::new(&here(), NAME, &url);
        assert_eq!((proofs[0].0.as_str(), proofs[0].1), (NAME, wanted));
        assert!((before..=chrono::Utc::now()).contains(&proofs[0].2));
        assert!(running.arrivals().is_empty(), "it is no canary");
    }
}

#[tokio::test]
async fn it_goes_by_https_through_the_ingress_and_trusts_the_ca_file() {
    let running = start(json!({}));
    let (port, pem) = ingress(localhost(), running.addr()).await;
    let (url, file) = (format!("https://localhost:{port}/hooks/"), ca_file(&pem));
    assert_eq!(broken_at(send(&running, &url, json!({})).await), (Break::Tls, None), "an unknown issuer");
    send(&running, &url, json!({ "ca_file": file.path() })).await.unwrap();
    assert_eq!(running.keeper.proofs.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_certificate_that_has_expired_or_is_for_another_name_breaks_the_way() {
    let running = start(json!({}));
    let mut expired = CertificateParams::new(["localhost".to_owned()]).unwrap();
    expired.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = expired.self_signed(&signing_key).unwrap();
    let other = generate_simple_self_signed(["other.example".to_owned()]).unwrap();
    for key in [CertifiedKey { cert, signing_key }, other] {
        let (port, pem) = ingress(key, running.addr()).await;
        let file = ca_file(&pem);
        let sent =
            send(&running, &format!("https://localhost:{port}/"), json!({ "ca_file": file.path() })).await;
        assert_eq!(broken_at(sent), (Break::Tls, None));
    }
    assert!(running.keeper.proofs.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_ca_file_that_is_none_is_refused_when_it_is_built() {
    let running = start(json!({}));
    for path in [ca_file("no certificate").path(), std::path::Path::new("/nowhere/ca.pem")] {
        let error = running
            .receiver
            .self_receipt(&here(), &settings(json!({ "ca_file": path })))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`ca_file`") && error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn each_break_of_the_way_has_its_own_word_and_none_shows_the_token() {
    let running = start(json!({}));
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let elsewhere = answering(b"HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n").await;
    let hanging_up = answering(b"").await;
    let babbling = answering(b"220 mail.example ESMTP\r\n").await;
    for (url, expected) in [
        (format!("http://{closed}/"), (Break::Refused, None)),
        // The resolver refuses so long a label by itself, so that no test asks a name server.
        (format!("http://{}.invalid/", "x".repeat(70)), (Break::Name, None)),
        (format!("http://{elsewhere}/"), (Break::Answer, Some(302))),
        (format!("http://{hanging_up}/"), (Break::Broken, None)),
        (format!("http://{babbling}/"), (Break::Broken, None)),
        (format!("https://{}/", running.addr()), (Break::Tls, None)),
    ] {
        let sent = send(&running, &url, json!({})).await;
        let text = sent.as_ref().unwrap_err().to_string();
        assert_eq!(broken_at(sent), expected, "{url}");
        let token_like = text.split(|c: char| !c.is_ascii_lowercase()).any(|word| word.len() > 40);
        assert!(text.contains(expected.0.word()) && !token_like, "{text}");
    }
}

/// Reads a request and writes this.
async fn answering(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(bytes).await;
        }
    });
    addr
}

#[tokio::test]
async fn trial_10_a_public_address_that_swallows_everything_costs_only_the_limit() {
    let running = start(json!({}));
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", hole.local_addr().unwrap());
    let short = json!({ "request_timeout": "10s", "self_receipt_every": "300ms" });
    let sender = running
        .receiver
        .self_receipt(&here(), &settings(json!({ "public_url": url, "self_receipt_every": "300ms" })));
    assert_eq!(sender.unwrap().limit(), Duration::from_millis(300));
    assert_eq!(broken_at(send(&running, &url, short).await), (Break::TooSlow, None));
}

#[tokio::test]
async fn a_message_that_arrived_proves_though_its_answer_was_lost() {
    let running = start(json!({}));
    let to = running.addr();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut outside, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 8192];
        let n = outside.read(&mut request).await.unwrap();
        let mut inside = TcpStream::connect(to).await.unwrap();
        inside.write_all(&request[..n]).await.unwrap();
        let _ = inside.read(&mut request).await;
    });
    assert_eq!(broken_at(send(&running, &url, json!({})).await).0, Break::Broken);
    let proofs = || running.keeper.proofs.lock().unwrap().len();
    eventually(|| (proofs() == 1).then_some(()).ok_or(format!("{} proofs", proofs()))).await;
}
