//! The HTTP listener to which the service delivers webhooks.
//!
//! One connection carries one request. So no idle connection is ever closed under a sender that is about to use it again,
//! which would be an arrival lost by us; and a connection has but two phases, reading its request and answering it.

mod answer;
mod body;
mod connections;

use super::{
    Keeper,
    rules::{RouteRules, Rules, RulesError},
    self_receipt::{SelfReceipt, SelfReceiptError},
    stats::{ArrivalResult, ReceiverStats},
    token::TokenSigner,
};
use crate::{
    config::receipt::WebhookReceiver as Settings,
    domain::route::{CanaryId, Location, RouteName},
};
use answer::{Answerer, Limits};
use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use connections::{Connections, Seat};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{future::poll_fn, io, net::SocketAddr, pin::pin, sync::Arc, task::Poll, time::Duration};
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Most bytes that are held of a request while its head is read.
const HEAD_BYTES: usize = 16 * 1024;
/// Most time that a head may take; less where the whole request has less.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// Most time that the keeper may take; less where the whole request has less.
const KEEPER_LIMIT: Duration = Duration::from_secs(5);
/// How long requests that are being read may go on after a stop.
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// How many connections the system may hold for us, ready to be accepted. More than that, and in a storm a good one would
/// have to come a second time, seconds later.
const BACKLOG: u32 = 1024;
/// How long to wait after the system had no file or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a receiver can't be.
#[derive(Debug, Error)]
pub enum ReceiverError {
    /// Its address can't be had.
    #[error("receiver `{name}` can't listen on {address}: {source}; is it taken by another process?")]
    Bind {
        /// The receiver.
        name: String,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Its rules can't be used.
    #[error("receiver `{name}`: {source}")]
    Rules {
        /// The receiver.
        name: String,
        /// What is wrong.
        source: RulesError,
    },
}

/// New rules and limits of a receiver, which are sound.
#[derive(Debug)]
pub struct Prepared {
    rules: Rules,
    limits: Limits,
}

/// A webhook receiver: bound when it is made, and answering while [`run`](Self::run) runs.
#[derive(Debug)]
pub struct WebhookReceiver {
    name: String,
    listener: TcpListener,
    local_addr: SocketAddr,
    rules: ArcSwap<Rules>,
    limits: ArcSwap<Limits>,
    stats: Arc<ReceiverStats>,
    max_connections: usize,
}

impl WebhookReceiver {
    /// Binds the address, in a runtime. Nothing is answered before it runs; the system holds what comes until then.
    pub fn bind(name: &str, settings: &Settings, routes: Vec<RouteRules>) -> Result<Self, ReceiverError> {
        let rules = rules(name, settings, routes)?;
        let bound =
            listen(settings.listen).and_then(|listener| listener.local_addr().map(|addr| (listener, addr)));
        let (listener, local_addr) = bound.map_err(|source| ReceiverError::Bind {
            name: name.to_owned(),
            address: settings.listen,
            source,
        })?;
        Ok(Self {
            name: name.to_owned(),
            listener,
            local_addr,
            rules: ArcSwap::from_pointee(rules),
            limits: ArcSwap::from_pointee(limits(settings)),
            stats: Arc::default(),
            max_connections: settings.max_connections,
        })
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What became of its requests.
    pub fn stats(&self) -> Arc<ReceiverStats> {
        Arc::clone(&self.stats)
    }

    /// Makes new rules, secrets and limits, which are [taken](Self::take) when those of all receivers are sound.
    pub fn prepare(&self, settings: &Settings, routes: Vec<RouteRules>) -> Result<Prepared, ReceiverError> {
        Ok(Prepared { rules: rules(&self.name, settings, routes)?, limits: limits(settings) })
    }

    /// Takes new rules, secrets and limits for the requests from now on. Those being judged keep the rules that they have.
    /// The address and the number of connections are those of the start.
    pub fn take(&self, prepared: Prepared) {
        self.rules.store(Arc::new(prepared.rules));
        self.limits.store(Arc::new(prepared.limits));
    }

    /// The signer of its tokens, as the rules now have it.
    pub fn signer(&self) -> TokenSigner {
        self.rules.load().signer().clone()
    }

    /// The token for a canary of this route.
    pub fn issue(&self, canary_id: CanaryId, route: &RouteName, expires_at: DateTime<Utc>) -> String {
        self.rules.load().signer().issue(canary_id, route, expires_at)
    }

    /// The address to which the service delivers the canary of this token.
    pub fn callback_url(&self, token: &str) -> String {
        self.rules.load().public_url().with(token)
    }

    /// What sends messages to ourselves from this place through its public address. Make a new one after a reload.
    pub fn self_receipt(
        &self,
        location: &Location,
        settings: &Settings,
    ) -> Result<SelfReceipt, SelfReceiptError> {
        SelfReceipt::new(location, &self.name, settings, self.signer())
    }

    /// Answers until it is cancelled. Then it takes no more connections, gives those that are being read a short time,
    /// and returns when all that arrived has been written down or refused. It ends by itself only when the listener is broken.
    pub async fn run(&self, keeper: Arc<dyn Keeper>, cancel: CancellationToken) -> io::Result<()> {
        let connections = Connections::new(self.max_connections);
        let answerer = Arc::new(Answerer::new(keeper, self.stats(), self.max_connections));
        let tasks = TaskTracker::new();
        let cut = CancellationToken::new();
        let outcome = loop {
            let accepted = tokio::select! {
                () = cancel.cancelled() => break Ok(()),
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                // No pause would mend the listener itself.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
                {
                    break Err(error);
                }
                Err(error) => {
                    tracing::warn!(event = "connection_not_taken", receiver = self.name, %error, "a connection could not be accepted");
                    tokio::select! {
                        () = cancel.cancelled() => break Ok(()),
                        () = tokio::time::sleep(ACCEPT_PAUSE) => continue,
                    }
                }
            };
            let seat = tokio::select! {
                () = cancel.cancelled() => break Ok(()),
                seat = connections.seat() => seat,
            };
            let served = serve(
                stream,
                seat,
                Arc::clone(&answerer),
                self.rules.load_full(),
                self.limits.load_full(),
                cancel.clone(),
            );
            let cut = cut.clone();
            tasks.spawn(async move {
                tokio::select! {
                    () = served => {}
                    () = cut.cancelled() => {}
                }
            });
        };
        tasks.close();
        // Whoever has not sent its request by now is cut off; it has no answer, so it comes again.
        if tokio::time::timeout(STOP_LIMIT, tasks.wait()).await.is_err() {
            cut.cancel();
            tasks.wait().await;
        }
        answerer.finish().await;
        outcome
    }
}

async fn serve(
    stream: TcpStream,
    seat: Seat,
    answerer: Arc<Answerer>,
    rules: Arc<Rules>,
    limits: Arc<Limits>,
    cancel: CancellationToken,
) {
    let seat = Arc::new(seat);
    let handle = |request: Request<Incoming>| {
        let (answerer, seat) = (Arc::clone(&answerer), Arc::clone(&seat));
        let (rules, limits) = (Arc::clone(&rules), Arc::clone(&limits));
        async move { answerer.answer(request, &seat, &rules, &limits).await }
    };
    let mut connection = pin!(
        http1::Builder::new()
            .keep_alive(false)
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service_fn(handle))
    );
    let (mut stopping, mut asked_to_leave) = (false, false);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = seat.asked_to_leave(), if !asked_to_leave => {
                asked_to_leave = true;
                // After this the runtime has looked at its sockets: what has come by now is seen by one more poll.
                tokio::task::yield_now().await;
                if let Poll::Ready(ended) = poll_fn(|context| Poll::Ready(connection.as_mut().poll(context))).await {
                    break ended;
                }
                if seat.is_reading() {
                    answerer.count(ArrivalResult::CrowdedOut);
                    return;
                }
            }
            () = cancel.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    // Once a request has reached the answerer, it has been counted there.
    if let Err(error) = ended
        && !seat.was_asked()
    {
        answerer.count_unasked(&error);
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for connections of before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn rules(name: &str, settings: &Settings, routes: Vec<RouteRules>) -> Result<Rules, ReceiverError> {
    Rules::compile(name, settings, routes)
        .map_err(|source| ReceiverError::Rules { name: name.to_owned(), source })
}

fn limits(settings: &Settings) -> Limits {
    let whole = settings.request_timeout.get();
    Limits {
        body_bytes: settings.max_body_bytes,
        whole,
        head: whole.min(HEAD_LIMIT),
        keeper: whole.min(KEEPER_LIMIT),
    }
}
