//! The lookup's rows as a followed ledger needs them: by notification and destination, with what accounting needs.

use super::LookupLayout;
use crate::{
    domain::flow::rows::{AttemptRow, Truth, UnitId},
    ledger::{
        binds::{Prepared, Rows},
        cell::{Cell, Misfit},
        flow::{RouteField, UnitFields, ledger_id},
        notes::Notes,
        time::{Horizon, Reading, due, read},
        wanted::{Field, TimeField},
        words::{Words, outcome, standing},
    },
};
use chrono::{DateTime, Utc};
use std::collections::{HashMap, hash_map::Entry};

impl LookupLayout {
    /// The column of the service's word for the route.
    pub fn route(&self) -> Option<Field> {
        self.route
    }

    /// The columns that tell a notification, or one of its destinations, apart.
    pub(super) fn unit(&self) -> UnitFields {
        UnitFields { notification: self.notification_id, destination: self.destination }
    }
}

/// What is known of each notification, as its rows come.
pub struct TruthRows<'a> {
    prepared: &'a Prepared,
    layout: &'a LookupLayout,
    words: &'a Words,
    route: &'a RouteField,
    has_attempts: bool,
    has_not_before: bool,
    now: DateTime<Utc>,
    /// By notification and destination.
    pub found: HashMap<UnitId, Truth>,
    /// How many rows can't be used.
    pub refused: u64,
    /// What was odd.
    pub notes: Notes,
}

impl<'a> TruthRows<'a> {
    /// Nothing known yet. `has_attempts` and `has_not_before` say what the streams have: a due time without a hold that they know of is
    /// none.
    pub fn new(
        prepared: &'a Prepared,
        layout: &'a LookupLayout,
        words: &'a Words,
        route: &'a RouteField,
        (has_attempts, has_not_before): (bool, bool),
    ) -> Self {
        let (found, notes, now) = (HashMap::new(), Notes::default(), DateTime::UNIX_EPOCH);
        Self { prepared, layout, words, route, has_attempts, has_not_before, now, found, refused: 0, notes }
    }

    fn time(&self, field: TimeField, horizon: Horizon, cells: &[Cell]) -> Result<Reading, Misfit> {
        let TimeField { field, form } = field;
        read(&cells[field.0], form, horizon, self.now, self.prepared.wanted.name(field))
    }

    fn notification(&mut self, cells: &[Cell]) -> Result<Truth, Misfit> {
        let layout = self.layout;
        let accepted_at = match layout.accepted_at {
            Some(field) => self.time(field, Horizon::Happened, cells)?,
            None => Reading::Missing,
        };
        let not_before = match layout.not_before {
            Some(field) => self.time(field, Horizon::Planned, cells)?,
            None if self.has_not_before => Reading::Refused,
            None => Reading::Missing,
        };
        let own = match layout.status {
            None => None,
            Some(field) => {
                let name = self.prepared.wanted.name(field);
                self.words.own_status(&cells[field.0], name, self.has_attempts, &mut self.notes)?
            }
        };
        let route = layout.route.map(|_| self.route.read(cells));
        Ok(Truth { route, due: due(accepted_at, not_before), own: own.map(standing), attempts: Vec::new() })
    }

    fn attempt(&mut self, unit: &UnitId, cells: &[Cell]) -> Result<Option<AttemptRow>, Misfit> {
        let layout = self.layout;
        let (Some(id), Some(status), Some(at)) =
            (layout.attempt_id, layout.attempt_status, layout.attempt_at)
        else {
            return Ok(None);
        };
        if cells[id.0] == Cell::Null {
            return Ok(None);
        }
        let meaning = layout.attempt_meaning(status, cells, self.words, &mut self.notes)?;
        if outcome(meaning).is_none() {
            return Ok(None);
        }
        let attempt = ledger_id(&cells[id.0], self.prepared.wanted.name(id))?;
        let reading = self.time(at, Horizon::Happened, cells)?;
        let (Some(attempt), Reading::At(at)) = (attempt, reading) else {
            self.refused += 1;
            self.notes.refused_times += u64::from(!matches!(reading, Reading::At(_)));
            return Ok(None);
        };
        Ok(Some(AttemptRow { attempt, unit: unit.clone(), at, leaves: standing(meaning) }))
    }
}

impl Rows for TruthRows<'_> {
    fn begin(&mut self, began_at: DateTime<Utc>) {
        self.now = began_at;
        self.found.clear();
        self.refused = 0;
        self.notes = Notes::default();
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), Misfit> {
        let Some(unit) = self.layout.unit().read(cells, &self.prepared.wanted)? else {
            self.refused += 1;
            return Ok(());
        };
        let attempt = self.attempt(&unit, cells)?;
        if !self.found.contains_key(&unit) {
            let truth = self.notification(cells)?;
            self.found.insert(unit.clone(), truth);
        }
        if let (Some(attempt), Entry::Occupied(mut truth)) = (attempt, self.found.entry(unit)) {
            let attempts = &mut truth.get_mut().attempts;
            if attempts.iter().all(|known| known.attempt != attempt.attempt) {
                attempts.push(attempt);
            }
        }
        Ok(())
    }
}
