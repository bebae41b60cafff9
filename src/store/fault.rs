//! What can go wrong inside, before it becomes a [`StoreError`].

use super::StoreError;
use sqlx::Error as Sqlx;

/// A fault inside the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] Sqlx),
    /// A stored value can't be read back.
    #[error("{what}: {reason}")]
    Corrupt {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The schema isn't ours.
    #[error("{0}")]
    Schema(String),
    /// The file that was opened is not there any more.
    #[error("{0}")]
    Gone(String),
    /// What was asked for was asked for by a time that it was not.
    #[error("our clock was {} s off the store's, whose time we keep from now on: this is to be asked for again", .0.as_seconds_f64())]
    ClockMoved(chrono::TimeDelta),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    TooLate(std::time::Duration),
}

impl Fault {
    /// A stored value that can't be read back.
    pub(super) fn corrupt(what: &'static str, reason: impl ToString) -> Self {
        Self::Corrupt { what, reason: reason.to_string() }
    }

    /// Whether two transactions stood in each other's way, so that the same one may pass when it is tried again.
    pub(super) fn is_collision(&self) -> bool {
        // PostgreSQL: serialization failure, deadlock. SQLite never has either: it has one writer.
        matches!(self.code().as_deref(), Some("40001" | "40P01"))
    }

    /// Whether the database refused this very work, so that other work may pass.
    pub(super) fn is_of_this_work(&self) -> bool {
        match self {
            Self::Database(Sqlx::Database(error)) => {
                error.kind() != sqlx::error::ErrorKind::Other || self.is_data()
            }
            Self::Database(Sqlx::Encode(_) | Sqlx::Decode(_) | Sqlx::ColumnDecode { .. }) => true,
            Self::Corrupt { .. } => true,
            Self::Database(_) | Self::Schema(_) | Self::Gone(_) | Self::ClockMoved(_) | Self::TooLate(_) => {
                false
            }
        }
    }

    /// Whether the tables are not there: somebody put another database in the place of ours.
    pub(super) fn is_missing_schema(&self) -> bool {
        self.code().as_deref() == Some("42P01")
    }

    fn is_data(&self) -> bool {
        self.code().is_some_and(|code| code.starts_with("22"))
    }

    fn code(&self) -> Option<String> {
        match self {
            Self::Database(Sqlx::Database(error)) => error.code().map(std::borrow::Cow::into_owned),
            _ => None,
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            // The pool hides the cause: it tries again until its time is up.
            Fault::Database(Sqlx::PoolTimedOut) => Self::Unavailable(
                "no connection in time; is the database up and its address right, and are there connections left?".into(),
            ),
            Fault::Database(Sqlx::Decode(reason)) => Self::Corrupt { what: "a value", reason: reason.to_string() },
            Fault::Database(Sqlx::ColumnDecode { index, source }) => {
                Self::Corrupt { what: "a column", reason: format!("{index}: {source}") }
            }
            Fault::Database(other) => Self::Unavailable(other.to_string()),
            Fault::Corrupt { what, reason } => Self::Corrupt { what, reason },
            Fault::Schema(reason) => Self::Schema(reason),
            Fault::TooLate(_) | Fault::Gone(_) | Fault::ClockMoved(_) => Self::Unavailable(fault.to_string()),
        }
    }
}
