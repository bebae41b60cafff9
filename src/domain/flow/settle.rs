//! What new rows alone don't settle: it is looked up by id, and where an answer contradicts what was followed, a second one is awaited.
//!
//! A lookup sees more than the streams did: attempts that they haven't shown yet. An attempt that two lookups saw, with a pass between them that
//! read to the end of the streams, was met by that pass if it was open. So it is known to be open, or to be closed.

use super::{
    follow::{Flow, Reach},
    key::UnitKey,
    rows::{AttemptRow, LedgerId, Truth, UnitId},
    strays::{Asked, Place, Stray},
    unit::{Deciding, Flag, Unit, deciding, micros},
};
use crate::domain::accounting;
use std::ops::Bound::{Excluded, Unbounded};

impl Flow {
    /// Ends the rows of the pass, and tells which units should be looked up: those that two answers or none were missing for, attempts without
    /// a unit, and a slice of the pending ones in turn. Bounded by `settle_per_pass` and `sweep_per_pass`. No answer at all is allowed.
    pub fn wanted(&mut self, reach: Reach) -> Vec<UnitId> {
        self.end_rows(reach);
        let (units, strays) = (&self.units, &self.strays);
        self.asked.retain(|key, _| units.contains_key(key) || !strays.of(key).is_empty());
        let limit = self.settings.settle_per_pass;
        let mut wanted: Vec<UnitKey> = Vec::new();
        if reach == Reach::End {
            wanted.extend(self.asked.keys().take(limit).cloned());
            let tied = self.tied.iter().filter(|key| !self.asked.contains_key(key));
            wanted.extend(tied.take(limit.saturating_sub(wanted.len())).cloned());
        }
        let (open, asked) = (&self.open, &self.asked);
        let is_wanted = |key: &UnitKey| !open.units.contains_key(key) && !asked.contains_key(key);
        wanted.extend(self.strays.next(limit.saturating_sub(wanted.len()), is_wanted));
        if reach == Reach::End {
            let slice = self.sweep();
            wanted.extend(
                slice.into_iter().filter(|key| !self.asked.contains_key(key) && !self.tied.contains(key)),
            );
        }
        wanted.into_iter().map(|key| key.unit()).collect()
    }

    /// The next slice of the pending units.
    fn sweep(&mut self) -> Vec<UnitKey> {
        let after = self.swept_to.as_ref().map_or(Unbounded, Excluded);
        let rest = self.units.range((after, Unbounded)).take(self.settings.sweep_per_pass);
        let slice: Vec<_> = rest.map(|(key, _)| key.clone()).collect();
        // The end of the round: the next slice begins anew.
        let is_full = slice.len() == self.settings.sweep_per_pass;
        self.swept_to = if is_full { slice.last().cloned() } else { None };
        slice
    }

    /// Takes the answer of a lookup that was made after [`Flow::wanted`]: all that the ledger says of the unit, or that it isn't there.
    pub fn truth(&mut self, unit: &UnitId, truth: Option<Truth>) {
        let key = UnitKey::from(unit.clone());
        if self.units.contains_key(&key) {
            match truth {
                Some(truth) => self.unit_is(key, &truth),
                None => self.unit_missed(key),
            }
        } else if !self.open.units.contains_key(&key) && !self.strays.of(&key).is_empty() {
            match truth {
                Some(truth) => self.stray_is(key, &truth),
                None => self.stray_missed(&key),
            }
        }
    }

    /// The earlier answer, where it was given before this pass and this pass read to the end; else nothing.
    fn earlier_answer(&mut self, key: &UnitKey) -> Option<Asked> {
        let is_earlier = self.asked.get(key).is_some_and(|(pass, _)| *pass < self.pass);
        if is_earlier && self.reach == Some(Reach::End) {
            self.asked.remove(key).map(|(_, asked)| asked)
        } else {
            None
        }
    }

    fn ask_again(&mut self, key: UnitKey, asked: Asked) {
        let pass = self.pass;
        self.asked.entry(key).or_insert((pass, asked));
    }

    fn unit_missed(&mut self, key: UnitKey) {
        if matches!(self.earlier_answer(&key), Some(Asked::Missed)) {
            if self.units.remove(&key).is_some_and(|unit| unit.has(Flag::Durable)) {
                self.deleted.push(key.to_text());
            }
            self.tied.remove(&key);
            self.totals.vanished += 1;
        } else {
            self.ask_again(key, Asked::Missed);
        }
    }

    fn unit_is(&mut self, key: UnitKey, truth: &Truth) {
        let earlier = self.earlier_answer(&key);
        let route = truth.route.map(|route| self.settings.place(route));
        let Some(unit) = self.units.get_mut(&key) else { return };
        let before = *unit;
        unit.route = route.unwrap_or(unit.route);
        unit.due = truth.due.map_or(unit.due, micros);
        unit.set_own(truth.own.or_else(|| unit.own()));
        let is_closed = |row: &&AttemptRow| !self.open.attempts.contains_key(&row.attempt);
        let mut is_settled = unit.own().is_some();
        let by_truth = deciding(truth.attempts.iter().filter(is_closed));
        if unit.deciding() == by_truth {
            is_settled = true;
        } else if let Some(Asked::Has(ids)) = &earlier {
            let seen_twice =
                || truth.attempts.iter().filter(|row| ids.contains(&row.attempt)).filter(is_closed);
            let now = deciding(seen_twice());
            let is_alone = |at: i64| seen_twice().filter(|row| micros(row.at) == at).count() == 1;
            if let (Some(old), Some(new)) = (unit.deciding(), now)
                && old.at == new.at
                && is_alone(new.at)
                && !unit.has(Flag::Tied)
                && !unit.has(Flag::Canary)
            {
                // The same attempt, which was rewritten since it was counted.
                self.cells.rewrite_attempt(before.route, new.at, old.leaves.outcome(), new.leaves.outcome());
            }
            unit.set_deciding(now);
            is_settled = true;
        }
        if is_settled {
            unit.set(Flag::Tied, false);
            self.tied.remove(&key);
        }
        if *unit != before || before.has(Flag::Tied) {
            self.touch(&key);
        }
        if is_settled {
            self.asked.remove(&key);
        } else {
            self.ask_again(key, Asked::Has(truth.attempts.iter().map(|row| row.attempt.clone()).collect()));
        }
    }

    /// Its notification may still become visible for as long as the overlap.
    fn stray_missed(&mut self, key: &UnitKey) {
        self.asked.remove(key);
        let overlap = i64::try_from(self.settings.overlap.as_micros()).unwrap_or(i64::MAX);
        if self.strays.of(key).iter().all(|stray| self.now.saturating_sub(stray.since) >= overlap) {
            self.totals.strays_given_up += self.strays.take(key).len() as u64;
        }
    }

    fn stray_is(&mut self, key: UnitKey, truth: &Truth) {
        let Some(due) = truth.due else {
            self.asked.remove(&key);
            self.totals.strays_given_up += self.strays.take(&key).len() as u64;
            return;
        };
        let place = Place {
            route: self.settings.place(truth.route.unwrap_or(self.settings.other())),
            due: micros(due),
        };
        if self.settings.horizon.is_some_and(|horizon| due < horizon) {
            // Its notification is none of ours, but the attempt was made all the same.
            self.asked.remove(&key);
            for stray in self.strays.take(&key) {
                self.count_attempt(place.route, stray.deciding);
            }
            return;
        }
        match self.earlier_answer(&key) {
            Some(Asked::Has(ids)) => self.settle_stray(&key, truth, &ids, place),
            _ => self
                .ask_again(key, Asked::Has(truth.attempts.iter().map(|row| row.attempt.clone()).collect())),
        }
    }

    /// The notification was there before a pass that read to the end and didn't meet it: it is closed, and was dropped before, or became visible
    /// too late.
    fn settle_stray(&mut self, key: &UnitKey, truth: &Truth, ids: &[LedgerId], place: Place) {
        let strays = self.strays.take(key);
        let is_stray = |row: &AttemptRow| strays.iter().any(|stray| stray.attempt == row.attempt);
        let is_closed = |row: &&AttemptRow| {
            (ids.contains(&row.attempt) || is_stray(row)) && !self.open.attempts.contains_key(&row.attempt)
        };
        let all = deciding(truth.attempts.iter().filter(is_closed));
        let followed = || truth.attempts.iter().filter(is_closed).filter(|row| !is_stray(row));
        let (before, was_followed) = (deciding(followed()), followed().next().is_some());
        let is_settled = match truth.own {
            // Where it stood before isn't known. It was dropped, so it was settled, and counts as it was first decided.
            Some(own) => own.is_terminal(),
            None => before.is_some_and(|before| before.leaves.is_terminal()),
        };
        let is_recent = place.due.div_euclid(1_000_000) >= self.cells.kept_from().0;
        if !is_settled && !was_followed && is_recent {
            let mut unit = Unit::new(place.route, place.due, truth.own);
            unit.set_deciding(all);
            self.units.insert(key.clone(), unit);
            self.touch(key);
            self.totals.found_late += 1;
            self.came_behind(place.route);
        } else if truth.own.is_none() && is_settled {
            self.move_settled(key, place, before, all);
        }
        self.count_strays(place, before, &strays);
    }

    fn count_strays(&mut self, place: Place, before: Option<Deciding>, strays: &[Stray]) {
        let mut deciding = before;
        for stray in strays {
            self.count_attempt(place.route, stray.deciding);
            self.totals.follows(deciding, stray.deciding);
            deciding = deciding.into_iter().chain([stray.deciding]).max_by_key(|deciding| deciding.rank());
        }
    }

    /// A late reversal: what it stood in before is taken away, and what it stands in now is added.
    fn move_settled(&mut self, key: &UnitKey, place: Place, before: Option<Deciding>, now: Option<Deciding>) {
        let (Some(before), Some(now)) = (before, now) else { return };
        let print = key.fingerprint();
        let (before, now) = (accounting::Place::from(before.leaves), accounting::Place::from(now.leaves));
        // What is in no cell, such as a canary that nobody told of, can't be moved.
        if before != now && self.cells.can_hold(place.route, place.due, before, print) {
            self.cells.settle(place.route, place.due, before, print, false);
            self.cells.settle(place.route, place.due, now, print, true);
        }
    }
}
