//! What a failure of the database means for a reading.

use super::super::{
    LedgerError,
    binds::Limits,
    said::{bounded, without_quoted},
};
use sqlx::mysql::MySqlDatabaseError;

/// Why a transaction gave no result.
#[derive(Debug)]
pub enum Failure {
    /// The connection is gone.
    Lost(LedgerError),
    /// The database answered that it won't; the connection is good.
    Answered(LedgerError),
    /// The role may not ask how far a replica is behind.
    MayNotProbe,
}

impl Failure {
    /// What this error of a query means.
    pub fn of(error: sqlx::Error, query: &'static str, limits: &Limits) -> Self {
        let Some(answer) = answer(&error) else {
            return Self::Lost(LedgerError::Unreachable(text(&error)));
        };
        Self::Answered(match answer.number() {
            // MariaDB, and MySQL.
            1969 | 3024 => {
                LedgerError::Timeout { query, limit: limits.statement, reason: "the statement took too long" }
            }
            1205 => LedgerError::Timeout {
                query,
                limit: limits.lock,
                reason: "it waited for a lock that somebody else holds",
            },
            // A database, a table, a column, a privilege, a routine.
            1044 | 1142 | 1143 | 1227 | 1370 => LedgerError::Denied { query, reason: said(answer) },
            // A shutdown, a killed connection, a broken packet, idleness.
            1053 | 1158..=1161 | 1927 | 4031 => {
                return Self::Lost(LedgerError::Unreachable(said(answer)));
            }
            _ => LedgerError::Query { query, reason: said(answer) },
        })
    }

    /// The error that it is for whoever asked.
    pub fn error(self) -> LedgerError {
        match self {
            Self::Lost(error) | Self::Answered(error) => error,
            Self::MayNotProbe => {
                LedgerError::Unreachable("the role may not ask how far a replica is behind".into())
            }
        }
    }
}

/// The database's own answer, where the error is one.
pub fn answer(error: &sqlx::Error) -> Option<&MySqlDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// Why no connection came to be, for people.
pub fn of_connecting(error: &sqlx::Error) -> String {
    match error {
        // The one thing that the driver can't do: a password sent under the server's RSA key.
        sqlx::Error::Configuration(_) => {
            "the server wants the password over TLS (caching_sha2_password or sha256_password): turn TLS on at the server, \
             and add `?ssl-mode=REQUIRED` to the URL"
                .into()
        }
        other => text(other),
    }
}

/// An error for people: one line, bounded, without values of the ledger's.
pub fn text(error: &sqlx::Error) -> String {
    answer(error).map_or_else(|| bounded(&error.to_string()), said)
}

/// What the database says. Errors about values quote the value that they stumbled over: it is left out.
fn said(answer: &MySqlDatabaseError) -> String {
    let is_of_a_value = answer.code().is_some_and(|code| code.starts_with("22"))
        || matches!(answer.number(), 1062 | 1366 | 1411 | 1525 | 1526);
    let message =
        if is_of_a_value { without_quoted(answer.message(), '\'') } else { answer.message().to_owned() };
    format!("{} (error {})", bounded(&message), answer.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_needs_tls_is_told() {
        let error = sqlx::Error::Configuration("RSA auth backend disabled".into());
        assert!(of_connecting(&error).contains("ssl-mode=REQUIRED"));
    }
}
