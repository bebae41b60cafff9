//! What each column of a result is read as, so that its type can be held against that without a row, and whatever a value would say.

use super::{
    cell::{Cell, Misfit, count, identifier, mark},
    time::{Form, Horizon, read},
    wanted::{Field, TimeField, Wanted},
    words::Words,
};
use crate::clock;

/// What a column is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The text of an id, a key, a version or a route.
    Id,
    /// A status.
    Status,
    /// A time in this form.
    Time(Form),
    /// A count.
    Count,
    /// A mark: a boolean, or a number.
    Mark,
}

/// The columns of a query that have to be of some type, each with what it is read as.
#[derive(Clone, Debug, Default)]
pub struct Uses(Vec<(Field, Use)>);

impl Uses {
    /// With a column, where it is configured.
    pub fn with(mut self, field: impl Into<Option<Field>>, used: Use) -> Self {
        self.0.extend(field.into().map(|field| (field, used)));
        self
    }

    /// With a time, where it is configured. One that is there already in this form is not told twice.
    pub fn with_time(mut self, time: impl Into<Option<TimeField>>) -> Self {
        let added = time.into().map(|TimeField { field, form }| (field, Use::Time(form)));
        self.0.extend(added.filter(|added| !self.0.contains(added)));
        self
    }

    /// What does not fit in a row that has some value of each column's type.
    pub fn misfits(&self, row: &[Cell], wanted: &Wanted, words: &Words) -> Vec<Misfit> {
        let now = clock::now();
        let fits = |(field, used): &(Field, Use)| {
            let (cell, name) = (&row[field.0], wanted.name(*field));
            match used {
                Use::Id => identifier(cell, name).map(drop),
                Use::Status => words.look_up(cell, name).map(drop),
                Use::Time(form) => read(cell, *form, Horizon::Happened, now, name).map(drop),
                Use::Count => count(cell, name).map(drop),
                Use::Mark => mark(cell, name).map(drop),
            }
        };
        self.0.iter().filter_map(|column| fits(column).err()).collect()
    }
}
