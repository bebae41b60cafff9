//! The service's words for states, from its types, its rows and its own table of them, each with what it probably means.

use super::{
    Asked, InitError, Look,
    facts::{ColumnFact, Kind, Table},
    meaning, named,
    queries::{AGAIN, StatusWord},
    roles::{Attempts, Finder, State, Units},
    sample,
    source::quoted,
    state_of,
    tables::Unrecognised,
};
use crate::{
    config::ledger::Meaning,
    ledger::{LedgerError, notes::shown, sql::Dialect},
};
use std::collections::BTreeMap;

/// How many rows of a table of statuses are read.
const MOST_CODES: usize = 100;

/// Columns that say whether it succeeded, also where there is no type for it.
const TRUTHS: [&str; 3] = ["succeeded", "success", "is_success"];

impl Look<'_> {
    /// The words of the ledger, and what they mean.
    ///
    /// # Errors
    /// When they can't be read, or what was named is no table of codes.
    pub(super) async fn statuses(
        &self,
        asked: &Asked,
        tables: &[Table],
        units: &Units,
        attempts: Option<&Attempts>,
        finder: &mut Finder<'_>,
    ) -> Result<Vec<StatusWord>, InitError> {
        let names = match &asked.statuses {
            Some(name) => self.names(named(tables, self.looked_in, name, "--status")?).await?,
            None => BTreeMap::new(),
        };
        let has_next = attempts.is_some_and(|attempts| attempts.next.is_some());
        let mut statuses = match state_of(units, attempts) {
            Some((table, column)) => self.of_column(table, column, &names, has_next, finder).await?,
            None => of_nulls(attempts),
        };
        if has_next {
            let why = "made by the queries, where a next attempt is planned".to_owned();
            statuses.push(StatusWord {
                word: Some(AGAIN.to_owned()),
                meaning: Meaning::Retryable,
                why: Some(why),
            });
        }
        for (word, meaning) in &asked.meanings {
            let word = (word != "null").then(|| word.clone());
            let why = Some("as was said by --means".to_owned());
            match statuses.iter_mut().find(|status| status.word == word) {
                Some(status) => (status.meaning, status.why) = (*meaning, why),
                None => statuses.push(StatusWord { word, meaning: *meaning, why }),
            }
        }
        if !statuses.iter().any(|status| status.word.is_some()) {
            let why = "there are no rows to see words in; replace it by yours".to_owned();
            statuses.push(StatusWord {
                word: Some("delivered".to_owned()),
                meaning: Meaning::Delivered,
                why: Some(why),
            });
        }
        if statuses.iter().any(|status| status.why.is_none()) {
            finder.note(
                None,
                "the meaning of some statuses: the queries count by it, so say it by --means WORD=MEANING, or by --status with a table of \
                 codes and names, and run this again",
            );
        }
        Ok(statuses)
    }

    async fn of_column(
        &self,
        table: &Table,
        column: &ColumnFact,
        names: &BTreeMap<String, String>,
        has_next: bool,
        finder: &mut Finder<'_>,
    ) -> Result<Vec<StatusWord>, InitError> {
        let Some(said) = sample::words(self.source, self.schema, table, column).await? else {
            return Err(Unrecognised(format!(
                "{}.{} has more than {} different values, and can't be a status",
                table.name,
                column.name,
                sample::MOST_WORDS
            ))
            .into());
        };
        let mut words: Vec<(String, String)> =
            column.labels.iter().map(|label| (label.clone(), "by its name, a label".to_owned())).collect();
        for said in said {
            let Some(word) = said.word else { continue };
            if shown(&word) != word {
                finder.note(
                    None,
                    format!("a status in {}.{} is left out: {}", table.name, column.name, shown(&word)),
                );
            } else if let Some(known) = words.iter_mut().find(|(known, _)| *known == word) {
                known.1 = format!("by its name, {} of {} rows", said.rows, sample::ROWS);
            } else {
                words.push((word, format!("by its name, {} of the last {} rows", said.rows, sample::ROWS)));
            }
        }
        words.extend(
            names
                .keys()
                .filter(|code| !words.iter().any(|(word, _)| word == *code))
                .map(|code| (code.clone(), String::new()))
                .collect::<Vec<_>>(),
        );
        let mut statuses: Vec<StatusWord> = words
            .into_iter()
            .map(|(word, why)| {
                if column.kind == Kind::Boolean
                    || TRUTHS.iter().any(|name| column.name.eq_ignore_ascii_case(name))
                {
                    return of_truth(word, has_next);
                }
                let name = names.get(&word);
                let meaning = meaning::of_word(name.unwrap_or(&word));
                let why = name.map_or(why, |name| format!("it is called {}", shown(name)));
                let why = meaning.is_some().then_some(why);
                StatusWord { word: Some(word), meaning: meaning.unwrap_or(Meaning::Unknown), why }
            })
            .collect();
        if column.is_nullable {
            let why = Some("without a status nothing was tried, or it is under way".to_owned());
            statuses.push(StatusWord { word: None, meaning: Meaning::Pending, why });
        }
        Ok(statuses)
    }

    /// The names of the codes, by the service's own table.
    async fn names(&self, table: &Table) -> Result<BTreeMap<String, String>, InitError> {
        let is_name = |column: &&ColumnFact| column.kind == Kind::Text && table.key() != Some(*column);
        let (Some(code), Some(name)) = (table.key(), table.columns.iter().find(is_name)) else {
            let text = format!(
                "--status names `{}`, and a table of codes has a primary key of one column and a name as text",
                table.name
            );
            return Err(Unrecognised(text).into());
        };
        let dialect = self.source.dialect();
        let kind = if dialect == Dialect::Mysql { "char" } else { "text" };
        let sql = format!(
            "select cast({} as {kind}), cast({} as {kind}) from {} limit {MOST_CODES}",
            quoted(&code.name, dialect),
            quoted(&name.name, dialect),
            sample::table_name(self.schema, &table.name, dialect)
        );
        let rows: Result<_, LedgerError> = self.source.texts(&sql, &[]).await;
        let pair = |row: Vec<Option<String>>| match row.as_slice() {
            [Some(code), Some(name)] => Some((code.clone(), name.clone())),
            _ => None,
        };
        Ok(rows?.into_iter().filter_map(pair).collect())
    }
}

/// A boolean: whether it succeeded.
fn of_truth(word: String, has_next: bool) -> StatusWord {
    let (meaning, why) = match (matches!(word.as_str(), "true" | "1"), has_next) {
        (true, _) => (Meaning::Delivered, "it succeeded"),
        (false, true) => (Meaning::RejectedService, "it failed, and nothing more is planned"),
        (false, false) => {
            (Meaning::Retryable, "it failed; nothing says whether it is tried again, so it counts as pending")
        }
    };
    StatusWord { word: Some(word), meaning, why: Some(why.to_owned()) }
}

/// The words that the queries make where the state is told by what is NULL.
fn of_nulls(attempts: Option<&Attempts>) -> Vec<StatusWord> {
    let Some(Attempts { state: State::Nulls { failed, dead, .. }, .. }) = attempts else { return Vec::new() };
    let word = |word: &str, meaning, is_there: bool| {
        let why = Some("made by the queries, of what is NULL".to_owned());
        is_there.then(|| StatusWord { word: Some(word.to_owned()), meaning, why })
    };
    let words = [
        word("sent", Meaning::Delivered, true),
        word("failed", Meaning::RejectedService, failed.is_some()),
        word("dead_address", Meaning::RejectedRecipient, failed.is_some() && dead.is_some()),
    ];
    words.into_iter().flatten().collect()
}
