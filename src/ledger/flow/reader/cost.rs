//! One real refresh, to see what it costs, and a look at the rows of the last day.

use super::{
    super::{
        Page,
        partition::PartitionRows,
        stream::{PageRows, RowLayout, Stream},
        text_of,
    },
    ASKED_AT_ONCE, FlowQueries,
};
use crate::{
    clock,
    domain::flow::rows::NotificationRow,
    ledger::{
        LedgerAdapter, LedgerError,
        binds::{Binds, Prepared, Rows},
        check::{
            Finding, Level,
            cost::{Cost, QueryCost},
        },
        notes::{Notes, shown},
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// How many rows of the last day are looked at, in each stream.
const SAMPLE: usize = 5_000;

/// More of an hour than this is much.
const MUCH_OF_AN_HOUR: Duration = Duration::from_secs(180);

/// A page, with what was odd about it and how long it took.
pub(super) struct Looked<R> {
    pub(super) page: Page<R>,
    notes: Notes,
    took: Duration,
    /// Whether it begins at the time that was asked for. By an id alone it begins with the first row.
    is_by_time: bool,
}

impl LedgerAdapter {
    /// Makes one refresh as the monitor would, bounded, and looks at some rows of the last day. `per_refresh` is how many pending
    /// notifications are asked for again each time. Nothing is written, and nothing is kept.
    ///
    /// # Errors
    /// When the ledger can't be read.
    pub async fn cost(&self, per_refresh: u32) -> Result<(Cost, Vec<Finding>), LedgerError> {
        let refreshes = 3_600.0 / self.refresh_every.as_secs_f64().max(1.0);
        let (mut cost, mut findings) = (Cost::default(), Vec::new());
        if let Some(queries) = &self.flow {
            self.cost_of_following(queries, per_refresh as usize, refreshes, &mut cost, &mut findings)
                .await?;
        } else if let Some((pending, _)) = &self.pending {
            let (rows, took) = self.timed(pending, &self.trial_binds(), &mut Vec::new()).await?;
            cost.queries.push(QueryCost { query: pending.name, rows, took, runs_an_hour: refreshes });
        }
        findings.push(self.cost_finding(&cost));
        Ok((cost, findings))
    }

    /// Reads a query into what its rows are read with.
    async fn timed(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<(u64, Duration), LedgerError> {
        let begun = Instant::now();
        let head = self.read_rows(prepared, binds, rows).await?;
        Ok((head.rows as u64, begun.elapsed()))
    }

    async fn cost_of_following(
        &self,
        queries: &FlowQueries,
        per_refresh: usize,
        refreshes: f64,
        cost: &mut Cost,
        findings: &mut Vec<Finding>,
    ) -> Result<(), LedgerError> {
        let now = clock::now();
        let back = TimeDelta::from_std(self.overlap + self.refresh_every).unwrap_or(TimeDelta::days(1));
        let (recent, day) = (now - back, now - TimeDelta::days(1));
        let stream = &queries.notifications;
        self.cost_of_stream(queries, stream, recent, refreshes, cost).await?;
        let sample = self.look(queries, stream, day, SAMPLE).await?;
        let others = sample.page.rows.iter().filter_map(|seen| seen.row.as_ref());
        let others = others.filter(|row| usize::from(row.route.0) == queries.routes.names().len()).count();
        findings.push(told("notifications", &sample, others));
        if let Some(stream) = &queries.attempts {
            self.cost_of_stream(queries, stream, recent, refreshes, cost).await?;
            let sample = self.look(queries, stream, day, SAMPLE).await?;
            findings.push(told("attempts", &sample, 0));
        }
        let mut add = |query, (rows, took): (u64, Duration), runs_an_hour| {
            cost.queries.push(QueryCost { query, rows, took, runs_an_hour });
        };
        let ids = ids(&sample.page, per_refresh);
        if !ids.is_empty() {
            let (mut rows, mut took) = (0, Duration::ZERO);
            let mut truths = queries.truth_rows(self);
            for asked in ids.chunks(ASKED_AT_ONCE) {
                let binds = Binds { ids: asked.to_vec(), overlap: self.overlap, ..Binds::default() };
                let (more, longer) = self.timed(&self.lookup.0, &binds, &mut truths).await?;
                (rows, took) = (rows + more, took + longer);
            }
            add("lookup", (rows, took), refreshes);
        }
        let hours = u32::try_from(queries.history.num_hours()).unwrap_or(u32::MAX);
        let (looks, every_hour) = (queries.dated_back.look, queries.dated_back.every_hour_after(hours));
        if let Some((prepared, layout)) = &queries.partition {
            let mut rows = PartitionRows::new(prepared, layout, &self.words);
            let timed = self.timed(prepared, &self.trial_of_count(queries, prepared, now), &mut rows).await?;
            let older = if self.pending.is_none() && looks {
                3_600.0 / every_hour.as_secs_f64().max(1.0)
            } else {
                0.0
            };
            add("partition", timed, 1.0 + older.min(refreshes));
        }
        if let Some((prepared, _)) = &self.pending {
            let an_hour = 3_600.0 / queries.dated_back.every().as_secs_f64().max(1.0);
            add(
                "pending",
                self.timed(prepared, &self.trial_binds(), &mut Vec::new()).await?,
                an_hour.min(refreshes),
            );
        }
        Ok(())
    }

    /// What one refresh reads of a stream. By an id alone nothing tells where its newest rows begin.
    async fn cost_of_stream<L: RowLayout>(
        &self,
        queries: &FlowQueries,
        stream: &Stream<L>,
        from: DateTime<Utc>,
        runs_an_hour: f64,
        cost: &mut Cost,
    ) -> Result<(), LedgerError> {
        let query = stream.prepared.name;
        if stream.cursor.at.is_none() {
            cost.not_measured.push(query);
            return Ok(());
        }
        let Looked { page, took, .. } = self.look(queries, stream, from, stream.prepared.max_rows).await?;
        cost.queries.push(QueryCost { query, rows: page.rows.len() as u64, took, runs_an_hour });
        Ok(())
    }

    /// A page of a stream from this time on, of at most so many rows.
    pub(super) async fn look<L: RowLayout>(
        &self,
        queries: &FlowQueries,
        stream: &Stream<L>,
        from: DateTime<Utc>,
        most: usize,
    ) -> Result<Looked<L::Row>, LedgerError> {
        let after = self.position_before(queries, stream, from).await?;
        let prepared = Prepared { max_rows: most.min(stream.prepared.max_rows), ..stream.prepared.clone() };
        let binds = queries.page_binds(stream, after.clone(), None, clock::now());
        let binds = Binds { overlap: self.overlap, ..binds };
        let mut rows = PageRows::new(stream, &self.words, &after);
        let begun = Instant::now();
        let head = self.read_rows(&prepared, &binds, &mut rows).await?;
        let took = begun.elapsed();
        let notes = std::mem::take(&mut rows.notes);
        let is_by_time = stream.cursor.at.is_some();
        Ok(Looked { page: rows.finish(&head)?, notes, took, is_by_time })
    }

    fn cost_finding(&self, cost: &Cost) -> Finding {
        if cost.queries.is_empty() && cost.not_measured.is_empty() {
            return Finding::new(
                "cost",
                Level::Ok,
                "only canaries are looked up: nothing is read again and again",
                "",
            );
        }
        let is_often =
            |query: &&QueryCost| !["partition", "pending"].contains(&query.query) || self.flow.is_none();
        let often = cost.queries.iter().filter(is_often);
        let (rows, took) =
            often.fold((0, Duration::ZERO), |(rows, took), query| (rows + query.rows, took + query.took));
        let queries: Vec<String> = cost
            .queries
            .iter()
            .map(|query| format!("{} {} rows in {} ms", query.query, query.rows, query.took.as_millis()))
            .collect();
        let an_hour = cost.time_an_hour();
        let whole = format!(
            "a refresh reads {rows} rows in {} ms, every {:?}; with the counts about {:.0} rows and {:.1} s an hour ({})",
            took.as_millis(),
            self.refresh_every,
            cost.rows_an_hour(),
            an_hour.as_secs_f64(),
            queries.join(", ")
        );
        let detail = match cost.not_measured.as_slice() {
            [] => whole,
            streams => format!(
                "the cost of a refresh, every {:?}, isn't measured: a cursor by id alone, as in `{}`, goes on from an id that only the follower \
                 knows. All the rest: {}",
                self.refresh_every,
                streams.join("` and `"),
                if queries.is_empty() { "nothing".to_owned() } else { queries.join(", ") }
            ),
        };
        let is_much = an_hour > MUCH_OF_AN_HOUR;
        let hint = if is_much {
            "make the indexes that are missing, raise `refresh_every`, or lower `reread.per_refresh`"
        } else {
            ""
        };
        Finding::new("cost", if is_much { Level::Warn } else { Level::Ok }, detail, hint)
    }
}

/// The ids of the last rows of a page: at most so many.
pub(super) fn ids(page: &Page<NotificationRow>, most: usize) -> Vec<String> {
    let rows = page.rows.iter().rev().filter_map(|seen| seen.row.as_ref());
    let ids: BTreeSet<String> = rows.take(most).map(|row| text_of(&row.unit.notification)).collect();
    ids.into_iter().collect()
}

/// What is odd about a sample.
fn told<R>(query: &'static str, looked: &Looked<R>, others: usize) -> Finding {
    let Looked { page, notes, is_by_time, .. } = looked;
    let words: Vec<String> = notes.words.iter().map(|word| format!("`{}`", shown(word))).collect();
    let mut odd = Vec::new();
    if notes.unmapped_statuses > 0 {
        odd.push((
            format!("{} statuses are not in the table: {}", notes.unmapped_statuses, words.join(", ")),
            "add them to `statuses` (NULL as \"null\"); until then they are `unknown`",
        ));
    }
    if page.refused > 0 {
        odd.push((
            format!("{} rows were refused: their id or time is NULL or absurd, or they have no place in the cursor's order", page.refused),
            "leave such rows out in the SQL, or name the right columns and declare their form",
        ));
    }
    if others > 0 {
        odd.push((
            format!("{others} rows are of routes that are not in `routes`"),
            "map them, or take them all with `\"*\"`; else they count as `other`",
        ));
    }
    let which = if page.is_full { "the first" } else { "all" };
    let name = format!("{query} sample");
    let of = if *is_by_time { "of the last day" } else { "by their ids" };
    let seen = format!("{which} {} rows {of}", page.rows.len());
    if odd.is_empty() {
        return Finding::new(name, Level::Ok, format!("{seen}: statuses, times and ids can be read"), "");
    }
    let (details, hints): (Vec<String>, Vec<&str>) = odd.into_iter().unzip();
    Finding::new(name, Level::Warn, format!("{seen}: {}", details.join("; ")), &hints.join("; "))
}
