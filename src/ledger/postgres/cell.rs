//! PostgreSQL's values, off the wire.
//!
//! They are decoded here and not by the driver: its own decoding of `infinity` and of far-off times overflows.

use super::super::cell::Cell;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{
    Row, TypeInfo, ValueRef,
    postgres::{PgRow, PgTypeInfo, PgTypeKind, PgValueFormat},
};
use uuid::Uuid;

/// 2000-01-01T00:00:00Z, from which PostgreSQL counts, in seconds since 1970.
const EPOCH_SECONDS: i64 = 946_684_800;

/// How the values of a column are read: found once for a reading, not for each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Uuid,
    Instant,
    Naive,
    Text,
    Padded,
    Other,
}

impl Kind {
    /// The kind of a type.
    pub fn of(type_info: &PgTypeInfo) -> Self {
        match type_info.kind() {
            PgTypeKind::Domain(base) => return Self::of(base),
            PgTypeKind::Enum(_) => return Self::Text,
            PgTypeKind::Simple => {}
            _ => return Self::Other,
        }
        match type_info.name() {
            "BOOL" => Self::Bool,
            "INT2" => Self::Int2,
            "INT4" => Self::Int4,
            "INT8" => Self::Int8,
            "FLOAT4" => Self::Float4,
            "FLOAT8" => Self::Float8,
            "NUMERIC" => Self::Numeric,
            "UUID" => Self::Uuid,
            "TIMESTAMPTZ" => Self::Instant,
            "TIMESTAMP" => Self::Naive,
            "TEXT" | "VARCHAR" | "NAME" | "UNKNOWN" | "citext" | "\"CHAR\"" => Self::Text,
            "CHAR" => Self::Padded,
            _ => Self::Other,
        }
    }
}

/// Reads the value at this place of a row into a cell, which may hold an older one.
pub fn read(row: &PgRow, place: usize, kind: Kind, cell: &mut Cell) {
    let value = match row.try_get_raw(place) {
        Ok(value) if !value.is_null() => value,
        _ => {
            *cell = Cell::Null;
            return;
        }
    };
    let read = match (value.format(), value.as_bytes()) {
        (PgValueFormat::Binary, Ok(bytes)) => decode(kind, bytes, cell),
        _ => None,
    };
    if read.is_none() {
        *cell = Cell::Other(value.type_info().name().to_owned());
    }
}

/// Some value of a type: what can't be read of it can't be read of the type.
pub fn sample(type_info: &PgTypeInfo) -> Cell {
    let mut cell = Cell::Null;
    let kind = Kind::of(type_info);
    let bytes: &[u8] = match kind {
        Kind::Numeric => return Cell::Decimal("1".into()),
        Kind::Instant | Kind::Naive | Kind::Int8 | Kind::Float8 => &[0; 8],
        Kind::Int4 | Kind::Float4 => &[0; 4],
        Kind::Int2 => &[0; 2],
        Kind::Uuid => &[0; 16],
        Kind::Bool | Kind::Text | Kind::Padded | Kind::Other => b"x",
    };
    if decode(kind, bytes, &mut cell).is_none() {
        return Cell::Other(type_info.name().to_owned());
    }
    cell
}

/// Reads a value of this kind; nothing where it is none.
fn decode(kind: Kind, bytes: &[u8], cell: &mut Cell) -> Option<()> {
    *cell = match kind {
        Kind::Bool => Cell::Bool(*bytes.first()? != 0),
        Kind::Int2 => Cell::Int(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        Kind::Int4 => Cell::Int(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        Kind::Int8 => Cell::Int(i64::from_be_bytes(bytes.try_into().ok()?)),
        Kind::Float4 => Cell::Float(f32::from_be_bytes(bytes.try_into().ok()?).into()),
        Kind::Float8 => Cell::Float(f64::from_be_bytes(bytes.try_into().ok()?)),
        Kind::Numeric => Cell::Decimal(numeric(bytes)?),
        Kind::Uuid => Cell::Uuid(Uuid::from_slice(bytes).ok()?),
        Kind::Instant => instant(bytes).map_or(Cell::BeyondTime, Cell::Instant),
        Kind::Naive => instant(bytes).map_or(Cell::BeyondTime, |at| Cell::Naive(at.naive_utc())),
        Kind::Text => return text(bytes, cell),
        // Padded with blanks that mean nothing.
        Kind::Padded => {
            let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            return text(&bytes[..end], cell);
        }
        Kind::Other => return None,
    };
    Some(())
}

/// Text goes where the older text was: most columns hold texts of one length.
fn text(bytes: &[u8], cell: &mut Cell) -> Option<()> {
    let text = std::str::from_utf8(bytes).ok()?;
    if let Cell::Text(older) = cell {
        older.clear();
        older.push_str(text);
    } else {
        *cell = Cell::Text(text.to_owned());
    }
    Some(())
}

/// Microseconds since 2000; nothing for the infinities and what no calendar holds.
fn instant(bytes: &[u8]) -> Option<DateTime<Utc>> {
    let micros = i64::from_be_bytes(bytes.try_into().ok()?);
    if matches!(micros, i64::MIN | i64::MAX) {
        return None;
    }
    DateTime::from_timestamp(EPOCH_SECONDS, 0)?.checked_add_signed(TimeDelta::microseconds(micros))
}

/// `numeric` off the wire: digits to the base of 10,000, the weight of the first, a sign, and how many decimals are shown.
fn numeric(bytes: &[u8]) -> Option<String> {
    let words: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let [count, weight, sign, scale, digits @ ..] = words.as_slice() else { return None };
    let sign = match sign {
        0x0000 => "",
        0x4000 => "-",
        // NaN and the infinities.
        _ => return Some("NaN".into()),
    };
    let (weight, scale) = (i32::from(i16::from_be_bytes(weight.to_be_bytes())), usize::from(*scale));
    let digits = digits.get(..usize::from(*count))?;
    let digit =
        |place: i32| usize::try_from(weight - place).ok().and_then(|at| digits.get(at)).copied().unwrap_or(0);
    let whole: String = (0..=weight.max(0)).rev().map(|place| format!("{:04}", digit(place))).collect();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let groups = i32::try_from(scale.div_ceil(4)).ok()?;
    let mut fraction: String = (1..=groups).map(|place| format!("{:04}", digit(-place))).collect();
    fraction.truncate(scale);
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Vec<u8> {
        let head = [digits.len() as u16, weight.cast_unsigned(), sign, scale];
        head.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn numeric_is_read_as_text() {
        for (weight, sign, scale, digits, expected) in [
            (2, 0, 6, vec![17, 9603, 9970, 2500], "1796039970.250000"),
            (0, 0, 0, vec![7], "7"),
            (0, 0x4000, 1, vec![7, 5000], "-7.5"),
            (-1, 0, 4, vec![1], "0.0001"),
            (-2, 0, 8, vec![1], "0.00000001"),
            (1, 0, 0, vec![5], "50000"),
            (0, 0, 2, vec![], "0.00"),
            (0, 0xC000, 0, vec![], "NaN"),
        ] {
            let bytes = wire(weight, sign, scale, &digits);
            assert_eq!(numeric(&bytes).as_deref(), Some(expected));
            let back = super::super::encode::wire(expected);
            assert_eq!(back, (expected != "NaN").then_some(bytes), "{expected}");
        }
    }

    #[test]
    fn what_is_cut_short_is_no_value() {
        for length in 0..8 {
            assert_eq!(numeric(&wire(0, 0, 0, &[7])[..length]), None);
        }
        assert_eq!(instant(&[1, 2]), None);
    }

    #[test]
    fn times_beyond_the_calendar_are_none() {
        for micros in [i64::MIN, i64::MAX, i64::MAX - 1, i64::MIN + 1] {
            assert_eq!(instant(&micros.to_be_bytes()), None, "{micros}");
        }
        assert_eq!(instant(&0i64.to_be_bytes()).unwrap().to_rfc3339(), "2000-01-01T00:00:00+00:00");
    }
}
