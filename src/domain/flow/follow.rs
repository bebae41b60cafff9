//! The follower's core: passes over new rows, from which every figure follows.

use super::{
    cells::Cells,
    durable::{Changes, DurableUnit, RestoreError, Saved},
    key::UnitKey,
    open::{Open, OpenAttempt},
    rows::{AttemptRow, NotificationRow, RouteNo, Standing, UnitId},
    settings::Settings,
    strays::{Asked, Stray, Strays},
    unit::{Deciding, Flag, Folded, Unit, micros},
};
use crate::domain::outcome::Outcome;
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How far the rows of a pass went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Both streams were read to their end: every row that was visible when the pass began, and was open, was met.
    End,
    /// There may be more.
    Page,
}

/// More pending units than may be kept. The core must not be used any more: what was written before this pass is still good.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{units} pending notifications are more than `max_pending` ({limit}): raise it, or the ledger is only counted by its `pending` query"
)]
pub struct TooMany {
    /// How many there are.
    pub units: usize,
    /// How many may be.
    pub limit: usize,
}

/// What was seen since this process began to follow. Each thing is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Notifications that were pending, or open, and are gone from the ledger.
    pub vanished: u64,
    /// Attempts whose notification was never found, or can't be placed.
    pub strays_given_up: u64,
    /// Notifications that became visible later than the overlap allows, and were found by an attempt.
    pub found_late: u64,
    /// Attempts whose terminal outcome was changed while they were open.
    pub outcome_rewritten: u64,
    /// Attempts that vanished while they were open.
    pub attempt_vanished: u64,
    /// Attempts after a terminal one.
    pub attempt_after_terminal: u64,
    /// Delivered, then rejected because of the recipient: allowed.
    pub late_reversal: u64,
}

/// The follower's core. One pass is: [`Flow::begin_pass`], [`Flow::canaries`], the rows of both streams, [`Flow::wanted`], [`Flow::truth`]
/// for each answer, [`Flow::end_pass`]. Where anything fails after the pass began, the core is thrown away and restored from what was
/// written.
#[derive(Debug)]
pub struct Flow {
    pub(super) settings: Settings,
    /// The units whose notification is closed and that aren't settled.
    pub(super) units: BTreeMap<UnitKey, Unit>,
    pub(super) cells: Cells,
    pub(super) open: Open,
    pub(super) strays: Strays,
    /// What lookups said, in which pass, where a second answer is needed.
    pub(super) asked: BTreeMap<UnitKey, (u64, Asked)>,
    pub(super) tied: BTreeSet<UnitKey>,
    pub(super) swept_to: Option<UnitKey>,
    pub(super) totals: Totals,
    pub(super) leaks: BTreeMap<RouteNo, u64>,
    pub(super) came_behind: BTreeMap<RouteNo, u64>,
    pub(super) pass: u64,
    pub(super) now: i64,
    /// How far the rows went; nothing while they are still coming.
    pub(super) reach: Option<Reach>,
    pub(super) deleted: Vec<String>,
    touched: Vec<UnitKey>,
    canaries: HashSet<UnitKey>,
}

impl Flow {
    /// A core that has read nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            units: BTreeMap::new(),
            cells: Cells::new([]),
            open: Open::default(),
            strays: Strays::default(),
            asked: BTreeMap::new(),
            tied: BTreeSet::new(),
            swept_to: None,
            totals: Totals::default(),
            leaks: BTreeMap::new(),
            came_behind: BTreeMap::new(),
            pass: 0,
            now: i64::MIN,
            reach: None,
            deleted: Vec::new(),
            touched: Vec::new(),
            canaries: HashSet::new(),
        }
    }

    /// A core that goes on from what was written.
    ///
    /// # Errors
    ///
    /// Where a kept row means nothing.
    pub fn restore(settings: Settings, saved: Saved) -> Result<Self, RestoreError> {
        let mut flow = Self::new(settings);
        flow.cells = Cells::new(saved.cells);
        flow.restore_units(&saved.units)?;
        for kept in &saved.strays {
            let (key, stray) = kept.restore()?;
            flow.strays.push(key, stray);
        }
        Ok(flow)
    }

    /// Takes kept units, before the first pass. They may come in parts: the core's own form of them takes a fraction of the memory.
    ///
    /// # Errors
    ///
    /// Where a kept unit means nothing.
    pub fn restore_units(&mut self, kept: &[DurableUnit]) -> Result<(), RestoreError> {
        for kept in kept {
            let (key, mut unit) = kept.restore()?;
            unit.route = self.settings.place(unit.route);
            if unit.has(Flag::Tied) {
                self.tied.insert(key.clone());
            }
            if unit.standing().is_terminal() {
                // It waited for an open attempt that may be gone by now.
                touch(&mut self.touched, &key, &mut unit);
            }
            self.units.insert(key, unit);
        }
        Ok(())
    }

    /// Begins a pass. `now` is what time it surely was before its first reading: by it, what was counted is forgotten for good. See
    /// [`time`](super::time).
    pub fn begin_pass(&mut self, now: DateTime<Utc>) {
        self.pass += 1;
        self.now = micros(now).max(self.now);
        self.reach = None;
        self.open.begin_pass();
        let back =
            |by: std::time::Duration| self.now.div_euclid(1_000_000).saturating_sub_unsigned(by.as_secs());
        self.cells.expire(back(self.settings.fine_for), back(self.settings.history));
    }

    /// Tells which notifications are known to be canaries: all recent ones, whether the ledger was seen to have them or not. Called before
    /// the rows of a pass, and again with those among [`Flow::wanted`] that are canaries. One call takes the place of the one before.
    pub fn canaries(&mut self, known: &[UnitId]) {
        self.canaries = known.iter().cloned().map(UnitKey::from).collect();
        for id in known {
            let key = UnitKey::from(id.clone());
            self.is_canary(&key);
            if id.destination.is_none() {
                let (prefix, least) = UnitKey::parts_of(&id.notification);
                let parts =
                    self.units.range(&least..).chain(self.open.units.range(&least..)).map(|(part, _)| part);
                let parts: Vec<_> = parts.filter(|part| part.is_part_of(&prefix)).cloned().collect();
                parts.iter().for_each(|part| self.is_canary(part));
            }
        }
    }

    fn is_canary(&mut self, key: &UnitKey) {
        // An open one is a leak when its row closes: each row closes once, whatever restarts.
        if let Some(unit) = self.open.units.get_mut(key) {
            unit.set(Flag::Canary, true);
        }
        if let Some(unit) = self.units.get_mut(key)
            && !unit.has(Flag::Canary)
        {
            unit.set(Flag::Canary, true);
            *self.leaks.entry(unit.route).or_default() += 1;
            touch(&mut self.touched, key, unit);
        }
        self.strays.take(key);
    }

    fn is_known_canary(&self, key: &UnitKey) -> bool {
        !self.canaries.is_empty()
            && (self.canaries.contains(key)
                || key.whole_notification().is_some_and(|whole| self.canaries.contains(&whole)))
    }

    /// Takes a row of the `notifications` stream. It is closed where it is at or before the stream's new position: it then never comes again.
    pub fn notification(&mut self, row: NotificationRow, is_closed: bool) {
        let key = UnitKey::from(row.unit);
        let route = self.settings.place(row.route);
        let mut unit = Unit::new(route, micros(row.due), row.own);
        let is_canary = row.is_marked_canary || row.has_canary_key || self.is_known_canary(&key);
        unit.set(Flag::Canary, is_canary);
        self.open.met_unit(&key);
        // A row whose cursor moved on may come again; it is the same unit.
        let known = if is_closed { None } else { self.units.get_mut(&key) };
        if let Some(known) = known {
            renew(known, &unit);
            touch(&mut self.touched, &key, known);
            return;
        }
        if !is_closed {
            self.open.units.insert(key, unit);
            return;
        }
        if is_canary && !row.is_marked_canary {
            *self.leaks.entry(route).or_default() += 1;
        }
        let strays = self.strays.take(&key);
        let known = self.units.entry(key.clone()).or_insert(unit);
        renew(known, &unit);
        touch(&mut self.touched, &key, known);
        for stray in strays {
            self.close_attempt(&key, stray.deciding);
        }
    }

    /// Takes a row of the `attempts` stream. It is closed where it is at or before the stream's new position: it then never comes again.
    pub fn attempt(&mut self, row: AttemptRow, is_closed: bool) {
        let key = UnitKey::from(row.unit);
        let deciding = Deciding { leaves: row.leaves, at: micros(row.at) };
        if let Some(before) = self.open.met_attempt(&row.attempt)
            && before.deciding.leaves != row.leaves
        {
            match (before.deciding.leaves, row.leaves) {
                (Standing::Delivered, Standing::RejectedRecipient) => self.totals.late_reversal += 1,
                (old, _) if old.is_terminal() => self.totals.outcome_rewritten += 1,
                _ => {}
            }
        }
        if !is_closed {
            self.open.insert_attempt(row.attempt, OpenAttempt { unit: key, deciding });
        } else if self.units.contains_key(&key) {
            self.close_attempt(&key, deciding);
        } else if !self.is_known_canary(&key) {
            let stray = Stray { attempt: row.attempt, deciding, since: self.now, is_durable: false };
            self.strays.push(key, stray);
        }
    }

    /// Folds a closed attempt into its unit, and counts it.
    fn close_attempt(&mut self, key: &UnitKey, new: Deciding) {
        let Some(unit) = self.units.get_mut(key) else { return };
        if !unit.has(Flag::Canary) {
            if let Some(outcome) = new.leaves.outcome() {
                self.cells.attempt(unit.route, new.at, outcome);
            }
            self.totals.follows(unit.deciding(), new);
        }
        match unit.fold(new) {
            Folded::Tied => {
                unit.set(Flag::Tied, true);
                self.tied.insert(key.clone());
            }
            // A higher rank than that of the two: which of them was the newer doesn't matter any more.
            Folded::Decides if unit.has(Flag::Tied) => {
                unit.set(Flag::Tied, false);
                self.tied.remove(key);
            }
            Folded::Decides | Folded::Nothing => {}
        }
        touch(&mut self.touched, key, unit);
    }

    /// Ends the rows of the pass. What was open before and wasn't met again is gone, if the streams were read to their end.
    pub(super) fn end_rows(&mut self, reach: Reach) {
        self.reach = Some(reach);
        if reach == Reach::Page {
            self.open.carry_over();
            return;
        }
        let (units, attempts) = self.open.gone();
        self.totals.vanished += units.len() as u64;
        for OpenAttempt { unit: key, .. } in attempts {
            if let Some(unit) = self.units.get_mut(&key) {
                self.totals.attempt_vanished += 1;
                touch(&mut self.touched, &key, unit);
            } else if self.open.units.contains_key(&key) {
                self.totals.attempt_vanished += 1;
            }
        }
    }

    /// Ends the pass: what is settled and has no open attempt goes into cells. Gives what has to be written. Where [`Flow::wanted`] wasn't
    /// called, the pass counts as one that did not read to the end.
    ///
    /// # Errors
    ///
    /// Where more units are pending than may be kept.
    pub fn end_pass(&mut self) -> Result<Changes, TooMany> {
        if self.reach.is_none() {
            self.end_rows(Reach::Page);
        }
        let mut changes = Changes::default();
        for key in std::mem::take(&mut self.touched) {
            let Some(unit) = self.units.get_mut(&key).filter(|unit| unit.has(Flag::Touched)) else {
                continue;
            };
            unit.set(Flag::Touched, false);
            let standing = unit.standing();
            if standing.is_terminal() && !unit.has(Flag::Tied) && self.open.deciding(&key).is_none() {
                if !unit.has(Flag::Canary) {
                    self.cells.settle(unit.route, unit.due, standing.into(), key.fingerprint(), true);
                }
                if unit.has(Flag::Durable) {
                    self.deleted.push(key.to_text());
                }
                self.units.remove(&key);
            } else {
                unit.set(Flag::Durable, true);
                changes.units_upserted.push(DurableUnit::of(&key, unit));
            }
        }
        let (units, limit) = (self.units.len() + self.open.units.len(), self.settings.max_pending);
        if units > limit {
            return Err(TooMany { units, limit });
        }
        changes.units_deleted = std::mem::take(&mut self.deleted);
        self.strays.commit(&mut changes);
        changes.cells = self.cells.commit();
        (changes.minutes_from, changes.hours_from) = self.cells.kept_from();
        Ok(changes)
    }

    pub(super) fn touch(&mut self, key: &UnitKey) {
        if let Some(unit) = self.units.get_mut(key) {
            touch(&mut self.touched, key, unit);
        }
    }

    /// Counts a notification that the stream did not show.
    pub(super) fn came_behind(&mut self, route: RouteNo) {
        *self.came_behind.entry(self.settings.place(route)).or_default() += 1;
    }

    /// Counts a closed attempt that no unit will be asked for.
    pub(super) fn count_attempt(&mut self, route: RouteNo, attempt: Deciding) {
        let outcome: Option<Outcome> = attempt.leaves.outcome();
        if let Some(outcome) = outcome {
            self.cells.attempt(self.settings.place(route), attempt.at, outcome);
        }
    }
}

impl Totals {
    /// Judges an attempt by the one that decided before it.
    pub(super) fn follows(&mut self, before: Option<Deciding>, new: Deciding) {
        let Some(before) = before else { return };
        let is_after_terminal = before.leaves.is_terminal() && new.at > before.at;
        let is_overtaken = !before.leaves.is_terminal() && new.leaves.is_terminal() && new.at < before.at;
        if (before.leaves, new.leaves) == (Standing::Delivered, Standing::RejectedRecipient)
            && is_after_terminal
        {
            self.late_reversal += 1;
        } else if is_after_terminal || is_overtaken {
            self.attempt_after_terminal += 1;
        }
    }
}

/// Takes over what a row says of a unit that is known.
fn renew(known: &mut Unit, row: &Unit) {
    known.route = row.route;
    known.due = row.due;
    known.set_own(row.own());
    if row.has(Flag::Canary) {
        known.set(Flag::Canary, true);
    }
}

fn touch(touched: &mut Vec<UnitKey>, key: &UnitKey, unit: &mut Unit) {
    if !unit.has(Flag::Touched) {
        unit.set(Flag::Touched, true);
        touched.push(key.clone());
    }
}
