//! Whether a `with` changes rows: in one of its parts, as PostgreSQL allows, or in the statement behind them.
//!
//! Only the places count where such a statement can begin. A column, an alias or a part may well be called `update`.

/// A piece of SQL, as far as it matters here. Comments and white space are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A word that stands in no quotes.
    Word(&'a str),
    /// A string or a quoted name.
    Quoted,
    /// `(`.
    Open,
    /// `)`.
    Close,
    /// Anything else.
    Other,
}

impl Token<'_> {
    fn is(self, words: &[&str]) -> bool {
        matches!(self, Self::Word(word) if words.iter().any(|known| word.eq_ignore_ascii_case(known)))
    }
}

/// The statements that change rows and may stand in or behind a `with`.
const CHANGING: [&str; 5] = ["delete", "insert", "update", "merge", "replace"];

/// The verb by which the SQL changes rows, in lower case, if it does.
pub(super) fn verb_of_change(tokens: &[Token<'_>]) -> Option<String> {
    let mut depth = 0_usize;
    let mut awaits_statement = tokens.first().is_some_and(|first| first.is(&["with"]));
    for (at, &token) in tokens.iter().enumerate() {
        let before = |n: usize| at.checked_sub(n).and_then(|at| tokens.get(at)).copied();
        let next = tokens.get(at + 1).copied();
        match token {
            Token::Open => {
                // What stands in parentheses behind the parts is the statement, and only a query may.
                awaits_statement &= depth > 0 || before(1) != Some(Token::Close);
                depth += 1;
            }
            Token::Close => depth = depth.saturating_sub(1),
            Token::Word(word) => {
                let begins_part = before(1) == Some(Token::Open)
                    && before(2).is_some_and(|token| token.is(&["as", "materialized"]));
                let begins_statement = awaits_statement && depth == 0;
                let is_name = next.is_some_and(|next| next.is(&["as"]));
                let goes_on = matches!(next, Some(Token::Word(_) | Token::Quoted)) && !is_name;
                if (begins_part || begins_statement) && token.is(&CHANGING) && goes_on {
                    return Some(word.to_lowercase());
                }
                awaits_statement &= !begins_statement || is_name || !token.is(&["select", "values", "table"]);
            }
            Token::Quoted | Token::Other => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{look, look_mysql};

    #[test]
    fn a_with_that_changes_rows_is_seen() {
        for (sql, verb) in [
            ("with d as (delete from n returning *) select * from d limit :limit", "delete"),
            ("WITH d AS MATERIALIZED ( /* x */ DELETE\n FROM n RETURNING *) SELECT * FROM d", "delete"),
            (
                "with a as (select 1), b (x) as not materialized (insert into n values (1) returning id) select 1",
                "insert",
            ),
            ("with u as (update \"n\" set x = 1 returning *) table u", "update"),
            ("with u as (update only n set x = 1 returning *) table u", "update"),
            ("with m as (merge into n using s on true when matched then delete) select 1", "merge"),
            ("with a as (select 1) delete from n", "delete"),
            ("with recursive a (x, y) as (select (1), 2), b as (values (1)) update n set x = 1", "update"),
            ("with a as (select 1) insert into n select * from a", "insert"),
            ("with a as (select 1) replace into n select * from a", "replace"),
            ("select * from (with d as (delete from n returning *) select * from d) d", "delete"),
        ] {
            assert_eq!(look(sql).change.as_deref(), Some(verb), "{sql}");
            assert_eq!(look_mysql(sql).change.as_deref(), Some(verb), "{sql}");
        }
    }

    #[test]
    fn words_that_only_look_like_it_are_let_be() {
        for sql in [
            "select n.update, delete from n",
            "select count(*) delete from n order by update desc",
            "with a as (select delete from n) select update, insert from a",
            "with a as (select 'delete from n' as x /* delete from n */) -- delete from n\n select * from a",
            "with a as (select \"delete\" from n), \"update\" as (select 1) select * from a for update of a",
            "with update as (select 1), delete (x) as (select 2) select * from update, delete",
            "with a as (select 1) (select * from a) order by delete desc",
            "with a as (select replace(x, 'a', 'b') from n) select replace(x, 'b', 'c') as update from a",
            "with a as (replace(:ids)) select 1",
            "select cast(x as integer) delete from n",
            "select action = 'insert' from log where action in ('update', 'delete') and truncate = 1",
            "select 1 from n where exists (select 1 from m) and (delete is null)",
        ] {
            assert_eq!(look(sql).change, None, "{sql}");
            assert_eq!(look_mysql(sql).change, None, "{sql}");
        }
    }
}
