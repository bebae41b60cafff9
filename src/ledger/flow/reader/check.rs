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
    binds::{Binds, Rows},
    check::{Finding, Level},
    notes::Notes,
};
use chrono::{DateTime, TimeDelta, Utc};

impl LedgerAdapter {
    /// Runs each query as it will be run in the long run: for what came in the last minutes, and for a closed hour.
    pub(in crate::ledger) async fn check_flow(&self, queries: &FlowQueries) -> Vec<Finding> {
        let now = Utc::now();
        let mut findings = self.check_stream(queries, &queries.notifications, now).await;
        if let Some(attempts) = &queries.attempts {
            findings.extend(self.check_stream(queries, attempts, now).await);
        }
        if let Some((prepared, layout)) = &queries.partition {
            let (from, until) = (now - TimeDelta::hours(2), now - TimeDelta::hours(1));
            let (binds, _) = queries.partition_binds(prepared, from, until);
            let binds = Binds { overlap: self.overlap, ..binds };
            let fits = |row: Vec<_>| PartitionRows::new(prepared, layout, &self.words).row(&row);
            findings.extend(self.check_query(prepared, &binds, fits).await);
        }
        findings
    }

    async fn check_stream<L: RowLayout>(
        &self,
        queries: &FlowQueries,
        stream: &Stream<L>,
        now: DateTime<Utc>,
    ) -> Vec<Finding> {
        let prepared = &stream.prepared;
        let recent = now - TimeDelta::minutes(5);
        let after = match self.position_before(queries, stream, recent).await {
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
