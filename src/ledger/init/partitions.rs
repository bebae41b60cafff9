//! Indexes of PostgreSQL's tables with partitions: `concurrently` is refused on the table itself, so they are made part by part.

use super::source::{Source, quoted};
use crate::ledger::{LedgerError, sql::Dialect};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The longest name that PostgreSQL keeps, in bytes.
const LONGEST_NAME: usize = 63;

/// What separates columns.
const BETWEEN: char = '\u{1f}';

/// The tables with partitions, each with the columns that tell in which one a row is.
const TABLES: &str = "
    select c.relname::text, (select string_agg(a.attname::text, chr(31)) from pg_attribute a
                              where a.attrelid = c.oid and a.attnum > 0 and a.attnum = any(t.partattrs::int2[]))
      from pg_partitioned_table t join pg_class c on c.oid = t.partrelid join pg_namespace n on n.oid = c.relnamespace
     where not c.relispartition and n.nspname = $1 order by 1 limit 5000";

/// Each part of each table with partitions, with its index of one kind: table, part, what stands before its name, parent, `1` for one that
/// has rows itself, and of an index of its own its name with what stands before it, and its columns. Only such indexes that can be attached.
const PARTS: &str = "
    with recursive part (root, at, parent) as (
        select c.oid, i.inhrelid, c.oid
          from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_inherits i on i.inhparent = c.oid
         where c.relkind = 'p' and not c.relispartition and n.nspname = $1
        union all
        select part.root, i.inhrelid, part.at from part join pg_inherits i on i.inhparent = part.at)
    select r.relname::text, c.relname::text, case when pg_table_is_visible(c.oid) then '' else quote_ident(n.nspname) || '.' end,
           p.relname::text, case when c.relkind = 'p' then '0' else '1' end, x.indexrelid::regclass::text,
           (select string_agg(a.attname::text, chr(31) order by k.place)
              from unnest(x.indkey) with ordinality as k (attnum, place)
              join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.attnum)
      from part join pg_class r on r.oid = part.root join pg_class p on p.oid = part.parent
      join pg_class c on c.oid = part.at and c.relkind in ('r', 'p') join pg_namespace n on n.oid = c.relnamespace
      left join pg_index x on x.indrelid = c.oid and x.indisvalid and not x.indisunique and x.indpred is null and x.indexprs is null
                          and x.indnatts = x.indnkeyatts and not exists (select from pg_inherits i where i.inhrelid = x.indexrelid)
                          and exists (select from pg_class k join pg_am m on m.oid = k.relam where k.oid = x.indexrelid and m.amname = 'btree')
     order by 1, 2, 6 limit 20000";

/// How a table is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partitioned {
    /// The columns that tell in which part a row is. Each unique index has them besides.
    pub by: Vec<String>,
    /// The parts, and theirs.
    pub parts: Vec<Part>,
}

/// A part of a table with partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What has to stand before names in its schema.
    pub prefix: String,
    /// The table, or part, that it is a part of.
    pub parent: String,
    /// Whether it has rows itself, and no further parts.
    pub is_leaf: bool,
    /// Its own indexes that can be attached: their names as they stand in statements, and their columns.
    pub indexes: Vec<(String, Vec<String>)>,
}

/// All tables with partitions.
///
/// # Errors
/// When the database can't be asked.
pub async fn tables(source: &Source, schema: &str) -> Result<BTreeMap<String, Partitioned>, LedgerError> {
    let mut tables: BTreeMap<String, Partitioned> = BTreeMap::new();
    if source.dialect() != Dialect::Postgres {
        return Ok(tables);
    }
    let split = |columns: &str| -> Vec<String> {
        columns.split(BETWEEN).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    for row in source.texts(TABLES, &[schema]).await? {
        let mut fields = row.into_iter().map(Option::unwrap_or_default);
        let [table, by] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        tables.insert(table, Partitioned { by: split(&by), parts: Vec::new() });
    }
    for row in source.texts(PARTS, &[schema]).await? {
        let mut fields = row.into_iter().map(Option::unwrap_or_default);
        let [table, name, prefix, parent, leaf, index, columns] =
            std::array::from_fn(|_| fields.next().unwrap_or_default());
        let parts = &mut tables.entry(table).or_default().parts;
        if parts.last().is_none_or(|part| part.name != name) {
            parts.push(Part { name, prefix, parent, is_leaf: leaf == "1", indexes: Vec::new() });
        }
        if let Some(part) = parts.last_mut().filter(|_| !index.is_empty()) {
            part.indexes.push((index, split(&columns)));
        }
    }
    Ok(tables)
}

/// The statements that make an index of a table with partitions without keeping anybody from writing: an empty one on the table alone, one on
/// each part, and each of these attached. With the last one the whole index is there. `on` is the table as it stands in statements.
pub fn making(table: &str, on: &str, parts: &[Part], columns: &[&str]) -> Vec<String> {
    let prefix = on.rsplit_once('.').map_or("", |(schema, _)| &on[..=schema.len()]);
    let names: Vec<String> = columns.iter().map(|column| quoted(column, Dialect::Postgres)).collect();
    let made = Making { parts, columns, list: names.join(", ") };
    let index = made.index_of(table);
    let mut statements = vec![format!("create index {index} on only {on} ({})", made.list)];
    made.below(table, &format!("{prefix}{index}"), &mut statements);
    statements
}

struct Making<'a> {
    parts: &'a [Part],
    columns: &'a [&'a str],
    list: String,
}

impl Making<'_> {
    fn below(&self, parent: &str, of_parent: &str, statements: &mut Vec<String>) {
        for part in self.parts.iter().filter(|part| part.parent == parent) {
            let known = part.indexes.iter().find(|(_, columns)| columns == self.columns);
            let index = match known {
                Some((known, _)) => known.clone(),
                None => {
                    let (index, how) =
                        (self.index_of(&part.name), if part.is_leaf { "concurrently " } else { "" });
                    let only = if part.is_leaf { "" } else { "only " };
                    let on = format!("{}{}", part.prefix, quoted(&part.name, Dialect::Postgres));
                    statements.push(format!("create index {how}{index} on {only}{on} ({})", self.list));
                    let index = format!("{}{index}", part.prefix);
                    self.below(&part.name, &index, statements);
                    index
                }
            };
            statements.push(format!("alter index {of_parent} attach partition {index}"));
        }
    }

    /// A name for the index of a table or part.
    fn index_of(&self, table: &str) -> String {
        let whole = format!("{table}_{}_idx", self.columns.join("_"));
        if whole.len() <= LONGEST_NAME {
            return quoted(&whole, Dialect::Postgres);
        }
        // PostgreSQL would cut it, and those of two parts may begin alike.
        let digest = Sha256::digest(whole.as_bytes());
        let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let room = (0..=LONGEST_NAME - digest.len() - 1).rev().find(|end| whole.is_char_boundary(*end));
        quoted(&format!("{}_{digest}", &whole[..room.unwrap_or(0)]), Dialect::Postgres)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, parent: &str, is_leaf: bool, indexes: &[(&str, &[&str])]) -> Part {
        let own = |columns: &[&str]| columns.iter().map(ToString::to_string).collect();
        Part {
            name: name.into(),
            prefix: String::new(),
            parent: parent.into(),
            is_leaf,
            indexes: indexes.iter().map(|(index, columns)| ((*index).to_owned(), own(columns))).collect(),
        }
    }

    #[test]
    fn each_part_gets_what_it_lacks_and_is_attached() {
        let parts = [
            part("n_1", "n", true, &[]),
            part("n_2", "n", true, &[("n_2_own", &["at", "id"]), ("n_2_other", &["id"])]),
            part("n_3", "n", false, &[]),
            part("n_3_1", "n_3", true, &[]),
        ];
        let expected = [
            "create index n_at_id_idx on only app.n (at, id)",
            "create index concurrently n_1_at_id_idx on n_1 (at, id)",
            "alter index app.n_at_id_idx attach partition n_1_at_id_idx",
            "alter index app.n_at_id_idx attach partition n_2_own",
            "create index n_3_at_id_idx on only n_3 (at, id)",
            "create index concurrently n_3_1_at_id_idx on n_3_1 (at, id)",
            "alter index n_3_at_id_idx attach partition n_3_1_at_id_idx",
            "alter index app.n_at_id_idx attach partition n_3_at_id_idx",
        ];
        assert_eq!(making("n", "app.n", &parts, &["at", "id"]), expected);
    }

    #[test]
    fn long_names_stay_apart() {
        let (one, two) = (format!("{}1", "ä".repeat(40)), format!("{}2", "ä".repeat(40)));
        let made = Making { parts: &[], columns: &["at"], list: String::new() };
        let (one, two) = (made.index_of(&one), made.index_of(&two));
        assert_ne!(one, two);
        assert!(one.trim_matches('"').len() <= LONGEST_NAME && two.trim_matches('"').len() <= LONGEST_NAME);
    }
}
