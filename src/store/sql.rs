//! The store on a database of SQL.

use super::{
    Append, Appended, ControlSum, Decision, ErasureTarget, Filter, Horizon, InFlight, Lease, Look, Operation,
    Pause, PlanRequest, Planned, Removed, Settled, Store, StoreError, Stored, WindowSum, control,
    database::{Access, Database, transaction},
    fault::Fault,
    keep, read,
    row::{instant, int, maybe_instant, micros, text, word},
    statement::values,
    sums::{self, Family},
    writer::{Job, Writer},
};
use crate::{
    clock,
    domain::{
        canary::{CanaryKind, Event},
        disagreement::Disagreement,
        route::{CanaryId, Location, RouteName},
        verdict::{Class, Verdict},
        watch::{Mark, Way},
    },
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Longest time of a proof that a write can be made.
const PING_LIMIT: Duration = Duration::from_secs(2);

/// How long one call may remove sums.
const PRUNING_LIMIT: Duration = Duration::from_secs(2);

/// The store.
#[derive(Debug)]
pub(super) struct SqlStore {
    pub(super) database: Arc<Database>,
    writer: Arc<Writer>,
}

impl SqlStore {
    pub(super) fn new(database: Database) -> Self {
        let database = Arc::new(database);
        let writer = Arc::new(Writer::new(database.clone()));
        Self { database, writer }
    }
}

/// Where a window begins that ends now.
pub(super) fn start_of(window: Duration, now: DateTime<Utc>) -> DateTime<Utc> {
    TimeDelta::from_std(window)
        .ok()
        .and_then(|window| now.checked_sub_signed(window))
        .unwrap_or(DateTime::UNIX_EPOCH)
}

#[async_trait]
impl Store for SqlStore {
    async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.database.ping(PING_LIMIT).await?)
    }

    async fn plan(&self, wishes: &[PlanRequest], lease: &Lease) -> Result<Vec<Planned>, StoreError> {
        let wishes = wishes.iter().map(|wish| (wish.clone(), lease.clone())).collect();
        Ok(self.writer.write(|answer| Job::Plan(wishes, answer)).await?)
    }

    async fn take_over(
        &self,
        location: &Location,
        now: DateTime<Utc>,
        lease: &Lease,
        limit: u32,
    ) -> Result<Vec<Stored>, StoreError> {
        transaction!(self, Access::Write, work => {
            keep::take_over(&mut work, self.database.dialect, location, now, lease, limit).await
        })
    }

    async fn append(&self, appends: &[Append]) -> Result<Vec<Appended>, StoreError> {
        let appends = appends.to_vec();
        Ok(self.writer.write(|answer| Job::Append(appends, answer)).await?)
    }

    async fn due(
        &self,
        location: &Location,
        now: DateTime<Utc>,
        limit: u32,
        but: &[RouteName],
    ) -> Result<Vec<Stored>, StoreError> {
        transaction!(self, Access::Read, work => read::due(&mut work, location, now, limit, but).await)
    }

    async fn next_due(&self, location: &Location) -> Result<Option<DateTime<Utc>>, StoreError> {
        let rows = self.database.query(read::NEXT_DUE, values![location.as_str()]).await?;
        Ok(rows.first().map_or(Ok(None), |row| maybe_instant(row, 0))?)
    }

    async fn decide(&self, decisions: &[Decision]) -> Result<Vec<bool>, StoreError> {
        let decisions = decisions.to_vec();
        Ok(self.writer.write(|answer| Job::Decide(decisions, answer)).await?)
    }

    async fn newest_slots(
        &self,
        location: &Location,
    ) -> Result<HashMap<(RouteName, CanaryKind), DateTime<Utc>>, StoreError> {
        let statement = "SELECT route, kind, slot FROM stream WHERE location = $1 AND slot IS NOT NULL";
        let rows = self.database.query(statement, values![location.as_str()]).await?;
        let newest = |row| -> Result<_, Fault> {
            let kind = word(row, 1, "a kind of canary", CanaryKind::from_word)?;
            Ok(((RouteName::from_text(text(row, 0)?), kind), instant(int(row, 2)?)?))
        };
        Ok(rows.iter().map(newest).collect::<Result<_, _>>()?)
    }

    async fn settled(
        &self,
        location: &Location,
        route: Option<&RouteName>,
        from: DateTime<Utc>,
    ) -> Result<Vec<Settled>, StoreError> {
        let (text, values) = read::settled_statement(location, route, from);
        let mut settled = read::settled_rows(&self.database.query(&text, values).await?)?;
        settled.sort_by_key(|one| (one.slot, one.canary_id));
        Ok(settled)
    }

    async fn settled_since(
        &self,
        location: &Location,
        change: i64,
        limit: u32,
    ) -> Result<Vec<Settled>, StoreError> {
        let text = format!("SELECT {} {}", super::row::SETTLED, read::SETTLED_SINCE);
        let rows = self.database.query(&text, values![location.as_str(), change, i64::from(limit)]).await?;
        Ok(read::settled_rows(&rows)?)
    }

    async fn newest_change(&self) -> Result<i64, StoreError> {
        let text = "SELECT value FROM counter WHERE name = $1";
        let rows = self.database.query(text, values!["change"]).await?;
        Ok(rows.first().map_or(Ok(0), |row| int(row, 0))?)
    }

    async fn window(&self, window: Duration, now: DateTime<Utc>) -> Result<Vec<WindowSum>, StoreError> {
        let from = start_of(window, now);
        let rows = transaction!(self, Access::Read, work => {
            sums::read(&mut work, Family::Verdict, from, now).await
        })?;
        let sum = |row| -> Result<WindowSum, Fault> {
            Ok(WindowSum {
                route: RouteName::from_text(text(row, 0)?),
                location: Location::from_text(text(row, 1)?),
                verdict: word(row, 2, "a verdict", Verdict::from_word)?,
                class: word(row, 3, "a class", Class::from_word)?,
                count: u64::try_from(int(row, 4)?).unwrap_or(0),
            })
        };
        Ok(rows.iter().map(sum).collect::<Result<_, _>>()?)
    }

    async fn controls(&self, window: Duration, now: DateTime<Utc>) -> Result<Vec<ControlSum>, StoreError> {
        let from = start_of(window, now);
        let rows = transaction!(self, Access::Read, work => {
            sums::read(&mut work, Family::Control, from, now).await
        })?;
        let sum = |row| -> Result<ControlSum, Fault> {
            Ok(ControlSum {
                route: RouteName::from_text(text(row, 0)?),
                location: Location::from_text(text(row, 1)?),
                kind: word(row, 2, "a kind of canary", CanaryKind::from_word)?,
                class: word(row, 3, "a class", Class::from_word)?,
                count: u64::try_from(int(row, 4)?).unwrap_or(0),
            })
        };
        Ok(rows.iter().map(sum).collect::<Result<_, _>>()?)
    }

    async fn disagreements(
        &self,
        window: Duration,
        now: DateTime<Utc>,
    ) -> Result<Vec<(RouteName, Disagreement, u64)>, StoreError> {
        let from = start_of(window, now);
        let rows = transaction!(self, Access::Read, work => {
            sums::read(&mut work, Family::Disagreement, from, now).await
        })?;
        let mut found = std::collections::BTreeMap::new();
        for row in &rows {
            let kind = word(row, 2, "a kind of contradiction", Disagreement::from_word)?;
            let count = u64::try_from(int(row, 4)?).unwrap_or(0);
            *found.entry((RouteName::from_text(text(row, 0)?), kind)).or_default() += count;
        }
        Ok(found.into_iter().map(|((route, kind), count)| (route, kind, count)).collect())
    }

    async fn in_flight(&self, location: &Location) -> Result<Vec<InFlight>, StoreError> {
        let rows = self.database.query(read::IN_FLIGHT, values![location.as_str()]).await?;
        Ok(rows.iter().map(read::in_flight).collect::<Result<_, _>>()?)
    }

    async fn newest(
        &self,
        location: &Location,
    ) -> Result<Vec<(RouteName, Option<DateTime<Utc>>, Option<DateTime<Utc>>)>, StoreError> {
        let (statement, values) = read::newest_statement(location, clock::now());
        let rows = self.database.query(&statement, values).await?;
        let newest = |row| -> Result<_, Fault> {
            Ok((RouteName::from_text(text(row, 0)?), maybe_instant(row, 1)?, maybe_instant(row, 2)?))
        };
        Ok(rows.iter().map(newest).collect::<Result<_, _>>()?)
    }

    async fn canary(
        &self,
        id: CanaryId,
    ) -> Result<Option<(Stored, Vec<(DateTime<Utc>, Event)>)>, StoreError> {
        transaction!(self, Access::Read, work => read::canary(&mut work, id).await)
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<Stored>, StoreError> {
        transaction!(self, Access::Read, work => read::list(&mut work, filter).await)
    }

    async fn erase(&self, target: &ErasureTarget, operation: &Operation) -> Result<bool, StoreError> {
        transaction!(self, Access::Write, work => {
            let found = keep::erase(&mut work, self.database.dialect, target).await?;
            control::note(&mut work, operation).await?;
            Ok(found)
        })
    }

    async fn look(&self) -> Result<Look, StoreError> {
        Ok(self.database.look().await?)
    }

    async fn pauses(&self, now: DateTime<Utc>) -> Result<Vec<Pause>, StoreError> {
        let rows = self.database.query(control::PAUSES, values![micros(now)]).await?;
        Ok(rows.iter().map(control::pause_of).collect::<Result<_, _>>()?)
    }

    async fn pause(&self, pause: &Pause, operation: &Operation) -> Result<(), StoreError> {
        transaction!(self, Access::Write, work => {
            control::pause(&mut work, pause).await?;
            control::note(&mut work, operation).await
        })
    }

    async fn resume(&self, route: Option<&RouteName>, operation: &Operation) -> Result<bool, StoreError> {
        transaction!(self, Access::Write, work => {
            let found = control::resume(&mut work, route, operation.at).await?;
            control::note(&mut work, operation).await?;
            Ok(found)
        })
    }

    async fn note(&self, operation: &Operation) -> Result<(), StoreError> {
        transaction!(self, Access::Write, work => control::note(&mut work, operation).await)
    }

    async fn operations(&self, limit: u32) -> Result<Vec<Operation>, StoreError> {
        let rows = self.database.query(control::OPERATIONS, values![i64::from(limit)]).await?;
        Ok(rows.iter().map(control::operation_of).collect::<Result<_, _>>()?)
    }

    async fn prove_sink(
        &self,
        way: Way,
        at: DateTime<Utc>,
        opened: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError> {
        transaction!(self, Access::Write, work => control::prove_sink(&mut work, way, at, opened).await)
    }

    async fn sink_marks(
        &self,
        way: Way,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<Mark>, StoreError> {
        let values = values![way.to_string(), micros(from), micros(until)];
        let rows = self.database.query(control::SINK_MARKS, values).await?;
        Ok(rows.iter().map(control::mark_of).collect::<Result<_, _>>()?)
    }

    async fn sink_proof(
        &self,
        way: Way,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let values = values![way.to_string(), micros(from), micros(until)];
        let rows = self.database.query(control::SINK_PROOF, values).await?;
        Ok(rows.first().map_or(Ok(None), |row| maybe_instant(row, 0))?)
    }

    async fn prune(&self, horizon: &Horizon, limit: u32) -> Result<Removed, StoreError> {
        let canaries = transaction!(self, Access::Write, work => {
            keep::prune_the_rest(&mut work, horizon).await?;
            keep::prune_canaries(&mut work, self.database.dialect, horizon, limit).await
        })?;
        let mut removed = Removed { canaries, sums: 0 };
        let begun = Instant::now();
        while begun.elapsed() < PRUNING_LIMIT {
            let step: u64 =
                transaction!(self, Access::Write, work => keep::prune_sums(&mut work, horizon).await)?;
            removed.sums += step;
            if step == 0 {
                break;
            }
        }
        Ok(removed)
    }
}
