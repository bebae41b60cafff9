//! Running statements: one text for both databases, values apart from it, many rows at a time.

use super::fault::Fault;
use sqlx::{
    AnyConnection, AssertSqlSafe,
    any::{AnyArguments, AnyRow},
};

/// A value of a statement. Both databases have integers and text, and nothing else is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(Some(value))
    }
}

impl From<Option<String>> for Value {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

/// Values of a statement, in the order of its placeholders.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::statement::Value::from($value)),*] };
}
pub(super) use values;

/// Rows in one statement. Few sizes, so that each connection prepares few statements; the largest keeps well below the limit of
/// 32,766 values of a statement in SQLite.
const SIZES: [usize; 4] = [128, 32, 8, 1];

/// Every text here is made of the crate's own words and placeholders; what comes from outside is in the values alone.
fn prepared(text: String, values: Vec<Value>) -> sqlx::query::Query<'static, sqlx::Any, AnyArguments> {
    let mut query = sqlx::query(AssertSqlSafe(text));
    for value in values {
        query = match value {
            Value::Int(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
        };
    }
    query
}

/// Runs a statement; answers the number of rows that it touched.
pub(super) async fn execute(
    conn: &mut AnyConnection,
    text: impl Into<String>,
    values: Vec<Value>,
) -> Result<u64, Fault> {
    Ok(prepared(text.into(), values).execute(conn).await?.rows_affected())
}

/// Runs a query.
pub(super) async fn fetch(
    conn: &mut AnyConnection,
    text: impl Into<String>,
    values: Vec<Value>,
) -> Result<Vec<AnyRow>, Fault> {
    Ok(prepared(text.into(), values).fetch_all(conn).await?)
}

/// Runs a query without values, in a single round trip.
pub(super) async fn fetch_simple(
    conn: &mut AnyConnection,
    text: impl Into<String>,
) -> Result<Vec<AnyRow>, Fault> {
    Ok(sqlx::raw_sql(AssertSqlSafe(text.into())).fetch_all(conn).await?)
}

/// Runs statements that have no values and no answer.
pub(super) async fn run(conn: &mut AnyConnection, text: impl Into<String>) -> Result<(), Fault> {
    sqlx::raw_sql(AssertSqlSafe(text.into())).execute(conn).await?;
    Ok(())
}

/// Runs `head ($n, ...) tail` for keys in few statements; values of `head` come first.
pub(super) async fn fetch_in(
    conn: &mut AnyConnection,
    head: &str,
    tail: &str,
    first: &[Value],
    keys: &[String],
) -> Result<Vec<AnyRow>, Fault> {
    let mut rows = Vec::new();
    for chunk in keys.chunks(SIZES[0]) {
        let size = SIZES.into_iter().rev().find(|size| *size >= chunk.len()).unwrap_or(SIZES[0]);
        // A repeated key changes no answer, and keeps the number of different texts small.
        let last = chunk.last().cloned();
        let padded = chunk.iter().cloned().chain(last.into_iter().cycle()).take(size);
        let values = first.iter().cloned().chain(padded.map(Value::from)).collect();
        let text = format!("{head} {} {tail}", row_of_placeholders(first.len(), size));
        rows.extend(fetch(conn, text, values).await?);
    }
    Ok(rows)
}

/// Runs `head VALUES ... tail` for rows of one width, in few statements.
pub(super) async fn fetch_values(
    conn: &mut AnyConnection,
    head: &str,
    tail: &str,
    rows: Vec<Vec<Value>>,
) -> Result<Vec<AnyRow>, Fault> {
    let mut answers = Vec::new();
    let mut left = rows.into_iter().peekable();
    while let Some(width) = left.peek().map(Vec::len) {
        let size = SIZES.into_iter().find(|size| *size <= left.len()).unwrap_or(1);
        let values: Vec<Value> = left.by_ref().take(size).flatten().collect();
        let places: Vec<String> = (0..size).map(|row| row_of_placeholders(row * width, width)).collect();
        let text = format!("{head} VALUES {} {tail}", places.join(", "));
        answers.extend(fetch(conn, text, values).await?);
    }
    Ok(answers)
}

/// `($4, $5, $6)` for three placeholders after the first three.
fn row_of_placeholders(after: usize, width: usize) -> String {
    let places: Vec<String> = (after + 1..=after + width).map(|n| format!("${n}")).collect();
    format!("({})", places.join(", "))
}
