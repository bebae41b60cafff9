//! What `alerts generate` made, for a faster clock: the same rules and the same tree, each duration and each number of seconds divided,
//! and nothing else changed. A number that nobody here knows stops the test, so that nothing stays unscaled.

use super::clock::Clock;
use delivery_canary::{
    alerts::{
        plan::Plan,
        rules::{self, Rule},
    },
    catalog::hash_value,
    config::{
        ConfigHash,
        scalar::Span,
        tree::{self, Content, Node},
    },
};
use serde_json::{Map, Value};

/// Numbers of rules that are seconds.
const SECONDS: [&str; 8] = [
    "seconds since a loop last succeeded",
    "seconds since the ledger was last read well",
    "seconds of failing",
    "seconds of age",
    "seconds looked back",
    "seconds of difference",
    "seconds since what is shown was put together",
    "seconds known",
];

/// Numbers of rules that are counts, shares or multiples.
const COUNTS: [&str; 24] = [
    "intervals in which no canary said anything",
    "deadlines that have passed",
    "loops that must run",
    "evidence",
    "halves",
    "pending past the deadline",
    "deadlines of age",
    "canaries failed in a row",
    "accepted in that hour",
    "times the usual",
    "least number",
    "share of the slots",
    "missed slots",
    "contradictions of a kind in a day",
    "suppressed canaries in a day",
    "intervals after a slot",
    "pending past the deadline in the budget of a day",
    "share of the counted",
    "share of the comparisons",
    "bad share",
    "accepted in the window",
    "bad in a day",
    "factor",
    "bad at the bound",
];

/// Numbers that are written without a source: they mean yes, no and all of it.
const BARE: [&str; 2] = ["0", "1"];

/// What a number in a rule is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Seconds,
    Count,
    Hash,
}

/// A YAML document as JSON, which is YAML as well. Words without quotes that mean yes or no are read as such.
pub fn read(text: &str) -> Value {
    let (root, complaints) = tree::parse(text);
    assert!(complaints.is_empty(), "it is YAML, but for: {}", complaints[0].message);
    json(&root.expect("it has content"))
}

fn json(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(scalar) => match (scalar.plain, scalar.text.as_str()) {
            (true, "true") => Value::Bool(true),
            (true, "false") => Value::Bool(false),
            (_, text) => Value::String(text.to_owned()),
        },
        Content::List(items) => Value::Array(items.iter().map(json).collect()),
        Content::Map(entries) => {
            Value::Object(entries.iter().map(|(key, value)| (key.text.clone(), json(value))).collect())
        }
    }
}

/// The rule file for this clock and for a monitor whose configuration has this hash.
pub fn rules(made: &str, plan: &Plan<'_>, clock: Clock, hash: ConfigHash) -> Value {
    let mut file = read(made);
    let (known, _) = rules::rules(plan);
    let mut known = known.iter();
    for group in list(&mut file, "groups") {
        let group = map(group);
        shorten(group, "interval", clock);
        only(group, &["name", "interval", "rules"]);
        for rule in list(&mut group["rules"], "") {
            let rule = map(rule);
            only(rule, &["record", "alert", "expr", "for", "labels", "annotations"]);
            let known = known.next().expect("no more rules in the file than there are");
            assert_eq!(rule["expr"], known.expr(), "the rules come in the order in which they are made");
            rule["expr"] = expression(known, clock, hash).into();
            shorten(rule, "for", clock);
        }
    }
    assert_eq!(known.next().map(Rule::expr), None, "every rule is in the file");
    file
}

/// The Alertmanager's configuration for this clock.
pub fn alertmanager(made: &str, clock: Clock) -> Value {
    let mut file = read(made);
    waits(&mut file, clock);
    file
}

fn waits(value: &mut Value, clock: Clock) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| waits(item, clock)),
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key.ends_with("_wait") || key.ends_with("_interval") => {
                        *text = clock.span(text);
                    }
                    Value::String(text) => {
                        assert!(text.parse::<Span>().is_err(), "`{key}: {text}` is a duration nobody knows");
                    }
                    other => waits(other, clock),
                }
            }
        }
        _ => {}
    }
}

/// The rule's expression, each number in it as what it is.
fn expression(rule: &Rule, clock: Clock, hash: ConfigHash) -> String {
    let meaning = |written: &str| {
        let all = rule.numbers().iter().filter(|number| number.written == written);
        let mut found: Vec<Is> = all.map(|number| is(number.what)).collect();
        found.dedup();
        match found[..] {
            [one] => one,
            [] if BARE.contains(&written) => Is::Count,
            _ => panic!("{written} is {found:?} in {}", rule.expr()),
        }
    };
    numbers(rule.expr(), |written| {
        if written.parse::<Span>().is_ok() {
            return clock.span(written);
        }
        match meaning(written) {
            Is::Seconds => clock.seconds(written),
            Is::Count => written.to_owned(),
            Is::Hash => hash_value(hash.get()).to_string(),
        }
    })
}

fn is(what: &str) -> Is {
    match what {
        "hash" => Is::Hash,
        seconds if SECONDS.contains(&seconds) => Is::Seconds,
        count if COUNTS.contains(&count) => Is::Count,
        other => panic!("nobody knows whether {other:?} is seconds: say so here"),
    }
}

/// Replaces each number of an expression, outside of names and quotes.
fn numbers(expr: &str, replace: impl Fn(&str) -> String) -> String {
    let (mut out, mut word, mut quoted) = (String::new(), String::new(), false);
    for c in expr.chars().chain(['\n']) {
        quoted ^= c == '"';
        if !quoted && (c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':')) {
            word.push(c);
            continue;
        }
        let finished = std::mem::take(&mut word);
        let is_number = finished.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(&if is_number { replace(&finished) } else { finished });
        out.push(c);
    }
    out.truncate(out.len() - 1);
    out
}

fn map(value: &mut Value) -> &mut Map<String, Value> {
    value.as_object_mut().expect("it is a map")
}

/// The list under a key; of a list itself, with no key.
fn list<'a>(value: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    let list = if key.is_empty() { value } else { &mut value[key] };
    list.as_array_mut().unwrap_or_else(|| panic!("`{key}` is a list"))
}

fn only(map: &Map<String, Value>, known: &[&str]) {
    let other = map.keys().find(|key| !known.contains(&key.as_str()));
    assert_eq!(other, None, "a key that nobody here knows may be a duration");
}

fn shorten(map: &mut Map<String, Value>, key: &str, clock: Clock) {
    if let Some(Value::String(text)) = map.get_mut(key) {
        *text = clock.span(text);
    }
}

#[test]
fn only_numbers_are_replaced() {
    let expr = "a:b2:sum{w=\"1h\"}[5m] * 14.4 > 0.5 offset 7d";
    assert_eq!(numbers(expr, |n| format!("<{n}>")), "a:b2:sum{w=\"1h\"}[<5m>] * <14.4> > <0.5> offset <7d>");
    assert_eq!(numbers(expr, str::to_owned), expr);
}
