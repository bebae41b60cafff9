//! A ledger as the rest of the program sees it: lookups, pending, stats.

use super::{
    FindsBy, LedgerError, LedgerReader, LedgerStats, Lookup,
    backlog::BacklogLayout,
    binds::{Binds, Head, Limits, Prepared, Rows, Table},
    bounds::Times,
    cell::Misfit,
    flow::{FlowQueries, LedgerFlow, Stream},
    lookup::LookupLayout,
    mysql::MysqlReader,
    notes::{Notes, shown},
    position::{Position, Value},
    postgres::{PostgresReader, least_id},
    sql::{self, Dialect, Parameter},
    sqlite::SqliteReader,
    wanted::Field,
    words::Words,
};
use crate::{
    clock,
    config::ledger::{Ledger, LedgerDatabase, LookupQuery, PendingQuery},
    domain::{
        pending::{PendingRow, PendingSnapshot},
        route::{IdempotencyKey, NotificationId, RouteName},
    },
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use uuid::Uuid;

/// The most unmapped words that are told in the life of an adapter.
const MOST_TOLD: usize = 64;

/// A ledger: a database, what is asked of it, and what its answers mean.
pub struct LedgerAdapter {
    pub(super) name: String,
    pub(super) database: Database,
    pub(super) lookup: (Prepared, LookupLayout),
    pub(super) pending: Option<(Prepared, BacklogLayout)>,
    pub(super) flow: Option<Arc<FlowQueries>>,
    pub(super) words: Words,
    pub(super) overlap: Duration,
    pub(super) freshness: Duration,
    pub(super) refresh_every: Duration,
    pub(super) stats: Arc<LedgerStats>,
    told: Mutex<BTreeSet<String>>,
}

/// The database behind a ledger.
pub(super) enum Database {
    /// PostgreSQL.
    Postgres(PostgresReader),
    /// MySQL or MariaDB.
    Mysql(MysqlReader),
    /// SQLite.
    Sqlite(SqliteReader),
}

impl Database {
    /// The database of a configuration, and what it speaks. It does not connect.
    ///
    /// # Errors
    /// When its address can't be read.
    pub(super) fn open(config: &LedgerDatabase, limits: Limits) -> Result<(Self, Dialect), LedgerError> {
        Ok(match config {
            LedgerDatabase::Postgres(postgres) => {
                (Self::Postgres(PostgresReader::new(postgres, limits)?), Dialect::Postgres)
            }
            LedgerDatabase::Mysql(mysql) => (Self::Mysql(MysqlReader::new(mysql, limits)?), Dialect::Mysql),
            LedgerDatabase::Sqlite(sqlite) => {
                (Self::Sqlite(SqliteReader::new(sqlite, limits)), Dialect::Sqlite)
            }
        })
    }

    /// Reads a query within the limits, row by row.
    pub(super) async fn read(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, LedgerError> {
        match self {
            Self::Postgres(postgres) => postgres.read(prepared, binds, rows).await,
            Self::Mysql(mysql) => mysql.read(prepared, binds, rows).await,
            Self::Sqlite(sqlite) => sqlite.read(prepared, binds, rows).await,
        }
    }
}

impl Database {
    /// What comes before all ids of this column: by what the parameter is cast to, else by the column's type.
    async fn least_id(&self, prepared: &Prepared, id: Field) -> Result<Value, LedgerError> {
        let cast = prepared.query.casts.get(&Parameter::AfterId);
        let least = match cast.map(String::as_str) {
            Some("uuid") => Some(Value::Uuid(Uuid::nil())),
            Some("bigint" | "int8") => Some(Value::Int(i64::MIN)),
            Some("integer" | "int" | "int4") => Some(Value::Int(i32::MIN.into())),
            Some("smallint" | "int2") => Some(Value::Int(i16::MIN.into())),
            Some("text" | "varchar" | "citext") => Some(Value::Text("".into())),
            _ => None,
        };
        match (least, self) {
            (Some(least), _) => Ok(least),
            (None, Self::Postgres(postgres)) => least_id(postgres, prepared, id).await,
            (None, Self::Mysql(mysql)) => mysql.least_id(prepared, id).await,
            // A number comes before all text here, and where a text column makes a text of it, its sign does.
            (None, Self::Sqlite(_)) => Ok(Value::Int(i64::MIN)),
        }
    }
}

/// Makes the adapter of a ledger of this name. Nothing is connected yet: that happens at the first reading, and again after failures.
///
/// # Errors
/// When its SQL, its columns or its address can't be used.
pub fn open(name: &str, config: &Ledger) -> Result<Arc<LedgerAdapter>, LedgerError> {
    let limits = Limits::of(config.statement_timeout.get());
    let (database, dialect) = Database::open(&config.database, limits)?;
    let max_rows = config.max_rows as usize;
    let pending =
        config.pending.as_ref().map(|query| prepare_pending(query, dialect, max_rows)).transpose()?;
    let lookup = prepare_lookup(&config.lookup, dialect, max_rows)?;
    let flow = FlowQueries::new(config, &lookup.1, dialect, Times::of(dialect))?.map(Arc::new);
    Ok(Arc::new(LedgerAdapter {
        name: name.to_owned(),
        database,
        lookup,
        pending,
        flow,
        words: Words::new(&config.statuses),
        overlap: config.overlap.get(),
        freshness: config.freshness.get(),
        refresh_every: config.refresh_every.get(),
        stats: Arc::default(),
        told: Mutex::default(),
    }))
}

pub(super) fn unusable(part: &'static str, reason: impl ToString) -> LedgerError {
    LedgerError::Configuration { part, reason: reason.to_string() }
}

pub(super) fn misfit(part: &'static str) -> impl Fn(Misfit) -> LedgerError {
    move |misfit| unusable(part, format!("column `{}`: {}", misfit.column, misfit.problem))
}

fn prepare_lookup(
    config: &LookupQuery,
    dialect: Dialect,
    max_rows: usize,
) -> Result<(Prepared, LookupLayout), LedgerError> {
    use Parameter::{Ids, Keys, Limit, Now, NowMs, Overlap};
    let part = "lookup query";
    let query = sql::parse(&config.sql, dialect, &[Ids, Keys, Limit, Now, NowMs, Overlap])
        .map_err(|fault| unusable(part, fault))?;
    let layout = LookupLayout::new(&config.columns).map_err(misfit(part))?;
    if !query.binds(Ids) && !query.binds(Keys) {
        return Err(unusable(part, "it must bind `:ids` or `:keys`: without them it can't find a canary"));
    }
    if query.binds(Keys) && !layout.has_key() {
        let reason =
            "it binds `:keys`, so `columns.idempotency_key` must name the column that shows whose row it is";
        return Err(unusable(part, reason));
    }
    if query.list_types.contains_key(&Keys) {
        return Err(unusable(
            part,
            "`:keys` are texts such as `dc-5f…`: they can't be cast to uuid or integer",
        ));
    }
    let wanted = layout.wanted.clone();
    Ok((Prepared { name: "lookup", query, wanted, max_rows }, layout))
}

fn prepare_pending(
    config: &PendingQuery,
    dialect: Dialect,
    max_rows: usize,
) -> Result<(Prepared, BacklogLayout), LedgerError> {
    use Parameter::{Limit, Now, NowMs, Overlap};
    let part = "pending query";
    let query = sql::parse(&config.sql, dialect, &[Limit, Now, NowMs, Overlap])
        .map_err(|fault| unusable(part, fault))?;
    let layout = BacklogLayout::new(&config.columns, &config.routes).map_err(misfit(part))?;
    let wanted = layout.wanted.clone();
    Ok((Prepared { name: "pending", query, wanted, max_rows }, layout))
}

impl LedgerAdapter {
    /// How often to read everybody's pending; nothing where no query is configured.
    pub fn refresh_every(&self) -> Option<Duration> {
        self.pending.as_ref().map(|_| self.refresh_every)
    }

    /// The ledger for whoever follows it; nothing where the configuration has no `notifications`.
    pub fn flow(self: &Arc<Self>) -> Option<LedgerFlow> {
        let queries = self.flow.as_ref()?;
        Some(LedgerFlow::new(Arc::clone(self), Arc::clone(queries)))
    }

    /// A place before all rows from this instant on; for a cursor by id alone, before all rows.
    ///
    /// # Errors
    /// When the ledger can't be read, or its ids have no least value.
    pub(super) async fn position_before<L>(
        &self,
        queries: &FlowQueries,
        stream: &Stream<L>,
        from: DateTime<Utc>,
    ) -> Result<Position, LedgerError> {
        let probe = || self.database.least_id(&stream.prepared, stream.cursor.id);
        let id = stream.least_id.get_or_try_init(probe).await?.clone();
        let at = stream.cursor.at.map(|_| queries.time_before(stream, from));
        Ok(Position { at, id })
    }

    /// What is known of the ledger from reading it.
    pub fn stats(&self) -> &Arc<LedgerStats> {
        &self.stats
    }

    /// Reads everybody's pending. `deadlines` names every configured route of this ledger.
    ///
    /// # Errors
    /// When the ledger can't be read: nothing is then known, and nothing is zero.
    pub async fn pending(
        &self,
        deadlines: &BTreeMap<RouteName, Duration>,
    ) -> Result<PendingSnapshot, LedgerError> {
        let Some((prepared, layout)) = &self.pending else {
            return Err(unusable("pending query", "none is configured"));
        };
        self.counted(async {
            let table = self.read(prepared, &Binds { overlap: self.overlap, ..Binds::default() }).await?;
            let mut notes = Notes::default();
            let backlog = layout
                .map(&table.rows, &self.words, table.head.began_at, &mut notes)
                .map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
            self.note(&notes);
            let as_of = as_of(&table.head);
            Ok(PendingSnapshot::fold(
                as_of,
                deadlines,
                backlog.rows,
                backlog.settled_rows,
                table.head.truncated,
            ))
        })
        .await
    }

    /// What is pending, row by row; nothing where no query is configured, or its result is cut.
    ///
    /// # Errors
    /// As for [`Self::pending`].
    pub(super) async fn pending_rows(&self) -> Result<Option<Vec<PendingRow>>, LedgerError> {
        let Some((prepared, layout)) = &self.pending else { return Ok(None) };
        self.counted(async {
            let table = self.read(prepared, &Binds { overlap: self.overlap, ..Binds::default() }).await?;
            if table.head.truncated {
                return Ok(None);
            }
            let backlog = layout
                .map(&table.rows, &self.words, table.head.began_at, &mut Notes::default())
                .map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
            Ok(Some(backlog.rows))
        })
        .await
    }

    pub(super) async fn read(&self, prepared: &Prepared, binds: &Binds) -> Result<Table, LedgerError> {
        let mut rows = Vec::new();
        let head = self.read_rows(prepared, binds, &mut rows).await?;
        Ok(Table { rows, head })
    }

    pub(super) async fn read_rows(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        rows: &mut dyn Rows,
    ) -> Result<Head, LedgerError> {
        let head = self.database.read(prepared, binds, rows).await?;
        self.stats.update(|figures| {
            figures.rows_read += head.rows as u64;
            figures.lag = Some(head.lag);
            figures.skew = head.skew.or(figures.skew);
        });
        Ok(head)
    }

    /// Runs a reading, and counts it whatever comes of it.
    pub(super) async fn counted<T>(
        &self,
        reading: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        let begun = Instant::now();
        let result = reading.await;
        let took = begun.elapsed();
        self.stats.update(|figures| {
            figures.read_time += took;
            figures.last_read_time = took;
            match &result {
                Ok(_) => figures.reads += 1,
                Err(_) => figures.failures += 1,
            }
            figures.last_error = result.as_ref().err().map(LedgerError::word);
        });
        result
    }

    /// Counts what was odd. An unmapped status is told once, with a bounded number of them.
    pub(super) fn note(&self, notes: &Notes) {
        self.stats.update(|figures| {
            figures.unmapped_statuses += notes.unmapped_statuses;
            figures.refused_times += notes.refused_times;
        });
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for word in &notes.words {
            if told.len() < MOST_TOLD && told.insert(word.clone()) {
                tracing::warn!(
                    event = "ledger_status_unmapped",
                    ledger = self.name,
                    status = shown(word),
                    "a status is not in the ledger's status table and counts as unknown: add it to `statuses`"
                );
            }
        }
    }
}

/// As of when absence is proven: our time before the statement began, less what a replica is behind.
pub(super) fn as_of(head: &Head) -> DateTime<Utc> {
    let lag = TimeDelta::from_std(head.lag).unwrap_or(TimeDelta::MAX);
    head.began_at.checked_sub_signed(lag).unwrap_or(DateTime::UNIX_EPOCH)
}

#[async_trait]
impl LedgerReader for LedgerAdapter {
    async fn lookup(&self, ids: &[NotificationId], keys: &[IdempotencyKey]) -> Result<Lookup, LedgerError> {
        if ids.is_empty() && keys.is_empty() {
            return Ok(Lookup { as_of: clock::now(), found: Vec::new() });
        }
        let (prepared, layout) = &self.lookup;
        let binds = Binds {
            ids: ids.iter().map(|id| id.as_str().to_owned()).collect(),
            keys: keys.iter().map(|key| key.as_str().to_owned()).collect(),
            overlap: self.overlap,
            ..Binds::default()
        };
        self.counted(async {
            let table = self.read(prepared, &binds).await?;
            if table.head.truncated {
                let reason = format!(
                    "more than {} rows for {} canaries: what was cut off would look absent. Is `:ids` in the condition? \
                     Otherwise raise `max_rows`",
                    prepared.max_rows,
                    ids.len().max(keys.len())
                );
                return Err(LedgerError::Shape { query: prepared.name, reason });
            }
            let mut notes = Notes::default();
            let found = layout
                .join(&table.rows, &self.words, ids, table.head.began_at, &mut notes)
                .map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
            self.note(&notes);
            Ok(Lookup { as_of: as_of(&table.head), found })
        })
        .await
    }

    fn finds_by(&self) -> FindsBy {
        let query = &self.lookup.0.query;
        FindsBy { ids: query.binds(Parameter::Ids), keys: query.binds(Parameter::Keys) }
    }
}
