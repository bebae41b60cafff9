//! What a failure of the database means for a reading.

use super::super::{
    LedgerError,
    binds::Limits,
    said::{bounded, without_quoted},
};
use sqlx::postgres::PgDatabaseError;

/// Why a transaction gave no result.
#[derive(Debug)]
pub enum Failure {
    /// The connection is gone.
    Lost(LedgerError),
    /// The database answered that it won't; the connection is good.
    Answered(LedgerError),
    /// The role may not ask how far a replica is behind.
    MayNotProbe,
    /// The driver met a type that was new to the connection, such as an enum: asking the catalog about it cost the nameless statement
    /// its life. The type is known now, so the next try goes through.
    TypeWasNew(LedgerError),
}

impl Failure {
    /// What this error of a query means.
    pub fn of(error: sqlx::Error, query: &'static str, limits: &Limits) -> Self {
        let sqlx::Error::Database(answer) = &error else {
            return Self::Lost(LedgerError::Unreachable(text(&error)));
        };
        let answer = answer.downcast_ref::<PgDatabaseError>();
        let code = answer.code();
        Self::Answered(match code {
            "57014" => {
                LedgerError::Timeout { query, limit: limits.statement, reason: "the statement took too long" }
            }
            "55P03" => LedgerError::Timeout {
                query,
                limit: limits.lock,
                reason: "it waited for a lock that somebody else holds",
            },
            "42501" => LedgerError::Denied { query, reason: said(answer) },
            "26000" => return Self::TypeWasNew(LedgerError::Query { query, reason: said(answer) }),
            _ if ends_the_connection(code) => return Self::Lost(LedgerError::Unreachable(said(answer))),
            _ => LedgerError::Query { query, reason: said(answer) },
        })
    }
}

/// Classes 08 (connection), 57P (shutdown and the like) and 25P03, 25P04 (time limits of sessions).
fn ends_the_connection(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || matches!(code, "25P03" | "25P04")
}

/// An error for people: one line, bounded, without values of the ledger's.
pub fn text(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(answer) => match answer.try_downcast_ref::<PgDatabaseError>() {
            Some(answer) => said(answer),
            None => bounded(answer.message()),
        },
        other => bounded(&other.to_string()),
    }
}

/// What the database says. Errors of class 22 quote the value that they stumbled over: it is left out.
fn said(answer: &PgDatabaseError) -> String {
    let message = if answer.code().starts_with("22") {
        without_quoted(answer.message(), '"')
    } else {
        answer.message().to_owned()
    };
    format!("{} (SQLSTATE {})", bounded(&message), answer.code())
}
