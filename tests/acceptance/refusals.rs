//! What is refused before anything leaves: by the guard, and by the check of the configuration.

use super::{
    RECIPIENT, TOKEN, build, free_address, request,
    servers::{Server, answer},
    try_build,
};
use delivery_canary::{
    acceptance::{self, guard::GuardReason},
    config::acceptance::Acceptance,
    domain::evidence::{RefusalReason, SubmissionResult as Is},
};
use serde_json::json;
use std::{
    io::Write,
    sync::{Arc, Mutex},
};

/// A place for log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Keeps the lines of this thread, of all levels, while the guard lives.
    fn capture() -> (Self, tracing::subscriber::DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_the_guard_stops_never_leaves_is_counted_and_is_logged_once_without_content() {
    let (lines, _logging) = Lines::capture();
    let server = Server::start(vec![answer(202, "", "")]).await;
    let at = |path: &str| server.url(path);
    let (mail, phone, template) = (GuardReason::MailAddress, GuardReason::PhoneNumber, GuardReason::Template);
    let table = [
        (json!({ "url": at("/"), "body": "cc=customer.one@bank.example" }), mail, "body"),
        (json!({ "url": at("/"), "body": r#"{"cc":"customer.one\u0040bank.example"}"# }), mail, "body"),
        (json!({ "url": at("/?cc=customer.one%40bank.example") }), mail, "url"),
        (json!({ "url": at("/customer.one@bank.example") }), mail, "url"),
        (json!({ "url": at("/"), "headers": { "x-cc": "customer.one@bank.example" } }), mail, "headers.x-cc"),
        (
            json!({ "url": at("/"), "secret_headers": { "x-cc": "customer.one@bank.example" } }),
            mail,
            "headers.x-cc",
        ),
        (json!({ "url": at("/"), "body": "{\"to\":\"{{ planted }}\"}" }), phone, "body"),
        (json!({ "url": at("/{{ planted | urlencode }}") }), phone, "url"),
        (json!({ "url": at("/"), "body": "{{ no_such_variable }}" }), template, "body"),
        (
            json!({ "url": at("/"), "body": "{% for x in range(9999) %}{% for y in range(9999) %}x{% endfor %}{% endfor %}" }),
            template,
            "body",
        ),
        (
            json!({ "url": at("/"), "body": "{% for x in range(900) %}{{ 'xxxxxxxxxx' * 900 }}{% endfor %}" }),
            template,
            "body",
        ),
        (json!({ "url": at("/"), "headers": { "x-a": "a{{ '\\r\\n' }}x-b: b" } }), template, "headers.x-a"),
    ];
    let stops = Arc::new(Mutex::new(Vec::new()));
    for (n, (keys, reason, key)) in table.iter().enumerate() {
        let acceptance: Acceptance = serde_json::from_value(json!({ "http": keys })).unwrap();
        let counted = stops.clone();
        let on_stop: acceptance::OnStop =
            Arc::new(move |route, reason| counted.lock().unwrap().push((route.to_string(), reason)));
        let submitter = acceptance::build(&acceptance, on_stop).unwrap();
        let mut request = request();
        request.variables.insert("planted".into(), "+49 (151) 234-567-89".into());
        let submission = submitter.submit(&request).await;
        assert_eq!(submission.result, Is::Refused { reason: RefusalReason::Guard }, "{keys}");
        assert_eq!(stops.lock().unwrap()[n..], [("email/receipts".to_owned(), *reason)], "{keys}");
        let log = lines.take();
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(&format!("key=\"{key}\"")) && log.contains(reason.word()), "{log}");
        for secret in ["customer", "bank.example", "151", "canary@", TOKEN] {
            let log = log.replace(&request.plan.canary_id.to_string(), "");
            assert!(!log.contains(secret), "{secret} in {log}");
        }
    }
    let mut request = request();
    request.recipient = "someone@else.example".into();
    let submission = build(&json!({ "url": at("/") })).submit(&request).await;
    assert_eq!(submission.result, Is::Refused { reason: RefusalReason::Guard });
    assert_eq!(server.seen(), [""; 0]);
}

#[tokio::test]
async fn no_log_line_tells_what_was_sent() {
    let (lines, _logging) = Lines::capture();
    let server = Server::start(vec![answer(202, "", r#"{"id":"n-1"}"#), answer(422, "", "no")]).await;
    for url in [server.url("/"), server.url("/"), format!("http://{}/", free_address())] {
        let submitter = build(&json!({
            "url": format!("{url}{{{{ token }}}}"),
            "secret_headers": { "Authorization": "Bearer of-a-secret" },
            "body": "{{ recipient }} {{ callback_url }}",
        }));
        let submission = submitter.submit(&request()).await;
        assert!(!matches!(submission.result, Is::Refused { reason: RefusalReason::Guard }));
    }
    let log = lines.take();
    for secret in [TOKEN, RECIPIENT, "of-a-secret", "/hook/"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[test]
fn a_fault_of_the_configuration_names_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, absent) = (folder.path().join("empty.pem"), folder.path().join("absent.pem"));
    std::fs::write(&empty, "").unwrap();
    let url = "http://localhost/";
    for (keys, expected) in [
        (json!({ "url": "ftp://localhost/" }), "`url`: it must start with"),
        (json!({ "url": "https://{{ route }}.example/" }), "`url`: host and port must be plain"),
        (json!({ "url": "https://user:word@localhost/" }), "`url`: it must not hold a user"),
        (json!({ "url": "https://localhost:port/" }), "`url`: its host or port"),
        (json!({ "url": url, "body": "a\n{{ key" }), "`body`, line 2"),
        (
            json!({ "url": url, "body": "{{ key | to_jason }}" }),
            "`body`, line 1: the template does not compile: filter to_jason is unknown",
        ),
        (json!({ "url": url, "headers": { "x y": "" } }), "`headers.x y`: it is no name"),
        (
            json!({ "url": url, "headers": { "Traceparent": "" } }),
            "`headers.Traceparent`: this header is set by",
        ),
        (
            json!({ "url": url, "headers": { "X-A": "" }, "secret_headers": { "x-a": "s" } }),
            "`secret_headers.x-a`: this header is given twice",
        ),
        (json!({ "url": url, "secret_headers": { "x-a": "s\ns" } }), "`secret_headers.x-a`: the value holds"),
        (
            json!({ "url": url, "headers": { "Idempotency-key": "" } }),
            "`idempotency`: this header is given twice",
        ),
        (
            json!({ "url": url, "idempotency": "body", "body": "{}" }),
            "`idempotency`: it is `body`, but the body has no `{{ key }}`",
        ),
        (
            json!({ "url": url, "connect_timeout": "15s" }),
            "`connect_timeout` must be above 0 and below `total_timeout`",
        ),
        (json!({ "url": url, "ca_file": empty }), "holds no certificate"),
        (json!({ "url": url, "ca_file": absent }), "`ca_file`: "),
        (json!({ "url": url, "content_type": "a\nb" }), "`content_type`"),
    ] {
        let keys_text = keys.to_string();
        let mut keys = keys;
        if keys.get("body").is_none() {
            keys["body"] = "x".into();
        }
        match try_build(&keys) {
            Ok(_) => panic!("{keys_text} was taken"),
            Err(error) => assert!(error.to_string().contains(expected), "{keys_text}: {error}"),
        }
    }
}
