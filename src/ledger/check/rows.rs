//! Some rows of a ledger, read with the code that the monitor reads them with. They are found by an index, or are whichever come first:
//! no table is read for them.

use super::{Finding, Level};
use crate::{
    domain::route::NotificationId,
    ledger::{
        LedgerAdapter, LedgerError,
        adapter::Database,
        binds::{Binds, Prepared, Table},
        cell::identifier,
        notes::{Notes, shown},
        sql::{self, Dialect, Parameter, names::Names, names::TableName},
        wanted::Wanted,
    },
};

/// How many notifications are looked up.
pub(in crate::ledger) const FEW: usize = 20;

/// From how many tables at most some ids are taken, where a query doesn't say which of its tables has them.
const MOST_TABLES: usize = 4;

/// The name of what is found in the rows of a query.
pub(in crate::ledger) fn name(prepared: &Prepared) -> String {
    format!("{} rows", prepared.name)
}

/// Rows that can't be read.
pub(in crate::ledger) fn unfit(prepared: &Prepared, error: &LedgerError) -> Finding {
    Finding::new(name(prepared), Level::Failed, error.to_string(), "")
}

impl LedgerAdapter {
    /// Looks some notifications up, and reads what comes as it will be read.
    pub(super) async fn check_lookup_rows(&self) -> Finding {
        let prepared = &self.lookup.0;
        let name = name(prepared);
        let (mut binds, mut where_from) = (Binds::default(), "the notifications query gives");
        if let Some(queries) = self.flow.as_ref().filter(|_| prepared.query.binds(Parameter::Ids)) {
            binds.ids = self.some_ids(queries).await;
        }
        if binds.ids.is_empty() {
            where_from = "its table has";
            binds = self.some_of_the_table().await;
        }
        let asked = binds.ids.len().max(binds.keys.len());
        if asked == 0 {
            return self.unseen(prepared, "no row was found to look up");
        }
        let table = match self.read(prepared, &Binds { overlap: self.overlap, ..binds.clone() }).await {
            Ok(table) => table,
            Err(error @ LedgerError::Shape { .. }) => return unfit(prepared, &error),
            Err(error) => {
                return Finding::new(name, Level::Failed, error.to_string(), super::failure_hint(&error));
            }
        };
        let of_ids = format!("{asked} notifications that {where_from}");
        if table.rows.is_empty() {
            if self.flow.is_none() {
                return self.unseen(prepared, &format!("it gives no row for {of_ids}"));
            }
            let hint = "search by the id that `notifications` gives, without a condition that it does not have: what is asked again \
                        by its id would look gone";
            return Finding::new(name, Level::Warn, format!("it gives no row for {of_ids}"), hint);
        }
        match self.decode_lookup(&table, &binds.ids) {
            Ok(notes) => told(name, &format!("{} rows of {of_ids}", table.rows.len()), &notes),
            Err(error) => unfit(prepared, &error),
        }
    }

    /// Reads the rows as for canaries, and as the follower and its audit do.
    fn decode_lookup(&self, table: &Table, asked: &[String]) -> Result<Notes, LedgerError> {
        let (prepared, layout) = &self.lookup;
        let asked: Vec<NotificationId> =
            asked.iter().map(|id| NotificationId::from_text(id.clone())).collect();
        let mut notes = Notes::default();
        let joined = layout.join(&table.rows, &self.words, &asked, table.head.began_at, &mut notes);
        joined.map_err(|misfit| LedgerError::misfit(prepared.name, misfit))?;
        if let Some(queries) = &self.flow {
            let refused = self.decode_as_followed(queries, table)?;
            notes.refused_times = notes.refused_times.max(refused);
        }
        Ok(notes)
    }

    /// Some ids, or else keys, of the table that the lookup searches; none where its text doesn't tell which that is, or nothing is in it.
    async fn some_of_the_table(&self) -> Binds {
        let query = &self.lookup.0.query;
        let names = Names::of(query);
        for list in [Parameter::Ids, Parameter::Keys] {
            for compared in names.compared(query, list) {
                for table in compared.tables.iter().take(MOST_TABLES) {
                    let values = self.some_values(table, &compared.column).await.unwrap_or_default();
                    if !values.is_empty() {
                        return match list {
                            Parameter::Ids => Binds { ids: values, ..Binds::default() },
                            _ => Binds { keys: values, ..Binds::default() },
                        };
                    }
                }
            }
        }
        Binds::default()
    }

    /// The first values of a column, in whatever order they come.
    async fn some_values(&self, table: &TableName, column: &str) -> Option<Vec<String>> {
        let dialect = self.lookup.0.query.dialect;
        let quoted = |name: &str| match dialect {
            Dialect::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
            // Between double quotes SQLite takes a name that isn't there for a string.
            Dialect::Sqlite | Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
        };
        let schema = table.schema.as_ref().map_or_else(String::new, |schema| quoted(schema) + ".");
        let (table, column) = (quoted(&table.name), quoted(column));
        let text =
            format!("select {column} as v from {schema}{table} where {column} is not null limit {FEW}");
        let mut wanted = Wanted::default();
        let value = wanted.plain("v");
        let query = sql::parse(&text, dialect, &[]).ok()?;
        let prepared = Prepared { name: "lookup", query, wanted, max_rows: FEW };
        let table = self.read(&prepared, &Binds::default()).await.ok()?;
        Some(table.rows.iter().filter_map(|row| identifier(&row[value.0], "v").ok().flatten()).collect())
    }

    /// Whether values alone tell types here.
    const fn has_untyped_columns(&self) -> bool {
        matches!(self.database, Database::Sqlite(_))
    }

    /// What could not be seen, for want of rows.
    fn unseen(&self, prepared: &Prepared, why: &str) -> Finding {
        let name = name(prepared);
        if !self.has_untyped_columns() {
            return Finding::ok(name, format!("{why}; the types of its columns fit"));
        }
        let detail = format!(
            "{why}, and SQLite's columns have no types: nobody has seen whether {} can be read as configured",
            prepared.wanted.names().join(", ")
        );
        Finding::new(name, Level::Warn, detail, "run this again when there are rows")
    }

    /// The same for a query that gave no rows; nothing where it gave some, or types tell.
    pub(in crate::ledger) fn nothing_seen(
        &self,
        prepared: &Prepared,
        rows: Option<usize>,
    ) -> Option<Finding> {
        (rows == Some(0) && self.has_untyped_columns()).then(|| self.unseen(prepared, "it gives no row"))
    }
}

/// What is odd about rows that can be read.
fn told(name: String, seen: &str, notes: &Notes) -> Finding {
    let (mut odd, mut hints) = (Vec::new(), Vec::new());
    if notes.unmapped_statuses > 0 {
        let words: Vec<String> = notes.words.iter().map(|word| format!("`{}`", shown(word))).collect();
        odd.push(format!("{} statuses are not in the table: {}", notes.unmapped_statuses, words.join(", ")));
        hints.push("add them to `statuses` (NULL as \"null\"); until then they are `unknown`");
    }
    if notes.refused_times > 0 {
        odd.push(format!("{} ids or times are NULL or absurd", notes.refused_times));
        hints.push("is the right column named, and its form declared?");
    }
    if odd.is_empty() {
        return Finding::ok(name, format!("{seen}: ids, statuses and times can be read"));
    }
    Finding::new(name, Level::Warn, format!("{seen}: {}", odd.join("; ")), &hints.join("; "))
}
