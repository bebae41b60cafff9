//! Which columns of a result are read, by name, and where each lands in a row.

use super::{cell::Misfit, time::Form};
use crate::config::ledger::Column;

/// The place of a column in a row that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(pub usize);

/// The place of a time, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeField {
    /// The place.
    pub field: Field,
    /// How it is written.
    pub form: Form,
}

/// The columns that are read. What else a result has is never taken off the wire into a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted(Vec<String>);

impl Wanted {
    /// Wants a column that is no time.
    ///
    /// # Errors
    /// When it was declared as a time.
    pub fn field(&mut self, column: &Column) -> Result<Field, Misfit> {
        if let Column::Typed(typed) = column {
            return Err(Misfit::new(&typed.name, "only a time is declared with `time`: give the name alone"));
        }
        Ok(self.plain(column.name()))
    }

    /// Wants a column that is a time.
    ///
    /// # Errors
    /// When its declaration isn't whole.
    pub fn time(&mut self, column: &Column) -> Result<TimeField, Misfit> {
        let form = Form::of(column)?;
        Ok(TimeField { field: self.plain(column.name()), form })
    }

    /// Wants a column by its name alone.
    pub fn plain(&mut self, column: &str) -> Field {
        if let Some(place) = self.0.iter().position(|name| name == column) {
            return Field(place);
        }
        self.0.push(column.to_owned());
        Field(self.0.len() - 1)
    }

    /// The names of all columns.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The name of a column.
    pub fn name(&self, field: Field) -> &str {
        &self.0[field.0]
    }

    /// The places of the wanted columns in a result that has these.
    ///
    /// # Errors
    /// When one isn't there, or is there twice.
    pub fn locate(&self, present: &[&str]) -> Result<Vec<usize>, Misfit> {
        self.0
            .iter()
            .map(|name| {
                let mut places = present.iter().enumerate().filter(|(_, p)| *p == name).map(|(at, _)| at);
                match (places.next(), places.next()) {
                    (Some(at), None) => Ok(at),
                    (None, _) => {
                        let problem =
                            format!("the result has no such column; it has: {}", present.join(", "));
                        Err(Misfit::new(name, problem))
                    }
                    (Some(_), Some(_)) => {
                        Err(Misfit::new(name, "the result has two columns of this name: rename one by `as`"))
                    }
                }
            })
            .collect()
    }
}
