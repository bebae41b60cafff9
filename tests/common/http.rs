//! A small blocking HTTP client for tests, on plain sockets.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// An answer.
#[allow(dead_code, reason = "not every test reads all of it")]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends one request and reads the answer to its end. Fails the test if there is none within 20 seconds.
pub fn request(address: SocketAddr, method: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap_or_else(|e| panic!("connect to {address}: {e}"));
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap_or_else(|e| panic!("{method} {path} was not answered: {e}"));
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer but {text:?}"));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status line");
    // Bodies of a known length only: none of ours is chunked.
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// A GET.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path)
}
