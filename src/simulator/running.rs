//! A simulator from its start to its stop.

use super::{
    assembly::Assembly,
    client::ClientError,
    controls::{ControlError, Controls},
    fault::{Fault, FaultOrder},
    faults::ArmedFault,
    gate::{Gate, GateError},
    ledger::{Ledger, LedgerCounts, LedgerError, ReaderAddress},
    options::{OptionsError, SimulatorOptions},
    probes::Condition,
    statistics::{KeyEffects, Statistics, Totals},
};
use serde::Serialize;
use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Why a simulator could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorError {
    /// An option is out of bounds.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A listener.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// An HTTP client.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Where a simulator listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// `POST /v1/notifications`.
    pub acceptance: SocketAddr,
    /// `/startup`, `/ready`, `/live`, `/metrics`.
    pub probes: SocketAddr,
    /// `POST /provider/v1/messages`.
    pub provider: SocketAddr,
    /// `/admin/...`.
    pub admin: SocketAddr,
}

/// A running simulator. Dropping it stops it abruptly; [`Simulator::stop`] lets what is under way end.
pub struct Simulator {
    addresses: Addresses,
    controls: Arc<Controls>,
    statistics: Arc<Statistics>,
    condition: Arc<Condition>,
    ledger: Arc<dyn Ledger>,
    /// In the order in which they are closed.
    gates: Vec<Arc<Gate>>,
    traffic: Option<JoinHandle<()>>,
    dispatcher: JoinHandle<()>,
    stop_traffic: DropGuard,
    stop_workers: DropGuard,
    grace: Duration,
}

impl Simulator {
    /// Opens the ledger, takes up what an earlier run left, and listens.
    ///
    /// # Errors
    /// When an option is out of bounds, the ledger can't be opened, or a port is taken.
    pub async fn start(options: SimulatorOptions) -> Result<Self, SimulatorError> {
        options.check()?;
        let assembly = Assembly::open(&options).await?;
        let (stop_traffic, stop_workers) = (CancellationToken::new(), CancellationToken::new());
        let provider = assembly.provider().await?;
        let acceptance = assembly.acceptance().await?;
        let probes = assembly.probes().await?;
        let sink = assembly.sink().await?;
        let controls = assembly.controls(&acceptance, &provider);
        let (admin, known) = assembly.admin(&controls).await?;
        let addresses = Addresses {
            acceptance: acceptance.address(),
            probes: probes.address(),
            provider: provider.address(),
            admin: admin.address(),
        };
        let dispatcher = assembly.dispatcher(addresses.provider, stop_workers.clone())?;
        let traffic = assembly.traffic(addresses.acceptance, sink.address())?;
        // From here on nothing can fail: all that runs by itself is started together.
        let _ = known.set(addresses);
        let traffic = traffic.map(|traffic| tokio::spawn(traffic.run(stop_traffic.clone())));
        let dispatcher = tokio::spawn(dispatcher.run());
        assembly.condition.started.store(true, Ordering::Release);
        Ok(Self {
            addresses,
            controls,
            statistics: assembly.statistics,
            condition: assembly.condition,
            ledger: assembly.ledger,
            gates: vec![provider, sink, admin, probes],
            traffic,
            dispatcher,
            stop_traffic: stop_traffic.drop_guard(),
            stop_workers: stop_workers.drop_guard(),
            grace: options.grace,
        })
    }

    /// Where it listens.
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// How a reader reaches its ledger.
    pub fn ledger_reader(&self) -> ReaderAddress {
        self.ledger.reader()
    }

    /// Switches a fault. It is in force when this returns.
    ///
    /// # Errors
    /// When the order is unfit, or can't be put in force.
    pub async fn switch(&self, order: FaultOrder) -> Result<(), ControlError> {
        self.controls.switch(&order).await
    }

    /// Switches a fault on, everywhere and always.
    ///
    /// # Errors
    /// As [`Simulator::switch`].
    pub async fn fault_on(&self, fault: Fault) -> Result<(), ControlError> {
        self.switch(FaultOrder::on(fault)).await
    }

    /// Switches a fault off, everywhere.
    ///
    /// # Errors
    /// As [`Simulator::switch`].
    pub async fn fault_off(&self, fault: Fault) -> Result<(), ControlError> {
        self.switch(FaultOrder::off(fault)).await
    }

    /// Switches all faults off, and has what is parked tried again.
    ///
    /// # Errors
    /// When a listener or the ledger does not come back.
    pub async fn reset(&self) -> Result<(), ControlError> {
        self.controls.reset().await
    }

    /// The faults that are on.
    pub fn faults(&self) -> Vec<ArmedFault> {
        self.controls.faults.list()
    }

    /// Sums since the start.
    pub fn totals(&self) -> Totals {
        self.statistics.totals()
    }

    /// What an idempotency key has brought about since the start.
    pub fn effects(&self, idempotency_key: &str) -> KeyEffects {
        self.statistics.effects(idempotency_key)
    }

    /// Sums over the ledger.
    ///
    /// # Errors
    /// When the ledger can't be read.
    pub async fn ledger_counts(&self) -> Result<LedgerCounts, LedgerError> {
        self.ledger.counts().await
    }

    /// Stops: not ready first, then no new work, then what is under way ends within the grace time.
    pub async fn stop(self) {
        self.condition.stopping.store(true, Ordering::Release);
        drop(self.stop_traffic);
        if let Some(traffic) = self.traffic {
            within(self.grace, traffic).await;
        }
        self.controls.acceptance.end(self.grace).await;
        drop(self.stop_workers);
        within(self.grace, self.dispatcher).await;
        for gate in &self.gates {
            gate.end(Duration::from_millis(500)).await;
        }
        self.ledger.close().await;
    }
}

/// Waits so long for a task, then ends it.
async fn within(grace: Duration, mut task: JoinHandle<()>) {
    if tokio::time::timeout(grace, &mut task).await.is_err() {
        task.abort();
    }
}
