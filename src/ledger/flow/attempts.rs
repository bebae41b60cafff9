//! The columns of the attempts' stream.

use super::{
    ids::{UnitFields, ledger_id},
    stream::{Context, Mapped, RowLayout},
};
use crate::{
    config::ledger::AttemptsColumns,
    domain::flow::rows::AttemptRow,
    ledger::{
        cell::{Cell, Misfit},
        notes::Notes,
        time::{Form, Horizon, Reading, read},
        uses::{Use, Uses},
        wanted::{Field, TimeField, Wanted},
        words::{Word, outcome, standing, with_next_attempt},
    },
};

/// Which column is what.
#[derive(Clone, Debug)]
pub struct AttemptsLayout {
    attempt: Field,
    unit: UnitFields,
    status: Field,
    at: TimeField,
    next_attempt: Option<Field>,
}

impl AttemptsLayout {
    /// The layout of these columns.
    ///
    /// # Errors
    /// When a column is declared in a way that makes no sense.
    pub fn new(columns: &AttemptsColumns, wanted: &mut Wanted) -> Result<Self, Misfit> {
        Ok(Self {
            attempt: wanted.field(&columns.attempt_id)?,
            unit: UnitFields {
                notification: wanted.field(&columns.notification_id)?,
                destination: columns.destination.as_ref().map(|c| wanted.field(c)).transpose()?,
            },
            status: wanted.field(&columns.status)?,
            at: wanted.time(&columns.at)?,
            next_attempt: columns.next_attempt.as_ref().map(|c| wanted.field(c)).transpose()?,
        })
    }

    /// How an attempt's time is written.
    pub fn form(&self) -> Form {
        self.at.form
    }
}

impl RowLayout for AttemptsLayout {
    type Row = AttemptRow;

    fn uses(&self) -> Uses {
        Uses::default()
            .with(self.attempt, Use::Id)
            .with(self.unit.notification, Use::Id)
            .with(self.unit.destination, Use::Id)
            .with(self.status, Use::Status)
            .with_time(self.at)
    }

    fn map(
        &self,
        cells: &[Cell],
        context: Context<'_>,
        notes: &mut Notes,
    ) -> Result<Mapped<AttemptRow>, Misfit> {
        let wanted = &context.prepared.wanted;
        let word = context.words.look_up(&cells[self.status.0], wanted.name(self.status))?;
        let is_planned = self.next_attempt.is_some_and(|field| cells[field.0] != Cell::Null);
        let meaning = with_next_attempt(word.meaning(), is_planned);
        if let Word::Unmapped(text) = word {
            notes.unmapped(text);
        }
        if outcome(meaning).is_none() {
            return Ok(Mapped::Nothing);
        }
        let TimeField { field, form } = self.at;
        let reading = read(&cells[field.0], form, Horizon::Happened, context.now, wanted.name(field))?;
        let Reading::At(at) = reading else {
            notes.refused_times += 1;
            return Ok(Mapped::Refused);
        };
        let attempt = ledger_id(&cells[self.attempt.0], wanted.name(self.attempt))?;
        let (Some(attempt), Some(unit)) = (attempt, self.unit.read(cells, wanted)?) else {
            return Ok(Mapped::Refused);
        };
        Ok(Mapped::Row(AttemptRow { attempt, unit, at, leaves: standing(meaning) }))
    }
}
