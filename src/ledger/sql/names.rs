//! Which tables and columns a query names, as its database resolves them: read off its text, so that no right to read them is needed.
//!
//! Who may read them is asked by the database for every column that the text names, whatever a plan makes of it. So this asks for the
//! same: a join that the planner drops is named, and a column that a plan carries along without need is not.

mod block;
mod compared;
mod read;
mod token;

pub use block::TableName;
pub use compared::Compared;

use super::{Dialect, Query};
use block::{Block, Blocks, Mention, Origin, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What a query names.
#[derive(Clone, Debug)]
pub struct Names {
    dialect: Dialect,
    blocks: Blocks,
}

/// What a query uses of its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// The columns of each table. There are none where it only counts rows.
    pub columns: BTreeMap<TableName, BTreeSet<String>>,
    /// The tables of which all columns are taken, by `*` or by the name of the row.
    pub whole: BTreeSet<TableName>,
    /// What stands before a dot and is known as nothing.
    pub unknown: BTreeSet<String>,
}

/// The columns of a table by its name; nothing where there is no such table.
pub type Catalog<'a> = &'a dyn Fn(&TableName) -> Option<Vec<String>>;

impl Names {
    /// Reads a query.
    pub fn of(query: &Query) -> Self {
        Self { dialect: query.dialect, blocks: read::blocks(&token::tokens(query)) }
    }

    /// The tables and views that it names.
    pub fn tables(&self) -> BTreeSet<&TableName> {
        let sources = self.blocks.blocks.iter().flat_map(|block| &block.sources);
        sources.filter_map(|source| table(source)).collect()
    }

    /// The functions that it calls, each with its schema where one is written.
    pub fn functions(&self) -> &BTreeSet<(Option<String>, String)> {
        &self.blocks.functions
    }

    /// Whether a join takes its columns from what both sides have, without naming them.
    pub fn has_natural_join(&self) -> bool {
        self.blocks.has_natural_join
    }

    /// What it uses of the tables of this catalog.
    pub fn uses(&self, catalog: Catalog<'_>) -> Uses {
        let mut resolution = Resolution { names: self, catalog, uses: Uses::default() };
        for name in self.tables() {
            resolution.uses.columns.entry(name.clone()).or_default();
        }
        for block in &self.blocks.blocks {
            for mention in &block.mentions {
                resolution.resolve(block, mention);
            }
            if self.blocks.has_natural_join {
                resolution.share(block);
            }
        }
        resolution.uses
    }

    fn is_same(&self, one: &str, other: &str) -> bool {
        match self.dialect {
            Dialect::Postgres => one == other,
            Dialect::Sqlite | Dialect::Mysql => one.eq_ignore_ascii_case(other),
        }
    }

    fn parent(&self, block: &Block) -> Option<&Block> {
        block.parent.and_then(|place| self.blocks.blocks.get(place))
    }
}

fn table(source: &Source) -> Option<&TableName> {
    match &source.origin {
        Origin::Table(name) => Some(name),
        Origin::Blocks(_) | Origin::Function => None,
    }
}

struct Resolution<'a> {
    names: &'a Names,
    catalog: Catalog<'a>,
    uses: Uses,
}

impl Resolution<'_> {
    /// The name of this column as the table has it.
    fn column(&self, table: &TableName, name: &str) -> Option<String> {
        (self.catalog)(table)?.into_iter().find(|column| self.names.is_same(column, name))
    }

    fn take(&mut self, table: &TableName, column: String) {
        self.uses.columns.entry(table.clone()).or_default().insert(column);
    }

    fn take_all(&mut self, table: &TableName) {
        for column in (self.catalog)(table).unwrap_or_default() {
            self.take(table, column);
        }
        self.uses.whole.insert(table.clone());
    }

    fn resolve(&mut self, block: &Block, mention: &Mention) {
        match mention {
            Mention::Star(None) => {
                let tables: Vec<TableName> = block.sources.iter().filter_map(table).cloned().collect();
                tables.iter().for_each(|table| self.take_all(table));
            }
            Mention::Star(Some(qualifier)) => {
                if let Some(Some(table)) = self.qualified(block, qualifier) {
                    self.take_all(&table);
                }
            }
            Mention::Column(Some(qualifier), name) => {
                if let Some(Some(table)) = self.qualified(block, qualifier)
                    && let Some(column) = self.column(&table, name)
                {
                    self.take(&table, column);
                }
            }
            Mention::Column(None, name) => self.bare(block, name),
        }
    }

    /// The table that a name before a dot means; nothing in it where it means a result.
    fn qualified(&mut self, block: &Block, qualifier: &str) -> Option<Option<TableName>> {
        let names = self.names;
        let mut next = Some(block);
        while let Some(block) = next {
            let found = block.sources.iter().find(|source| names.is_same(&source.alias, qualifier));
            if let Some(source) = found {
                return Some(table(source).cloned());
            }
            next = names.parent(block);
        }
        self.uses.unknown.insert(qualifier.to_owned());
        None
    }

    /// A name without a table: the innermost select that has it means it.
    fn bare(&mut self, block: &Block, name: &str) {
        let names = self.names;
        let mut next = Some(block);
        while let Some(block) = next {
            // Several have it only where a join is `using` it.
            let having: Vec<(TableName, String)> = block
                .sources
                .iter()
                .filter_map(table)
                .filter_map(|table| Some((table.clone(), self.column(table, name)?)))
                .collect();
            if !having.is_empty() {
                having.into_iter().for_each(|(table, column)| self.take(&table, column));
                return;
            }
            if block.sources.iter().any(|source| self.gives(source, name)) {
                return;
            }
            // The name of a table means its whole row.
            let row = block.sources.iter().find(|source| names.is_same(&source.alias, name));
            if let Some(source) = row {
                if let Some(table) = table(source).cloned() {
                    self.take_all(&table);
                }
                return;
            }
            next = names.parent(block);
        }
    }

    /// Whether what is no table has a column of this name.
    fn gives(&self, source: &Source, name: &str) -> bool {
        let is_it = |column: &String| self.names.is_same(column, name);
        if !source.columns.is_empty() {
            return source.columns.iter().any(is_it);
        }
        match &source.origin {
            Origin::Table(_) => false,
            Origin::Function => {
                is_it(&source.alias) || ["key", "value", "ordinality"].iter().any(|own| own == &name)
            }
            Origin::Blocks(places) => {
                places.iter().filter_map(|place| self.names.blocks.blocks.get(*place)).any(|inner| {
                    let has_star = inner.mentions.iter().any(|mention| matches!(mention, Mention::Star(_)));
                    let of_star = |source: &Source| match table(source) {
                        Some(table) => self.column(table, name).is_some(),
                        None => self.gives(source, name),
                    };
                    inner.outputs.iter().any(is_it) || (has_star && inner.sources.iter().any(of_star))
                })
            }
        }
    }

    /// What a natural join may compare: the columns that several of its tables have.
    fn share(&mut self, block: &Block) {
        let mut seen: BTreeMap<String, Vec<TableName>> = BTreeMap::new();
        for table in block.sources.iter().filter_map(table) {
            for column in (self.catalog)(table).unwrap_or_default() {
                seen.entry(column).or_default().push(table.clone());
            }
        }
        for (column, tables) in seen.into_iter().filter(|(_, tables)| tables.len() > 1) {
            tables.iter().for_each(|table| self.take(table, column.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
