//! What `check --online` asks of a ledger: does each query run, do its columns fit, what would it cost, could the role write?

pub mod cost;
mod mysql;
mod postgres;
mod rows;
mod sqlite;

use super::{
    LedgerAdapter, LedgerError,
    adapter::Database,
    backlog::BacklogLayout,
    binds::{Binds, Prepared, Rows},
    notes::{Notes, shown},
    sql::{Dialect, Parameter},
    uses::Uses,
};
use chrono::TimeDelta;
use std::{collections::BTreeSet, time::Instant};

pub(super) use rows::{FEW, unfit};

/// A clock that is further off than this makes ages doubtful.
const MOST_SKEW: TimeDelta = TimeDelta::seconds(60);

/// How many ids and keys a query is tried with.
const TRIED_WITH: usize = 50;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, and should be looked at.
    Warn,
    /// It does not work.
    Failed,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: `connection`, `clock`, `rights`, `lookup query` and so on.
    pub name: String,
    /// How bad it is.
    pub level: Level,
    /// What was seen.
    pub detail: String,
    /// What to do, where there is something.
    pub hint: Option<String>,
}

impl Finding {
    pub(super) fn new(name: impl Into<String>, level: Level, detail: impl Into<String>, hint: &str) -> Self {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        Self { name: name.into(), level, detail: detail.into(), hint }
    }

    fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(name, Level::Ok, detail, "")
    }
}

/// What the role could do beyond reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    /// The role's name.
    role: String,
    /// What it could write to, for people. Empty: nothing.
    writable: Vec<String>,
}

/// What came of a query.
pub(super) struct Checked {
    /// What was seen.
    pub findings: Vec<Finding>,
    /// How many rows were read; nothing where they could not be.
    pub rows: Option<usize>,
}

impl Checked {
    /// Whether nothing failed.
    pub fn works(&self) -> bool {
        self.findings.iter().all(|finding| finding.level < Level::Failed)
    }
}

/// A scan of a whole table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// The table, for people; where it is large and the plan tells that, with the condition by which it is read.
    table: String,
    /// Whether it is large enough to hurt.
    is_large: bool,
    /// Whether it has partitions, where that makes a difference to what helps.
    is_partitioned: bool,
}

impl LedgerAdapter {
    /// Looks at everything that a first reading would stumble over. Reads, and reads little.
    pub async fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        match self.server().await {
            Ok(version) => findings.push(Finding::ok("connection", version)),
            Err(error) => {
                let hint =
                    "is it up, is its address right, may this host reach it, are role and password right?";
                findings.push(Finding::new("connection", Level::Failed, error.to_string(), hint));
                return findings;
            }
        }
        findings.push(match self.check_role().await {
            Ok(rights) => rights,
            Err(error) => Finding::new("rights", Level::Failed, error.to_string(), ""),
        });
        let (lookup, layout) = &self.lookup;
        let binds = self.trial_binds();
        let checked = self.check_query(lookup, &binds, &layout.uses(), &mut Vec::new()).await;
        let rows = if checked.works() { Some(self.check_lookup_rows().await) } else { None };
        findings.extend(checked.findings.into_iter().chain(rows));
        if let Some((pending, layout)) = &self.pending {
            let checked = self.check_query(pending, &binds, &layout.uses(), &mut Vec::new()).await;
            let unseen = self.nothing_seen(pending, checked.rows);
            findings.extend(checked.findings.into_iter().chain(unseen));
            findings.extend(self.check_backlog(pending, layout).await);
        }
        if let Some(queries) = &self.flow {
            findings.extend(self.check_flow(queries).await);
        }
        findings.extend(self.check_clock());
        findings
    }

    /// Whether the role could write, as a finding. It is remembered in the stats. The monitor asks at its start.
    ///
    /// # Errors
    /// When the ledger can't be read.
    pub async fn check_role(&self) -> Result<Finding, LedgerError> {
        let rights = match &self.database {
            Database::Postgres(postgres) => postgres::rights(postgres).await?,
            Database::Mysql(mysql) => mysql::rights(mysql).await?,
            Database::Sqlite(_) => {
                self.stats.update(|figures| figures.role_can_write = Some(false));
                return Ok(Finding::ok("rights", "the file is opened read-only"));
            }
        };
        self.stats.update(|figures| figures.role_can_write = Some(!rights.writable.is_empty()));
        if rights.writable.is_empty() {
            return Ok(Finding::ok("rights", format!("the role `{}` can write nothing", rights.role)));
        }
        let detail = format!("the role `{}` could write: {}", rights.role, rights.writable.join(", "));
        let hint = "readings are read-only all the same; give the monitor a role that has CONNECT, USAGE on the schema and SELECT on what \
                    the queries read, and nothing else";
        Ok(Finding::new("rights", Level::Warn, detail, hint))
    }

    async fn server(&self) -> Result<String, LedgerError> {
        match &self.database {
            Database::Postgres(postgres) => postgres::version(postgres).await,
            Database::Mysql(mysql) => mysql::version(mysql).await,
            Database::Sqlite(sqlite) => sqlite::version(sqlite).await,
        }
    }

    /// Values that fit the query's types and find nothing.
    pub(super) fn trial_binds(&self) -> Binds {
        let uuids = (0..TRIED_WITH as u128).map(|n| uuid::Uuid::from_u128(n).to_string());
        let numbers = (1..=TRIED_WITH).map(|n| format!("-{n}"));
        let keys = (0..TRIED_WITH).map(|n| format!("dc-{n:032}"));
        Binds {
            ids: uuids.chain(numbers).collect(),
            keys: keys.collect(),
            overlap: self.overlap,
            ..Binds::default()
        }
    }

    /// Runs a query into what the monitor reads its rows with, holds its columns' types against what they are read as, and looks at its plan.
    pub(super) async fn check_query(
        &self,
        prepared: &Prepared,
        binds: &Binds,
        uses: &Uses,
        rows: &mut dyn Rows,
    ) -> Checked {
        let name = format!("{} query", prepared.name);
        let begun = Instant::now();
        let mut findings = Vec::new();
        let mut count = None;
        match self.read_rows(prepared, binds, rows).await {
            Ok(head) => {
                count = Some(head.rows);
                let took = begun.elapsed().as_millis();
                findings.push(Finding::ok(&name, format!("{} rows in {took} ms", head.rows)));
            }
            Err(error @ LedgerError::Shape { .. }) => findings.push(unfit(prepared, &error)),
            Err(error) => {
                findings.push(Finding::new(name, Level::Failed, error.to_string(), failure_hint(&error)));
                return Checked { findings, rows: None };
            }
        }
        let (row, scans) = match &self.database {
            Database::Postgres(postgres) => (
                postgres::row_of_types(postgres, prepared, binds).await,
                postgres::scans(postgres, prepared, binds).await,
            ),
            Database::Mysql(mysql) => {
                (mysql::row_of_types(mysql, prepared).await, mysql::scans(mysql, prepared, binds).await)
            }
            Database::Sqlite(sqlite) => (
                sqlite::row_of_types(sqlite, prepared, binds).await,
                sqlite::scans(sqlite, prepared, binds).await,
            ),
        };
        let columns = format!("{} columns", prepared.name);
        let unfit = |error: LedgerError| Finding::new(&columns, Level::Failed, error.to_string(), "");
        match row {
            Ok(Some(row)) => {
                let misfits = uses.misfits(&row, &prepared.wanted, &self.words);
                if misfits.is_empty() {
                    findings.push(Finding::ok(&columns, "they are there, and their types fit"));
                }
                findings.extend(misfits.into_iter().map(|m| unfit(LedgerError::misfit(prepared.name, m))));
            }
            Ok(None) => findings.push(Finding::ok(&columns, "they are there; only values have types here")),
            Err(error) => findings.push(unfit(error)),
        }
        // The types tell more than the first value that can't be read.
        if findings.iter().any(|finding| finding.name == columns && finding.level == Level::Failed) {
            findings.retain(|finding| finding.name != rows::name(prepared));
        }
        findings.push(plan(prepared, scans));
        if !prepared.query.binds(Parameter::Limit) {
            let detail = "the query has no `:limit`: rows beyond `max_rows` are computed and thrown away";
            findings.push(Finding::new(
                format!("{} limit", prepared.name),
                Level::Warn,
                detail,
                "end it with `limit :limit`",
            ));
        }
        Checked { findings, rows: count }
    }

    /// Reads the pending once, as the monitor would, and says what is odd about the rows.
    async fn check_backlog(&self, prepared: &Prepared, layout: &BacklogLayout) -> Vec<Finding> {
        let (name, mut notes) = ("pending rows", Notes::default());
        let Ok(table) = self.read(prepared, &self.trial_binds()).await else { return Vec::new() };
        let backlog = match layout.map(&table.rows, &self.words, table.head.began_at, &mut notes) {
            Ok(backlog) => backlog,
            Err(misfit) => {
                let error = LedgerError::misfit(prepared.name, misfit);
                return vec![Finding::new(name, Level::Failed, error.to_string(), "")];
            }
        };
        let words: Vec<String> = notes.words.iter().map(|word| format!("`{}`", shown(word))).collect();
        let others = backlog.rows.iter().filter(|row| row.route.is_none()).count();
        let warn = |seen: bool, detail: String, hint: &str| {
            seen.then(|| Finding::new(name, Level::Warn, detail, hint))
        };
        let odd = [
            warn(
                table.head.truncated,
                format!("more than {} rows: no figure of it is exact", prepared.max_rows),
                "let the query count: `group by` route, status and due time, and name the count in `columns.count`",
            ),
            warn(
                notes.unmapped_statuses > 0,
                format!("{} statuses are not in the table: {}", notes.unmapped_statuses, words.join(", ")),
                "add them to `statuses`; until then they are `unknown`",
            ),
            warn(
                notes.refused_times > 0,
                format!("{} notifications have a missing or absurd time", notes.refused_times),
                "they have no age; is the right column named, and its form declared?",
            ),
            warn(
                backlog.settled_rows > 0,
                format!("{} rows have a status that means settled", backlog.settled_rows),
                "leave them out in the SQL: they are not pending",
            ),
            warn(
                others > 0,
                format!("{others} rows are of routes that are not in `routes`"),
                "map them, or take them all with `\"*\"`",
            ),
        ];
        odd.into_iter().flatten().collect()
    }

    fn check_clock(&self) -> Vec<Finding> {
        let figures = self.stats.figures();
        let mut findings = Vec::new();
        if let Some(skew) = figures.skew {
            let detail = format!("the database's clock less ours: {} ms", skew.num_milliseconds());
            let is_off = skew.abs() > MOST_SKEW;
            let level = if is_off { Level::Warn } else { Level::Ok };
            findings.push(Finding::new(
                "clock",
                level,
                detail,
                if is_off { "ages are off by as much: set the clocks right" } else { "" },
            ));
        }
        if let Some(lag) = figures.lag.filter(|lag| !lag.is_zero()) {
            let detail = format!("a replica, {} ms behind", lag.as_millis());
            let is_stale = lag > self.freshness;
            let level = if is_stale { Level::Warn } else { Level::Ok };
            let hint = "absence is proven only as of then: read the primary, raise `freshness`, or grant pg_read_all_stats, by which a \
                        replica can tell more exactly";
            findings.push(Finding::new("replica", level, detail, if is_stale { hint } else { "" }));
        }
        findings
    }
}

fn failure_hint(error: &LedgerError) -> &'static str {
    match error {
        LedgerError::Timeout { .. } => "an index on what it searches by, or a higher `statement_timeout`",
        LedgerError::Query { reason, .. } if reason.contains("22P02") => {
            "cast right behind the parameter, as in `:ids::uuid[]`: texts that are no uuid are then left out"
        }
        LedgerError::Query { reason, .. } if reason.contains("42883") => {
            "`:ids` is a text[]: cast it to the column's type, as in `id = any(:ids::uuid[])`"
        }
        _ => "",
    }
}

fn hint_of_a_scan(prepared: &Prepared) -> &'static str {
    let query = &prepared.query;
    match (query.binds(Parameter::AfterId), query.dialect) {
        (true, Dialect::Mysql) if query.binds(Parameter::AfterTs) => {
            "an index on the cursor's columns; and compare them as `made_at >= :after_ts and (made_at > :after_ts or id > :after_id)`, \
             since rows that are compared as one use no index here"
        }
        (true, _) => "an index on just the cursor's columns, in their order, see docs/ledger.md#indexes",
        (false, Dialect::Mysql) => {
            "an index on what it searches by; and compare ids as they are, as in `id in (:ids)`, in no function"
        }
        (false, Dialect::Postgres) => {
            "an index whose leading columns are those of this condition, see docs/ledger.md#indexes"
        }
        (false, Dialect::Sqlite) => "an index on what it searches by, see docs/ledger.md#indexes",
    }
}

/// `concurrently` is refused on a table with partitions.
const OF_PARTITIONS: &str = ". It has partitions: `create index … on only` the table, `create index concurrently` on each partition, and `alter \
                             index … attach partition` each of these; the whole index is there with the last one";

fn plan(prepared: &Prepared, scans: Result<Vec<Scan>, LedgerError>) -> Finding {
    let name = format!("{} plan", prepared.name);
    let scans = match scans {
        Ok(scans) => scans,
        Err(error) => return Finding::new(name, Level::Warn, error.to_string(), ""),
    };
    let text = |scans: &[&Scan]| {
        let tables: BTreeSet<&str> = scans.iter().map(|scan| scan.table.as_str()).collect();
        tables.into_iter().collect::<Vec<_>>().join("; ")
    };
    let (large, small): (Vec<&Scan>, Vec<&Scan>) = scans.iter().partition(|scan| scan.is_large);
    if !large.is_empty() {
        let detail = format!("it reads all of {}", text(&large));
        let mut hint = hint_of_a_scan(prepared).to_owned();
        if large.iter().any(|scan| scan.is_partitioned) {
            hint += OF_PARTITIONS;
        }
        return Finding::new(name, Level::Warn, detail, &hint);
    }
    match small.as_slice() {
        [] => Finding::ok(name, "by indexes"),
        small => Finding::ok(name, format!("it reads all of {}, which is small", text(small))),
    }
}
