//! A statement with its values bound: a placeholder for each value of a list.

use super::super::{LedgerError, binds::Bind, position::Value};
use sqlx::{AssertSqlSafe, MySql, mysql::MySqlArguments, query::Query};
use uuid::Uuid;

/// The most values of lists in one statement: the protocol has room for 65,535 placeholders.
const MOST_VALUES: usize = 20_000;

/// The statement of this SQL. `lists` says where the placeholders of lists are. It is prepared for this once, and not kept.
///
/// # Errors
/// When a list is too long, or a value can't be compared without loss.
pub fn of(
    name: &'static str,
    sql: &str,
    lists: &[usize],
    values: Vec<Bind>,
) -> Result<Query<'static, MySql, MySqlArguments>, LedgerError> {
    let failed = |reason: String| LedgerError::Query { query: name, reason };
    let lengths: Vec<usize> = values.iter().filter_map(length).collect();
    if lengths.iter().sum::<usize>() > MOST_VALUES {
        return Err(failed(format!("more than {MOST_VALUES} ids and keys in one statement")));
    }
    // The one place where text from the configuration becomes SQL. It is the operator's own, and runs read-only.
    let query = sqlx::query(AssertSqlSafe(with_places(sql, lists, &lengths))).persistent(false);
    values.into_iter().try_fold(query, |query, value| {
        Ok(match value {
            // Nothing is in a list of NULL alone.
            Bind::List(texts) if texts.is_empty() => query.bind(None::<String>),
            Bind::List(texts) => texts.into_iter().fold(query, Query::bind),
            Bind::Uuids(uuids) if uuids.is_empty() => query.bind(None::<String>),
            Bind::Uuids(uuids) => uuids.into_iter().fold(query, |query: Query<'_, _, _>, uuid: Uuid| query.bind(uuid)),
            Bind::Int(number) => query.bind(number),
            Bind::Instant(at) => query.bind(at),
            Bind::Null => query.bind(None::<String>),
            Bind::Value(value) => match value {
                Value::Int(number) => query.bind(number),
                Value::Uuid(uuid) => query.bind(uuid),
                Value::Text(text) => query.bind(String::from(text)),
                Value::Decimal(text) => match text.parse::<u64>() {
                    Ok(number) => query.bind(number),
                    Err(_) if is_exact(&text) => query.bind(String::from(text)),
                    Err(_) => {
                        let reason = "a decimal number of more than 15 digits is compared with loss here: give the cursor's column \
                                      as a whole number, a datetime or text";
                        return Err(failed(reason.into()));
                    }
                },
                Value::Float(number) => query.bind(number),
                Value::Instant(at) => query.bind(at),
                Value::Naive(at) => query.bind(at),
            },
        })
    })
}

fn length(value: &Bind) -> Option<usize> {
    match value {
        Bind::List(texts) => Some(texts.len()),
        Bind::Uuids(uuids) => Some(uuids.len()),
        _ => None,
    }
}

/// A text is compared with a decimal number as a floating-point number: these hold it without loss.
fn is_exact(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit);
    digits.skip_while(|digit| *digit == b'0').count() <= 15 || {
        let number: String = text.chars().filter(char::is_ascii_digit).collect();
        number.parse::<u64>().is_ok_and(|number| number < 1 << 53)
    }
}

/// The SQL with as many placeholders for each list as it has values.
fn with_places(sql: &str, lists: &[usize], lengths: &[usize]) -> String {
    let mut text = String::with_capacity(sql.len() + 2 * lengths.iter().sum::<usize>());
    let mut copied = 0;
    for (place, length) in lists.iter().zip(lengths) {
        text.push_str(&sql[copied..=*place]);
        for _ in 1..*length {
            text.push_str(",?");
        }
        copied = place + 1;
    }
    text.push_str(&sql[copied..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_placeholder_for_each_value_and_one_for_none() {
        let sql = "select '?' where a in (?) or b in (?) limit ?";
        let lists: Vec<usize> = sql.match_indices("(?)").map(|(at, _)| at + 1).collect();
        assert_eq!(with_places(sql, &lists, &[3, 0]), "select '?' where a in (?,?,?) or b in (?) limit ?");
        assert_eq!(with_places("select ?", &[], &[]), "select ?");
    }

    #[test]
    fn a_decimal_number_that_would_be_rounded_is_told() {
        for (text, exact) in [
            ("1796039970.250000", true),
            ("-0.000001", true),
            ("9007199254740991", true),
            ("1796039970.250000001", false),
        ] {
            assert_eq!(is_exact(text), exact, "{text}");
        }
    }

    #[test]
    fn too_many_values_are_refused() {
        let error =
            of("lookup", "?", &[0], vec![Bind::List(vec!["x".into(); MOST_VALUES + 1])]).err().unwrap();
        assert!(error.to_string().contains("more than 20000"), "{error}");
    }
}
