//! The store watcher: whether the store can keep the contract now, which pauses are in force, and how far its clock is from ours.

use super::shared::Shared;
use crate::{
    catalog::labels::LoopName,
    clock::{self, Skew},
    store::StoreError,
};
use chrono::TimeDelta;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Between two looks. It bounds how long a pause takes to be seen, and how long our time is wrong after the store's clock was set.
const EVERY: Duration = Duration::from_millis(500);

/// Every so many looks a write is tried.
const WRITE_EVERY: u32 = 10;

/// Clocks of a fleet that are further apart than this are not kept right by anybody. Nothing is wrong by it, since the store's time is
/// kept: it is told so that somebody looks.
pub const MOST_SKEW: TimeDelta = TimeDelta::seconds(5);

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut looks = 0u32;
    let mut is_skewed = false;
    while !cancel.is_cancelled() {
        let was_up = shared.store_up.load(Ordering::Relaxed);
        let result = look(&shared, looks.is_multiple_of(WRITE_EVERY) || !was_up).await;
        shared.store_up.store(result.is_ok(), Ordering::Relaxed);
        shared.loops.store_tried(result.is_ok());
        shared.loops.ended(LoopName::StoreWatcher, result.is_ok(), clock::now());
        match result {
            Ok(skew) => {
                if !was_up {
                    tracing::info!(event = "store_up");
                }
                is_skewed = skew.is_some_and(|skew| tell(is_skewed, skew));
            }
            Err(error) if was_up || looks == 0 => tracing::warn!(event = "store_down", reason = %error),
            Err(_) => {}
        }
        looks = looks.wrapping_add(1);
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// The look comes first: it sets our clock, by which all else is done.
async fn look(shared: &Shared, write: bool) -> Result<Option<Skew>, StoreError> {
    let look = shared.store.look().await?;
    shared.learn_pauses(look.pauses);
    shared.store_skew.store(look.skew.map(Arc::new));
    if write {
        shared.store.ping().await?;
    }
    Ok(look.skew)
}

/// Says once that the clocks are far apart, and once that they are together again. Answers whether they are far apart.
fn tell(was_skewed: bool, skew: Skew) -> bool {
    // A reading that is in doubt changes nothing.
    let is_skewed =
        if was_skewed { skew.ahead.abs() + skew.error > MOST_SKEW } else { skew.exceeds(MOST_SKEW) };
    let (ahead_seconds, error_seconds) = (skew.ahead.as_seconds_f64(), skew.error.as_seconds_f64());
    match (was_skewed, is_skewed) {
        (false, true) => tracing::warn!(
            event = "clock_skewed",
            ahead_seconds,
            error_seconds,
            "the store's clock and this machine's differ; the store's time is kept; set the wrong one right"
        ),
        (true, false) => tracing::info!(event = "clock_skew_ended", ahead_seconds, error_seconds),
        _ => {}
    }
    is_skewed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_in_doubt_turns_nothing() {
        let skew = |ahead, error| Skew { ahead: TimeDelta::seconds(ahead), error: TimeDelta::seconds(error) };
        for ahead in [90, -90] {
            assert!(tell(false, skew(ahead, 0)), "{ahead} s apart");
        }
        assert!(!tell(false, skew(6, 2)), "it may be four");
        assert!(tell(true, skew(4, 2)), "it may be six");
        assert!(!tell(true, skew(2, 2)));
    }
}
