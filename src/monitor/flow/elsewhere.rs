//! Whether all that was accepted was written: the ledger's count of the last closed hour, held against one that is independent of it.

use super::{
    Following,
    residue::{MARGIN, last_closed_hour},
};
use crate::{
    clock,
    domain::{
        elsewhere::{Accepted, Bounds, Samples, next_look},
        flow::rows::RouteNo,
    },
    ledger::{Elsewhere, ElsewhereError, FlowReader, LedgerError},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How often the ledger counts an hour, at most, before something is believed to be missing: it may become visible between two countings.
const TRIES: u32 = 3;

/// How long to wait after a count that failed.
const BACK_OFF: Duration = Duration::from_secs(60);

/// How long looks at a text page are kept: the hour that is counted, the one that runs, and one for what the follower is late.
const KEEP: TimeDelta = TimeDelta::hours(3);

/// A timer may wake a little early by the wall clock, and a look has to be behind its mark.
const BEHIND_THE_MARK: Duration = Duration::from_millis(20);

/// Why the accepted of an interval could not be held against each other.
#[derive(Debug, thiserror::Error)]
pub enum AcceptedError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// It could not be counted elsewhere.
    #[error(transparent)]
    Elsewhere(#[from] ElsewhereError),
}

type ByRoute = BTreeMap<RouteNo, Accepted>;

/// The accepted of the last closed hour, on both sides.
#[derive(Default)]
pub struct HeldAgainst {
    watcher: Option<Watcher>,
    /// The hour that is known, by its beginning. Nothing is in it where nothing can be said.
    known: Option<(DateTime<Utc>, ByRoute)>,
    /// The hour that is being counted: what was counted elsewhere, and how often the ledger was asked.
    counting: Option<(DateTime<Utc>, BTreeMap<RouteNo, Bounds>, u32)>,
    not_before: Option<Instant>,
}

impl HeldAgainst {
    /// What is known of the last closed hour.
    pub fn of(&self, route: RouteNo) -> Option<Accepted> {
        self.known.as_ref().and_then(|(_, routes)| routes.get(&route)).copied()
    }

    /// Sees to it that what has to be looked at all the time is looked at.
    pub fn watch(&mut self, ledger: &str, reader: &dyn FlowReader) {
        if self.watcher.is_none()
            && let Some(elsewhere) = reader.elsewhere().filter(|elsewhere| elsewhere.page().is_some())
        {
            self.watcher = Some(Watcher::start(ledger.to_owned(), Arc::clone(elsewhere)));
        }
    }

    /// What came of the newest look at a text page, or why it failed; nothing before the first one, and where there is no page.
    pub fn newest_look(&self) -> Option<Result<(), String>> {
        self.watcher.as_ref().and_then(Watcher::newest_look)
    }

    /// Counts the last closed hour, where it is not known yet: `true` where it was counted now. The follower has just made a pass that read to the
    /// end.
    ///
    /// # Errors
    /// When it can't be counted on one side; it is tried again later.
    pub async fn look(
        &mut self,
        ledger: &str,
        reader: &dyn FlowReader,
        following: &Following,
        as_of: DateTime<Utc>,
    ) -> Result<bool, AcceptedError> {
        let Some(elsewhere) = reader.elsewhere() else { return Ok(false) };
        let closed = as_of - following.overlap();
        let Some(hour) = last_closed_hour(closed - MARGIN) else { return Ok(false) };
        if self.known.as_ref().is_some_and(|(known, _)| *known == hour) {
            return Ok(false);
        }
        // What is known of another hour is no longer that of the last one.
        self.known = None;
        if self.not_before.is_some_and(|at| Instant::now() < at) || hour < following.horizon() {
            return Ok(false);
        }
        self.not_before = Some(Instant::now() + BACK_OFF);
        let until = hour + TimeDelta::hours(1);
        let (bounds, tries) = match self.counting.take() {
            Some((counting, bounds, tries)) if counting == hour => (bounds, tries),
            _ => match &self.watcher {
                None => (elsewhere.accepted(hour, until, closed).await?, 0),
                Some(watcher) => match watcher.increase(hour, until, elsewhere.edge()) {
                    Ok(bounds) => (bounds, 0),
                    Err(reason) => {
                        tracing::info!(event = "accepted_not_known", ledger, hour = %hour.to_rfc3339(), %reason);
                        self.known = Some((hour, ByRoute::new()));
                        return Ok(false);
                    }
                },
            },
        };
        let both = hold(&bounds, reader, following, hour, until).await?;
        self.not_before = None;
        if both.values().all(|accepted| accepted.missing() == 0) || tries + 1 >= TRIES {
            self.known = Some((hour, both));
        } else {
            self.counting = Some((hour, bounds, tries + 1));
        }
        Ok(true)
    }
}

/// The ledger's own count beside the independent one, of each route that the latter says something of.
///
/// # Errors
/// When the ledger can't count.
pub(super) async fn hold(
    bounds: &BTreeMap<RouteNo, Bounds>,
    reader: &dyn FlowReader,
    following: &Following,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<ByRoute, LedgerError> {
    let counted = reader.accepted(from, until).await?;
    let here = |route: RouteNo| match &counted {
        Some(counted) => counted.get(&route).copied().unwrap_or(0),
        None => u64::try_from(following.partition(route, from, until).accepted()).unwrap_or(0),
    };
    Ok(bounds
        .iter()
        .map(|(route, bounds)| (*route, Accepted { here: here(*route), elsewhere: *bounds }))
        .collect())
}

/// Looks at a text page, for as long as it lives.
struct Watcher {
    samples: Arc<Mutex<Samples<RouteNo>>>,
    newest: Arc<Mutex<Option<Result<(), String>>>>,
    _looking: AbortOnDropHandle<()>,
}

impl Watcher {
    fn start(ledger: String, elsewhere: Arc<Elsewhere>) -> Self {
        let samples = Arc::new(Mutex::new(Samples::new(KEEP)));
        let newest = Arc::default();
        let looking =
            tokio::spawn(keep_looking(ledger, elsewhere, Arc::clone(&samples), Arc::clone(&newest)));
        Self { samples, newest, _looking: AbortOnDropHandle::new(looking) }
    }

    fn newest_look(&self) -> Option<Result<(), String>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn increase(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        edge: TimeDelta,
    ) -> Result<BTreeMap<RouteNo, Bounds>, crate::domain::elsewhere::Unknown> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).increase(from, until, edge)
    }
}

async fn keep_looking(
    ledger: String,
    elsewhere: Arc<Elsewhere>,
    samples: Arc<Mutex<Samples<RouteNo>>>,
    newest: Arc<Mutex<Option<Result<(), String>>>>,
) {
    let note = |look| *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(look);
    let Some(page) = elsewhere.page() else { return };
    let mut is_seen = true;
    loop {
        let now = clock::now();
        let wait = (next_look(now, elsewhere.edge()) - now).to_std().unwrap_or_default();
        tokio::time::sleep(wait + BEHIND_THE_MARK).await;
        match page.sample().await {
            Ok(sample) => {
                samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                note(Ok(()));
                if !std::mem::replace(&mut is_seen, true) {
                    tracing::info!(event = "accepted_seen_again", ledger);
                }
            }
            Err(error) => {
                note(Err(error.to_string()));
                if std::mem::replace(&mut is_seen, false) {
                    tracing::warn!(event = "accepted_not_seen", ledger, reason = %error);
                }
            }
        }
    }
}
