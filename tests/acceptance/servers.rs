//! Real servers on loopback that behave as told, one behaviour a connection.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// What a server does with one connection.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Reads the request and writes these bytes.
    Answer(Vec<u8>),
    /// Reads the request, writes these bytes and stalls.
    AnswerAndStall(Vec<u8>),
    /// Writes these bytes without having read anything.
    Greet(Vec<u8>),
    /// Never answers.
    Nothing,
    /// Closes at once.
    CloseBeforeReading,
    /// Reads the request and closes.
    CloseAfterReading,
}

/// An answer with a status line, these headers and a body with its length.
pub fn answer(status: u16, headers: &str, body: &str) -> Behaviour {
    let length = body.len();
    Behaviour::Answer(
        format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes(),
    )
}

/// A server, ended when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Each connection has the next behaviour; the last one stays.
    pub async fn start(behaviours: Vec<Behaviour>) -> Self {
        Self::start_with(behaviours, None).await
    }

    /// The same behind TLS.
    pub async fn start_tls(behaviours: Vec<Behaviour>, config: Arc<rustls::ServerConfig>) -> Self {
        Self::start_with(behaviours, Some(TlsAcceptor::from(config))).await
    }

    async fn start_with(behaviours: Vec<Behaviour>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = seen.clone();
        let task = tokio::spawn(async move {
            for n in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let behaviour = behaviours[n.min(behaviours.len() - 1)].clone();
                let (tls, record) = (tls.clone(), record.clone());
                tokio::spawn(async move {
                    match tls {
                        None => behave(stream, behaviour, &record).await,
                        // A client that does not trust us breaks off: nothing to do then.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                behave(stream, behaviour, &record).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, seen, task }
    }

    /// What arrived so far, a text a connection; empty for one that sent nothing and was closed.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// What arrived once there were so many connections.
    pub async fn seen_after(&self, connections: usize) -> Vec<String> {
        for _ in 0..1000 {
            if self.seen().len() >= connections {
                return self.seen();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{connections} connections did not come; the last state: {:?}", self.seen());
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn behave<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    behaviour: Behaviour,
    record: &Mutex<Vec<String>>,
) {
    if matches!(behaviour, Behaviour::CloseBeforeReading) {
        record.lock().unwrap().push(String::new());
        return;
    }
    if let Behaviour::Greet(bytes) = &behaviour {
        let _ = stream.write_all(bytes).await;
    }
    let request = read_request(&mut stream).await;
    record.lock().unwrap().push(request);
    match behaviour {
        Behaviour::Answer(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Behaviour::AnswerAndStall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
            until_closed(stream).await;
        }
        Behaviour::Nothing => until_closed(stream).await,
        Behaviour::Greet(_) | Behaviour::CloseBeforeReading | Behaviour::CloseAfterReading => {}
    }
}

async fn until_closed<S: AsyncRead + Unpin>(mut stream: S) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

/// Head and body of a request; what there was of it, if the connection ended before.
async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

/// An address to which no connection comes to be: its queue is full, so that the kernel drops what knocks.
pub struct BlackHole {
    pub address: SocketAddr,
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl BlackHole {
    pub async fn open() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..64 {
            let limit = std::time::Duration::from_millis(300);
            match tokio::time::timeout(limit, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => waiting.push(stream),
                Ok(Err(error)) => panic!("the queue could not be filled: {error}"),
                Err(_) => return Self { address, _listener: listener, _waiting: waiting },
            }
        }
        panic!("the queue took 64 connections and was not full");
    }
}
