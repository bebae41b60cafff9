//! A listener that can be closed and opened again on the same port while the program runs.

use async_trait::async_trait;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Mutex, Semaphore},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What is done with each connection.
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    /// Serves one connection until it ends; `stop` asks it to end after the current exchange.
    async fn serve(&self, stream: TcpStream, stop: CancellationToken);
}

/// Why a listener can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("the {name} listener can't be opened on {address}: {source}; is the port taken?")]
pub struct GateError {
    name: &'static str,
    address: SocketAddr,
    source: io::Error,
}

/// A listener that can be closed for a while.
pub struct Gate {
    name: &'static str,
    address: SocketAddr,
    handler: Arc<dyn Serve>,
    most_connections: usize,
    open: Mutex<Option<Open>>,
    /// Bound and never listening: it keeps the port ours while the listener is closed, and connections are refused.
    _held: TcpSocket,
}

struct Open {
    stop: CancellationToken,
    cut: CancellationToken,
    task: JoinHandle<()>,
}

impl Gate {
    /// Binds and opens a listener. Port 0 takes a free one.
    pub async fn open_at(
        name: &'static str,
        address: SocketAddr,
        most_connections: usize,
        handler: Arc<dyn Serve>,
    ) -> Result<Self, GateError> {
        let error = |source| GateError { name, address, source };
        let held = bound(address).map_err(error)?;
        let address = held.local_addr().map_err(error)?;
        let gate = Self { name, address, handler, most_connections, open: Mutex::new(None), _held: held };
        gate.open().await?;
        Ok(gate)
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens it, unless it is open.
    pub async fn open(&self) -> Result<(), GateError> {
        let mut open = self.open.lock().await;
        if open.is_some() {
            return Ok(());
        }
        let listening = bound(self.address).and_then(|socket| socket.listen(1_024));
        let listener =
            listening.map_err(|source| GateError { name: self.name, address: self.address, source })?;
        let (stop, cut) = (CancellationToken::new(), CancellationToken::new());
        let handler = Arc::clone(&self.handler);
        let task = tokio::spawn(accept(listener, handler, self.most_connections, stop.clone(), cut.clone()));
        *open = Some(Open { stop, cut, task });
        Ok(())
    }

    /// Closes it at once: its connections are cut, new ones are refused when this returns.
    pub async fn close(&self) {
        self.end(Duration::ZERO).await;
    }

    /// Closes it, and gives what is under way so much time to end.
    pub async fn end(&self, grace: Duration) {
        let mut open = self.open.lock().await;
        let Some(Open { stop, cut, mut task }) = open.take() else {
            return;
        };
        stop.cancel();
        if tokio::time::timeout(grace, &mut task).await.is_err() {
            cut.cancel();
            // An error here is a panic of the accepting task, which the runtime has reported.
            let _ = task.await;
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(open) = self.open.get_mut() {
            open.stop.cancel();
            open.cut.cancel();
        }
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accept(
    listener: TcpListener,
    handler: Arc<dyn Serve>,
    most: usize,
    stop: CancellationToken,
    cut: CancellationToken,
) {
    let (places, connections) = (Arc::new(Semaphore::new(most)), TaskTracker::new());
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            next = next => next,
        };
        let Ok((stream, _)) = accepted else {
            // No descriptor is free, or the peer went away: the next round tries again, not in a tight loop.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (handler, stop, cut) = (Arc::clone(&handler), stop.clone(), cut.clone());
        connections.spawn(async move {
            tokio::select! {
                () = cut.cancelled() => {}
                () = handler.serve(stream, stop) => {}
            }
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}
