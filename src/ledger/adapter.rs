//! A ledger as the rest of the program sees it: lookups, pending, stats.

use super::{
    FindsBy, LedgerError, LedgerReader, LedgerStats, Lookup,
    backlog::BacklogLayout,
    binds::{Binds, Limits, Prepared, Table},
    cell::Misfit,
    lookup::LookupLayout,
    notes::{Notes, shown},
    postgres::PostgresReader,
    sql::{self, Dialect, Parameter},
    sqlite::SqliteReader,
    words::Words,
};
use crate::{
    config::ledger::{Ledger, LedgerDatabase, LookupQuery, PendingQuery},
    domain::{
        pending::PendingSnapshot,
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

/// The most unmapped words that are told in the life of an adapter.
const MOST_TOLD: usize = 64;

/// A ledger: a database, what is asked of it, and what its answers mean.
pub struct LedgerAdapter {
    pub(super) name: String,
    pub(super) database: Database,
    pub(super) lookup: (Prepared, LookupLayout),
    pub(super) pending: Option<(Prepared, BacklogLayout)>,
    pub(super) words: Words,
    pub(super) overlap: Duration,
    pub(super) freshness: Duration,
    refresh_every: Duration,
    pub(super) stats: Arc<LedgerStats>,
    told: Mutex<BTreeSet<String>>,
}

/// The database behind a ledger.
pub(super) enum Database {
    /// PostgreSQL.
    Postgres(PostgresReader),
    /// SQLite.
    Sqlite(SqliteReader),
}

impl Database {
    async fn read(&self, prepared: &Prepared, binds: &Binds) -> Result<Table, LedgerError> {
        match self {
            Self::Postgres(postgres) => postgres.read(prepared, binds).await,
            Self::Sqlite(sqlite) => sqlite.read(prepared, binds).await,
        }
    }
}

/// Makes the adapter of a ledger of this name. Nothing is connected yet: that happens at the first reading, and again after failures.
///
/// # Errors
/// When its SQL, its columns or its address can't be used.
pub fn open(name: &str, config: &Ledger) -> Result<Arc<LedgerAdapter>, LedgerError> {
    let limits = Limits::of(config.statement_timeout.get());
    let (database, dialect) = match &config.database {
        LedgerDatabase::Postgres(postgres) => {
            (Database::Postgres(PostgresReader::new(postgres, limits)?), Dialect::Postgres)
        }
        LedgerDatabase::Sqlite(sqlite) => {
            (Database::Sqlite(SqliteReader::new(sqlite, limits)), Dialect::Sqlite)
        }
    };
    let max_rows = config.max_rows as usize;
    let pending =
        config.pending.as_ref().map(|query| prepare_pending(query, dialect, max_rows)).transpose()?;
    Ok(Arc::new(LedgerAdapter {
        name: name.to_owned(),
        database,
        lookup: prepare_lookup(&config.lookup, dialect, max_rows)?,
        pending,
        words: Words::new(&config.statuses),
        overlap: config.overlap.get(),
        freshness: config.freshness.get(),
        refresh_every: config.refresh_every.get(),
        stats: Arc::default(),
        told: Mutex::default(),
    }))
}

fn unusable(part: &'static str, reason: impl ToString) -> LedgerError {
    LedgerError::Configuration { part, reason: reason.to_string() }
}

fn misfit(part: &'static str) -> impl Fn(Misfit) -> LedgerError {
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
                .map(&table.rows, &self.words, table.began_at, &mut notes)
                .map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
            self.note(&notes);
            let as_of = as_of(&table);
            Ok(PendingSnapshot::fold(as_of, deadlines, backlog.rows, backlog.settled_rows, table.truncated))
        })
        .await
    }

    pub(super) async fn read(&self, prepared: &Prepared, binds: &Binds) -> Result<Table, LedgerError> {
        let table = self.database.read(prepared, binds).await?;
        self.stats.update(|figures| {
            figures.rows_read += table.rows.len() as u64;
            figures.lag = Some(table.lag);
            figures.skew = table.skew.or(figures.skew);
        });
        Ok(table)
    }

    /// Runs a reading, and counts it whatever comes of it.
    async fn counted<T>(
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
    fn note(&self, notes: &Notes) {
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
fn as_of(table: &Table) -> DateTime<Utc> {
    let lag = TimeDelta::from_std(table.lag).unwrap_or(TimeDelta::MAX);
    table.began_at.checked_sub_signed(lag).unwrap_or(DateTime::UNIX_EPOCH)
}

#[async_trait]
impl LedgerReader for LedgerAdapter {
    async fn lookup(&self, ids: &[NotificationId], keys: &[IdempotencyKey]) -> Result<Lookup, LedgerError> {
        if ids.is_empty() && keys.is_empty() {
            return Ok(Lookup { as_of: Utc::now(), found: Vec::new() });
        }
        let (prepared, layout) = &self.lookup;
        let binds = Binds {
            ids: ids.iter().map(|id| id.as_str().to_owned()).collect(),
            keys: keys.iter().map(|key| key.as_str().to_owned()).collect(),
            overlap: self.overlap,
        };
        self.counted(async {
            let table = self.read(prepared, &binds).await?;
            if table.truncated {
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
                .join(&table.rows, &self.words, ids, table.began_at, &mut notes)
                .map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
            self.note(&notes);
            Ok(Lookup { as_of: as_of(&table), found })
        })
        .await
    }

    fn finds_by(&self) -> FindsBy {
        let query = &self.lookup.0.query;
        FindsBy { ids: query.binds(Parameter::Ids), keys: query.binds(Parameter::Keys) }
    }
}
