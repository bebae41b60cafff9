//! The database that is looked at: read-only, within limits, and by texts alone.

use crate::{
    config::ledger::LedgerDatabase,
    ledger::{
        LedgerError,
        binds::{Bind, Limits},
        mysql::MysqlReader,
        position::Value,
        postgres::PostgresReader,
        sql::Dialect,
        sqlite::SqliteReader,
    },
};
use sqlx::Row;
use std::time::Duration;

/// Limit on one statement.
const LIMIT: Duration = Duration::from_secs(5);

/// A database.
pub enum Source {
    /// PostgreSQL.
    Postgres(PostgresReader),
    /// MySQL or MariaDB.
    Mysql(MysqlReader),
    /// SQLite.
    Sqlite(SqliteReader),
}

/// A row of texts.
pub type Texts = Vec<Option<String>>;

impl Source {
    /// The database of a configuration. Nothing is connected to.
    ///
    /// # Errors
    /// When its URL can't be used.
    pub fn open(database: &LedgerDatabase) -> Result<Self, LedgerError> {
        let limits = Limits::of(LIMIT);
        Ok(match database {
            LedgerDatabase::Postgres(postgres) => Self::Postgres(PostgresReader::new(postgres, limits)?),
            LedgerDatabase::Mysql(mysql) => Self::Mysql(MysqlReader::new(mysql, limits)?),
            LedgerDatabase::Sqlite(sqlite) => Self::Sqlite(SqliteReader::new(sqlite, limits)),
        })
    }

    /// Its dialect.
    pub const fn dialect(&self) -> Dialect {
        match self {
            Self::Postgres(_) => Dialect::Postgres,
            Self::Mysql(_) => Dialect::Mysql,
            Self::Sqlite(_) => Dialect::Sqlite,
        }
    }

    /// The rows of a query whose columns are all texts.
    ///
    /// # Errors
    /// When it can't be read.
    pub async fn texts(&self, sql: &str, values: &[&str]) -> Result<Vec<Texts>, LedgerError> {
        let values = values.iter().map(|text| Bind::Value(Value::Text((*text).into()))).collect();
        let (name, sql) = ("init", sql.to_owned());
        Ok(match self {
            Self::Postgres(postgres) => {
                let rows = postgres.fetch(name, sql, values).await?;
                rows.iter()
                    .map(|row| (0..row.len()).map(|at| row.try_get(at).ok().flatten()).collect())
                    .collect()
            }
            Self::Mysql(mysql) => {
                let rows = mysql.fetch(name, sql, &[], values).await?;
                let text = |row: &sqlx::mysql::MySqlRow, at| row.try_get_unchecked(at).ok().flatten();
                rows.iter().map(|row| (0..row.len()).map(|at| text(row, at)).collect()).collect()
            }
            Self::Sqlite(sqlite) => {
                let rows = sqlite.fetch(name, sql, values).await?;
                rows.iter()
                    .map(|row| (0..row.len()).map(|at| row.try_get(at).ok().flatten()).collect())
                    .collect()
            }
        })
    }
}

/// A name as it stands in SQL: in quotes where it needs them.
pub fn quoted(name: &str, dialect: Dialect) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !RESERVED.contains(&name);
    match dialect {
        _ if is_plain => name.to_owned(),
        Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
        Dialect::Postgres | Dialect::Sqlite => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Words that columns of such tables are called by, and that mean something else in some database.
const RESERVED: [&str; 40] = [
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "both",
    "call",
    "case",
    "check",
    "column",
    "condition",
    "desc",
    "do",
    "else",
    "end",
    "exit",
    "false",
    "for",
    "from",
    "group",
    "in",
    "index",
    "interval",
    "is",
    "key",
    "limit",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "references",
    "select",
    "table",
    "to",
    "user",
    "when",
    "where",
];
