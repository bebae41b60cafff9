//! The janitor: keeps retention.

use super::shared::Shared;
use crate::{
    catalog::labels::LoopName,
    clock,
    domain::flow::time::Passing,
    store::{Horizon, StoreError},
};
use chrono::{DateTime, Utc};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// Canaries removed in one transaction, so that no write waits long for the janitor.
const AT_A_TIME: u32 = 500;

/// Between two rounds.
const EVERY: Duration = Duration::from_secs(60);

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut passing = Passing::default();
    while !cancel.is_cancelled() {
        // A clock that jumps ahead must not cost what it takes for old.
        let now = passing.read(Instant::now(), clock::now()).at;
        let result = round(&shared, &cancel, now).await;
        shared.loops.ended(LoopName::Janitor, result.is_ok(), clock::now());
        if let Err(error) = result {
            tracing::debug!(event = "pruning_postponed", reason = %error);
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn round(shared: &Shared, cancel: &CancellationToken, now: DateTime<Utc>) -> Result<(), StoreError> {
    let retention = shared.active.load().config.retention.clone();
    let horizon = Horizon {
        canaries: now - retention.canaries.delta(),
        minutes: now - retention.minutes.delta(),
        hours: now - retention.hours.delta(),
    };
    while !cancel.is_cancelled() {
        let removed = shared.store.prune(&horizon, AT_A_TIME).await?;
        if removed.canaries < u64::from(AT_A_TIME) {
            return Ok(());
        }
        shared.loops.ended(LoopName::Janitor, true, clock::now());
        tokio::task::yield_now().await;
    }
    Ok(())
}
