//! One value of a result, the same for every database.

use chrono::{DateTime, NaiveDateTime, Utc};
use uuid::Uuid;

/// One value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// Text of any kind, the label of an enum among it.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A decimal number, as text.
    Decimal(String),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A UUID.
    Uuid(Uuid),
    /// An instant.
    Instant(DateTime<Utc>),
    /// A date and time of day without a zone.
    Naive(NaiveDateTime),
    /// A time beyond all calendars, such as `infinity`.
    BeyondTime,
    /// A value of a type that means nothing here: the type's name.
    Other(String),
}

impl Cell {
    /// The database's word for its type, for people.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "NULL",
            Self::Text(_) => "text",
            Self::Int(_) => "an integer",
            Self::Decimal(_) => "a decimal number",
            Self::Float(_) => "a floating-point number",
            Self::Bool(_) => "a boolean",
            Self::Uuid(_) => "a uuid",
            Self::Instant(_) => "a timestamp with time zone",
            Self::Naive(_) => "a timestamp without time zone",
            Self::BeyondTime => "an infinite timestamp",
            Self::Other(name) => name,
        }
    }
}

/// The longest text that is taken for an id, a key or a version, in bytes.
pub const LONGEST_ID: usize = 256;

/// What does not fit in a column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The column's name.
    pub column: String,
    /// What does not fit, and what to do.
    pub problem: String,
}

impl Misfit {
    /// A misfit of this column.
    pub fn new(column: &str, problem: impl Into<String>) -> Self {
        Self { column: column.to_owned(), problem: problem.into() }
    }
}

/// The text of an id, a key, a version or a route; nothing for NULL.
///
/// # Errors
/// When the value can't be one.
pub fn identifier(cell: &Cell, column: &str) -> Result<Option<String>, Misfit> {
    let text = match cell {
        Cell::Null => return Ok(None),
        Cell::Text(text) | Cell::Decimal(text) => text.clone(),
        Cell::Int(number) => number.to_string(),
        Cell::Uuid(uuid) => uuid.to_string(),
        Cell::Bool(_)
        | Cell::Float(_)
        | Cell::Instant(_)
        | Cell::Naive(_)
        | Cell::BeyondTime
        | Cell::Other(_) => {
            let problem = format!("{} can't be an id: cast it to text in the SQL", cell.type_name());
            return Err(Misfit::new(column, problem));
        }
    };
    if text.len() > LONGEST_ID || text.chars().any(char::is_control) {
        let problem = format!(
            "an id is at most {LONGEST_ID} bytes long and has no control characters: is this the right column?"
        );
        return Err(Misfit::new(column, problem));
    }
    Ok(Some(text))
}

/// Whether a mark is set.
///
/// # Errors
/// When the value is neither a boolean nor a whole number.
pub fn mark(cell: &Cell, column: &str) -> Result<bool, Misfit> {
    match cell {
        Cell::Null => Ok(false),
        Cell::Bool(mark) => Ok(*mark),
        Cell::Int(number) => Ok(*number != 0),
        other => {
            let problem = format!("{} is no mark: give a boolean or a whole number", other.type_name());
            Err(Misfit::new(column, problem))
        }
    }
}

/// A count.
///
/// # Errors
/// When the value isn't a whole number from 0.
pub fn count(cell: &Cell, column: &str) -> Result<u64, Misfit> {
    let number = match cell {
        Cell::Int(number) => u64::try_from(*number).ok(),
        // `sum()` of whole numbers is a decimal in some databases.
        Cell::Decimal(text) => text.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| {
        Misfit::new(column, format!("{} is not a count: give a whole number from 0", cell.type_name()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_booleans_and_numbers() {
        for (cell, marked) in [
            (Cell::Null, Ok(false)),
            (Cell::Bool(true), Ok(true)),
            (Cell::Bool(false), Ok(false)),
            (Cell::Int(0), Ok(false)),
            (Cell::Int(1), Ok(true)),
            (Cell::Text("yes".into()), Err(())),
        ] {
            assert_eq!(mark(&cell, "c").map_err(drop), marked, "{cell:?}");
        }
    }
}
