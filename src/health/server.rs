//! The probes' server: a thread with a small runtime of its own, which shares nothing with the program's but a few atomics.

use super::report::{Probe, Startup, judge};
use crate::{
    exposition::bounded::{self, Limits},
    monitor::progress::Progress,
};
use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use std::{io, net::SocketAddr, sync::Arc, thread, time::Duration};
use tokio::sync::oneshot;

/// A probe is answered within its client's limit, often a second, or not at all.
const LIMITS: Limits = Limits {
    connections: 64,
    headers: Duration::from_secs(2),
    lifetime: Duration::from_secs(5),
    drain: Duration::from_millis(500),
};

/// The server of the probes, bound and not yet running.
pub struct HealthServer {
    listener: std::net::TcpListener,
    progress: Arc<Progress>,
}

/// The running thread of the probes. It ends when this is stopped or dropped.
pub struct HealthThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl HealthServer {
    /// Binds the listener.
    ///
    /// # Errors
    /// When the address can't be had.
    pub fn bind(address: SocketAddr, progress: Arc<Progress>) -> io::Result<Self> {
        Ok(Self { listener: bounded::bind(address)?, progress })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// When the system doesn't say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread or no runtime.
    pub fn spawn(self) -> io::Result<HealthThread> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("health".into()).spawn(move || {
            let stopped = async {
                // The sender gone is a stop too.
                let _ = stopped.await;
            };
            let served =
                runtime.block_on(bounded::serve(self.listener, router(self.progress), LIMITS, stopped));
            if let Err(error) = served {
                tracing::error!(event = "health_failed", %error, "the probes can't be answered");
            }
        })?;
        Ok(HealthThread { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for HealthThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panicked: the probes were already unanswered, and who stops it can do nothing about it.
            let _ = thread.join();
        }
    }
}

fn router(progress: Arc<Progress>) -> Router {
    let startup = Arc::new(Startup::default());
    let probe = |probe: Probe| {
        let (progress, startup) = (Arc::clone(&progress), Arc::clone(&startup));
        get(move || std::future::ready(answer(probe, &progress, &startup)))
    };
    Router::new()
        .route("/startup", probe(Probe::Startup))
        .route("/ready", probe(Probe::Ready))
        .route("/live", probe(Probe::Live))
}

fn answer(probe: Probe, progress: &Progress, startup: &Startup) -> Response {
    let report = judge(probe, &progress.read(), startup);
    let status = if report.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(report)).into_response()
}
