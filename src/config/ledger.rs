//! How the target's attempt ledger is read, as configuration.

mod audit;
mod dated_back;
mod elsewhere;
mod following;
pub mod promql;

pub use audit::Audit;
pub use dated_back::DatedBack;
pub use elsewhere::{
    AcceptedColumns, AcceptedElsewhere, AcceptedQuery, AcceptedSource, AcceptedSql, PrometheusText, Promql,
};
pub use following::{
    AttemptsColumns, AttemptsQuery, Cursor, FirstRead, NotificationsColumns, NotificationsQuery,
    PartitionColumns, PartitionQuery, Reread,
};

use super::scalar::{Secret, Span};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// A ledger: a database of the target's, read and never written.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The database, read by a role that can't write, as in `database: { postgres: { url: "${LEDGER_URL}" } }`; or `mysql`, or `sqlite`.
    pub database: LedgerDatabase,
    /// Finds canaries by notification id or idempotency key: the canary's truth, as in `lookup: { sql: ..., columns: { ... } }`.
    /// docs/ledger.md has queries for the usual tables.
    pub lookup: LookupQuery,
    /// Everybody's pending notifications.
    #[serde(default)]
    pub pending: Option<PendingQuery>,
    /// Everybody's notifications, one after the other: with it the ledger is followed, and its figures don't cost more as history grows.
    #[serde(default)]
    pub notifications: Option<NotificationsQuery>,
    /// Everybody's attempts, one after the other. It needs `notifications`.
    #[serde(default)]
    pub attempts: Option<AttemptsQuery>,
    /// The exact count that the followed figures are held against. It needs `notifications`.
    #[serde(default)]
    pub partition: Option<PartitionQuery>,
    /// An independent count of the accepted, which the ledger's own is held against. It needs `notifications`.
    #[serde(default)]
    pub accepted_elsewhere: Option<AcceptedElsewhere>,
    /// How far back the first read of the streams goes.
    #[serde(default = "thirty_one_days")]
    pub history: Span,
    /// What was due before this instant and is still pending is counted apart: it was stuck when the monitor came.
    #[serde(default)]
    pub baseline: Option<DateTime<Utc>>,
    /// How the history is read when the ledger is followed for the first time.
    #[serde(default)]
    pub first_read: FirstRead,
    /// How pending notifications are read again by id.
    #[serde(default)]
    pub reread: Reread,
    /// How long a notification and its attempts surely stay in the ledger after it was due, an archive that `lookup` reads among it. What
    /// is gone earlier has vanished.
    #[serde(default = "thirty_one_days")]
    pub retention: Span,
    /// How the history is audited, where the ledger is followed.
    #[serde(default)]
    pub audit: Audit,
    /// How pending notifications are looked for that came behind the cursor, where the ledger is followed.
    #[serde(default)]
    pub dated_back: DatedBack,
    /// Most pending notifications that are followed in memory. Above it the pending query alone speaks, and the monitor says so.
    #[serde(default = "pending_limit")]
    pub max_pending: u32,
    /// What the ledger's own words mean, as in `statuses: { sent: delivered, bounced: rejected_recipient }`. A word that isn't here is `unknown`.
    pub statuses: BTreeMap<String, Meaning>,
    /// How old a reading may be before the ledger counts as unobserved. It covers replica lag and late commits.
    #[serde(default = "one_minute")]
    pub freshness: Span,
    /// How long after an attempt's start its row may become visible: at least the service's longest request timeout. For so long after acceptance a row
    /// that is not there says nothing: a canary whose verdict is due before then is not known to be missing in the ledger.
    #[serde(default = "one_minute")]
    pub overlap: Span,
    /// How often the pending query runs.
    #[serde(default = "fifteen_seconds")]
    pub refresh_every: Span,
    /// Limit on one statement.
    #[serde(default = "five_seconds")]
    pub statement_timeout: Span,
    /// Most rows that one query may give.
    #[serde(default = "row_limit")]
    pub max_rows: u32,
}

impl Ledger {
    /// Why a pending notification that came behind the cursor is not found but by an attempt; nothing where it is, or can't be.
    pub fn finds_no_dated_back(&self) -> Option<&'static str> {
        // By an id alone what is written later comes later.
        self.notifications.as_ref()?.cursor.at.as_ref()?;
        if !self.dated_back.look {
            return Some("`dated_back.look` is false");
        }
        let is_counted = self.pending.is_some() || self.partition.is_some();
        (!is_counted)
            .then_some("there is neither a `pending` nor a `partition` query by which it could be looked for")
    }
}

/// Where a ledger is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum LedgerDatabase {
    /// PostgreSQL, by a URL such as `postgres://canary:${PASSWORD}@host/db`.
    Postgres(PostgresLedger),
    /// MySQL or MariaDB, by a URL such as `mysql://canary:${PASSWORD}@host/db`.
    Mysql(MysqlLedger),
    /// An SQLite file, opened read-only.
    Sqlite(SqliteLedger),
}

/// A PostgreSQL ledger.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostgresLedger {
    /// Where the database is, with a role that can only read, such as `postgres://canary:${PASSWORD}@host/db`.
    pub url: Secret,
    /// Most connections, one or two.
    #[serde(default = "two")]
    pub max_connections: u32,
}

/// A MySQL or MariaDB ledger.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MysqlLedger {
    /// Where the database is, with a role that can only read, such as `mysql://canary:${PASSWORD}@host/db`.
    pub url: Secret,
    /// Most connections, one or two.
    #[serde(default = "two")]
    pub max_connections: u32,
}

/// An SQLite ledger.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqliteLedger {
    /// The file, such as `/var/lib/service/ledger.db`. It is opened read-only.
    pub path: PathBuf,
}

/// The query that finds canaries.
///
/// It binds `:ids` (notification ids) or `:keys` (idempotency keys), and `:limit`. It gives a row for each attempt of
/// each notification found, and one row with a NULL attempt for a notification without any.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupQuery {
    /// The SQL, with its named parameters, such as `select id, status from notifications where id = any(:ids) limit :limit`.
    pub sql: String,
    /// Which column of the result is what, as in `columns: { notification_id: id, status: status }`.
    pub columns: LookupColumns,
}

/// The columns of the lookup.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupColumns {
    /// The column with the notification id, as in `notification_id: id`.
    pub notification_id: Column,
    /// The idempotency key, where the ledger has it. Without it an ambiguous acceptance without an id can't be resolved by the ledger.
    #[serde(default)]
    pub idempotency_key: Option<Column>,
    /// The destination, where one notification goes to several. A followed ledger is asked with it, canaries are not.
    #[serde(default)]
    pub destination: Option<Column>,
    /// The service's word for the route, as in `notifications`.
    #[serde(default)]
    pub route: Option<Column>,
    /// When the notification was accepted.
    #[serde(default)]
    pub accepted_at: Option<Column>,
    /// When it is to go out at the earliest, where it was delayed.
    #[serde(default)]
    pub not_before: Option<Column>,
    /// The notification's own status, where it has one.
    #[serde(default)]
    pub status: Option<Column>,
    /// The attempt's id; NULL where there is no attempt.
    #[serde(default)]
    pub attempt_id: Option<Column>,
    /// The attempt's status.
    #[serde(default)]
    pub attempt_status: Option<Column>,
    /// When the attempt started.
    #[serde(default)]
    pub attempt_at: Option<Column>,
    /// When the next attempt is planned. Where it is not NULL, an attempt whose status means a rejection or `unknown` is `retryable`.
    #[serde(default)]
    pub next_attempt: Option<Column>,
    /// The policy version under which the attempt was routed or suppressed.
    #[serde(default)]
    pub policy_version: Option<Column>,
}

/// The query for everybody's pending notifications.
///
/// It binds `:now` and `:limit`. It gives one row for each pending notification (`due_at`, no `count`), or counts by due time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingQuery {
    /// The SQL, with its named parameters, such as `select route, accepted_at from notifications where is_pending limit :limit`.
    pub sql: String,
    /// Which column of the result is what, as in `columns: { route: route, accepted_at: accepted_at }`.
    pub columns: PendingColumns,
    /// From the values of the `route` column to the configured routes, as in `routes: { receipts: email/receipts }`; a value that isn't here is `other`. `*` takes all the rest.
    pub routes: BTreeMap<String, String>,
}

/// The columns of the pending query.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingColumns {
    /// The service's word for the route.
    #[serde(default)]
    pub route: Option<Column>,
    /// The column that says when the notification was accepted, as in `accepted_at: created_at`.
    pub accepted_at: Column,
    /// When it is to go out at the earliest, where it was delayed.
    #[serde(default)]
    pub not_before: Option<Column>,
    /// The newest attempt's status; NULL or absent where there was none.
    #[serde(default)]
    pub status: Option<Column>,
    /// How many notifications the row stands for; one when absent.
    #[serde(default)]
    pub count: Option<Column>,
}

/// A column of a result: its name, or its name and its type where the type can't be read off it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Column {
    /// The name alone.
    Name(String),
    /// The name and the type.
    Typed(TypedColumn),
}

impl Column {
    /// The column's name in the result.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Typed(typed) => &typed.name,
        }
    }
}

/// A column whose type is declared.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypedColumn {
    /// The column's name in the result, as in `{ name: created_at, time: naive_utc }`.
    pub name: String,
    /// How its times are written, as in `{ name: created_at, time: naive_utc }`.
    pub time: TimeForm,
    /// The zone of a naive local time (IANA name).
    #[serde(default)]
    pub zone: Option<String>,
}

/// How a ledger writes a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeForm {
    /// A timestamp without zone that holds UTC.
    NaiveUtc,
    /// A timestamp without zone in the local time of `zone`.
    NaiveLocal,
    /// Seconds since 1970, whole or decimal.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMillis,
    /// ISO 8601 text.
    Iso,
}

/// What a ledger's word means: the outcome of an attempt or the disposition of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// The provider took it: terminal.
    Delivered,
    /// It will be tried again: pending.
    Retryable,
    /// The address is dead, terminal: the recipient's matter.
    RejectedRecipient,
    /// It was rejected for a reason of the service's own, terminal.
    RejectedService,
    /// Policy kept it back: terminal.
    Suppressed,
    /// Nothing was tried yet: pending.
    Pending,
    /// Nobody knows; it stays pending.
    Unknown,
}

fn one_minute() -> Span {
    Span::seconds(60)
}
fn fifteen_seconds() -> Span {
    Span::seconds(15)
}
fn five_seconds() -> Span {
    Span::seconds(5)
}
fn row_limit() -> u32 {
    20_000
}
fn thirty_one_days() -> Span {
    Span::seconds(31 * 86_400)
}
fn pending_limit() -> u32 {
    500_000
}
fn two() -> u32 {
    2
}
