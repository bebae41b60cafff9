//! The places that connections take, and which one gives way when all are taken.
//!
//! A slow sender costs itself its place: when all are taken, the connection that has been reading the longest is asked to
//! leave. It looks once more whether its request has come meanwhile, and stays if so: a request that only waited for a busy
//! machine is no slow one. So places change hands as fast as the machine can look, and no faster.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

/// No one gives way before this time: a request that is on its way must get its turn, whatever storm is on.
const GRACE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Connections {
    limit: usize,
    /// How many are asked to leave at a time. On a busy machine each takes a while to look, and one by one would take too long.
    asked_at_a_time: usize,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    taken: HashMap<u64, Taken>,
}

#[derive(Debug)]
struct Taken {
    since: Instant,
    reading: bool,
    leave: CancellationToken,
}

/// The place of one connection. Dropped, it is free.
#[derive(Debug)]
pub(super) struct Seat {
    id: u64,
    since: Instant,
    leave: CancellationToken,
    asked: AtomicBool,
    connections: Arc<Connections>,
}

impl Connections {
    /// This many places; at least one.
    pub fn new(limit: usize) -> Arc<Self> {
        let asked_at_a_time = (limit / 16).max(1);
        Arc::new(Self { limit: limit.max(1), asked_at_a_time, table: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a place, as soon as there is one.
    pub async fn seat(self: &Arc<Self>) -> Seat {
        loop {
            let wait = {
                let mut table = self.table();
                let now = Instant::now();
                if table.taken.len() < self.limit {
                    return self.take(&mut table, now);
                }
                self.make_room(&mut table, now)
            };
            // A permit of `freed` that was stored before is taken here at once: nothing is missed.
            let _ = tokio::time::timeout(wait, self.freed.notified()).await;
        }
    }

    /// Asks those to leave that have been reading the longest, and says when to look again.
    fn make_room(&self, table: &mut Table, now: Instant) -> Duration {
        let (asked, mut others): (Vec<_>, Vec<_>) =
            table.taken.values().filter(|taken| taken.reading).partition(|taken| taken.leave.is_cancelled());
        others.sort_unstable_by_key(|taken| taken.since);
        let may_be_asked = self.asked_at_a_time.saturating_sub(asked.len());
        let overdue = others.iter().filter(|taken| taken.since + GRACE <= now);
        overdue.take(may_be_asked).for_each(|taken| taken.leave.cancel());
        // While some are asked, or all are being answered, `freed` says more than the time.
        let next = others.iter().map(|taken| taken.since + GRACE).find(|end| *end > now);
        next.map_or(GRACE, |end| end - now)
    }

    fn take(self: &Arc<Self>, table: &mut Table, since: Instant) -> Seat {
        let id = table.next;
        table.next += 1;
        let leave = CancellationToken::new();
        table.taken.insert(id, Taken { since, reading: true, leave: leave.clone() });
        Seat { id, since, leave, asked: AtomicBool::new(false), connections: Arc::clone(self) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held, and a table is whole between its operations.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Since when it is taken.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Ends when this connection is to make room, unless its request has come meanwhile.
    pub async fn asked_to_leave(&self) {
        self.leave.cancelled().await;
    }

    /// Whether its request has not come whole.
    pub fn is_reading(&self) -> bool {
        self.connections.table().taken.get(&self.id).is_some_and(|taken| taken.reading)
    }

    /// A request came whole in its head.
    pub fn asked(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether a request came whole in its head.
    pub fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The request has been read: from now on it is answered, and does not give way.
    pub fn has_read(&self) {
        if let Some(taken) = self.connections.table().taken.get_mut(&self.id) {
            taken.reading = false;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.table().taken.remove(&self.id);
        self.connections.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_one_that_reads_the_longest_is_asked_to_leave_and_none_that_is_answered() {
        let connections = Connections::new(3);
        let answered = connections.seat().await;
        answered.has_read();
        tokio::time::advance(Duration::from_secs(1)).await;
        let slow = connections.seat().await;
        tokio::time::advance(Duration::from_millis(100)).await;
        let fresh = connections.seat().await;
        let before = Instant::now();
        let leaving = async {
            slow.asked_to_leave().await;
            drop(slow);
        };
        let (next, ()) = tokio::join!(connections.seat(), leaving);
        assert_eq!(before.elapsed().as_millis(), 150, "no one gives way within the grace");
        assert!(![&answered, &fresh, &next].iter().any(|s| s.leave.is_cancelled()));
        assert_eq!(connections.table().taken.len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stays_since_its_request_has_come_lets_the_next_one_be_asked() {
        let connections = Connections::new(2);
        let first = connections.seat().await;
        tokio::time::advance(Duration::from_millis(1)).await;
        let second = connections.seat().await;
        let stays = async {
            first.asked_to_leave().await;
            first.has_read();
        };
        let leaves = async {
            second.asked_to_leave().await;
            drop(second);
        };
        let (third, (), ()) = tokio::join!(connections.seat(), stays, leaves);
        assert!(!first.is_reading() && third.is_reading());
    }

    #[tokio::test(start_paused = true)]
    async fn while_all_are_answered_the_next_one_waits_for_a_free_place() {
        let connections = Connections::new(1);
        let only = connections.seat().await;
        only.has_read();
        let long = Duration::from_secs(60);
        assert!(tokio::time::timeout(long, connections.seat()).await.is_err());
        drop(only);
        assert!(tokio::time::timeout(long, connections.seat()).await.is_ok());
    }
}
