//! Databases that are made in the test, and configurations that read them.

use crate::postgres::Postgres;
use delivery_canary::{
    config::ledger::Ledger,
    domain::route::{IdempotencyKey, NotificationId},
    ledger::{self, LedgerAdapter, LedgerError},
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take on a busy machine before a test says that it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A database of the test's own.
pub enum Bed {
    Postgres { server: Box<Postgres>, url: String },
    Sqlite { folder: TempDir },
}

impl Bed {
    pub async fn postgres() -> Self {
        let server = Postgres::start();
        let url = server.fresh_database().await;
        Self::Postgres { server: Box::new(server), url }
    }

    pub fn sqlite() -> Self {
        Self::Sqlite { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self) -> PathBuf {
        match self {
            Self::Sqlite { folder } => folder.path().join("ledger.db"),
            Self::Postgres { .. } => panic!("a server has no file"),
        }
    }

    pub fn url(&self) -> &str {
        match self {
            Self::Postgres { url, .. } => url,
            Self::Sqlite { .. } => panic!("a file has no URL"),
        }
    }

    pub fn server(&mut self) -> &mut Postgres {
        match self {
            Self::Postgres { server, .. } => server,
            Self::Sqlite { .. } => panic!("a file has no server"),
        }
    }

    /// The `database` of a configuration.
    pub fn database(&self) -> Value {
        match self {
            Self::Postgres { url, .. } => json!({ "postgres": { "url": url } }),
            Self::Sqlite { .. } => json!({ "sqlite": { "path": self.path() } }),
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
