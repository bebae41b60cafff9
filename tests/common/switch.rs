//! An address that leads to one server, and after a failover to another.

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch::{Sender, channel},
};

/// Passes connections on to where it leads now. When that changes, all connections are cut.
pub struct Switch {
    to: Sender<Option<String>>,
    /// Host and port, as they stand in a URL.
    pub address: String,
}

impl Switch {
    /// A switch that leads to this server.
    pub async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address").to_string();
        let (to, seen) = channel(Some(server.to_owned()));
        tokio::spawn(async move {
            loop {
                let Ok((mut client, _)) = listener.accept().await else { return };
                let mut seen = seen.clone();
                let Some(server) = seen.borrow_and_update().clone() else { continue };
                tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(server).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = seen.changed() => {}
                    }
                });
            }
        });
        Self { to, address }
    }

    /// Leads to another server, or to none.
    pub fn lead_to(&self, server: Option<&str>) {
        self.to.send_replace(server.map(str::to_owned));
    }
}
