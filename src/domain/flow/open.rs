//! The rows that are open: newer than the positions of the streams, and read again in every pass. Nothing of them is kept between passes but
//! to see what was changed about them, so a row that is rewritten or vanishes while it is open leaves no trace in any figure.

use super::{
    key::UnitKey,
    rows::LedgerId,
    unit::{Deciding, Unit},
};
use std::collections::{BTreeMap, HashMap};

/// An open attempt.
#[derive(Clone, Debug)]
pub(super) struct OpenAttempt {
    pub unit: UnitKey,
    pub deciding: Deciding,
}

/// The open rows of this pass, and those of the pass before that weren't met again yet.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub units: BTreeMap<UnitKey, Unit>,
    pub attempts: HashMap<LedgerId, OpenAttempt>,
    /// The attempt that decides for each unit, of those that are open.
    deciding: HashMap<UnitKey, (Deciding, LedgerId)>,
    units_before: BTreeMap<UnitKey, Unit>,
    attempts_before: HashMap<LedgerId, OpenAttempt>,
}

impl Open {
    pub fn begin_pass(&mut self) {
        self.deciding.clear();
        self.units_before = std::mem::take(&mut self.units);
        self.attempts_before = std::mem::take(&mut self.attempts);
    }

    /// A notification's row was met in this pass.
    pub fn met_unit(&mut self, key: &UnitKey) {
        if !self.units_before.is_empty() {
            self.units_before.remove(key);
        }
        if !self.units.is_empty() {
            self.units.remove(key);
        }
    }

    /// An attempt's row was met in this pass. Gives what it was before.
    pub fn met_attempt(&mut self, attempt: &LedgerId) -> Option<OpenAttempt> {
        if self.attempts_before.is_empty() { None } else { self.attempts_before.remove(attempt) }
    }

    pub fn insert_attempt(&mut self, attempt: LedgerId, open: OpenAttempt) {
        let known = self.deciding.get(&open.unit);
        let decides = known.is_none_or(|(known, id)| (known.rank(), id) <= (open.deciding.rank(), &attempt));
        if decides {
            self.deciding.insert(open.unit.clone(), (open.deciding, attempt.clone()));
        }
        self.attempts.insert(attempt, open);
    }

    /// The attempt that decides for a unit, of those that are open.
    pub fn deciding(&self, key: &UnitKey) -> Option<Deciding> {
        if self.deciding.is_empty() { None } else { self.deciding.get(key).map(|(deciding, _)| *deciding) }
    }

    /// Ends the rows of a pass that read to the end of the streams. Gives what was open and is gone.
    pub fn gone(&mut self) -> (Vec<UnitKey>, Vec<OpenAttempt>) {
        let units = std::mem::take(&mut self.units_before).into_keys().collect();
        let attempts = std::mem::take(&mut self.attempts_before).into_values().collect();
        (units, attempts)
    }

    /// Ends the rows of a pass that did not: what wasn't met stays as it was.
    pub fn carry_over(&mut self) {
        for (key, unit) in std::mem::take(&mut self.units_before) {
            self.units.entry(key).or_insert(unit);
        }
        for (attempt, open) in std::mem::take(&mut self.attempts_before) {
            self.insert_attempt(attempt, open);
        }
    }
}
