//! The pieces of a query's text, as far as names matter.

use super::super::{
    Dialect, Query,
    lexical::{comment_length, dollar_tag, starts_word, until_quote, word_of},
};

/// One piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word: in lower case where the database folds it.
    Word(String),
    /// A name in quotes, which is never a keyword.
    Name(String),
    /// A string.
    Text,
    /// A number or a parameter.
    Value,
    /// `::`.
    Cast,
    /// Any other character.
    Sign(char),
}

/// The pieces of a query that was parsed: its quotes and comments all have an end.
pub fn tokens(query: &Query) -> Vec<Token> {
    places(query).into_iter().map(|(_, token)| token).collect()
}

/// The same, each with where it begins, in bytes.
pub fn places(query: &Query) -> Vec<(usize, Token)> {
    let (dialect, mut rest, mut found) = (query.dialect, query.sql.as_str(), Vec::new());
    while let Some(next) = rest.chars().next() {
        let (length, token) = piece(rest, next, dialect);
        found.extend(token.map(|token| (query.sql.len() - rest.len(), token)));
        rest = &rest[length.clamp(next.len_utf8(), rest.len())..];
    }
    found
}

fn piece(rest: &str, next: char, dialect: Dialect) -> (usize, Option<Token>) {
    let (postgres, mysql) = (dialect == Dialect::Postgres, dialect == Dialect::Mysql);
    let text = |length: Option<usize>| (length.unwrap_or(rest.len()), Some(Token::Text));
    let name = |length: Option<usize>| {
        let length = length.unwrap_or(rest.len());
        let inner = rest.get(1..length.saturating_sub(1)).unwrap_or_default();
        (length, Some(Token::Name(inner.replace(&format!("{next}{next}"), &next.to_string()))))
    };
    match next {
        _ if next.is_whitespace() => (next.len_utf8(), None),
        '-' if rest.starts_with("--") && (!mysql || rest[2..].starts_with([' ', '\t', '\n'])) => {
            (rest.find('\n').unwrap_or(rest.len()), None)
        }
        '#' if mysql => (rest.find('\n').unwrap_or(rest.len()), None),
        '/' if rest.starts_with("/*") => (comment_length(rest, postgres).unwrap_or(rest.len()), None),
        '\'' => text(until_quote(rest, 0, '\'', mysql)),
        'e' | 'E' if postgres && rest[1..].starts_with('\'') => text(until_quote(rest, 1, '\'', true)),
        '"' if mysql => text(until_quote(rest, 0, '"', true)),
        '"' => name(until_quote(rest, 0, '"', false)),
        '`' if !postgres => name(until_quote(rest, 0, '`', false)),
        '[' if dialect == Dialect::Sqlite => name(rest.find(']').map(|end| end + 1)),
        '$' if postgres => match dollar_tag(rest) {
            Some(tag) => text(rest[tag.len()..].find(tag).map(|end| end + 2 * tag.len())),
            None => (1 + rest[1..].bytes().take_while(u8::is_ascii_digit).count(), Some(Token::Value)),
        },
        '?' => (1 + rest[1..].bytes().take_while(u8::is_ascii_digit).count(), Some(Token::Value)),
        '0'..='9' => {
            let is_inside = |c: char| !(c == '.' || c == '_' || c.is_alphanumeric());
            (rest.find(is_inside).unwrap_or(rest.len()), Some(Token::Value))
        }
        ':' if rest.starts_with("::") => (2, Some(Token::Cast)),
        _ if starts_word(rest) => {
            let word = word_of(rest);
            let folded = if postgres { word.to_lowercase() } else { word.to_owned() };
            (word.len(), Some(Token::Word(folded)))
        }
        _ => (next.len_utf8(), Some(Token::Sign(next))),
    }
}

/// Words that are never a column unless they stand in quotes, in any of the dialects.
const RESERVED: [&str; 62] = [
    "select",
    "from",
    "where",
    "and",
    "or",
    "not",
    "is",
    "null",
    "true",
    "false",
    "in",
    "any",
    "all",
    "some",
    "exists",
    "between",
    "like",
    "ilike",
    "case",
    "when",
    "then",
    "else",
    "end",
    "as",
    "on",
    "using",
    "join",
    "left",
    "right",
    "full",
    "inner",
    "outer",
    "cross",
    "natural",
    "lateral",
    "group",
    "by",
    "having",
    "order",
    "asc",
    "desc",
    "limit",
    "offset",
    "fetch",
    "union",
    "intersect",
    "except",
    "distinct",
    "with",
    "window",
    "for",
    "array",
    "collate",
    "current_timestamp",
    "current_date",
    "similar",
    "only",
    "table",
    "regexp",
    "rlike",
    "interval",
    "straight_join",
];

/// Whether a word, in lower case, is never a column.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}
