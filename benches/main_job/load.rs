//! Load: HTTP clients, and a bare way to post.

use anyhow::{Context, Result, bail};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};

/// How long each measurement under load runs.
pub const SPAN: Duration = Duration::from_secs(10);

/// How many requests are under way at a time.
pub const AT_A_TIME: usize = 64;

fn builder(total: Duration) -> Result<reqwest::ClientBuilder> {
    // Only plain HTTP is spoken here, so the TLS part trusts nobody.
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().http1_only();
    Ok(builder.timeout(total))
}

/// A client that uses its connections again.
pub fn client(total: Duration) -> Result<reqwest::Client> {
    Ok(builder(total)?.build()?)
}

/// A client that makes a connection for each request, as the monitor does.
pub fn client_without_pool(total: Duration) -> Result<reqwest::Client> {
    Ok(builder(total)?.pool_max_idle_per_host(0).build()?)
}

/// Does something again and again, so many at a time, for [`SPAN`] or until it says that there is no more to do; how often it was done, and
/// how long that took.
pub async fn repeat<F, Fut>(each: F) -> Result<(usize, Duration)>
where
    F: Fn(usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<bool>> + Send,
{
    let (each, next, began) = (Arc::new(each), Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut tasks = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (each, next) = (Arc::clone(&each), Arc::clone(&next));
        tasks.spawn(async move {
            let mut done = 0;
            while began.elapsed() < SPAN {
                if !each(next.fetch_add(1, Ordering::Relaxed)).await? {
                    break;
                }
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(of_task) = tasks.join_next().await {
        done += of_task??;
    }
    Ok((done, began.elapsed()))
}

/// Posts over a connection of its own, with as little work as can be, and gives the answer's status.
pub async fn post(address: SocketAddr, path: &str, body: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(256);
    stream.read_to_end(&mut answer).await?;
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    status.context("an answer without a status")
}

/// Refuses any status but 200.
pub fn ok(status: u16) -> Result<()> {
    if status != 200 {
        bail!("a request was answered with {status} and not with 200");
    }
    Ok(())
}
