//! The public address of a listener, which can be shut: what connects then is refused, and what is connected is cut.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A way to a listener.
pub struct Gate {
    /// Where it is.
    pub address: SocketAddr,
    is_shut: Arc<AtomicBool>,
    under_way: Arc<Mutex<JoinSet<()>>>,
}

impl Gate {
    /// An open gate that leads nowhere yet.
    pub async fn new() -> (Self, TcpListener) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        (Self { address, is_shut: Arc::default(), under_way: Arc::default() }, listener)
    }

    /// Leads what comes to this listener from now on.
    pub fn lead(&self, listener: TcpListener, to: SocketAddr) {
        let (is_shut, under_way) = (Arc::clone(&self.is_shut), Arc::clone(&self.under_way));
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                if is_shut.load(Ordering::Acquire) {
                    continue;
                }
                let way = async move {
                    if let Ok(mut to) = TcpStream::connect(to).await {
                        // Whoever is cut off sees it.
                        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                    }
                };
                under_way.lock().unwrap_or_else(PoisonError::into_inner).spawn(way);
            }
        });
    }

    /// Shuts it.
    pub fn shut(&self) {
        self.is_shut.store(true, Ordering::Release);
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Opens it again.
    pub fn open(&self) {
        self.is_shut.store(false, Ordering::Release);
    }
}
