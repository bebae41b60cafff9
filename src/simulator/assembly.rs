//! Puts the parts of a simulator together. Nothing here runs by itself, the listeners aside.

use super::{
    acceptance::{self, Acceptance},
    admin::{self, Admin},
    client::{ClientError, client},
    clock::LedgerClock,
    controls::Controls,
    delivery::Deliverer,
    dispatcher::Dispatcher,
    faults::Faults,
    gate::{Gate, GateError},
    http::HttpServer,
    ledger::{self, Ledger, LedgerError},
    options::SimulatorOptions,
    probes::{self, Condition},
    provider::{self, Provider, WebhookSender},
    running::{Addresses, SimulatorError},
    sink,
    statistics::Statistics,
    traffic::Traffic,
};
use axum::Router;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections to the admin port, and to the probes, at a time.
const MOST_SMALL_CONNECTIONS: usize = 64;

/// What the parts share.
pub struct Assembly {
    pub options: SimulatorOptions,
    pub ledger: Arc<dyn Ledger>,
    pub faults: Arc<Faults>,
    pub statistics: Arc<Statistics>,
    pub condition: Arc<Condition>,
    work: Arc<Notify>,
}

impl Assembly {
    /// Opens the ledger and gives back what an earlier run had taken up.
    pub async fn open(options: &SimulatorOptions) -> Result<Self, LedgerError> {
        let ledger = ledger::open(options).await?;
        ledger.release().await?;
        let statistics = Arc::<Statistics>::default();
        let condition = Condition { statistics: Arc::clone(&statistics), ..Condition::default() };
        Ok(Self {
            options: options.clone(),
            ledger,
            faults: Arc::default(),
            statistics,
            condition: Arc::new(condition),
            work: Arc::default(),
        })
    }

    fn clock(&self) -> LedgerClock {
        LedgerClock::new(Arc::clone(&self.faults))
    }

    pub async fn provider(&self) -> Result<Arc<Gate>, SimulatorError> {
        let sender = WebhookSender {
            client: client(self.options.callback_timeout)?,
            secret: self.options.signing_secret.clone(),
            statistics: Arc::clone(&self.statistics),
        };
        let provider = Provider {
            faults: Arc::clone(&self.faults),
            statistics: Arc::clone(&self.statistics),
            sender,
            deliveries: Arc::new(Semaphore::new(self.options.most_connections)),
            callbacks_anywhere: self.options.callbacks_anywhere,
            most_body_bytes: self.options.most_body_bytes,
            memory: provider::Memory::default(),
        };
        let router = provider::router(Arc::new(provider));
        Ok(listen("provider", self.options.provider, self.options.most_connections, router).await?)
    }

    pub async fn acceptance(&self) -> Result<Arc<Gate>, GateError> {
        let acceptance = Acceptance {
            ledger: Arc::clone(&self.ledger),
            clock: self.clock(),
            faults: Arc::clone(&self.faults),
            statistics: Arc::clone(&self.statistics),
            work: Arc::clone(&self.work),
            policy_version: self.options.policy_version.clone(),
            callbacks_anywhere: self.options.callbacks_anywhere,
            most_body_bytes: self.options.most_body_bytes,
            under_way: Arc::new(Semaphore::new(self.options.most_connections)),
        };
        let router = acceptance::router(Arc::new(acceptance));
        listen("acceptance", self.options.acceptance, self.options.most_connections, router).await
    }

    pub async fn probes(&self) -> Result<Arc<Gate>, GateError> {
        let router = probes::router(Arc::clone(&self.condition));
        listen("probes'", self.options.probes, MOST_SMALL_CONNECTIONS, router).await
    }

    pub async fn sink(&self) -> Result<Arc<Gate>, GateError> {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let router = sink::router(Arc::clone(&self.statistics));
        listen("customers' sink", free, self.options.most_connections, router).await
    }

    pub fn controls(&self, acceptance: &Arc<Gate>, provider: &Arc<Gate>) -> Arc<Controls> {
        Arc::new(Controls {
            faults: Arc::clone(&self.faults),
            acceptance: Arc::clone(acceptance),
            provider: Arc::clone(provider),
            ledger: Arc::clone(&self.ledger),
            work: Arc::clone(&self.work),
            one: Mutex::new(()),
        })
    }

    /// The admin's page names all addresses, its own among them: it has them once they are known.
    pub async fn admin(
        &self,
        controls: &Arc<Controls>,
    ) -> Result<(Arc<Gate>, Arc<OnceLock<Addresses>>), GateError> {
        let addresses = Arc::<OnceLock<Addresses>>::default();
        let admin = Admin {
            controls: Arc::clone(controls),
            statistics: Arc::clone(&self.statistics),
            addresses: Arc::clone(&addresses),
        };
        let router = admin::router(Arc::new(admin));
        Ok((listen("admin", self.options.admin, MOST_SMALL_CONNECTIONS, router).await?, addresses))
    }

    pub fn dispatcher(
        &self,
        provider: SocketAddr,
        stop: CancellationToken,
    ) -> Result<Dispatcher, ClientError> {
        let options = &self.options;
        let deliverer = Deliverer {
            client: client(options.provider_timeout)?,
            provider,
            clock: self.clock(),
            faults: Arc::clone(&self.faults),
            policy_version: options.policy_version.clone(),
            most_attempts: options.most_attempts,
            backoff_base: options.backoff_base,
            backoff_most: options.backoff_most,
        };
        Ok(Dispatcher {
            ledger: Arc::clone(&self.ledger),
            deliverer,
            faults: Arc::clone(&self.faults),
            statistics: Arc::clone(&self.statistics),
            work: Arc::clone(&self.work),
            heartbeat: Arc::clone(&self.condition.heartbeat),
            workers: Arc::new(Semaphore::new(options.workers)),
            in_flight: Arc::new(Semaphore::new(options.most_in_flight)),
            stop,
        })
    }

    pub fn traffic(&self, acceptance: SocketAddr, sink: SocketAddr) -> Result<Option<Traffic>, ClientError> {
        let Some(options) = self.options.traffic.clone() else {
            return Ok(None);
        };
        let client = client(Duration::from_secs(10))?;
        Ok(Some(Traffic { options, client, acceptance, sink, statistics: Arc::clone(&self.statistics) }))
    }
}

async fn listen(
    name: &'static str,
    address: SocketAddr,
    most: usize,
    router: Router,
) -> Result<Arc<Gate>, GateError> {
    Ok(Arc::new(Gate::open_at(name, address, most, Arc::new(HttpServer(router))).await?))
}
