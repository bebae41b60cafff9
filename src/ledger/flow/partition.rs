//! The rows of the exact count.

use super::routes::{RouteField, Routes};
use crate::{
    config::ledger::{Meaning, PartitionQuery},
    domain::flow::rows::{RouteNo, Standing},
    ledger::{
        binds::{Prepared, Rows},
        cell::{Cell, Misfit, count},
        notes::Notes,
        uses::{Use, Uses},
        wanted::{Field, Wanted},
        words::{Words, standing},
    },
};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// Which column is what.
#[derive(Clone, Debug)]
pub struct PartitionLayout {
    route: RouteField,
    status: Field,
    count: Field,
}

impl PartitionLayout {
    /// The layout of this query.
    ///
    /// # Errors
    /// When a column is declared in a way that makes no sense.
    pub fn new(query: &PartitionQuery, routes: &Routes, wanted: &mut Wanted) -> Result<Self, Misfit> {
        let columns = &query.columns;
        let route = columns.route.as_ref().map(|c| wanted.field(c)).transpose()?;
        Ok(Self {
            route: RouteField::new(route, &query.routes, routes),
            status: wanted.field(&columns.status)?,
            count: wanted.field(&columns.count)?,
        })
    }

    /// What its columns are read as.
    pub fn uses(&self) -> Uses {
        Uses::default().with(self.status, Use::Status).with(self.count, Use::Count)
    }
}

/// The counts, as their rows come.
pub struct PartitionRows<'a> {
    prepared: &'a Prepared,
    layout: &'a PartitionLayout,
    words: &'a Words,
    /// How many there are, by route and standing.
    pub counts: BTreeMap<RouteNo, BTreeMap<Standing, u64>>,
    /// What was odd.
    pub notes: Notes,
}

impl<'a> PartitionRows<'a> {
    /// No counts yet.
    pub fn new(prepared: &'a Prepared, layout: &'a PartitionLayout, words: &'a Words) -> Self {
        Self { prepared, layout, words, counts: BTreeMap::new(), notes: Notes::default() }
    }
}

impl Rows for PartitionRows<'_> {
    fn begin(&mut self, _: DateTime<Utc>) {
        self.counts.clear();
        self.notes = Notes::default();
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), Misfit> {
        let (layout, wanted) = (self.layout, &self.prepared.wanted);
        let cell = &cells[layout.status.0];
        let own = self.words.own_status(cell, wanted.name(layout.status), false, &mut self.notes)?;
        // A row of the partition stands somewhere: where its status says nothing that is known, that is `unknown`.
        let standing = standing(own.unwrap_or(Meaning::Unknown));
        let count = count(&cells[layout.count.0], wanted.name(layout.count))?;
        let sum = self.counts.entry(layout.route.read(cells)).or_default().entry(standing).or_default();
        *sum = sum.saturating_add(count);
        Ok(())
    }
}
