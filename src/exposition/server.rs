//! `/metrics`, on a listener of its own. It reads what is in memory, and so answers whatever else is down.

use super::bounded::{self, Limits};
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus::{Registry, TextEncoder};
use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task};

/// Prometheus 3 refuses a scrape without it.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const LIMITS: Limits = Limits {
    connections: 32,
    headers: Duration::from_secs(5),
    lifetime: Duration::from_secs(60),
    drain: Duration::from_secs(2),
};

#[derive(Clone)]
struct Shared {
    registry: Registry,
    /// One page is made at a time: at a thousand routes each is megabytes.
    one_at_a_time: Arc<Semaphore>,
}

/// The server of `/metrics`, bound and not yet running.
pub struct MetricsServer {
    listener: std::net::TcpListener,
    registry: Registry,
}

impl MetricsServer {
    /// Binds the listener.
    ///
    /// # Errors
    /// When the address can't be had.
    pub fn bind(address: SocketAddr, registry: Registry) -> io::Result<Self> {
        Ok(Self { listener: bounded::bind(address)?, registry })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// When the system doesn't say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is ready.
    ///
    /// # Errors
    /// When the listener can't be handed to the runtime.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let shared = Shared { registry: self.registry, one_at_a_time: Arc::new(Semaphore::new(1)) };
        let router = Router::new().route("/metrics", get(metrics)).with_state(shared);
        bounded::serve(self.listener, router, LIMITS, stop).await
    }
}

/// The page as text.
///
/// # Errors
/// When a family has no name or no sample, which the registry prevents.
pub fn render(registry: &Registry) -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&registry.gather())
}

async fn metrics(State(shared): State<Shared>) -> Response {
    // The semaphore is never closed; were it, pages would only be made at the same time.
    let _turn = shared.one_at_a_time.acquire().await;
    let registry = shared.registry.clone();
    match task::spawn_blocking(move || render(&registry)).await {
        Ok(Ok(page)) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
        Ok(Err(error)) => unavailable(&error.to_string()),
        Err(error) => unavailable(&error.to_string()),
    }
}

fn unavailable(reason: &str) -> Response {
    tracing::error!(event = "metrics_failed", reason, "the page of metrics could not be made");
    (StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made; the log says why\n").into_response()
}
