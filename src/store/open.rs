//! Opening a store.

use super::{
    Store, StoreError,
    database::{Access, CALL_LIMIT, Database, Dialect},
    fault::Fault,
    file::OpenedFile,
    sql::SqlStore,
};
use crate::config::model::{PostgresStore, SqliteStore, StoreConfig};
use sqlx::{
    ConnectOptions, Connection, Executor,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use std::{fs::OpenOptions, path::Path, str::FromStr, sync::Arc, time::Duration};

/// Longest wait for a connection: below the limit of a call, so that the error says what was waited for.
const ACQUIRE_LIMIT: Duration = Duration::from_millis(2_500);

/// How long to wait before a file that another process is opening or closing is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Connections that read an SQLite store beside the one that writes.
const SQLITE_READERS: u32 = 3;

/// `FULL` waits for the disk at each commit: the intent must be there after a loss of power too. The wait for another process's lock
/// ends before the call does.
const SQLITE_SETTINGS: &str = "PRAGMA busy_timeout = 3000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                               PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216";

/// Opens the store. A file must open now; a server may be down, and is used as soon as it is there.
///
/// # Errors
/// [`StoreError::Refused`] where the file or the address can't be used, [`StoreError::Schema`] where a newer release wrote the file.
pub async fn open(config: &StoreConfig) -> Result<Arc<dyn Store>, StoreError> {
    sqlx::any::install_default_drivers();
    match config {
        StoreConfig::Sqlite(config) => open_sqlite(config).await,
        StoreConfig::Postgres(config) => open_postgres(config),
    }
}

/// What opening a store would find and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no file, or no table of ours: `serve` makes them.
    Empty,
    /// An older release wrote it: `serve` brings it up to date, after which that release does not start on it any more.
    Older {
        /// Its step.
        step: usize,
        /// The step of this release.
        known: usize,
    },
    /// It is of this release.
    Current,
}

/// Looks at a store and changes nothing, not even that there is one.
///
/// # Errors
/// As [`open`]: where it can't be reached or read, or a newer release wrote it.
pub async fn look_at(config: &StoreConfig) -> Result<Standing, StoreError> {
    sqlx::any::install_default_drivers();
    let (options, dialect) = match config {
        StoreConfig::Sqlite(config) => {
            if !config.path.exists() {
                return folder_of(&config.path).map(|()| Standing::Empty);
            }
            (sqlite_options(&config.path, "ro")?, Dialect::Sqlite)
        }
        StoreConfig::Postgres(config) => (postgres_options(config)?, Dialect::Postgres),
    };
    let look = async {
        let mut bare = options.connect().await?;
        let step = super::schema::step(&mut bare, dialect).await?;
        bare.close().await?;
        Ok(step)
    };
    let known = super::schema::KNOWN;
    match Database::within(CALL_LIMIT, look).await.map_err(StoreError::from)? {
        0 => Ok(Standing::Empty),
        step if step < known => Ok(Standing::Older { step, known }),
        step if step > known => Err(StoreError::Schema(format!(
            "it is at step {step} and this release knows {known}: run the newer release again, or give this one a store of its own"
        ))),
        _ => Ok(Standing::Current),
    }
}

async fn open_sqlite(config: &SqliteStore) -> Result<Arc<dyn Store>, StoreError> {
    let path = &config.path;
    make_file(path)?;
    let refused = |reason: String| StoreError::Refused(format!("{}: {reason}", path.display()));
    let options = sqlite_options(path, "rw")?;
    let pool = |connections| {
        AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_LIMIT)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect(|conn, _| Box::pin(async move { conn.execute(SQLITE_SETTINGS).await.map(drop) }))
            .connect_lazy_with(options.clone())
    };
    let database = Database::new(Dialect::Sqlite, pool(SQLITE_READERS), pool(1));
    let first = Database::within(CALL_LIMIT, async {
        loop {
            match first_contact(&options, &database).await {
                // Another process opens or closes the file at this moment, or restores it after a crash.
                Err(fault) if is_busy(&fault) => tokio::time::sleep(BUSY_PAUSE).await,
                other => return other,
            }
        }
    });
    first.await.map_err(|fault| match fault {
        Fault::Schema(reason) => StoreError::Schema(format!("{}: {reason}", path.display())),
        Fault::Database(sqlx::Error::Database(error)) if is_damage(&*error) => refused(format!(
            "{error}; it is no store or is damaged: move it away and start with a new one, or put a backup in its place"
        )),
        Fault::Database(error) => refused(error.to_string()),
        other => StoreError::from(other),
    })?;
    database.opened(OpenedFile::at(path.clone()).map_err(|error| refused(error.to_string()))?);
    Ok(Arc::new(SqlStore::new(database)))
}

/// `mode` is SQLite's: `ro` or `rw`.
fn sqlite_options(path: &Path, mode: &str) -> Result<AnyConnectOptions, StoreError> {
    let refused = |reason: String| StoreError::Refused(format!("{}: {reason}", path.display()));
    let name = path.to_str().ok_or_else(|| refused("the name of the file must be UTF-8".into()))?;
    // The text of an address, in which a few characters of a file's name would have a meaning.
    let escaped = name.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
    Ok(AnyConnectOptions::from_str(&format!("sqlite:{escaped}?mode={mode}"))
        .map_err(|error| refused(error.to_string()))?
        .disable_statement_logging())
}

/// A connection outside the pools tells what is wrong; a pool tries again until its time is up.
async fn first_contact(options: &AnyConnectOptions, database: &Database) -> Result<(), Fault> {
    let mut bare = options.connect().await?;
    bare.execute(SQLITE_SETTINGS).await?;
    bare.close().await?;
    let work = database.begin(Access::Write).await?;
    database.finish(work, Ok(())).await
}

/// Whether another process held the file for longer than `busy_timeout`, or in a way that SQLite doesn't wait for: while the last
/// connection leaves, or the first one restores what a crash left.
fn is_busy(fault: &Fault) -> bool {
    const BUSY: i32 = 5;
    matches!(fault, Fault::Database(sqlx::Error::Database(error)) if sqlite_code(&**error) == Some(BUSY))
}

/// Whether SQLite finds its file to be none of its own, or damaged.
fn is_damage(error: &dyn sqlx::error::DatabaseError) -> bool {
    const CORRUPT: i32 = 11;
    const NOT_A_DATABASE: i32 = 26;
    matches!(sqlite_code(error), Some(CORRUPT | NOT_A_DATABASE))
}

/// SQLite's primary result code.
fn sqlite_code(error: &dyn sqlx::error::DatabaseError) -> Option<i32> {
    error.code().and_then(|code| code.parse::<i32>().ok()).map(|extended| extended & 0xff)
}

/// Whether there is a folder for the file.
fn folder_of(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "{}: its folder {} is not there; make it, or mount a volume there",
        path.display(),
        folder.display()
    )))
}

/// Makes the file where it isn't there, readable by its owner only.
fn make_file(path: &Path) -> Result<(), StoreError> {
    folder_of(path)?;
    let refused = |reason: String| StoreError::Refused(format!("{}: {reason}", path.display()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|error| {
        refused(format!(
            "{error}; the process must be able to read and write it, and to make files beside it"
        ))
    })
}

fn postgres_options(config: &PostgresStore) -> Result<AnyConnectOptions, StoreError> {
    // The reason of a parser could hold a part of the address, and the address holds a password.
    let refused = |reason: &str| StoreError::Refused(format!("the URL of the PostgreSQL store {reason}"));
    let address = config.url.expose();
    if !(address.starts_with("postgres://") || address.starts_with("postgresql://")) {
        return Err(refused("must begin with `postgres://`"));
    }
    let mut options = AnyConnectOptions::from_str(address)
        .map_err(|_| {
            refused("can't be read: write `postgres://role:password@host:port/database`, special characters percent-encoded")
        })?
        .disable_statement_logging();
    let has = |options: &AnyConnectOptions, key: &str| {
        options.database_url.query_pairs().any(|(known, _)| known == key)
    };
    // Without named statements it works behind a pooler of transactions too.
    for (key, value) in [("application_name", "delivery-canary"), ("statement-cache-capacity", "0")] {
        if !has(&options, key) {
            options.database_url.query_pairs_mut().append_pair(key, value);
        }
    }
    Ok(options)
}

fn open_postgres(config: &PostgresStore) -> Result<Arc<dyn Store>, StoreError> {
    let options = postgres_options(config)?;
    let pool = AnyPoolOptions::new()
        .max_connections(config.max_connections.max(2))
        .acquire_timeout(ACQUIRE_LIMIT)
        .idle_timeout(Duration::from_secs(300))
        .max_lifetime(Duration::from_secs(1_800))
        .connect_lazy_with(options);
    Ok(Arc::new(SqlStore::new(Database::new(Dialect::Postgres, pool.clone(), pool))))
}
