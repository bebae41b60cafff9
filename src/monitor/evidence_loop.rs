//! Keeps the book of failure evidence in step with the store, whoever settled: this process, a replica, or a run before.

use super::{evidence::Refolded, shared::Shared, turns::Turns};
use crate::{
    catalog::labels::LoopName,
    clock,
    domain::route::RouteName,
    store::{Settled, StoreError},
};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
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
    let (mut change, mut turns) = (None, Turns::default());
    while !cancel.is_cancelled() {
        let result = step(&shared, &mut change, clock::now()).await;
        shared.loops.ended(LoopName::Evidence, result.is_ok(), clock::now());
        match result {
            Ok(()) => look(&shared, &mut turns),
            Err(error) => tracing::debug!(event = "evidence_postponed", reason = %error),
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Takes in what settled since the last step. On the first one, and for a route with new weights, folds from the beginning. What
/// the store did not let be folded is due still in the next step.
async fn step(shared: &Shared, change: &mut Option<i64>, now: DateTime<Utc>) -> Result<(), StoreError> {
    apply_weights(shared);
    let due = shared.evidence().due();
    let mut refold: BTreeMap<RouteName, From> = due.into_iter().map(|route| (route, None)).collect();
    let known = match *change {
        Some(known) => known,
        // The feed is joined at its end before anything is folded: what settles in between comes twice, never not at all.
        // It is noted at once: if the store fails before all routes are folded, those that were miss nothing.
        None => *change.insert(shared.store.newest_change().await?),
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

fn apply_weights(shared: &Shared) {
    let active = shared.active.load();
    let mut book = shared.evidence();
    book.retain(|route| active.routes.contains_key(route));
    for (name, route) in &active.routes {
        book.set_weights(name, route.weights);
    }
}

/// Tells of the routes that turned. All that settled was folded, so none is told of on half of its canaries.
fn look(shared: &Shared, turns: &mut Turns) {
    let active = shared.active.load();
    turns.retain(|route| active.routes.contains_key(route));
    let book = shared.evidence();
    for (name, route) in &active.routes {
        turns.look(name, &shared.location, &book.get(name), &route.weights);
    }
}

async fn fold(shared: &Shared, route: &RouteName, from: From, now: DateTime<Utc>) -> Result<(), StoreError> {
    let beginning = DateTime::<Utc>::UNIX_EPOCH;
    let settled: Vec<Settled> =
        shared.store.settled(&shared.location, Some(route), from.unwrap_or(beginning)).await?;
    let follow_for =
        shared.active.load().routes.get(route).map_or(TimeDelta::days(1), |r| r.config.follow_for.delta());
    let stable = now - follow_for - TimeDelta::hours(1);
    let refolded = shared.evidence().refold(route, &settled, from.is_some(), stable);
    if let Some(refolded) = refolded {
        tell(shared, route, &refolded);
    }
    Ok(())
}

/// Says that what was known is weighed otherwise from now on. A page may come or go by that alone.
fn tell(shared: &Shared, route: &RouteName, refolded: &Refolded) {
    let Some(old) = refolded.old.filter(|old| *old != refolded.new) else { return };
    tracing::info!(
        event = "evidence_refolded",
        route = route.as_str(),
        location = shared.location.as_str(),
        old = %old,
        new = %refolded.new,
        canaries = refolded.canaries,
        from = refolded.from.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true)),
        arrives_before = refolded.before.arrives.value,
        arrives = refolded.now.arrives.value,
        in_time_before = refolded.before.in_time.value,
        in_time = refolded.now.in_time.value,
        "the evidence is weighed by other rules from now on, the settled canaries of before included"
    );
}
