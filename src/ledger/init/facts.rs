//! What is known of a database's tables without looking at a row.

use super::partitions::Partitioned;
use crate::ledger::sql::Dialect;

/// The kind of a column's type, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A UUID.
    Uuid,
    /// A UUID in 16 bytes.
    UuidBytes,
    /// A whole number of so many bytes.
    Integer(u8),
    /// A decimal or floating-point number.
    Number,
    /// Text.
    Text,
    /// One of a few labels.
    Enum,
    /// A boolean.
    Boolean,
    /// A time with its zone.
    Instant,
    /// A time without one.
    Naive,
    /// Whatever was put in.
    Loose,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kind of a type, by its name there.
    pub fn of(name: &str, dialect: Dialect) -> Self {
        let name = name.to_ascii_lowercase();
        let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
        let is_unsized = dialect == Dialect::Sqlite;
        match name.as_str() {
            "uuid" => Self::Uuid,
            "binary(16)" => Self::UuidBytes,
            "tinyint(1)" | "bit(1)" => Self::Boolean,
            "" => Self::Loose,
            _ if begins(&["enum"]) => Self::Enum,
            _ if begins(&["bool"]) => Self::Boolean,
            _ if begins(&["timestamp with time zone", "timestamptz"]) => Self::Instant,
            _ if begins(&["timestamp", "datetime"]) => match dialect {
                Dialect::Sqlite => Self::Loose,
                Dialect::Mysql if begins(&["timestamp"]) => Self::Instant,
                Dialect::Mysql | Dialect::Postgres => Self::Naive,
            },
            _ if begins(&["bigint", "int8"]) || (is_unsized && begins(&["int"])) => Self::Integer(8),
            _ if begins(&["smallint", "int2", "tinyint"]) => Self::Integer(2),
            _ if begins(&["int", "mediumint"]) => Self::Integer(4),
            _ if begins(&["numeric", "decimal", "real", "double", "float"]) => Self::Number,
            _ if begins(&[
                "text",
                "varchar",
                "char",
                "citext",
                "name",
                "longtext",
                "mediumtext",
                "tinytext",
            ]) =>
            {
                Self::Text
            }
            _ => Self::Other,
        }
    }

    /// Whether its values can be the id of something.
    pub const fn is_id(self) -> bool {
        matches!(self, Self::Uuid | Self::UuidBytes | Self::Integer(_) | Self::Text | Self::Loose)
    }

    /// Whether its values can be times.
    pub const fn is_time(self) -> bool {
        matches!(
            self,
            Self::Instant | Self::Naive | Self::Integer(8 | 4) | Self::Number | Self::Text | Self::Loose
        )
    }

    /// Whether its values can be statuses.
    pub const fn is_status(self) -> bool {
        matches!(self, Self::Text | Self::Enum | Self::Boolean | Self::Integer(_) | Self::Loose)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFact {
    /// Its name.
    pub name: String,
    /// The kind of its type.
    pub kind: Kind,
    /// Whether it can be NULL.
    pub is_nullable: bool,
    /// The labels that it can have.
    pub labels: Vec<String>,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFact {
    /// Its columns, in order; empty names stand for expressions.
    pub columns: Vec<String>,
    /// Whether no two rows are alike in them.
    pub is_unique: bool,
    /// Whether it is the primary key's.
    pub is_primary: bool,
    /// The condition of its rows; empty where all are in it.
    pub condition: String,
}

/// A reference to another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceFact {
    /// The own column.
    pub column: String,
    /// The other table.
    pub table: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<ColumnFact>,
    /// Its indexes.
    pub indexes: Vec<IndexFact>,
    /// Its references to other tables, where they are of one column.
    pub references: Vec<ReferenceFact>,
    /// How it is divided, where it has partitions.
    pub partitioned: Option<Partitioned>,
}

impl Table {
    /// A column by its name, in any case.
    pub fn column(&self, name: &str) -> Option<&ColumnFact> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The primary key, where it is one column; or one beside those that tell the partition.
    pub fn key(&self) -> Option<&ColumnFact> {
        let columns = &self.indexes.iter().find(|index| index.is_primary)?.columns;
        let by = self.partitioned.as_ref().map_or(&[][..], |partitioned| &partitioned.by);
        let beside: Vec<&String> = columns.iter().filter(|column| !by.contains(column)).collect();
        match (columns.as_slice(), beside.as_slice()) {
            ([only], _) => self.column(only),
            (_, [only]) => self.column(only),
            _ => None,
        }
    }

    /// Whether the key is unique only together with what tells the partition, as far as the database knows.
    pub fn is_key_shared(&self) -> bool {
        self.key().is_some_and(|key| !self.is_unique(&key.name))
    }

    /// Whether a column has no two rows alike.
    pub fn is_unique(&self, column: &str) -> bool {
        self.indexes
            .iter()
            .any(|index| index.is_unique && index.condition.is_empty() && index.columns == [column])
    }

    /// Whether an index begins with these columns, in this order, and has all rows, or those of a condition that names this column.
    pub fn has_index(&self, columns: &[&str], in_condition: Option<&str>) -> bool {
        self.indexes.iter().any(|index| {
            let begins = index.columns.len() >= columns.len()
                && index.columns.iter().zip(columns).all(|(own, wanted)| own.eq_ignore_ascii_case(wanted));
            let covers = index.condition.is_empty()
                || index.condition == "partial"
                || in_condition.is_some_and(|column| index.condition.contains(column));
            begins && covers
        })
    }

    /// The column by which it refers to another table: by a reference, else by the name that such a column usually has.
    pub fn refers_to(&self, other: &Table) -> Option<(&ColumnFact, bool)> {
        let declared =
            self.references.iter().find(|reference| reference.table.eq_ignore_ascii_case(&other.name));
        if let Some(column) = declared.and_then(|reference| self.column(&reference.column)) {
            return Some((column, true));
        }
        let singular = singular(&other.name);
        let of_key = other.key().map(|key| key.name.clone()).filter(|name| !name.eq_ignore_ascii_case("id"));
        let names =
            [format!("{singular}_id"), singular.clone(), format!("{singular}id"), format!("{singular}_uuid")];
        let found = names.iter().chain(of_key.iter()).find_map(|name| self.column(name));
        found.filter(|column| column.kind.is_id()).map(|column| (column, false))
    }
}

/// The name of one of the things that a table is named after.
pub fn singular(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    name.strip_suffix('s').unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_kind_that_they_have_in_their_database() {
        for (name, dialect, kind) in [
            ("timestamp without time zone", Dialect::Postgres, Kind::Naive),
            ("timestamp with time zone", Dialect::Postgres, Kind::Instant),
            ("timestamp(6)", Dialect::Mysql, Kind::Instant),
            ("datetime(6)", Dialect::Mysql, Kind::Naive),
            ("DATETIME", Dialect::Sqlite, Kind::Loose),
            ("INTEGER", Dialect::Sqlite, Kind::Integer(8)),
            ("integer", Dialect::Postgres, Kind::Integer(4)),
            ("tinyint(1)", Dialect::Mysql, Kind::Boolean),
            ("tinyint(3) unsigned", Dialect::Mysql, Kind::Integer(2)),
            ("character varying", Dialect::Postgres, Kind::Text),
            ("jsonb", Dialect::Postgres, Kind::Other),
        ] {
            assert_eq!(Kind::of(name, dialect), kind, "{name}");
        }
    }

    #[test]
    fn a_reference_is_found_declared_or_by_its_usual_name() {
        let column = |name: &str| ColumnFact {
            name: name.into(),
            kind: Kind::Uuid,
            is_nullable: false,
            labels: Vec::new(),
        };
        let deliveries = Table { name: "deliveries".into(), ..Table::default() };
        let by_name = Table { columns: vec![column("id"), column("delivery_id")], ..Table::default() };
        assert_eq!(
            by_name.refers_to(&deliveries).map(|(c, declared)| (c.name.as_str(), declared)),
            Some(("delivery_id", false))
        );
        let declared = Table {
            columns: vec![column("of"), column("delivery_id")],
            references: vec![ReferenceFact { column: "of".into(), table: "deliveries".into() }],
            ..Table::default()
        };
        assert_eq!(
            declared.refers_to(&deliveries).map(|(c, declared)| (c.name.as_str(), declared)),
            Some(("of", true))
        );
        assert_eq!(Table::default().refers_to(&deliveries), None);
    }
}
