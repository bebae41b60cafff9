//! The user's own SQL with named parameters: read by a small tokenizer, never wrapped, never rewritten beyond the parameters.

use std::{collections::BTreeMap, fmt};

/// The database's dialect, as far as it matters to a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL: `$1`, dollar quotes, `E''` strings, nested comments.
    Postgres,
    /// SQLite: `?1`, quotes by backtick and bracket.
    Sqlite,
}

/// A named parameter that a query can bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameter {
    /// `:ids`, notification ids: a `text[]`, or JSON text.
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
}

/// A query that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The SQL with `$n` or `?n` in place of each `:name`, without the closing semicolon.
    pub sql: String,
    /// The parameters in the order of their numbers, each once.
    pub parameters: Vec<Parameter>,
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

/// The keywords that a reading query can begin with.
const READING: [&str; 4] = ["select", "with", "values", "table"];

/// Reads a query that may bind these parameters.
///
/// # Errors
/// When it isn't one single reading statement, or binds something else.
pub fn parse(text: &str, dialect: Dialect, allowed: &[Parameter]) -> Result<Query, SqlFault> {
    let query = Query {
        sql: String::with_capacity(text.len()),
        parameters: Vec::new(),
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
                ':' if self.rest().starts_with("::") => self.copy(2),
                ':' if starts_word(&self.rest()[1..]) => self.parameter()?,
                '?' | '@' | '#' if self.dialect == Dialect::Sqlite => return Err(self.foreign(next)),
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
        let names: Vec<String> = self.allowed.iter().map(|p| format!("`:{}`", p.name())).collect();
        names.join(", ")
    }

    /// The length of white space or of one comment from here.
    fn blank_or_comment(&self) -> Result<usize, SqlFault> {
        let rest = self.rest();
        if rest.starts_with("--") {
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
        let length = match next {
            '\'' => until_quote(rest, 0, '\'', false),
            'e' | 'E' if postgres && rest[1..].starts_with('\'') => until_quote(rest, 1, '\'', true),
            '"' => until_quote(rest, 0, '"', false),
            '`' if !postgres => until_quote(rest, 0, '`', false),
            '[' if !postgres => rest.find(']').map(|end| end + 1),
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
        let known = Parameter::ALL.into_iter().find(|p| p.name() == name && self.allowed.contains(p));
        let Some(parameter) = known else {
            let problem = format!("the parameter `:{name}` is not known here: there are {}", self.choices());
            return Err(self.fault_at(self.at, problem));
        };
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

fn starts_word(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

/// The word from here: a `$` belongs to it when it isn't the first character, so `a$b$` opens no dollar quote.
fn word_of(text: &str) -> &str {
    let end = text.find(|c: char| !(c == '_' || c == '$' || c.is_alphanumeric())).unwrap_or(text.len());
    &text[..end]
}

/// The length of a quoted text whose opening quote is at `open`: a doubled quote stays inside, and so does one after a backslash
/// where those escape.
fn until_quote(text: &str, open: usize, quote: char, backslash: bool) -> Option<usize> {
    let mut chars = text.char_indices().skip(open + 1).peekable();
    while let Some((at, c)) = chars.next() {
        if backslash && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + c.len_utf8());
        }
    }
    None
}

fn comment_length(text: &str, nested: bool) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0usize);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") && (nested || depth == 0) {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

/// `$$` or `$word$`, where the text begins with one.
fn dollar_tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('$')?;
    let length = inner.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(inner.len());
    let is_tag = inner[length..].starts_with('$') && !inner.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &text[..length + 2])
}

/// The type that a parameter is cast to right behind it.
fn list_type(text: &str) -> Option<ListType> {
    let cast = text.trim_start().strip_prefix("::")?.trim_start();
    let word = word_of(cast);
    cast[word.len()..].trim_start().strip_prefix('[')?.trim_start().strip_prefix(']')?;
    match word.to_ascii_lowercase().as_str() {
        "uuid" => Some(ListType::Uuid),
        "bigint" | "int8" => Some(ListType::Integer(8)),
        "integer" | "int" | "int4" => Some(ListType::Integer(4)),
        "smallint" | "int2" => Some(ListType::Integer(2)),
        _ => None,
    }
}

/// The first word of the type that a parameter is cast to right behind it; both spellings of a time with a zone are one.
fn cast(text: &str) -> Option<String> {
    let cast = text.trim_start().strip_prefix("::")?.trim_start();
    let word = word_of(cast).to_ascii_lowercase();
    let next = word_of(cast[word.len()..].trim_start()).to_ascii_lowercase();
    Some(if word == "timestamp" && next == "with" { "timestamptz".into() } else { word })
}

#[cfg(test)]
mod tests;
