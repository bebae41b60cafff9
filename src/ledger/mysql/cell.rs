//! MySQL's and MariaDB's values, off the wire.
//!
//! They are decoded here and not by the driver: its own decoding takes a zero date for NULL, and refuses whole numbers by their sign.

use super::super::cell::Cell;
use chrono::{NaiveDate, NaiveDateTime};
use sqlx::{
    Decode, MySql, Row, Type, TypeInfo, ValueRef,
    mysql::{MySqlRow, MySqlTypeInfo},
};
use uuid::Uuid;

/// How the values of a column are read: found once for a reading, not for each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `TINYINT(1)`.
    Flag,
    /// A whole number with a sign.
    Signed,
    /// One without.
    Unsigned,
    Bit,
    Float,
    Double,
    Decimal,
    /// `TIMESTAMP`, in the session's zone, which is UTC.
    Instant,
    /// `DATETIME`.
    Naive,
    /// `BINARY`: 16 bytes are a UUID.
    Binary,
    /// Bytes of other types: text, if they are.
    Bytes,
    Text,
    Other,
}

impl Kind {
    /// The kind of a type.
    pub fn of(type_info: &MySqlTypeInfo) -> Self {
        match type_info.name() {
            "BOOLEAN" => Self::Flag,
            "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => Self::Signed,
            "TINYINT UNSIGNED" | "SMALLINT UNSIGNED" | "MEDIUMINT UNSIGNED" | "INT UNSIGNED"
            | "BIGINT UNSIGNED" => Self::Unsigned,
            "BIT" => Self::Bit,
            "FLOAT" => Self::Float,
            "DOUBLE" => Self::Double,
            "DECIMAL" => Self::Decimal,
            "TIMESTAMP" => Self::Instant,
            "DATETIME" => Self::Naive,
            "JSON" | "SET" | "ENUM" => Self::Text,
            // A text whose collation is by bytes has the name of bytes too.
            _ if <str as Type<MySql>>::compatible(type_info) => Self::Text,
            "BINARY" => Self::Binary,
            "VARBINARY" | "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB" => Self::Bytes,
            _ => Self::Other,
        }
    }
}

/// Reads the value at this place of a row into a cell, which may hold an older one.
pub fn read(row: &MySqlRow, place: usize, kind: Kind, cell: &mut Cell) {
    let Ok(value) = row.try_get_raw(place) else {
        *cell = Cell::Null;
        return;
    };
    let type_info = value.type_info().into_owned();
    // The driver calls a zero date NULL; its bytes tell it apart.
    let Ok(bytes) = <&[u8] as Decode<MySql>>::decode(value) else {
        *cell = Cell::Null;
        return;
    };
    if decode(kind, bytes, cell).is_none() {
        *cell = Cell::Other(type_info.name().to_owned());
    }
}

/// Some value of a type: what can't be read of it can't be read of the type.
pub fn sample(type_info: &MySqlTypeInfo) -> Cell {
    let mut cell = Cell::Null;
    // A column that is NULL in every row, whatever the rows are.
    if type_info.name() == "NULL" {
        return cell;
    }
    let kind = Kind::of(type_info);
    let bytes: &[u8] = match kind {
        Kind::Flag | Kind::Signed | Kind::Unsigned | Kind::Bit | Kind::Double => &[0; 8],
        Kind::Float => &[0; 4],
        Kind::Instant | Kind::Naive => &[4, 0xd0, 0x07, 1, 1],
        Kind::Decimal => b"1",
        Kind::Binary => &[0; 16],
        Kind::Bytes | Kind::Text | Kind::Other => b"x",
    };
    if decode(kind, bytes, &mut cell).is_none() {
        return Cell::Other(type_info.name().to_owned());
    }
    cell
}

/// Reads a value of this kind; nothing where it is none.
fn decode(kind: Kind, bytes: &[u8], cell: &mut Cell) -> Option<()> {
    *cell = match kind {
        Kind::Flag => match signed(bytes)? {
            0 => Cell::Bool(false),
            1 => Cell::Bool(true),
            // The display width is no promise: it may hold any small number.
            number => Cell::Int(number),
        },
        Kind::Signed => Cell::Int(signed(bytes)?),
        Kind::Unsigned => whole(unsigned(bytes)?),
        Kind::Bit => match bytes {
            [0] => Cell::Bool(false),
            [1] => Cell::Bool(true),
            bytes if bytes.len() <= 8 => {
                whole(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            _ => return None,
        },
        Kind::Float => Cell::Float(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        Kind::Double => Cell::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Decimal => Cell::Decimal(std::str::from_utf8(bytes).ok()?.to_owned()),
        Kind::Instant => time(bytes)?.map_or(Cell::BeyondTime, |at| Cell::Instant(at.and_utc())),
        Kind::Naive => time(bytes)?.map_or(Cell::BeyondTime, Cell::Naive),
        Kind::Binary if bytes.len() == 16 => Cell::Uuid(Uuid::from_slice(bytes).ok()?),
        Kind::Binary | Kind::Bytes | Kind::Text => return text(bytes, cell),
        Kind::Other => return None,
    };
    Some(())
}

fn signed(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        1 => i8::from_le_bytes(bytes.try_into().ok()?).into(),
        2 => i16::from_le_bytes(bytes.try_into().ok()?).into(),
        4 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        8 => i64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    let known = matches!(bytes.len(), 1 | 2 | 4 | 8);
    known.then(|| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// A whole number from 0: in the type that holds it.
fn whole(number: u64) -> Cell {
    i64::try_from(number).map_or_else(|_| Cell::Decimal(number.to_string()), Cell::Int)
}

/// Reuses the text that is there already.
fn text(bytes: &[u8], cell: &mut Cell) -> Option<()> {
    let text = std::str::from_utf8(bytes).ok()?;
    match cell {
        Cell::Text(old) => {
            old.clear();
            old.push_str(text);
        }
        _ => *cell = Cell::Text(text.to_owned()),
    }
    Some(())
}

/// A date and time of day: its length, year, month, day, and where they are not zero hour, minute, second and microseconds. The
/// inner nothing is a date that no calendar has, such as zero.
fn time(bytes: &[u8]) -> Option<Option<NaiveDateTime>> {
    let (length, rest) = bytes.split_first()?;
    if rest.len() != usize::from(*length) || !matches!(length, 0 | 4 | 7 | 11) {
        return None;
    }
    let at = |place: usize| rest.get(place).copied().unwrap_or(0);
    let micros = u32::from_le_bytes([at(7), at(8), at(9), at(10)]);
    let year = u16::from_le_bytes([at(0), at(1)]);
    let date = NaiveDate::from_ymd_opt(year.into(), at(2).into(), at(3).into());
    Some(
        date.filter(|_| year > 0)
            .and_then(|date| date.and_hms_micro_opt(at(4).into(), at(5).into(), at(6).into(), micros)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(kind: Kind, bytes: &[u8]) -> Option<Cell> {
        let mut cell = Cell::Null;
        decode(kind, bytes, &mut cell).map(|()| cell)
    }

    #[test]
    fn whole_numbers_keep_their_value_whatever_their_width() {
        for (kind, bytes, expected) in [
            (Kind::Signed, &[0xff][..], Cell::Int(-1)),
            (Kind::Unsigned, &[0xff], Cell::Int(255)),
            (Kind::Signed, &[0, 0x80], Cell::Int(-32_768)),
            (Kind::Signed, &i64::MIN.to_le_bytes(), Cell::Int(i64::MIN)),
            (Kind::Unsigned, &u64::MAX.to_le_bytes(), Cell::Decimal(u64::MAX.to_string())),
            (Kind::Unsigned, &7u32.to_le_bytes(), Cell::Int(7)),
            (Kind::Flag, &[1], Cell::Bool(true)),
            (Kind::Flag, &[3], Cell::Int(3)),
            (Kind::Bit, &[1], Cell::Bool(true)),
            (Kind::Bit, &[1, 0], Cell::Int(256)),
        ] {
            assert_eq!(decoded(kind, bytes), Some(expected), "{kind:?} {bytes:?}");
        }
    }

    #[test]
    fn times_that_are_none_are_beyond_time_and_not_null() {
        let naive = |text: &str| Some(Cell::Naive(text.parse().unwrap()));
        let micros = 250_000u32.to_le_bytes();
        let full = [&[11, 0xea, 0x07, 11, 1, 10, 30, 59][..], &micros].concat();
        assert_eq!(decoded(Kind::Naive, &full), naive("2026-11-01T10:30:59.25"));
        assert_eq!(decoded(Kind::Naive, &full[..8]), None);
        assert_eq!(decoded(Kind::Naive, &[4, 0xea, 0x07, 11, 1]), naive("2026-11-01T00:00:00"));
        for none in [
            &[0][..],
            &[4, 0, 0, 0, 0],
            &[4, 0xea, 0x07, 0, 1],
            &[7, 0xea, 0x07, 2, 30, 1, 1, 1],
            &[4, 0, 0, 1, 1],
        ] {
            assert_eq!(decoded(Kind::Naive, none), Some(Cell::BeyondTime), "{none:?}");
            assert_eq!(decoded(Kind::Instant, none), Some(Cell::BeyondTime), "{none:?}");
        }
    }

    #[test]
    fn nothing_panics() {
        let kinds = [
            Kind::Flag,
            Kind::Signed,
            Kind::Unsigned,
            Kind::Bit,
            Kind::Float,
            Kind::Double,
            Kind::Decimal,
            Kind::Instant,
            Kind::Naive,
            Kind::Binary,
            Kind::Bytes,
            Kind::Text,
            Kind::Other,
        ];
        for kind in kinds {
            for length in 0..20 {
                for fill in [0, 1, 11, 0x7f, 0xff] {
                    let _ = decoded(kind, &vec![fill; length]);
                }
            }
        }
    }

    #[test]
    fn bytes_are_a_uuid_or_text_or_nothing() {
        assert_eq!(decoded(Kind::Binary, &[1; 16]), Some(Cell::Uuid(Uuid::from_bytes([1; 16]))));
        assert_eq!(decoded(Kind::Bytes, b"ntf:1"), Some(Cell::Text("ntf:1".into())));
        assert_eq!(decoded(Kind::Bytes, &[0xff; 16]), None);
    }
}
