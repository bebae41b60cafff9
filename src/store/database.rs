//! Connections and transactions: what the two databases do differently is here, and in no other file.

use super::{
    fault::Fault,
    file::OpenedFile,
    look, schema,
    statement::{run, values},
};
use chrono::TimeDelta;
use sqlx::{Any, AnyConnection, AnyPool, any::AnyRow, pool::PoolConnection};
use std::{
    ops::{Deref, DerefMut},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Mutex;

/// Longest time of one call, waiting for a connection included.
pub(super) const CALL_LIMIT: Duration = Duration::from_millis(4_500);

/// Runs its last argument in one transaction, within the time of one call. A macro, because a closure that borrows the connection
/// can't be told to be `Send`.
macro_rules! transaction {
    ($store:expr, $access:expr, $work:ident => $do:expr) => {
        $crate::store::database::Database::within($crate::store::database::CALL_LIMIT, async {
            let mut $work: $crate::store::database::Work = $store.database.begin($access).await?;
            let result = async { $do }.await;
            $store.database.finish($work, result).await
        })
        .await
        .map_err($crate::store::StoreError::from)
    };
}
pub(super) use transaction;

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// SQLite, in a file of its own.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Sees one moment, changes nothing.
    Read,
    /// Changes something.
    Write,
}

impl Dialect {
    /// What locks the selected rows until the end of the transaction. SQLite has one writer, which has locked everything.
    pub(super) const fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE",
        }
    }

    /// The same, passing over rows that another process has locked.
    pub(super) const fn for_update_skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE SKIP LOCKED",
        }
    }

    /// How a transaction begins. The limits are set for the transaction and not for the session, since behind a pooler of
    /// transactions there is no session.
    const fn begin(self, access: Access) -> &'static str {
        match (self, access) {
            (Self::Sqlite, Access::Read) => "BEGIN",
            // The lock is taken at the start: one that is asked for in the middle may be refused at once.
            (Self::Sqlite, Access::Write) => "BEGIN IMMEDIATE",
            (Self::Postgres, Access::Read) => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '4s'; \
                 SET LOCAL idle_in_transaction_session_timeout = '5s'"
            }
            (Self::Postgres, Access::Write) => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = '4s'; \
                 SET LOCAL lock_timeout = '3s'; SET LOCAL idle_in_transaction_session_timeout = '5s'"
            }
        }
    }
}

/// The connections to one database.
#[derive(Debug)]
pub(super) struct Database {
    /// Which it is.
    pub(super) dialect: Dialect,
    reading: AnyPool,
    writing: AnyPool,
    /// The file of an SQLite store, once it is open.
    file: OnceLock<OpenedFile>,
    is_migrated: AtomicBool,
    /// Held during the first contact. By how much it moved our clock, if that made it another time.
    first_contact: Mutex<Result<(), TimeDelta>>,
}

impl Database {
    /// Nothing connects before the first call. In PostgreSQL both pools may be the same.
    pub(super) fn new(dialect: Dialect, reading: AnyPool, writing: AnyPool) -> Self {
        Self {
            dialect,
            reading,
            writing,
            file: OnceLock::new(),
            is_migrated: AtomicBool::new(false),
            first_contact: Mutex::new(Ok(())),
        }
    }

    /// Begins a transaction. At the first contact the schema is brought up to date, and our clock set by that of PostgreSQL.
    pub(super) async fn begin(&self, access: Access) -> Result<Work, Fault> {
        if !self.is_migrated.load(Ordering::Acquire) {
            let mut contact = self.first_contact.lock().await;
            if !self.is_migrated.load(Ordering::Acquire) {
                let mut work = self.begin_bare(Access::Write).await?;
                let result = schema::bring_up_to_date(&mut work, self.dialect).await;
                self.finish(work, result).await?;
                *contact = self.set_clock().await?;
                self.is_migrated.store(true, Ordering::Release);
            }
            // Whoever waited here asks for something by the time that it was before.
            (*contact).map_err(Fault::ClockMoved)?;
        }
        self.begin_bare(access).await
    }

    /// Sets our clock by the database's, where it has one of its own.
    async fn set_clock(&self) -> Result<Result<(), TimeDelta>, Fault> {
        if self.dialect == Dialect::Sqlite {
            return Ok(Ok(()));
        }
        let mut work = self.begin_bare(Access::Read).await?;
        let result = look::set_clock(&mut work).await;
        self.finish(work, result).await
    }

    async fn begin_bare(&self, access: Access) -> Result<Work, Fault> {
        let pool = if access == Access::Write { &self.writing } else { &self.reading };
        let mut work = Work { conn: pool.acquire().await?, is_finished: false };
        run(&mut work, self.dialect.begin(access)).await?;
        Ok(work)
    }

    /// Commits what went well and takes back what did not.
    pub(super) async fn finish<T>(&self, mut work: Work, result: Result<T, Fault>) -> Result<T, Fault> {
        match result {
            Ok(answer) => {
                run(&mut work, "COMMIT").await?;
                work.is_finished = true;
                Ok(answer)
            }
            Err(fault) => {
                if fault.is_missing_schema() {
                    self.is_migrated.store(false, Ordering::Release);
                }
                // Where even that fails the connection is closed, which takes everything back.
                work.is_finished = run(&mut work, "ROLLBACK").await.is_ok();
                Err(fault)
            }
        }
    }

    /// Gives up after `limit`. A transaction that is cut off so closes its connection, and nothing of it stays.
    pub(super) async fn within<T>(
        limit: Duration,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        tokio::time::timeout(limit, work).await.unwrap_or(Err(Fault::TooLate(limit)))
    }

    /// Runs one query in a transaction of its own. In SQLite a query is one by itself; in PostgreSQL its limits need one around it.
    pub(super) async fn query(
        &self,
        text: &str,
        values: Vec<super::statement::Value>,
    ) -> Result<Vec<AnyRow>, Fault> {
        Self::within(CALL_LIMIT, async {
            if self.dialect == Dialect::Sqlite && self.is_migrated.load(Ordering::Acquire) {
                let mut work = Work { conn: self.reading.acquire().await?, is_finished: false };
                let rows = super::statement::fetch(&mut work, text, values).await?;
                work.is_finished = true;
                return Ok(rows);
            }
            let mut work = self.begin(Access::Read).await?;
            let result = super::statement::fetch(&mut work, text, values).await;
            self.finish(work, result).await
        })
        .await
    }

    /// This is the file from now on.
    pub(super) fn opened(&self, file: OpenedFile) {
        // It is opened once.
        let _ = self.file.set(file);
    }

    /// Writes one row, for good: only that proves that a write can be made.
    pub(super) async fn ping(&self, limit: Duration) -> Result<(), Fault> {
        self.file.get().map_or(Ok(()), OpenedFile::check)?;
        Self::within(limit, async {
            let mut work = self.begin(Access::Write).await?;
            let text = "UPDATE counter SET value = value + 1 WHERE name = $1";
            let result = super::statement::execute(&mut work, text, values!["ping"]).await;
            self.finish(work, result).await.map(drop)
        })
        .await
    }
}

/// A transaction. When it is dropped before its end, its connection is closed: a connection whose peer hangs would never be free
/// again, and one whose transaction is still open must not be used by others.
#[derive(Debug)]
pub(super) struct Work {
    conn: PoolConnection<Any>,
    is_finished: bool,
}

impl Deref for Work {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        &self.conn
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.conn
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.is_finished {
            self.conn.close_on_drop();
        }
    }
}
