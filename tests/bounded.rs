//! The small server behind `/metrics` and the probes: what each of its limits does.

use axum::{Router, routing::get};
use delivery_canary::exposition::bounded::{Limits, bind, serve};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};
use tokio::{
    runtime::Runtime,
    sync::{Notify, oneshot},
    task::JoinHandle,
};

const LONG: Duration = Duration::from_secs(3_600);
const SHORT: Duration = Duration::from_millis(50);
const PATIENT: Limits = Limits { connections: 1_000, headers: LONG, lifetime: LONG, drain: LONG };

/// A running server. `/held` is answered once it is let go.
struct Bench {
    runtime: Runtime,
    address: SocketAddr,
    entered: Arc<Notify>,
    let_go: Arc<Notify>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (entered, let_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let held = {
            let (entered, let_go) = (Arc::clone(&entered), Arc::clone(&let_go));
            async move || {
                entered.notify_one();
                let_go.notified().await;
                "done"
            }
        };
        let router = Router::new().route("/held", get(held)).route("/", get(async || "here"));
        let (stop, stopped) = oneshot::channel();
        let served = runtime.spawn(serve(listener, router, limits, async {
            let _ = stopped.await;
        }));
        Self { runtime, address, entered, let_go, stop, served }
    }

    fn send(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }
}

/// What comes until the server closes the connection. Fails the test if it does not within 20 seconds.
fn until_closed(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => panic!("the connection is still open"),
        // An end with what we sent still unread is a reset.
        Ok(_) | Err(_) => String::from_utf8(text).unwrap(),
    }
}

const HALF: &str = "GET / HTTP/1.1\r\nHo";
const WHOLE: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
const HELD: &str = "GET /held HTTP/1.1\r\nHost: test\r\n\r\n";

#[test]
fn one_connection_too_many_ends_the_oldest() {
    let bench = Bench::new(Limits { connections: 4, ..PATIENT });
    let mut slow: Vec<_> = (0..10).map(|_| bench.send(HALF)).collect();
    slow[..6].iter_mut().for_each(|stream| assert_eq!(until_closed(stream), ""));
    assert!(until_closed(&mut bench.send(WHOLE)).ends_with("here"));
    slow[9].write_all(b"st: test\r\n\r\n").unwrap();
    assert!(until_closed(&mut slow[9]).ends_with("here"), "one that is not among the oldest goes on");
}

#[test]
fn headers_that_do_not_come_end_the_connection() {
    let bench = Bench::new(Limits { headers: SHORT, ..PATIENT });
    for text in ["", HALF] {
        until_closed(&mut bench.send(text));
    }
}

#[test]
fn a_connection_does_not_outlive_its_time() {
    let bench = Bench::new(Limits { lifetime: SHORT, ..PATIENT });
    assert_eq!(until_closed(&mut bench.send(HELD)), "");
}

#[test]
fn a_connection_is_for_one_request() {
    let bench = Bench::new(PATIENT);
    let answer = until_closed(&mut bench.send(WHOLE));
    assert!(
        answer.to_ascii_lowercase().contains("connection: close") && answer.ends_with("here"),
        "{answer}"
    );
}

#[test]
fn a_stop_lets_an_answer_under_way_end_and_takes_nothing_new() {
    let bench = Bench::new(PATIENT);
    let mut held = bench.send(HELD);
    bench.runtime.block_on(bench.entered.notified());
    bench.stop.send(()).unwrap();
    // It listens no more: an attempt is refused once the stop was seen.
    let refused = (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        TcpStream::connect(bench.address).is_err()
    });
    assert!(refused, "it still listens");
    bench.let_go.notify_one();
    assert!(until_closed(&mut held).ends_with("done"));
    bench.runtime.block_on(bench.served).unwrap().unwrap();
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let bench = Bench::new(Limits { drain: SHORT, ..PATIENT });
    let mut held = bench.send(HELD);
    bench.runtime.block_on(bench.entered.notified());
    bench.stop.send(()).unwrap();
    bench.runtime.block_on(bench.served).unwrap().unwrap();
    assert_eq!(until_closed(&mut held), "");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let bench = Bench::new(PATIENT);
    let error = bind(bench.address).unwrap_err().to_string();
    assert!(error.contains(&bench.address.to_string()), "{error}");
}
