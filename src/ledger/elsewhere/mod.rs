//! An independent count of the accepted, held against the ledger's own: a counter on a text page, a Prometheus, or another database.
//!
//! A database and a Prometheus can be asked for any interval. A text page shows one sum now: it has to be looked at beforehand, and what the looks come
//! to is reckoned by [`crate::domain::elsewhere`].

mod count;
mod page;
mod promql;
mod text;
mod web;

pub(super) use count::CountQuery;
pub use text::TextPage;

use super::{
    LedgerError,
    adapter::Database,
    binds::{Limits, Prepared},
    bounds::Times,
    flow::{RouteField, Routes},
    time::Form,
    wanted::Field,
};
use crate::{
    clock,
    config::ledger::{AcceptedElsewhere, AcceptedSource, AcceptedSql},
    domain::{elsewhere::Bounds, flow::rows::RouteNo},
};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use promql::Prometheus;
use std::{collections::BTreeMap, time::Duration};

/// Why the accepted could not be counted elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElsewhereError {
    /// Nobody answered.
    #[error("{0} can't be reached: {1}")]
    Unreachable(&'static str, String),
    /// What was answered can't be used.
    #[error("{0} gives no count that can be used: {1}")]
    Answer(&'static str, String),
    /// The other database could not be read.
    #[error("accepted_elsewhere: {0}")]
    Database(#[from] LedgerError),
    /// It can only be looked at now.
    #[error("a text page shows what was counted up to now, and can't be asked for an interval of the past")]
    NowAlone,
    /// The interval is too short to say anything of it.
    #[error("an interval of {length} s is no longer than twice the `edge` of accepted_elsewhere, {edge} s")]
    TooShort {
        /// Its length in seconds.
        length: i64,
        /// The edge in seconds.
        edge: i64,
    },
}

/// An independent count of the accepted.
pub struct Elsewhere {
    source: Source,
    words: RouteField,
    edge: TimeDelta,
}

enum Source {
    Text(TextPage),
    Promql(Prometheus),
    Sql(Box<OtherDatabase>),
}

/// A database of somebody else than the ledger.
struct OtherDatabase {
    database: Database,
    query: CountQuery,
}

impl Elsewhere {
    /// The count of this configuration, by the numbers of these routes. Reads certificates; connects to nothing.
    ///
    /// # Errors
    /// When its SQL, its columns or its addresses can't be used.
    pub(super) fn new(
        config: &AcceptedElsewhere,
        routes: &Routes,
        timeout: Duration,
        max_rows: usize,
    ) -> Result<Self, LedgerError> {
        let has_words = match &config.source {
            AcceptedSource::PrometheusText(text) => text.route_label.is_some(),
            AcceptedSource::Promql(promql) => promql.route_label.is_some(),
            AcceptedSource::Sql(sql) => sql.columns.route.is_some(),
        };
        // Labels are looked up as one cell would be.
        let words = RouteField::new(has_words.then_some(Field(0)), &config.routes, routes);
        let source = match &config.source {
            AcceptedSource::PrometheusText(text) => {
                Source::Text(TextPage::new(text, words.clone(), timeout)?)
            }
            AcceptedSource::Promql(promql) => Source::Promql(Prometheus::new(promql, timeout)?),
            AcceptedSource::Sql(sql) => {
                Source::Sql(Box::new(OtherDatabase::new(sql, config, routes, timeout, max_rows)?))
            }
        };
        Ok(Self { source, words, edge: config.source.edge().delta() })
    }

    /// How far its times may be from the ledger's.
    pub const fn edge(&self) -> TimeDelta {
        self.edge
    }

    /// The page that has to be looked at all the time; nothing where an interval can be asked for.
    pub const fn page(&self) -> Option<&TextPage> {
        match &self.source {
            Source::Text(page) => Some(page),
            Source::Promql(_) | Source::Sql(_) => None,
        }
    }

    /// The other database with what is asked of it, where it is one.
    pub(super) const fn database(&self) -> Option<(&Database, &CountQuery)> {
        match &self.source {
            Source::Sql(other) => Some((&other.database, &other.query)),
            Source::Text(_) | Source::Promql(_) => None,
        }
    }

    /// Counts what was accepted at or after `from` and before `until`. Rows from `closed` on may still come. A route of which nothing can be said is not
    /// in it.
    ///
    /// # Errors
    /// When it can't be asked, or its answer can't be used.
    pub async fn accepted(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        closed: DateTime<Utc>,
    ) -> Result<BTreeMap<RouteNo, Bounds>, ElsewhereError> {
        let edge = self.edge;
        if until - from <= edge * 2 {
            return Err(ElsewhereError::TooShort {
                length: (until - from).num_seconds(),
                edge: edge.num_seconds(),
            });
        }
        let inner = (from + edge, until - edge);
        match &self.source {
            Source::Text(_) => Err(ElsewhereError::NowAlone),
            // Series that come, go or fall make its differences too small, never too large: they are no upper bound.
            Source::Promql(prometheus) => {
                let counts = prometheus.count(inner.0, inner.1, &self.words).await?;
                Ok(counts.into_iter().map(|(route, least)| (route, Bounds { least, most: None })).collect())
            }
            Source::Sql(other) => {
                let least = other.count(inner.0, inner.1).await?;
                let outer = (from - edge, until + edge);
                let most = match outer {
                    (_, until) if until > closed => None,
                    _ if edge.is_zero() => Some(least.clone()),
                    (from, until) => Some(other.count(from, until).await?),
                };
                let of = |counts: &BTreeMap<RouteNo, u64>, route| counts.get(&route).copied().unwrap_or(0);
                let bounds = |route| {
                    // Rows that came between the two readings are in the second alone.
                    let least = of(&least, route);
                    let most = most.as_ref().map(|most| of(most, route).max(least));
                    (route, Bounds { least, most })
                };
                Ok(self.words.all().into_iter().map(bounds).collect())
            }
        }
    }

    /// Looks whether it answers as it should, and says what it saw.
    ///
    /// # Errors
    /// When it does not.
    pub(super) async fn look(&self, names: impl Fn(RouteNo) -> String) -> Result<String, ElsewhereError> {
        let say = |counts: &mut dyn Iterator<Item = (RouteNo, String)>| {
            let counts: Vec<String> =
                counts.map(|(route, count)| format!("{} {count}", names(route))).collect();
            if counts.is_empty() { "nothing of any route".to_owned() } else { counts.join(", ") }
        };
        if let Some(page) = self.page() {
            let look = page.sample().await?;
            let seen = say(&mut look.sums.iter().map(|(route, sum)| (*route, sum.to_string())));
            let process = match look.process {
                Some(start) => format!("since {}", start.to_rfc3339_opts(SecondsFormat::Secs, true)),
                None => "with no `process_start_time_seconds`, so a restart leaves its hour unknown".into(),
            };
            return Ok(format!("{seen}, {process}"));
        }
        let now = clock::now();
        let (from, until) = (now - TimeDelta::hours(2), now - TimeDelta::hours(1));
        let counts = self.accepted(from, until, now).await?;
        let seen =
            say(&mut counts.iter().map(|(route, count)| (*route, format!("at least {}", count.least))));
        Ok(format!("{seen}, in the hour before the last one"))
    }
}

impl OtherDatabase {
    fn new(
        config: &AcceptedSql,
        elsewhere: &AcceptedElsewhere,
        routes: &Routes,
        timeout: Duration,
        max_rows: usize,
    ) -> Result<Self, LedgerError> {
        let (database, dialect) = Database::open(&config.database, Limits::of(timeout))?;
        let name = "accepted_elsewhere";
        let form = Form::of(&config.accepted_at).map_err(super::adapter::misfit(name))?;
        let times = Times::of(dialect);
        let map = &elsewhere.routes;
        let query = CountQuery::new(
            name,
            &config.sql,
            &config.columns,
            (map, routes),
            (form, times),
            dialect,
            max_rows,
        )?;
        Ok(Self { database, query })
    }

    async fn count(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<BTreeMap<RouteNo, u64>, ElsewhereError> {
        let binds = self.query.binds(from, until)?;
        let mut rows = self.query.rows();
        let head = self.database.read(self.query.prepared(), &binds, &mut rows).await?;
        Ok(rows.whole(&head)?)
    }
}

/// The cut result of a count.
fn cut(prepared: &Prepared) -> LedgerError {
    let reason =
        format!("more than {} rows: let the query count, by route, or raise `max_rows`", prepared.max_rows);
    LedgerError::Shape { query: prepared.name, reason }
}
