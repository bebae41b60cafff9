//! The lookup's rows, joined: one finding for each notification, with its attempts.

mod history;
mod truth;

pub use history::HistoryRows;
pub use truth::TruthRows;

use super::{
    Found,
    cell::{Cell, Misfit, identifier},
    notes::Notes,
    time::{Form, Horizon, Reading, read},
    uses::{Use, Uses},
    wanted::{Field, TimeField, Wanted},
    words::{Word, Words, disposition, outcome, with_next_attempt},
};
use crate::{
    config::ledger::{LookupColumns, Meaning},
    domain::{
        evidence::{AttemptFact, LedgerRow},
        outcome::{Disposition, Outcome},
        route::{IdempotencyKey, NotificationId},
    },
};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry};
use uuid::Uuid;

/// Which column of the lookup is what.
#[derive(Clone, Debug)]
pub struct LookupLayout {
    /// The columns that are read, in order.
    pub wanted: Wanted,
    notification_id: Field,
    key: Option<Field>,
    destination: Option<Field>,
    route: Option<Field>,
    accepted_at: Option<TimeField>,
    not_before: Option<TimeField>,
    status: Option<Field>,
    attempt_id: Option<Field>,
    attempt_status: Option<Field>,
    attempt_at: Option<TimeField>,
    next_attempt: Option<Field>,
    policy_version: Option<Field>,
}

impl LookupLayout {
    /// The layout of these columns.
    ///
    /// # Errors
    /// When a column is declared in a way that makes no sense, or one needs another that isn't there.
    pub fn new(columns: &LookupColumns) -> Result<Self, Misfit> {
        let mut wanted = Wanted::default();
        let layout = Self {
            notification_id: wanted.field(&columns.notification_id)?,
            key: columns.idempotency_key.as_ref().map(|c| wanted.field(c)).transpose()?,
            destination: columns.destination.as_ref().map(|c| wanted.field(c)).transpose()?,
            route: columns.route.as_ref().map(|c| wanted.field(c)).transpose()?,
            accepted_at: columns.accepted_at.as_ref().map(|c| wanted.time(c)).transpose()?,
            not_before: columns.not_before.as_ref().map(|c| wanted.time(c)).transpose()?,
            status: columns.status.as_ref().map(|c| wanted.field(c)).transpose()?,
            attempt_id: columns.attempt_id.as_ref().map(|c| wanted.field(c)).transpose()?,
            attempt_status: columns.attempt_status.as_ref().map(|c| wanted.field(c)).transpose()?,
            attempt_at: columns.attempt_at.as_ref().map(|c| wanted.time(c)).transpose()?,
            next_attempt: columns.next_attempt.as_ref().map(|c| wanted.field(c)).transpose()?,
            policy_version: columns.policy_version.as_ref().map(|c| wanted.field(c)).transpose()?,
            wanted,
        };
        match (&layout.attempt_id, &layout.attempt_status, &layout.status) {
            (None, Some(status), _) => {
                let problem =
                    "an attempt's status needs `columns.attempt_id`, by which attempts are told apart";
                Err(Misfit::new(layout.wanted.name(*status), problem))
            }
            (Some(id), None, _) => Err(Misfit::new(
                layout.wanted.name(*id),
                "an attempt's id needs `columns.attempt_status`, what came of it",
            )),
            (None, None, None) => {
                let problem = "give `columns.status`, or `columns.attempt_id` and `columns.attempt_status`: nothing says \
                               where a notification stands";
                Err(Misfit::new(layout.wanted.name(layout.notification_id), problem))
            }
            _ => Ok(layout),
        }
    }

    /// Whether the result carries the idempotency key.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// What its columns are read as, by whoever looks for canaries or follows the ledger.
    pub fn uses(&self) -> Uses {
        Uses::default()
            .with(self.notification_id, Use::Id)
            .with(self.key, Use::Id)
            .with(self.destination, Use::Id)
            .with_time(self.accepted_at)
            .with_time(self.not_before)
            .with(self.status, Use::Status)
            .with(self.attempt_id, Use::Id)
            .with(self.attempt_status, Use::Status)
            .with_time(self.attempt_at)
            .with(self.policy_version, Use::Id)
    }

    /// Joins the rows. `asked` are the ids that were looked up; a found UUID comes back as it was asked for. `now` is our time.
    ///
    /// # Errors
    /// When a value can't be read as configured.
    pub fn join(
        &self,
        rows: &[Vec<Cell>],
        words: &Words,
        asked: &[NotificationId],
        now: DateTime<Utc>,
        notes: &mut Notes,
    ) -> Result<Vec<Found>, Misfit> {
        let spelling: HashMap<Uuid, &NotificationId> =
            asked.iter().filter_map(|id| Some((Uuid::parse_str(id.as_str()).ok()?, id))).collect();
        let mut found: BTreeMap<NotificationId, Draft> = BTreeMap::new();
        for row in rows {
            let id = match &row[self.notification_id.0] {
                Cell::Uuid(uuid) if spelling.contains_key(uuid) => spelling[uuid].clone(),
                cell => {
                    let name = self.wanted.name(self.notification_id);
                    let text = identifier(cell, name)?
                        .ok_or_else(|| Misfit::new(name, "a notification's id is NULL"))?;
                    NotificationId::from_text(text)
                }
            };
            let draft = match found.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.notification(row, words, now, notes)?),
            };
            if let Some(attempt) = self.attempt(row, words, now, notes)? {
                draft.attempts.insert(attempt.fact.attempt_id.clone(), attempt);
            }
        }
        Ok(found.into_iter().map(|(id, draft)| draft.finish(id, self.policy_version.is_some())).collect())
    }

    fn notification(
        &self,
        row: &[Cell],
        words: &Words,
        now: DateTime<Utc>,
        notes: &mut Notes,
    ) -> Result<Draft, Misfit> {
        let text = |field: Field| identifier(&row[field.0], self.wanted.name(field));
        let has_attempts = self.attempt_status.is_some();
        let own =
            |field: Field| words.own_status(&row[field.0], self.wanted.name(field), has_attempts, notes);
        let status = self.status.map(own).transpose()?.flatten();
        Ok(Draft {
            key: self.key.map(text).transpose()?.flatten().map(IdempotencyKey::from_text),
            accepted_at: self.time(self.accepted_at, row, now, notes)?,
            status,
            attempts: BTreeMap::new(),
        })
    }

    fn attempt(
        &self,
        row: &[Cell],
        words: &Words,
        now: DateTime<Utc>,
        notes: &mut Notes,
    ) -> Result<Option<Attempt>, Misfit> {
        let (Some(id), Some(status)) = (self.attempt_id, self.attempt_status) else { return Ok(None) };
        let text = |field: Field| identifier(&row[field.0], self.wanted.name(field));
        let Some(attempt_id) = text(id)? else { return Ok(None) };
        let meaning = self.attempt_meaning(status, row, words, notes)?;
        // An attempt that is under way has no outcome yet. It is read again when it has one.
        let Some(outcome) = outcome(meaning) else { return Ok(None) };
        let at = self.time(self.attempt_at, row, now, notes)?;
        let policy_version = self.policy_version.map(text).transpose()?.flatten();
        Ok(Some(Attempt { fact: AttemptFact { attempt_id, outcome, at, policy_version }, meaning }))
    }

    fn attempt_meaning(
        &self,
        status: Field,
        row: &[Cell],
        words: &Words,
        notes: &mut Notes,
    ) -> Result<Meaning, Misfit> {
        let is_planned = self.next_attempt.is_some_and(|field| row[field.0] != Cell::Null);
        Ok(with_next_attempt(self.word(status, row, words, notes)?, is_planned))
    }

    fn word(&self, field: Field, row: &[Cell], words: &Words, notes: &mut Notes) -> Result<Meaning, Misfit> {
        let word = words.look_up(&row[field.0], self.wanted.name(field))?;
        let meaning = word.meaning();
        if let Word::Unmapped(text) = word {
            notes.unmapped(text);
        }
        Ok(meaning)
    }

    fn time(
        &self,
        field: Option<TimeField>,
        row: &[Cell],
        now: DateTime<Utc>,
        notes: &mut Notes,
    ) -> Result<Option<DateTime<Utc>>, Misfit> {
        let Some(TimeField { field, form }) = field else { return Ok(None) };
        Ok(match read_time(&row[field.0], form, now, self.wanted.name(field))? {
            Reading::At(at) => Some(at),
            Reading::Missing | Reading::Refused => {
                notes.refused_times += 1;
                None
            }
        })
    }
}

fn read_time(cell: &Cell, form: Form, now: DateTime<Utc>, column: &str) -> Result<Reading, Misfit> {
    read(cell, form, Horizon::Happened, now, column)
}

/// A notification while its rows are joined.
struct Draft {
    key: Option<IdempotencyKey>,
    accepted_at: Option<DateTime<Utc>>,
    status: Option<Meaning>,
    attempts: BTreeMap<String, Attempt>,
}

struct Attempt {
    fact: AttemptFact,
    meaning: Meaning,
}

impl Attempt {
    /// Later attempts have greater ranks. Without times the ids decide, as numbers where they are numbers; what then is still
    /// alike stands where the one stands that went furthest.
    fn rank(&self) -> (Option<DateTime<Utc>>, Option<u64>, u8, &str) {
        let progress = match self.fact.outcome {
            Outcome::Delivered => 2,
            Outcome::PermanentRejection => 1,
            Outcome::Suppressed | Outcome::Retryable | Outcome::Unknown => 0,
        };
        (self.fact.at, self.fact.attempt_id.parse().ok(), progress, &self.fact.attempt_id)
    }
}

impl Draft {
    /// The notification's own status decides, where it has one that is known; else its newest terminal attempt; else it is pending.
    fn finish(self, id: NotificationId, has_policy_version: bool) -> Found {
        let newest = self
            .attempts
            .values()
            .filter(|a| a.fact.outcome.is_terminal())
            .max_by(|a, b| a.rank().cmp(&b.rank()));
        let (disposition, cause) = self
            .status
            .and_then(disposition)
            .or_else(|| newest.and_then(|attempt| disposition(attempt.meaning)))
            .unwrap_or((Disposition::Pending, None));
        let attempts = self.attempts.into_values().map(|a| a.fact).collect();
        let row = LedgerRow {
            notification_ids: BTreeSet::from([id.clone()]),
            accepted_at: self.accepted_at,
            disposition,
            cause,
            attempts,
            has_policy_version,
        };
        Found { notification_id: id, key: self.key, row }
    }
}

#[cfg(test)]
mod tests;
