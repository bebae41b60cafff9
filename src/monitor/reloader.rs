//! The reloader: takes a changed configuration into force, or keeps the old one and says so.

use super::{
    active::Active,
    adapters::Adapters,
    shared::Shared,
    snapshot::{Configuration, Snapshot},
};
use crate::{
    clock,
    config::{Config, ConfigHash},
    {catalog::labels::LoopName, domain::route::Location, store::Operation},
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Between two looks at the configuration's checksum.
const EVERY: Duration = Duration::from_secs(5);

/// What the operators' record calls it that a process began to serve.
pub const SERVE: &str = "serve";

/// What it calls it that a process took another configuration.
pub const RELOAD: &str = "reload";

/// A configuration that was read, validated and connected to its adapters.
pub struct Fresh {
    /// The configuration.
    pub config: Config,
    /// Its hash.
    pub hash: ConfigHash,
    /// Its adapters.
    pub adapters: Adapters,
}

/// Where configurations come from.
#[async_trait]
pub trait Source: Send {
    /// The configuration, if it changed since it was last asked for, or in any case when `anyway`.
    ///
    /// # Errors
    /// When it can't be taken: every fault, as text.
    async fn changed(&mut self, anyway: bool) -> Result<Option<Fresh>, String>;
}

/// Runs until it is cancelled. A message on `asked` (SIGHUP) reloads at once.
pub async fn run(
    shared: Arc<Shared>,
    mut source: Box<dyn Source>,
    mut asked: mpsc::Receiver<()>,
    cancel: CancellationToken,
) {
    // The configuration in force was just read: there is nothing to wait for.
    shared.loops.ended(LoopName::Reloader, true, clock::now());
    let mut is_noted = false;
    loop {
        is_noted = is_noted || note(&shared, SERVE).await;
        let anyway = tokio::select! {
            () = cancel.cancelled() => return,
            message = asked.recv() => message.is_some(),
            () = tokio::time::sleep(EVERY) => false,
        };
        let result = source.changed(anyway).await;
        shared.loops.ended(LoopName::Reloader, true, clock::now());
        match result {
            Ok(None) => {}
            Ok(Some(fresh)) => take(&shared, fresh).await,
            Err(faults) => refuse(&shared, &faults),
        }
    }
}

async fn take(shared: &Shared, fresh: Fresh) {
    let now = clock::now();
    let hash = fresh.hash;
    match Active::new(fresh.config, hash, fresh.adapters, now) {
        Ok(active) => {
            active.configure_counters(&shared.counters);
            shared.active.store(Arc::new(active));
            shared.renew_sights();
            let configuration = Configuration {
                hash: hash.get(),
                last_reload_successful: true,
                last_reload_success: Some(now),
            };
            shared.configuration.store(Arc::new(configuration));
            tracing::info!(event = "configuration_taken", %hash);
            note(shared, RELOAD).await;
        }
        Err(error) => refuse(shared, &error.to_string()),
    }
}

/// Notes which configuration is in force: `false` where the store can't be used.
async fn note(shared: &Shared, what: &str) -> bool {
    let on = in_force(&shared.location, shared.active.load().hash);
    let operation = Operation { at: clock::now(), who: shared.owner.clone(), what: what.into(), on };
    let noted = shared.store.note(&operation).await;
    if let Err(error) = &noted {
        tracing::warn!(event = "configuration_not_noted", what, reason = %error);
    }
    noted.is_ok()
}

/// How the operators' record names a configuration in force at a place.
pub fn in_force(location: &Location, hash: ConfigHash) -> String {
    format!("{location} {hash}")
}

fn refuse(shared: &Shared, faults: &str) {
    let configuration = Configuration { last_reload_successful: false, ..**shared.configuration.load() };
    shared.configuration.store(Arc::new(configuration));
    tracing::error!(event = "configuration_refused", faults, "the configuration in force stays");
}

/// The first snapshot of a configuration: what it says, and nothing observed.
pub fn first_snapshot(active: &Active, configuration: Configuration) -> Snapshot {
    let interval = |route: &crate::config::Route| {
        active.routes.get(&route.full_name()).map_or(Duration::from_secs(60), |r| r.interval)
    };
    Snapshot::of_configuration(&active.config, configuration, interval)
}
