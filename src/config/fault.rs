//! What is wrong with a configuration, and where.

use std::{fmt, path::PathBuf};

/// Most characters of an offending value that are shown.
const SHOWN: usize = 80;

/// Most faults that are printed; all are counted.
const PRINTED: usize = 100;

/// One thing that is wrong, with its place and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The configuration's file.
    pub file: PathBuf,
    /// The line; the first is 1. 0 when the file as a whole is at fault.
    pub line: u32,
    /// The column in characters; the first is 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// The value at fault, as it is written in the file. Never a secret.
    pub value: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        write!(f, " {}", self.message)?;
        if let Some(value) = &self.value {
            write!(f, "\n    value: {value}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n    hint: {hint}")?;
        }
        Ok(())
    }
}

/// All faults of one configuration, by line and column. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Sorts faults by place and drops the repeated: one anchored fault is seen through each of its aliases.
    pub fn new(mut faults: Vec<Fault>) -> Self {
        faults.sort_by(|a, b| (a.line, a.column, &a.message).cmp(&(b.line, b.column, &b.message)));
        faults.dedup();
        Self(faults)
    }

    /// The faults, sorted by place.
    pub fn as_slice(&self) -> &[Fault] {
        &self.0
    }

    /// The same without the values: for the log, which holds no recipient.
    #[must_use]
    pub fn without_values(self) -> Self {
        Self(self.0.into_iter().map(|fault| Fault { value: None, ..fault }).collect())
    }

    /// The faults, sorted by place.
    pub fn into_vec(self) -> Vec<Fault> {
        self.0
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in self.0.iter().take(PRINTED) {
            writeln!(f, "{fault}")?;
        }
        if self.0.len() > PRINTED {
            writeln!(f, "... and {} more", self.0.len() - PRINTED)?;
        }
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(f, "{} fault{plural}", self.0.len())
    }
}

impl std::error::Error for Faults {}

/// A value as it may be shown: on one line, shortened, without control characters and without the credentials of a URL.
pub(super) fn shown(text: &str) -> String {
    let clean = without_credentials(text);
    let mut out = String::from("`");
    for (n, c) in clean.chars().enumerate() {
        if n == SHOWN {
            out.push_str("...");
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.push('`');
    out
}

/// Replaces what stands between `://` and the last `@` of each authority.
fn without_credentials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + 3);
        out.push_str(before);
        // A password may hold any character but white space, a `/` too where it was not escaped.
        let end = after.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(at) => {
                out.push_str("...");
                rest = &after[at..];
            }
            None => rest = after,
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_value_has_no_credentials_and_no_control_characters() {
        assert_eq!(shown("postgres://me:pa/ss@w@host/db"), "`postgres://...@host/db`");
        assert_eq!(shown("a\nb\u{1b}"), "`a\\nb\\u{1b}`");
        assert_eq!(shown(&"x".repeat(100)), format!("`{}...`", "x".repeat(80)));
        assert_eq!(shown("http://host/x"), "`http://host/x`");
    }
}
