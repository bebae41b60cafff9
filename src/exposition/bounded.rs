//! A small HTTP/1 server that no client can hold up: a connection is for one request, its headers must come in time, it lives
//! for a while only, and when there are too many the oldest goes.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{collections::VecDeque, future::Future, io, net::SocketAddr, pin::pin, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time,
};

/// What a server grants its clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most connections at a time. One more ends the oldest: a client that does as it should is gone long before.
    pub connections: usize,
    /// How long the headers of the request may take.
    pub headers: Duration,
    /// How long a connection may live, a slow reader's too.
    pub lifetime: Duration,
    /// How long a stop waits for answers that are under way.
    pub drain: Duration,
}

/// Binds a listener that a runtime can take over.
///
/// # Errors
/// When the address can't be had; the error names it.
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("can't listen on {address}: {e}"));
    let listener = std::net::TcpListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    Ok(listener)
}

/// Serves until `stop` is ready, then takes no more connections and lets those under way end.
///
/// # Errors
/// When the listener can't be handed to the runtime.
pub async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of descriptors, as a rule: connections that end give some back, and asking at once would only spin.
                    time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                by_age.retain(|connection| !connection.is_finished());
                while by_age.len() >= limits.connections.max(1) {
                    if let Some(oldest) = by_age.pop_front() {
                        oldest.abort();
                    }
                }
                by_age.push_back(connections.spawn(connection(stream, router.clone(), limits)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    // What is not done by then is cut off when the set is dropped.
    let _ = time::timeout(limits.drain, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

async fn connection(stream: TcpStream, router: Router, limits: Limits) {
    // Without it a small answer may wait for the client's acknowledgement; that it can't be set harms nothing.
    let _ = stream.set_nodelay(true);
    let served = http1::Builder::new()
        // A scrape and a probe are one request each. A connection kept for the next would be closed by the one side just when
        // the other uses it again, once in a while.
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_headers(64)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that goes away or is too slow is no matter of ours.
    let _ = time::timeout(limits.lifetime, served).await;
}
