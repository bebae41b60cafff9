//! The part of a check that looks at the queries of a followed ledger.

use super::{
    super::{
        Page,
        partition::PartitionRows,
        stream::{PageRows, RowLayout, Stream},
    },
    FlowQueries,
    cost::ids,
};
use crate::{
    clock,
    domain::flow::rows::RouteNo,
    ledger::{
        LedgerAdapter, LedgerError,
        binds::{Binds, Prepared, Rows, Table},
        check::{FEW, Finding, Level, unfit},
        lookup::HistoryRows,
    },
};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};

/// What is new in the long run came since then.
const RECENT: TimeDelta = TimeDelta::minutes(5);

impl LedgerAdapter {
    /// Runs each query as it will be run in the long run: for what came in the last minutes, and for a closed hour.
    pub(in crate::ledger) async fn check_flow(&self, queries: &FlowQueries) -> Vec<Finding> {
        let now = clock::now();
        let mut findings = self.check_stream(queries, &queries.notifications, now).await;
        if let Some(attempts) = &queries.attempts {
            findings.extend(self.check_stream(queries, attempts, now).await);
        }
        findings.extend(self.check_partition(queries, now).await);
        findings.extend(self.check_accepted(queries, now).await);
        findings
    }

    /// Runs the counts of the accepted, on both sides.
    async fn check_accepted(&self, queries: &FlowQueries, now: DateTime<Utc>) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(query) = &queries.accepted {
            match query.binds(now - TimeDelta::hours(2), now - TimeDelta::hours(1)) {
                Ok(binds) => {
                    let binds = Binds { overlap: self.overlap, ..binds };
                    let (prepared, uses) = (query.prepared(), query.uses());
                    let checked = self.check_query(prepared, &binds, &uses, &mut query.rows()).await;
                    findings.extend(checked.findings);
                    findings.extend(self.nothing_seen(prepared, checked.rows));
                }
                Err(error) => {
                    findings.push(Finding::new("in_ledger query", Level::Warn, error.to_string(), ""))
                }
            }
        }
        if let Some(elsewhere) = &queries.elsewhere {
            let name = |route: RouteNo| {
                queries
                    .routes
                    .names()
                    .get(usize::from(route.0))
                    .map_or_else(|| "other".into(), ToString::to_string)
            };
            findings.push(match elsewhere.look(name).await {
                Ok(seen) => Finding::new("accepted_elsewhere", Level::Ok, seen, ""),
                Err(error) => Finding::new("accepted_elsewhere", Level::Failed, error.to_string(), ""),
            });
        }
        findings
    }

    /// Each query with values as it has them in the long run, where such can be made.
    pub(in crate::ledger) async fn trials(&self) -> Vec<(&Prepared, Binds)> {
        let trial = || self.trial_binds();
        let mut trials = vec![(&self.lookup.0, trial())];
        trials.extend(self.pending.iter().map(|(prepared, _)| (prepared, trial())));
        let Some(queries) = &self.flow else { return trials };
        let now = clock::now();
        trials.push(self.trial_of(queries, &queries.notifications, now).await);
        if let Some(attempts) = &queries.attempts {
            trials.push(self.trial_of(queries, attempts, now).await);
        }
        if let Some((prepared, _)) = &queries.partition {
            trials.push((prepared, self.trial_of_count(queries, prepared, now)));
        }
        if let Some(query) = &queries.accepted {
            // In the hour that a clock change repeats, NULLs are tried.
            let binds = query.binds(now - TimeDelta::hours(2), now - TimeDelta::hours(1)).unwrap_or_default();
            trials.push((query.prepared(), Binds { overlap: self.overlap, ..binds }));
        }
        trials
    }

    async fn trial_of<'a, L>(
        &'a self,
        queries: &FlowQueries,
        stream: &'a Stream<L>,
        now: DateTime<Utc>,
    ) -> (&'a Prepared, Binds) {
        let after = self.position_before(queries, stream, now - RECENT).await.ok();
        let binds = after.map(|after| queries.page_binds(stream, after, None, now)).unwrap_or_default();
        (&stream.prepared, Binds { overlap: self.overlap, ..binds })
    }

    pub(super) fn trial_of_count(
        &self,
        queries: &FlowQueries,
        prepared: &Prepared,
        now: DateTime<Utc>,
    ) -> Binds {
        let (from, until) = (now - TimeDelta::hours(2), now - TimeDelta::hours(1));
        let (binds, _) = queries.partition_binds(prepared, from, until);
        Binds { overlap: self.overlap, ..binds }
    }

    async fn check_stream<L: RowLayout>(
        &self,
        queries: &FlowQueries,
        stream: &Stream<L>,
        now: DateTime<Utc>,
    ) -> Vec<Finding> {
        let prepared = &stream.prepared;
        let after = match self.position_before(queries, stream, now - RECENT).await {
            Ok(after) => after,
            Err(error) => {
                let name = format!("{} query", prepared.name);
                return vec![Finding::new(name, Level::Failed, error.to_string(), "")];
            }
        };
        let binds = Binds { overlap: self.overlap, ..queries.page_binds(stream, after.clone(), None, now) };
        let uses = stream.layout.uses().with_time(stream.cursor.at);
        let mut rows = PageRows::new(stream, &self.words, &after);
        let mut checked = self.check_query(prepared, &binds, &uses, &mut rows).await;
        if checked.rows == Some(0) && checked.works() {
            match self.some_rows(queries, stream, FEW).await {
                Ok(page) => checked.findings.extend(self.nothing_seen(prepared, Some(page.rows.len()))),
                Err(error) => checked.findings.push(unfit(prepared, &error)),
            }
        }
        checked.findings
    }

    /// Some rows of a stream: the first of the last day, or else of the history.
    async fn some_rows<L: RowLayout>(
        &self,
        queries: &FlowQueries,
        stream: &Stream<L>,
        most: usize,
    ) -> Result<Page<L::Row>, LedgerError> {
        let now = clock::now();
        let page = self.look(queries, stream, now - TimeDelta::days(1), most).await?.page;
        if page.rows.is_empty() {
            return Ok(self.look(queries, stream, queries.begin(now), most).await?.page);
        }
        Ok(page)
    }

    /// The ids of some notifications that the stream gives; none where it can't be read, which is told elsewhere.
    pub(in crate::ledger) async fn some_ids(&self, queries: &FlowQueries) -> Vec<String> {
        let page = self.some_rows(queries, &queries.notifications, FEW).await;
        page.map(|page| ids(&page, FEW)).unwrap_or_default()
    }

    /// Reads rows of the lookup as the follower and its audit do. Answers how many were refused.
    ///
    /// # Errors
    /// When a value can't be read as configured.
    pub(in crate::ledger) fn decode_as_followed(
        &self,
        queries: &FlowQueries,
        table: &Table,
    ) -> Result<u64, LedgerError> {
        let (prepared, layout) = &self.lookup;
        let mut truths = queries.truth_rows(self);
        let mut histories = HistoryRows::new(prepared, layout, &self.words);
        let all: [&mut dyn Rows; 2] = [&mut truths, &mut histories];
        for rows in all {
            rows.begin(table.head.began_at);
            for row in &table.rows {
                rows.row(row).map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
            }
        }
        Ok(truths.refused)
    }

    /// Counts an hour: the one before the last, or where nothing was due then, that of a notification.
    async fn check_partition(&self, queries: &FlowQueries, now: DateTime<Utc>) -> Vec<Finding> {
        let Some((prepared, layout)) = &queries.partition else { return Vec::new() };
        let binds = self.trial_of_count(queries, prepared, now);
        let mut rows = PartitionRows::new(prepared, layout, &self.words);
        let mut checked = self.check_query(prepared, &binds, &layout.uses(), &mut rows).await;
        if checked.rows == Some(0)
            && checked.works()
            && let Ok(page) = self.some_rows(queries, &queries.notifications, 1).await
            && let Some(row) = page.rows.into_iter().find_map(|seen| seen.row)
        {
            let hour = row.due.duration_trunc(TimeDelta::hours(1)).unwrap_or(row.due);
            let (binds, _) = queries.partition_binds(prepared, hour, hour + TimeDelta::hours(1));
            let binds = Binds { overlap: self.overlap, ..binds };
            match self.read_rows(prepared, &binds, &mut rows).await {
                Ok(head) => checked.rows = Some(head.rows),
                Err(error) => {
                    checked.rows = None;
                    checked.findings.push(unfit(prepared, &error));
                }
            }
        }
        checked.findings.extend(self.nothing_seen(prepared, checked.rows));
        checked.findings
    }
}
