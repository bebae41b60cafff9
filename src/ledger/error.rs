//! Why a ledger could not be read.

use super::cell::Misfit;
use std::time::Duration;

/// Why a ledger could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The configuration can't be used.
    #[error("the ledger's {part} can't be used: {reason}")]
    Configuration {
        /// Which part of it.
        part: &'static str,
        /// Why, and what to do.
        reason: String,
    },
    /// No connection.
    #[error("the ledger can't be reached: {0}")]
    Unreachable(String),
    /// It did not answer within its limit.
    #[error("the ledger's {query} query gave no answer within {limit:?}: {reason}")]
    Timeout {
        /// Which query.
        query: &'static str,
        /// The limit that it ran into.
        limit: Duration,
        /// What it waited for.
        reason: &'static str,
    },
    /// The role may not read what the query reads.
    #[error(
        "the ledger's {query} query is not permitted: {reason}; grant SELECT on what it reads to the monitor's role"
    )]
    Denied {
        /// Which query.
        query: &'static str,
        /// What the database says.
        reason: String,
    },
    /// The statement failed.
    #[error("the ledger's {query} query failed: {reason}")]
    Query {
        /// Which query.
        query: &'static str,
        /// Why.
        reason: String,
    },
    /// The result is not as configured.
    #[error("the ledger's {query} query gives a result that does not fit its configuration: {reason}")]
    Shape {
        /// Which query.
        query: &'static str,
        /// What does not fit, and what to do.
        reason: String,
    },
}

impl LedgerError {
    /// The kind of it, one of a few words, for labels and logs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Configuration { .. } => "configuration",
            Self::Unreachable(_) => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Denied { .. } => "denied",
            Self::Query { .. } => "query",
            Self::Shape { .. } => "shape",
        }
    }

    /// A value or column that does not fit.
    pub(super) fn misfit(query: &'static str, misfit: Misfit) -> Self {
        Self::Shape { query, reason: format!("column `{}`: {}", misfit.column, misfit.problem) }
    }
}
