//! The places that connections take, and which one gives way when all are taken.
//!
//! A slow sender costs itself its place: when all are taken, the connection that has been reading the longest is closed for
//! the next one. Who sends its request at once is through long before; who is being answered is never closed.

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
    given_up: CancellationToken,
}

/// The place of one connection. Dropped, it is free.
#[derive(Debug)]
pub(super) struct Seat {
    id: u64,
    since: Instant,
    given_up: CancellationToken,
    asked: AtomicBool,
    connections: Arc<Connections>,
}

impl Connections {
    /// This many places; at least one.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), table: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a place, when there is one: now, or when one gives way (`crowded_out` is told), or when one is freed.
    pub async fn seat(self: &Arc<Self>, crowded_out: impl Fn()) -> Seat {
        loop {
            let wait = {
                let mut table = self.table();
                let now = Instant::now();
                if table.taken.len() < self.limit {
                    return self.take(&mut table, now);
                }
                let reading = table.taken.iter().filter(|(_, taken)| taken.reading);
                match reading.map(|(id, taken)| (taken.since, *id)).min() {
                    Some((since, id)) if since + GRACE <= now => {
                        if let Some(taken) = table.taken.remove(&id) {
                            taken.given_up.cancel();
                            crowded_out();
                        }
                        return self.take(&mut table, now);
                    }
                    Some((since, _)) => since + GRACE - now,
                    // All are being answered, which has a limit of its own; the time is only to look again.
                    None => GRACE,
                }
            };
            // A permit of `freed` that was stored before is taken here at once: nothing is missed.
            let _ = tokio::time::timeout(wait, self.freed.notified()).await;
        }
    }

    fn take(self: &Arc<Self>, table: &mut Table, since: Instant) -> Seat {
        let id = table.next;
        table.next += 1;
        let given_up = CancellationToken::new();
        table.taken.insert(id, Taken { since, reading: true, given_up: given_up.clone() });
        Seat { id, since, given_up, asked: AtomicBool::new(false), connections: Arc::clone(self) }
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

    /// Ends when this place has been given to another.
    pub async fn given_up(&self) {
        self.given_up.cancelled().await;
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
    use std::cell::Cell;

    #[tokio::test(start_paused = true)]
    async fn the_one_that_reads_the_longest_gives_way_and_none_that_is_answered() {
        let crowded_out = Cell::new(0);
        let seat = async |connections: &Arc<Connections>| {
            connections.seat(|| crowded_out.set(crowded_out.get() + 1)).await
        };
        let connections = Connections::new(3);
        let answered = seat(&connections).await;
        answered.has_read();
        tokio::time::advance(Duration::from_secs(1)).await;
        let (slow, fresh) = (seat(&connections).await, {
            tokio::time::advance(Duration::from_millis(100)).await;
            seat(&connections).await
        });
        assert_eq!(crowded_out.get(), 0);
        let before = Instant::now();
        let next = seat(&connections).await;
        assert!(slow.given_up.is_cancelled() && before.elapsed() >= Duration::from_millis(150));
        assert!(![&answered, &fresh, &next].iter().any(|s| s.given_up.is_cancelled()));
        assert_eq!(crowded_out.get(), 1);
        drop(slow);
        assert_eq!(connections.table().taken.len(), 3, "what gave way does not free another's place");
    }

    #[tokio::test(start_paused = true)]
    async fn while_all_are_answered_the_next_one_waits_for_a_free_place() {
        let connections = Connections::new(1);
        let only = connections.seat(|| {}).await;
        only.has_read();
        let long = Duration::from_secs(60);
        assert!(tokio::time::timeout(long, connections.seat(|| {})).await.is_err());
        drop(only);
        assert!(tokio::time::timeout(long, connections.seat(|| {})).await.is_ok());
    }
}
