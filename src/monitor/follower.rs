//! The follower: looks at canaries when their look is due, gathers what can be observed, decides, writes, and tells.
//!
//! The canaries of each ledger are looked at by themselves, so that a ledger that is slow, or silent, holds up no verdict on others.

use super::{
    active::Active,
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
        evidence::LedgerRow,
        route::RouteName,
        watch::{Watch, Way, bound},
    },
    ledger::{FindsBy, LedgerError, Lookup},
    store::{Decision, StoreError, Stored},
};
use chrono::{DateTime, Utc};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Canaries looked at in one round, at the most.
const AT_A_TIME: u32 = 400;

/// Longest wait between two rounds.
pub const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How long a round waits for its looks. Those that take longer go on beside the next rounds.
const ROUND: Duration = Duration::from_millis(500);

/// Between two rounds while looks of an earlier one are under way.
const BESIDE: Duration = Duration::from_millis(200);

/// Longest time of one lookup: above the longest `statement_timeout` and what comes on top of it.
const LOOKUP_LIMIT: Duration = Duration::from_secs(25);

/// Runs until it is cancelled. Looks under way then come to their end.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut looks = Looks::default();
    while !cancel.is_cancelled() {
        let result = looks.round(&shared, clock::now()).await;
        shared.loops.ended(LoopName::Settler, result.is_ok(), clock::now());
        match result {
            Ok(looked) if looked >= AT_A_TIME as usize => continue,
            Ok(_) => {}
            Err(error) => tracing::debug!(event = "following_postponed", reason = %error),
        }
        let wait = looks.wait(&shared, clock::now()).await;
        tokio::select! {
            () = cancel.cancelled() => break,
            () = shared.follow.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    while let Some(ended) = looks.tasks.join_next().await {
        if let Err(error) = looks.ended(ended) {
            tracing::debug!(event = "following_postponed", reason = %error);
        }
    }
}

/// What one look at canaries came to, and the ledger that it asked.
type Ended = (Option<String>, Result<(), StoreError>);

/// Looks under way: one at a time for each ledger, and one for what has none.
#[derive(Default)]
struct Looks {
    tasks: JoinSet<Ended>,
    under_way: BTreeMap<Option<String>, BTreeSet<RouteName>>,
}

impl Looks {
    /// Begins a look at what is due, ledger by ledger, and waits a while for their ends: at how many canaries.
    ///
    /// # Errors
    /// When the store can't be used. Nothing is lost: what is due stays due.
    async fn round(&mut self, shared: &Arc<Shared>, now: DateTime<Utc>) -> Result<usize, StoreError> {
        while let Some(ended) = self.tasks.try_join_next() {
            self.ended(ended)?;
        }
        let active = shared.active.load_full();
        let busy = self.busy_routes(&active);
        let due = shared.store.due(&shared.location, now, AT_A_TIME, &busy).await?;
        if due.is_empty() {
            return Ok(0);
        }
        crash::point("due_loaded");
        let mut groups: BTreeMap<Option<String>, Vec<Stored>> = BTreeMap::new();
        for stored in due {
            groups.entry(ledger_of(&stored, &active)).or_default().push(stored);
        }
        groups.retain(|ledger, _| !self.under_way.contains_key(ledger));
        let looked = groups.values().map(Vec::len).sum();
        let mut awaited: BTreeSet<Option<String>> = groups.keys().cloned().collect();
        for (ledger, due) in groups {
            let routes = due.iter().map(|stored| stored.canary.plan.route.clone()).collect();
            self.under_way.insert(ledger.clone(), routes);
            let (shared, active) = (Arc::clone(shared), Arc::clone(&active));
            self.tasks.spawn(async move {
                let result = look(&shared, &active, ledger.as_deref(), &due, now).await;
                (ledger, result)
            });
        }
        let patience = tokio::time::sleep(ROUND);
        tokio::pin!(patience);
        while !awaited.is_empty() {
            tokio::select! {
                Some(ended) = self.tasks.join_next() => {
                    awaited.remove(&self.ended(ended)?);
                }
                () = &mut patience => break,
            }
        }
        Ok(looked)
    }

    /// Routes whose canaries would be looked at by a ledger that is being asked.
    fn busy_routes(&self, active: &Active) -> Vec<RouteName> {
        let mut busy: BTreeSet<&RouteName> = self.under_way.values().flatten().collect();
        let is_asked = |ledger: &Option<String>| ledger.is_some() && self.under_way.contains_key(ledger);
        busy.extend(active.routes.iter().filter(|(_, r)| is_asked(&r.config.ledger)).map(|(name, _)| name));
        busy.into_iter().cloned().collect()
    }

    /// Takes a look off the list: which ledger it asked.
    fn ended(&mut self, ended: Result<Ended, JoinError>) -> Result<Option<String>, StoreError> {
        // A panic ends this loop too, so that our own probe shows it.
        let (ledger, result) = ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.under_way.remove(&ledger);
        result.map(|()| ledger)
    }

    async fn wait(&self, shared: &Shared, now: DateTime<Utc>) -> Duration {
        if !self.under_way.is_empty() {
            return BESIDE;
        }
        match shared.store.next_due(&shared.location).await {
            Ok(Some(due)) => {
                (due - now).to_std().unwrap_or_default().clamp(Duration::from_millis(20), LONGEST_WAIT)
            }
            Ok(None) | Err(_) => LONGEST_WAIT,
        }
    }
}

/// Looks at canaries of one ledger, or at those that have none: gathers, decides, writes, tells.
async fn look(
    shared: &Shared,
    active: &Active,
    ledger: Option<&str>,
    due: &[Stored],
    began: DateTime<Utc>,
) -> Result<(), StoreError> {
    let lookup = match ledger {
        Some(name) => read_ledger(shared, active, name, due).await,
        None => None,
    };
    crash::point("ledger_read");
    // Time has passed while the ledger answered; what is decided is decided now.
    let now = clock::now().max(began);
    let watches = read_watches(shared, active, due, now).await?;
    let mut decisions: Vec<Decision> = Vec::with_capacity(due.len());
    for stored in due {
        let watch = way_of(stored, active).and_then(|(way, _)| watches.get(&way).cloned());
        let reading = lookup.as_ref().and_then(|(lookup, finds_by)| reading_of(stored, lookup, *finds_by));
        decisions.push(decide(stored, Observed { reading, watch }, now));
    }
    crash::point("decided_not_written");
    let written = shared.store.decide(&decisions).await?;
    crash::point("decision_written");
    for ((stored, decision), written) in due.iter().zip(&decisions).zip(written) {
        if written {
            tell::decided(shared, stored, decision);
        }
    }
    Ok(())
}

/// The ledger in which a canary is looked for: that of its submissions, and where they do not say that of its route. None where there
/// were two: that it is in neither, no single reading proves.
fn ledger_of(stored: &Stored, active: &Active) -> Option<String> {
    let plan = &stored.canary.plan;
    if plan.kind.is_control() {
        return None;
    }
    let of_submissions = stored.canary.acceptance.ledgers();
    let ledger = match of_submissions.len() {
        0 => active.routes.get(&plan.route)?.config.ledger.as_deref()?,
        1 => of_submissions.first()?,
        _ => return None,
    };
    active.adapters.ledgers.contains_key(ledger).then(|| ledger.to_owned())
}

/// Asks a ledger once, for all its canaries that are due.
async fn read_ledger(
    shared: &Shared,
    active: &Active,
    name: &str,
    due: &[Stored],
) -> Option<(Lookup, FindsBy)> {
    let adapter = &active.adapters.ledgers.get(name)?.lookup;
    let ids: Vec<_> = due.iter().flat_map(|s| s.canary.notification_ids().into_iter().cloned()).collect();
    let keys: Vec<_> = due.iter().map(|stored| stored.canary.plan.key.clone()).collect();
    let late = LedgerError::Timeout { query: "lookup", limit: LOOKUP_LIMIT, reason: "the whole of it" };
    match tokio::time::timeout(LOOKUP_LIMIT, adapter.lookup(&ids, &keys)).await.unwrap_or(Err(late)) {
        Ok(lookup) => {
            shared.answered(name);
            Some((lookup, adapter.finds_by()))
        }
        Err(error) => {
            shared.not_answered(name, Question { ids, keys }, &error);
            None
        }
    }
}

/// What a lookup says of one canary; nothing where it could not be asked for: that nothing was found proves nothing then.
fn reading_of(
    stored: &Stored,
    lookup: &Lookup,
    finds_by: FindsBy,
) -> Option<(DateTime<Utc>, Option<LedgerRow>)> {
    let ids = stored.canary.notification_ids();
    let can_be_found = finds_by.keys || (finds_by.ids && !ids.is_empty());
    can_be_found.then(|| (lookup.as_of, row_of(lookup, &stored.canary.plan.key, &ids)))
}

/// The way by which a canary's receipt comes, and how often it is proven; the way of now where the canary does not say. None where
/// the address was changed between its submissions: no record is that of both.
fn way_of(stored: &Stored, active: &Active) -> Option<(Way, Duration)> {
    let receiver = &active.routes.get(&stored.canary.plan.route)?.config.receipt.as_ref()?.receiver;
    let sink = active.adapters.sinks.get(receiver)?;
    let ways = stored.canary.acceptance.ways();
    let way = if ways.len() > 1 { return None } else { ways.first().copied().unwrap_or_else(|| sink.way()) };
    Some((way, sink.prove_every()))
}

/// Reads the record of each way once, over the span that the canaries of this pass need of it.
async fn read_watches(
    shared: &Shared,
    active: &Active,
    due: &[Stored],
    now: DateTime<Utc>,
) -> Result<BTreeMap<Way, Arc<Watch>>, StoreError> {
    let mut spans: BTreeMap<Way, (DateTime<Utc>, DateTime<Utc>, Duration)> = BTreeMap::new();
    for stored in due {
        let Some((from, until)) = needs_watch(&stored.canary, now) else { continue };
        let Some((way, every)) = way_of(stored, active) else { continue };
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
