//! A TCP proxy in front of a database: the way by which readers reach the ledger, so that it can be cut.

use super::gate::Serve;
use async_trait::async_trait;
use tokio::{io::copy_bidirectional, net::TcpStream};
use tokio_util::sync::CancellationToken;

/// Passes bytes between a connection and the database.
pub struct TcpProxy {
    /// Host and port of the database.
    pub upstream: (String, u16),
}

#[async_trait]
impl Serve for TcpProxy {
    async fn serve(&self, mut stream: TcpStream, stop: CancellationToken) {
        let Ok(mut upstream) = TcpStream::connect((self.upstream.0.as_str(), self.upstream.1)).await else {
            return;
        };
        // An error is the end of either side: both are closed then, which is all that a proxy can tell.
        tokio::select! {
            _ = copy_bidirectional(&mut stream, &mut upstream) => {}
            () = stop.cancelled() => {}
        }
    }
}
