//! Indexes that the queries need and the tables do not have.

use super::{
    facts::{IndexFact, Table},
    partitions,
    roles::{Attempts, Units},
    sample::table_name,
    source::quoted,
};
use crate::ledger::sql::Dialect;

/// The missing ones: the statements that would make each, and what it is for.
pub fn missing(
    units: &Units,
    attempts: Option<&Attempts>,
    schema: Option<&str>,
    dialect: Dialect,
) -> Vec<(Vec<String>, String)> {
    let mut missing = Vec::new();
    let mut need = |table: &Table, columns: &[&str], condition: Option<&str>, what_for: &str| {
        if !table.has_index(columns, condition) {
            missing.push((making(table, columns, schema, dialect), what_for.to_owned()));
        }
    };
    let accepted = units.accepted_at.column.name.as_str();
    if units.accepted_at.is_parents {
        let (table, key) = units.parent.as_ref().map_or((&units.table, "id"), |(parent, _)| {
            (parent, parent.key().map_or("id", |key| key.name.as_str()))
        });
        need(table, &[accepted, key], None, "for the stream of notifications");
    } else {
        need(&units.table, &[accepted, &units.key.name], None, "for the stream of notifications");
    }
    if let Some((_, column)) = &units.parent {
        need(&units.table, &[&column.name], None, "for the lookup of destinations");
    }
    if let Some(place) = &units.idempotency_key {
        let table =
            units.parent.as_ref().filter(|_| place.is_parents).map_or(&units.table, |(parent, _)| parent);
        need(table, &[&place.column.name], None, "for the lookup by idempotency key");
    }
    if let Some(attempts) = attempts {
        let at = attempts.ended.as_ref().unwrap_or(&attempts.at);
        let condition = attempts.ended.as_ref().map(|ended| ended.name.as_str());
        need(&attempts.table, &[&at.name, &attempts.key.name], condition, "for the stream of attempts");
        need(&attempts.table, &[&attempts.unit.name], None, "for the attempts of a notification");
    }
    let open = units.settled.as_ref().or(units.status.as_ref()).filter(|_| !units.accepted_at.is_parents);
    if let Some(column) = open {
        let helps = |index: &IndexFact| {
            index.condition.contains(&column.name)
                || index.condition == "partial"
                || index.columns.first() == Some(&column.name)
        };
        if !units.table.indexes.iter().any(helps) {
            let making = making(&units.table, &[&column.name, accepted], schema, dialect);
            missing.push((
                making,
                "for the pending query; one of just the open rows is smaller still".to_owned(),
            ));
        }
    }
    missing
}

fn making(table: &Table, columns_of: &[&str], schema: Option<&str>, dialect: Dialect) -> Vec<String> {
    let names: Vec<String> = columns_of.iter().map(|column| quoted(column, dialect)).collect();
    let (on, columns) = (table_name(schema, &table.name, dialect), names.join(", "));
    let statement = match dialect {
        Dialect::Postgres => match &table.partitioned {
            Some(with) => return partitions::making(&table.name, &on, &with.parts, columns_of),
            None => format!("create index concurrently on {on} ({columns})"),
        },
        Dialect::Mysql => format!("alter table {on} add index ({columns})"),
        Dialect::Sqlite => {
            let name = format!("{}_{}", table.name, names.join("_").replace('"', ""));
            format!("create index {} on {on} ({columns})", quoted(&name, dialect))
        }
    };
    vec![statement]
}
