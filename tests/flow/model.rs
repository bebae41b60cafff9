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
    /// From which second on all rows of a notification are in an archive: no stream shows them any more, a lookup by id does.
    pub archived: BTreeMap<UnitId, i64>,
    /// From which second on they are gone for good, by retention. What became of it was known by then, and counts.
    pub expired: BTreeMap<UnitId, i64>,
    /// Known to be canaries, marked or not.
    pub canaries: Vec<UnitId>,
    /// Nothing happens after this second.
    pub quiet_from: i64,
    /// Whether a closed attempt was changed or removed: the counts of attempts are then as they were first seen.
    pub has_rewritten_attempts: bool,
    /// Whether a notification was removed: attempts of it that were seen wait in vain.
    pub has_removed_notifications: bool,
}

/// A row of a notification.
pub trait OfUnit: Clone {
    fn unit(&self) -> &UnitId;
}

impl OfUnit for NotificationRow {
    fn unit(&self) -> &UnitId {
        &self.unit
    }
}

impl OfUnit for AttemptRow {
    fn unit(&self) -> &UnitId {
        &self.unit
    }
}

/// The rows of a stream after a position, as one reading sees them, and whether they were cut.
pub fn page<Row: OfUnit>(
    ledger: &Ledger,
    stream: &[Version<Row>],
    second: i64,
    after: Option<Cursor>,
    limit: usize,
) -> (Vec<(Cursor, Row)>, bool) {
    let is_listed = |row: &Row| {
        let left = [&ledger.archived, &ledger.expired].map(|left| left.get(row.unit()));
        left.into_iter().flatten().all(|from| second < *from)
    };
    let seen = stream.iter().filter(|version| version.is_visible(second) && Some(version.cursor) > after);
    let seen = seen.filter(|version| is_listed(&version.row));
    let mut rows: Vec<_> = seen.map(|version| (version.cursor, version.row.clone())).collect();
    rows.sort_by_key(|(cursor, _)| *cursor);
    let is_cut = rows.len() > limit;
    rows.truncate(limit);
    (rows, is_cut)
}

impl Ledger {
    pub fn lookup(&self, unit: &UnitId, second: i64) -> Option<Truth> {
        if self.expired.get(unit).is_some_and(|from| *from <= second) {
            return None;
        }
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

    /// Whether nothing of this notification is still to come.
    pub fn is_over(&self, unit: &UnitId, second: i64) -> bool {
        let rows =
            self.notifications.iter().filter(|version| version.row.unit == *unit).map(|version| version.from);
        let attempts =
            self.attempts.iter().filter(|version| version.row.unit == *unit).map(|version| version.from);
        rows.chain(attempts).all(|from| from <= second)
    }

    /// When the rows of a notification were last there.
    fn last(&self, unit: &UnitId, second: i64) -> i64 {
        self.expired.get(unit).map_or(second, |from| second.min(from - 1))
    }

    /// The customers' notifications and attempts that are there, or were settled and are gone since, by unit.
    pub fn customers(&self, second: i64) -> BTreeMap<UnitId, (&NotificationRow, Vec<&AttemptRow>)> {
        let seen = self
            .notifications
            .iter()
            .filter(|version| version.is_visible(self.last(&version.row.unit, second)))
            .map(|version| &version.row);
        let customers = seen
            .filter(|row| !row.is_marked_canary && !row.has_canary_key && !self.canaries.contains(&row.unit));
        customers
            .map(|row| {
                let last = self.last(&row.unit, second);
                (row.unit.clone(), (row, self.attempts_of(&row.unit, last).collect()))
            })
            .collect()
    }
}
