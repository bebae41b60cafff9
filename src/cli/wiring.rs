//! Makes the parts of a configuration and ties them together.

use super::ConfigFile;
use crate::{
    acceptance,
    config::{Config, ConfigHash, Loaded, model::StoreConfig, receipt::Receiver},
    domain::{
        pending::PendingSnapshot,
        route::{CanaryId, Location, RouteName},
        watch::Way,
    },
    ledger::{self, LedgerError, LedgerFigures},
    monitor::{
        active::Active,
        adapters::{Adapters, LedgerAdapter, PendingReader, Sink},
        counters::Counters,
        loops::Loops,
        progress::Progress,
        shared::Shared,
        snapshot::Configuration,
    },
    receipt::{public_url::PublicUrl, rules::RouteRules, self_receipt::SelfReceipt, token::TokenSigner},
    store::{self, Store, StoreError},
};
use anyhow::{Context, Result, anyhow};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

/// Where a configuration is.
#[derive(Clone, Debug)]
pub struct Where {
    /// The file.
    pub path: PathBuf,
    /// The name of this place of observation, instead of the file's.
    pub location: Option<String>,
}

impl From<&ConfigFile> for Where {
    fn from(file: &ConfigFile) -> Self {
        Self { path: file.path.clone(), location: file.location.clone() }
    }
}

/// The configuration is at fault. The text names every fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigurationAtFault(pub String);

/// There is no such route.
#[derive(Debug, thiserror::Error)]
#[error("there is no route `{name}`; the configuration has: {known}")]
pub struct NoSuchRoute {
    name: String,
    known: String,
}

/// The environment, as configurations read it.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Makes ring the process's provider of cryptography. Later calls change nothing.
pub fn install_tls() {
    // An error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Loads a configuration.
pub fn load(place: &Where) -> Result<Loaded> {
    crate::config::load_at(&place.path, place.location.as_deref(), &environment)
        .map_err(|faults| ConfigurationAtFault(faults.to_string()).into())
}

/// A webhook listener's part in sending: tokens, addresses, and messages to ourselves.
struct WebhookSink {
    signer: TokenSigner,
    public_url: PublicUrl,
    self_receipt: SelfReceipt,
    every: Duration,
}

#[async_trait]
impl Sink for WebhookSink {
    fn issue(&self, canary: CanaryId, route: &RouteName, expires_at: DateTime<Utc>) -> String {
        self.signer.issue(canary, route, expires_at)
    }

    fn callback_url(&self, token: &str) -> Option<String> {
        Some(self.public_url.with(token))
    }

    async fn prove(&self) -> Result<(), String> {
        self.self_receipt.send_once().await.map_err(|error| error.to_string())
    }

    fn way(&self) -> Way {
        self.self_receipt.way()
    }

    fn prove_every(&self) -> Duration {
        self.every
    }
}

#[async_trait]
impl PendingReader for ledger::LedgerAdapter {
    async fn pending(
        &self,
        deadlines: &BTreeMap<RouteName, Duration>,
    ) -> Result<PendingSnapshot, LedgerError> {
        Self::pending(self, deadlines).await
    }

    async fn learn_role(&self) -> Result<(), LedgerError> {
        let finding = self.check_role().await?;
        if self.stats().figures().role_can_write == Some(true) {
            tracing::warn!(event = "ledger_role_can_write", finding = ?finding);
        }
        Ok(())
    }

    fn figures(&self) -> LedgerFigures {
        self.stats().figures()
    }

    fn refresh_every(&self) -> Option<Duration> {
        Self::refresh_every(self)
    }
}

/// Makes the adapters of a configuration. Nothing is connected to.
pub fn adapters(config: &Config, counters: &Arc<Counters>) -> Result<Adapters> {
    install_tls();
    let mut adapters = Adapters::default();
    for (name, acceptance) in &config.acceptances {
        let submitter = acceptance::build(acceptance, counters.on_stop())
            .with_context(|| format!("acceptance `{name}`"))?;
        adapters.acceptances.insert(name.clone(), submitter);
    }
    let location = Location::from_text(config.location.clone());
    for (name, receiver) in &config.receivers {
        let sink = sink(&location, name, receiver).with_context(|| format!("receiver `{name}`"))?;
        adapters.sinks.insert(name.clone(), Arc::new(sink));
    }
    for (name, ledger) in &config.ledgers {
        let opened = ledger::open(name, ledger).with_context(|| format!("ledger `{name}`"))?;
        let adapter = LedgerAdapter {
            lookup: Arc::<ledger::LedgerAdapter>::clone(&opened) as _,
            flow: opened.flow().map(|flow| Arc::new(flow) as _),
            pending: opened,
        };
        adapters.ledgers.insert(name.clone(), adapter);
    }
    Ok(adapters)
}

fn sink(location: &Location, name: &str, receiver: &Receiver) -> Result<WebhookSink> {
    let Receiver::Webhook(webhook) = receiver;
    let signer = TokenSigner::new(&webhook.token_secrets)?;
    Ok(WebhookSink {
        public_url: PublicUrl::parse(&webhook.public_url)?,
        self_receipt: SelfReceipt::new(location, name, webhook, signer.clone())?,
        signer,
        every: webhook.self_receipt_every.get(),
    })
}

/// The rules by which a receiver judges what arrives for its routes.
pub fn rules_of(config: &Config, receiver: &str) -> Result<Vec<RouteRules>> {
    let of_receiver = config.routes.iter().filter_map(|route| {
        let receipt = route.receipt.as_ref().filter(|receipt| receipt.receiver == receiver)?;
        Some(RouteRules::compile(route.full_name(), receipt))
    });
    Ok(of_receiver.collect::<Result<_, _>>()?)
}

/// What the loops of one configuration share.
pub fn share(loaded: Loaded, store: Arc<dyn Store>, progress: Arc<Progress>) -> Result<Arc<Shared>> {
    let now = Utc::now();
    let counters = Arc::<Counters>::default();
    let adapters = adapters(&loaded.config, &counters)?;
    let hash = loaded.hash;
    let active = Active::new(loaded.config, hash, adapters, now)?;
    active.configure_counters(&counters);
    let configuration =
        Configuration { hash: hash.get(), last_reload_successful: true, last_reload_success: Some(now) };
    let owner = format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
    let loops = Loops::register(progress);
    let first = crate::monitor::reloader::first_snapshot(&active, configuration);
    let shared = Shared::new(active, owner, store, counters, loops, configuration);
    shared.snapshot.publish(first);
    Ok(Arc::new(shared))
}

/// A store, and the configuration that names it.
pub struct Opened {
    /// The configuration.
    pub config: Config,
    /// Its hash.
    pub hash: ConfigHash,
    /// The store.
    pub store: Arc<dyn Store>,
}

impl Opened {
    /// A configured route, by its full name, or by its name alone where only one route has it.
    pub fn route(&self, name: &str) -> Result<RouteName> {
        find_route(&self.config, name)
    }
}

/// A configured route, by its full name, or by its name alone where only one route has it.
pub fn find_route(config: &Config, name: &str) -> Result<RouteName> {
    let all: Vec<RouteName> = config.routes.iter().map(crate::config::Route::full_name).collect();
    if let Some(exact) = all.iter().find(|route| route.as_str() == name) {
        return Ok(exact.clone());
    }
    let alike: Vec<&RouteName> = all.iter().filter(|r| r.as_str().split('/').nth(1) == Some(name)).collect();
    match alike.as_slice() {
        [one] => Ok((*one).clone()),
        _ => {
            let known: Vec<&str> = all.iter().map(RouteName::as_str).collect();
            Err(NoSuchRoute { name: name.to_owned(), known: known.join(", ") }.into())
        }
    }
}

/// Opens a store that a monitor has made. A command beside it makes none: what it said there, nobody would hear.
async fn open_existing(config: &StoreConfig) -> Result<Arc<dyn Store>> {
    if let StoreConfig::Sqlite(sqlite) = config
        && !sqlite.path.exists()
    {
        let path = sqlite.path.display();
        let reason = format!(
            "there is no store {path} yet; is this the configuration that `delivery-canary serve` runs with, and has it been started?"
        );
        return Err(StoreError::Unavailable(reason).into());
    }
    let store = store::open(config).await?;
    // From here on it is as late as the store says: what a command writes down is read by monitors that go by that time.
    store.look().await?;
    Ok(store)
}

/// Opens the store of a configuration.
pub async fn open_store(file: &ConfigFile) -> Result<Opened> {
    let Loaded { config, hash, .. } = load(&file.into())?;
    let store = open_existing(&config.store).await?;
    Ok(Opened { config, hash, store })
}

/// All that sends and follows canaries, without the loops: for one canary by hand.
pub struct Hand {
    /// What the loops would share.
    pub shared: Arc<Shared>,
}

impl Hand {
    /// A configured route, by its name.
    pub fn route(&self, name: &str) -> Result<RouteName> {
        find_route(&self.shared.active.load().config, name)
    }
}

/// Makes all that sends and follows canaries, without the loops.
pub async fn hand(file: &ConfigFile) -> Result<Hand> {
    let loaded = load(&file.into())?;
    let store = open_existing(&loaded.config.store).await?;
    let shared =
        share(loaded, store, Arc::default()).map_err(|e| anyhow!(ConfigurationAtFault(format!("{e:#}"))))?;
    Ok(Hand { shared })
}
