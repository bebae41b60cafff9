//! What a stream is ordered by.

use crate::{
    config::ledger::Cursor,
    ledger::{
        Position,
        cell::{Cell, Misfit},
        position::Value,
        time::latest,
        wanted::{Field, TimeField, Wanted},
    },
};
use chrono::{DateTime, Utc};

/// The columns that a stream is ordered by.
#[derive(Clone, Copy, Debug)]
pub struct CursorFields {
    /// The time.
    pub at: Option<TimeField>,
    /// The id.
    pub id: Field,
}

impl CursorFields {
    /// The fields of a cursor.
    ///
    /// # Errors
    /// When a column is declared in a way that makes no sense.
    pub fn new(cursor: &Cursor, wanted: &mut Wanted) -> Result<Self, Misfit> {
        let at = cursor.at.as_ref().map(|column| wanted.time(column)).transpose()?;
        Ok(Self { at, id: wanted.field(&cursor.id)? })
    }

    /// The place of a row; nothing where it has none, such as NULL or an infinite time.
    pub fn position(&self, cells: &[Cell]) -> Option<Position> {
        let id = Value::of(&cells[self.id.0])?;
        match self.at {
            None => Some(Position { at: None, id }),
            Some(at) => Some(Position { at: Some(Value::of(&cells[at.field.0])?), id }),
        }
    }

    /// The time of a row; nothing for a cursor without one, and a value that is no time.
    ///
    /// # Errors
    /// When values of this type can't be read as configured.
    pub fn time(&self, cells: &[Cell], wanted: &Wanted) -> Result<Option<DateTime<Utc>>, Misfit> {
        let Some(at) = self.at else { return Ok(None) };
        latest(&cells[at.field.0], at.form, wanted.name(at.field))
    }

    /// Holds a place against the one before it.
    ///
    /// # Errors
    /// When it does not come behind it, as far as that can be told.
    pub fn in_order(&self, before: &Position, here: &Position, wanted: &Wanted) -> Result<(), Misfit> {
        let problem = match here.order(before) {
            None | Some(std::cmp::Ordering::Greater) => return Ok(()),
            Some(std::cmp::Ordering::Equal) => {
                "two rows have the same place in the stream, and at the end of a page one would be missed: the cursor's columns \
                 must be unique together, and the rows behind `>`, not `>=`, the place"
            }
            Some(std::cmp::Ordering::Less) => {
                "the rows are not in the order of the cursor: end the SQL with `order by` of just the cursor's columns, and \
                 compare them as one row, as in `(made_at, id) > (:after_ts, :after_id)`"
            }
        };
        Err(Misfit::new(wanted.name(self.id), problem))
    }
}
