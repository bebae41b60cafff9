//! The part of a check that looks at the queries of a followed ledger.

use super::{
    super::{
        partition::PartitionRows,
        stream::{Context, RowLayout, Stream},
    },
    FlowQueries,
};
use crate::ledger::{
    LedgerAdapter,
    binds::{Binds, Prepared, Rows},
    check::{Finding, Level},
    notes::Notes,
};
use crate::{clock, domain::flow::rows::RouteNo};
use chrono::{DateTime, TimeDelta, Utc};

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
        if let Some((prepared, layout)) = &queries.partition {
            let binds = self.trial_of_count(queries, prepared, now);
            let fits = |row: Vec<_>| PartitionRows::new(prepared, layout, &self.words).row(&row);
            findings.extend(self.check_query(prepared, &binds, fits).await);
        }
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
                    let fits = |row: Vec<_>| query.rows().row(&row);
                    findings.extend(self.check_query(query.prepared(), &binds, fits).await);
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
        let binds = Binds { overlap: self.overlap, ..queries.page_binds(stream, after, None, now) };
        let fits = |row: Vec<_>| {
            let context = Context { prepared, words: &self.words, now };
            stream.layout.map(&row, context, &mut Notes::default())?;
            stream.cursor.time(&row, &prepared.wanted).map(drop)
        };
        self.check_query(prepared, &binds, fits).await
    }
}
