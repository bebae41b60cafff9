//! Closed attempts whose unit isn't among the followed: not read yet, or dropped long ago.

use super::{
    durable::{Changes, DurableStray},
    key::{UnitKey, id_to_text},
    rows::{LedgerId, RouteNo},
    unit::Deciding,
};
use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
};

/// A closed attempt that waits for its unit. No figure has it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stray {
    /// The attempt.
    pub attempt: LedgerId,
    /// What it would decide.
    pub deciding: Deciding,
    /// Since when it waits, in microseconds.
    pub since: i64,
    /// Whether the store has it.
    pub is_durable: bool,
}

/// All of them, by unit.
#[derive(Debug, Default)]
pub(super) struct Strays {
    waiting: BTreeMap<UnitKey, Vec<Stray>>,
    fresh: Vec<UnitKey>,
    deleted: Vec<(String, String)>,
    asked_to: Option<UnitKey>,
}

impl Strays {
    pub fn push(&mut self, key: UnitKey, stray: Stray) {
        if !stray.is_durable {
            self.fresh.push(key.clone());
        }
        self.waiting.entry(key).or_default().push(stray);
    }

    pub fn of(&self, key: &UnitKey) -> &[Stray] {
        self.waiting.get(key).map_or(&[], Vec::as_slice)
    }

    /// Removes those of a unit, in the order of their times.
    pub fn take(&mut self, key: &UnitKey) -> Vec<Stray> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let mut strays = self.waiting.remove(key).unwrap_or_default();
        strays.sort_by(|a, b| (a.deciding.at, &a.attempt).cmp(&(b.deciding.at, &b.attempt)));
        let durable = strays.iter().filter(|stray| stray.is_durable);
        self.deleted.extend(durable.map(|stray| (key.to_text(), id_to_text(&stray.attempt))));
        strays
    }

    pub fn count(&self) -> usize {
        self.waiting.values().map(Vec::len).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&UnitKey, &Vec<Stray>)> {
        self.waiting.iter()
    }

    /// The units of the next ones in turn that `is_wanted` wants, as many as this.
    pub fn next(&mut self, limit: usize, is_wanted: impl Fn(&UnitKey) -> bool) -> Vec<UnitKey> {
        let after = self.asked_to.as_ref().map_or(Unbounded, Excluded);
        let rest = self.waiting.range((after, Unbounded)).chain(&self.waiting);
        // Those after the mark, then from the start: none twice.
        let once = rest.take(self.waiting.len()).map(|(key, _)| key);
        let next: Vec<_> = once.filter(|key| is_wanted(key)).take(limit).cloned().collect();
        self.asked_to = next.last().cloned();
        next
    }

    /// Tells the store what became of them in this pass.
    pub fn commit(&mut self, changes: &mut Changes) {
        for key in std::mem::take(&mut self.fresh) {
            for stray in self.waiting.get_mut(&key).into_iter().flatten().filter(|stray| !stray.is_durable) {
                stray.is_durable = true;
                changes.strays_inserted.push(DurableStray::of(&key, stray));
            }
        }
        changes.strays_deleted = std::mem::take(&mut self.deleted);
    }
}

/// What a lookup said before, where one answer isn't enough.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// It wasn't there.
    Missed,
    /// It has these attempts, which isn't what was followed.
    Has(Vec<LedgerId>),
}

/// Where a notification without a place in memory may be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub route: RouteNo,
    pub due: i64,
}
