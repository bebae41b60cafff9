//! What the ledger's own words mean, by the status table of the configuration.

use super::cell::{Cell, Misfit};
use crate::{
    config::ledger::Meaning,
    domain::outcome::{Cause, Disposition, Outcome},
};
use std::collections::BTreeMap;

/// The status table.
#[derive(Clone, Debug)]
pub struct Words(BTreeMap<String, Meaning>);

/// A word of the ledger's, looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is in the table.
    Mapped(Meaning),
    /// It isn't.
    Unmapped(String),
}

impl Word {
    /// What it means; what isn't in the table is unknown.
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::Mapped(meaning) => *meaning,
            Self::Unmapped(_) => Meaning::Unknown,
        }
    }
}

impl Words {
    /// The table of a configuration.
    pub fn new(table: &BTreeMap<String, Meaning>) -> Self {
        Self(table.clone())
    }

    /// Looks a value up: text and enums by themselves, numbers as text, `true`, `false` and `null`.
    ///
    /// # Errors
    /// When the value can't be a status.
    pub fn look_up(&self, cell: &Cell, column: &str) -> Result<Word, Misfit> {
        let text = match cell {
            Cell::Null => "null".to_owned(),
            Cell::Text(text) | Cell::Decimal(text) => text.clone(),
            Cell::Int(number) => number.to_string(),
            Cell::Bool(truth) => truth.to_string(),
            _ => {
                let problem = format!("{} can't be a status: cast it to text in the SQL", cell.type_name());
                return Err(Misfit::new(column, problem));
            }
        };
        Ok(self.0.get(&text).map_or_else(|| Word::Unmapped(text), |meaning| Word::Mapped(*meaning)))
    }
}

/// The outcome of an attempt of this meaning; nothing while it is under way.
pub fn outcome(meaning: Meaning) -> Option<Outcome> {
    match meaning {
        Meaning::Delivered => Some(Outcome::Delivered),
        Meaning::Retryable => Some(Outcome::Retryable),
        Meaning::RejectedRecipient | Meaning::RejectedService => Some(Outcome::PermanentRejection),
        Meaning::Suppressed => Some(Outcome::Suppressed),
        Meaning::Unknown => Some(Outcome::Unknown),
        Meaning::Pending => None,
    }
}

/// Where a notification stands whose own status, or newest terminal attempt, means this. Nothing where nobody knows.
pub fn disposition(meaning: Meaning) -> Option<(Disposition, Option<Cause>)> {
    match meaning {
        Meaning::Delivered => Some((Disposition::Delivered, None)),
        Meaning::RejectedRecipient => Some((Disposition::PermanentlyRejected, Some(Cause::Recipient))),
        Meaning::RejectedService => Some((Disposition::PermanentlyRejected, Some(Cause::Service))),
        Meaning::Suppressed => Some((Disposition::Suppressed, None)),
        Meaning::Retryable | Meaning::Pending => Some((Disposition::Pending, None)),
        Meaning::Unknown => None,
    }
}
