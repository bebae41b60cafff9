//! What follows everybody's notifications: two streams of rows, and the exact count that they are held against.

use super::Column;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The stream of all notifications in the order of a cursor.
///
/// It binds `:after_id`, with a time in the cursor `:after_ts`, and `:limit`; it may bind `:from_ts`, `:until_ts`, `:now`, `:now_ms`
/// and `:overlap`. It gives the rows behind the cursor and is ordered by it: `where (accepted_at, id) > (:after_ts, :after_id)
/// order by accepted_at, id limit :limit`. No two rows have the same place: with destinations, `id` is an id of the pair.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationsQuery {
    /// The SQL, with its named parameters, such as `select id, accepted_at, route from notifications where (accepted_at, id) > (:after_ts,
    /// :after_id) order by accepted_at, id limit :limit`.
    pub sql: String,
    /// Which column of the result is what, as in `columns: { notification_id: id, accepted_at: accepted_at, route: route }`.
    pub columns: NotificationsColumns,
    /// What the rows are ordered by, as in `cursor: { at: accepted_at, id: id }`.
    pub cursor: Cursor,
    /// From the values of the `route` column to the configured routes, as in `routes: { receipts: email/receipts }`; a value that isn't here is `other`. `*` takes all the rest.
    pub routes: BTreeMap<String, String>,
}

/// The columns of the notifications' stream.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationsColumns {
    /// The column with the notification id, as in `notification_id: id`.
    pub notification_id: Column,
    /// The idempotency key, where the ledger has it: by it a canary among the customers' rows is recognised.
    #[serde(default)]
    pub idempotency_key: Option<Column>,
    /// The destination, where one notification goes to several: each is then accounted for by itself.
    #[serde(default)]
    pub destination: Option<Column>,
    /// The service's word for the route.
    #[serde(default)]
    pub route: Option<Column>,
    /// The column that says when the notification was accepted, as in `accepted_at: created_at`.
    pub accepted_at: Column,
    /// When it is to go out at the earliest, where it was delayed.
    #[serde(default)]
    pub not_before: Option<Column>,
    /// The notification's own status, where it has one. Where it is known, it outweighs the attempts.
    #[serde(default)]
    pub status: Option<Column>,
    /// Whether it is a canary: a boolean, or a number that is not zero.
    #[serde(default)]
    pub canary: Option<Column>,
}

/// The stream of all attempts in the order of a cursor.
///
/// It binds and gives the same as the notifications' stream, with a row for each attempt.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttemptsQuery {
    /// The SQL, with its named parameters, such as `select id, notification_id, status, started_at from attempts where (started_at, id) >
    /// (:after_ts, :after_id) order by started_at, id limit :limit`.
    pub sql: String,
    /// Which column of the result is what, as in `columns: { attempt_id: id, notification_id: notification_id, status: status, at: started_at }`.
    pub columns: AttemptsColumns,
    /// What the rows are ordered by, as in `cursor: { at: started_at, id: id }`.
    pub cursor: Cursor,
}

/// The columns of the attempts' stream.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttemptsColumns {
    /// The column with the attempt's own id, as in `attempt_id: id`.
    pub attempt_id: Column,
    /// The column with the id of its notification, as in `notification_id: notification_id`.
    pub notification_id: Column,
    /// Its destination, where one notification goes to several.
    #[serde(default)]
    pub destination: Option<Column>,
    /// The column with its status, a word of `statuses`, as in `status: status`.
    pub status: Column,
    /// The column that says when it started, as in `at: started_at`.
    pub at: Column,
    /// When the next attempt is planned. Where it is not NULL, an attempt whose status means a rejection or `unknown` is `retryable`.
    #[serde(default)]
    pub next_attempt: Option<Column>,
}

/// What a stream is ordered by: columns of its result.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// A time that never changes, such as when the row was made. Without it the order is that of `id` alone, and a row counts as
    /// final when the monitor first saw it longer than `overlap` ago.
    #[serde(default)]
    pub at: Option<Column>,
    /// The column with an id that no two rows share, as in `id: id`. It decides between rows of one time.
    pub id: Column,
}

/// The exact count of what was due in an interval, by where it stands now.
///
/// It binds `:from_ts` and `:until_ts`: due at or after the one and before the other, in the form of the notifications'
/// `accepted_at`. It may bind `:limit`, `:now`, `:now_ms` and `:overlap`. It gives counts by route and status, without canaries.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionQuery {
    /// The SQL, with its named parameters, such as `select route, status, count(*) as n from notifications where accepted_at >= :from_ts and
    /// accepted_at < :until_ts group by route, status`.
    pub sql: String,
    /// Which column of the result is what, as in `columns: { route: route, status: status, count: n }`.
    pub columns: PartitionColumns,
    /// From the values of the `route` column to the configured routes, as in `routes: { receipts: email/receipts }`; a value that isn't here is `other`. `*` takes all the rest.
    pub routes: BTreeMap<String, String>,
}

/// The columns of the partition.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionColumns {
    /// The service's word for the route.
    #[serde(default)]
    pub route: Option<Column>,
    /// The column with the status that says where the notifications stand, as in `status: status`; NULL for those that nothing was tried for.
    pub status: Column,
    /// The column that says how many there are, as in `count: n`.
    pub count: Column,
}

/// How the history is read when a ledger is followed for the first time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstRead {
    /// Most rows that are read in a second, on average.
    #[serde(default = "rows_per_second")]
    pub rows_per_second: u32,
}

impl Default for FirstRead {
    fn default() -> Self {
        Self { rows_per_second: rows_per_second() }
    }
}

/// How pending notifications are read again by id, so that changes are seen that no stream shows.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reread {
    /// How many are read again at each refresh.
    #[serde(default = "per_refresh")]
    pub per_refresh: u32,
}

impl Default for Reread {
    fn default() -> Self {
        Self { per_refresh: per_refresh() }
    }
}

fn rows_per_second() -> u32 {
    20_000
}
fn per_refresh() -> u32 {
    500
}
