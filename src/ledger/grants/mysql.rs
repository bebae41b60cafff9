//! MySQL's and MariaDB's part of the grants.

use super::{Grants, Note, Relation, Whose, functions, tables, wanted};
use crate::ledger::{LedgerError, binds::Bind, mysql::MysqlReader, position::Value, sql::names::TableName};
use sqlx::{Row, mysql::MySqlRow};
use std::collections::BTreeMap;

/// The columns of a table that this role can see.
const COLUMNS: &str = "
    select c.table_schema as in_schema, c.table_name as of_table, c.column_name as is_named, c.column_key as in_key, t.table_type as is_a,
           v.security_type as reads_as
      from information_schema.columns c
      join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
      left join information_schema.views v on v.table_schema = c.table_schema and v.table_name = c.table_name
     where c.table_schema = coalesce(nullif(?, ''), database()) and c.table_name = ?
     order by c.ordinal_position";

/// The functions of the database.
const FUNCTIONS: &str = "
    select routine_schema as in_schema, routine_name as is_named, security_type as reads_as
      from information_schema.routines where routine_type = 'FUNCTION' and routine_schema = database() limit 10000";

/// The rights that this account needs: `name`, or `name@host`.
pub async fn grants(whose: Whose<'_>, mysql: &MysqlReader, role: &str) -> Result<Grants, LedgerError> {
    let (name, host) = role.rsplit_once('@').unwrap_or((role, "%"));
    let role = format!("{}@{}", text(name), text(host));
    let queries = whose.named();
    let mut relations = BTreeMap::new();
    for table in tables(&queries) {
        if let Some(relation) = relation(mysql, &table).await? {
            relations.insert(table, relation);
        }
    }
    let (wanted, mut notes) = wanted(&queries, &relations)?;
    let mut statements = Vec::new();
    for ((schema, table), (relation, columns)) in &wanted {
        let columns: Vec<String> = relation
            .columns
            .iter()
            .filter(|column| columns.contains(*column))
            .map(|column| quoted(column))
            .collect();
        let (columns, on) = (columns.join(", "), format!("{}.{}", quoted(schema), quoted(table)));
        statements.push(format!("grant select ({columns}) on {on} to {role};"));
    }
    let called = functions(&queries);
    for row in mysql.fetch("grants", FUNCTIONS.into(), &[], Vec::new()).await? {
        let (Some(schema), Some(name)) = (field(&row, "in_schema"), field(&row, "is_named")) else {
            continue;
        };
        if !called.iter().any(|called| called.eq_ignore_ascii_case(&name)) {
            continue;
        }
        statements.push(format!(
            "grant execute on function {}.{} to {role};",
            quoted(&schema),
            quoted(&name)
        ));
        if field(&row, "reads_as").is_some_and(|reads_as| reads_as == "INVOKER") {
            let text = format!(
                "`{name}` reads with the rights of whoever calls it: what it reads can't be told from here"
            );
            notes.insert(Note::open(text));
        }
    }
    notes.insert(Note::known(format!(
        "the account has to be there: create user if not exists {role}; for another host write --role {name}@HOST"
    )));
    let rows = mysql.fetch("grants", "select database() as is_named".into(), &[], Vec::new()).await?;
    let database = rows.first().and_then(|row| field(row, "is_named")).unwrap_or_default();
    Ok(Grants { database, role, statements, notes: notes.into_iter().collect() })
}

async fn relation(mysql: &MysqlReader, table: &TableName) -> Result<Option<Relation>, LedgerError> {
    let text = |text: &str| Bind::Value(Value::Text(text.into()));
    let values = vec![text(table.schema.as_deref().unwrap_or_default()), text(&table.name)];
    let rows = mysql.fetch("grants", COLUMNS.into(), &[], values).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let columns = |is_wanted: &dyn Fn(&MySqlRow) -> bool| {
        rows.iter().filter(|row| is_wanted(row)).filter_map(|row| field(row, "is_named")).collect()
    };
    Ok(Some(Relation {
        schema: field(first, "in_schema").unwrap_or_default(),
        name: field(first, "of_table").unwrap_or_default(),
        columns: columns(&|_| true),
        key: columns(&|row| field(row, "in_key").is_some_and(|key| key == "PRI")),
        is_view: field(first, "is_a").is_some_and(|kind| kind.contains("VIEW")),
        is_invokers: field(first, "reads_as").is_some_and(|reads_as| reads_as == "INVOKER"),
    }))
}

/// A text of a row, whatever its type there.
fn field(row: &MySqlRow, name: &str) -> Option<String> {
    row.try_get_unchecked::<Option<String>, _>(name).ok().flatten()
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn text(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"))
}
