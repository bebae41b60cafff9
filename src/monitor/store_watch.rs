//! The store watcher: whether the store can keep the contract now, and which pauses are in force.

use super::shared::Shared;
use crate::{catalog::labels::LoopName, store::StoreError};
use chrono::{DateTime, Utc};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Between two looks. It bounds how long a pause takes to be seen.
const EVERY: Duration = Duration::from_millis(500);

/// Every so many looks a write is tried.
const WRITE_EVERY: u32 = 10;

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut looks = 0u32;
    while !cancel.is_cancelled() {
        let was_up = shared.store_up.load(Ordering::Relaxed);
        let result = look(&shared, looks.is_multiple_of(WRITE_EVERY) || !was_up, Utc::now()).await;
        shared.store_up.store(result.is_ok(), Ordering::Relaxed);
        shared.loops.store_tried(result.is_ok());
        shared.loops.ended(LoopName::StoreWatcher, result.is_ok(), Utc::now());
        match result {
            Ok(()) if !was_up => tracing::info!(event = "store_up"),
            Err(error) if was_up || looks == 0 => tracing::warn!(event = "store_down", reason = %error),
            _ => {}
        }
        looks = looks.wrapping_add(1);
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn look(shared: &Shared, write: bool, now: DateTime<Utc>) -> Result<(), StoreError> {
    if write {
        shared.store.ping().await?;
    }
    let pauses = shared.store.pauses(now).await?;
    shared.pauses.store(Arc::new(pauses));
    Ok(())
}
