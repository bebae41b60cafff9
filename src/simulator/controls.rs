//! Switches faults. When a switch has returned, the fault is in force.

use super::{
    fault::{Fault, FaultOrder},
    faults::{Faults, OrderError},
    gate::{Gate, GateError},
    ledger::{Ledger, LedgerError},
};
use chrono::Utc;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};

/// Why a fault could not be switched.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The order is unfit; nothing was changed.
    #[error("the order is refused: {0}")]
    Order(#[from] OrderError),
    /// A listener did not come back.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The ledger did not follow.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// What faults are switched with.
pub struct Controls {
    pub faults: Arc<Faults>,
    pub acceptance: Arc<Gate>,
    pub provider: Arc<Gate>,
    pub ledger: Arc<dyn Ledger>,
    /// Wakes the workers.
    pub work: Arc<Notify>,
    /// One order at a time.
    pub one: Mutex<()>,
}

impl Controls {
    /// Obeys an order.
    pub async fn switch(&self, order: &FaultOrder) -> Result<(), ControlError> {
        let _one = self.one.lock().await;
        self.faults.obey(order)?;
        let enforced = match order.fault {
            Fault::AcceptanceDown | Fault::ProviderDown => self.enforce_gates().await,
            Fault::LedgerUnreachable => self.enforce_ledger().await,
            _ => Ok(()),
        };
        if enforced.is_err() && order.on {
            // What can't be put in force is not to be listed as if it were.
            self.faults.obey(&FaultOrder { on: false, ..order.clone() })?;
        }
        self.work.notify_one();
        enforced
    }

    /// Switches everything off, and makes due what was parked.
    pub async fn reset(&self) -> Result<(), ControlError> {
        let _one = self.one.lock().await;
        self.faults.clear();
        self.enforce_gates().await?;
        self.enforce_ledger().await?;
        self.ledger.revive(Utc::now()).await?;
        self.work.notify_one();
        Ok(())
    }

    async fn enforce_gates(&self) -> Result<(), ControlError> {
        let gates = [(Fault::AcceptanceDown, &self.acceptance), (Fault::ProviderDown, &self.provider)];
        for (fault, gate) in gates {
            if self.faults.is_total(fault) {
                gate.close().await;
            } else {
                gate.open().await?;
            }
        }
        Ok(())
    }

    async fn enforce_ledger(&self) -> Result<(), ControlError> {
        Ok(self.ledger.bar_readers(self.faults.is_total(Fault::LedgerUnreachable)).await?)
    }
}
