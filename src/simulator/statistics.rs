//! What the simulator has done so far, in sums and by idempotency key, for tests and for its counter page.

use super::ledger::Outcome;
use serde::Serialize;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use uuid::Uuid;

/// Keys that are remembered; the oldest go first.
const MOST_KEYS: usize = 100_000;
/// Routes that are counted by name; further ones are `other`.
const MOST_ROUTES: usize = 64;

/// Sums since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests to accept a notification, whatever came of them.
    pub submissions: u64,
    /// Notifications that were accepted, those that were then never written among them.
    pub accepted: u64,
    /// The same by route; what is beyond the first 64 is `other`.
    pub accepted_by_route: BTreeMap<String, u64>,
    /// Repeated submissions that were answered with the notification that was there.
    pub replayed: u64,
    /// Repeated keys with other content.
    pub conflicts: u64,
    /// Submissions that were refused: unfit, or by a fault.
    pub refused: u64,
    /// Notifications that were answered and never written.
    pub writes_lost: u64,
    /// Attempts that were recorded, by outcome.
    pub attempts: BTreeMap<&'static str, u64>,
    /// Webhooks that were answered with 2xx.
    pub webhooks_sent: u64,
    /// Webhooks that were not.
    pub webhooks_failed: u64,
    /// Webhooks that came to the customers' sink.
    pub customers_received: u64,
    /// Customers' notifications that were not sent, because too many were under way.
    pub traffic_skipped: u64,
}

/// What one idempotency key has brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeyEffects {
    /// Submissions under this key.
    pub submissions: u64,
    /// Notifications that were created: more than one would be a second effect.
    pub accepted: u64,
    /// Submissions that were answered with the notification that was there.
    pub replayed: u64,
    /// Submissions with other content.
    pub conflicts: u64,
    /// Attempts that were recorded.
    pub attempts: u64,
    /// Webhooks that were answered with 2xx.
    pub webhooks_sent: u64,
}

/// Something that is counted for a key as well as in the sums.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A request came.
    Submitted,
    /// A notification of this route was accepted.
    Accepted(&'a str),
    /// A key was there already.
    Replayed,
    /// A key was there already with other content.
    Conflict,
    /// An attempt was recorded.
    Attempted(Outcome),
    /// A webhook was answered with 2xx.
    WebhookSent,
}

#[derive(Debug, Default)]
struct Inner {
    totals: Totals,
    effects: HashMap<String, KeyEffects>,
    in_order: VecDeque<String>,
    key_of: HashMap<Uuid, String>,
    linked_in_order: VecDeque<Uuid>,
}

/// The counters.
#[derive(Debug, Default)]
pub struct Statistics(Mutex<Inner>);

impl Statistics {
    /// Counts something, for this key if there is one.
    pub fn count(&self, key: Option<&str>, event: Event<'_>) {
        let mut inner = self.lock();
        inner.totals.count(event);
        if let Some(key) = key {
            inner.effects_of(key).count(event);
        }
    }

    /// Remembers the key of a notification, so that what the provider does is counted for it.
    pub fn link(&self, notification: Uuid, key: Option<&str>) {
        let Some(key) = key else { return };
        let mut inner = self.lock();
        if inner.key_of.insert(notification, key.to_owned()).is_none() {
            inner.linked_in_order.push_back(notification);
        }
        if inner.linked_in_order.len() > MOST_KEYS
            && let Some(oldest) = inner.linked_in_order.pop_front()
        {
            inner.key_of.remove(&oldest);
        }
    }

    /// The key of a notification, when it is remembered.
    pub fn key_of(&self, notification: Uuid) -> Option<String> {
        self.lock().key_of.get(&notification).cloned()
    }

    /// Changes a sum that no key has a part in.
    pub fn add(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.lock().totals);
    }

    /// The sums.
    pub fn totals(&self) -> Totals {
        self.lock().totals.clone()
    }

    /// What a key has brought about; all zero when it isn't known.
    pub fn effects(&self, key: &str) -> KeyEffects {
        self.lock().effects.get(key).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn effects_of(&mut self, key: &str) -> &mut KeyEffects {
        if !self.effects.contains_key(key) {
            self.in_order.push_back(key.to_owned());
            if self.in_order.len() > MOST_KEYS
                && let Some(oldest) = self.in_order.pop_front()
            {
                self.effects.remove(&oldest);
            }
        }
        self.effects.entry(key.to_owned()).or_default()
    }
}

impl Totals {
    fn count(&mut self, event: Event<'_>) {
        match event {
            Event::Submitted => self.submissions += 1,
            Event::Accepted(route) => {
                self.accepted += 1;
                let known =
                    self.accepted_by_route.contains_key(route) || self.accepted_by_route.len() < MOST_ROUTES;
                let route = if known { route } else { "other" };
                *self.accepted_by_route.entry(route.to_owned()).or_default() += 1;
            }
            Event::Replayed => self.replayed += 1,
            Event::Conflict => self.conflicts += 1,
            Event::Attempted(outcome) => *self.attempts.entry(outcome.word()).or_default() += 1,
            Event::WebhookSent => self.webhooks_sent += 1,
        }
    }
}

impl KeyEffects {
    fn count(&mut self, event: Event<'_>) {
        match event {
            Event::Submitted => self.submissions += 1,
            Event::Accepted(_) => self.accepted += 1,
            Event::Replayed => self.replayed += 1,
            Event::Conflict => self.conflicts += 1,
            Event::Attempted(_) => self.attempts += 1,
            Event::WebhookSent => self.webhooks_sent += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let statistics = Statistics::default();
        for n in 0..MOST_KEYS + 10 {
            statistics.count(Some(&n.to_string()), Event::Accepted(&n.to_string()));
            statistics.link(Uuid::now_v7(), Some("k"));
        }
        assert_eq!(statistics.effects("0"), KeyEffects::default());
        assert_eq!(statistics.effects("20").accepted, 1);
        assert_eq!(statistics.totals().accepted_by_route.len(), MOST_ROUTES + 1);
        let inner = statistics.lock();
        assert_eq!((inner.effects.len(), inner.key_of.len()), (MOST_KEYS, MOST_KEYS));
    }
}
