//! One stream of a pass: the pages behind the watermark, and where the new watermark is.

use crate::{
    domain::flow::{
        rows::{AttemptRow, NotificationRow},
        time::surely,
    },
    ledger::{
        FlowReader, LedgerError, Position,
        flow::{Page, Seen},
    },
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use std::{collections::HashMap, time::Duration};

/// How many of the last rows are asked how far a stream without times has come.
const NEWEST: usize = 50;

/// A row that tells of something at a time.
pub trait Timed {
    /// When.
    fn time(&self) -> DateTime<Utc>;
}

impl Timed for NotificationRow {
    fn time(&self) -> DateTime<Utc> {
        self.due
    }
}

impl Timed for AttemptRow {
    fn time(&self) -> DateTime<Utc> {
        self.at
    }
}

/// A stream, page by page.
#[async_trait]
pub trait Pages<R>: Sync {
    /// The page behind this place.
    async fn page(&self, after: Option<&Position>) -> Result<Page<R>, LedgerError>;
}

/// The notifications of a ledger.
pub struct Notifications<'a>(pub &'a dyn FlowReader);

#[async_trait]
impl Pages<NotificationRow> for Notifications<'_> {
    async fn page(&self, after: Option<&Position>) -> Result<Page<NotificationRow>, LedgerError> {
        self.0.notifications_page(after, None).await
    }
}

/// The attempts of a ledger, up to a time where there is one.
pub struct Attempts<'a>(pub &'a dyn FlowReader, pub Option<DateTime<Utc>>);

#[async_trait]
impl Pages<AttemptRow> for Attempts<'_> {
    async fn page(&self, after: Option<&Position>) -> Result<Page<AttemptRow>, LedgerError> {
        // Attempts of just that time belong to it.
        let until = self.1.and_then(|until| until.checked_add_signed(TimeDelta::seconds(1)));
        self.0.attempts_page(after, until).await
    }
}

/// Up to where a stream is followed for good.
#[derive(Clone, Debug, Default)]
pub struct Watermark {
    /// The newest row that is not read again; nothing before the first.
    pub position: Option<Position>,
    /// Its time.
    pub at: Option<DateTime<Utc>>,
    /// Where the cursor has no time: when each row behind it was first seen.
    first_seen: HashMap<String, DateTime<Utc>>,
}

/// The rows of one stream in one pass.
pub struct Gathered<R> {
    /// The rows in the ledger's order, each with whether it is closed: it will not be read again.
    pub rows: Vec<(R, bool)>,
    /// The new watermark.
    pub watermark: Watermark,
    /// How far the rows surely come; nothing where they are all.
    pub up_to: Option<DateTime<Utc>>,
    /// As of when this is, on our clock.
    pub as_of: DateTime<Utc>,
    /// As of when it is by the clock that is behind, ours or the ledger's.
    pub surely: DateTime<Utc>,
    /// How many rows were read.
    pub read: u64,
}

/// When a row can't be overtaken any more by one that becomes visible late.
struct Closing<'a> {
    /// Rows of a time at or before this are closed, by the clock that is behind, ours or the ledger's.
    before: DateTime<Utc>,
    /// Rows without a time are closed when they were first seen at or before this, on our clock.
    seen_before: DateTime<Utc>,
    as_of: DateTime<Utc>,
    first_seen: &'a HashMap<String, DateTime<Utc>>,
}

impl Watermark {
    /// A watermark that was kept.
    pub fn kept(position: Option<Position>) -> Self {
        Self { position, ..Self::default() }
    }

    /// Reads on from here. A row is closed once nothing can become visible before it: after `overlap`. Where there is much to read, it stops
    /// at the end of a page whose last row is closed, and in any case behind `up_to`.
    ///
    /// # Errors
    /// When the ledger can't be read.
    pub async fn gather<R: Timed>(
        &self,
        overlap: TimeDelta,
        up_to: Option<DateTime<Utc>>,
        pages: &dyn Pages<R>,
    ) -> Result<Gathered<R>, LedgerError> {
        let first = pages.page(self.position.as_ref()).await?;
        let as_of = first.began_at - delta(first.lag);
        let surely = surely(first.began_at, first.database_now) - delta(first.lag);
        let closing = Closing {
            before: surely - overlap,
            seen_before: as_of - overlap,
            as_of,
            first_seen: &self.first_seen,
        };
        let (mut seen, mut is_full) = (first.rows, first.is_full);
        while is_full && !may_stop(&seen, up_to, &closing) {
            let next = pages.page(seen.last().map(|row| &row.position).or(self.position.as_ref())).await?;
            if next.is_full && next.rows.is_empty() {
                let reason = "a whole page of rows has no place in the stream: the cursor's columns are NULL or no time there";
                return Err(LedgerError::Shape { query: "stream", reason: reason.into() });
            }
            is_full = next.is_full;
            seen.extend(next.rows);
        }
        let read = seen.len() as u64;
        let beyond =
            up_to.and_then(|bound| seen.iter().position(|row| time_of(row).is_some_and(|at| at > bound)));
        seen.truncate(beyond.unwrap_or(seen.len()));
        let is_end = !is_full && beyond.is_none();
        let newest_closed = seen.iter().rposition(|row| closing.holds(row));
        let up_to = if is_end { None } else { reached(&seen).or(up_to) };
        Ok(Gathered {
            watermark: self.moved(&seen, newest_closed, &closing),
            rows: seen
                .into_iter()
                .enumerate()
                .filter_map(|(place, seen)| {
                    Some((seen.row?, newest_closed.is_some_and(|closed| place <= closed)))
                })
                .collect(),
            up_to,
            as_of,
            surely,
            read,
        })
    }

    /// The watermark at the newest closed row; where there is none, it stays.
    fn moved<R: Timed>(&self, seen: &[Seen<R>], newest_closed: Option<usize>, closing: &Closing<'_>) -> Self {
        let newest = newest_closed.map(|place| &seen[place]);
        let open = &seen[newest_closed.map_or(0, |place| place + 1)..];
        Self {
            position: newest.map(|row| row.position.clone()).or_else(|| self.position.clone()),
            at: newest.and_then(time_of).or(self.at),
            first_seen: open
                .iter()
                .filter(|row| row.at.is_none())
                .map(|row| {
                    let place = row.position.to_text();
                    let first = self.first_seen.get(&place).copied().unwrap_or(closing.as_of);
                    (place, first)
                })
                .collect(),
        }
    }
}

impl Closing<'_> {
    fn holds<R: Timed>(&self, row: &Seen<R>) -> bool {
        match row.at {
            Some(at) => at <= self.before,
            None => {
                let first_seen = self.first_seen.get(&row.position.to_text());
                first_seen.is_some_and(|first| *first <= self.seen_before)
                    // History has not been watched: there the row's own time says that it is old.
                    || row.row.as_ref().is_some_and(|row| row.time() <= self.before)
            }
        }
    }
}

/// Whether enough was read for one pass.
fn may_stop<R: Timed>(seen: &[Seen<R>], up_to: Option<DateTime<Utc>>, closing: &Closing<'_>) -> bool {
    match up_to {
        Some(bound) => seen.last().and_then(time_of).is_some_and(|at| at > bound),
        None => seen.last().is_some_and(|row| closing.holds(row)),
    }
}

fn time_of<R: Timed>(row: &Seen<R>) -> Option<DateTime<Utc>> {
    row.at.or_else(|| row.row.as_ref().map(Timed::time))
}

/// How far the rows surely come. The due time of a single row may lie far ahead; the least of the last ones does not.
fn reached<R: Timed>(seen: &[Seen<R>]) -> Option<DateTime<Utc>> {
    let last = seen.last()?;
    let newest = seen.iter().rev().take(NEWEST);
    last.at.or_else(|| newest.filter_map(time_of).min())
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests;
