//! Numbers in rules: written in full precision, each with where it comes from.

use std::{fmt, time::Duration};

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the store's or the ledger's own distributions.
    Measured,
    /// From the configuration.
    Configured,
    /// Computed from other numbers.
    Derived,
    /// Somebody's choice.
    Chosen,
}

impl Source {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Configured => "configured",
            Self::Derived => "derived",
            Self::Chosen => "chosen",
        }
    }
}

/// A number in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// As it stands in the rule.
    pub written: String,
    /// What it is.
    pub what: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// How it came to be this one.
    pub why: String,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}: {})", self.written, self.what, self.source.word(), self.why)
    }
}

/// The numbers of one rule, as they are written into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(Vec<Number>);

impl Numbers {
    /// Notes a number, and gives what is to be written.
    pub fn put(&mut self, what: &'static str, value: f64, source: Source, why: impl Into<String>) -> String {
        self.note(what, full(value), source, why.into())
    }

    /// Notes a time in whole seconds, and gives what is to be written.
    pub fn seconds(
        &mut self,
        what: &'static str,
        time: Duration,
        source: Source,
        why: impl Into<String>,
    ) -> String {
        self.note(what, full(time.as_secs_f64()), source, why.into())
    }

    /// Notes a time that stands in brackets or after `offset`, such as `5m`.
    pub fn span(
        &mut self,
        what: &'static str,
        span: &'static str,
        source: Source,
        why: impl Into<String>,
    ) -> String {
        self.note(what, span.to_owned(), source, why.into())
    }

    fn note(&mut self, what: &'static str, written: String, source: Source, why: String) -> String {
        let number = Number { written: written.clone(), what, source, why };
        if !self.0.contains(&number) {
            self.0.push(number);
        }
        written
    }

    /// All of them, in the order in which they were noted.
    pub fn all(&self) -> &[Number] {
        &self.0
    }
}

/// A number in full precision and without an exponent: a bound that is printed as 0.00000 would page on any error.
///
/// Twelve digits behind the first are kept, so that 14.4 x 0.001 is 0.0144 and not the nearest sum of halves.
pub fn full(value: f64) -> String {
    if value.fract() == 0.0 {
        return value.to_string();
    }
    let rounded: f64 = format!("{value:.12e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// All numbers that are written in an expression, outside of names and of quotes. Spans such as `5m` are among them.
pub fn literals(expr: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut word, mut quoted) = (String::new(), false);
    for c in expr.chars().chain([' ']) {
        if c == '"' {
            quoted = !quoted;
        }
        if !quoted && (c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':')) {
            word.push(c);
            continue;
        }
        let finished = std::mem::take(&mut word);
        if finished.starts_with(|c: char| c.is_ascii_digit()) {
            found.push(finished);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_in_full() {
        assert_eq!(full(14.4 * (1.0 - 0.999)), "0.0144");
        assert_eq!(full(0.000_000_1), "0.0000001");
        assert_eq!(full(120.0), "120");
        assert_eq!(full(281_474_976_710_655.0), "281474976710655");
    }

    #[test]
    fn literals_are_found_outside_of_names_and_quotes() {
        let expr = "a:b2:sum{w=\"1h\"}[5m] * 14.4 > 0.5 offset 7d";
        assert_eq!(literals(expr), ["5m", "14.4", "0.5", "7d"]);
    }

    proptest! {
        #[test]
        fn a_number_is_never_rounded_to_nothing(value in 1e-9f64..1e9) {
            let back: f64 = full(value).parse().unwrap();
            prop_assert!((back / value - 1.0).abs() < 1e-11);
        }
    }
}
