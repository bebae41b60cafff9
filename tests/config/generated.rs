//! What is generated from the types is checked in, and is fresh. `UPDATE_GENERATED=1` writes it anew.

use delivery_canary::cli::{check, schema};
use serde_json::Value;

/// Holds a checked-in file against what it must be, or writes it.
pub fn fresh(path: &str, wanted: &str) {
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, wanted).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    if there == wanted {
        return;
    }
    let line = there.lines().zip(wanted.lines()).position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| there.lines().count().min(wanted.lines().count()));
    panic!(
        "{path} is not fresh from line {} on: there `{}`, wanted `{}`; run the tests with UPDATE_GENERATED=1",
        line + 1,
        there.lines().nth(line).unwrap_or("(the end)"),
        wanted.lines().nth(line).unwrap_or("(the end)"),
    );
}

#[test]
fn the_schema_is_fresh() {
    fresh("config/schema.json", &schema::schema().unwrap());
}

#[test]
fn the_reference_is_fresh() {
    fresh("docs/configuration.md", &schema::reference().unwrap());
}

#[test]
fn no_default_in_the_schema_is_a_secret_and_every_key_has_a_meaning() {
    let schema: Value = serde_json::from_str(&schema::schema().unwrap()).unwrap();
    let types = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    for (name, property) in types.filter_map(|t| t["properties"].as_object()).flatten() {
        assert!(property["description"].is_string(), "`{name}` has no meaning");
        assert!(!property.to_string().contains("[secret]"), "`{name}`: {property}");
    }
}

#[test]
fn check_says_what_a_configuration_will_do() {
    let now = "2026-11-30T10:02:00Z".parse().unwrap();
    let run = |json| {
        let path = std::path::Path::new("tests/data/config/base.yaml");
        check::run_offline(path, None, &super::environment, now, json).unwrap()
    };
    let text = run(false);
    for line in [
        "webhook/receipts  2026-11-30T10:05:44.498Z      288      77/100         2m",
        "email/alerts      2026-11-30T10:10:34.672Z      144         6/6         6m",
        "a canary is sent at its slot and the route's own offset",
        "2 routes, 432 canaries a day by schedule",
    ] {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
    let json: Value = serde_json::from_str(&run(true)).unwrap();
    assert_eq!(json["ok"], true);
    assert_eq!(json["summary"]["routes"][0]["needed_an_hour"], 77);
}

#[test]
fn check_says_what_is_wrong_as_json_too() {
    let path = std::path::Path::new("config/minimal.yaml");
    let now = "2026-11-30T10:02:00Z".parse().unwrap();
    let json = check::run_offline(path, None, &|_| None, now, true).unwrap_err();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["faults"][0]["line"], 40);
}

#[test]
fn results_of_checks_are_a_line_each() {
    let result = |name: &str, status, hint: &str| check::CheckResult {
        name: name.into(),
        status,
        detail: "seen".into(),
        hint: Some(hint.into()),
    };
    let results =
        [result("store", check::Status::Ok, "none"), result("ledger x", check::Status::Failed, "do it")];
    assert_eq!(
        check::lines(&results),
        "ok      store     seen\nFAILED  ledger x  seen\n        hint: do it\n"
    );
}
