//! Which table is that of the notifications, and which that of the attempts.

use super::{
    facts::{ColumnFact, Table, singular},
    usual::{ACCEPTED, ATTEMPT_TABLES, NOTIFICATION_TABLES, SENT, STATUSES},
};

/// What tells two tables apart that could both be meant, or why none is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unrecognised(pub String);

/// Where to go on when the tables don't tell enough.
pub const BY_HAND: &str = "write the ledger by hand, from the nearest shape in config/shapes: see docs/ledger.md#when-init-does-not-know";

/// The first of these names that the table has with a type that fits.
pub fn pick<'a>(
    table: &'a Table,
    names: &[&str],
    fits: impl Fn(&ColumnFact) -> bool,
) -> Option<&'a ColumnFact> {
    names.iter().find_map(|name| table.column(name).filter(|column| fits(column)))
}

/// Whether a table is named like one of notifications, and could be one.
pub fn is_of_notifications(table: &Table) -> bool {
    let name = singular(&table.name);
    let is_usual =
        NOTIFICATION_TABLES.iter().any(|usual| name == *usual || name.ends_with(&format!("_{usual}")));
    is_usual && table.key().is_some() && pick(table, &ACCEPTED, |column| column.kind.is_time()).is_some()
}

/// The table of the notifications, where none is named, of those of this schema.
///
/// # Errors
/// When none or several could be it.
pub fn notifications<'a>(tables: &'a [Table], schema: &str) -> Result<&'a Table, Unrecognised> {
    let found: Vec<&Table> = tables.iter().filter(|table| is_of_notifications(table)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Unrecognised(format!(
            "no table of the schema `{schema}` looks like one of notifications, with a primary key of one column and a time such as \
             `created_at`: name it by --notifications. There are: {}. For another schema write --schema",
            list(tables.iter())
        ))),
        several => Err(Unrecognised(format!(
            "several tables look like ones of notifications: name yours by --notifications: {}",
            list(several.iter().copied())
        ))),
    }
}

/// The names of a table's columns.
pub fn columns(table: &Table) -> String {
    table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The names of tables, bounded.
pub fn list<'a>(tables: impl Iterator<Item = &'a Table>) -> String {
    let names: Vec<&str> = tables.map(|table| table.name.as_str()).take(40).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The table of the attempts of these notifications, where none is named: one that refers to them, or to what refers to them.
pub fn attempts<'a>(tables: &'a [Table], notifications: &Table) -> Option<&'a Table> {
    let is_usual = |table: &&Table| {
        let name = table.name.to_lowercase();
        let has_state = pick(table, &STATUSES, |c| c.kind.is_status())
            .or(pick(table, &SENT, |c| c.is_nullable))
            .is_some();
        table.name != notifications.name
            && has_state
            && ATTEMPT_TABLES.iter().any(|usual| name.contains(usual))
    };
    let refers = |table: &&Table| {
        table.refers_to(notifications).is_some()
            || tables.iter().any(|between| {
                between.name != table.name
                    && between.refers_to(notifications).is_some()
                    && table.refers_to(between).is_some()
            })
    };
    let found: Vec<&Table> = tables.iter().filter(is_usual).filter(refers).collect();
    // What others refer to is no attempt.
    found
        .iter()
        .copied()
        .find(|table| !found.iter().any(|other| other.name != table.name && other.refers_to(table).is_some()))
}

/// The table between notifications and attempts, where attempts refer to it and not to the notifications.
pub fn between<'a>(tables: &'a [Table], notifications: &Table, attempts: &Table) -> Option<&'a Table> {
    let is_it = |table: &&Table| {
        ![&notifications.name, &attempts.name].contains(&&table.name)
            && table.refers_to(notifications).is_some()
            && attempts.refers_to(table).is_some()
    };
    attempts.refers_to(notifications).is_none().then(|| tables.iter().find(is_it)).flatten()
}
