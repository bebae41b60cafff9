//! A look at a few rows: at times, statuses and routes, and at no other column.

use super::{
    facts::{ColumnFact, Kind, Table},
    source::{Source, quoted},
};
use crate::{
    clock,
    ledger::{LedgerError, sql::Dialect},
};
use chrono::{DateTime, NaiveDateTime, Utc};

/// How many rows are looked at.
pub const ROWS: usize = 2_000;

/// How many different words a status or a route has at most.
pub const MOST_WORDS: usize = 30;

/// How a column writes its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// As its type says.
    ByType,
    /// Without a zone. `true` where the newest lies so far ahead that UTC can't be meant.
    Naive(bool),
    /// Whole or decimal seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// ISO 8601 with an offset.
    Iso,
    /// The rows do not tell; there may be none.
    Unclear,
}

/// A word that a column has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The word; nothing for NULL.
    pub word: Option<String>,
    /// In how many rows of the sample.
    pub rows: u64,
}

/// The name of a table as it stands in SQL.
pub fn table_name(schema: Option<&str>, table: &str, dialect: Dialect) -> String {
    let table = quoted(table, dialect);
    schema.map_or_else(|| table.clone(), |schema| format!("{}.{table}", quoted(schema, dialect)))
}

/// Some rows of a column, the last by the primary key.
fn some(schema: Option<&str>, table: &Table, column: &ColumnFact, dialect: Dialect) -> String {
    let order =
        table.key().map_or_else(String::new, |key| format!(" order by {} desc", quoted(&key.name, dialect)));
    format!(
        "select {} as v from {}{order} limit {ROWS}",
        quoted(&column.name, dialect),
        table_name(schema, &table.name, dialect)
    )
}

fn as_text(value: &str, dialect: Dialect) -> String {
    let text = if dialect == Dialect::Mysql { "char" } else { "text" };
    format!("cast({value} as {text})")
}

/// The words of a column, the most frequent first; nothing where they are too many to be a status or a route.
///
/// # Errors
/// When it can't be read.
pub async fn words(
    source: &Source,
    schema: Option<&str>,
    table: &Table,
    column: &ColumnFact,
) -> Result<Option<Vec<Said>>, LedgerError> {
    let dialect = source.dialect();
    let (text, inner) = (as_text("v", dialect), some(schema, table, column, dialect));
    let count = as_text("count(*)", dialect);
    let sql = format!(
        "select {text}, {count} from ({inner}) as seen group by v order by count(*) desc, 1 limit {}",
        MOST_WORDS + 1
    );
    let rows = source.texts(&sql, &[]).await?;
    if rows.len() > MOST_WORDS {
        return Ok(None);
    }
    let said = rows.into_iter().map(|row| {
        let mut fields = row.into_iter();
        let word = fields.next().flatten();
        Said { word, rows: fields.next().flatten().and_then(|text| text.parse().ok()).unwrap_or(0) }
    });
    Ok(Some(said.collect()))
}

/// How a column writes its times.
///
/// # Errors
/// When it can't be read.
pub async fn written(
    source: &Source,
    schema: Option<&str>,
    table: &Table,
    column: &ColumnFact,
) -> Result<Written, LedgerError> {
    if column.kind == Kind::Instant {
        return Ok(Written::ByType);
    }
    let dialect = source.dialect();
    let (text, inner) = (as_text("v", dialect), some(schema, table, column, dialect));
    let sql = format!("select {text} from ({inner}) as seen where v is not null limit 200");
    let texts: Vec<String> = source.texts(&sql, &[]).await?.into_iter().flatten().flatten().collect();
    Ok(of_texts(&texts, column.kind, clock::now()))
}

/// What these values of a column are.
fn of_texts(texts: &[String], kind: Kind, now: DateTime<Utc>) -> Written {
    if texts.is_empty() {
        return if kind == Kind::Naive { Written::Naive(false) } else { Written::Unclear };
    }
    let numbers: Vec<f64> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    if numbers.len() == texts.len() {
        let within = |low: f64, high: f64| numbers.iter().all(|number| (low..high).contains(number));
        // From 2001 to 2128, in either unit.
        return match () {
            () if within(1e9, 5e9) => Written::Seconds,
            () if within(1e12, 5e12) => Written::Millis,
            () => Written::Unclear,
        };
    }
    let forms = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];
    let naive = |text: &String| forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    if texts.iter().all(|text| DateTime::parse_from_rfc3339(text).is_ok()) {
        return Written::Iso;
    }
    let times: Vec<NaiveDateTime> = texts.iter().filter_map(naive).collect();
    if times.len() == texts.len() {
        let newest = times.into_iter().max().map(|newest| newest.and_utc() - now);
        return Written::Naive(newest.is_some_and(|ahead| ahead.num_minutes() > 10));
    }
    Written::Unclear
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_tell_how_a_time_is_written() {
        let now: DateTime<Utc> = "2026-03-01T10:00:00Z".parse().unwrap();
        for (texts, kind, expected) in [
            (&["1772359200.25", "1772359100"][..], Kind::Number, Written::Seconds),
            (&["1772359200250"], Kind::Integer(8), Written::Millis),
            (&["7"], Kind::Integer(8), Written::Unclear),
            (&["2026-03-01T09:00:00.123Z"], Kind::Text, Written::Iso),
            (&["2026-03-01 09:00:00"], Kind::Naive, Written::Naive(false)),
            (&["2026-03-01 11:00:00.5", "2026-03-01 08:00:00"], Kind::Naive, Written::Naive(true)),
            (&["yesterday"], Kind::Text, Written::Unclear),
            (&[], Kind::Naive, Written::Naive(false)),
            (&[], Kind::Text, Written::Unclear),
        ] {
            let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
            assert_eq!(of_texts(&texts, kind, now), expected, "{texts:?}");
        }
    }
}
