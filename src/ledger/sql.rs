//! The user's own SQL with named parameters: read by a small tokenizer, never wrapped, never rewritten beyond the parameters.

mod lexical;
pub mod names;

use lexical::{cast, comment_length, dollar_tag, list_type, starts_word, until_quote, word_of};
use std::{collections::BTreeMap, fmt};

/// The database's dialect, as far as it matters to a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL: `$1`, dollar quotes, `E''` strings, nested comments.
    Postgres,
    /// SQLite: `?1`, quotes by backtick and bracket.
    Sqlite,
    /// MySQL and MariaDB: a `?` for each occurrence, quotes by backtick, backslashes that escape, comments by `#`.
    Mysql,
}

/// A named parameter that a query can bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameter {
    /// `:ids`, notification ids: a `text[]`, JSON text, or a placeholder for each. On MySQL and MariaDB `:ids_as_bytes` too.
    Ids,
    /// `:keys`, idempotency keys, in the same form.
    Keys,
    /// `:limit`, a whole number.
    Limit,
    /// `:now`, our time: a `timestamptz`, or ISO text in UTC.
    Now,
    /// `:now_ms`, our time in milliseconds since 1970.
    NowMs,
    /// `:overlap`, whole seconds.
    Overlap,
    /// `:after_ts`, the time of the row behind which a page begins, in the type and form of the cursor's column.
    AfterTs,
    /// `:after_id`, the id of that row, in its own type.
    AfterId,
    /// `:from_ts`, from when on, in the form of the column that it is held against.
    FromTs,
    /// `:until_ts`, before when, in the same form.
    UntilTs,
}

impl Parameter {
    const ALL: [Self; 10] = [
        Self::Ids,
        Self::Keys,
        Self::Limit,
        Self::Now,
        Self::NowMs,
        Self::Overlap,
        Self::AfterTs,
        Self::AfterId,
        Self::FromTs,
        Self::UntilTs,
    ];

    /// Its name in the SQL, without the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Keys => "keys",
            Self::Limit => "limit",
            Self::Now => "now",
            Self::NowMs => "now_ms",
            Self::Overlap => "overlap",
            Self::AfterTs => "after_ts",
            Self::AfterId => "after_id",
            Self::FromTs => "from_ts",
            Self::UntilTs => "until_ts",
        }
    }
}

/// What a list parameter is cast to, where that narrows the texts that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// `::uuid[]`.
    Uuid,
    /// `::bigint[]`, `::int8[]`, `::int[]` and the like: a whole number of at most this many bytes.
    Integer(u8),
    /// `:ids_as_bytes`: UUIDs as the 16 bytes that they are.
    UuidBytes,
}

/// A query that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Whose it is.
    pub dialect: Dialect,
    /// The SQL with `$n`, `?n` or `?` in place of each `:name`, without the closing semicolon.
    pub sql: String,
    /// The parameters in the order of their numbers, each once; where they have no numbers, in the order of their places.
    pub parameters: Vec<Parameter>,
    /// Where a placeholder stands for a list, in bytes of `sql`: only where there is one for each value of it.
    pub lists: Vec<usize>,
    /// What the list parameters are cast to.
    pub list_types: BTreeMap<Parameter, ListType>,
    /// What the other parameters are cast to right behind them: the type's first word, in lower case.
    pub casts: BTreeMap<Parameter, String>,
}

impl Query {
    /// Whether the query binds this parameter.
    pub fn binds(&self, parameter: Parameter) -> bool {
        self.parameters.contains(&parameter)
    }
}

/// Why a query can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column} of the SQL: {problem}")]
pub struct SqlFault {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// MySQL's and MariaDB's name for ids that are compared with a `BINARY(16)`.
const IDS_AS_BYTES: &str = "ids_as_bytes";

/// The keywords that a reading query can begin with.
const READING: [&str; 4] = ["select", "with", "values", "table"];

/// Reads a query that may bind these parameters.
///
/// # Errors
/// When it isn't one single reading statement, or binds something else.
pub fn parse(text: &str, dialect: Dialect, allowed: &[Parameter]) -> Result<Query, SqlFault> {
    let query = Query {
        dialect,
        sql: String::with_capacity(text.len()),
        parameters: Vec::new(),
        lists: Vec::new(),
        list_types: BTreeMap::new(),
        casts: BTreeMap::new(),
    };
    let mut scan = Scan { text, at: 0, dialect, allowed, query };
    scan.first_word()?;
    scan.at = 0;
    scan.statement()?;
    scan.query.sql.truncate(scan.query.sql.trim_end().len());
    Ok(scan.query)
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
    allowed: &'a [Parameter],
    query: Query,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fault_at(&self, at: usize, problem: impl fmt::Display) -> SqlFault {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        SqlFault { line, column, problem: problem.to_string() }
    }

    /// Copies `n` bytes as they are.
    fn copy(&mut self, n: usize) {
        self.query.sql.push_str(&self.rest()[..n]);
        self.at += n;
    }

    fn first_word(&mut self) -> Result<(), SqlFault> {
        let problem = "the query must read: it begins with `select`, `with`, `values` or `table`";
        loop {
            let skipped = self.blank_or_comment()?;
            if skipped > 0 {
                self.at += skipped;
            } else if self.rest().starts_with('(') {
                self.at += 1;
            } else {
                break;
            }
        }
        let word = word_of(self.rest()).to_ascii_lowercase();
        if READING.contains(&word.as_str()) { Ok(()) } else { Err(self.fault_at(self.at, problem)) }
    }

    fn statement(&mut self) -> Result<(), SqlFault> {
        while let Some(next) = self.rest().chars().next() {
            let opaque = self.blank_or_comment()?.max(self.quoted(next)?);
            if opaque > 0 {
                self.copy(opaque);
                continue;
            }
            match next {
                ';' => return self.end(),
                ':' if self.rest().starts_with("::") && self.dialect == Dialect::Mysql => {
                    let problem =
                        "`::` is no cast here: write `id in (:ids)`, and `cast(… as …)` for single values";
                    return Err(self.fault_at(self.at, problem));
                }
                ':' if self.rest().starts_with("::") => self.copy(2),
                ':' if starts_word(&self.rest()[1..]) => self.parameter()?,
                '?' | '@' | '#' if self.dialect == Dialect::Sqlite => return Err(self.foreign(next)),
                '?' if self.dialect == Dialect::Mysql => return Err(self.foreign(next)),
                '$' => return Err(self.foreign(next)),
                '\0' => return Err(self.fault_at(self.at, "a NUL character can't be in it")),
                _ if starts_word(self.rest()) => self.copy(word_of(self.rest()).len()),
                _ => self.copy(next.len_utf8()),
            }
        }
        Ok(())
    }

    fn foreign(&self, found: char) -> SqlFault {
        self.fault_at(self.at, format!("`{found}` is not a parameter here: write one of {}", self.choices()))
    }

    fn choices(&self) -> String {
        let mut names: Vec<String> = self.allowed.iter().map(|p| format!("`:{}`", p.name())).collect();
        if self.dialect == Dialect::Mysql && self.allowed.contains(&Parameter::Ids) {
            names.push(format!("`:{IDS_AS_BYTES}`"));
        }
        names.join(", ")
    }

    /// The length of white space or of one comment from here.
    fn blank_or_comment(&self) -> Result<usize, SqlFault> {
        let rest = self.rest();
        let is_mysql = self.dialect == Dialect::Mysql;
        // `5--1` is arithmetic there.
        let is_comment =
            |after: &str| !is_mysql || !after.starts_with(|c: char| !c.is_whitespace() && !c.is_control());
        if rest.strip_prefix("--").is_some_and(is_comment) || (is_mysql && rest.starts_with('#')) {
            return Ok(rest.find('\n').unwrap_or(rest.len()));
        }
        if rest.starts_with("/*") {
            let end = comment_length(rest, self.dialect == Dialect::Postgres);
            return end.ok_or_else(|| self.fault_at(self.at, "this comment has no end: close it with `*/`"));
        }
        Ok(rest.len() - rest.trim_start().len())
    }

    /// The length of a string or quoted identifier from here; 0 where there is none.
    fn quoted(&self, next: char) -> Result<usize, SqlFault> {
        let rest = self.rest();
        let postgres = self.dialect == Dialect::Postgres;
        let mysql = self.dialect == Dialect::Mysql;
        let length = match next {
            '\'' => until_quote(rest, 0, '\'', mysql),
            'e' | 'E' if postgres && rest[1..].starts_with('\'') => until_quote(rest, 1, '\'', true),
            '"' => until_quote(rest, 0, '"', mysql),
            '`' if !postgres => until_quote(rest, 0, '`', false),
            '[' if !postgres && !mysql => rest.find(']').map(|end| end + 1),
            '$' if postgres => match dollar_tag(rest) {
                Some(tag) => rest[tag.len()..].find(tag).map(|end| end + 2 * tag.len()),
                None => Some(0),
            },
            _ => Some(0),
        };
        length.ok_or_else(|| self.fault_at(self.at, "this quote has no end"))
    }

    fn parameter(&mut self) -> Result<(), SqlFault> {
        let name = word_of(&self.rest()[1..]);
        let is_bytes = self.dialect == Dialect::Mysql && name == IDS_AS_BYTES;
        let plain = if is_bytes { Parameter::Ids.name() } else { name };
        let known = Parameter::ALL.into_iter().find(|p| p.name() == plain && self.allowed.contains(p));
        let Some(parameter) = known else {
            let problem = format!("the parameter `:{name}` is not known here: there are {}", self.choices());
            return Err(self.fault_at(self.at, problem));
        };
        if self.dialect == Dialect::Mysql {
            return self.nameless(parameter, name.len(), is_bytes);
        }
        let place = self.query.parameters.iter().position(|p| *p == parameter).unwrap_or_else(|| {
            self.query.parameters.push(parameter);
            self.query.parameters.len() - 1
        });
        let mark = if self.dialect == Dialect::Postgres { '$' } else { '?' };
        self.query.sql.push_str(&format!("{mark}{}", place + 1));
        self.at += 1 + name.len();
        if let Some(list_type) = list_type(self.rest()) {
            self.query.list_types.insert(parameter, list_type);
        } else if let Some(word) = cast(self.rest()) {
            self.query.casts.insert(parameter, word);
        }
        Ok(())
    }

    /// A placeholder without a number.
    fn nameless(&mut self, parameter: Parameter, length: usize, is_bytes: bool) -> Result<(), SqlFault> {
        if parameter == Parameter::Ids
            && self.query.binds(parameter)
            && self.query.list_types.contains_key(&parameter) != is_bytes
        {
            let problem =
                format!("`:ids` and `:{IDS_AS_BYTES}` don't go together: ids are either texts or bytes");
            return Err(self.fault_at(self.at, problem));
        }
        if is_bytes {
            self.query.list_types.insert(parameter, ListType::UuidBytes);
        }
        if matches!(parameter, Parameter::Ids | Parameter::Keys) {
            self.query.lists.push(self.query.sql.len());
        }
        self.query.parameters.push(parameter);
        self.query.sql.push('?');
        self.at += 1 + length;
        Ok(())
    }

    /// After the semicolon there is nothing but blanks and comments.
    fn end(&mut self) -> Result<(), SqlFault> {
        let semicolon = self.at;
        self.at += 1;
        loop {
            match self.blank_or_comment()? {
                0 if self.rest().is_empty() => return Ok(()),
                0 => {
                    return Err(
                        self.fault_at(semicolon, "one statement is wanted, and more follows this semicolon")
                    );
                }
                n => self.at += n,
            }
        }
    }
}

#[cfg(test)]
mod tests;
