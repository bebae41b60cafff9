//! What is bound to a query's parameters, and what a reading of it gives, the same for every database.

use super::{
    LedgerError,
    cell::{Cell, Misfit},
    position::{Position, Value},
    sql::{ListType, Parameter, Query},
    wanted::Wanted,
};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use uuid::Uuid;

/// The limits of one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// On reaching the database.
    pub connect: Duration,
    /// On one statement.
    pub statement: Duration,
    /// On waiting for a lock.
    pub lock: Duration,
}

impl Limits {
    /// The limits around a statement of this one.
    pub fn of(statement: Duration) -> Self {
        Self { connect: Duration::from_secs(3), statement, lock: statement.min(Duration::from_secs(2)) }
    }

    /// On all of it, whatever hangs.
    pub fn total(&self) -> Duration {
        self.connect + self.statement
    }
}

/// A query with its name and its columns.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its name in errors: `lookup` or `pending`.
    pub name: &'static str,
    /// The SQL.
    pub query: Query,
    /// The columns that are read.
    pub wanted: Wanted,
    /// Most rows that are read.
    pub max_rows: usize,
}

/// The values of one reading.
#[derive(Clone, Debug, Default)]
pub struct Binds {
    /// `:ids`.
    pub ids: Vec<String>,
    /// `:keys`.
    pub keys: Vec<String>,
    /// `:overlap`.
    pub overlap: Duration,
    /// `:after_ts` and `:after_id`. Where it is missing they are NULL, behind which nothing comes.
    pub after: Option<Position>,
    /// `:from_ts`; NULL where it is missing.
    pub from: Option<Value>,
    /// `:until_ts`; NULL where it is missing.
    pub until: Option<Value>,
}

/// One bound value.
#[derive(Clone, Debug, PartialEq)]
pub enum Bind {
    /// A list of texts.
    List(Vec<String>),
    /// A list of UUIDs that are bytes.
    Uuids(Vec<Uuid>),
    /// A whole number.
    Int(i64),
    /// An instant.
    Instant(DateTime<Utc>),
    /// A value in the type in which it was read.
    Value(Value),
    /// NULL of whatever type is wanted there.
    Null,
}

impl Binds {
    /// The values of the query's parameters, in their order. `now` is our time.
    pub fn in_order(&self, prepared: &Prepared, now: DateTime<Utc>) -> Vec<Bind> {
        let list = |parameter, texts: &[String]| {
            let list_type = prepared.query.list_types.get(&parameter).copied();
            if list_type == Some(ListType::UuidBytes) {
                return Bind::Uuids(texts.iter().filter_map(|text| Uuid::parse_str(text).ok()).collect());
            }
            Bind::List(texts.iter().filter_map(|text| as_list_type(text, list_type)).collect())
        };
        let bind = |value: Option<&Value>| value.cloned().map_or(Bind::Null, Bind::Value);
        let value = |parameter: &Parameter| match parameter {
            Parameter::Ids => list(*parameter, &self.ids),
            Parameter::Keys => list(*parameter, &self.keys),
            // One more than is read shows whether the result was cut.
            Parameter::Limit => Bind::Int(i64::try_from(prepared.max_rows).unwrap_or(i64::MAX - 1) + 1),
            Parameter::Now => Bind::Instant(now),
            Parameter::NowMs => Bind::Int(now.timestamp_millis()),
            Parameter::Overlap => Bind::Int(i64::try_from(self.overlap.as_secs()).unwrap_or(i64::MAX)),
            Parameter::AfterTs => bind(self.after.as_ref().and_then(|after| after.at.as_ref())),
            Parameter::AfterId => bind(self.after.as_ref().map(|after| &after.id)),
            Parameter::FromTs => bind(self.from.as_ref()),
            Parameter::UntilTs => bind(self.until.as_ref()),
        };
        prepared.query.parameters.iter().map(value).collect()
    }
}

/// A text that is no value of the type would fail the whole query, and can't be in the ledger: it is left out.
fn as_list_type(text: &str, list_type: Option<ListType>) -> Option<String> {
    match list_type {
        None => Some(text.to_owned()),
        Some(ListType::Uuid | ListType::UuidBytes) => Uuid::parse_str(text).ok().map(|uuid| uuid.to_string()),
        Some(ListType::Integer(bytes)) => {
            let number: i64 = text.parse().ok()?;
            let bits = u32::from(bytes) * 8 - 1;
            let fits = number >= -(1i128 << bits) as i64 && i128::from(number) < 1i128 << bits;
            (fits && number.to_string() == text).then(|| text.to_owned())
        }
    }
}

/// Takes the rows of a reading, one after the other.
pub trait Rows: Send {
    /// A reading begins, at this time of ours. What was taken before belongs to one that failed, and is dropped.
    fn begin(&mut self, began_at: DateTime<Utc>);

    /// Takes the wanted columns of a row. They are overwritten by the next one.
    ///
    /// # Errors
    /// When they can't be read as configured: the reading ends.
    fn row(&mut self, cells: &[Cell]) -> Result<(), Misfit>;
}

impl Rows for Vec<Vec<Cell>> {
    fn begin(&mut self, _: DateTime<Utc>) {
        self.clear();
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), Misfit> {
        self.push(cells.to_vec());
        Ok(())
    }
}

/// What a reading gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The wanted columns of each row.
    pub rows: Vec<Vec<Cell>>,
    /// What is known of the reading itself.
    pub head: Head,
}

/// What is known of a reading beside its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many rows were taken.
    pub rows: usize,
    /// Whether there were more rows than are read.
    pub truncated: bool,
    /// Our time just before the statement began to read.
    pub began_at: DateTime<Utc>,
    /// How far the database is behind the truth. Zero for what is no replica.
    pub lag: Duration,
    /// The database's clock less ours, where it was measured.
    pub skew: Option<TimeDelta>,
}

/// The places of the wanted columns, found at the first row.
pub fn locate(prepared: &Prepared, present: &[&str]) -> Result<Vec<usize>, LedgerError> {
    prepared.wanted.locate(present).map_err(|misfit| LedgerError::misfit(prepared.name, misfit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sql::{Dialect, parse};

    fn bound(cast: &str, ids: &[&str]) -> Vec<Bind> {
        let sql = format!("select 1 where id = any(:ids{cast}) limit :limit");
        let query = parse(&sql, Dialect::Postgres, &[Parameter::Ids, Parameter::Limit]).unwrap();
        let prepared = Prepared { name: "lookup", query, wanted: Wanted::default(), max_rows: 10 };
        let binds = Binds { ids: ids.iter().map(|&id| id.to_owned()).collect(), ..Binds::default() };
        binds.in_order(&prepared, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn what_no_row_can_have_is_not_asked_for() {
        let (uuid, upper) = ("0193c1a0-0000-7000-8000-00000000000a", "0193C1A0-0000-7000-8000-00000000000A");
        for (cast, ids, sent) in [
            ("::uuid[]", vec![upper, "7", "urn"], vec![uuid]),
            (
                "::bigint[]",
                vec!["7", "-9223372036854775808", "9223372036854775808", "07", "x"],
                vec!["7", "-9223372036854775808"],
            ),
            ("::int[]", vec!["2147483647", "2147483648", "-2147483648"], vec!["2147483647", "-2147483648"]),
            ("::smallint[]", vec!["32768", "32767"], vec!["32767"]),
            ("", vec!["anything"], vec!["anything"]),
        ] {
            let sent: Vec<String> = sent.into_iter().map(Into::into).collect();
            assert_eq!(bound(cast, &ids), [Bind::List(sent), Bind::Int(11)], "{cast}");
        }
    }
}
