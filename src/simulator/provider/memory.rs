//! Which messages the provider has delivered, so that one id is delivered once.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use uuid::Uuid;

/// Messages that are remembered; the oldest go first.
const MOST: usize = 50_000;

/// What is known of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was never seen, or its delivery failed: it is under way now.
    New,
    /// Somebody else's call is delivering it.
    UnderWay,
    /// It was delivered.
    Delivered,
}

#[derive(Debug, Default)]
struct Inner {
    known: HashMap<Uuid, bool>,
    delivered_in_order: VecDeque<Uuid>,
}

/// What the provider remembers. A restart forgets it, as with many a real provider's window.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Inner>);

impl Memory {
    /// Says what is known of a message, and notes that it is under way if it is new.
    pub fn begin(&self, id: Uuid) -> Seen {
        match self.lock().known.entry(id) {
            std::collections::hash_map::Entry::Occupied(known) => {
                if *known.get() {
                    Seen::Delivered
                } else {
                    Seen::UnderWay
                }
            }
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(false);
                Seen::New
            }
        }
    }

    /// Notes how it ended. A message that failed is forgotten, so that it can be sent again.
    pub fn end(&self, id: Uuid, delivered: bool) {
        let mut inner = self.lock();
        if !delivered {
            inner.known.remove(&id);
            return;
        }
        inner.known.insert(id, true);
        inner.delivered_in_order.push_back(id);
        if inner.delivered_in_order.len() > MOST
            && let Some(oldest) = inner.delivered_in_order.pop_front()
        {
            inner.known.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_id_is_delivered_once_and_a_failed_one_may_come_again() {
        let (memory, id) = (Memory::default(), Uuid::now_v7());
        assert_eq!(memory.begin(id), Seen::New);
        assert_eq!(memory.begin(id), Seen::UnderWay);
        memory.end(id, false);
        assert_eq!(memory.begin(id), Seen::New);
        memory.end(id, true);
        assert_eq!(memory.begin(id), Seen::Delivered);
    }
}
