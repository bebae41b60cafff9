//! Why a submitter could not be built of its configuration.

use crate::trust::TrustError;

/// A fault of an acceptance's configuration. Each names the key at fault, as it stands below `http`.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A template that does not compile.
    #[error("`{key}`, line {line}: the template does not compile: {fault}")]
    Template {
        /// The key.
        key: String,
        /// The line inside the template, from 1.
        line: usize,
        /// What the template engine says.
        fault: String,
    },
    /// An address that cannot be used.
    #[error("`url`: {fault}")]
    Url {
        /// What is wrong, and what to write.
        fault: &'static str,
    },
    /// A header that cannot be sent.
    #[error("`{key}`: {fault}")]
    Header {
        /// The key, with the header's name.
        key: String,
        /// What is wrong, and what to write.
        fault: &'static str,
    },
    /// An idempotency key that would never leave.
    #[error(
        "`idempotency`: it is `body`, but the body has no `{{{{ key }}}}`: write it where the API reads its key"
    )]
    KeyNotInBody,
    /// A JSON pointer that cannot be one.
    #[error("`{key}`: `{pointer}` is not a JSON pointer: it starts with `/`, such as `/notification_id`")]
    Pointer {
        /// The key.
        key: &'static str,
        /// What was given.
        pointer: String,
    },
    /// A status with two meanings.
    #[error(
        "`{first}` and `{second}` both list status {status}: an answer has one meaning, so take it out of one"
    )]
    StatusTwice {
        /// The first key.
        first: &'static str,
        /// The second key.
        second: &'static str,
        /// The status.
        status: u16,
    },
    /// A number that is no status of an answer.
    #[error("`{key}`: {status} is not the status of an answer: give numbers from 200 to 599")]
    Status {
        /// The key.
        key: &'static str,
        /// What was given.
        status: u16,
    },
    /// No status that means accepted.
    #[error("`accepted.statuses` is empty: no canary could ever be accepted; list at least one status")]
    NothingAccepted,
    /// Limits that leave no room for each other.
    #[error(
        "`connect_timeout` must be above 0 and below `total_timeout`: otherwise a connection that never came to be cannot be \
         told from a request that may have left"
    )]
    Timeouts,
    /// Certificates that cannot be trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The HTTP client could not be made.
    #[error("the HTTP client cannot be made: {fault}")]
    Client {
        /// Why.
        fault: String,
    },
}
