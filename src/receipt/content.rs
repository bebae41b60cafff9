//! What the content of an arrived canary must be. Of a failure only the expectation's name is known.

use super::message::{Message, PlaceError, Spot};
use crate::{
    config::receipt::Expectation,
    domain::{evidence::Content, route::CanaryId, traceparent::traceparent},
};
use regex::{Regex, RegexBuilder};
use std::collections::BTreeSet;
use thiserror::Error;

/// Room for one compiled expression, in bytes; and for the cache of its matching, whose time is linear in the text.
const REGEX_BYTES: usize = 256 * 1024;

/// Why an expectation can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExpectationError {
    /// Its name would not do.
    #[error("the name `{name}` of an expectation: use 1 to 40 lower case letters, digits and hyphens")]
    Name {
        /// What was given.
        name: String,
    },
    /// Another one has this name.
    #[error(
        "two expectations have the name `{name}`: give each its own, since it is all that is kept of a failure"
    )]
    Twice {
        /// The name.
        name: String,
    },
    /// It looks nowhere.
    #[error("expectation `{name}`: {source}")]
    Place {
        /// Its name.
        name: String,
        /// What is wrong with the place.
        source: PlaceError,
    },
    /// It asks nothing.
    #[error(
        "expectation `{name}` asks nothing: give `matches`, `must_not_match`, `equals`, `min_length` or `max_length`"
    )]
    Empty {
        /// Its name.
        name: String,
    },
    /// A pattern is no regular expression, or too large a one.
    #[error("expectation `{name}`: `{key}` is not a regular expression that can be used: {fault}")]
    Pattern {
        /// Its name.
        name: String,
        /// The key.
        key: &'static str,
        /// What the parser says.
        fault: String,
    },
    /// No text has such a length.
    #[error("expectation `{name}`: `min_length` is above `max_length`, so nothing could meet it")]
    Lengths {
        /// Its name.
        name: String,
    },
    /// A variable that isn't known here.
    #[error(
        "expectation `{name}`: `equals` names `{{{{{variable}}}}}`; only `{{{{canary_id}}}}` and `{{{{traceparent}}}}` are known here"
    )]
    Variable {
        /// Its name.
        name: String,
        /// The variable.
        variable: String,
    },
}

/// All expectations of a route, compiled.
#[derive(Clone, Debug, Default)]
pub struct Expectations(Vec<Compiled>);

#[derive(Clone, Debug)]
struct Compiled {
    name: String,
    at: Spot,
    matches: Option<Regex>,
    must_not_match: Option<Regex>,
    equals: Option<Vec<Piece>>,
    min_length: usize,
    max_length: usize,
}

/// A piece of an expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    CanaryId,
    Traceparent,
}

impl Expectations {
    /// Checks and compiles.
    pub fn compile(expectations: &[Expectation]) -> Result<Self, ExpectationError> {
        let mut names = BTreeSet::new();
        let compiled = expectations.iter().map(|expectation| {
            if !names.insert(&expectation.name) {
                return Err(ExpectationError::Twice { name: expectation.name.clone() });
            }
            Compiled::compile(expectation)
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// Holds a message against them. Where there is no text at its place, an expectation fails, whatever it asks.
    pub fn check(&self, message: &Message<'_>, canary_id: CanaryId) -> Content {
        let fails = |e: &&Compiled| !message.text_at(&e.at).is_some_and(|text| e.holds(&text, canary_id));
        let failed: BTreeSet<String> = self.0.iter().filter(fails).map(|e| e.name.clone()).collect();
        if failed.is_empty() { Content::Intact } else { Content::Malformed { failed } }
    }
}

impl Compiled {
    fn compile(given: &Expectation) -> Result<Self, ExpectationError> {
        let name = given.name.clone();
        let good_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || name.len() > 40 || !name.bytes().all(good_letter) {
            return Err(ExpectationError::Name { name });
        }
        let asks_text = given.matches.is_some() || given.must_not_match.is_some() || given.equals.is_some();
        if !asks_text && given.min_length.is_none() && given.max_length.is_none() {
            return Err(ExpectationError::Empty { name });
        }
        let (min_length, max_length) =
            (given.min_length.unwrap_or(0), given.max_length.unwrap_or(usize::MAX));
        if min_length > max_length {
            return Err(ExpectationError::Lengths { name });
        }
        let at = Spot::compile(&given.at)
            .map_err(|source| ExpectationError::Place { name: name.clone(), source })?;
        let pattern = |key, text: &Option<String>| {
            text.as_deref().map(|text| regex(text)).transpose().map_err(|fault| ExpectationError::Pattern {
                name: name.clone(),
                key,
                fault,
            })
        };
        let matches = pattern("matches", &given.matches)?;
        let must_not_match = pattern("must_not_match", &given.must_not_match)?;
        let equals = given
            .equals
            .as_deref()
            .map(pieces)
            .transpose()
            .map_err(|variable| ExpectationError::Variable { name: name.clone(), variable })?;
        Ok(Self { name, at, matches, must_not_match, equals, min_length, max_length })
    }

    fn holds(&self, text: &str, canary_id: CanaryId) -> bool {
        let length = text.chars().count();
        (self.min_length..=self.max_length).contains(&length)
            && self.matches.as_ref().is_none_or(|r| r.is_match(text))
            && self.must_not_match.as_ref().is_none_or(|r| !r.is_match(text))
            && self.equals.as_ref().is_none_or(|pieces| fill(pieces, canary_id) == text)
    }
}

fn regex(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .build()
        .map_err(|error| error.to_string())
}

/// Cuts `equals` at its variables. The error is a variable that isn't known, or one that is never closed.
fn pieces(mut text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    while let Some((before, after)) = text.split_once("{{") {
        let (variable, rest) = after.split_once("}}").ok_or_else(|| after.to_owned())?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(match variable.trim() {
            "canary_id" => Piece::CanaryId,
            "traceparent" => Piece::Traceparent,
            other => return Err(other.to_owned()),
        });
        text = rest;
    }
    pieces.push(Piece::Text(text.to_owned()));
    Ok(pieces)
}

fn fill(pieces: &[Piece], canary_id: CanaryId) -> String {
    let one = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::CanaryId => canary_id.to_string(),
        Piece::Traceparent => traceparent(canary_id),
    };
    pieces.iter().map(one).collect()
}
