//! PostgreSQL's part of a check.

use super::{Rights, Scan};
use crate::ledger::{
    LedgerError,
    binds::{Binds, Prepared, locate},
    cell::Cell,
    postgres::{PostgresReader, sample},
};
use chrono::Utc;
use serde_json::Value;
use sqlx::{Column, Row};

/// From how many rows on, by the database's own estimate, reading all of a table hurts.
const LARGE: f64 = 10_000.0;

/// What can be written, the tables first. A superuser can write everything.
const RIGHTS: &str = "
    select current_user::text as role, what from (
        select 'everything: it is a superuser' as what, 0 as place from pg_roles where rolname = current_user and rolsuper
        union all
        (select 'the table ' || c.oid::regclass::text, 1
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where c.relkind in ('r', 'p', 'v', 'f') and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname !~ '^pg_t'
            and has_schema_privilege(n.oid, 'USAGE')
            and (has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') or has_any_column_privilege(c.oid, 'INSERT, UPDATE'))
          order by 1 limit 4)
        union all
        (select 'new objects in the schema ' || quote_ident(nspname), 2
           from pg_namespace where nspname !~ '^pg_' and has_schema_privilege(oid, 'CREATE') order by 1 limit 4)
    ) as writable order by place, what";

/// The version, for people.
pub async fn version(postgres: &PostgresReader) -> Result<String, LedgerError> {
    let rows = postgres
        .fetch("version", "select current_setting('server_version') as version".into(), Vec::new())
        .await?;
    let version = rows.first().and_then(|row| row.try_get::<String, _>("version").ok()).unwrap_or_default();
    Ok(format!("PostgreSQL {version}"))
}

/// What the role could write.
pub async fn rights(postgres: &PostgresReader) -> Result<Rights, LedgerError> {
    let role = postgres.fetch("rights", "select current_user::text as role".into(), Vec::new()).await?;
    let role = role.first().and_then(|row| row.try_get("role").ok()).unwrap_or_default();
    let rows = postgres.fetch("rights", RIGHTS.into(), Vec::new()).await?;
    Ok(Rights { role, writable: rows.iter().filter_map(|row| row.try_get("what").ok()).collect() })
}

/// The wanted columns of one row: a value of each column's type. There is a row whatever the query finds.
pub async fn row_of_types(
    postgres: &PostgresReader,
    prepared: &Prepared,
    binds: &Binds,
) -> Result<Option<Vec<Cell>>, LedgerError> {
    let sql = format!(
        "select w.* from (select 1) as one left join ({}\n) as w on true limit 1",
        prepared.query.sql
    );
    let rows = postgres.fetch(prepared.name, sql, binds.in_order(prepared, Utc::now())).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let present: Vec<&str> = row.columns().iter().map(Column::name).collect();
    let places = locate(prepared, &present)?;
    Ok(Some(places.into_iter().map(|place| sample(row.column(place).type_info())).collect()))
}

/// The tables that the plan reads from end to end.
pub async fn scans(
    postgres: &PostgresReader,
    prepared: &Prepared,
    binds: &Binds,
) -> Result<Vec<Scan>, LedgerError> {
    let sql = format!("explain (verbose, format json) {}", prepared.query.sql);
    let rows = postgres.fetch(prepared.name, sql, binds.in_order(prepared, Utc::now())).await?;
    let plan: Option<Value> = rows.first().and_then(|row| row.try_get(0).ok());
    let mut found = Vec::new();
    collect(plan.as_ref().unwrap_or(&Value::Null), &mut found);
    let mut scans = Vec::new();
    for (schema, table) in found {
        let sql = "select c.reltuples::float8 as n, c.oid::regclass::text as name from pg_class c join pg_namespace s on s.oid = c.relnamespace
                    where s.nspname = any($1) and c.relname = any($2)";
        let names = [schema, table.clone()].map(|name| crate::ledger::binds::Bind::List(vec![name]));
        let rows = postgres.fetch("plan", sql.into(), names.into()).await?;
        let rows_in_it = rows.first().and_then(|row| row.try_get::<f64, _>("n").ok()).unwrap_or(-1.0);
        let name = rows.first().and_then(|row| row.try_get("name").ok()).unwrap_or(table);
        let is_large = rows_in_it >= LARGE;
        let table = if is_large { format!("{name} (about {rows_in_it:.0} rows)") } else { name };
        scans.push(Scan { table, is_large });
    }
    Ok(scans)
}

/// Schema and name of each sequential scan, anywhere in the plan.
fn collect(node: &Value, found: &mut Vec<(String, String)>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| collect(node, found)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            if text("Node Type").is_some_and(|kind| kind.ends_with("Seq Scan")) {
                found.extend(text("Schema").zip(text("Relation Name")));
            }
            for name in ["Plan", "Plans"] {
                fields.get(name).into_iter().for_each(|node| collect(node, found));
            }
        }
        _ => {}
    }
}
