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

/// The value at this place of a row.
pub fn cell(row: &PgRow, place: usize) -> Cell {
    let Ok(value) = row.try_get_raw(place) else { return Cell::Null };
    if value.is_null() {
        return Cell::Null;
    }
    let type_info = value.type_info();
    match (value.format(), value.as_bytes()) {
        (PgValueFormat::Binary, Ok(bytes)) => decode(&type_info, bytes),
        _ => Cell::Other(type_info.name().to_owned()),
    }
}

/// Some value of a type: what can't be read of it can't be read of the type.
pub fn sample(type_info: &PgTypeInfo) -> Cell {
    match type_info.name() {
        "NUMERIC" => Cell::Decimal("1".into()),
        "TIMESTAMPTZ" | "TIMESTAMP" | "INT8" | "FLOAT8" => decode(type_info, &[0; 8]),
        "INT4" | "FLOAT4" => decode(type_info, &[0; 4]),
        "INT2" => decode(type_info, &[0; 2]),
        "UUID" => decode(type_info, &[0; 16]),
        _ => match type_info.kind() {
            PgTypeKind::Domain(base) => sample(base),
            _ => decode(type_info, b"x"),
        },
    }
}

fn decode(type_info: &PgTypeInfo, bytes: &[u8]) -> Cell {
    match type_info.kind() {
        PgTypeKind::Domain(base) => return decode(base, bytes),
        PgTypeKind::Enum(_) => return text(bytes, type_info),
        PgTypeKind::Simple => {}
        _ => return Cell::Other(type_info.name().to_owned()),
    }
    let decoded = match type_info.name() {
        "BOOL" => bytes.first().map(|byte| Cell::Bool(*byte != 0)),
        "INT2" => bytes.try_into().ok().map(|b| Cell::Int(i16::from_be_bytes(b).into())),
        "INT4" => bytes.try_into().ok().map(|b| Cell::Int(i32::from_be_bytes(b).into())),
        "INT8" => bytes.try_into().ok().map(|b| Cell::Int(i64::from_be_bytes(b))),
        "FLOAT4" => bytes.try_into().ok().map(|b| Cell::Float(f32::from_be_bytes(b).into())),
        "FLOAT8" => bytes.try_into().ok().map(|b| Cell::Float(f64::from_be_bytes(b))),
        "NUMERIC" => numeric(bytes).map(Cell::Decimal),
        "UUID" => Uuid::from_slice(bytes).ok().map(Cell::Uuid),
        "TIMESTAMPTZ" => Some(instant(bytes).map_or(Cell::BeyondTime, Cell::Instant)),
        "TIMESTAMP" => Some(instant(bytes).map_or(Cell::BeyondTime, |at| Cell::Naive(at.naive_utc()))),
        "TEXT" | "VARCHAR" | "NAME" | "UNKNOWN" | "citext" | "\"CHAR\"" => Some(text(bytes, type_info)),
        // Padded with blanks that mean nothing.
        "CHAR" => Some(match text(bytes, type_info) {
            Cell::Text(text) => Cell::Text(text.trim_end_matches(' ').to_owned()),
            other => other,
        }),
        _ => None,
    };
    decoded.unwrap_or_else(|| Cell::Other(type_info.name().to_owned()))
}

fn text(bytes: &[u8], type_info: &PgTypeInfo) -> Cell {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cell::Text(text.to_owned()),
        Err(_) => Cell::Other(format!("{} that is not UTF-8", type_info.name())),
    }
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
            assert_eq!(numeric(&wire(weight, sign, scale, &digits)).as_deref(), Some(expected));
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
