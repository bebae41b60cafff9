//! What is pending and older than the history that is followed: it is in no stream, and only the query for everybody's pending tells it.

use crate::{
    domain::flow::rows::RouteNo,
    ledger::{FlowReader, LedgerError, flow::PendingCount},
};
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// How long to wait after a count that failed.
const BACK_OFF: Duration = Duration::from_secs(600);

/// What is pending and was due before the history that is followed, by the place of the route.
#[derive(Debug, Default)]
pub struct Beyond {
    known: Option<BTreeMap<RouteNo, u64>>,
    /// When to count again, and since when what is followed begins.
    again: Option<(Instant, DateTime<Utc>)>,
}

impl Beyond {
    /// Reads what is pending, where it is time to, which is `every` so long: it costs what everybody's pending costs. Gives all that was read.
    ///
    /// # Errors
    /// When the ledger can't be read. It is tried again later, and until then it isn't known.
    pub async fn look(
        &mut self,
        reader: &dyn FlowReader,
        horizon: DateTime<Utc>,
        every: Duration,
    ) -> Result<Option<Vec<PendingCount>>, LedgerError> {
        if self.again.is_some_and(|(again, of)| of == horizon && Instant::now() < again) {
            return Ok(None);
        }
        self.again = Some((Instant::now() + BACK_OFF, horizon));
        self.known = None;
        let rows = reader.pending_counts().await?;
        self.known = rows.as_ref().map(|rows| {
            let mut counts = BTreeMap::new();
            for row in rows.iter().filter(|row| row.due < horizon) {
                *counts.entry(row.route).or_default() += row.count;
            }
            counts
        });
        self.again = Some((Instant::now() + every, horizon));
        Ok(rows)
    }

    /// Whether the query tells what is pending: it is configured, and was not cut the last time.
    pub const fn tells(&self) -> bool {
        self.known.is_some()
    }

    /// What was stuck when the monitor came: this, and what the follower has of it.
    pub fn with(&self, route: RouteNo, followed: Option<u64>) -> Option<u64> {
        let beyond = self.known.as_ref().map(|known| known.get(&route).copied().unwrap_or(0));
        followed.into_iter().chain(beyond).reduce(|a, b| a + b)
    }
}
