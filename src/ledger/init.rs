//! Proposes a ledger's configuration from the tables of its database: what is recognised, what is guessed, and what is missing.
//!
//! It reads the catalog, and of some rows the columns of times, statuses and routes. It reads no recipient and no body.

mod catalog;
mod facts;
mod indexes;
mod meaning;
mod named;
mod partitions;
mod queries;
mod roles;
mod routes;
mod sample;
mod source;
mod statuses;
mod tables;
mod usual;
mod yaml;

pub use named::{Columns, GaveUp, Role};
pub use tables::BY_HAND;
pub use yaml::Proposal;

use super::{LedgerError, sql::Dialect};
use crate::config::ledger::{LedgerDatabase, Meaning};
use facts::{ColumnFact, Kind, Table};
use queries::Draft;
use roles::{Attempts, Finder, Place, State, Sure, Units};
use sample::Written;
use source::Source;
use std::collections::BTreeMap;
use tables::Unrecognised;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The ledger's name in the configuration.
    pub name: String,
    /// The database.
    pub database: LedgerDatabase,
    /// The schema; without it that which the role finds first.
    pub schema: Option<String>,
    /// The table of the notifications.
    pub notifications: Option<String>,
    /// The table of the attempts.
    pub attempts: Option<String>,
    /// Columns by what they are for, where their names don't tell.
    pub columns: Columns,
    /// A table that names the codes of the statuses.
    pub statuses: Option<String>,
    /// What words of the service's mean; `null` stands for NULL.
    pub meanings: BTreeMap<String, Meaning>,
    /// The configured routes, as channel/name, where they are known.
    pub routes: Option<Vec<String>>,
}

/// Why nothing can be proposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InitError {
    /// The database can't be asked.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Some columns have to be named.
    #[error("{0}")]
    Columns(Box<GaveUp>),
    /// What is there is not enough, or could mean several things. The text says what to name.
    #[error("{0}")]
    Unrecognised(String),
}

impl From<Unrecognised> for InitError {
    fn from(Unrecognised(text): Unrecognised) -> Self {
        Self::Unrecognised(text)
    }
}

/// Proposes the configuration of a ledger.
///
/// # Errors
/// When the database can't be asked, or a table or column is missing without which nothing can be read.
pub async fn propose(asked: &Asked) -> Result<Proposal, InitError> {
    let source = Source::open(&asked.database)?;
    let (usual, all) = catalog::tables(&source, asked.schema.as_deref()).await?;
    let looked_in = asked.schema.clone().unwrap_or_else(|| usual.clone());
    let schema = asked.schema.clone().filter(|schema| *schema != usual);
    let mut finder = Finder::new(&all, &asked.columns);
    let notifications = match &asked.notifications {
        Some(name) => named(&all, &looked_in, name, "--notifications")?,
        None => {
            let found = tables::notifications(&all, &looked_in)?;
            finder.note(Some(Sure::Guess), format!("the notifications are in {}, by its name", found.name));
            found
        }
    };
    let attempts = match &asked.attempts {
        Some(name) => Some(named(&all, &looked_in, name, "--attempts")?),
        None => tables::attempts(&all, notifications).inspect(|found| {
            finder.note(
                Some(Sure::Guess),
                format!("the attempts are in {}, by its name and reference", found.name),
            );
        }),
    };
    let is_said = asked.columns.contains_key(&Role::AttemptOf);
    let between =
        attempts.filter(|_| !is_said).and_then(|attempts| tables::between(&all, notifications, attempts));
    let (table, of) = (between.unwrap_or(notifications), between.map(|_| notifications));
    let units = finder.units(table, attempts.is_some(), of);
    let of_attempts = attempts.map(|attempts| finder.attempts(attempts, table));
    if attempts.is_none() {
        finder.has_no_attempts();
    }
    if let Some(gave_up) = finder.gives_up(notifications, attempts) {
        return Err(InitError::Columns(Box::new(gave_up)));
    }
    let (Some(mut units), Some(mut attempts)) =
        (units, of_attempts.map_or(Some(None), |found| found.map(Some)))
    else {
        return Err(InitError::Unrecognised(tables::BY_HAND.to_owned()));
    };
    if source.dialect() == Dialect::Mysql && units.archive.take().is_some() {
        finder.note(
            None,
            "the archive is not read after all: here a union would read all of both tables, each time",
        );
    }
    let look = Look { source: &source, schema: schema.as_deref(), looked_in: &looked_in };
    let route_words = look.route(&mut units, &mut finder).await?;
    let times = look.times(&mut units, &mut attempts, &mut finder).await?;
    let statuses = look.statuses(asked, &all, &units, attempts.as_ref(), &mut finder).await?;
    let routes = routes::of(&route_words, asked.routes.as_deref());
    let missing = indexes::missing(&units, attempts.as_ref(), schema.as_deref(), source.dialect());
    finder.note_optional();
    let remarks = finder.remarks;
    let draft = Draft { dialect: source.dialect(), schema, units, attempts, statuses };
    let variable =
        if matches!(asked.database, LedgerDatabase::Sqlite(_)) { "LEDGER_FILE" } else { "LEDGER_URL" };
    Ok(Proposal {
        name: asked.name.clone(),
        variable: variable.to_owned(),
        draft,
        times,
        routes,
        remarks,
        missing,
    })
}

fn named<'a>(tables: &'a [Table], schema: &str, name: &str, option: &str) -> Result<&'a Table, Unrecognised> {
    let same = |table: &&Table| table.name == name;
    let found = tables
        .iter()
        .find(same)
        .or_else(|| tables.iter().find(|table| table.name.eq_ignore_ascii_case(name)));
    found.ok_or_else(|| {
        let text = format!(
            "{option} names `{name}`, and there is no such table in the schema `{schema}` that this role can see. There are: {}. For \
             another schema write --schema",
            tables::list(tables.iter())
        );
        Unrecognised(text)
    })
}

/// A look at the rows of some columns.
struct Look<'a> {
    source: &'a Source,
    schema: Option<&'a str>,
    /// The schema whose tables were looked at, named or not.
    looked_in: &'a str,
}

impl Look<'_> {
    /// The words of the route's column. What has too many is no route.
    async fn route(
        &self,
        units: &mut Units,
        finder: &mut Finder<'_>,
    ) -> Result<Option<Vec<String>>, LedgerError> {
        let Some(place) = &units.route else { return Ok(None) };
        let words = sample::words(self.source, self.schema, table_of(units, place), &place.column).await?;
        match words {
            Some(words) => Ok(Some(words.into_iter().filter_map(|said| said.word).collect())),
            None => {
                let text = format!(
                    "route: {} has more than {} different values, and is left out",
                    place.column.name,
                    sample::MOST_WORDS
                );
                finder.note(None, text);
                units.route = None;
                Ok(None)
            }
        }
    }

    /// How the times are written.
    async fn times(
        &self,
        units: &mut Units,
        attempts: &mut Option<Attempts>,
        finder: &mut Finder<'_>,
    ) -> Result<yaml::Times, LedgerError> {
        let accepted = units.accepted_at.clone();
        let accepted_at = self.time(table_of(units, &accepted), &accepted.column, finder).await?;
        let mut times =
            yaml::Times { accepted_at, not_before: accepted_at, at: accepted_at, ended: accepted_at };
        if let Some(place) = units.not_before.clone() {
            // What is planned lies ahead: that says nothing of its zone.
            times.not_before = match self.time(table_of(units, &place), &place.column, finder).await? {
                Written::Naive(_) if matches!(accepted_at, Written::Naive(_)) => accepted_at,
                Written::Naive(_) => Written::Naive(false),
                written => written,
            };
        }
        if let Some(attempts) = attempts {
            times.at = self.time(&attempts.table, &attempts.at, finder).await?;
            if let Some(ended) = &attempts.ended {
                times.ended = self.time(&attempts.table, ended, finder).await?;
            }
        }
        Ok(times)
    }

    async fn time(
        &self,
        table: &Table,
        column: &ColumnFact,
        finder: &mut Finder<'_>,
    ) -> Result<Written, LedgerError> {
        let written = sample::written(self.source, self.schema, table, column).await?;
        let name = format!("{}.{}", table.name, column.name);
        let (sure, text) = match written {
            Written::ByType => return Ok(written),
            Written::Naive(false) => (Sure::Guess, format!("{name} has no zone, and is read as UTC")),
            Written::Naive(true) => (
                Sure::Guess,
                format!(
                    "{name} has no zone, and is ahead of UTC: it is some local time. Write the zone that it is in, for Europe/Berlin"
                ),
            ),
            Written::Seconds => (Sure::Recognised, format!("{name} has seconds since 1970, by its values")),
            Written::Millis => {
                (Sure::Recognised, format!("{name} has milliseconds since 1970, by its values"))
            }
            Written::Iso => (Sure::Recognised, format!("{name} has ISO 8601 with an offset, by its values")),
            Written::Unclear => {
                let is_number = matches!(column.kind, Kind::Integer(_) | Kind::Number);
                let form = if is_number { Written::Seconds } else { Written::Iso };
                let word = if is_number { "seconds since 1970" } else { "ISO 8601" };
                finder.note(
                    Some(Sure::Guess),
                    format!("{name} is read as {word}: the rows do not tell, or there are none"),
                );
                return Ok(form);
            }
        };
        finder.note(Some(sure), text);
        Ok(written)
    }
}

/// The table that a column of the units is in.
fn table_of<'a>(units: &'a Units, place: &Place) -> &'a Table {
    match &units.parent {
        Some((parent, _)) if place.is_parents => parent,
        _ => &units.table,
    }
}

/// The column that tells the state, of attempts or else of the units; nothing where it is told by NULLs.
fn state_of<'a>(units: &'a Units, attempts: Option<&'a Attempts>) -> Option<(&'a Table, &'a ColumnFact)> {
    match attempts {
        Some(attempts) => match &attempts.state {
            State::Column(column) => Some((&attempts.table, column)),
            State::Nulls { .. } => None,
        },
        None => units.status.as_ref().map(|column| (&units.table, column)),
    }
}
