//! What the loops need of the outside, by trait. The wiring makes them of a configuration.

use crate::{
    acceptance::Submitter,
    domain::{
        pending::PendingSnapshot,
        route::{CanaryId, RouteName},
        watch::Way,
    },
    ledger::{FlowReader, LedgerError, LedgerFigures, LedgerReader},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A sink of ours, as the loops need it.
#[async_trait]
pub trait Sink: Send + Sync {
    /// A token by which the receipt of this canary will be known, until it expires.
    fn issue(&self, canary: CanaryId, route: &RouteName, expires_at: DateTime<Utc>) -> String;

    /// The address to which the service delivers what carries this token.
    fn callback_url(&self, token: &str) -> Option<String>;

    /// The way by which receipts come from the service to this sink.
    fn way(&self) -> Way;

    /// Sends a message to ourselves by the way that canaries take. Its arrival is the proof, not the answer to it.
    ///
    /// # Errors
    /// When it could not be sent: why, for the log.
    async fn prove(&self) -> Result<(), String>;

    /// How often to prove it.
    fn prove_every(&self) -> Duration;
}

/// Everybody's pending notifications, as the loops need them.
#[async_trait]
pub trait PendingReader: Send + Sync {
    /// Reads everybody's pending notifications. `deadlines` names every configured route of this ledger.
    ///
    /// # Errors
    /// When the ledger can't be read: it is then unobserved.
    async fn pending(
        &self,
        deadlines: &BTreeMap<RouteName, Duration>,
    ) -> Result<PendingSnapshot, LedgerError>;

    /// Looks whether our role could write, for [`figures`](Self::figures) to say.
    ///
    /// # Errors
    /// When the ledger can't be read.
    async fn learn_role(&self) -> Result<(), LedgerError>;

    /// What is known of the ledger from reading it.
    fn figures(&self) -> LedgerFigures;

    /// How often to read them; nothing where no query is configured.
    fn refresh_every(&self) -> Option<Duration>;
}

/// A ledger's readers.
#[derive(Clone)]
pub struct LedgerAdapter {
    /// For canaries.
    pub lookup: Arc<dyn LedgerReader>,
    /// For everybody's pending, by one query.
    pub pending: Arc<dyn PendingReader>,
    /// For everybody's flow, where it is followed.
    pub flow: Option<Arc<dyn FlowReader>>,
}

/// All adapters of one configuration, by the names it gives them.
#[derive(Clone, Default)]
pub struct Adapters {
    /// Acceptance APIs.
    pub acceptances: BTreeMap<String, Arc<dyn Submitter>>,
    /// Sinks.
    pub sinks: BTreeMap<String, Arc<dyn Sink>>,
    /// Ledgers.
    pub ledgers: BTreeMap<String, LedgerAdapter>,
}
