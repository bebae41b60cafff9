//! A storm of requests that no honest sender would make.

use super::support::{LIMIT, Running, exchange, parse, request, rules, settings};
use delivery_canary::receipt::stats::ArrivalResult;
use serde_json::json;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
};

const STORM: usize = 20_000;
const AT_A_TIME: usize = 1_000;
const MOST_BYTES: u64 = 100 * 1024 * 1024;

/// The most memory that this process ever had, clients of the storm included.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux /proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a VmHWM line");
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// The kinds of bad request. The last two are slow: they never send the rest.
fn kinds() -> Vec<Vec<u8>> {
    let forged = format!("/hooks/{}", "a".repeat(92));
    vec![
        b"\x00\xff\xfe not HTTP at all \r\n\r\n".to_vec(),
        request("POST", "/hooks/short", &[], b"{}"),
        request("POST", &forged, &[], b"{}"),
        request("POST", "/hooks", &[], &vec![b'x'; 300_000]),
        request("POST", "/hooks", &[], "[".repeat(60_000).as_bytes()),
        request("POST", "/hooks", &[], format!("[{}]", "0,".repeat(30_000)).as_bytes()),
        format!("POST /hooks HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(100_000)).into_bytes(),
        b"POST /hooks HTTP/1.1\r\nhost: si".to_vec(),
        b"POST /hooks HTTP/1.1\r\nhost: sink\r\ncontent-length: 60000\r\n\r\nhalf".to_vec(),
    ]
}

/// Sends one and waits for its end. How the receiver ends it is of no interest here.
async fn bad(addr: SocketAddr, bytes: &[u8]) {
    let Ok(mut stream) = TcpStream::connect(addr).await else { return };
    let _ = stream.write_all(bytes).await;
    let _ = stream.read(&mut [0; 512]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_20_000_bad_requests_stays_in_bounds_and_lets_good_ones_through() {
    let routes =
        vec![rules("receipts", json!({})), rules("by-body", json!({ "token_in": { "pointer": "/t" } }))];
    let running = Running::start(&settings(json!({})), routes);
    let addr = running.addr();
    // The clients share their bytes, so that the memory which is measured is the receiver's.
    let kinds = Arc::new(kinds());
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut storm = JoinSet::new();
    let mut good = 0;
    for n in 0..STORM {
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let kinds = Arc::clone(&kinds);
        storm.spawn(async move {
            bad(addr, &kinds[n % kinds.len()]).await;
            drop(place);
        });
        while storm.try_join_next().is_some() {}
        if n % 500 == 499 {
            let (_, token) = running.plan("receipts");
            let answer = exchange_within(addr, &token).await;
            assert_eq!(answer, Some((200, "recorded".into())), "the good one after {n} bad ones");
            good += 1;
        }
    }
    tokio::time::timeout(LIMIT, async { while storm.join_next().await.is_some() {} })
        .await
        .expect("the storm ends");
    let stats = running.receiver.stats();
    let counts: Vec<_> = stats.all().map(|(result, n)| (result.word(), n)).collect();
    assert_eq!(stats.of(ArrivalResult::Recorded), good, "{counts:?}");
    for result in [
        ArrivalResult::MalformedRequest,
        ArrivalResult::MalformedToken,
        ArrivalResult::Forged,
        ArrivalResult::TooLarge,
        ArrivalResult::CrowdedOut,
    ] {
        assert!(stats.of(result) > 0, "{counts:?}");
    }
    println!("{counts:?}, peak {} MiB", peak_bytes() / 1024 / 1024);
    assert!(peak_bytes() < MOST_BYTES, "peak memory was {} bytes; {counts:?}", peak_bytes());
}

/// A good request with the time that an honest sender would give it.
async fn exchange_within(addr: SocketAddr, token: &str) -> Option<(u16, String)> {
    let bytes = request("POST", &format!("/hooks/{token}"), &[], b"{}");
    let answer = tokio::time::timeout(Duration::from_secs(10), exchange(addr, &bytes)).await.ok()?;
    parse(&answer)
}

#[tokio::test]
async fn slow_senders_that_hold_every_place_give_way_to_one_who_is_ready() {
    let running =
        Running::start(&settings(json!({ "max_connections": 8 })), vec![rules("receipts", json!({}))]);
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(running.addr()).await.unwrap();
        stream.write_all(b"POST /x HTTP/1.1\r\n").await.unwrap();
        held.push(stream);
    }
    for _ in 0..3 {
        let (_, token) = running.plan("receipts");
        assert_eq!(exchange_within(running.addr(), &token).await, Some((200, "recorded".into())));
    }
    running.counted(ArrivalResult::CrowdedOut, 1).await;
    assert_eq!(running.receiver.stats().of(ArrivalResult::CrowdedOut), 1, "one place is enough for them all");
}
