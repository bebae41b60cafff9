//! What the ledger's own words mean, by the status table of the configuration.

use super::{
    cell::{Cell, Misfit},
    notes::Notes,
};
use crate::{
    config::ledger::Meaning,
    domain::{
        flow::rows::Standing,
        outcome::{Cause, Disposition, Outcome},
        pending::Tried,
    },
};
use std::{borrow::Cow, collections::BTreeMap};

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

    /// The one of two spellings that the table has; the first where it has neither or both.
    fn spelling(&self, first: &'static str, second: &'static str) -> Cow<'static, str> {
        let is_second = !self.0.contains_key(first) && self.0.contains_key(second);
        Cow::Borrowed(if is_second { second } else { first })
    }

    /// Looks a value up: text and enums by themselves, numbers as text, `true`, `false` and `null`. Where the
    /// table doesn't have the one, `true` and `1` are alike, and so are `false` and `0`.
    ///
    /// # Errors
    /// When the value can't be a status.
    pub fn look_up(&self, cell: &Cell, column: &str) -> Result<Word, Misfit> {
        let text = match cell {
            Cell::Null => Cow::Borrowed("null"),
            Cell::Text(text) | Cell::Decimal(text) => Cow::Borrowed(text.as_str()),
            // Some databases have only numbers for booleans, or lose in an expression that they are some.
            Cell::Bool(true) => self.spelling("true", "1"),
            Cell::Bool(false) => self.spelling("false", "0"),
            Cell::Int(1) => self.spelling("1", "true"),
            Cell::Int(0) => self.spelling("0", "false"),
            Cell::Int(number) => Cow::Owned(number.to_string()),
            _ => {
                let problem = format!("{} can't be a status: cast it to text in the SQL", cell.type_name());
                return Err(Misfit::new(column, problem));
            }
        };
        let meaning = self.0.get(text.as_ref()).copied();
        Ok(meaning.map_or_else(|| Word::Unmapped(text.into_owned()), Word::Mapped))
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

/// What an attempt's status means where the next attempt is planned: a failure that is not the last one. What was delivered or
/// suppressed stays so, whatever is planned.
pub fn with_next_attempt(meaning: Meaning, is_planned: bool) -> Meaning {
    match meaning {
        Meaning::RejectedRecipient | Meaning::RejectedService | Meaning::Unknown if is_planned => {
            Meaning::Retryable
        }
        meaning => meaning,
    }
}

/// Where this meaning leaves a notification.
pub fn standing(meaning: Meaning) -> Standing {
    match meaning {
        Meaning::Delivered => Standing::Delivered,
        Meaning::RejectedRecipient => Standing::RejectedRecipient,
        Meaning::RejectedService => Standing::RejectedService,
        Meaning::Suppressed => Standing::Suppressed,
        Meaning::Pending => Standing::Pending(Tried::Never),
        Meaning::Retryable => Standing::Pending(Tried::WillRetry),
        Meaning::Unknown => Standing::Pending(Tried::OutcomeUnknown),
    }
}

impl Words {
    /// What a notification's own status means; nothing where it says nothing that is known, and the attempts are asked instead. A word that
    /// isn't in the table is noted; NULL is none.
    ///
    /// Where there are no attempts to ask, nothing known is `unknown`, and NULL that isn't in the table means that nothing was tried. Where there
    /// are, NULL never says anything, even if the table has it: there it is what an attempt under way has, and would outweigh what became of all others.
    ///
    /// # Errors
    /// When the value can't be a status.
    pub fn own_status(
        &self,
        cell: &Cell,
        column: &str,
        has_attempts: bool,
        notes: &mut Notes,
    ) -> Result<Option<Meaning>, Misfit> {
        let is_null = *cell == Cell::Null;
        Ok(match self.look_up(cell, column)? {
            _ if has_attempts && is_null => None,
            Word::Mapped(Meaning::Unknown) if has_attempts => None,
            Word::Mapped(meaning) => Some(meaning),
            Word::Unmapped(_) if is_null => Some(Meaning::Pending),
            Word::Unmapped(text) => {
                notes.unmapped(text);
                (!has_attempts).then_some(Meaning::Unknown)
            }
        })
    }
}
