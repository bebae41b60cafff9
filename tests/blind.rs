//! The monitor's own trouble, end to end: what we could not see, or refused ourselves, is never held against the service.

mod readings;
mod ways;

use crate::common::{postgres, world};
use serde_json::Value;
use sqlx::{AnyConnection, Connection};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};
use world::{Place, Shape, World, free_address, process::signal, until};

/// A service that takes everything, and hands each callback address to the test, which delivers as it likes.
struct Service {
    address: SocketAddr,
    callbacks: Receiver<String>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind(free_address()).expect("the address is free");
        let address = listener.local_addr().expect("it is bound");
        let (sender, callbacks) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                thread::spawn(move || accept(stream, &sender));
            }
        });
        Self { address, callbacks }
    }

    /// The path of the next canary's callback.
    fn callback(&self) -> String {
        let url = self.callbacks.recv_timeout(Duration::from_secs(60)).expect("a canary was submitted");
        url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).expect("an address with a path")
    }
}

fn accept(mut stream: TcpStream, callbacks: &Sender<String>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let answer = format!(r#"{{"notification_id":"{}"}}"#, uuid::Uuid::now_v7());
    let head =
        "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length";
    write!(stream, "{head}: {}\r\n\r\n{answer}", answer.len()).ok()?;
    callbacks.send(body["callback_url"].as_str()?.to_owned()).ok()
}

/// Delivers a webhook; the status of the answer, if there is one.
fn deliver(place: &Place, path: &str, body: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(place.receipts).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: sink\r\ncontent-length: {length}\r\n\r\n{body}").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

const WHOLE: &str = r#"{"text": "12.34"}"#;

/// A monitor of a service without a ledger. It plans next to nothing by itself: the test sends by hand.
async fn place(deadline: &'static str, service: SocketAddr) -> (World, Place) {
    let shape = Shape { schedule: "{ every: 24h }".into(), deadline, with_ledger: false, ..Shape::default() };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).expect("the configuration is there");
    let real = world.simulator.addresses().acceptance.to_string();
    assert!(text.contains(&real));
    fs::write(&place.config, text.replace(&real, &service.to_string())).expect("it can be written");
    (world, place)
}

fn until_sighted(place: &Place) {
    until("a message to ourselves", 60, || {
        match place.value("delivery_monitor_observer_up", &[("observer", "receiver/sink")]) {
            Some(1.0) => Ok(()),
            other => Err(format!("{other:?}; log:\n{}", place.log())),
        }
    });
}

/// Sends a canary by hand; its id.
fn send(place: &Place) -> String {
    let sent = place.command(&["canary", "send", "receipts", "--no-wait"]);
    assert!(sent.status.success(), "{sent:?}");
    String::from_utf8(sent.stdout).expect("it is text").trim().to_owned()
}

fn show(place: &Place, id: &str) -> Value {
    let shown = place.command(&["canary", "show", id, "--json"]);
    serde_json::from_slice(&shown.stdout).unwrap_or(Value::Null)
}

/// Waits for the verdict, and says it.
fn verdict(place: &Place, id: &str) -> String {
    let mut verdict = String::new();
    until(&format!("a verdict on {id}"), 60, || {
        let canary = show(place, id);
        match canary["verdict"].as_str() {
            Some(word) => {
                verdict = word.to_owned();
                Ok(())
            }
            None => Err(format!("{canary}; log:\n{}", place.log())),
        }
    });
    verdict
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_we_are_restarted_is_not_held_against_the_service() {
    let service = Service::start();
    let (_world, place) = place("4s", service.address).await;
    let mut monitor = place.serve();
    until_sighted(&place);
    let id = send(&place);
    let path = service.callback();
    assert_eq!(monitor.terminate(), Some(0));
    assert_eq!(deliver(&place, &path, WHOLE), None, "nobody listens");
    let _again = place.serve();
    assert_eq!(verdict(&place, &id), "undetermined");
    // With our own sight whole, the same silence is the service's.
    let id = send(&place);
    assert_eq!(verdict(&place, &id), "overdue");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_late_because_we_were_stopped_is_not_late() {
    let service = Service::start();
    let (_world, place) = place("3s", service.address).await;
    let monitor = place.serve();
    until_sighted(&place);
    let id = send(&place);
    let path = service.callback();
    signal(monitor.id(), "STOP");
    let stopped = Instant::now();
    let (delivering, to) = (place.clone(), path.clone());
    let delivered = thread::spawn(move || deliver(&delivering, &to, WHOLE));
    until("its deadline to be over, and then some", 60, || {
        let gone = stopped.elapsed();
        if gone > Duration::from_secs(7) { Ok(()) } else { Err(format!("{gone:?}")) }
    });
    signal(monitor.id(), "CONT");
    // Its own limits may have run out while it stood still: it then asks the sender to come again, and knows that it came.
    let answered = delivered.join().expect("it ends");
    assert!(matches!(answered, Some(200 | 503)), "{answered:?}");
    assert_eq!(verdict(&place, &id), "undetermined");
    assert!(place.log().contains("process_stalled"), "{}", place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_we_could_not_write_down_is_not_missing() {
    let service = Service::start();
    let (world, place) = place("12s", service.address).await;
    let _monitor = place.serve();
    until_sighted(&place);
    let id = send(&place);
    let path = service.callback();
    sqlx::any::install_default_drivers();
    let store = format!("sqlite:{}", world.folder.path().join("monitor.db").display());
    let mut other = AnyConnection::connect(&store).await.expect("the store is there");
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("it can be locked");
    assert_eq!(deliver(&place, &path, WHOLE), Some(503));
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.expect("it is free again");
    assert_eq!(verdict(&place, &id), "undetermined");
    let shown = place.command(&["canary", "show", &id]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("we answered 503") && text.contains("our own trouble"), "{text}");
    // The sender comes again after all.
    assert_eq!(deliver(&place, &path, WHOLE), Some(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_locked_is_not_told_as_a_broken_way() {
    let service = Service::start();
    let (world, place) = place("12s", service.address).await;
    let _monitor = place.serve();
    until_sighted(&place);
    sqlx::any::install_default_drivers();
    let store = format!("sqlite:{}", world.folder.path().join("monitor.db").display());
    let mut other = AnyConnection::connect(&store).await.expect("the store is there");
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("it can be locked");
    until("both to be told", 60, || {
        let log = place.log();
        let is_told = log.contains("\"store_down\"") && log.contains("\"observer_down\"");
        if is_told { Ok(()) } else { Err(log) }
    });
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.expect("it is free again");
    let log = place.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("\"observer_down\"")).collect();
    let is_true = |line: &&str| line.contains("could not be written down: the store is down, locked or slow");
    assert!(told.iter().all(is_true), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_for_us_has_arrived() {
    let service = Service::start();
    let (_world, place) = place("3s", service.address).await;
    let _monitor = place.serve();
    until_sighted(&place);
    let id = send(&place);
    let path = service.callback();
    assert_eq!(deliver(&place, &path, &"x".repeat(1_500_000)), Some(413));
    assert_eq!(verdict(&place, &id), "malformed");
    let shown = place.command(&["canary", "show", &id]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("max_body_bytes"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_we_can_not_reach_is_not_refused_while_our_own_network_is_dead() {
    let nobody = free_address();
    let (_world, place) = place("2s", nobody).await;
    let text = fs::read_to_string(&place.config).expect("the configuration is there");
    let public = format!("public_url: http://{}/receipts", place.receipts);
    assert!(text.contains(&public));
    let dead = format!("public_url: http://{}/receipts", free_address());
    fs::write(&place.config, text.replace(&public, &dead)).expect("it can be written");
    let mut monitor = place.serve();
    until("the monitor to be ready", 60, || match place.probe("/ready") {
        Some(200) => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", place.log())),
    });
    let id = send(&place);
    assert_eq!(verdict(&place, &id), "undetermined");
    assert_eq!(monitor.terminate(), Some(0));
    // With our own network alive it is the service's.
    fs::write(&place.config, text).expect("it can be written");
    let _again = place.serve();
    until_sighted(&place);
    let id = send(&place);
    assert_eq!(verdict(&place, &id), "refused");
}
