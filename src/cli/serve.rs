//! `serve`: the long-running service.

use super::{ConfigFile, Outcome, wiring};
use crate::{
    config::{Config, model::StoreConfig, receipt::Receiver, watch},
    exposition::{collector, logs, server::MetricsServer},
    health::{HealthServer, HealthThread},
    monitor::{
        Monitor,
        keeper::StoreKeeper,
        progress::{Progress, StartStep},
        reloader::{Fresh, Source},
        shared::Shared,
    },
    receipt::webhook::WebhookReceiver,
    store,
};
use anyhow::{Context, Result};
use async_trait::async_trait;
use clap::Args;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    config: ConfigFile,
}

/// Where a monitor that runs can be reached.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// `/metrics`.
    pub metrics: SocketAddr,
    /// `/startup`, `/ready` and `/live`.
    pub health: SocketAddr,
}

/// A monitor that runs.
pub struct Running {
    monitor: Monitor,
    addresses: Addresses,
    progress: Arc<Progress>,
    listeners: TaskTracker,
    stop_listening: CancellationToken,
    _health: HealthThread,
    _claim: store::Claim,
    asked: mpsc::Sender<()>,
    grace: Duration,
}

impl Running {
    /// What the loops share.
    pub fn shared(&self) -> &Arc<Shared> {
        self.monitor.shared()
    }

    /// Where it can be reached.
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Asks for a reload.
    pub fn reload(&self) {
        // A full queue means that a reload is under way.
        let _ = self.asked.try_send(());
    }

    /// Stops: not ready first, no new slots, then what is under way is written down, within the grace time.
    pub async fn stop(self) {
        self.progress.stopping();
        self.monitor.stop(self.grace).await;
        self.stop_listening.cancel();
        if tokio::time::timeout(self.grace / 8, self.listeners.wait()).await.is_err() {
            tracing::warn!(event = "stopped_with_requests_under_way");
        }
    }
}

/// Configurations from a file.
struct FileSource {
    source: watch::Source,
    in_force: Config,
    shared: Arc<Shared>,
    receivers: Vec<Arc<WebhookReceiver>>,
}

#[async_trait]
impl Source for FileSource {
    async fn changed(&mut self, anyway: bool) -> Result<Option<Fresh>, String> {
        let result = if anyway {
            Some(self.source.reload(&wiring::environment))
        } else {
            self.source.reload_if_changed(&wiring::environment)
        };
        let Some(result) = result else { return Ok(None) };
        // This goes into the log, where no value belongs: it may be a recipient.
        let loaded = result.map_err(|faults| faults.without_values().to_string())?;
        let restart = watch::changes_needing_restart(&self.in_force, &loaded.config);
        if !restart.is_empty() {
            return Err(format!(
                "these can't change while the process runs; restart it to take them: {}",
                restart.join(", ")
            ));
        }
        let adapters =
            wiring::adapters(&loaded.config, &self.shared.counters).map_err(|error| format!("{error:#}"))?;
        // All or none: with the new rules of one receiver and the old secrets of the rest nothing would arrive.
        let mut prepared = Vec::new();
        for receiver in &self.receivers {
            let Some(Receiver::Webhook(settings)) = loaded.config.receivers.get(receiver.name()) else {
                continue;
            };
            let rules =
                wiring::rules_of(&loaded.config, receiver.name()).map_err(|error| format!("{error:#}"))?;
            prepared.push((receiver, receiver.prepare(settings, rules).map_err(|error| error.to_string())?));
        }
        prepared.into_iter().for_each(|(receiver, rules)| receiver.take(rules));
        self.in_force = loaded.config.clone();
        Ok(Some(Fresh { config: loaded.config, hash: loaded.hash, adapters }))
    }
}

/// Starts a monitor: binds, opens, spawns. It is ready when its store is.
pub async fn start(place: wiring::Where) -> Result<Running> {
    let mut source = watch::Source::new(place.path.clone(), place.location.clone());
    let loaded = source
        .reload(&wiring::environment)
        .map_err(|faults| wiring::ConfigurationAtFault(faults.to_string()))?;
    let config = loaded.config.clone();
    // A second call, as in tests, keeps the first subscriber.
    let _ = logs::init(&config.log);
    for warning in &loaded.warnings {
        tracing::warn!(event = "configuration_warning", warning = %warning);
    }
    let progress = Arc::<Progress>::default();
    progress.step_done(StartStep::Configuration);
    let health =
        HealthServer::bind(config.listeners.health, Arc::clone(&progress)).context("listeners.health")?;
    let health_address = health.local_addr()?;
    let store = store::open(&config.store).await?;
    let claim = store::claim(&config.store)?;
    progress.step_done(StartStep::EmbeddedStore);
    if matches!(config.store, StoreConfig::Postgres(_)) {
        tracing::debug!(event = "store_is_remote", "its outage is not a failed start");
    }
    let shared = wiring::share(loaded, store, Arc::clone(&progress))?;
    let registry = collector::registry(Arc::clone(&shared.snapshot), Arc::clone(&shared.counters))?;
    let metrics = MetricsServer::bind(config.listeners.metrics, registry).context("listeners.metrics")?;
    let addresses = Addresses { metrics: metrics.local_addr()?, health: health_address };
    let (listeners, stop_listening) = (TaskTracker::new(), CancellationToken::new());
    let keeper = Arc::new(StoreKeeper::new(Arc::clone(&shared)));
    let mut receivers = Vec::new();
    for (name, Receiver::Webhook(webhook)) in &config.receivers {
        let receiver = Arc::new(WebhookReceiver::bind(name, webhook, wiring::rules_of(&config, name)?)?);
        shared.watch_receiver(name, receiver.stats());
        listeners.spawn(receive(Arc::clone(&receiver), keeper.clone(), stop_listening.clone()));
        receivers.push(receiver);
    }
    listeners.spawn(serve_metrics(metrics, stop_listening.clone()));
    listeners.close();
    progress.step_done(StartStep::Listeners);
    let source = FileSource { source, in_force: config.clone(), shared: Arc::clone(&shared), receivers };
    let (asked, questions) = mpsc::channel(1);
    let monitor = Monitor::start(shared, Box::new(source), questions);
    progress.step_done(StartStep::Loops);
    let health = health.spawn().context("the probes' thread can't start")?;
    tracing::info!(
        event = "started",
        version = env!("CARGO_PKG_VERSION"),
        location = config.location,
        routes = config.routes.len(),
        metrics = %addresses.metrics,
        health = %addresses.health,
    );
    let grace = config.grace.get();
    Ok(Running {
        monitor,
        addresses,
        progress,
        listeners,
        stop_listening,
        _health: health,
        _claim: claim,
        asked,
        grace,
    })
}

async fn receive(receiver: Arc<WebhookReceiver>, keeper: Arc<StoreKeeper>, stop: CancellationToken) {
    if let Err(error) = receiver.run(keeper, stop).await {
        tracing::error!(event = "receiver_failed", receiver = receiver.name(), %error, "arrivals can't be taken");
    }
}

async fn serve_metrics(metrics: MetricsServer, stop: CancellationToken) {
    if let Err(error) = metrics.run(stop.cancelled_owned()).await {
        tracing::error!(event = "metrics_failed", %error, "/metrics can't be answered");
    }
}

/// Completes at SIGTERM or SIGINT.
pub async fn stop_signal() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Runs until SIGTERM or SIGINT. SIGHUP reloads.
pub async fn run(args: ServeArgs) -> Result<Outcome> {
    let running = start((&args.config).into()).await?;
    let mut hangup = signal(SignalKind::hangup())?;
    let stop = stop_signal();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            result = &mut stop => {
                result?;
                break;
            }
            _ = hangup.recv() => running.reload(),
        }
    }
    tracing::info!(event = "stopping");
    running.stop().await;
    tracing::info!(event = "stopped");
    Ok(Outcome::Done)
}
