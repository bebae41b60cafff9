//! The follower: looks at canaries when their look is due, gathers what can be observed, decides, writes, and tells.

use super::{
    crash,
    decide::{Observed, decide, needs_watch, row_of},
    shared::Shared,
    tell,
    unanswered::Question,
};
use crate::{
    catalog::labels::LoopName,
    clock,
    domain::{
        route::{IdempotencyKey, NotificationId},
        watch::{Watch, Way, bound},
    },
    ledger::Lookup,
    store::{Decision, StoreError, Stored},
};
use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Canaries looked at in one pass, at the most.
const AT_A_TIME: u32 = 400;

/// Longest wait between two passes.
pub const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        let result = pass(&shared, clock::now()).await;
        shared.loops.ended(LoopName::Settler, result.is_ok(), clock::now());
        match result {
            Ok(looked) if looked >= AT_A_TIME as usize => continue,
            Ok(_) => {}
            Err(error) => tracing::debug!(event = "following_postponed", reason = %error),
        }
        let wait = wait_for(&shared, clock::now()).await;
        tokio::select! {
            () = cancel.cancelled() => return,
            () = shared.follow.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn wait_for(shared: &Shared, now: DateTime<Utc>) -> Duration {
    match shared.store.next_due(&shared.location).await {
        Ok(Some(due)) => {
            (due - now).to_std().unwrap_or_default().clamp(Duration::from_millis(20), LONGEST_WAIT)
        }
        Ok(None) | Err(_) => LONGEST_WAIT,
    }
}

/// One pass: how many canaries were looked at.
///
/// # Errors
/// When the store can't be used. Nothing is lost: what is due stays due.
pub async fn pass(shared: &Shared, now: DateTime<Utc>) -> Result<usize, StoreError> {
    let due = shared.store.due(&shared.location, now, AT_A_TIME).await?;
    if due.is_empty() {
        return Ok(0);
    }
    crash::point("due_loaded");
    let readings = read_ledgers(shared, &due).await;
    crash::point("ledger_read");
    // Time has passed while the ledger answered; what is decided is decided now.
    let now = clock::now().max(now);
    let watches = read_watches(shared, &due, now).await?;
    let mut decisions: Vec<Decision> = Vec::with_capacity(due.len());
    for stored in &due {
        let watch = way_of(stored, shared).and_then(|(way, _)| watches.get(&way).cloned());
        let observed = Observed { reading: reading_of(stored, &readings, shared), watch };
        decisions.push(decide(stored, observed, now));
    }
    crash::point("decided_not_written");
    let written = shared.store.decide(&decisions).await?;
    crash::point("decision_written");
    for ((stored, decision), written) in due.iter().zip(&decisions).zip(written) {
        if written {
            tell::decided(shared, stored, decision);
        }
    }
    Ok(due.len())
}

fn ledger_of(stored: &Stored, shared: &Shared) -> Option<String> {
    if stored.canary.plan.kind.is_control() {
        return None;
    }
    shared.active.load().routes.get(&stored.canary.plan.route)?.config.ledger.clone()
}

/// Asks each ledger once, for all canaries that are due.
async fn read_ledgers(shared: &Shared, due: &[Stored]) -> BTreeMap<String, Lookup> {
    let mut wanted: BTreeMap<String, (Vec<NotificationId>, Vec<IdempotencyKey>)> = BTreeMap::new();
    for stored in due {
        let Some(ledger) = ledger_of(stored, shared) else { continue };
        let (ids, keys) = wanted.entry(ledger).or_default();
        ids.extend(stored.canary.notification_ids().into_iter().cloned());
        keys.push(stored.canary.plan.key.clone());
    }
    let active = shared.active.load_full();
    let ask = wanted.into_iter().filter_map(|(name, (ids, keys))| {
        let adapter = Arc::clone(&active.adapters.ledgers.get(&name)?.lookup);
        Some(async move {
            match adapter.lookup(&ids, &keys).await {
                Ok(lookup) => {
                    shared.answered(&name);
                    Some((name, lookup))
                }
                Err(error) => {
                    shared.not_answered(&name, Question { ids, keys }, &error);
                    None
                }
            }
        })
    });
    join_all(ask).await.into_iter().flatten().collect()
}

fn reading_of(
    stored: &Stored,
    readings: &BTreeMap<String, Lookup>,
    shared: &Shared,
) -> Option<(DateTime<Utc>, Option<crate::domain::evidence::LedgerRow>)> {
    let name = ledger_of(stored, shared)?;
    let lookup = readings.get(&name)?;
    let ids = stored.canary.notification_ids();
    let finds_by = shared.active.load().adapters.ledgers.get(&name)?.lookup.finds_by();
    if !finds_by.keys && (ids.is_empty() || !finds_by.ids) {
        // It could not be asked for: that nothing was found proves nothing.
        return None;
    }
    Some((lookup.as_of, row_of(lookup, &stored.canary.plan.key, &ids)))
}

/// The way by which a canary's receipt comes, and how often it is proven; the way of now where the canary does not say. None where
/// the address was changed between its submissions: no record is that of both.
fn way_of(stored: &Stored, shared: &Shared) -> Option<(Way, Duration)> {
    let active = shared.active.load();
    let receiver = &active.routes.get(&stored.canary.plan.route)?.config.receipt.as_ref()?.receiver;
    let sink = active.adapters.sinks.get(receiver)?;
    let ways = stored.canary.acceptance.ways();
    let way = if ways.len() > 1 { return None } else { ways.first().copied().unwrap_or_else(|| sink.way()) };
    Some((way, sink.prove_every()))
}

/// Reads the record of each way once, over the span that the canaries of this pass need of it.
async fn read_watches(
    shared: &Shared,
    due: &[Stored],
    now: DateTime<Utc>,
) -> Result<BTreeMap<Way, Arc<Watch>>, StoreError> {
    let mut spans: BTreeMap<Way, (DateTime<Utc>, DateTime<Utc>, Duration)> = BTreeMap::new();
    for stored in due {
        let Some((from, until)) = needs_watch(&stored.canary, now) else { continue };
        let Some((way, every)) = way_of(stored, shared) else { continue };
        let span = spans.entry(way).or_insert((from, until, every));
        *span = (span.0.min(from), span.1.max(until), every);
    }
    let mut watches = BTreeMap::new();
    for (way, (from, until, every)) in spans {
        let bound = bound(every);
        let from = from.checked_sub_signed(bound).unwrap_or(from);
        let marks = shared.store.sink_marks(way, from, until).await?;
        watches.insert(way, Arc::new(Watch { marks, bound }));
    }
    Ok(watches)
}
