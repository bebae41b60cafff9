//! Submitting over real connections: each way of an answer, and of its absence, gives the right result.

mod certificates;
mod online;
mod refusals;
mod servers;

use certificates::{Authority, Validity};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    acceptance::{self, BuildError, Request, Submitter},
    config::acceptance::Acceptance,
    domain::{
        canary::{CanaryKind, Plan},
        evidence::{
            AcceptanceView, AmbiguityReason as Why, RefusalReason, Submission, SubmissionResult as Is,
        },
        route::{CanaryId, Channel, IdempotencyKey, Location, NotificationId, RouteName},
        verdict::{AcceptanceState, ExpectedEnd},
    },
};
use serde_json::{Value, json};
use servers::{Behaviour, BlackHole, Server, answer};
use std::{collections::BTreeMap, sync::Arc};

const RECIPIENT: &str = "canary@monitor.example";
const TOKEN: &str = "a-token-that-nobody-may-read-in-a-log";

fn instant() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

fn request() -> Request {
    let route = RouteName::new(Channel::Email, "receipts");
    let location = Location::from_text("here");
    let plan = Plan {
        canary_id: CanaryId(uuid::Uuid::from_u128(0x0199_0049_1511_7123_8049_1511_1234_5678)),
        key: IdempotencyKey::derive(&route, &location, CanaryKind::Scheduled, instant()),
        route,
        location,
        kind: CanaryKind::Scheduled,
        slot: instant(),
        planned_at: instant(),
        deadline: TimeDelta::seconds(60),
        settle: TimeDelta::seconds(30),
        follow_for: TimeDelta::seconds(600),
        ledger_overlap: TimeDelta::seconds(10),
        expected_end: ExpectedEnd::Delivered,
        has_ledger: true,
        has_sink: true,
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        parent: None,
    };
    Request {
        plan,
        recipient: RECIPIENT.into(),
        allowed: vec![RECIPIENT.into()],
        token: TOKEN.into(),
        callback_url: Some(format!("https://canary.example/hook/{TOKEN}")),
        variables: BTreeMap::from([("template".to_owned(), "payment \"receipt\"".to_owned())]),
    }
}

fn try_build(keys: &Value) -> Result<Arc<dyn Submitter>, BuildError> {
    let acceptance: Acceptance = serde_json::from_value(json!({ "http": keys })).unwrap();
    acceptance::build(&acceptance, Arc::new(|_, _| {}))
}

fn build(keys: &Value) -> Arc<dyn Submitter> {
    try_build(keys).unwrap_or_else(|error| panic!("{keys}: {error}"))
}

/// A submitter that reads an id from the answer.
fn with_id(url: &str) -> Arc<dyn Submitter> {
    build(&json!({ "url": url, "accepted": { "id": "/id" } }))
}

/// The same with limits for what never ends. They are as long as a busy machine may need to connect.
fn impatient(url: &str) -> Arc<dyn Submitter> {
    build(
        &json!({ "url": url, "accepted": { "id": "/id" }, "connect_timeout": "2s", "total_timeout": "2500ms" }),
    )
}

fn is_whole(submission: &Submission) {
    assert!(submission.started_at <= submission.ended_at, "{submission:?}");
}

async fn result_of(submitter: &Arc<dyn Submitter>) -> (Option<u16>, Is) {
    let submission = submitter.submit(&request()).await;
    is_whole(&submission);
    (submission.status, submission.result)
}

fn accepted(id: &str) -> Is {
    Is::Accepted { notification_id: Some(NotificationId::from_text(id)) }
}

const fn ambiguous(reason: Why) -> Is {
    Is::Ambiguous { reason }
}

const UNREACHABLE: Is = Is::Refused { reason: RefusalReason::Unreachable };

#[tokio::test]
async fn a_request_holds_what_was_configured_and_no_more() {
    let server = Server::start(vec![answer(202, "", r#"{"id":"n-1"}"#)]).await;
    let submitter = build(&json!({
        "url": server.url("/v1/{{ route }}?slot={{ slot | urlencode }}"),
        "method": "PUT",
        "headers": { "X-Location": "{{ location }}" },
        "secret_headers": { "Authorization": "Bearer of-a-secret" },
        "body": r#"{"to":{{ recipient | tojson }},"template":{{ template | tojson }},"at":"{{ now }}","by":"{{ deadline }}","hook":"{{ callback_url }}","id":"{{ canary_id }}"}"#,
        "accepted": { "id": "/id" },
    }));
    assert_eq!(result_of(&submitter).await, (Some(202), accepted("n-1")));
    assert!(submitter.repeats_safely());

    let seen = server.seen().remove(0);
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.lines().map(str::to_owned).collect();
    assert_eq!(lines.remove(0), "PUT /v1/email/receipts?slot=2026-09-21T14%3A13%3A20.000Z HTTP/1.1");
    lines.sort();
    let key = request().plan.key;
    assert_eq!(
        lines,
        [
            "accept: */*".to_owned(),
            "authorization: Bearer of-a-secret".into(),
            format!("content-length: {}", body.len()),
            "content-type: application/json".into(),
            format!("host: {}", server.address),
            format!("idempotency-key: {key}"),
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
            format!("user-agent: delivery-canary/{}", env!("CARGO_PKG_VERSION")),
            "x-location: here".into(),
        ]
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["to"], RECIPIENT);
    assert_eq!(body["template"], "payment \"receipt\"");
    assert_eq!(body["by"], "2026-09-21T14:14:20.000Z");
    assert_eq!(body["hook"], format!("https://canary.example/hook/{TOKEN}"));
    assert_eq!(body["id"], request().plan.canary_id.to_string());
    assert!(body["at"].as_str().unwrap().parse::<DateTime<Utc>>().is_ok());
}

#[tokio::test]
async fn the_key_goes_where_the_api_reads_it() {
    let server = Server::start(vec![answer(202, "", "")]).await;
    let key = request().plan.key.to_string();
    for (keys, is_safe, line) in [
        (json!({ "idempotency": { "header": "X-Request-Key" } }), true, format!("x-request-key: {key}")),
        (json!({ "idempotency": "body", "body": "k={{ key }}" }), true, format!("k={key}")),
        (json!({ "idempotency": "none" }), false, String::new()),
    ] {
        let mut keys = keys;
        keys["url"] = server.url("/").into();
        let submitter = build(&keys);
        assert_eq!(submitter.repeats_safely(), is_safe);
        assert_eq!(result_of(&submitter).await, (Some(202), Is::Accepted { notification_id: None }));
        let seen = server.seen().pop().unwrap();
        assert!(seen.contains(&line), "{seen}");
        assert_eq!(seen.matches(&key).count(), usize::from(is_safe), "{seen}");
    }
}

#[tokio::test]
async fn each_kind_of_answer_has_its_result() {
    let head = |length: usize| format!("HTTP/1.1 202 X\r\ncontent-length: {length}\r\n\r\n");
    let huge = format!(r#"{{"id":"n-1","x":"{}"}}"#, "x".repeat(70_000));
    let chunked = "HTTP/1.1 202 X\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = chunked.to_owned() + &format!("1000\r\n{}\r\n", "y".repeat(4096)).repeat(32);
    let table = [
        ("good", answer(200, "", r#"{"id":17}"#), (Some(200), accepted("17"))),
        ("refused", answer(422, "", "no"), (Some(422), Is::Refused { reason: RefusalReason::Status })),
        ("ask the ledger", answer(409, "", ""), (Some(409), ambiguous(Why::AskLedger))),
        ("server error", answer(503, "", ""), (Some(503), ambiguous(Why::Status))),
        ("redirect", answer(307, "location: /elsewhere\r\n", ""), (Some(307), ambiguous(Why::Status))),
        ("no id", answer(202, "", "{}"), (Some(202), ambiguous(Why::Answer))),
        ("no JSON", answer(202, "", "<p>thanks</p>"), (Some(202), ambiguous(Why::Answer))),
        ("huge", answer(202, "", &huge), (Some(202), ambiguous(Why::Answer))),
        ("endless", Behaviour::AnswerAndStall(endless.into()), (Some(202), ambiguous(Why::Answer))),
        ("half", Behaviour::Answer((head(50) + r#"{"id":"n-"#).into()), (Some(202), ambiguous(Why::Broken))),
        (
            "half a head",
            Behaviour::Answer(b"HTTP/1.1 202 X\r\ncont".to_vec()),
            (None, ambiguous(Why::Broken)),
        ),
        ("no HTTP", Behaviour::Answer(b"220 ready for mail\r\n".to_vec()), (None, ambiguous(Why::Broken))),
        ("closed after reading", Behaviour::CloseAfterReading, (None, ambiguous(Why::Broken))),
        ("closed before reading", Behaviour::CloseBeforeReading, (None, ambiguous(Why::Broken))),
    ];
    let server = Server::start(table.iter().map(|(_, behaviour, _)| behaviour.clone()).collect()).await;
    let submitter = with_id(&server.url("/send"));
    for (name, _, expected) in &table {
        assert_eq!(result_of(&submitter).await, *expected, "{name}");
    }
    // Each submission is one request on a connection of its own: nothing is retried, followed or kept.
    assert_eq!(server.seen_after(table.len()).await.len(), table.len());
}

#[tokio::test]
async fn where_the_status_says_all_the_body_is_not_waited_for() {
    let head = |status: u16| {
        Behaviour::AnswerAndStall(format!("HTTP/1.1 {status} X\r\ncontent-length: 9\r\n\r\n").into())
    };
    let server = Server::start(vec![head(202), head(400)]).await;
    let submitter = build(&json!({ "url": server.url("/") }));
    assert_eq!(result_of(&submitter).await, (Some(202), Is::Accepted { notification_id: None }));
    assert_eq!(result_of(&submitter).await, (Some(400), Is::Refused { reason: RefusalReason::Status }));
}

#[tokio::test]
async fn what_never_was_a_connection_is_unreachable() {
    let closed = free_address();
    let plain = Server::start(vec![not_tls()]).await;
    for url in [
        format!("http://{closed}/"),
        format!("https://{closed}/"),
        "http://nowhere.invalid/".into(),
        format!("https://{}/", plain.address),
    ] {
        assert_eq!(result_of(&with_id(&url)).await, (None, UNREACHABLE), "{url}");
    }
}

/// An address on which nobody listens.
fn free_address() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// What an HTTP server without TLS says to a TLS handshake.
fn not_tls() -> Behaviour {
    Behaviour::Greet(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec())
}

#[tokio::test]
async fn trial_01_every_timed_out_submission_is_in_the_totals() {
    let server = Server::start(vec![Behaviour::Nothing]).await;
    let submitter = impatient(&server.url("/"));
    let request = request();
    let all =
        tokio::join!(submitter.submit(&request), submitter.submit(&request), submitter.submit(&request));
    let view = AcceptanceView { submissions: [all.0, all.1, all.2].into() };
    assert_eq!(view.submissions.len(), 3);
    for submission in &view.submissions {
        is_whole(submission);
        assert_eq!((submission.status, &submission.result), (None, &ambiguous(Why::Timeout)));
    }
    assert_eq!(view.state(), AcceptanceState::Ambiguous);
}

#[tokio::test]
async fn trial_10_a_black_hole_at_each_step_ends_and_the_next_submission_goes_through() {
    let hole = BlackHole::open().await;
    let before_connecting =
        build(&json!({ "url": format!("http://{}/", hole.address), "connect_timeout": "300ms" }));
    assert_eq!(result_of(&before_connecting).await, (None, UNREACHABLE));
    assert!(before_connecting.probe().await.unwrap_err().to_string().contains("did not answer within 300ms"));

    let silent = Server::start(vec![Behaviour::Nothing]).await;
    let before_tls =
        build(&json!({ "url": format!("https://{}/", silent.address), "connect_timeout": "300ms" }));
    assert_eq!(result_of(&before_tls).await, (None, UNREACHABLE));
    assert!(before_tls.probe().await.unwrap_err().to_string().contains("did not answer within 300ms"));

    let stall = |text: &str| Behaviour::AnswerAndStall(text.as_bytes().to_vec());
    let good = answer(202, "", r#"{"id":"n-2"}"#);
    let server = Server::start(vec![
        Behaviour::Nothing,
        good.clone(),
        stall("HTTP/1.1 202 X\r\ncontent-le"),
        good.clone(),
        stall("HTTP/1.1 202 X\r\ncontent-length: 12\r\n\r\n{\"id\""),
        good,
    ])
    .await;
    let submitter = impatient(&server.url("/"));
    for status in [None, None, Some(202)] {
        assert_eq!(result_of(&submitter).await, (status, ambiguous(Why::Timeout)));
        assert_eq!(result_of(&submitter).await, (Some(202), accepted("n-2")));
    }
}

#[tokio::test]
async fn tls_is_believed_only_with_a_certificate_of_this_name_time_and_issuer() {
    let folder = tempfile::tempdir().unwrap();
    let (known, unknown, namesake) = (Authority::new("one"), Authority::new("other"), Authority::new("one"));
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, &known.pem).unwrap();
    let good = answer(202, "", r#"{"id":"n-3"}"#);
    for (name, tls, advice) in [
        (
            "unknown issuer",
            unknown.server("localhost", Validity::Now),
            Some("unknown issuer: give the issuer's certificate in `ca_file`"),
        ),
        (
            "a namesake of the issuer",
            namesake.server("localhost", Validity::Now),
            Some("unknown issuer: give the issuer's certificate in `ca_file`"),
        ),
        ("wrong name", known.server("elsewhere.example", Validity::Now), Some("has another name")),
        ("expired", known.server("localhost", Validity::Past), Some("has expired on 2020-01-01: renew it")),
        ("not yet valid", known.server("localhost", Validity::Future), Some("is not valid yet")),
        ("good", known.server("localhost", Validity::Now), None),
    ] {
        let server = Server::start_tls(vec![good.clone()], tls).await;
        let url = format!("https://localhost:{}/", server.address.port());
        let submitter = build(&json!({ "url": url, "accepted": { "id": "/id" }, "ca_file": ca_file }));
        let (probed, result) = (submitter.probe().await, result_of(&submitter).await);
        match advice {
            Some(advice) => {
                let said = probed.expect_err(name).to_string();
                assert!(said.contains(advice), "{name}: {said}");
                assert_eq!(result, (None, UNREACHABLE), "{name}");
                assert_eq!(server.seen(), [""; 0], "{name}: nothing may leave");
            }
            None => {
                assert_eq!(probed.expect("it connects").ends_soon, None);
                assert_eq!(result, (Some(202), accepted("n-3")));
            }
        }
    }
}

#[tokio::test]
async fn a_probe_connects_sends_nothing_and_says_what_to_do() {
    let server = Server::start(vec![Behaviour::Nothing]).await;
    assert!(with_id(&server.url("/")).probe().await.is_ok());
    assert_eq!(server.seen_after(1).await, [""]);

    let http = Server::start(vec![not_tls()]).await;
    let free = free_address();
    for (url, advice) in [
        ("http://nowhere.invalid/".to_owned(), "does not resolve"),
        (format!("http://{free}/"), "refuses connections: check the port"),
        (format!("https://{}/", http.address), "does not speak TLS"),
    ] {
        let fault = with_id(&url).probe().await.unwrap_err().to_string();
        assert!(fault.contains(advice), "{url}: {fault}");
    }
}
