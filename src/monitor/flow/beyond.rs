//! What is pending and older than the history that is followed: it is in no stream, and only the query for everybody's pending tells it.

use crate::{
    domain::flow::rows::RouteNo,
    ledger::{FlowReader, LedgerError},
};
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// How often it is counted. It can only fall, and slowly; and the query costs what everybody's pending costs.
const EVERY: Duration = Duration::from_secs(3_600);

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
    /// Counts it, where it is time to.
    ///
    /// # Errors
    /// When the ledger can't be read. It is tried again later, and until then it isn't known.
    pub async fn look(&mut self, reader: &dyn FlowReader, horizon: DateTime<Utc>) -> Result<(), LedgerError> {
        if self.again.is_some_and(|(again, of)| of == horizon && Instant::now() < again) {
            return Ok(());
        }
        self.again = Some((Instant::now() + BACK_OFF, horizon));
        self.known = None;
        self.known = reader.pending_before(horizon).await?;
        self.again = Some((Instant::now() + EVERY, horizon));
        Ok(())
    }

    /// What was stuck when the monitor came: this, and what the follower has of it.
    pub fn with(&self, route: RouteNo, followed: Option<u64>) -> Option<u64> {
        let beyond = self.known.as_ref().map(|known| known.get(&route).copied().unwrap_or(0));
        followed.into_iter().chain(beyond).reduce(|a, b| a + b)
    }
}
