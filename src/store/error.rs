//! Why the store could not do something, as its callers see it.

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It can't be reached, or does not answer in time.
    #[error("the store can't be used now: {0}")]
    Unavailable(String),
    /// It can't be opened as it is configured.
    #[error("the store can't be opened: {0}")]
    Refused(String),
    /// It holds something that can't be read back.
    #[error("the store holds {what} that can't be read: {reason}; was it written by a newer release?")]
    Corrupt {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Its schema is newer than this program, or could not be brought up to date.
    #[error("the store's schema can't be brought up to date: {0}")]
    Schema(String),
}
