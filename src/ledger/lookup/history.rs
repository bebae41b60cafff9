//! The lookup's rows as the audit needs them: digests of attempts, and what each left its notification in.

use super::LookupLayout;
use crate::{
    domain::{
        audit::compare::{History, Seen},
        flow::{
            key::UnitKey,
            rows::{LedgerId, UnitId},
        },
    },
    ledger::{
        binds::{Prepared, Rows},
        cell::{Cell, Misfit, identifier},
        flow::ledger_id,
        notes::Notes,
        words::{Words, outcome, standing},
    },
};
use chrono::{DateTime, Utc};
use std::collections::HashMap;

/// The histories of notifications, as their rows come.
pub struct HistoryRows<'a> {
    prepared: &'a Prepared,
    layout: &'a LookupLayout,
    words: &'a Words,
    now: DateTime<Utc>,
    /// By notification, its destinations together.
    pub found: HashMap<LedgerId, History>,
    /// The idempotency key of each that has one.
    pub keys: HashMap<LedgerId, String>,
    /// What was odd.
    pub notes: Notes,
}

impl<'a> HistoryRows<'a> {
    /// Nothing known yet.
    pub fn new(prepared: &'a Prepared, layout: &'a LookupLayout, words: &'a Words) -> Self {
        let (found, keys, notes) = (HashMap::new(), HashMap::new(), Notes::default());
        Self { prepared, layout, words, now: DateTime::UNIX_EPOCH, found, keys, notes }
    }

    /// The attempt of a row, by the digest of its id. Where the lookup shows no attempts, the notification's own status is in the place of one.
    fn seen(&mut self, cells: &[Cell], destination: Option<&str>) -> Result<Option<(u64, Seen)>, Misfit> {
        let layout = self.layout;
        let name = |field| self.prepared.wanted.name(field);
        let of_destination = destination.map_or(0, |text| digest(LedgerId::Text(text.into()), None));
        let (Some(id), Some(status)) = (layout.attempt_id, layout.attempt_status) else {
            let Some(status) = layout.status else { return Ok(None) };
            let own = self.words.own_status(&cells[status.0], name(status), false, &mut self.notes)?;
            // What nobody has tried yet is no attempt.
            let leaves = own.map(standing).filter(|standing| standing.outcome().is_some());
            let seen = Seen { destination: of_destination, at: None, leaves };
            return Ok(Some((digest(LedgerId::Text("".into()), destination), seen)));
        };
        // An attempt that has no id, or one that can't be one, is no attempt anywhere else either.
        let Some(attempt) = ledger_id(&cells[id.0], name(id))? else { return Ok(None) };
        let meaning = layout.attempt_meaning(status, cells, self.words, &mut self.notes)?;
        let at = layout.time(layout.attempt_at, cells, self.now, &mut self.notes)?;
        let leaves = outcome(meaning).map(|_| standing(meaning));
        Ok(Some((digest(attempt, destination), Seen { destination: of_destination, at, leaves })))
    }
}

fn digest(id: LedgerId, destination: Option<&str>) -> u64 {
    UnitKey::from(UnitId { notification: id, destination: destination.map(Into::into) }).fingerprint()
}

impl Rows for HistoryRows<'_> {
    fn begin(&mut self, began_at: DateTime<Utc>) {
        self.now = began_at;
        self.found.clear();
        self.keys.clear();
        self.notes = Notes::default();
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), Misfit> {
        let Some(UnitId { notification, destination }) =
            self.layout.unit().read(cells, &self.prepared.wanted)?
        else {
            return Ok(());
        };
        if let Some(field) = self.layout.key {
            // A key of a customer's may be anything: one that can't be asked for is as good as none.
            let key = identifier(&cells[field.0], self.prepared.wanted.name(field)).unwrap_or_default();
            if let Some(key) = key.filter(|key| !key.is_empty()) {
                self.keys.entry(notification.clone()).or_insert(key);
            }
        }
        let seen = self.seen(cells, destination.as_deref())?;
        let history = self.found.entry(notification).or_default();
        if let Some((attempt, seen)) = seen {
            history.attempts.entry(attempt).or_insert(seen);
        }
        Ok(())
    }
}
