//! What is kept of the follower between passes: whole numbers and texts, as any store can hold them.

use super::{
    cells::{Cell, CellKey},
    key::{KeyError, UnitKey, id_from_text, id_to_text},
    rows::RouteNo,
    strays::Stray,
    unit::{Flag, Unit, from_code, to_code},
};

/// A unit that is pending by all that is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableUnit {
    /// Which one: the key of the row.
    pub key: String,
    /// The number of its route.
    pub route: i64,
    /// Its due time, in microseconds since 1970.
    pub due: i64,
    /// Its own standing, as a number; 0 where it has none.
    pub own: i64,
    /// What its deciding attempt leaves it in, as a number; 0 where there is none.
    pub by_attempts: i64,
    /// When that attempt started, in microseconds since 1970; 0 where there is none.
    pub at: i64,
    /// What else is true of it, as bits.
    pub flags: i64,
}

/// An attempt that is closed and whose unit isn't followed (yet, or any more).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableStray {
    /// Whose it is; with `attempt` the key of the row.
    pub unit: String,
    /// The attempt.
    pub attempt: String,
    /// When it started, in microseconds since 1970.
    pub at: i64,
    /// What it leaves its unit in, as a number.
    pub leaves: i64,
    /// Since when it waits, in microseconds since 1970.
    pub since: i64,
}

/// All that was kept.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// The units.
    pub units: Vec<DurableUnit>,
    /// The strays.
    pub strays: Vec<DurableStray>,
    /// The cells.
    pub cells: Vec<(CellKey, Cell)>,
}

/// What one pass changes of that, to be written in one transaction with the positions of the streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Units to insert, or to put in the place of the row with the same key.
    pub units_upserted: Vec<DurableUnit>,
    /// The keys of units to delete.
    pub units_deleted: Vec<String>,
    /// Strays to insert.
    pub strays_inserted: Vec<DurableStray>,
    /// Strays to delete, by unit and attempt.
    pub strays_deleted: Vec<(String, String)>,
    /// Cells as they are now, to be put in the place of what was there. Writing one twice changes nothing.
    pub cells: Vec<(CellKey, Cell)>,
    /// Cells of minutes that start before this, in seconds since 1970, are to be deleted.
    pub minutes_from: i64,
    /// Cells of hours that start before this, in seconds since 1970, are to be deleted.
    pub hours_from: i64,
}

impl Changes {
    /// Whether there is nothing to write but the positions.
    pub fn is_empty(&self) -> bool {
        self.units_upserted.is_empty()
            && self.units_deleted.is_empty()
            && self.strays_inserted.is_empty()
            && self.strays_deleted.is_empty()
            && self.cells.is_empty()
    }
}

/// A kept row that can't be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RestoreError {
    /// Its key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A number of it.
    #[error(
        "the kept row {key:?} has {value} as its {field}, which means nothing: remove the row, and let the ledger be read again"
    )]
    Number {
        /// Which row.
        key: String,
        /// Which number of it.
        field: &'static str,
        /// The number.
        value: i64,
    },
}

impl DurableUnit {
    pub(super) fn of(key: &UnitKey, unit: &Unit) -> Self {
        let deciding = unit.deciding();
        Self {
            key: key.to_text(),
            route: i64::from(unit.route.0),
            due: unit.due,
            own: i64::from(to_code(unit.own())),
            by_attempts: i64::from(to_code(deciding.map(|deciding| deciding.leaves))),
            at: deciding.map_or(0, |deciding| deciding.at),
            flags: i64::from(unit.flags() & (Flag::Canary as u8 | Flag::Tied as u8)),
        }
    }

    pub(super) fn restore(&self) -> Result<(UnitKey, Unit), RestoreError> {
        let wrong = |field, value| RestoreError::Number { key: self.key.clone(), field, value };
        let key = UnitKey::from_text(&self.key)?;
        let route = u16::try_from(self.route).map_err(|_| wrong("route", self.route))?;
        let own = standing(self.own).ok_or_else(|| wrong("own", self.own))?;
        let by_attempts = standing(self.by_attempts).ok_or_else(|| wrong("by_attempts", self.by_attempts))?;
        let mut unit = Unit::new(RouteNo(route), self.due, own);
        unit.set_deciding(by_attempts.map(|leaves| super::unit::Deciding { leaves, at: self.at }));
        for flag in [Flag::Canary, Flag::Tied] {
            unit.set(flag, self.flags & i64::from(flag as u8) != 0);
        }
        unit.set(Flag::Durable, true);
        Ok((key, unit))
    }
}

impl DurableStray {
    pub(super) fn of(key: &UnitKey, stray: &Stray) -> Self {
        Self {
            unit: key.to_text(),
            attempt: id_to_text(&stray.attempt),
            at: stray.deciding.at,
            leaves: i64::from(to_code(Some(stray.deciding.leaves))),
            since: stray.since,
        }
    }

    pub(super) fn restore(&self) -> Result<(UnitKey, Stray), RestoreError> {
        let wrong = || RestoreError::Number { key: self.unit.clone(), field: "leaves", value: self.leaves };
        let leaves = standing(self.leaves).flatten().ok_or_else(wrong)?;
        let stray = Stray {
            attempt: id_from_text(&self.attempt)?,
            deciding: super::unit::Deciding { leaves, at: self.at },
            since: self.since,
            is_durable: true,
        };
        Ok((UnitKey::from_text(&self.unit)?, stray))
    }
}

/// The standing of a kept number, where it means one or none.
fn standing(code: i64) -> Option<Option<super::rows::Standing>> {
    let code = u8::try_from(code).ok()?;
    let standing = from_code(code);
    (code == to_code(standing)).then_some(standing)
}
