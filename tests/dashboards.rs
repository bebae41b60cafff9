//! The dashboards: fresh, by the rules for Grafana's JSON, and asking only for what is exported.

mod data;

use crate::common::{postgres, prometheus, world};
use delivery_canary::{
    catalog::{self, Kind, Label},
    dashboards::{self, Board},
};
use regex::Regex;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

/// Series that come from elsewhere: the rules, and the process metrics of the client library.
const FOREIGN: [&str; 4] =
    ["ALERTS", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"];

fn json(board: &Board) -> Value {
    serde_json::from_str(&board.text()).expect("it is JSON")
}

fn panels(board: &Value) -> impl Iterator<Item = &Value> {
    let all = board["panels"].as_array().expect("there are panels").iter();
    all.filter(|panel| panel["type"] != "row")
}

fn queries() -> Vec<(String, String)> {
    let of = |board: &Board| -> Vec<(String, String)> {
        let title = |title: &str| format!("{}: {title}", board.uid);
        let panels = board.panels();
        panels
            .flat_map(|p| p.queries.iter().map(move |q| (title(p.title), q.expr.clone())).collect::<Vec<_>>())
            .collect()
    };
    dashboards::all().iter().flat_map(of).collect()
}

/// The names of series by family, with the labels that each has.
fn exported() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut names = BTreeMap::new();
    for family in catalog::FAMILIES {
        let labels: BTreeSet<&str> = family.labels.iter().copied().map(Label::name).collect();
        if family.kind == Kind::Histogram {
            for part in ["_sum", "_count"] {
                names.insert(format!("{}{part}", family.name), labels.clone());
            }
            let with_bound = labels.iter().copied().chain(["le"]).collect();
            names.insert(format!("{}_bucket", family.name), with_bound);
        } else {
            names.insert(family.name.to_owned(), labels);
        }
    }
    names
}

#[test]
fn the_dashboards_are_fresh() {
    for board in dashboards::all() {
        let path = format!("dashboards/{}.json", board.uid);
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            fs::write(&path, board.text()).expect("it can be written");
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == board.text(), "{path} is stale: run this test with UPDATE_GENERATED=1");
    }
}

#[test]
fn the_json_keeps_the_rules_for_provisioned_dashboards() {
    let mut uids = BTreeSet::new();
    let used = Regex::new(r"\$\{?(\w+)").expect("a pattern");
    for board in dashboards::all() {
        let json = json(&board);
        assert_eq!(
            (&json["id"], &json["schemaVersion"], &json["editable"]),
            (&Value::Null, &39.into(), &false.into())
        );
        let uid = json["uid"].as_str().expect("a fixed uid");
        assert!(uid.len() <= 40 && uids.insert(uid.to_owned()), "{uid} is too long, or not the only one");
        assert!(json.get("__inputs").is_none() && json.get("__requires").is_none());
        let variables = json["templating"]["list"].as_array().expect("there are variables");
        assert!(variables.iter().any(|v| v["name"] == "datasource" && v["type"] == "datasource"));
        let known: BTreeSet<String> = variables
            .iter()
            .map(|v| v["name"].as_str().expect("a name").to_owned())
            .chain(["__rate_interval".into(), "__all".into()])
            .collect();
        for found in used.captures_iter(&board.text()) {
            assert!(known.contains(&found[1]), "{uid}: ${} is no variable", &found[1]);
        }
        let mut ids = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for panel in json["panels"].as_array().expect("there are panels") {
            assert!(
                ids.insert(panel["id"].as_u64().expect("a number")),
                "{uid}: {} has the id of another",
                panel["title"]
            );
            let place = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
            assert!(place("x") + place("w") <= 24, "{uid}: {} is too wide", panel["title"]);
            for x in place("x")..place("x") + place("w") {
                for y in place("y")..place("y") + place("h") {
                    assert!(taken.insert((x, y)), "{uid}: {} lies on another", panel["title"]);
                }
            }
        }
        for panel in panels(&json) {
            let title = panel["title"].as_str().expect("a title");
            assert!(
                panel["description"].as_str().is_some_and(|text| text.len() > 20),
                "{uid}: {title} says nothing"
            );
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{uid}: {title} has no unit");
            let targets = panel["targets"].as_array().expect("there are targets");
            assert!(!targets.is_empty(), "{uid}: {title} asks nothing");
            for at in [panel].into_iter().chain(targets) {
                assert_eq!(at["datasource"]["uid"], "${datasource}", "{uid}: {title}");
            }
        }
    }
}

/// Trial 27: a dashboard on metrics that do not exist.
#[test]
fn dashboards_ask_only_for_what_is_exported() {
    let exported = exported();
    let series = Regex::new(r"\b((?:delivery|process)_\w+|ALERTS)\b(?:\{([^}]*)\})?").expect("a pattern");
    let matcher = Regex::new(r#"(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)""#).expect("a pattern");
    for (title, expr) in queries() {
        for found in series.captures_iter(&expr) {
            let name = &found[1];
            if FOREIGN.contains(&name) {
                continue;
            }
            let labels = exported.get(name).unwrap_or_else(|| panic!("{title}: nothing exports {name}"));
            let matchers = found.get(2).map_or("", |m| m.as_str());
            for pair in matcher.captures_iter(matchers) {
                assert!(labels.contains(&pair[1]), "{title}: {name} has no label {}", &pair[1]);
                let words = words_of(name, &pair[1]);
                for value in pair[2].split('|').filter(|value| !value.starts_with('$')) {
                    let is_word = words.as_ref().is_none_or(|words| words.contains(value));
                    assert!(is_word, "{title}: {name} has no {} {value}", &pair[1]);
                }
            }
        }
    }
    for board in dashboards::all() {
        for choice in &board.choices {
            let labels = exported.get(choice.of).unwrap_or_else(|| panic!("nothing exports {}", choice.of));
            assert!(labels.contains(choice.label), "{} has no label {}", choice.of, choice.label);
        }
    }
}

/// The words that a label of a series can have; nothing where they come from the configuration.
fn words_of(series: &str, label: &str) -> Option<BTreeSet<&'static str>> {
    let family =
        catalog::FAMILIES.iter().find(|f| series.starts_with(f.name) && series.len() <= f.name.len() + 7)?;
    let label = family.labels.iter().find(|l| l.name() == label)?;
    match label.values() {
        catalog::Values::Words(words) => Some(words.into_iter().collect()),
        catalog::Values::Named(_) => None,
    }
}

/// Every query is PromQL, by Prometheus' own parser.
#[test]
fn prometheus_can_parse_every_query() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("queries.yaml");
    let variable = Regex::new(r"\$(route|location|ledger)").expect("a pattern");
    let rules: Vec<Value> = queries()
        .iter()
        .enumerate()
        .map(|(number, (_, expr))| {
            let expr = expr.replace("$__rate_interval", "5m");
            serde_json::json!({"record": format!("query:{number}"), "expr": variable.replace_all(&expr, ".+")})
        })
        .collect();
    let file = serde_json::json!({"groups": [{"name": "queries", "rules": rules}]});
    fs::write(&path, file.to_string()).expect("it can be written");
    let output = Command::new("promtool").args(["check", "rules"]).arg(&path).output();
    let output = output.expect("promtool is there: ./test installs the package prometheus");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
