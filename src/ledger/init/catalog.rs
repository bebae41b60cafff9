//! The tables of a schema, by the database's own catalog.

use super::{
    facts::{ColumnFact, IndexFact, Kind, ReferenceFact, Table},
    partitions,
    source::{Source, Texts},
};
use crate::ledger::{LedgerError, sql::Dialect};
use std::collections::BTreeMap;

/// What separates labels.
const BETWEEN: char = '\u{1f}';

/// The questions to one kind of database. Each binds the schema. Columns: table, column, type, `1` where it can be NULL, labels.
/// Indexes: table, index, `p` or `u`, condition, column. References: table, name, column, other table.
struct Questions {
    schema: &'static str,
    columns: &'static str,
    indexes: &'static str,
    references: &'static str,
}

const POSTGRES: Questions = Questions {
    schema: "select current_schema()::text",
    columns: "select c.relname::text, a.attname::text, case when b.typtype = 'e' then 'enum' else format_type(b.oid, null) end,
                     case when a.attnotnull then '0' else '1' end,
                     (select string_agg(e.enumlabel::text, chr(31) order by e.enumsortorder) from pg_enum e where e.enumtypid = b.oid)
                from pg_class c join pg_namespace n on n.oid = c.relnamespace
                join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                join pg_type t on t.oid = a.atttypid join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
               where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition and n.nspname = $1
               order by c.relname, a.attnum limit 5000",
    indexes: "select c.relname::text, i.indexrelid::text, case when i.indisprimary then 'p' when i.indisunique then 'u' else '' end,
                     coalesce(pg_get_expr(i.indpred, i.indrelid), ''), coalesce(a.attname::text, '')
                from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
               cross join lateral unnest(i.indkey) with ordinality as k (attnum, place)
                left join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum and k.attnum > 0
               where n.nspname = $1 and i.indisvalid and k.place <= i.indnkeyatts
               order by c.relname, i.indexrelid, k.place limit 5000",
    references: "select c.relname::text, k.conname::text, a.attname::text, r.relname::text
                   from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
                   join pg_class r on r.oid = k.confrelid join pg_attribute a on a.attrelid = c.oid and a.attnum = k.conkey[1]
                  where k.contype = 'f' and cardinality(k.conkey) = 1 and n.nspname = $1 limit 5000",
};

const MYSQL: Questions = Questions {
    schema: "select cast(database() as char)",
    columns: "select table_name, column_name, column_type, if(is_nullable = 'YES', '1', '0'), if(data_type = 'enum', column_type, null)
                from information_schema.columns where table_schema = ? order by table_name, ordinal_position limit 5000",
    indexes: "select table_name, index_name, if(index_name = 'PRIMARY', 'p', if(non_unique = 0, 'u', '')), '', coalesce(column_name, '')
                from information_schema.statistics where table_schema = ? order by table_name, index_name, seq_in_index limit 5000",
    references: "select table_name, constraint_name, min(column_name), min(referenced_table_name) from information_schema.key_column_usage
                  where referenced_table_name is not null and table_schema = ?
                  group by table_name, constraint_name having count(*) = 1 limit 5000",
};

const SQLITE: Questions = Questions {
    schema: "select 'main'",
    columns: "select m.name, x.name, lower(x.type), iif(x.\"notnull\" or x.pk, '0', '1'), null
                from sqlite_schema m join pragma_table_xinfo(m.name) x
               where m.type in ('table', 'view') and m.name not like 'sqlite_%' and ?1 <> '' order by m.name, x.cid limit 5000",
    indexes: "select m.name, i.name, iif(i.origin = 'pk', 'p', iif(i.\"unique\", 'u', '')), iif(i.partial, 'partial', ''), coalesce(x.name, '')
                from sqlite_schema m join pragma_index_list(m.name) i join pragma_index_info(i.name) x
               where m.type = 'table' and ?1 <> ''
               union all
              select m.name, '', 'p', '', x.name from sqlite_schema m join pragma_table_info(m.name) x
               where m.type = 'table' and x.pk > 0 and not exists (select 1 from pragma_index_list(m.name) l where l.origin = 'pk')",
    references: "select m.name, cast(f.id as text), f.\"from\", f.\"table\" from sqlite_schema m join pragma_foreign_key_list(m.name) f
                  where m.type = 'table' and ?1 <> ''",
};

/// The schema that is looked at where none is named, and the tables of this one or the one that is named.
///
/// # Errors
/// When the database can't be asked.
pub async fn tables(source: &Source, schema: Option<&str>) -> Result<(String, Vec<Table>), LedgerError> {
    let questions = match source.dialect() {
        Dialect::Postgres => POSTGRES,
        Dialect::Mysql => MYSQL,
        Dialect::Sqlite => SQLITE,
    };
    let usual = source.texts(questions.schema, &[]).await?;
    let usual = usual.into_iter().flatten().flatten().next().unwrap_or_default();
    let schema = schema.unwrap_or(&usual);
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for row in source.texts(questions.columns, &[schema]).await? {
        let [table, column, kind, nullable, labels] = texts(row);
        let found = tables.entry(table.clone()).or_insert_with(|| Table { name: table, ..Table::default() });
        let kind = Kind::of(&kind, source.dialect());
        let labels = labels_of(&labels);
        found.columns.push(ColumnFact { name: column, kind, is_nullable: nullable == "1", labels });
    }
    let mut last = (String::new(), String::new());
    for row in source.texts(questions.indexes, &[schema]).await? {
        let [table, index, class, condition, column] = texts(row);
        let Some(found) = tables.get_mut(&table) else { continue };
        let this = (table, index);
        if last != this {
            found.indexes.push(IndexFact {
                columns: Vec::new(),
                is_unique: class == "p" || class == "u",
                is_primary: class == "p",
                condition,
            });
            last = this;
        }
        if let Some(index) = found.indexes.last_mut() {
            index.columns.push(column);
        }
    }
    for row in source.texts(questions.references, &[schema]).await? {
        let [table, _, column, other] = texts(row);
        if let Some(found) = tables.get_mut(&table) {
            found.references.push(ReferenceFact { column, table: other });
        }
    }
    for (table, partitioned) in partitions::tables(source, schema).await? {
        if let Some(found) = tables.get_mut(&table) {
            found.partitioned = Some(partitioned);
        }
    }
    Ok((usual, tables.into_values().collect()))
}

/// The fields of a row; empty where there is nothing.
fn texts<const N: usize>(row: Texts) -> [String; N] {
    let mut fields = row.into_iter().map(Option::unwrap_or_default);
    std::array::from_fn(|_| fields.next().unwrap_or_default())
}

/// The labels of a type, as either kind of database writes them.
fn labels_of(text: &str) -> Vec<String> {
    let inner = text.strip_prefix("enum('").and_then(|rest| rest.strip_suffix("')"));
    match inner {
        Some(inner) => inner.split("','").map(|label| label.replace("''", "'")).collect(),
        None => text.split(BETWEEN).filter(|label| !label.is_empty()).map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_each_database_writes_them() {
        assert_eq!(labels_of("enum('a','it''s')"), ["a", "it's"]);
        assert_eq!(labels_of("a\u{1f}b"), ["a", "b"]);
        assert_eq!(labels_of(""), [""; 0]);
    }
}
