//! A place in a stream: the raw values of a real row, so that what comes behind it is found by the database, without loss.

use super::cell::Cell;
use chrono::{DateTime, NaiveDateTime, Utc};
use std::cmp::Ordering;
use uuid::Uuid;

/// A value that can be bound again as it was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A UUID.
    Uuid(Uuid),
    /// Text.
    Text(Box<str>),
    /// A decimal number, as text.
    Decimal(Box<str>),
    /// A floating-point number.
    Float(f64),
    /// An instant.
    Instant(DateTime<Utc>),
    /// A date and time of day without a zone.
    Naive(NaiveDateTime),
}

impl Value {
    /// The value of a cell; nothing where it can't be compared with others: NULL, infinities and what means nothing here.
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        Some(match cell {
            Cell::Int(number) => Self::Int(*number),
            Cell::Uuid(uuid) => Self::Uuid(*uuid),
            Cell::Text(text) => Self::Text(text.as_str().into()),
            Cell::Decimal(text) if text.parse::<f64>().is_ok_and(f64::is_finite) => {
                Self::Decimal(text.as_str().into())
            }
            Cell::Float(number) if number.is_finite() => Self::Float(*number),
            Cell::Instant(at) => Self::Instant(*at),
            Cell::Naive(at) => Self::Naive(*at),
            _ => return None,
        })
    }

    /// How it is ordered against another of its type; nothing for texts and decimals that differ, whose order the database knows.
    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uuid(a), Self::Uuid(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Instant(a), Self::Instant(b)) => Some(a.cmp(b)),
            (Self::Naive(a), Self::Naive(b)) => Some(a.cmp(b)),
            (a, b) => (a == b).then_some(Ordering::Equal),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Int(number) => format!("i{number}"),
            Self::Uuid(uuid) => format!("u{uuid}"),
            Self::Text(text) => format!("t{text}"),
            Self::Decimal(text) => format!("d{text}"),
            // The shortest form that gives the same number again.
            Self::Float(number) => format!("f{number:?}"),
            Self::Instant(at) => format!("z{}", at.format("%Y-%m-%dT%H:%M:%S%.9f")),
            Self::Naive(at) => format!("n{}", at.format("%Y-%m-%dT%H:%M:%S%.9f")),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut chars = text.chars();
        let kind = chars.next()?;
        let rest = chars.as_str();
        let naive = || NaiveDateTime::parse_from_str(rest, "%Y-%m-%dT%H:%M:%S%.f").ok();
        Some(match kind {
            'i' => Self::Int(rest.parse().ok()?),
            'u' => Self::Uuid(rest.parse().ok()?),
            't' => Self::Text(rest.into()),
            'd' => Self::Decimal(rest.parse::<f64>().ok().map(|_| rest.into())?),
            'f' => Self::Float(rest.parse().ok().filter(|number: &f64| number.is_finite())?),
            'z' => Self::Instant(naive()?.and_utc()),
            'n' => Self::Naive(naive()?),
            _ => return None,
        })
    }
}

/// The place of a row in a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// The cursor's time as the ledger writes it; nothing for a cursor by id alone.
    pub(super) at: Option<Value>,
    /// The cursor's id.
    pub(super) id: Value,
}

/// A text is no place in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this text is no place in a stream of the ledger: it was kept by something else, or damaged")]
pub struct NoPosition;

impl Position {
    /// Whether the stream is ordered by a time.
    pub const fn has_time(&self) -> bool {
        self.at.is_some()
    }

    /// The place as text, to be kept.
    pub fn to_text(&self) -> String {
        let parts: Vec<String> = self.at.iter().chain([&self.id]).map(Value::to_text).collect();
        serde_json::Value::from(parts).to_string()
    }

    /// The place that was kept as this text.
    ///
    /// # Errors
    /// When the text is none.
    pub fn from_text(text: &str) -> Result<Self, NoPosition> {
        let parts: Vec<String> = serde_json::from_str(text).map_err(|_| NoPosition)?;
        let value = |text: &String| Value::from_text(text).ok_or(NoPosition);
        match parts.as_slice() {
            [id] => Ok(Self { at: None, id: value(id)? }),
            [at, id] => Ok(Self { at: Some(value(at)?), id: value(id)? }),
            _ => Err(NoPosition),
        }
    }

    /// How it is ordered against another place of its stream, as far as that can be told without the database.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        let by_time = match (&self.at, &other.at) {
            (Some(a), Some(b)) => a.order(b)?,
            (None, None) => Ordering::Equal,
            _ => return None,
        };
        if by_time.is_eq() { self.id.order(&other.id) } else { Some(by_time) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let micros = -62_135_596_800_000_000i64..253_402_300_800_000_000;
        let at = micros.prop_map(|micros| DateTime::from_timestamp_micros(micros).unwrap());
        prop_oneof![
            any::<i64>().prop_map(Value::Int),
            any::<u128>().prop_map(|n| Value::Uuid(Uuid::from_u128(n))),
            any::<String>().prop_map(|text| Value::Text(text.into())),
            (any::<i64>(), any::<u32>()).prop_map(|(a, b)| Value::Decimal(format!("{a}.{b}").into())),
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::Float),
            at.clone().prop_map(Value::Instant),
            at.prop_map(|at| Value::Naive(at.naive_utc())),
        ]
    }

    proptest! {
        #[test]
        fn a_place_is_the_same_after_it_was_kept_as_text(at in proptest::option::of(value()), id in value()) {
            let position = Position { at, id };
            prop_assert_eq!(Position::from_text(&position.to_text()), Ok(position));
        }

        #[test]
        fn no_text_is_a_panic(text in ".*", inner in proptest::collection::vec(".*", 0..4)) {
            let _ = Position::from_text(&text);
            let _ = Position::from_text(&serde_json::Value::from(inner).to_string());
        }
    }

    #[test]
    fn places_are_ordered_by_time_and_then_by_id() {
        let place = |at: i64, id: i64| Position { at: Some(Value::Int(at)), id: Value::Int(id) };
        assert_eq!(place(1, 9).order(&place(2, 1)), Some(Ordering::Less));
        assert_eq!(place(1, 9).order(&place(1, 1)), Some(Ordering::Greater));
        assert_eq!(place(1, 1).order(&place(1, 1)), Some(Ordering::Equal));
        let text = |id: &str| Position { at: None, id: Value::Text(id.into()) };
        assert_eq!((text("a").order(&text("B")), text("a").order(&text("a"))), (None, Some(Ordering::Equal)));
    }
}
