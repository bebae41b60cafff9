//! SQLite's part of a check.

use super::Scan;
use crate::{
    clock,
    ledger::{
        LedgerError,
        binds::{Binds, Prepared, locate},
        cell::Cell,
        sqlite::SqliteReader,
    },
};
use sqlx::{Column, Row};

/// From which size of the file on reading all of a table hurts, in bytes.
const LARGE: i64 = 8 << 20;

/// The version, for people.
pub async fn version(sqlite: &SqliteReader) -> Result<String, LedgerError> {
    // Reading the schema shows whether the file is a database at all.
    let sql = "select sqlite_version() as version, count(*) from sqlite_schema";
    let rows = sqlite.fetch("version", sql.into(), Vec::new()).await?;
    let version = rows.first().and_then(|row| row.try_get::<String, _>("version").ok()).unwrap_or_default();
    Ok(format!("SQLite {version}"))
}

/// Whether the wanted columns are there. Values have types here and columns have none, so there is no row of types.
pub async fn row_of_types(
    sqlite: &SqliteReader,
    prepared: &Prepared,
    binds: &Binds,
) -> Result<Option<Vec<Cell>>, LedgerError> {
    let sql = format!(
        "select w.* from (select 1) as one left join ({}\n) as w on true limit 1",
        prepared.query.sql
    );
    let rows = sqlite.fetch(prepared.name, sql, binds.in_order(prepared, clock::now())).await?;
    if let Some(row) = rows.first() {
        let present: Vec<&str> = row.columns().iter().map(Column::name).collect();
        locate(prepared, &present)?;
    }
    Ok(None)
}

/// The tables that the plan reads from end to end.
pub async fn scans(
    sqlite: &SqliteReader,
    prepared: &Prepared,
    binds: &Binds,
) -> Result<Vec<Scan>, LedgerError> {
    let size = "select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()";
    let size = sqlite.fetch("plan", size.into(), Vec::new()).await?;
    let is_large =
        size.first().and_then(|row| row.try_get::<i64, _>("bytes").ok()).is_some_and(|bytes| bytes >= LARGE);
    let sql = format!("explain query plan {}", prepared.query.sql);
    let rows = sqlite.fetch(prepared.name, sql, binds.in_order(prepared, clock::now())).await?;
    let details = rows.iter().filter_map(|row| row.try_get::<String, _>("detail").ok());
    Ok(details
        .filter_map(|detail| {
            Some(Scan { table: scanned(&detail)?.to_owned(), is_large, is_partitioned: false })
        })
        .collect())
}

/// The table of a step of the plan, where the step reads all of it.
fn scanned(detail: &str) -> Option<&str> {
    let table = detail.strip_prefix("SCAN ")?;
    let is_table = !["VIRTUAL TABLE", "CONSTANT ROW"].iter().any(|other| table.contains(other))
        && !table.starts_with('(');
    is_table.then(|| table.split(' ').next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_read_a_whole_table_are_told_from_others() {
        assert_eq!(scanned("SCAN n"), Some("n"));
        assert_eq!(scanned("SCAN n USING COVERING INDEX i"), Some("n"));
        for other in [
            "SCAN json_each VIRTUAL TABLE INDEX 1:",
            "SCAN CONSTANT ROW",
            "SEARCH n USING INDEX i (id=?)",
            "SCAN (subquery-1)",
        ] {
            assert_eq!(scanned(other), None, "{other}");
        }
    }
}
