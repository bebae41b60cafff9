//! The prover: sends messages to ourselves by the way that canaries take. Without one that arrived, a missing receipt proves nothing.

use super::{
    adapters::Sink,
    shared::Shared,
    sight::{Look, Reading},
    snapshot::Observer,
};
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
    // The receivers whose newest message could not be sent, and why.
    let mut failing: HashMap<String, String> = HashMap::new();
    let mut sending = FuturesUnordered::new();
    let mut under_way: HashSet<String> = HashSet::new();
    while !cancel.is_cancelled() {
        let active = shared.active.load_full();
        next.retain(|name, _| active.adapters.sinks.contains_key(name));
        failing.retain(|name, _| active.adapters.sinks.contains_key(name));
        for (name, sink) in &active.adapters.sinks {
            if under_way.contains(name) || next.get(name).is_some_and(|at| *at > Instant::now()) {
                continue;
            }
            next.insert(name.clone(), Instant::now() + sink.prove_every());
            under_way.insert(name.clone());
            sending.push(send(Arc::clone(&shared), name.clone(), Arc::clone(sink)));
        }
        expire(&shared, &next, &failing);
        shared.loops.ended(LoopName::Prover, failing.is_empty(), clock::now());
        let due = next.iter().filter(|(name, _)| !under_way.contains(*name)).map(|(_, at)| *at).min();
        let wait = due.map_or(Duration::from_secs(1), |at| at.duration_since(Instant::now()));
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(wait.clamp(Duration::from_millis(100), Duration::from_secs(5))) => {}
            Some((name, result)) = sending.next(), if !sending.is_empty() => {
                under_way.remove(&name);
                match result {
                    Ok(()) => failing.remove(&name),
                    Err(reason) => failing.insert(name, reason),
                };
            }
        }
    }
}

/// Sends one message, and says what came of that.
async fn send(shared: Arc<Shared>, name: String, sink: Arc<dyn Sink>) -> (String, Result<(), String>) {
    let began = std::time::Instant::now();
    let sent = tokio::time::timeout(LIMIT, sink.prove()).await;
    let result = sent.unwrap_or_else(|_| Err("no answer within 10s".to_owned()));
    // It came all the way: what is broken is not the way, whatever the missing answer looks like from outside.
    let has_come = || shared.message_came_since(&name, began);
    let result = result.map_err(|reason| if has_come() { NOT_WRITTEN.to_owned() } else { reason });
    (name, result)
}

/// A receiver is down when no message to ourselves has arrived in three intervals, whatever the answers to them were: an arrival is the proof,
/// and one message that is lost is no outage. One that none ever arrived at is down as soon as one can't be sent.
fn expire(shared: &Shared, receivers: &HashMap<String, Instant>, failing: &HashMap<String, String>) {
    let now = clock::now();
    let active = shared.active.load();
    let sights = shared.sights();
    for name in receivers.keys() {
        let observer = Observer::Receiver(name.clone());
        let every = active.adapters.sinks.get(name).map_or(Duration::from_secs(15), |s| s.prove_every());
        let patience = TimeDelta::from_std(every * 3).unwrap_or(TimeDelta::seconds(60));
        let sent = failing.get(name);
        let is_missing = match sights.get(&observer, Reading::Message) {
            Some(sight) => sight.up && sight.last_success.is_some_and(|at| now - at > patience),
            None => sent.is_some(),
        };
        if !is_missing {
            continue;
        }
        let has_come = std::time::Instant::now()
            .checked_sub(every * 3)
            .is_some_and(|then| shared.message_came_since(name, then));
        let silent = if has_come { NOT_WRITTEN } else { "messages to ourselves are sent and do not arrive" };
        let reason = sent.map_or(silent, String::as_str);
        shared.observed(&observer, Reading::Message, Look::failed(reason), now);
    }
}
