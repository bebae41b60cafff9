//! The ledger watcher: reads everybody's pending notifications, each ledger in its own time, and asks again what a ledger did not answer.

use super::{
    adapters::LedgerAdapter,
    shared::Shared,
    sight::{Look, Reading},
    snapshot::Observer,
    unanswered::Question,
};
use crate::{catalog::labels::LoopName, clock, domain::route::RouteName, ledger::LedgerError};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

/// Limit on one reading. The adapter has its own, shorter; this one keeps the loop alive whatever the adapter does.
const LIMIT: Duration = Duration::from_secs(40);

/// Why a reading that ran into it failed.
const NO_ANSWER: &str = "no answer within 40s";

/// When each reading of a ledger is to be made next.
type Next = HashMap<(String, Reading), Instant>;

/// Runs until it is cancelled.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut next = Next::new();
    while !cancel.is_cancelled() {
        let active = shared.active.load_full();
        next.retain(|(name, _), _| active.adapters.ledgers.contains_key(name));
        shared.unanswered.retain(|name| active.adapters.ledgers.contains_key(name));
        let mut reading = JoinSet::new();
        for (name, ledger) in &active.adapters.ledgers {
            // The follower tells the same, for less; on another replica too.
            let pending = ledger.pending.refresh_every().filter(|_| !shared.flow(name).tells_pending());
            if pending.is_none() {
                shared.forget(&Observer::Ledger(name.clone()), Reading::Pending);
            }
            if is_due(&mut next, (name, Reading::Pending), pending) {
                let deadlines = active.deadlines(name);
                reading.spawn(read_pending(Arc::clone(&shared), name.clone(), ledger.clone(), deadlines));
            }
            let question = question(&shared, name);
            let refresh = active.config.ledgers.get(name).map(|ledger| ledger.refresh_every.get());
            if is_due(&mut next, (name, Reading::Lookup), refresh.filter(|_| question.is_some()))
                && let Some(question) = question
            {
                reading.spawn(ask_again(Arc::clone(&shared), name.clone(), ledger.clone(), question));
            }
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

/// Whether a reading that is made so often is due now; then it is next due after that time. One that is not made is not due.
fn is_due(next: &mut Next, (ledger, reading): (&str, Reading), every: Option<Duration>) -> bool {
    let (key, now) = ((ledger.to_owned(), reading), Instant::now());
    let Some(every) = every else {
        next.remove(&key);
        return false;
    };
    let is_due = next.get(&key).is_none_or(|at| *at <= now);
    if is_due {
        next.insert(key, now + every);
    }
    is_due
}

/// Reads everybody's pending of a ledger, and says whether that went well.
async fn read_pending(
    shared: Arc<Shared>,
    name: String,
    ledger: LedgerAdapter,
    deadlines: BTreeMap<RouteName, Duration>,
) -> bool {
    let began = Instant::now();
    let read = tokio::time::timeout(LIMIT, ledger.pending.pending(&deadlines)).await;
    if let Some(counters) = shared.counters.ledger(&name) {
        counters.read_seconds.observe(began.elapsed());
    }
    if matches!(read, Ok(Ok(_))) && ledger.pending.figures().role_can_write.is_none() {
        // Not known for now is no harm: it is asked again after the next reading.
        let _ = tokio::time::timeout(LIMIT, ledger.pending.learn_role()).await;
    }
    let observer = Observer::Ledger(name.clone());
    let observed = |look: Look<'_>| shared.observed(&observer, Reading::Pending, look, clock::now());
    let snapshot = match read {
        Ok(Ok(snapshot)) => {
            observed(if snapshot.is_empty() { Look::Empty } else { Look::Good });
            Some(snapshot)
        }
        Ok(Err(error)) => {
            observed(Look::of(&error, &error.to_string()));
            None
        }
        Err(_) => {
            observed(Look::failed(NO_ANSWER));
            None
        }
    };
    let is_good = snapshot.is_some();
    shared.publish_pending(&name, snapshot);
    is_good
}

/// What a ledger is to be asked: what it did not answer; or, until it is known to, whether it answers at all.
fn question(shared: &Shared, ledger: &str) -> Option<Question> {
    let observer = Observer::Ledger(ledger.to_owned());
    let is_up = || shared.sights().is_reading_up(&observer, Reading::Lookup);
    shared.unanswered.get(ledger).or_else(|| (!is_up()).then(Question::about_nobody))
}

/// Asks a ledger, and says whether it answered. Only this ends that a lookup has failed.
async fn ask_again(shared: Arc<Shared>, name: String, ledger: LedgerAdapter, question: Question) -> bool {
    let asked = tokio::time::timeout(LIMIT, ledger.lookup.lookup(&question.ids, &question.keys)).await;
    let no_answer = LedgerError::Unreachable(NO_ANSWER.to_owned());
    match asked.unwrap_or(Err(no_answer)) {
        Ok(_) => {
            shared.unanswered.answered(&name);
            let observer = Observer::Ledger(name);
            shared.observed(&observer, Reading::Lookup, Look::Good, clock::now());
            true
        }
        Err(error) => {
            shared.not_answered(&name, question, &error);
            false
        }
    }
}
