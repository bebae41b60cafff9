//! What the content of an arrived canary must be. Of a failure only the expectation's name is known.

use super::message::{Message, PlaceError, Spot};
use crate::{
    config::receipt::{Expectation, REGEX_BYTES},
    domain::{evidence::Content, route::CanaryId, traceparent::traceparent},
};
use regex::{Regex, RegexBuilder};
use std::collections::BTreeSet;
use thiserror::Error;

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
            text.as_deref().map(regex).transpose().map_err(|fault| ExpectationError::Pattern {
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
        // The same for the cache of its matching, whose time is linear in the text.
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

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderMap, HeaderValue};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use uuid::Uuid;

    const ID: CanaryId = CanaryId(Uuid::from_u128(0x0193_0000_0000_7000_8000_0000_0000_002a));

    fn compile(all: Value) -> Result<Expectations, ExpectationError> {
        Expectations::compile(&serde_json::from_value::<Vec<Expectation>>(all).unwrap())
    }

    fn one(expectation: Value) -> Expectations {
        let mut all = json!({ "name": "it" });
        all.as_object_mut().unwrap().extend(expectation.as_object().unwrap().clone());
        compile(json!([all])).unwrap()
    }

    fn holds(expectation: Value, headers: &HeaderMap, body: &str) -> bool {
        one(expectation).check(&Message::new(headers, body.as_bytes()), ID) == Content::Intact
    }

    #[test]
    fn what_must_hold_holds_or_not() {
        let mut headers = HeaderMap::new();
        headers.insert("x-one", "grün 1".parse().unwrap());
        headers.append("x-two", HeaderValue::from_static("a"));
        headers.append("x-two", HeaderValue::from_static("b"));
        let id = ID.to_string();
        let body = json!({ "a": "text", "n": 100.10, "i": 7, "t": true, "z": null, "l": [1, {}], "id": id, "a/b": { "~": 1 } });
        let body = body.to_string();
        let (one, two) = (json!({ "header": "X-One" }), json!({ "header": "x-two" }));
        let at = |pointer: &str| json!({ "pointer": pointer });
        let whole = json!({ "body": "whole" });
        for (expectation, expected) in [
            (json!({ "at": one, "equals": "grün 1" }), true),
            (json!({ "at": one, "min_length": 6, "max_length": 6 }), true),
            (json!({ "at": one, "min_length": 7 }), false),
            (json!({ "at": one, "max_length": 5 }), false),
            (json!({ "at": two, "equals": "a, b" }), true),
            (json!({ "at": { "header": "x-three" }, "must_not_match": "x" }), false),
            (json!({ "at": at("/a"), "matches": "^t.*t$" }), true),
            (json!({ "at": at("/a"), "matches": "^t.*t$", "must_not_match": "ex" }), false),
            (json!({ "at": at("/n"), "equals": "100.1" }), true),
            (json!({ "at": at("/i"), "equals": "7" }), true),
            (json!({ "at": at("/t"), "equals": "true" }), true),
            (json!({ "at": at("/z"), "equals": "null" }), true),
            (json!({ "at": at("/l"), "equals": "[1,{}]" }), true),
            (json!({ "at": at("/l/0"), "equals": "1" }), true),
            (json!({ "at": at("/a~1b/~0"), "equals": "1" }), true),
            (json!({ "at": at("/gone"), "must_not_match": "x" }), false),
            (json!({ "at": at("/id"), "equals": "{{canary_id}}" }), true),
            (json!({ "at": at("/a"), "equals": "{{canary_id}}" }), false),
            (json!({ "at": whole, "matches": "\"i\":7" }), true),
            (json!({ "at": whole, "must_not_match": "undefined|\\{\\{" }), true),
        ] {
            assert_eq!(holds(expectation.clone(), &headers, &body), expected, "{expectation}");
        }
        for no_json in ["", "text", "{", "[[[", "{} {}"] {
            assert!(!holds(json!({ "at": at("/a"), "must_not_match": "x" }), &headers, no_json), "{no_json}");
        }
        let not_text = Message::new(&headers, b"\xff\xfe");
        assert_ne!(
            super::tests::one(json!({ "at": whole, "must_not_match": "x" })).check(&not_text, ID),
            Content::Intact
        );
    }

    #[test]
    fn variables_are_filled_wherever_they_stand() {
        let expected = json!({ "at": { "body": "whole" }, "equals": "{{canary_id}}/{{ traceparent }}!" });
        let body = format!("{ID}/{}!", traceparent(ID));
        assert!(holds(expected, &HeaderMap::new(), &body));
    }

    #[test]
    fn what_could_not_be_checked_is_refused_with_its_name() {
        let whole = json!({ "body": "whole" });
        let long = format!("(?:{}){{1000}}", "[a-z]".repeat(50));
        for (all, expected) in [
            (json!([{ "name": "Upper", "at": whole, "equals": "x" }]), "lower case"),
            (json!([{ "name": "", "at": whole, "equals": "x" }]), "1 to 40"),
            (json!([{ "name": "a".repeat(41), "at": whole, "equals": "x" }]), "1 to 40"),
            (
                json!([{ "name": "a", "at": whole, "equals": "x" }, { "name": "a", "at": whole, "equals": "y" }]),
                "two",
            ),
            (json!([{ "name": "a", "at": whole }]), "asks nothing"),
            (json!([{ "name": "a", "at": whole, "min_length": 2, "max_length": 1 }]), "above"),
            (json!([{ "name": "a", "at": whole, "matches": "(" }]), "`matches`"),
            (json!([{ "name": "a", "at": whole, "must_not_match": long }]), "`must_not_match`"),
            (json!([{ "name": "a", "at": whole, "matches": "(a)\\1" }]), "`matches`"),
            (json!([{ "name": "a", "at": whole, "equals": "{{amount}}" }]), "{{amount}}"),
            (json!([{ "name": "a", "at": whole, "equals": "{{canary_id" }]), "canary_id"),
            (json!([{ "name": "a", "at": { "pointer": "a" }, "equals": "x" }]), "start with `/`"),
            (json!([{ "name": "a", "at": { "pointer": "/~2" }, "equals": "x" }]), "`~0`"),
            (json!([{ "name": "a", "at": { "header": "no header" }, "equals": "x" }]), "name of a header"),
        ] {
            let error = compile(all.clone()).unwrap_err().to_string();
            assert!(error.contains(expected), "{all}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_body_panics_and_a_failure_is_known_by_its_name_only(body: Vec<u8>) {
            let all = compile(json!([
                { "name": "never", "at": { "body": "whole" }, "equals": "\u{1}\u{2}\u{3} never" },
                { "name": "place", "at": { "pointer": "/a/0" }, "min_length": 1 },
            ])).unwrap();
            let Content::Malformed { failed } = all.check(&Message::new(&HeaderMap::new(), &body), ID) else {
                panic!("it can't hold");
            };
            prop_assert!(failed.contains("never") && failed.len() <= 2);
        }
    }
}
