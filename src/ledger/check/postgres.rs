//! PostgreSQL's part of a check.

mod plan;

use super::{Rights, Scan};
use crate::{
    clock,
    ledger::{
        LedgerError,
        binds::{Bind, Binds, Prepared, locate},
        cell::Cell,
        postgres::{PostgresReader, sample},
    },
};
use plan::{WholeRead, whole_reads};
use serde_json::Value;
use sqlx::{Column, Row};
use std::collections::{BTreeMap, BTreeSet};

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

/// The tables that are read, by their names, and those of the tables that they are partitions of, with the rows that each has by the
/// database's own estimate. What is read by a partial index is left out: its condition is that of the index.
const TABLES: &str = "
    select w.place, coalesce(pg_partition_root(c.oid), c.oid)::regclass::text as name, greatest(c.reltuples, 0)::float8 as n,
           case when c.relispartition then c.oid::regclass::text end as part
      from unnest($1::text[], $2::text[], $3::text[]) with ordinality as w (schema_name, table_name, index_name, place)
      join pg_namespace s on s.nspname = w.schema_name
      join pg_class c on c.relnamespace = s.oid and c.relname = w.table_name
     where not exists (select 1 from pg_index i join pg_class x on x.oid = i.indexrelid
                        where i.indrelid = c.oid and x.relname = w.index_name and i.indpred is not null)
     order by w.place";

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
    let rows = postgres.fetch(prepared.name, sql, binds.in_order(prepared, clock::now())).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let present: Vec<&str> = row.columns().iter().map(Column::name).collect();
    let places = locate(prepared, &present)?;
    Ok(Some(places.into_iter().map(|place| sample(row.column(place).type_info())).collect()))
}

/// The tables that the plan reads from end to end, those with partitions once, by their parent.
pub async fn scans(
    postgres: &PostgresReader,
    prepared: &Prepared,
    binds: &Binds,
) -> Result<Vec<Scan>, LedgerError> {
    let sql = format!("explain (verbose, format json) {}", prepared.query.sql);
    let rows = postgres.fetch(prepared.name, sql, binds.in_order(prepared, clock::now())).await?;
    let plan: Option<Value> = rows.first().and_then(|row| row.try_get(0).ok());
    let reads = whole_reads(plan.as_ref().unwrap_or(&Value::Null));
    if reads.is_empty() {
        return Ok(Vec::new());
    }
    let list =
        |of: fn(&WholeRead) -> &str| Bind::List(reads.iter().map(|read| of(read).to_owned()).collect());
    let names = [list(|read| &read.schema), list(|read| &read.table), list(|read| &read.index)];
    let mut tables: BTreeMap<String, Whole<'_>> = BTreeMap::new();
    for row in postgres.fetch("plan", TABLES.into(), names.into()).await? {
        let place = row.try_get::<i64, _>("place").ok().and_then(|place| usize::try_from(place).ok());
        let read = place.and_then(|place| reads.get(place.checked_sub(1)?));
        let name = row.try_get::<String, _>("name").ok();
        if let Some((read, name)) = read.zip(name) {
            let whole = tables.entry(name).or_default();
            whole.rows += row.try_get::<f64, _>("n").unwrap_or(0.0);
            whole.conditions.insert(&read.condition);
            whole.indexes.insert(&read.index);
            whole.parts.extend(row.try_get::<Option<String>, _>("part").ok().flatten());
        }
    }
    Ok(tables.into_iter().map(|(name, whole)| scan(name, &whole)).collect())
}

/// What is read whole of one table.
#[derive(Default)]
struct Whole<'a> {
    rows: f64,
    conditions: BTreeSet<&'a str>,
    /// By which indexes; an empty name is by none.
    indexes: BTreeSet<&'a str>,
    /// Its partitions.
    parts: BTreeSet<String>,
}

/// How many partitions are told by their names.
const TOLD_PARTS: usize = 3;

fn scan(name: String, whole: &Whole<'_>) -> Scan {
    let Whole { rows, conditions, indexes, parts } = whole;
    let (is_large, is_partitioned) = (*rows >= LARGE, !parts.is_empty());
    let parts = match parts.len() {
        0 => String::new(),
        count => {
            let some: Vec<&str> = parts.iter().map(String::as_str).take(TOLD_PARTS).collect();
            let more = if count > TOLD_PARTS { ", …" } else { "" };
            format!(" in {count} of its partitions: {}{more}", some.join(", "))
        }
    };
    let indexes: Vec<String> = indexes
        .iter()
        .filter(|index| !index.is_empty())
        .take(TOLD_PARTS)
        .map(|index| format!("`{index}`"))
        .collect();
    let by = if indexes.is_empty() {
        String::new()
    } else {
        format!(", each entry of the index {}", indexes.join(", "))
    };
    let told: Vec<&str> = conditions.iter().copied().filter(|condition| !condition.is_empty()).collect();
    let condition = match told.as_slice() {
        [] => "without a condition".to_owned(),
        told => format!("by the condition {}", told.join(" and by ")),
    };
    let table =
        if is_large { format!("{name} (about {rows:.0} rows{parts}){by}, {condition}") } else { name };
    Scan { table, is_large, is_partitioned }
}
