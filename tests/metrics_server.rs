//! The server of /metrics.

use crate::common::{http, page_bench, scrape};
use delivery_canary::exposition::server::MetricsServer;
use page_bench::full_bench;
use scrape::Scrape;
use std::{io::Write, net::TcpStream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_answers_get_only_and_slow_clients_hold_nobody_up() {
    let (_, bench) = full_bench();
    let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), bench.registry.clone()).unwrap();
    let address = server.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let asked = tokio::task::spawn_blocking(move || {
        // More than the limit: each sends half a head and then nothing.
        let slow: Vec<_> = (0..100)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /metrics HTTP/1.1\r\nHos").unwrap();
                stream
            })
            .collect();
        let answer = http::get(address, "/metrics");
        assert_eq!(answer.status, 200);
        assert!(
            answer.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
            "{}",
            answer.head
        );
        Scrape::read(&answer.body).unwrap();
        assert_eq!(http::request(address, "POST", "/metrics").status, 405);
        assert_eq!(http::get(address, "/").status, 404);
        drop(slow);
    });
    asked.await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).is_err(), "a stopped server listens no more");
}
