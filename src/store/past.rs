//! The past of a route, to be looked at again: who judged what when, and how long it took to arrive. A page at a time, whatever its length.

use super::{
    StoreError,
    database::{Access, transaction},
    fault::Fault,
    row::{canary_columns, event, micros, stored_one, text},
    sql::SqlStore,
    statement::{fetch, fetch_in, values},
};
use crate::domain::{
    canary::{Canary, CanaryKind, Event, Judgement},
    route::{CanaryId, Location, RouteName},
    verdict::ExpectedEnd,
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::AnyConnection;
use std::collections::HashMap;

/// `past` asks so. What comes first at one instant is for the database to say: it only has to say the same each time.
pub(super) const PAST: &str = "FROM canary WHERE route = $1 AND slot >= $2 AND (slot > $2 OR canary_id > $3) AND verdict IS NOT NULL \
                               AND kind IN ('scheduled', 'confirmation') ORDER BY slot, canary_id LIMIT $4";

/// A settled canary, as its past is looked at again.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The place of observation.
    pub location: Location,
    /// Its instant.
    pub slot: DateTime<Utc>,
    /// The canary.
    pub canary_id: CanaryId,
    /// Why it was sent.
    pub kind: CanaryKind,
    /// The end that was expected of it.
    pub expected: ExpectedEnd,
    /// Its judgements, by time: the first is the settlement, the others are corrections.
    pub judgements: Vec<Judgement>,
    /// How long after its deadline began to run it arrived whole, if it did. Nothing too where it was erased.
    pub arrived_after: Option<TimeDelta>,
}

/// What is left of the past of routes.
#[async_trait]
pub trait PastStore: Send + Sync + 'static {
    /// Settled canaries of scheduled and confirmation kind of a route, of all locations, by their slots, at most `limit`: those with a slot after
    /// `from`, and those at it that come after `after`. A page goes on where the last canary of the one before was.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn past(
        &self,
        route: &RouteName,
        from: DateTime<Utc>,
        after: Option<CanaryId>,
        limit: u32,
    ) -> Result<Vec<Past>, StoreError>;
}

#[async_trait]
impl PastStore for SqlStore {
    async fn past(
        &self,
        route: &RouteName,
        from: DateTime<Utc>,
        after: Option<CanaryId>,
        limit: u32,
    ) -> Result<Vec<Past>, StoreError> {
        transaction!(self, Access::Read, work => past(&mut work, route, from, after, limit).await)
    }
}

async fn past(
    conn: &mut AnyConnection,
    route: &RouteName,
    from: DateTime<Utc>,
    after: Option<CanaryId>,
    limit: u32,
) -> Result<Vec<Past>, Fault> {
    let statement = format!("SELECT {} {PAST}", canary_columns());
    let after = after.map_or_else(String::new, |id| id.to_string());
    let rows = fetch(conn, statement, values![route.as_str(), micros(from), after, i64::from(limit)]).await?;
    let ids = rows.iter().map(|row| text(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let mut events: HashMap<String, Vec<Event>> = HashMap::new();
    let head = "SELECT canary_id, body FROM event WHERE canary_id IN";
    let tail = "AND kind IN ('submitted', 'received', 'settled', 'corrected')";
    for row in fetch_in(conn, head, tail, &[], &ids).await? {
        events.entry(text(&row, 0)?).or_default().push(event(&text(&row, 1)?)?);
    }
    let one = |(row, id)| Ok(of(stored_one(row, events.get(id).map_or(&[][..], Vec::as_slice))?.canary));
    rows.iter().zip(&ids).map(one).collect()
}

fn of(canary: Canary) -> Past {
    let arrived_after = canary.sink.intact_at().map(|at| at - canary.due_from());
    let Canary { plan, judgements, .. } = canary;
    Past {
        location: plan.location,
        slot: plan.slot,
        canary_id: plan.canary_id,
        kind: plan.kind,
        expected: plan.expected_end,
        judgements: judgements.into_iter().collect(),
        arrived_after,
    }
}
