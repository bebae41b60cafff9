//! What a simulator is started with.

use super::{message::Channel, signature::SigningSecret};
use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

/// Where the ledger is kept.
#[derive(Clone)]
pub enum LedgerOptions {
    /// An SQLite file; it is made if it isn't there.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by a URL with host and port; the tables are made if they aren't there.
    Postgres(String),
}

impl fmt::Debug for LedgerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            // The URL may hold a password.
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// Background customers' traffic, which goes to a sink inside the simulator.
#[derive(Clone, Debug)]
pub struct TrafficOptions {
    /// Notifications a second, over all routes.
    pub per_second: f64,
    /// The routes; they are taken in turn.
    pub routes: Vec<TrafficRoute>,
    /// The part of the recipients whose address is dead, from 0 to 1.
    pub dead_recipients: f64,
}

/// A route of the customers' traffic.
#[derive(Clone, Debug)]
pub struct TrafficRoute {
    /// The service's word for it.
    pub name: String,
    /// By what means.
    pub channel: Channel,
}

/// All that a simulator is started with.
#[derive(Clone, Debug)]
pub struct SimulatorOptions {
    /// The ledger.
    pub ledger: LedgerOptions,
    /// Where acceptance listens. Port 0 takes a free one, here and below. Only loopback addresses are taken.
    pub acceptance: SocketAddr,
    /// Where its own probes and its counters are.
    pub probes: SocketAddr,
    /// Where the provider listens.
    pub provider: SocketAddr,
    /// Where faults are switched.
    pub admin: SocketAddr,
    /// Where readers of a PostgreSQL ledger connect: the proxy that can be cut.
    pub ledger_proxy: SocketAddr,
    /// The policy version that stands in the ledger.
    pub policy_version: String,
    /// Deliveries at a time.
    pub workers: usize,
    /// Notifications that are taken up and not yet recorded, at the most.
    pub most_in_flight: usize,
    /// Attempts for one notification, at the most.
    pub most_attempts: u32,
    /// Wait after the first failed attempt; it doubles with each further one.
    pub backoff_base: Duration,
    /// Longest wait between attempts.
    pub backoff_most: Duration,
    /// How long a worker waits for the provider.
    pub provider_timeout: Duration,
    /// How long the provider waits for a callback.
    pub callback_timeout: Duration,
    /// Signs webhooks as Standard Webhooks say, when it is given.
    pub signing_secret: Option<SigningSecret>,
    /// Whether webhooks may leave the loopback interface.
    pub callbacks_anywhere: bool,
    /// Customers' traffic.
    pub traffic: Option<TrafficOptions>,
    /// Largest body of a request, in bytes.
    pub most_body_bytes: usize,
    /// Connections to each listener, at the most.
    pub most_connections: usize,
    /// How long a stop waits for what is under way.
    pub grace: Duration,
}

impl SimulatorOptions {
    /// The usual options: free loopback ports, no customers' traffic, no signatures.
    pub fn new(ledger: LedgerOptions) -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            ledger,
            acceptance: free,
            probes: free,
            provider: free,
            admin: free,
            ledger_proxy: free,
            policy_version: "policy-1".into(),
            workers: 64,
            most_in_flight: 4_096,
            most_attempts: 12,
            backoff_base: Duration::from_millis(500),
            backoff_most: Duration::from_secs(20),
            provider_timeout: Duration::from_secs(5),
            callback_timeout: Duration::from_secs(4),
            signing_secret: None,
            callbacks_anywhere: false,
            traffic: None,
            most_body_bytes: 65_536,
            most_connections: 1_024,
            grace: Duration::from_secs(5),
        }
    }

    /// Refuses what can't work.
    ///
    /// # Errors
    /// The first option that is out of bounds.
    pub fn check(&self) -> Result<(), OptionsError> {
        let addresses = [
            ("acceptance", self.acceptance),
            ("probes", self.probes),
            ("provider", self.provider),
            ("admin", self.admin),
            ("ledger_proxy", self.ledger_proxy),
        ];
        for (option, address) in addresses {
            if !address.ip().is_loopback() {
                return Err(OptionsError { option, should: "on a loopback address" });
            }
        }
        let at_least_one = [
            ("workers", self.workers),
            ("most_in_flight", self.most_in_flight),
            ("most_attempts", self.most_attempts as usize),
            ("most_body_bytes", self.most_body_bytes),
            ("most_connections", self.most_connections),
        ];
        for (option, number) in at_least_one {
            if !(1..=1_000_000).contains(&number) {
                return Err(OptionsError { option, should: "from 1 to 1000000" });
            }
        }
        let waits = [
            ("backoff_base", self.backoff_base),
            ("backoff_most", self.backoff_most),
            ("provider_timeout", self.provider_timeout),
            ("callback_timeout", self.callback_timeout),
        ];
        for (option, wait) in waits {
            if wait.is_zero() || wait > Duration::from_secs(3_600) {
                return Err(OptionsError { option, should: "above zero and at most an hour" });
            }
        }
        self.traffic.as_ref().map_or(Ok(()), TrafficOptions::check)
    }
}

impl TrafficOptions {
    fn check(&self) -> Result<(), OptionsError> {
        if !(0.001..=1_000.0).contains(&self.per_second) {
            return Err(OptionsError { option: "traffic.per_second", should: "from 0.001 to 1000" });
        }
        if self.routes.is_empty() || self.routes.len() > 64 {
            return Err(OptionsError { option: "traffic.routes", should: "1 to 64 routes" });
        }
        if !(0.0..=1.0).contains(&self.dead_recipients) {
            return Err(OptionsError { option: "traffic.dead_recipients", should: "from 0 to 1" });
        }
        Ok(())
    }
}

/// An option out of bounds.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("the simulator's option `{option}` must be {should}")]
pub struct OptionsError {
    /// Which option.
    pub option: &'static str,
    /// What it must be.
    pub should: &'static str,
}
