//! The rows of a stream, mapped one by one as they come off the wire.

use super::{Page, Seen, cursor::CursorFields};
use crate::ledger::{
    LedgerError, Position,
    binds::{Head, Prepared, Rows},
    cell::{Cell, Misfit},
    notes::Notes,
    position::Value,
    time::Form,
    uses::Uses,
    words::Words,
};
use chrono::{DateTime, Utc};
use tokio::sync::OnceCell;

/// What a row of a stream comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapped<R> {
    /// A row.
    Row(R),
    /// Nothing yet, such as an attempt that is under way.
    Nothing,
    /// No row that can be used.
    Refused,
}

/// What is needed to map a row.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The query with its columns.
    pub prepared: &'a Prepared,
    /// The status table.
    pub words: &'a Words,
    /// Our time.
    pub now: DateTime<Utc>,
}

/// Which column of a stream is what.
pub trait RowLayout: Send + Sync {
    /// What a row comes to.
    type Row: Send;

    /// What its columns are read as.
    fn uses(&self) -> Uses;

    /// Maps a row.
    ///
    /// # Errors
    /// When a value can't be read as configured.
    fn map(
        &self,
        cells: &[Cell],
        context: Context<'_>,
        notes: &mut Notes,
    ) -> Result<Mapped<Self::Row>, Misfit>;
}

/// A stream that is ready to be read.
pub struct Stream<L> {
    /// The query.
    pub prepared: Prepared,
    /// Its cursor.
    pub cursor: CursorFields,
    /// Its columns.
    pub layout: L,
    /// How the time that it is bounded by is written.
    pub form: Form,
    /// What comes before all ids: found when the stream is first read.
    pub least_id: OnceCell<Value>,
}

/// The rows of a page, as they come.
pub struct PageRows<'a, L: RowLayout> {
    stream: &'a Stream<L>,
    words: &'a Words,
    after: &'a Position,
    now: DateTime<Utc>,
    rows: Vec<Seen<L::Row>>,
    refused: u64,
    /// What was odd.
    pub notes: Notes,
}

impl<'a, L: RowLayout> PageRows<'a, L> {
    /// The page behind this place.
    pub fn new(stream: &'a Stream<L>, words: &'a Words, after: &'a Position) -> Self {
        let now = DateTime::UNIX_EPOCH;
        Self { stream, words, after, now, rows: Vec::new(), refused: 0, notes: Notes::default() }
    }

    /// The page.
    ///
    /// # Errors
    /// When it is full of rows behind which no reading can go on.
    pub fn finish(self, head: &Head) -> Result<Page<L::Row>, LedgerError> {
        if head.truncated && self.rows.is_empty() {
            let prepared = &self.stream.prepared;
            let reason = format!(
                "all {} rows of a page have no place: the cursor's columns are NULL or infinite. Leave those rows out in the SQL",
                prepared.max_rows
            );
            return Err(LedgerError::Shape { query: prepared.name, reason });
        }
        Ok(Page::new(self.rows, self.refused, head))
    }
}

impl<L: RowLayout> Rows for PageRows<'_, L> {
    fn begin(&mut self, began_at: DateTime<Utc>) {
        self.now = began_at;
        self.rows.clear();
        self.refused = 0;
        self.notes = Notes::default();
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), Misfit> {
        let Stream { prepared, cursor, layout, .. } = self.stream;
        let Some(position) = cursor.position(cells) else {
            self.refused += 1;
            return Ok(());
        };
        let before = self.rows.last().map_or(self.after, |seen| &seen.position);
        cursor.in_order(before, &position, &prepared.wanted)?;
        let at = cursor.time(cells, &prepared.wanted)?;
        let context = Context { prepared, words: self.words, now: self.now };
        let row = match layout.map(cells, context, &mut self.notes)? {
            Mapped::Row(row) => Some(row),
            Mapped::Nothing => None,
            Mapped::Refused => {
                self.refused += 1;
                None
            }
        };
        self.rows.push(Seen { position, at, row });
        Ok(())
    }
}
