//! The selects of a query, each with what it reads from and the names that stand in it.

use std::collections::BTreeSet;

/// A table as a query names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableName {
    /// The schema, where it is written.
    pub schema: Option<String>,
    /// The name.
    pub name: String,
}

/// What a select reads from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A table or view.
    Table(TableName),
    /// A select in brackets or of a `with`: the places of its blocks.
    Blocks(Vec<usize>),
    /// A function.
    Function,
}

/// One thing that a select reads from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What it is.
    pub origin: Origin,
    /// By which name it is known there.
    pub alias: String,
    /// Its columns, where the query names them anew.
    pub columns: Vec<String>,
}

/// A name where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mention {
    /// A name with what stands before its dot.
    Column(Option<String>, String),
    /// `*`, likewise.
    Star(Option<String>),
}

/// One select.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The select that it stands in, and whose names it can use.
    pub parent: Option<usize>,
    /// What it reads from.
    pub sources: Vec<Source>,
    /// The names in it.
    pub mentions: Vec<Mention>,
    /// The names of its result's columns, where they are plain.
    pub outputs: BTreeSet<String>,
}

/// All selects of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The selects, each before those in it.
    pub blocks: Vec<Block>,
    /// The functions that are called, each with its schema where one is written.
    pub functions: BTreeSet<(Option<String>, String)>,
    /// Whether a join takes its columns from what both sides have.
    pub has_natural_join: bool,
}
