//! MySQL's and MariaDB's part of a check.

use super::{Rights, Scan};
use crate::{
    clock,
    ledger::{
        LedgerError,
        binds::{Binds, Prepared, locate},
        cell::Cell,
        mysql::{MysqlReader, sample},
        sql::Parameter,
    },
};
use sqlx::{Column, Row, mysql::MySqlRow};
use std::collections::BTreeMap;

/// From how many rows on, by the database's own estimate, reading all of a table hurts.
const LARGE: u64 = 10_000;

/// A limit that ends no scan of a table that is not large.
const FURTHER: usize = 100_000;

/// How many things that could be written are told.
const MOST_TOLD: usize = 4;

/// Privileges by which nothing is written.
const HARMLESS: [&str; 15] = [
    "USAGE",
    "SELECT",
    "SHOW VIEW",
    "SHOW DATABASES",
    "SHOW_ROUTINE",
    "PROCESS",
    "REFERENCES",
    "EXECUTE",
    "REPLICATION CLIENT",
    "BINLOG MONITOR",
    "SLAVE MONITOR",
    "REPLICA MONITOR",
    "MONITOR",
    "SHOW CREATE ROUTINE",
    "REPLICATION SLAVE",
];

/// A text of a row, whatever its type there.
fn text(row: &MySqlRow, name: &str) -> Option<String> {
    row.try_get_unchecked::<Option<String>, _>(name).ok().flatten()
}

/// The version, for people.
pub async fn version(mysql: &MysqlReader) -> Result<String, LedgerError> {
    let rows = mysql.fetch("version", "select version() as version".into(), &[], Vec::new()).await?;
    let version = rows.first().and_then(|row| text(row, "version")).unwrap_or_default();
    Ok(if version.contains("MariaDB") { format!("MariaDB {version}") } else { format!("MySQL {version}") })
}

/// What the role could write, by its grants.
pub async fn rights(mysql: &MysqlReader) -> Result<Rights, LedgerError> {
    let role = mysql.fetch("rights", "select current_user() as role".into(), &[], Vec::new()).await?;
    let role = role.first().and_then(|row| text(row, "role")).unwrap_or_default();
    let rows = mysql.fetch("rights", "show grants".into(), &[], Vec::new()).await?;
    let grants = rows.iter().filter_map(|row| row.try_get_unchecked::<String, _>(0).ok());
    let mut writable: Vec<String> = grants.filter_map(|grant| writing(&grant)).collect();
    writable.truncate(MOST_TOLD);
    Ok(Rights { role, writable })
}

/// What a grant lets one write, for people; nothing where it only lets one read.
fn writing(grant: &str) -> Option<String> {
    let granted = grant.strip_prefix("GRANT ")?;
    // A role that is granted has a line of its own for what it may do. A proxy user is somebody else.
    let (privileges, on) = granted.split_once(" ON ")?;
    let object = on.rsplit_once(" TO ").map_or(on, |(object, _)| object).replace('`', "");
    let words: Vec<&str> =
        split(privileges).into_iter().filter(|word| !HARMLESS.contains(&name(word))).collect();
    let object = if object == "*.*" { "everything".to_owned() } else { object };
    (!words.is_empty()).then(|| {
        let more = if words.len() > 3 { " and more" } else { "" };
        format!("{object} ({}{more})", words[..words.len().min(3)].join(", "))
    })
}

/// A privilege without its columns.
fn name(privilege: &str) -> &str {
    privilege.split_once(" (").map_or(privilege, |(name, _)| name)
}

/// The privileges of a grant. Columns stand in brackets, with commas of their own.
fn split(privileges: &str) -> Vec<&str> {
    let (mut depth, mut begun, mut found) = (0u32, 0, Vec::new());
    for (at, c) in privileges.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(privileges[begun..at].trim());
                begun = at + 1;
            }
            _ => {}
        }
    }
    found.push(privileges[begun..].trim());
    found
}

/// The wanted columns of one row: a value of each column's type. The query is prepared, and not run.
pub async fn row_of_types(
    mysql: &MysqlReader,
    prepared: &Prepared,
) -> Result<Option<Vec<Cell>>, LedgerError> {
    let columns = mysql.columns(prepared).await?;
    let present: Vec<&str> = columns.iter().map(Column::name).collect();
    let places = locate(prepared, &present)?;
    Ok(Some(places.into_iter().map(|place| sample(columns[place].type_info())).collect()))
}

/// The tables that the plan reads from end to end.
pub async fn scans(
    mysql: &MysqlReader,
    prepared: &Prepared,
    binds: &Binds,
) -> Result<Vec<Scan>, LedgerError> {
    let whole = whole_tables(mysql, prepared, binds).await?;
    // Where the limit ends a scan, the estimate is the limit. With a large one it is the table.
    let further = if whole.values().any(|rows| *rows < LARGE) && prepared.query.binds(Parameter::Limit) {
        let further = Prepared { max_rows: FURTHER, ..prepared.clone() };
        whole_tables(mysql, &further, binds).await?
    } else {
        BTreeMap::new()
    };
    let scan = |(table, rows): (String, u64)| {
        let is_large = rows >= LARGE || further.get(&table).is_some_and(|rows| *rows >= LARGE);
        let table = if rows >= LARGE { format!("{table} (about {rows} rows)") } else { table };
        Scan { table, is_large, is_partitioned: false }
    };
    Ok(whole.into_iter().map(scan).collect())
}

/// The tables of which a plan reads all rows or a whole index, with how many it expects, by the names that they have in the query.
async fn whole_tables(
    mysql: &MysqlReader,
    prepared: &Prepared,
    binds: &Binds,
) -> Result<BTreeMap<String, u64>, LedgerError> {
    const EXPLAIN: &str = "explain ";
    let sql = format!("{EXPLAIN}{}", prepared.query.sql);
    let lists: Vec<usize> = prepared.query.lists.iter().map(|place| place + EXPLAIN.len()).collect();
    let values = binds.in_order(prepared, clock::now());
    let steps = mysql.fetch(prepared.name, sql, &lists, values).await?;
    let whole = |step: &MySqlRow| {
        // `<derived2>` and the like are results, not tables.
        let table = text(step, "table").filter(|table| !table.starts_with('<'))?;
        let is_whole = matches!(text(step, "type")?.as_str(), "ALL" | "index");
        let is_function = text(step, "Extra").is_some_and(|extra| extra.contains("Table function"));
        let rows = step.try_get_unchecked::<Option<i64>, _>("rows").ok().flatten().unwrap_or(0);
        (is_whole && !is_function).then_some((table, u64::try_from(rows).unwrap_or(0)))
    };
    Ok(steps.iter().filter_map(whole).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_that_write_are_told_from_others() {
        for (grant, expected) in [
            ("GRANT USAGE ON *.* TO `reader`@`%` IDENTIFIED BY PASSWORD '*0'", None),
            ("GRANT SELECT, SHOW VIEW ON `app`.* TO `reader`@`%`", None),
            ("GRANT SELECT (id, status) ON `app`.`n` TO `reader`@`%`", None),
            ("GRANT `readers` TO `reader`@`%`", None),
            (
                "GRANT SELECT, UPDATE (status, id) ON `app`.`n` TO `r`@`%`",
                Some("app.n (UPDATE (status, id))"),
            ),
            (
                "GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION",
                Some("everything (ALL PRIVILEGES)"),
            ),
            (
                "GRANT INSERT, UPDATE, DELETE, DROP ON `app`.* TO `r`@`%`",
                Some("app.* (INSERT, UPDATE, DELETE and more)"),
            ),
        ] {
            assert_eq!(writing(grant).as_deref(), expected, "{grant}");
        }
    }
}
