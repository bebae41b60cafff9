//! What would be stopped before it left, found without anything that could send.

use super::{
    Request,
    error::BuildError,
    prepare::{Preparer, Stop},
};
use crate::config::acceptance::Acceptance;
use chrono::{DateTime, Utc};

/// Makes the requests of an acceptance as before a submission, and never sends one.
#[derive(Debug)]
pub struct Rehearsal(Preparer);

impl Rehearsal {
    /// Of a configured acceptance. Reads no files.
    ///
    /// # Errors
    /// When no submitter could be built of it.
    pub fn new(acceptance: &Acceptance) -> Result<Self, BuildError> {
        let Acceptance::Http(http) = acceptance;
        Ok(Self(Preparer::new(http)?))
    }

    /// All that would stop this request, a part each; nothing where it may leave.
    pub fn stops(&self, request: &Request, now: DateTime<Utc>) -> Vec<Stop> {
        self.0.stops(request, now)
    }
}
