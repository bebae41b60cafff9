//! How many notifications followed ledgers had, day by day, from what followers keep.

use super::keep::{Places, saved};
use crate::{
    domain::{flow::cells::Level, route::RouteName},
    store::{
        StoreError,
        follower::{FollowedUnit, FollowerStore},
    },
};
use std::collections::BTreeMap;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Why it is not known.
#[derive(Debug, thiserror::Error)]
pub enum AcceptedError {
    /// The store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is kept can't be read.
    #[error("what is kept of the ledger `{ledger}` can't be read: {reason}")]
    Kept {
        /// The ledger.
        ledger: String,
        /// Why.
        reason: String,
    },
}

/// Notifications by the whole UTC days in which they were due, of each of these routes, the first day first: those that are settled, and those that are
/// pending. Every route has the same days: those after the beginning of what is followed, of the newest `days`, that were over when the
/// follower last saved. None where nobody has followed for a whole day.
///
/// # Errors
/// When the store can't be used, or what it keeps can't be read.
pub async fn accepted_by_day<S: FollowerStore + ?Sized>(
    store: &S,
    ledger: &str,
    routes: &[RouteName],
    days: u32,
) -> Result<BTreeMap<RouteName, Vec<u64>>, AcceptedError> {
    let unreadable = |reason| AcceptedError::Kept { ledger: ledger.to_owned(), reason };
    let kept = store.followed(ledger).await?;
    let (Some(position), Some(saved_at)) = (&kept.position, kept.saved_at) else {
        return Ok(BTreeMap::new());
    };
    let horizon = Places::from_text(position).map_err(unreadable)?.horizon;
    let cells = saved(kept, routes).map_err(unreadable)?.cells;
    let hours = || cells.iter().filter(|(key, _)| key.level == Level::Hour);
    let Some(first) = hours().map(|(key, _)| key.start).min() else { return Ok(BTreeMap::new()) };
    let until = saved_at.timestamp().div_euclid(DAY);
    let begun = (horizon.timestamp().max(first) + DAY - 1).div_euclid(DAY);
    let from = begun.max(until - i64::from(days));
    let Ok(length) = usize::try_from(until - from) else { return Ok(BTreeMap::new()) };
    let mut counts = vec![vec![0i64; length]; routes.len()];
    let mut add = |route: usize, second: i64, count: i64| {
        let day = usize::try_from(second.div_euclid(DAY) - from).ok();
        if let Some(sum) = day.and_then(|day| counts.get_mut(route)?.get_mut(day)) {
            *sum += count;
        }
    };
    for (key, cell) in hours() {
        add(usize::from(key.route.0), key.start, cell.settled.iter().sum());
    }
    let mut after = String::new();
    loop {
        let page: Vec<FollowedUnit> = store.followed_units(ledger, &after).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.unit);
        for unit in page {
            let route = routes.iter().position(|route| route.as_str() == unit.route);
            add(route.unwrap_or(usize::MAX), unit.due.timestamp(), 1);
        }
    }
    // A count is below zero only where the ledger showed rows later than the overlap allows.
    let whole = |days: Vec<i64>| days.into_iter().map(|n| u64::try_from(n).unwrap_or(0)).collect();
    let counts = counts.into_iter().map(whole);
    Ok(if length == 0 { BTreeMap::new() } else { routes.iter().cloned().zip(counts).collect() })
}
