//! Each answer of the receiver, with its count.

use super::support::{Running, eventually, exchange, parse, read_all, request, route, rules, send, settings};
use chrono::{TimeDelta, Utc};
use delivery_canary::domain::watch::Way;
use delivery_canary::{
    domain::{
        evidence::{ArrivalRefusal, Content},
        route::CanaryId,
        traceparent::traceparent,
    },
    receipt::stats::ArrivalResult::{self, *},
};
use serde_json::json;
use std::sync::{Arc, atomic::Ordering};
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::Semaphore};
use uuid::Uuid;

fn start() -> Running {
    Running::start(&settings(json!({ "max_body_bytes": 1000 })), vec![rules("receipts", json!({}))])
}

fn answer(status: u16, result: ArrivalResult) -> (u16, String) {
    (status, result.word().to_owned())
}

#[tokio::test]
async fn a_canary_is_recorded_and_what_is_kept_of_it_is_no_content() {
    let running = start();
    let (id, token) = running.plan("receipts");
    let path = format!("/hooks/{token}");
    let before = Utc::now();
    assert_eq!(running.post(&path, &[("webhook-id", "m1")], b"a secret body").await, answer(200, Recorded));
    let [arrival] = running.arrivals().try_into().unwrap();
    assert_eq!((arrival.canary_id, arrival.route.clone()), (id, route("receipts")));
    assert_eq!(arrival.receiver, "sink");
    assert!((before..=Utc::now()).contains(&arrival.receipt.at));
    assert_eq!(arrival.receipt.content, Content::Intact);
    assert_eq!(arrival.receipt.correlated, None);
    assert!(!format!("{arrival:?}").contains("secret body") && !format!("{arrival:?}").contains(&token));
    assert_eq!(arrival.receipt.digest.len(), 64);
    assert_eq!(arrival.receipt.message.map(|m| m.len()), Some(64));
}

#[tokio::test]
async fn a_second_arrival_is_taken_as_well_and_the_same_message_is_known_by_its_id() {
    let running = start();
    let (_, token) = running.plan("receipts");
    let path = format!("/hooks/{token}");
    for (message, result) in [("m1", Recorded), ("m1", Duplicate), ("m2", Duplicate)] {
        assert_eq!(running.post(&path, &[("webhook-id", message)], b"{}").await, answer(200, result));
    }
    let receipts: Vec<_> = running.arrivals().into_iter().map(|a| a.receipt).collect();
    assert_eq!(receipts[0].message, receipts[1].message);
    assert_ne!(receipts[0].message, receipts[2].message);
    assert_ne!(receipts[0].arrival_id, receipts[1].arrival_id);
    assert_eq!((running.receiver.stats().of(Recorded), running.receiver.stats().of(Duplicate)), (1, 2));
}

#[tokio::test]
async fn what_is_before_the_last_segment_of_the_path_is_the_ingresss_matter() {
    let running = start();
    for prefix in ["/", "/hooks/", "/rewritten/by/an/ingress/", "/hooks//"] {
        let (_, token) = running.plan("receipts");
        assert_eq!(
            running.post(&format!("{prefix}{token}?query=1"), &[], b"").await,
            answer(200, Recorded),
            "{prefix}"
        );
    }
}

#[tokio::test]
async fn a_canary_that_nobody_knows_is_answered_so_that_the_sender_stops() {
    let running = start();
    let token = running.receiver.issue(
        CanaryId(Uuid::now_v7()),
        &route("receipts"),
        Utc::now() + TimeDelta::hours(1),
    );
    assert_eq!(running.post(&format!("/{token}"), &[], b"").await, answer(404, UnknownCanary));
}

#[tokio::test]
async fn no_token_a_forged_one_and_an_expired_one_have_their_own_answers() {
    let running = start();
    let (id, token) = running.plan("receipts");
    let forged = if token.ends_with('a') { token.replace('a', "b") } else { format!("{}a", &token[..91]) };
    let expired = running.receiver.issue(id, &route("receipts"), Utc::now() - TimeDelta::seconds(2));
    for (path, expected) in [
        ("/hooks".to_owned(), answer(404, MalformedToken)),
        ("/".to_owned(), answer(404, MalformedToken)),
        (format!("/hooks/{}", &token[1..]), answer(404, MalformedToken)),
        (format!("/hooks/{}", token.to_uppercase()), answer(404, MalformedToken)),
        (format!("/hooks/{token}/"), answer(404, MalformedToken)),
        (format!("/hooks/{forged}"), answer(401, Forged)),
        (format!("/hooks/{expired}"), answer(410, Expired)),
    ] {
        assert_eq!(running.post(&path, &[], b"{}").await, expected, "{path}");
    }
    assert!(running.arrivals().is_empty());
}

#[tokio::test]
async fn a_token_of_another_route_or_receiver_does_not_count_here() {
    let running = start();
    let (id, _) = running.plan("receipts");
    let hour = Utc::now() + TimeDelta::hours(1);
    let of_another_route = running.receiver.issue(id, &route("elsewhere"), hour);
    let of_another_receiver =
        running.receiver.signer().issue_to_self(Way::from_uuid(Uuid::now_v7()), "elsewhere", hour);
    for token in [of_another_route, of_another_receiver] {
        assert_eq!(running.post(&format!("/{token}"), &[], b"").await, answer(404, WrongRoute));
    }
    assert!(running.keeper.proofs.lock().unwrap().is_empty());
    assert_eq!(
        *running.keeper.refused.lock().unwrap(),
        [(id, ArrivalRefusal::WrongRoute)],
        "it arrived all the same"
    );
}

#[tokio::test]
async fn a_token_may_stand_in_a_header_or_in_the_body() {
    let running = Running::start(
        &settings(json!({})),
        vec![
            rules("by-header", json!({ "token_in": { "header": "X-Token" } })),
            rules("by-pointer", json!({ "token_in": { "pointer": "/meta/token" } })),
        ],
    );
    let (_, header) = running.plan("by-header");
    let (_, pointer) = running.plan("by-pointer");
    let body = json!({ "meta": { "token": pointer } }).to_string();
    assert_eq!(running.post("/hooks", &[("x-token", &header)], b"not json").await, answer(200, Recorded));
    assert_eq!(running.post("/hooks", &[], body.as_bytes()).await, answer(200, Recorded));
    for body in [&b"not json"[..], b"{}", b"", b"{\"meta\":{\"token\":7}}"] {
        assert_eq!(running.post("/hooks", &[], body).await, answer(404, MalformedToken));
    }
    assert_eq!(running.arrivals().len(), 2);
}

#[tokio::test]
async fn other_methods_are_refused_with_the_one_that_is_taken() {
    let running = start();
    let (_, token) = running.plan("receipts");
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
        let bytes = request(method, &format!("/{token}"), &[], b"{}");
        let answered = exchange(running.addr(), &bytes).await;
        assert_eq!(parse(&answered), Some(answer(405, Method)), "{method}");
        assert!(answered.to_ascii_lowercase().contains("allow: post\r\n"), "{answered}");
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_however_it_comes() {
    let running = start();
    let (id, token) = running.plan("receipts");
    let path = format!("/{token}");
    assert_eq!(running.post(&path, &[], &[b'x'; 1000]).await, answer(200, Recorded));
    assert_eq!(running.post(&path, &[], &[b'x'; 1001]).await, answer(413, TooLarge));
    assert_eq!(running.post(&path, &[], &vec![b'x'; 900_000]).await, answer(413, TooLarge));
    let announced = format!("POST {path} HTTP/1.1\r\nhost: sink\r\ncontent-length: 99999999999\r\n\r\n");
    assert_eq!(parse(&exchange(running.addr(), announced.as_bytes()).await), Some(answer(413, TooLarge)));
    let chunks = format!("3e8\r\n{}\r\n", "x".repeat(1000)).repeat(2);
    let chunked =
        format!("POST {path} HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    assert_eq!(parse(&exchange(running.addr(), chunked.as_bytes()).await), Some(answer(413, TooLarge)));
    assert_eq!(running.receiver.stats().of(TooLarge), 4);
    assert_eq!(*running.keeper.refused.lock().unwrap(), [(id, ArrivalRefusal::TooLarge); 4]);
    let forged = format!("/{}", "a".repeat(token.len()));
    assert_eq!(running.post(&forged, &[], &[b'x'; 1001]).await, answer(401, Forged));
    assert_eq!(running.keeper.refused.lock().unwrap().len(), 4, "a token that is not ours says nothing");
    assert_eq!(running.arrivals().len(), 1);
}

#[tokio::test]
async fn who_is_slow_with_the_body_is_told_and_who_is_slow_with_the_head_is_cut_off() {
    let running =
        Running::start(&settings(json!({ "request_timeout": "300ms" })), vec![rules("receipts", json!({}))]);
    let (_, token) = running.plan("receipts");
    let half = format!("POST /{token} HTTP/1.1\r\nhost: sink\r\ncontent-length: 10\r\n\r\nhalf");
    assert_eq!(parse(&exchange(running.addr(), half.as_bytes()).await), Some(answer(408, TooSlow)));
    let head = format!("POST /{token} HTTP/1.1\r\nhost: si");
    assert_eq!(exchange(running.addr(), head.as_bytes()).await, "");
    running.counted(TooSlow, 2).await;
    assert!(running.arrivals().is_empty());
}

#[tokio::test]
async fn what_is_not_http_and_who_hangs_up_are_counted_and_an_empty_connection_is_not() {
    let running = start();
    let (_, token) = running.plan("receipts");
    assert!(exchange(running.addr(), b"\x16\x03\x01 this is TLS\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let long = format!("POST /{token} HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(40_000));
    exchange(running.addr(), long.as_bytes()).await;
    running.counted(MalformedRequest, 2).await;
    let mut stream = TcpStream::connect(running.addr()).await.unwrap();
    let half = format!("POST /{token} HTTP/1.1\r\nhost: sink\r\ncontent-length: 10\r\n\r\nhalf");
    stream.write_all(half.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    read_all(&mut stream).await;
    running.counted(Broken, 1).await;
    let mut empty = TcpStream::connect(running.addr()).await.unwrap();
    empty.shutdown().await.unwrap();
    assert_eq!(read_all(&mut empty).await, "");
    let total: u64 = running.receiver.stats().all().map(|(_, n)| n).sum();
    assert_eq!(total, 3, "a bare look at the port is no request");
}

#[tokio::test]
async fn trial_10_a_keeper_that_never_answers_costs_the_sender_only_its_limit() {
    let running =
        Running::start(&settings(json!({ "request_timeout": "300ms" })), vec![rules("receipts", json!({}))]);
    *running.keeper.gate.lock().unwrap() = Some(Arc::new(Semaphore::new(0)));
    let (id, token) = running.plan("receipts");
    let answered = exchange(running.addr(), &request("POST", &format!("/{token}"), &[], b"{}")).await;
    assert_eq!(parse(&answered), Some(answer(503, Unavailable)));
    assert!(answered.to_ascii_lowercase().contains("retry-after: "), "{answered}");
    assert_eq!(*running.keeper.refused.lock().unwrap(), [(id, ArrivalRefusal::Unavailable)]);
    *running.keeper.gate.lock().unwrap() = None;
    assert_eq!(running.post(&format!("/{token}"), &[], b"{}").await, answer(200, Recorded));
}

#[tokio::test]
async fn a_sender_is_answered_only_after_the_arrival_is_written_down() {
    let running = start();
    let gate = Arc::new(Semaphore::new(0));
    *running.keeper.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let (_, token) = running.plan("receipts");
    let path = format!("/{token}");
    let posting = tokio::spawn(async move {
        send_to(running.addr(), &path).await.1 == "recorded" && !running.arrivals().is_empty()
    });
    assert!(!posting.is_finished());
    gate.add_permits(1);
    assert!(posting.await.unwrap());
}

async fn send_to(addr: std::net::SocketAddr, path: &str) -> (u16, String) {
    send(addr, "POST", path, &[], b"{}").await
}

#[tokio::test]
async fn a_sender_that_hangs_up_while_we_write_does_not_undo_the_arrival() {
    let running = start();
    let gate = Arc::new(Semaphore::new(0));
    *running.keeper.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let (_, token) = running.plan("receipts");
    let mut stream = TcpStream::connect(running.addr()).await.unwrap();
    stream.write_all(&request("POST", &format!("/{token}"), &[], b"{}")).await.unwrap();
    let begun = || running.keeper.begun.load(Ordering::SeqCst);
    eventually(|| (begun() == 1).then_some(()).ok_or("nothing begun".into())).await;
    drop(stream);
    gate.add_permits(1);
    running.counted(Recorded, 1).await;
    assert_eq!(running.arrivals().len(), 1);
}

#[tokio::test]
async fn a_stop_writes_down_what_has_arrived_and_cuts_off_who_is_slow() {
    let mut running = start();
    let gate = Arc::new(Semaphore::new(0));
    *running.keeper.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let (_, token) = running.plan("receipts");
    let addr = running.addr();
    let mut slow = TcpStream::connect(addr).await.unwrap();
    slow.write_all(b"POST /x HTTP/1.1\r\ncontent-le").await.unwrap();
    let path = format!("/{token}");
    let posting = tokio::spawn(async move { send_to(addr, &path).await });
    let begun = || running.keeper.begun.load(Ordering::SeqCst);
    eventually(|| (begun() == 1).then_some(()).ok_or("nothing begun".into())).await;
    running.cancel.cancel();
    gate.add_permits(1);
    assert_eq!(posting.await.unwrap(), answer(200, Recorded));
    assert_eq!(read_all(&mut slow).await, "");
    let ended = tokio::time::timeout(super::support::LIMIT, &mut running.task).await;
    ended.expect("the receiver ends").unwrap().unwrap();
}

/// Whether an arrival came before its acceptance is the keeper's to know; the receiver needs a plan, and no more.
#[tokio::test]
async fn trial_09_an_arrival_before_the_acceptance_answer_is_recorded() {
    let running = start();
    let (id, token) = running.plan("receipts");
    let answered_by_acceptance = tokio::sync::oneshot::channel::<()>();
    assert_eq!(running.post(&format!("/{token}"), &[], b"{}").await, answer(200, Recorded));
    answered_by_acceptance.0.send(()).unwrap();
    answered_by_acceptance.1.await.unwrap();
    assert_eq!(running.arrivals()[0].canary_id, id);
}

#[tokio::test]
async fn content_and_correlation_are_checked_of_what_really_came() {
    let expect = json!([
        { "name": "right-canary", "at": { "pointer": "/canary" }, "equals": "id={{ canary_id }}" },
        { "name": "subject", "at": { "header": "x-subject" }, "matches": "^Receipt [0-9]+$" },
        { "name": "no-template", "at": { "body": "whole" }, "must_not_match": "\\{\\{|undefined" },
    ]);
    let receipt = json!({ "expect": expect, "correlation": { "header": "traceparent" } });
    let running = Running::start(&settings(json!({})), vec![rules("receipts", receipt)]);
    let (id, token) = running.plan("receipts");
    let good = json!({ "canary": format!("id={id}") }).to_string();
    let trace = traceparent(id);
    let headers = [("x-subject", "Receipt 12"), ("traceparent", trace.as_str())];
    running.post(&format!("/{token}"), &headers, good.as_bytes()).await;
    let bad = json!({ "canary": "id=another", "text": "Dear undefined" }).to_string();
    let result = running.post(&format!("/{token}"), &[("x-subject", "Receipt")], bad.as_bytes()).await;
    assert_eq!(result, answer(200, Duplicate), "a malformed arrival is an arrival");
    running.post(&format!("/{token}"), &[], b"\xff not text").await;
    let receipts: Vec<_> =
        running.arrivals().into_iter().map(|a| (a.receipt.content, a.receipt.correlated)).collect();
    let all = ["no-template", "right-canary", "subject"].map(str::to_owned);
    let malformed = Content::Malformed { failed: all.into() };
    assert_eq!(
        receipts,
        [(Content::Intact, Some(true)), (malformed.clone(), Some(false)), (malformed, Some(false)),]
    );
}

#[tokio::test]
async fn a_reload_swaps_routes_and_secrets_while_it_runs() {
    let running = start();
    let (_, old) = running.plan("receipts");
    let rotated =
        settings(json!({ "token_secrets": ["the next secret of the tests", super::support::SECRET] }));
    let prepared =
        running.receiver.prepare(&rotated, vec![rules("receipts", json!({})), rules("added", json!({}))]);
    running.receiver.take(prepared.unwrap());
    let (_, added) = running.plan("added");
    for token in [&old, &added] {
        assert_eq!(running.post(&format!("/{token}"), &[], b"").await, answer(200, Recorded));
    }
    let ended = settings(json!({ "token_secrets": ["the next secret of the tests"] }));
    running.receiver.take(running.receiver.prepare(&ended, vec![rules("added", json!({}))]).unwrap());
    assert_eq!(running.post(&format!("/{old}"), &[], b"").await, answer(401, Forged));
    let faulty = settings(json!({ "token_secrets": [] }));
    assert!(running.receiver.prepare(&faulty, vec![]).is_err());
    assert_eq!(
        running.post(&format!("/{added}"), &[], b"").await,
        answer(200, Duplicate),
        "a bad reload changes nothing"
    );
}
