//! `check --online`: certificates are held against the trust that the program would use, before they fail, and nothing is sent.

use super::{
    certificates::{Authority, Validity},
    free_address,
    servers::{Behaviour, Server},
};
use delivery_canary::{
    cli::{
        check::{CheckResult, Status},
        check_online,
    },
    config,
};
use std::{fs, net::TcpListener, path::Path};

/// Writes a configuration whose acceptance and whose public address are at these ports of localhost, and checks it.
async fn checked(
    folder: &Path,
    acceptance: u16,
    public: u16,
    listen: std::net::SocketAddr,
) -> (CheckResult, CheckResult) {
    checked_at(folder, acceptance, &format!("localhost:{public}"), listen).await
}

/// Writes a configuration whose acceptance is at this port and whose public address is this, and checks it.
async fn checked_at(
    folder: &Path,
    acceptance: u16,
    public: &str,
    listen: std::net::SocketAddr,
) -> (CheckResult, CheckResult) {
    let path = folder.join("monitor.yaml");
    let text = format!(
        r#"store: {{ sqlite: {{ path: monitor.db }} }}
acceptances:
  api:
    http:
      url: https://localhost:{acceptance}/v1
      ca_file: ca.pem
      body: '{{"to": {{{{ recipient | tojson }}}}, "url": {{{{ callback_url | tojson }}}}}}'
receivers:
  hook:
    webhook:
      listen: {listen}
      public_url: https://{public}/in
      ca_file: ca.pem
      token_secrets: [a-secret-of-this-test-alone]
routes:
  - channel: webhook
    name: receipts
    schedule: {{ every: 5m }}
    deadline: 60s
    acceptance: api
    recipients: [endpoint]
    receipt: {{ receiver: hook }}
    hourly_cap: 80
"#
    );
    fs::write(&path, text).unwrap();
    let loaded = config::load(&path, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
    let results = check_online::run(&loaded).await;
    let of = |name: &str| results.iter().find(|result| result.name == name).cloned();
    let (acceptance, receiver) = (of("acceptance api"), of("receiver hook: public address"));
    (acceptance.expect("it is checked"), receiver.expect("it is checked"))
}

#[tokio::test]
async fn certificates_are_looked_at_before_they_fail_and_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (known, unknown) = (Authority::new("one"), Authority::new("other"));
    fs::write(folder.path().join("ca.pem"), &known.pem).unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    for (tls, status, words) in [
        (known.server("localhost", Validity::Now), Status::Ok, "connects; nothing was sent"),
        (known.server("localhost", Validity::Soon), Status::Warn, "its certificate ends on "),
        (known.server("localhost", Validity::Past), Status::Failed, "has expired on 2020-01-01: renew it"),
        (known.server("elsewhere.example", Validity::Now), Status::Failed, "has another name"),
        (unknown.server("localhost", Validity::Now), Status::Failed, "from an unknown issuer"),
    ] {
        let server = Server::start_tls(vec![Behaviour::Nothing], tls).await;
        let port = server.address.port();
        // A certificate has to be good whether a monitor listens behind it or not.
        for listen in [held.local_addr().unwrap(), free_address()] {
            let (acceptance, receiver) = checked(folder.path(), port, port, listen).await;
            for result in [&acceptance, &receiver] {
                assert_eq!(result.status, status, "{result:?}");
                assert!(result.detail.contains(words), "{result:?}");
            }
            if status == Status::Warn {
                assert!(receiver.hint.is_some_and(|hint| hint.contains("renew it")));
            }
        }
        assert!(server.seen().iter().all(String::is_empty), "{:?}", server.seen());
    }
}

#[tokio::test]
async fn a_public_address_that_nobody_answers_is_a_fault_only_while_a_monitor_listens() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), Authority::new("one").pem).unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = free_address().port();
    for (listen, status) in [(held.local_addr().unwrap(), Status::Failed), (free_address(), Status::Warn)] {
        let (acceptance, receiver) = checked(folder.path(), closed, closed, listen).await;
        assert_eq!(acceptance.status, Status::Failed, "{acceptance:?}");
        assert_eq!(receiver.status, status, "{receiver:?}");
        assert!(receiver.detail.contains("check the port in `public_url`"), "{receiver:?}");
        assert!(acceptance.detail.contains("check the port in `url`"), "{acceptance:?}");
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_fault_whether_a_monitor_listens_or_not() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), Authority::new("one").pem).unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = free_address().port();
    // A label of more than 63 letters is no name anywhere, so no server has to be asked for it.
    let nowhere = "n".repeat(64);
    for listen in [held.local_addr().unwrap(), free_address()] {
        let (_, receiver) = checked_at(folder.path(), closed, &format!("{nowhere}:443"), listen).await;
        assert_eq!(receiver.status, Status::Failed, "{receiver:?}");
        assert!(receiver.detail.contains("does not resolve"), "{receiver:?}");
        let hint = receiver.hint.expect("there is one");
        assert!(hint.contains("DNS") && hint.contains("`serve` does not mend it"), "{hint}");
    }
}
