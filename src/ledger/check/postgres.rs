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
    collect(plan.as_ref().unwrap_or(&Value::Null), &Above::default(), &mut found);
    let mut scans = Vec::new();
    for SeqScan { schema, table, columns } in found {
        let sql = "select c.reltuples::float8 as n, c.oid::regclass::text as name from pg_class c join pg_namespace s on s.oid = c.relnamespace
                    where s.nspname = any($1) and c.relname = any($2)";
        let names = [schema, table.clone()].map(|name| crate::ledger::binds::Bind::List(vec![name]));
        let rows = postgres.fetch("plan", sql.into(), names.into()).await?;
        let rows_in_it = rows.first().and_then(|row| row.try_get::<f64, _>("n").ok()).unwrap_or(-1.0);
        let name = rows.first().and_then(|row| row.try_get("name").ok()).unwrap_or(table);
        let is_large = rows_in_it >= LARGE;
        let indexes = columns
            .iter()
            .map(|columns| format!("create index concurrently on {name} ({columns})"))
            .collect();
        let table = if is_large { format!("{name} (about {rows_in_it:.0} rows)") } else { name };
        scans.push(Scan { table, is_large, indexes });
    }
    Ok(scans)
}

/// A sequential scan, and the columns of indexes that would save it.
#[derive(Debug, PartialEq, Eq)]
struct SeqScan {
    schema: String,
    table: String,
    columns: Vec<String>,
}

/// What is done above a node of a plan.
#[derive(Clone, Debug, Default)]
struct Above {
    /// What the rows are sorted by.
    order: Vec<String>,
    /// By what they are joined.
    joins: String,
}

/// Each sequential scan, anywhere in the plan.
fn collect(node: &Value, above: &Above, found: &mut Vec<SeqScan>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| collect(node, above, found)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            if text("Node Type").is_some_and(|kind| kind.ends_with("Seq Scan"))
                && let Some((schema, table)) = text("Schema").zip(text("Relation Name"))
            {
                let alias = text("Alias").unwrap_or_else(|| table.clone());
                let columns = wanted_index(&alias, above, &text("Filter").unwrap_or_default());
                found.push(SeqScan { schema, table, columns });
            }
            let mut below = above.clone();
            if let Some(keys) = fields.get("Sort Key").and_then(Value::as_array) {
                below.order = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            }
            for join in ["Hash Cond", "Merge Cond", "Join Filter"].into_iter().filter_map(text) {
                below.joins += &join;
            }
            for name in ["Plan", "Plans"] {
                fields.get(name).into_iter().for_each(|node| collect(node, &below, found));
            }
        }
        _ => {}
    }
}

/// The columns of indexes for a scan: together those that its rows are sorted by, where the condition is about them too; else each that
/// the condition names, or where there is none, each that it is joined by.
fn wanted_index(alias: &str, above: &Above, condition: &str) -> Vec<String> {
    let Above { order, joins } = above;
    let of_condition = columns_of(alias, condition);
    let sorted: Vec<String> = order.iter().flat_map(|key| columns_of(alias, key)).collect();
    let is_cursor = !sorted.is_empty()
        && sorted.len() == order.len()
        && sorted.iter().all(|column| of_condition.contains(column));
    match is_cursor {
        true => vec![sorted.join(", ")],
        false if of_condition.is_empty() => columns_of(alias, joins),
        false => of_condition,
    }
}

/// The columns of this table in an expression of a plan, each once, quoted as they are there.
fn columns_of(alias: &str, expression: &str) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    // What stands in strings is left out.
    let expression = expression.split('\'').step_by(2).collect::<Vec<_>>().join("''");
    for (at, _) in expression.match_indices(&format!("{alias}.")) {
        let is_whole =
            !expression[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
        let rest = &expression[at + alias.len() + 1..];
        let end = match rest.strip_prefix('"') {
            Some(inner) => inner.find('"').map(|end| end + 2),
            None => Some(rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())),
        };
        let column = end.and_then(|end| rest.get(..end)).filter(|column| is_whole && !column.is_empty());
        if let Some(column) = column.filter(|column| !columns.iter().any(|known| known == column)) {
            columns.push(column.to_owned());
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plan_tells_which_index_is_missing() {
        let of = |plan: Value| {
            let mut found = Vec::new();
            collect(&plan, &Above::default(), &mut found);
            found.remove(0).columns
        };
        let scan = |condition: &str| json!({ "Node Type": "Seq Scan", "Schema": "app", "Relation Name": "notes", "Alias": "n", "Filter": condition });
        assert_eq!(
            of(json!([{ "Plan": { "Node Type": "Limit", "Plans": [
                { "Node Type": "Sort", "Sort Key": ["n.made_at", "n.id"], "Plans": [scan("(ROW(n.made_at, n.id) > ROW('x', 'y'))")] }] } }])),
            ["made_at, id"]
        );
        assert_eq!(
            of(scan("((n.id = ANY ('{n.body}'::text[])) OR (n.\"Key\" = ANY ('{}'::text[])) OR (an.x = 1))")),
            ["id", "\"Key\""]
        );
        assert_eq!(of(json!({ "Hash Cond": "(m.id = n.of)", "Plans": [scan("")] })), ["of"]);
        assert_eq!(of(json!({ "Plans": [scan("")] })), [""; 0]);
    }
}
