//! What the queries of a followed ledger give.

use crate::{
    domain::flow::rows::{RouteNo, Standing, Truth, UnitId},
    ledger::{Position, binds::Head, bounds::Repeated},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// A row of a stream, and where it stands there.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen<R> {
    /// Its place: pages go on behind it.
    pub position: Position,
    /// The cursor's time, at its latest where it can mean two; nothing for a cursor by id alone.
    pub at: Option<DateTime<Utc>>,
    /// What it says; nothing for an attempt without an outcome, and for a row that was refused.
    pub row: Option<R>,
}

/// One page of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<R> {
    /// The rows, in the ledger's order.
    pub rows: Vec<Seen<R>>,
    /// Whether more rows may follow.
    pub is_full: bool,
    /// Our time before the reading.
    pub began_at: DateTime<Utc>,
    /// The database's clock at that moment; ours where it has none of its own.
    pub database_now: DateTime<Utc>,
    /// How far the database is behind its primary.
    pub lag: Duration,
    /// How many rows were refused: no id, a time that is missing or absurd, or no place in the stream.
    pub refused: u64,
}

impl<R> Page<R> {
    /// The place of the last row; nothing in an empty page.
    pub fn last(&self) -> Option<&Position> {
        self.rows.last().map(|seen| &seen.position)
    }

    pub(super) fn new(rows: Vec<Seen<R>>, refused: u64, head: &Head) -> Self {
        let skew = head.skew.unwrap_or(TimeDelta::zero());
        Self {
            rows,
            is_full: head.truncated,
            began_at: head.began_at,
            database_now: head.began_at.checked_add_signed(skew).unwrap_or(head.began_at),
            lag: head.lag,
            refused,
        }
    }
}

/// What the ledger says of notifications that it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Truths {
    /// Our time before the first reading, less the ledger's known lag: absence is proven as of then.
    pub as_of: DateTime<Utc>,
    /// By notification and destination. All destinations of what was asked for are here.
    pub found: HashMap<UnitId, Truth>,
    /// How many rows were refused: no id, or an attempt whose time is missing or absurd.
    pub refused: u64,
}

/// Some that are pending: of one route and due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingCount {
    /// Their route.
    pub route: RouteNo,
    /// When they were due; of a group the earliest.
    pub due: DateTime<Utc>,
    /// How many.
    pub count: u64,
}

/// The exact count of what was due in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionReading {
    /// Our time before the reading, less the ledger's known lag.
    pub as_of: DateTime<Utc>,
    /// How many there are, by route and standing. A route without any isn't here.
    pub counts: BTreeMap<RouteNo, BTreeMap<Standing, u64>>,
    /// In local time, what the clock shows twice around a bound: the count holds both of it, so it can't be told apart from its neighbour.
    pub shown_twice: Option<Repeated>,
}

impl PartitionReading {
    /// Whether the interval can be told apart from its neighbours.
    pub const fn is_exact(&self) -> bool {
        self.shown_twice.is_none()
    }
}
