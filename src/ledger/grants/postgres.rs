//! PostgreSQL's part of the grants.

use super::{Grants, Note, Relation, Whose, functions, tables, wanted};
use crate::{
    clock,
    ledger::{
        LedgerError,
        binds::{Bind, Binds, Prepared},
        postgres::PostgresReader,
        sql::names::TableName,
    },
};
use serde_json::Value;
use sqlx::{Row, postgres::PgRow};
use std::collections::{BTreeMap, BTreeSet};

/// The relations that names mean here, by the path of the role that asks where no schema is written.
const RELATIONS: &str = "
    select asked.place, n.nspname::text as schema, c.relname::text as name, c.relkind in ('v', 'm') as is_view, c.relrowsecurity as has_policies,
           c.relkind = 'v' and exists (select from unnest(c.reloptions) as o where o ~* '^security_invoker=(true|on|yes|1)$') as is_invokers,
           array(select a.attname::text from pg_attribute a
                  where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns,
           array(select a.attname::text from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
                  where i.indrelid = c.oid and i.indisprimary) as key
      from unnest($1::text[], $2::text[]) with ordinality as asked (schema, name, place)
      join pg_class c on c.relname = asked.name and c.relkind in ('r', 'p', 'v', 'm', 'f')
      join pg_namespace n on n.oid = c.relnamespace
     where case when asked.schema = '' then pg_table_is_visible(c.oid) else n.nspname = asked.schema end";

/// Functions of these names that are not the server's own and that not everybody may call, or that read with the caller's rights.
const FUNCTIONS: &str = "
    select p.oid::regprocedure::text as name, quote_ident(n.nspname) as schema, p.prosecdef as is_owners, has_function_privilege('public', p.oid, 'execute') as is_open
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where p.proname = any($1) and n.nspname not in ('pg_catalog', 'information_schema') order by 1";

/// The tables of a plan that are neither named themselves nor parts of what is named.
const UNNAMED: &str = "
    with recursive up as (
        select c.oid as root, c.oid as at
          from unnest($1::text[], $2::text[]) as p (schema, name)
          join pg_namespace n on n.nspname = p.schema
          join pg_class c on c.relnamespace = n.oid and c.relname = p.name
        union
        select up.root, i.inhparent from up join pg_inherits i on i.inhrelid = up.at)
    select distinct up.root::regclass::text as name from up
     where not exists (select from up as u join pg_class c on c.oid = u.at join pg_namespace n on n.oid = c.relnamespace
                         join unnest($3::text[], $4::text[]) as k (schema, name) on k.schema = n.nspname and k.name = c.relname
                        where u.root = up.root)
     order by 1";

/// What the statements need of the server, with names as they are quoted there.
const PLACE: &str = "
    select quote_ident(current_database()) as database, quote_ident($1) as role, exists (select from pg_roles where rolname = $1) as is_there,
           array(select quote_ident(name) from unnest($2::text[]) with ordinality as q (name, place) order by place) as quoted";

/// The rights that this role needs.
pub async fn grants(whose: Whose<'_>, postgres: &PostgresReader, role: &str) -> Result<Grants, LedgerError> {
    let queries = whose.named();
    let (relations, mut notes) = relations(postgres, &tables(&queries)).await?;
    let (wanted, more) = wanted(&queries, &relations)?;
    notes.extend(more);
    let names: BTreeSet<String> = wanted
        .iter()
        .flat_map(|((schema, table), (_, columns))| [schema, table].into_iter().chain(columns).cloned())
        .collect();
    let place = Place::ask(postgres, role, &names).await?;
    let mut statements = vec![format!("grant connect on database {} to {};", place.database, place.role)];
    let called = vec![Bind::List(functions(&queries).into_iter().collect())];
    let called = asked(postgres, FUNCTIONS, called).await?;
    let mut schemas: BTreeSet<String> =
        wanted.keys().map(|(schema, _)| place.quoted(schema).to_owned()).collect();
    schemas.extend(called.iter().filter_map(|row| row.try_get("schema").ok()));
    statements
        .extend(schemas.iter().map(|schema| format!("grant usage on schema {schema} to {};", place.role)));
    for ((schema, table), (relation, columns)) in &wanted {
        // In the order that they have in the table.
        let columns: Vec<&str> =
            relation.columns.iter().filter(|c| columns.contains(*c)).map(|c| place.quoted(c)).collect();
        statements.push(format!(
            "grant select ({}) on {}.{} to {};",
            columns.join(", "),
            place.quoted(schema),
            place.quoted(table),
            place.role
        ));
    }
    for row in called {
        let name: String = row.try_get("name").unwrap_or_default();
        if !row.try_get("is_open").unwrap_or(true) {
            statements.push(format!("grant execute on function {name} to {};", place.role));
        }
        if !row.try_get("is_owners").unwrap_or(false) {
            let text = format!(
                "`{name}` may be called, and reads with the rights of whoever calls it: what it reads can't be told from here"
            );
            notes.insert(Note::open(text));
        }
    }
    if !place.is_there {
        notes
            .insert(Note::known(format!("there is no role {} here yet: create role {0} login;", place.role)));
    }
    for schema in unwritten(&tables(&queries), &relations) {
        let text = format!(
            "the queries write no schema, and some tables are in {0}: the role has to find it. alter role {1} set search_path = {0};",
            place.quoted(&schema),
            place.role
        );
        notes.insert(Note::known(text));
    }
    let known: Vec<&(String, String)> = wanted.keys().collect();
    if !wanted.values().any(|(relation, _)| relation.is_view) {
        notes.extend(unnamed(whose, postgres, &known).await?);
    }
    Ok(Grants { database: place.database, role: place.role, statements, notes: notes.into_iter().collect() })
}

/// The schemas beside the usual one that are to be found without being written.
fn unwritten(asked: &BTreeSet<TableName>, relations: &BTreeMap<TableName, Relation>) -> BTreeSet<String> {
    let bare = asked.iter().filter(|table| table.schema.is_none());
    let schemas = bare.filter_map(|table| relations.get(table)).map(|relation| relation.schema.clone());
    schemas.filter(|schema| schema != "public" && schema != "pg_catalog").collect()
}

/// The server's names, quoted.
struct Place {
    database: String,
    role: String,
    is_there: bool,
    quoted: BTreeMap<String, String>,
}

impl Place {
    async fn ask(
        postgres: &PostgresReader,
        role: &str,
        names: &BTreeSet<String>,
    ) -> Result<Self, LedgerError> {
        let names: Vec<String> = names.iter().cloned().collect();
        let role = Bind::Value(crate::ledger::position::Value::Text(role.into()));
        let rows = asked(postgres, PLACE, vec![role, Bind::List(names.clone())]).await?;
        let row = rows.first().ok_or_else(|| unreadable("no answer"))?;
        let text =
            |name: &str| row.try_get::<String, _>(name).map_err(|error| unreadable(&error.to_string()));
        let quoted: Vec<String> = row.try_get("quoted").map_err(|error| unreadable(&error.to_string()))?;
        Ok(Self {
            database: text("database")?,
            role: text("role")?,
            is_there: row.try_get("is_there").unwrap_or(false),
            quoted: names.into_iter().zip(quoted).collect(),
        })
    }

    fn quoted<'a>(&'a self, name: &'a str) -> &'a str {
        self.quoted.get(name).map_or(name, String::as_str)
    }
}

fn unreadable(reason: &str) -> LedgerError {
    LedgerError::Query { query: "grants", reason: reason.to_owned() }
}

async fn asked(postgres: &PostgresReader, sql: &str, values: Vec<Bind>) -> Result<Vec<PgRow>, LedgerError> {
    postgres.fetch("grants", sql.to_owned(), values).await
}

/// What the names mean here.
async fn relations(
    postgres: &PostgresReader,
    tables: &BTreeSet<TableName>,
) -> Result<(BTreeMap<TableName, Relation>, BTreeSet<Note>), LedgerError> {
    let schemas = tables.iter().map(|table| table.schema.clone().unwrap_or_default()).collect();
    let names = tables.iter().map(|table| table.name.clone()).collect();
    let rows = asked(postgres, RELATIONS, vec![Bind::List(schemas), Bind::List(names)]).await?;
    let (mut found, mut notes) = (BTreeMap::new(), BTreeSet::new());
    let tables: Vec<&TableName> = tables.iter().collect();
    for row in rows {
        let fields = || -> Result<_, sqlx::Error> {
            let place: i64 = row.try_get("place")?;
            let relation = Relation {
                schema: row.try_get("schema")?,
                name: row.try_get("name")?,
                columns: row.try_get("columns")?,
                key: row.try_get("key")?,
                is_view: row.try_get("is_view")?,
                is_invokers: row.try_get("is_invokers")?,
            };
            Ok((place, relation, row.try_get::<bool, _>("has_policies")?))
        };
        let (place, relation, has_policies) = fields().map_err(|error| unreadable(&error.to_string()))?;
        if has_policies {
            notes.insert(Note::open(format!(
                "`{}` has row-level security: the role sees the rows that its policies show, and has to see all",
                relation.name
            )));
        }
        let asked = usize::try_from(place).ok().and_then(|place| tables.get(place.checked_sub(1)?));
        if let Some(asked) = asked {
            found.insert((*asked).clone(), relation);
        }
    }
    Ok((found, notes))
}

/// Looks at the plans: a table in them that no query names is behind something that the text does not show.
async fn unnamed(
    whose: Whose<'_>,
    postgres: &PostgresReader,
    known: &[&(String, String)],
) -> Result<Vec<Note>, LedgerError> {
    let mut read = BTreeSet::new();
    for (prepared, binds) in whose.trials().await {
        match plan(postgres, prepared, &binds).await {
            Ok(plan) => relations_of(&plan, &mut read),
            Err(LedgerError::Denied { .. }) => {
                let text = "no plan was looked at, since this role may not read the tables itself: the rights are read off the queries' text \
                            alone. Ask again with --database and a role that may";
                return Ok(vec![Note::known(text)]);
            }
            Err(error) => return Err(error),
        }
    }
    let list = |names: Vec<String>| Bind::List(names);
    let (schemas, names) = read.into_iter().unzip();
    let (known_schemas, known_names) = known.iter().map(|known| (*known).clone()).unzip();
    let values = vec![list(schemas), list(names), list(known_schemas), list(known_names)];
    let rows = asked(postgres, UNNAMED, values).await?;
    let names = rows.iter().filter_map(|row| row.try_get::<String, _>("name").ok());
    let text = |name| {
        format!(
            "a plan reads `{name}`, which no query names, by a function or a rule: it may have to be granted too"
        )
    };
    Ok(names.map(|name| Note::open(text(name))).collect())
}

async fn plan(postgres: &PostgresReader, prepared: &Prepared, binds: &Binds) -> Result<Value, LedgerError> {
    let sql = format!("explain (verbose, format json) {}", prepared.query.sql);
    let rows = postgres.fetch(prepared.name, sql, binds.in_order(prepared, clock::now())).await?;
    Ok(rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or(Value::Null))
}

/// Schema and name of every table that a plan reads.
fn relations_of(node: &Value, found: &mut BTreeSet<(String, String)>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| relations_of(node, found)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            found.extend(text("Schema").zip(text("Relation Name")));
            for name in ["Plan", "Plans"] {
                fields.get(name).into_iter().for_each(|node| relations_of(node, found));
            }
        }
        _ => {}
    }
}
