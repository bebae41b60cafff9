//! With which column of which table a query compares the values of a list, so that some can be taken from there.

use super::{
    Names, TableName, table,
    token::{Token, places},
};
use crate::ledger::sql::{Dialect, Parameter, Query};
use std::collections::BTreeSet;

/// The words that can stand between the column and the list.
const BETWEEN: [&str; 7] = ["any", "array", "select", "value", "from", "json_each", "unnest"];

/// A column as a query names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The tables that can be meant: one, where the query says which.
    pub tables: BTreeSet<TableName>,
    /// The column's name.
    pub column: String,
}

impl Names {
    /// The columns that the values of this list are compared with as they are, in no function and no cast.
    pub fn compared(&self, query: &Query, list: Parameter) -> Vec<Compared> {
        let found = places(query);
        let tokens: Vec<&Token> = found.iter().map(|(_, token)| token).collect();
        let mut marks = 0;
        let mut compared = Vec::new();
        for (place, (at, token)) in found.iter().enumerate() {
            if *token != Token::Value || !query.sql[*at..].starts_with(['$', '?']) {
                continue;
            }
            let number = query.sql[*at + 1..].split(|c: char| !c.is_ascii_digit()).next();
            let number = match query.dialect {
                Dialect::Mysql => Some(marks),
                Dialect::Postgres | Dialect::Sqlite => {
                    number.and_then(|digits| digits.parse::<usize>().ok()?.checked_sub(1))
                }
            };
            marks += 1;
            let is_list = number.and_then(|number| query.parameters.get(number)) == Some(&list);
            if is_list && let Some((qualifier, column)) = column_before(&tokens[..place]) {
                let tables = self.meant(qualifier.as_deref());
                compared.push(Compared { tables, column });
            }
        }
        compared
    }

    /// The tables that a name before a dot can mean; without one, all of them.
    fn meant(&self, qualifier: Option<&str>) -> BTreeSet<TableName> {
        let sources = self.blocks.blocks.iter().flat_map(|block| &block.sources);
        let meant = sources.filter(|source| qualifier.is_none_or(|name| self.is_same(&source.alias, name)));
        meant.filter_map(table).cloned().collect()
    }
}

/// The column at the end of `column = any(` and the like, with what stands before its dot.
fn column_before(tokens: &[&Token]) -> Option<(Option<String>, String)> {
    let mut rest = tokens;
    loop {
        let (last, before) = rest.split_last()?;
        rest = before;
        match last {
            Token::Sign('=') => break,
            Token::Word(word) if word.eq_ignore_ascii_case("in") => break,
            Token::Sign('(') => {}
            Token::Word(word) if BETWEEN.iter().any(|between| between.eq_ignore_ascii_case(word)) => {}
            _ => return None,
        }
    }
    let name = |token: &Token| match token {
        Token::Word(name) | Token::Name(name) => Some(name.clone()),
        _ => None,
    };
    let (last, before) = rest.split_last()?;
    let column = name(last)?;
    match before {
        [.., Token::Cast] => None,
        [.., qualifier, Token::Sign('.')] => Some((Some(name(qualifier)?), column)),
        _ => Some((None, column)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sql::parse;

    fn compared(sql: &str, dialect: Dialect) -> Vec<(Vec<String>, String)> {
        let query =
            parse(sql, dialect, &[Parameter::Ids, Parameter::Keys, Parameter::Limit]).expect("it is a query");
        let found = Names::of(&query).compared(&query, Parameter::Ids);
        let tables = |compared: &Compared| compared.tables.iter().map(|table| table.name.clone()).collect();
        found.iter().map(|compared| (tables(compared), compared.column.clone())).collect()
    }

    #[test]
    fn the_column_that_the_ids_are_compared_with_is_found_where_it_stands_alone() {
        use Dialect::{Mysql, Postgres, Sqlite};
        for (sql, dialect, tables, column) in [
            ("select 1 from n where id = any(:ids::uuid[])", Postgres, &["n"][..], "id"),
            (
                "select 1 from app.\"Notices\" n join a on a.n = n.\"Id\" where n.\"Id\" = any(:ids)",
                Postgres,
                &["Notices"],
                "Id",
            ),
            (
                "select 1 from n left join a on true where n.key = any(:keys) or n.id = any(:ids)",
                Postgres,
                &["n"],
                "id",
            ),
            ("select 1 from n join a on true where id = any(:ids)", Postgres, &["a", "n"], "id"),
            ("select 1 from n where id in (select value from json_each(:ids))", Sqlite, &["n"], "id"),
            ("select 1 from N x where x.Id in (:ids) or x.k in (:keys)", Mysql, &["N"], "Id"),
            (
                "select 1 from n x where x.k in (:keys) or x.`the id` in (:ids_as_bytes)",
                Mysql,
                &["n"],
                "the id",
            ),
        ] {
            let tables = tables.iter().map(ToString::to_string).collect();
            assert_eq!(compared(sql, dialect), [(tables, column.to_owned())], "{sql}");
        }
        for other in [
            "select 1 from n where id::text = any(:ids)",
            "select 1 from n where lower(id) = any(:ids)",
            "select 1 from n where id = any(array(select 'tenant:' || k from unnest(:ids) k))",
            "select 1 from n where :ids = :ids",
        ] {
            assert!(compared(other, Postgres).is_empty(), "{other}");
        }
    }
}
