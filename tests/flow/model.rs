//! A ledger with all that can happen to its rows: each is visible from one second until another, in one or more versions.

use chrono::{DateTime, Utc};
use delivery_canary::domain::flow::rows::{AttemptRow, NotificationRow, Truth, UnitId};
use std::collections::BTreeMap;

/// The first second of all models: a whole hour.
pub const START: i64 = 1_800_000_000;

pub fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(START + second, 0).unwrap()
}

/// A row's place in its stream.
pub type Cursor = (i64, i64);

/// One version of a row.
#[derive(Clone, Debug)]
pub struct Version<Row> {
    /// The row's place in its stream: time, then an id.
    pub cursor: Cursor,
    /// From which second on it can be seen.
    pub from: i64,
    /// From which second on it can't any more.
    pub until: i64,
    pub row: Row,
}

impl<Row> Version<Row> {
    pub fn is_visible(&self, second: i64) -> bool {
        self.from <= second && second < self.until
    }
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub notifications: Vec<Version<NotificationRow>>,
    pub attempts: Vec<Version<AttemptRow>>,
    /// Known to be canaries, marked or not.
    pub canaries: Vec<UnitId>,
    /// Nothing happens after this second.
    pub quiet_from: i64,
    /// Whether a closed attempt was changed or removed: the counts of attempts are then as they were first seen.
    pub has_rewritten_attempts: bool,
    /// Whether a notification was removed: attempts of it that were seen wait in vain.
    pub has_removed_notifications: bool,
}

/// The rows of a stream after a position, as one reading sees them, and whether they were cut.
pub fn page<Row: Clone>(
    stream: &[Version<Row>],
    second: i64,
    after: Option<Cursor>,
    limit: usize,
) -> (Vec<(Cursor, Row)>, bool) {
    let seen = stream.iter().filter(|version| version.is_visible(second) && Some(version.cursor) > after);
    let mut rows: Vec<_> = seen.map(|version| (version.cursor, version.row.clone())).collect();
    rows.sort_by_key(|(cursor, _)| *cursor);
    let is_cut = rows.len() > limit;
    rows.truncate(limit);
    (rows, is_cut)
}

impl Ledger {
    pub fn lookup(&self, unit: &UnitId, second: i64) -> Option<Truth> {
        let rows = self.notifications.iter();
        let row =
            rows.filter(|version| version.is_visible(second)).find(|version| version.row.unit == *unit)?;
        let attempts = self.attempts_of(unit, second).cloned().collect();
        Some(Truth { route: Some(row.row.route), due: Some(row.row.due), own: row.row.own, attempts })
    }

    pub fn attempts_of(&self, unit: &UnitId, second: i64) -> impl Iterator<Item = &AttemptRow> {
        let seen = self.attempts.iter().filter(move |version| version.is_visible(second));
        seen.map(|version| &version.row).filter(move |row| row.unit == *unit)
    }

    /// The customers' notifications and attempts that are there, by unit.
    pub fn customers(&self, second: i64) -> BTreeMap<UnitId, (&NotificationRow, Vec<&AttemptRow>)> {
        let seen = self
            .notifications
            .iter()
            .filter(|version| version.is_visible(second))
            .map(|version| &version.row);
        let customers = seen
            .filter(|row| !row.is_marked_canary && !row.has_canary_key && !self.canaries.contains(&row.unit));
        customers
            .map(|row| (row.unit.clone(), (row, self.attempts_of(&row.unit, second).collect())))
            .collect()
    }
}
