//! Databases that are made in the test, and configurations that read them.

use super::{mariadb::Mariadb, postgres::Postgres};
use chrono::{DateTime, Utc};
use delivery_canary::{
    config::ledger::Ledger,
    domain::route::{IdempotencyKey, NotificationId},
    ledger::{self, LedgerAdapter, LedgerError},
};
use serde_json::{Value, json};
use sqlx::{
    AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions,
};
use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take on a busy machine before a test says that it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A database of the test's own.
pub enum Bed {
    Postgres { server: Box<Postgres>, url: String },
    Mariadb { server: Box<Mariadb>, url: String },
    Sqlite { folder: TempDir },
}

impl Bed {
    pub async fn postgres() -> Self {
        let server = Postgres::start();
        let url = server.fresh_database().await;
        Self::Postgres { server: Box::new(server), url }
    }

    pub async fn mariadb() -> Self {
        let server = Mariadb::start();
        let url = server.fresh_database().await;
        Self::Mariadb { server: Box::new(server), url }
    }

    pub fn sqlite() -> Self {
        Self::Sqlite { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self) -> PathBuf {
        match self {
            Self::Sqlite { folder } => folder.path().join("ledger.db"),
            Self::Postgres { .. } | Self::Mariadb { .. } => panic!("a server has no file"),
        }
    }

    pub fn url(&self) -> &str {
        match self {
            Self::Postgres { url, .. } | Self::Mariadb { url, .. } => url,
            Self::Sqlite { .. } => panic!("a file has no URL"),
        }
    }

    pub fn server(&mut self) -> &mut Postgres {
        match self {
            Self::Postgres { server, .. } => server,
            Self::Mariadb { .. } | Self::Sqlite { .. } => panic!("this is no PostgreSQL"),
        }
    }

    /// The `database` of a configuration.
    pub fn database(&self) -> Value {
        match self {
            Self::Postgres { url, .. } => json!({ "postgres": { "url": url } }),
            Self::Mariadb { url, .. } => json!({ "mysql": { "url": url } }),
            Self::Sqlite { .. } => json!({ "sqlite": { "path": self.path() } }),
        }
    }

    /// The type of an instant.
    pub fn time_type(&self) -> &'static str {
        match self {
            Self::Postgres { .. } => "timestamptz",
            Self::Mariadb { .. } => "timestamp(6) null",
            Self::Sqlite { .. } => "text",
        }
    }

    /// The type of a text that can be a key.
    pub fn text_type(&self) -> &'static str {
        if matches!(self, Self::Mariadb { .. }) { "varchar(64)" } else { "text" }
    }

    /// An instant as it is written in statements.
    pub fn time(&self, at: DateTime<Utc>) -> String {
        match self {
            Self::Mariadb { .. } => at.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
            Self::Postgres { .. } | Self::Sqlite { .. } => at.to_rfc3339(),
        }
    }

    /// How this database takes a list of ids.
    pub fn any_of(&self, column: &str, cast: &str) -> String {
        match self {
            Self::Postgres { .. } => format!("{column} = any(:ids{cast})"),
            Self::Mariadb { .. } => format!("{column} in (:ids)"),
            Self::Sqlite { .. } => format!("{column} in (select value from json_each(:ids))"),
        }
    }

    /// How this database finds the rows behind a place by an index.
    pub fn behind(&self, at: &str, id: &str) -> String {
        match self {
            Self::Mariadb { .. } => format!("{at} >= :after_ts and ({at} > :after_ts or {id} > :after_id)"),
            Self::Postgres { .. } | Self::Sqlite { .. } => format!("({at}, {id}) > (:after_ts, :after_id)"),
        }
    }

    /// Runs statements as the ledger's owner.
    pub async fn execute(&self, sql: &str) {
        let sql = sql.to_owned();
        match self {
            Self::Postgres { url, .. } => {
                let mut connection =
                    PgConnection::connect(url).await.expect("the test server takes connections");
                let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut connection).await;
                done.unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
            Self::Mariadb { url, .. } => {
                let mut connection =
                    MySqlConnection::connect(url).await.expect("the test server takes connections");
                let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut connection).await;
                done.unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
            Self::Sqlite { .. } => {
                let mut connection = sqlite(&self.path()).await;
                let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut connection).await;
                done.unwrap_or_else(|error| panic!("{sql}: {error}"));
                connection.close().await.expect("it closes");
            }
        }
    }
}

/// A writing connection to a file.
pub async fn sqlite(path: &std::path::Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    SqliteConnection::connect_with(&options).await.expect("the file opens")
}

/// The adapter of a configuration: `fields` on top of what each has.
pub fn open(database: Value, fields: Value) -> Result<Arc<LedgerAdapter>, LedgerError> {
    let mut config = json!({
        "database": database,
        "statuses": { "delivered": "delivered", "failed": "retryable", "bounced": "rejected_recipient", "held": "suppressed" },
        "statement_timeout": "5s",
    });
    let object = config.as_object_mut().expect("an object");
    object.extend(fields.as_object().expect("an object").clone());
    let config: Ledger = serde_json::from_value(config).expect("the test's configuration is one");
    ledger::open("test", &config)
}

/// A lookup of a table `n` by its `id`, with the notification's status.
pub fn simple_lookup(condition: &str) -> Value {
    json!({
        "sql": format!("select id, status from n where {condition} limit :limit"),
        "columns": { "notification_id": "id", "status": "status" },
    })
}

pub fn ids(ids: &[&str]) -> Vec<NotificationId> {
    ids.iter().map(|&id| NotificationId::from_text(id)).collect()
}

pub fn keys(keys: &[&str]) -> Vec<IdempotencyKey> {
    keys.iter().map(|&key| IdempotencyKey::from_text(key)).collect()
}

/// Waits for a future that must come to an end.
pub async fn ends<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not end within {PATIENCE:?}"))
}

/// Tries until it holds; the error says the last state seen.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(state) if began.elapsed() > PATIENCE => {
                panic!("{what} did not come within {PATIENCE:?}; last: {state}")
            }
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}
