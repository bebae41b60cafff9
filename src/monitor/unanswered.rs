//! Lookups that ledgers did not answer.
//!
//! The very same is asked again until it is answered. What is asked for next may be other canaries, of which the ledger has no rows, or fewer
//! of them: that it can tell of those does not show that it can tell of these. And between two canaries of a slow route nobody would ask at all.

use crate::domain::route::{IdempotencyKey, NotificationId};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use uuid::Uuid;

/// What a ledger is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Notifications, by their ids.
    pub ids: Vec<NotificationId>,
    /// Canaries, by their keys.
    pub keys: Vec<IdempotencyKey>,
}

impl Question {
    /// A question about no canary: whether the query runs at all is known before the first one is due.
    pub fn about_nobody() -> Self {
        Self {
            ids: vec![NotificationId::from_text(Uuid::nil().to_string())],
            keys: vec![IdempotencyKey::from_text("dc-nobody")],
        }
    }
}

/// The oldest question to each ledger that was not answered, by the ledger's name.
#[derive(Debug, Default)]
pub struct Unanswered(Mutex<BTreeMap<String, Question>>);

impl Unanswered {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Question>> {
        // A panic while it was held can leave no half-made state: every change is one insertion.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The question that a ledger owes an answer to.
    pub fn get(&self, ledger: &str) -> Option<Question> {
        self.all().get(ledger).cloned()
    }

    /// A question was not answered. One that was not before it stays in its place.
    pub fn keep(&self, ledger: &str, question: Question) {
        self.all().entry(ledger.to_owned()).or_insert(question);
    }

    /// The question was answered.
    pub fn answered(&self, ledger: &str) {
        self.all().remove(ledger);
    }

    /// Forgets the questions to ledgers that are configured no more.
    pub fn retain(&self, is_configured: impl Fn(&str) -> bool) {
        self.all().retain(|ledger, _| is_configured(ledger));
    }
}
