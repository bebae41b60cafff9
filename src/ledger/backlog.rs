//! The pending query's rows, mapped to what the domain counts.

use super::{
    cell::{Cell, Misfit, count, identifier},
    notes::Notes,
    time::{Horizon, Reading, due, read},
    uses::{Use, Uses},
    wanted::{Field, TimeField, Wanted},
    words::{Word, Words},
};
use crate::{
    config::ledger::{Meaning, PendingColumns},
    domain::{
        pending::{PendingRow, Tried},
        route::RouteName,
    },
};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// The value of the route map that takes all the rest.
const ALL_THE_REST: &str = "*";

/// Which column of the pending query is what, and which route is whose.
#[derive(Clone, Debug)]
pub struct BacklogLayout {
    /// The columns that are read, in order.
    pub wanted: Wanted,
    route: Option<Field>,
    accepted_at: TimeField,
    not_before: Option<TimeField>,
    status: Option<Field>,
    count: Option<Field>,
    routes: BTreeMap<String, RouteName>,
    rest: Option<RouteName>,
}

/// The mapped rows, and how many were not pending at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backlog {
    /// The rows.
    pub rows: Vec<PendingRow>,
    /// How many rows said that they are settled.
    pub settled_rows: u64,
}

impl BacklogLayout {
    /// The layout of these columns and routes.
    ///
    /// # Errors
    /// When a column is declared in a way that makes no sense, or routes are mapped by a column that isn't there.
    pub fn new(columns: &PendingColumns, routes: &BTreeMap<String, String>) -> Result<Self, Misfit> {
        let mut wanted = Wanted::default();
        let accepted_at = wanted.time(&columns.accepted_at)?;
        let route = columns.route.as_ref().map(|c| wanted.field(c)).transpose()?;
        if route.is_none() && routes.keys().any(|word| word != ALL_THE_REST) {
            let problem = "`routes` maps words of a column, so `columns.route` must name it";
            return Err(Misfit::new("route", problem));
        }
        let name = |name: &String| RouteName::from_text(name.clone());
        Ok(Self {
            accepted_at,
            route,
            not_before: columns.not_before.as_ref().map(|c| wanted.time(c)).transpose()?,
            status: columns.status.as_ref().map(|c| wanted.field(c)).transpose()?,
            count: columns.count.as_ref().map(|c| wanted.field(c)).transpose()?,
            routes: routes
                .iter()
                .filter(|(w, _)| *w != ALL_THE_REST)
                .map(|(w, n)| (w.clone(), name(n)))
                .collect(),
            rest: routes.get(ALL_THE_REST).map(name),
            wanted,
        })
    }

    /// What its columns are read as.
    pub fn uses(&self) -> Uses {
        Uses::default()
            .with(self.route, Use::Id)
            .with_time(self.accepted_at)
            .with_time(self.not_before)
            .with(self.status, Use::Status)
            .with(self.count, Use::Count)
    }

    /// Maps the rows, at this time of our clock.
    ///
    /// # Errors
    /// When a value can't be read as configured.
    pub fn map(
        &self,
        rows: &[Vec<Cell>],
        words: &Words,
        now: DateTime<Utc>,
        notes: &mut Notes,
    ) -> Result<Backlog, Misfit> {
        let mut backlog = Backlog::default();
        for row in rows {
            let count = self.count.map_or(Ok(1), |field| count(&row[field.0], self.wanted.name(field)))?;
            let Some(tried) = self.tried(row, words, notes)? else {
                backlog.settled_rows += 1;
                continue;
            };
            let due = self.due(row, now)?;
            if due.is_none() {
                notes.refused_times = notes.refused_times.saturating_add(count);
            }
            backlog.rows.push(PendingRow { route: self.route_of(row)?, due, tried, count });
        }
        Ok(backlog)
    }

    fn route_of(&self, row: &[Cell]) -> Result<Option<RouteName>, Misfit> {
        let Some(field) = self.route else { return Ok(self.rest.clone()) };
        let word = identifier(&row[field.0], self.wanted.name(field))?;
        Ok(word.and_then(|word| self.routes.get(&word)).or(self.rest.as_ref()).cloned())
    }

    /// What was tried; nothing for a row that says it is settled.
    fn tried(&self, row: &[Cell], words: &Words, notes: &mut Notes) -> Result<Option<Tried>, Misfit> {
        let Some(field) = self.status else { return Ok(Some(Tried::Never)) };
        let word = words.look_up(&row[field.0], self.wanted.name(field))?;
        Ok(match (&row[field.0], word) {
            // No attempt, unless the table says otherwise.
            (Cell::Null, Word::Unmapped(_)) => Some(Tried::Never),
            (_, Word::Unmapped(text)) => {
                notes.unmapped(text);
                Some(Tried::OutcomeUnknown)
            }
            (_, Word::Mapped(meaning)) => match meaning {
                Meaning::Pending => Some(Tried::Never),
                Meaning::Retryable => Some(Tried::WillRetry),
                Meaning::Unknown => Some(Tried::OutcomeUnknown),
                Meaning::Delivered
                | Meaning::RejectedRecipient
                | Meaning::RejectedService
                | Meaning::Suppressed => None,
            },
        })
    }

    /// The later of acceptance and `not_before`; nothing where acceptance is missing, or either is absurd.
    fn due(&self, row: &[Cell], now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, Misfit> {
        let time = |TimeField { field, form }: TimeField, horizon| {
            read(&row[field.0], form, horizon, now, self.wanted.name(field))
        };
        let accepted_at = time(self.accepted_at, Horizon::Happened)?;
        let not_before =
            self.not_before.map_or(Ok(Reading::Missing), |field| time(field, Horizon::Planned))?;
        Ok(due(accepted_at, not_before))
    }
}

#[cfg(test)]
mod tests;
