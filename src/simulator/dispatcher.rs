//! Takes up what is due and has it delivered, so many at a time; and records every attempt, however long that takes.

use super::{
    delivery::Deliverer,
    fault::Fault,
    faults::{Faults, Stuck},
    ledger::{Attempt, Ledger, Next, Work},
    statistics::{Event, Statistics},
};
use chrono::Utc;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Longest wait between two looks for what is due.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Most that is taken up at once.
const MOST_AT_ONCE: usize = 128;

/// When the dispatcher's loop last went round.
#[derive(Debug)]
pub struct Heartbeat {
    start: Instant,
    last_millis: AtomicU64,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { start: Instant::now(), last_millis: AtomicU64::new(0) }
    }
}

impl Heartbeat {
    fn beat(&self) {
        self.last_millis.store(self.elapsed_millis(), Ordering::Relaxed);
    }

    /// How long ago it went round.
    pub fn age(&self) -> Duration {
        let last = self.last_millis.load(Ordering::Relaxed);
        Duration::from_millis(self.elapsed_millis().saturating_sub(last))
    }

    fn elapsed_millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The loop of the workers.
pub struct Dispatcher {
    pub ledger: Arc<dyn Ledger>,
    pub deliverer: Deliverer,
    pub faults: Arc<Faults>,
    pub statistics: Arc<Statistics>,
    pub work: Arc<Notify>,
    pub heartbeat: Arc<Heartbeat>,
    pub workers: Arc<Semaphore>,
    pub in_flight: Arc<Semaphore>,
    pub stop: CancellationToken,
}

impl Dispatcher {
    /// Runs until it is stopped, then waits for what is under way.
    pub async fn run(self) {
        let (here, under_way) = (Arc::new(self), TaskTracker::new());
        while !here.stop.is_cancelled() {
            here.heartbeat.beat();
            let taken = here.take_up().await;
            let full = taken.len() == MOST_AT_ONCE;
            for (work, places) in taken {
                let here = Arc::clone(&here);
                under_way.spawn(async move { here.deliver(work, places).await });
            }
            if full {
                continue;
            }
            tokio::select! {
                () = here.stop.cancelled() => {}
                () = here.work.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        under_way.close();
        under_way.wait().await;
    }

    /// Takes up as much as there are places for.
    async fn take_up(&self) -> Vec<(Work, Places)> {
        let Stuck::Routes(stuck) = self.faults.stuck() else {
            return Vec::new();
        };
        let mut places = Vec::new();
        while places.len() < MOST_AT_ONCE {
            let worker = Arc::clone(&self.workers).try_acquire_owned();
            let in_flight = Arc::clone(&self.in_flight).try_acquire_owned();
            let (Ok(worker), Ok(in_flight)) = (worker, in_flight) else { break };
            places.push(Places { worker, in_flight });
        }
        if places.is_empty() {
            return Vec::new();
        }
        match self.ledger.take_due(Utc::now(), &stuck, places.len()).await {
            Ok(due) => due.into_iter().zip(places).collect(),
            Err(error) => {
                tracing::warn!(%error, "simulator: the workers can't see what is due");
                Vec::new()
            }
        }
    }

    async fn deliver(&self, work: Work, Places { worker, in_flight }: Places) {
        let key = work.idempotency_key.as_deref();
        self.statistics.link(work.notification_id, key);
        let attempt = self.deliverer.attempt(&work).await;
        drop(worker);
        if self.workers.available_permits() == 1 {
            // Every worker was busy, so more may be due than the last look could take.
            self.work.notify_one();
        }
        if let Some(late) = self.faults.wait(Fault::LateLedger, &work.message.route, 5.0) {
            tokio::select! {
                () = tokio::time::sleep(late) => {}
                () = self.stop.cancelled() => {}
            }
        }
        let next = self.deliverer.next(&attempt, Utc::now());
        if self.record(&attempt, next).await {
            self.statistics.count(key, Event::Attempted(attempt.outcome));
        }
        drop(in_flight);
    }

    /// Records an attempt; while the database is away it is tried again, until a stop. Without a record the attempt is
    /// made again after a restart: at least once, never silently none.
    async fn record(&self, attempt: &Attempt, next: Next) -> bool {
        let mut wait = Duration::from_millis(100);
        loop {
            let Err(error) = self.ledger.record(attempt, next).await else {
                return true;
            };
            tracing::warn!(%error, attempt_id = %attempt.attempt_id, "simulator: an attempt could not be recorded");
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(Duration::from_secs(5)),
                () = self.stop.cancelled() => return false,
            }
        }
    }
}

/// The places that one delivery takes: one while it is under way, one until it is recorded.
struct Places {
    worker: OwnedSemaphorePermit,
    in_flight: OwnedSemaphorePermit,
}
