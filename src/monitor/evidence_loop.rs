//! Keeps the book of failure evidence in step with the store, whoever settled: this process, a replica, or a run before.

use super::shared::Shared;
use crate::{
    catalog::labels::LoopName,
    domain::route::RouteName,
    store::{Settled, StoreError},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Judgements read in one step.
const AT_A_TIME: u32 = 2_000;

/// Longest wait between two steps.
const EVERY: Duration = Duration::from_millis(500);

/// Where a refold of a route has to begin; nothing: at its beginning.
type From = Option<DateTime<Utc>>;

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut change = None;
    while !cancel.is_cancelled() {
        let result = step(&shared, &mut change, Utc::now()).await;
        shared.loops.ended(LoopName::Evidence, result.is_ok(), Utc::now());
        if let Err(error) = result {
            tracing::debug!(event = "evidence_postponed", reason = %error);
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Takes in what settled since the last step. On the first one, and for a route with new rules, folds from the beginning.
async fn step(shared: &Shared, change: &mut Option<i64>, now: DateTime<Utc>) -> Result<(), StoreError> {
    let mut refold: BTreeMap<RouteName, From> =
        apply_rules(shared).into_iter().map(|route| (route, None)).collect();
    let known = match *change {
        Some(known) => known,
        // The feed is joined at its end before anything is folded: what settles in between comes twice, never not at all.
        None => shared.store.newest_change().await?,
    };
    let mut newest = known;
    loop {
        let settled = shared.store.settled_since(&shared.location, newest, AT_A_TIME).await?;
        let mut book = shared.evidence();
        for one in &settled {
            newest = newest.max(one.change);
            if !one.kind.is_evidence() {
                continue;
            }
            if let Some(from) = book.take(one) {
                let known = refold.entry(one.route.clone()).or_insert(from);
                *known = (*known).min(from);
            }
        }
        drop(book);
        if settled.len() < AT_A_TIME as usize {
            break;
        }
    }
    for (route, from) in refold {
        fold(shared, &route, from, now).await?;
    }
    *change = Some(newest);
    Ok(())
}

fn apply_rules(shared: &Shared) -> Vec<RouteName> {
    let active = shared.active.load();
    let mut book = shared.evidence();
    book.retain(|route| active.routes.contains_key(route));
    let is_new = |name: &&RouteName| {
        let route = &active.routes[*name];
        book.set_rules(name, route.weights, route.config.expected_end)
    };
    active.routes.keys().filter(is_new).cloned().collect()
}

async fn fold(shared: &Shared, route: &RouteName, from: From, now: DateTime<Utc>) -> Result<(), StoreError> {
    let beginning = DateTime::<Utc>::UNIX_EPOCH;
    let settled: Vec<Settled> =
        shared.store.settled(&shared.location, Some(route), from.unwrap_or(beginning)).await?;
    let follow_for =
        shared.active.load().routes.get(route).map_or(TimeDelta::days(1), |r| r.config.follow_for.delta());
    let stable = now - follow_for - TimeDelta::hours(1);
    shared.evidence().refold(route, &settled, from.is_some(), stable);
    Ok(())
}
