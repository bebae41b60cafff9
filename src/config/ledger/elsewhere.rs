//! An independent count of the accepted: what was accepted and never written shows in no ledger.

use super::{Column, LedgerDatabase};
use crate::config::scalar::{Secret, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// A count of the accepted by somebody else than the ledger. What it has more than the ledger was accepted and never written.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedElsewhere {
    /// Where it is counted, such as `promql`. Exactly one kind is given.
    pub source: AcceptedSource,
    /// From the source's words for the route to the configured routes, such as `receipts: webhook/receipts`; a value that isn't here is `other`. `*` takes all the rest.
    pub routes: BTreeMap<String, String>,
    /// The ledger's own count of just the same. Without it the follower's count is taken: what was due in the interval, without canaries. It is
    /// needed where `notifications` has `not_before` or `destination`, and where the source counts canaries too.
    #[serde(default)]
    pub in_ledger: Option<AcceptedQuery>,
}

/// Where the accepted are counted.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum AcceptedSource {
    /// A counter on a text page, such as the `/metrics` of one process of the service. It is looked at each minute.
    PrometheusText(PrometheusText),
    /// A query that a Prometheus answers.
    Promql(Promql),
    /// A query on another database.
    Sql(AcceptedSql),
}

/// A counter on a text page of one process.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrometheusText {
    /// The address of the page, such as `http://notifications.internal/metrics`.
    pub url: String,
    /// The counter's name as on the page, such as `notifications_accepted_total`.
    pub metric: String,
    /// Labels that a series must have to be counted.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The label with the service's word for the route.
    #[serde(default)]
    pub route_label: Option<String>,
    /// How far the time at which it counts a notification may be from the ledger's `accepted_at`: whole seconds, at most 1m.
    #[serde(default = "five_seconds")]
    pub edge: Span,
    /// The value of the `Authorization` header.
    #[serde(default)]
    pub authorization: Option<Secret>,
    /// A file of PEM certificates to trust besides the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

/// A query that a Prometheus answers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promql {
    /// The address of the Prometheus without `/api/v1/query`, such as `http://prometheus.internal:9090`.
    pub url: String,
    /// The query, such as `sum by (kind) (accepted_total @ :until - accepted_total @ :from)`: what was counted from `:from` until `:until`, which stand for seconds since 1970, by route. `:range` stands for the time in between, as `3600s`.
    pub query: String,
    /// The label of the result with the service's word for the route.
    #[serde(default)]
    pub route_label: Option<String>,
    /// How far the time of a sample may be from the ledger's `accepted_at`: the scrape interval and some seconds; whole seconds, at most 10m.
    #[serde(default = "one_minute")]
    pub edge: Span,
    /// The value of the `Authorization` header.
    #[serde(default)]
    pub authorization: Option<Secret>,
    /// A file of PEM certificates to trust besides the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

/// A query on another database. It is read as a ledger is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedSql {
    /// The database, such as `{ postgres: { url: postgres://reader@gateway-db.internal/requests } }`.
    pub database: LedgerDatabase,
    /// The SQL, such as `select route, count(*) as n from requests where at >= :from_ts and at < :until_ts group by route`. It binds `:from_ts` and `:until_ts`: accepted at or after the one and before the other. It may bind `:limit`, `:now` and `:now_ms`.
    pub sql: String,
    /// Which column of the result is what, such as `{ route: route, count: n }`.
    pub columns: AcceptedColumns,
    /// The column that the bounds are held against, such as `accepted_at`, with its form where that can't be read off. It needn't be in the result.
    pub accepted_at: Column,
    /// How far that time may be from the ledger's `accepted_at`: whole seconds, at most 10m. 0s where it is the same value.
    #[serde(default = "five_seconds")]
    pub edge: Span,
}

/// A count of the accepted, by the ledger itself.
///
/// It binds `:from_ts` and `:until_ts`, in the form of the notifications' `accepted_at`: accepted (not due) at or after the one and before the other.
/// It may bind `:limit`, `:now`, `:now_ms` and `:overlap`. It counts canaries if the source does.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedQuery {
    /// The SQL, with its named parameters, such as `select route, count(*) as n from notifications where accepted_at >= :from_ts and accepted_at < :until_ts group by route`.
    pub sql: String,
    /// Which column of the result is what, such as `{ route: route, count: n }`.
    pub columns: AcceptedColumns,
    /// From the values of the `route` column to the configured routes, such as `receipts: webhook/receipts`; a value that isn't here is `other`. `*` takes all the rest.
    pub routes: BTreeMap<String, String>,
}

/// The columns of a count of the accepted.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedColumns {
    /// The word for the route.
    #[serde(default)]
    pub route: Option<Column>,
    /// How many there are, such as `n`.
    pub count: Column,
}

impl AcceptedSource {
    /// How far its times may be from the ledger's.
    pub const fn edge(&self) -> Span {
        match self {
            Self::PrometheusText(text) => text.edge,
            Self::Promql(promql) => promql.edge,
            Self::Sql(sql) => sql.edge,
        }
    }
}

fn five_seconds() -> Span {
    Span::seconds(5)
}
fn one_minute() -> Span {
    Span::seconds(60)
}
