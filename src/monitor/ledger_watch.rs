//! The ledger watcher: reads everybody's pending notifications, each ledger in its own time.

use super::{shared::Shared, snapshot::Observer};
use crate::{
    catalog::labels::{FollowerMode, LoopName},
    clock,
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

/// Limit on one reading. The adapter has its own, shorter; this one keeps the loop alive whatever the adapter does.
const LIMIT: Duration = Duration::from_secs(40);

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut next: HashMap<String, Instant> = HashMap::new();
    while !cancel.is_cancelled() {
        let active = shared.active.load_full();
        next.retain(|name, _| active.adapters.ledgers.contains_key(name));
        let mut reading = JoinSet::new();
        for (name, ledger) in &active.adapters.ledgers {
            let Some(every) = ledger.pending.refresh_every() else { continue };
            // The follower tells the same, for less; on another replica too.
            if matches!(shared.flow(name).mode, FollowerMode::Following | FollowerMode::Standby) {
                continue;
            }
            if next.get(name).is_some_and(|at| *at > Instant::now()) {
                continue;
            }
            next.insert(name.clone(), Instant::now() + every);
            let (shared, name, ledger) = (Arc::clone(&shared), name.clone(), ledger.clone());
            let deadlines = active.deadlines(&name);
            reading.spawn(async move {
                let began = Instant::now();
                let read = tokio::time::timeout(LIMIT, ledger.pending.pending(&deadlines)).await;
                if let Some(counters) = shared.counters.ledger(&name) {
                    counters.read_seconds.observe(began.elapsed());
                }
                let observer = Observer::Ledger(name.clone());
                if matches!(read, Ok(Ok(_))) && ledger.pending.figures().role_can_write.is_none() {
                    // Not known for now is no harm: it is asked again after the next reading.
                    let _ = tokio::time::timeout(LIMIT, ledger.pending.learn_role()).await;
                }
                let now = clock::now();
                let (snapshot, result) = match read {
                    Ok(Ok(snapshot)) => (Some(snapshot), Ok(())),
                    Ok(Err(error)) => (None, Err(error.to_string())),
                    Err(_) => (None, Err("no answer within 40s".to_owned())),
                };
                shared.observed(&observer, result.as_ref().copied().map_err(String::as_str), now);
                shared.publish_pending(&name, snapshot);
                result.is_ok()
            });
        }
        let mut all = true;
        while let Some(done) = reading.join_next().await {
            all &= matches!(done, Ok(true));
        }
        shared.loops.ended(LoopName::LedgerWatcher, all, clock::now());
        let wait = next.values().min().map_or(Duration::from_secs(1), |at| at.duration_since(Instant::now()));
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(wait.clamp(Duration::from_millis(100), Duration::from_secs(5))) => {}
        }
    }
}
