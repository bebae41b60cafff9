//! The prover: sends messages to ourselves by the way that canaries take. Without one that arrived, a missing receipt proves nothing.

use super::{adapters::Sink, shared::Shared, snapshot::Observer};
use crate::{catalog::labels::LoopName, clock};
use chrono::TimeDelta;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Limit on sending one message to ourselves.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a message to ourselves that came proves nothing.
const NOT_WRITTEN: &str =
    "a message to ourselves arrived and could not be written down: the store is down, locked or slow";

/// Runs until it is cancelled. Each receiver keeps its own time, and none waits for another one's message.
pub async fn run(shared: Arc<Shared>, cancel: CancellationToken) {
    let mut next: HashMap<String, Instant> = HashMap::new();
    let mut failing: HashSet<String> = HashSet::new();
    let mut sending = FuturesUnordered::new();
    let mut under_way: HashSet<String> = HashSet::new();
    while !cancel.is_cancelled() {
        let active = shared.active.load_full();
        next.retain(|name, _| active.adapters.sinks.contains_key(name));
        failing.retain(|name| active.adapters.sinks.contains_key(name));
        for (name, sink) in &active.adapters.sinks {
            if under_way.contains(name) || next.get(name).is_some_and(|at| *at > Instant::now()) {
                continue;
            }
            next.insert(name.clone(), Instant::now() + sink.prove_every());
            under_way.insert(name.clone());
            sending.push(send(Arc::clone(&shared), name.clone(), Arc::clone(sink)));
        }
        expire(&shared, &next);
        shared.loops.ended(LoopName::Prover, failing.is_empty(), clock::now());
        let due = next.iter().filter(|(name, _)| !under_way.contains(*name)).map(|(_, at)| *at).min();
        let wait = due.map_or(Duration::from_secs(1), |at| at.duration_since(Instant::now()));
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(wait.clamp(Duration::from_millis(100), Duration::from_secs(5))) => {}
            Some((name, has_failed)) = sending.next(), if !sending.is_empty() => {
                under_way.remove(&name);
                if has_failed {
                    failing.insert(name);
                } else {
                    failing.remove(&name);
                }
            }
        }
    }
}

/// Sends one message, and says whether that failed.
async fn send(shared: Arc<Shared>, name: String, sink: Arc<dyn Sink>) -> (String, bool) {
    let began = std::time::Instant::now();
    let sent = tokio::time::timeout(LIMIT, sink.prove()).await;
    let result = sent.unwrap_or_else(|_| Err("no answer within 10s".to_owned()));
    if let Err(reason) = &result {
        // It came all the way: what is broken is not the way, whatever the missing answer looks like from outside.
        let reason = if shared.message_came_since(&name, began) { NOT_WRITTEN } else { reason };
        shared.observed(&Observer::Receiver(name.clone()), Err(reason), clock::now());
    }
    (name, result.is_err())
}

/// A message that was sent well and never arrived leaves its receiver down after three intervals.
fn expire(shared: &Shared, receivers: &HashMap<String, Instant>) {
    let now = clock::now();
    let active = shared.active.load();
    let observers = shared.observers();
    for name in receivers.keys() {
        let observer = Observer::Receiver(name.clone());
        let every = active.adapters.sinks.get(name).map_or(Duration::from_secs(15), |s| s.prove_every());
        let patience = TimeDelta::from_std(every * 3).unwrap_or(TimeDelta::seconds(60));
        if observers
            .get(&observer)
            .is_some_and(|o| o.up && o.last_success.is_some_and(|at| now - at > patience))
        {
            let has_come = std::time::Instant::now()
                .checked_sub(every * 3)
                .is_some_and(|then| shared.message_came_since(name, then));
            let reason =
                if has_come { NOT_WRITTEN } else { "messages to ourselves are sent and do not arrive" };
            shared.observed(&observer, Err(reason), now);
        }
    }
}
