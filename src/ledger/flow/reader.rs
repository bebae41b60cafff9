//! A ledger that is followed, read.

mod check;
mod cost;
mod histories;

use super::{
    FlowReader, Page, PartitionReading, PendingCount, RouteField, Truths,
    attempts::AttemptsLayout,
    cursor::CursorFields,
    notifications::NotificationsLayout,
    partition::{PartitionLayout, PartitionRows},
    routes::Routes,
    stream::{PageRows, RowLayout, Stream},
    text_of,
};
use crate::{
    clock,
    config::ledger::{Cursor, DatedBack, Ledger},
    domain::{
        audit::sample::Reading,
        flow::rows::{AttemptRow, LedgerId, NotificationRow, RouteNo, UnitId},
        pending::PendingRow,
        route::RouteName,
    },
    ledger::{
        Elsewhere, LedgerAdapter, LedgerError, Position,
        adapter::{as_of, misfit, unusable},
        binds::{Binds, Prepared},
        bounds::{Repeated, Times, Writing},
        elsewhere::CountQuery,
        lookup::{LookupLayout, TruthRows},
        position::Value,
        sql::{self, Dialect, Parameter},
        time::Form,
        wanted::Wanted,
    },
};
use async_trait::async_trait;
use chrono::{DateTime, Days, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use tokio::sync::OnceCell;

/// How many notifications one lookup asks for at most.
const ASKED_AT_ONCE: usize = 1_000;

/// The queries of a ledger that is followed.
pub struct FlowQueries {
    pub(in crate::ledger) notifications: Stream<NotificationsLayout>,
    pub(in crate::ledger) attempts: Option<Stream<AttemptsLayout>>,
    pub(in crate::ledger) partition: Option<(Prepared, PartitionLayout)>,
    pub(in crate::ledger) elsewhere: Option<Arc<Elsewhere>>,
    pub(in crate::ledger) accepted: Option<CountQuery>,
    routes: Routes,
    route_of_lookup: RouteField,
    has_not_before: bool,
    times: Times,
    history: TimeDelta,
    dated_back: DatedBack,
}

impl FlowQueries {
    /// The queries of a configuration; nothing where it does not follow its ledger.
    ///
    /// # Errors
    /// When its SQL or its columns can't be used.
    pub(in crate::ledger) fn new(
        config: &Ledger,
        lookup: &LookupLayout,
        dialect: Dialect,
        times: Times,
    ) -> Result<Option<Self>, LedgerError> {
        let max_rows = config.max_rows as usize;
        let Some(query) = &config.notifications else { return Ok(None) };
        let elsewhere = config.accepted_elsewhere.as_ref();
        let in_ledger = elsewhere.and_then(|elsewhere| elsewhere.in_ledger.as_ref());
        let maps = [
            Some(&query.routes),
            config.partition.as_ref().map(|query| &query.routes),
            elsewhere.map(|elsewhere| &elsewhere.routes),
            in_ledger.map(|query| &query.routes),
        ];
        let routes = Routes::of(maps.into_iter().flatten());
        let notifications =
            stream("notifications", &query.sql, &query.cursor, dialect, max_rows, |wanted| {
                let layout = NotificationsLayout::new(query, &routes, config.attempts.is_some(), wanted)?;
                let form = layout.form();
                Ok((layout, form))
            })?;
        let attempts = config.attempts.as_ref().map(|query| {
            stream("attempts", &query.sql, &query.cursor, dialect, max_rows, |wanted| {
                let layout = AttemptsLayout::new(&query.columns, wanted)?;
                let form = layout.form();
                Ok((layout, form))
            })
        });
        let partition = config.partition.as_ref().map(|query| {
            use Parameter::{FromTs, Limit, Now, NowMs, Overlap, UntilTs};
            let part = "partition query";
            let parsed = sql::parse(&query.sql, dialect, &[FromTs, UntilTs, Limit, Now, NowMs, Overlap])
                .map_err(|fault| unusable(part, fault))?;
            if !parsed.binds(FromTs) || !parsed.binds(UntilTs) {
                return Err(unusable(part, "it must bind `:from_ts` and `:until_ts`"));
            }
            let mut wanted = Wanted::default();
            let layout = PartitionLayout::new(query, &routes, &mut wanted).map_err(misfit(part))?;
            Ok((Prepared { name: "partition", query: parsed, wanted, max_rows }, layout))
        });
        let form = notifications.layout.form();
        let accepted = in_ledger.map(|query| {
            let map = (&query.routes, &routes);
            CountQuery::new("in_ledger", &query.sql, &query.columns, map, (form, times), dialect, max_rows)
        });
        let timeout = config.statement_timeout.get();
        let elsewhere = elsewhere.map(|elsewhere| Elsewhere::new(elsewhere, &routes, timeout, max_rows));
        Ok(Some(Self {
            notifications,
            attempts: attempts.transpose()?,
            partition: partition.transpose()?,
            elsewhere: elsewhere.transpose()?.map(Arc::new),
            accepted: accepted.transpose()?,
            route_of_lookup: RouteField::new(lookup.route(), &query.routes, &routes),
            routes,
            has_not_before: query.columns.not_before.is_some(),
            times,
            history: config.history.delta(),
            dated_back: config.dated_back,
        }))
    }

    /// What the rows of the lookup are read with.
    fn truth_rows<'a>(&'a self, adapter: &'a LedgerAdapter) -> TruthRows<'a> {
        let has = (self.attempts.is_some(), self.has_not_before);
        TruthRows::new(&adapter.lookup.0, &adapter.lookup.1, &adapter.words, &self.route_of_lookup, has)
    }

    fn writing<'a>(&self, prepared: &'a Prepared, parameter: Parameter, form: Form) -> Writing<'a> {
        Writing { form, times: self.times, cast: prepared.query.casts.get(&parameter).map(String::as_str) }
    }

    /// A time at or before this instant, as the stream's cursor writes it.
    pub(in crate::ledger) fn time_before<L>(&self, stream: &Stream<L>, from: DateTime<Utc>) -> Value {
        self.writing(&stream.prepared, Parameter::AfterTs, stream.form).loosely_from(from)
    }

    /// Since when the history is read.
    fn begin(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now.checked_sub_signed(self.history).unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// The values of one page behind a place.
    pub(in crate::ledger) fn page_binds<L>(
        &self,
        stream: &Stream<L>,
        after: Position,
        until: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Binds {
        let writing = |parameter| self.writing(&stream.prepared, parameter, stream.form);
        // What is further ahead is no time that something happened.
        let until = until.or_else(|| now.checked_add_days(Days::new(1))).unwrap_or(now);
        Binds {
            after: Some(after),
            from: Some(writing(Parameter::FromTs).loosely_from(self.begin(now))),
            until: Some(writing(Parameter::UntilTs).loosely_until(until)),
            ..Binds::default()
        }
    }

    /// The values of the count of an interval.
    pub(in crate::ledger) fn partition_binds(
        &self,
        prepared: &Prepared,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> (Binds, Option<Repeated>) {
        let form = self.notifications.layout.form();
        let (low, _) = self.writing(prepared, Parameter::FromTs, form).interval(from, until);
        let writing = self.writing(prepared, Parameter::UntilTs, form);
        let (_, high) = writing.interval(from, until);
        let binds = Binds { from: Some(low), until: Some(high), ..Binds::default() };
        (binds, writing.shown_twice(from, until))
    }
}

fn stream<L>(
    name: &'static str,
    text: &str,
    cursor: &Cursor,
    dialect: Dialect,
    max_rows: usize,
    layout: impl FnOnce(&mut Wanted) -> Result<(L, Form), crate::ledger::cell::Misfit>,
) -> Result<Stream<L>, LedgerError> {
    use Parameter::{AfterId, AfterTs, FromTs, Limit, Now, NowMs, Overlap, UntilTs};
    let allowed = [AfterTs, AfterId, FromTs, UntilTs, Limit, Now, NowMs, Overlap];
    let query = sql::parse(text, dialect, &allowed).map_err(|fault| unusable(name, fault))?;
    if !query.binds(AfterId) || !query.binds(Limit) || query.binds(AfterTs) != cursor.at.is_some() {
        let reason = "a stream is read in pages: it must bind `:after_id` and `:limit`, and `:after_ts` where the cursor has a time \
                      and only there";
        return Err(unusable(name, reason));
    }
    let mut wanted = Wanted::default();
    let (layout, form) = layout(&mut wanted).map_err(misfit(name))?;
    let cursor = CursorFields::new(cursor, &mut wanted).map_err(misfit(name))?;
    let form = cursor.at.map_or(form, |at| at.form);
    let prepared = Prepared { name, query, wanted, max_rows };
    Ok(Stream { prepared, cursor, layout, form, least_id: OnceCell::new() })
}

/// Reads a ledger for whoever follows it.
pub struct LedgerFlow {
    adapter: Arc<LedgerAdapter>,
    queries: Arc<FlowQueries>,
}

impl LedgerFlow {
    pub(in crate::ledger) fn new(adapter: Arc<LedgerAdapter>, queries: Arc<FlowQueries>) -> Self {
        Self { adapter, queries }
    }

    async fn page<L: RowLayout>(
        &self,
        stream: &Stream<L>,
        after: Option<&Position>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Page<L::Row>, LedgerError> {
        let (adapter, prepared) = (&self.adapter, &stream.prepared);
        adapter
            .counted(async {
                let now = clock::now();
                let after = match after {
                    Some(after) if after.at.is_some() == stream.cursor.at.is_some() => after.clone(),
                    Some(_) => {
                        let reason =
                            "the place that was kept is one of another cursor: the stream must be read anew";
                        return Err(LedgerError::Shape { query: prepared.name, reason: reason.into() });
                    }
                    None => adapter.position_before(&self.queries, stream, self.queries.begin(now)).await?,
                };
                let binds = Binds {
                    overlap: adapter.overlap,
                    ..self.queries.page_binds(stream, after.clone(), until, now)
                };
                let mut rows = PageRows::new(stream, &adapter.words, &after);
                let head = adapter.read_rows(prepared, &binds, &mut rows).await?;
                adapter.note(&rows.notes);
                rows.finish(&head)
            })
            .await
    }

    /// Asks for these notifications; nothing where there were more rows than are read.
    async fn ask(&self, ids: &[String]) -> Result<Option<Truths>, LedgerError> {
        let (adapter, queries) = (&self.adapter, &self.queries);
        let prepared = &adapter.lookup.0;
        let mut rows = queries.truth_rows(adapter);
        let binds = Binds { ids: ids.to_vec(), overlap: adapter.overlap, ..Binds::default() };
        let head = adapter.read_rows(prepared, &binds, &mut rows).await?;
        if head.truncated {
            return Ok(None);
        }
        adapter.note(&rows.notes);
        Ok(Some(Truths { as_of: as_of(&head), found: rows.found, refused: rows.refused }))
    }
}

#[async_trait]
impl FlowReader for LedgerFlow {
    fn routes(&self) -> &[RouteName] {
        self.queries.routes.names()
    }

    fn has_attempts(&self) -> bool {
        self.queries.attempts.is_some()
    }

    fn has_partition(&self) -> bool {
        self.queries.partition.is_some()
    }

    async fn notifications_page(
        &self,
        after: Option<&Position>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Page<NotificationRow>, LedgerError> {
        self.page(&self.queries.notifications, after, until).await
    }

    async fn notifications_from(&self, from: DateTime<Utc>) -> Result<Position, LedgerError> {
        self.adapter.position_before(&self.queries, &self.queries.notifications, from).await
    }

    async fn attempts_page(
        &self,
        after: Option<&Position>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Page<AttemptRow>, LedgerError> {
        let attempts = self.queries.attempts.as_ref();
        self.page(attempts.ok_or_else(|| unusable("attempts query", "none is configured"))?, after, until)
            .await
    }

    async fn truths(&self, units: &[UnitId]) -> Result<Truths, LedgerError> {
        let ids: BTreeSet<String> = units.iter().map(|unit| text_of(&unit.notification)).collect();
        let ids: Vec<String> = ids.into_iter().collect();
        let mut truths = Truths { as_of: clock::now(), found: HashMap::new(), refused: 0 };
        if ids.is_empty() {
            return Ok(truths);
        }
        self.adapter
            .counted(async {
                let mut left: Vec<&[String]> = ids.chunks(ASKED_AT_ONCE).collect();
                while let Some(asked) = left.pop() {
                    match self.ask(asked).await? {
                        Some(part) => {
                            truths.as_of = truths.as_of.min(part.as_of);
                            truths.refused += part.refused;
                            truths.found.extend(part.found);
                        }
                        None if asked.len() > 1 => left.extend(asked.chunks(asked.len().div_ceil(2))),
                        None => {
                            let prepared = &self.adapter.lookup.0;
                            let reason = format!(
                                "more than {} rows for one notification: is `:ids` in the condition? Otherwise raise `max_rows`",
                                prepared.max_rows
                            );
                            return Err(LedgerError::Shape { query: prepared.name, reason });
                        }
                    }
                }
                Ok(truths)
            })
            .await
    }

    async fn histories(&self, notifications: &[LedgerId], with_keys: bool) -> Result<Reading, LedgerError> {
        self.read_histories(notifications, with_keys).await
    }

    async fn partition(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<PartitionReading, LedgerError> {
        let Some((prepared, layout)) = &self.queries.partition else {
            return Err(unusable("partition query", "none is configured"));
        };
        let adapter = &self.adapter;
        adapter
            .counted(async {
                let (binds, shown_twice) = self.queries.partition_binds(prepared, from, until);
                let binds = Binds { overlap: adapter.overlap, ..binds };
                let mut rows = PartitionRows::new(prepared, layout, &adapter.words);
                let head = adapter.read_rows(prepared, &binds, &mut rows).await?;
                if head.truncated {
                    let reason = format!(
                        "more than {} rows: let the query count, by route and status, or raise `max_rows`",
                        prepared.max_rows
                    );
                    return Err(LedgerError::Shape { query: prepared.name, reason });
                }
                adapter.note(&rows.notes);
                Ok(PartitionReading { as_of: as_of(&head), counts: rows.counts, shown_twice })
            })
            .await
    }

    fn elsewhere(&self) -> Option<&Arc<Elsewhere>> {
        self.queries.elsewhere.as_ref()
    }

    async fn accepted(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<BTreeMap<RouteNo, u64>>, LedgerError> {
        let Some(query) = &self.queries.accepted else { return Ok(None) };
        let adapter = &self.adapter;
        adapter
            .counted(async {
                let binds = Binds { overlap: adapter.overlap, ..query.binds(from, until)? };
                let mut rows = query.rows();
                let head = adapter.read_rows(query.prepared(), &binds, &mut rows).await?;
                rows.whole(&head).map(Some)
            })
            .await
    }

    async fn pending_counts(&self) -> Result<Option<Vec<PendingCount>>, LedgerError> {
        let Some(rows) = self.adapter.pending_rows().await? else { return Ok(None) };
        let count = |row: PendingRow| {
            let route = self.queries.routes.number(row.route.as_ref().map(RouteName::as_str));
            Some(PendingCount { route, due: row.due?, count: row.count })
        };
        Ok(Some(rows.into_iter().filter_map(count).collect()))
    }
}
