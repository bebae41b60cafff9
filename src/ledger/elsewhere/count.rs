//! A query that counts the accepted of an interval, by route.

use super::cut;
use crate::{
    config::ledger::AcceptedColumns,
    domain::flow::rows::RouteNo,
    ledger::{
        LedgerError,
        adapter::{misfit, unusable},
        binds::{Binds, Head, Prepared, Rows},
        bounds::{Repeated, Times, Writing},
        cell::{Cell, Misfit, count},
        flow::{RouteField, Routes},
        sql::{self, Dialect, Parameter},
        time::Form,
        uses::{Use, Uses},
        wanted::{Field, Wanted},
    },
};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// A query that counts the accepted.
pub struct CountQuery {
    prepared: Prepared,
    route: RouteField,
    count: Field,
    form: Form,
    times: Times,
}

impl CountQuery {
    /// The query of this configuration. Bounds are written in this form.
    ///
    /// # Errors
    /// When its SQL or its columns can't be used.
    pub fn new(
        name: &'static str,
        text: &str,
        columns: &AcceptedColumns,
        (map, routes): (&BTreeMap<String, String>, &Routes),
        (form, times): (Form, Times),
        dialect: Dialect,
        max_rows: usize,
    ) -> Result<Self, LedgerError> {
        use Parameter::{FromTs, Limit, Now, NowMs, Overlap, UntilTs};
        let query = sql::parse(text, dialect, &[FromTs, UntilTs, Limit, Now, NowMs, Overlap])
            .map_err(|fault| unusable(name, fault))?;
        if !query.binds(FromTs) || !query.binds(UntilTs) {
            return Err(unusable(name, "it must bind `:from_ts` and `:until_ts`"));
        }
        let mut wanted = Wanted::default();
        let route =
            columns.route.as_ref().map(|column| wanted.field(column)).transpose().map_err(misfit(name))?;
        let count = wanted.field(&columns.count).map_err(misfit(name))?;
        let route = RouteField::new(route, map, routes);
        Ok(Self { prepared: Prepared { name, query, wanted, max_rows }, route, count, form, times })
    }

    /// The query itself.
    pub const fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// What its columns are read as.
    pub fn uses(&self) -> Uses {
        Uses::default().with(self.count, Use::Count)
    }

    /// The values of an interval.
    ///
    /// # Errors
    /// When it can't be told apart from its neighbours.
    pub fn binds(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Result<Binds, LedgerError> {
        let writing = |parameter| Writing {
            form: self.form,
            times: self.times,
            cast: self.prepared.query.casts.get(&parameter).map(String::as_str),
        };
        let of_until = writing(Parameter::UntilTs);
        if let Some(Repeated { from, until }) = of_until.shown_twice(from, until) {
            let reason = format!(
                "what was accepted from {from} to {until} has the same local times twice, and is counted only together"
            );
            return Err(LedgerError::Shape { query: self.prepared.name, reason });
        }
        let (low, _) = writing(Parameter::FromTs).interval(from, until);
        let (_, high) = of_until.interval(from, until);
        Ok(Binds { from: Some(low), until: Some(high), ..Binds::default() })
    }

    /// Nothing counted yet.
    pub const fn rows(&self) -> CountRows<'_> {
        CountRows { query: self, counts: BTreeMap::new() }
    }
}

/// The counts, as their rows come.
pub struct CountRows<'a> {
    query: &'a CountQuery,
    counts: BTreeMap<RouteNo, u64>,
}

impl CountRows<'_> {
    /// The counts by route, where they are all.
    ///
    /// # Errors
    /// When the result was cut.
    pub fn whole(self, head: &Head) -> Result<BTreeMap<RouteNo, u64>, LedgerError> {
        if head.truncated { Err(cut(&self.query.prepared)) } else { Ok(self.counts) }
    }
}

impl Rows for CountRows<'_> {
    fn begin(&mut self, _: DateTime<Utc>) {
        self.counts.clear();
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), Misfit> {
        let CountQuery { prepared, route, count: field, .. } = self.query;
        let count = count(&cells[field.0], prepared.wanted.name(*field))?;
        let sum = self.counts.entry(route.read(cells)).or_default();
        *sum = sum.saturating_add(count);
        Ok(())
    }
}
