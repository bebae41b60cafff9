//! The least rights by which the queries of a ledger can be run: on what they name, and on no other column.

mod mysql;
mod postgres;

use super::{
    LedgerAdapter, LedgerError,
    adapter::Database,
    binds::{Binds, Prepared},
    elsewhere::CountQuery,
    sql::names::{Names, TableName, Uses},
};
use crate::clock;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};

/// The statements that give the rights, and what is to be known of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// The database, for people.
    pub database: String,
    /// Whom the rights are given, as it stands in the statements.
    pub role: String,
    /// The statements, each a line that ends in a semicolon. There are none for a file.
    pub statements: Vec<String>,
    /// What is to be known of them.
    pub notes: Vec<Note>,
}

/// Something to be known of the statements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// What.
    pub text: String,
    /// Whether more rights may be needed, and nobody can say which from here.
    pub is_open: bool,
}

impl Note {
    fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_open: false }
    }

    fn open(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_open: true }
    }
}

/// A table or view, as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Relation {
    schema: String,
    name: String,
    columns: Vec<String>,
    /// The columns of its primary key.
    key: Vec<String>,
    is_view: bool,
    /// Whether what is behind the view is read with the rights of whoever reads the view.
    is_invokers: bool,
}

/// What is asked of a relation, over all queries.
type Wanted<'a> = BTreeMap<(String, String), (&'a Relation, BTreeSet<String>)>;

/// Whose queries they are.
#[derive(Clone, Copy)]
enum Whose<'a> {
    /// Those of the ledger.
    Ledger(&'a LedgerAdapter),
    /// The count of the accepted in another database.
    Elsewhere(&'a CountQuery),
}

impl<'a> Whose<'a> {
    /// The queries with the names in them.
    fn named(self) -> Vec<(&'static str, Names)> {
        let queries = match self {
            Self::Ledger(adapter) => adapter.queries(),
            Self::Elsewhere(query) => vec![query.prepared()],
        };
        queries.into_iter().map(|prepared| (prepared.name, Names::of(&prepared.query))).collect()
    }

    /// Each query with values that it can be tried with.
    async fn trials(self) -> Vec<(&'a Prepared, Binds)> {
        match self {
            Self::Ledger(adapter) => adapter.trials().await,
            Self::Elsewhere(query) => {
                let now = clock::now();
                let binds = query.binds(now - TimeDelta::hours(2), now - TimeDelta::hours(1));
                // In the hour that a clock change repeats, NULLs are tried.
                vec![(query.prepared(), binds.unwrap_or_default())]
            }
        }
    }

    async fn grants(self, database: &Database, role: &str) -> Result<Grants, LedgerError> {
        match database {
            Database::Postgres(postgres) => postgres::grants(self, postgres, role).await,
            Database::Mysql(mysql) => mysql::grants(self, mysql, role).await,
            Database::Sqlite(sqlite) => {
                let path = sqlite.path().display().to_string();
                let note = format!(
                    "a file has no grants: {path} has to be readable for the monitor, and the folder it is in too. In WAL mode, while \
                     nobody has it open, the folder has to be writable as well"
                );
                Ok(Grants { database: path, notes: vec![Note::known(note)], ..Grants::default() })
            }
        }
    }
}

impl LedgerAdapter {
    /// The least rights that this role needs. They are read off the queries and the catalog; nothing is granted.
    ///
    /// # Errors
    /// When the database can't be asked, or does not have what a query names.
    pub async fn grants(&self, role: &str) -> Result<Grants, LedgerError> {
        let mut grants = Whose::Ledger(self).grants(&self.database, role).await?;
        if self.elsewhere().is_some() {
            let note = "`accepted_elsewhere` reads a database of its own: what is needed there is printed with --elsewhere";
            grants.notes.push(Note::known(note));
        }
        Ok(grants)
    }

    /// The same for the database in which the accepted are counted, where there is one.
    ///
    /// # Errors
    /// As for the ledger.
    pub async fn grants_elsewhere(&self, role: &str) -> Result<Option<Grants>, LedgerError> {
        match self.elsewhere() {
            Some((database, query)) => Whose::Elsewhere(query).grants(database, role).await.map(Some),
            None => Ok(None),
        }
    }

    fn elsewhere(&self) -> Option<(&Database, &CountQuery)> {
        self.flow.as_ref()?.elsewhere.as_ref()?.database()
    }

    /// The queries that are configured.
    fn queries(&self) -> Vec<&Prepared> {
        let mut queries = vec![&self.lookup.0];
        queries.extend(self.pending.iter().map(|(prepared, _)| prepared));
        if let Some(flow) = &self.flow {
            queries.push(&flow.notifications.prepared);
            queries.extend(flow.attempts.iter().map(|stream| &stream.prepared));
            queries.extend(flow.partition.iter().map(|(prepared, _)| prepared));
            queries.extend(flow.accepted.iter().map(CountQuery::prepared));
        }
        queries
    }
}

/// Every table that is named.
fn tables(queries: &[(&'static str, Names)]) -> BTreeSet<TableName> {
    queries.iter().flat_map(|(_, names)| names.tables()).cloned().collect()
}

/// The functions that are called, by their names alone.
fn functions(queries: &[(&'static str, Names)]) -> BTreeSet<String> {
    queries.iter().flat_map(|(_, names)| names.functions()).map(|(_, name)| name.clone()).collect()
}

/// The columns that the queries use of these relations, and what is to be known of them.
///
/// # Errors
/// When a table is named that isn't there.
fn wanted<'a>(
    queries: &[(&'static str, Names)],
    relations: &'a BTreeMap<TableName, Relation>,
) -> Result<(Wanted<'a>, BTreeSet<Note>), LedgerError> {
    let (mut wanted, mut notes) = (Wanted::new(), BTreeSet::new());
    let catalog = |table: &TableName| relations.get(table).map(|relation| relation.columns.clone());
    for (query, names) in queries {
        let Uses { columns, whole, unknown } = names.uses(&catalog);
        for (table, columns) in columns {
            let Some(relation) = relations.get(&table) else {
                let schema = table.schema.map_or_else(String::new, |schema| format!("{schema}."));
                let reason = format!(
                    "it names `{schema}{}`, and there is no such table or view that this role can see: is it the right database, and is \
                     the schema written or in the role's path?",
                    table.name
                );
                return Err(LedgerError::Query { query, reason });
            };
            let key = (relation.schema.clone(), relation.name.clone());
            wanted.entry(key).or_insert_with(|| (relation, BTreeSet::new())).1.extend(columns);
        }
        for table in whole {
            notes.insert(Note::known(format!(
                "the {query} query takes all columns of `{}`, by a `*` or as a row, and so all are granted: name those that are needed, \
                 and what identifies a person stays closed",
                table.name
            )));
        }
        for name in unknown {
            notes.insert(Note::open(format!(
                "the {query} query has `{name}.…`, and nothing in it is called `{name}`"
            )));
        }
        if names.has_natural_join() {
            let text = format!(
                "the {query} query has a natural join: the columns that its tables share are granted"
            );
            notes.insert(Note::known(text));
        }
    }
    for (relation, columns) in wanted.values_mut() {
        // Counting rows needs the right to read some column.
        if columns.is_empty() {
            columns.extend(relation.key.first().or(relation.columns.first()).cloned());
        }
        if relation.is_invokers {
            notes.insert(Note::open(format!(
                "`{}` is a view that reads with the rights of whoever asks: what is behind it has to be granted too",
                relation.name
            )));
        } else if relation.is_view {
            let text = format!(
                "`{}` is a view: what is behind it is read with the rights of its owner",
                relation.name
            );
            notes.insert(Note::known(text));
        }
    }
    Ok((wanted, notes))
}
