//! The configuration: what is read, what is refused, and in which words.

mod cases;
mod generated;
mod guard;
mod hostile;
mod reload;
mod secrets;
mod values;

use delivery_canary::config::{self, Faults, Loaded};
use std::path::Path;

/// The environment of all these tests.
pub fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN_SECRET" | "TOKEN_SECRET_BEFORE" => Some("0123456789abcdef-hunter2".into()),
        "WEBHOOK_SECRET" => Some("whsec_aHVudGVyMi1odW50ZXIyLWh1bnRlcjI=".into()),
        "API_TOKEN" | "PROVIDER_TOKEN" | "STORE_PASSWORD" | "LEDGER_PASSWORD" => Some("hunter2".into()),
        _ => None,
    }
}

/// Loads a text as a file of its own, and hands the file's folder over to be filled before.
pub fn load_text(text: &str) -> Result<Loaded, Faults> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.yaml");
    std::fs::write(&path, text).expect("the file is written");
    config::load(&path, &environment)
}

/// The sound configuration of the tests.
pub fn base() -> String {
    std::fs::read_to_string("tests/data/config/base.yaml").expect("the base is there")
}

/// Replaces what must be there.
pub fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "`{from}` isn't there to be replaced");
    text.replacen(from, to, 1)
}

#[test]
fn the_examples_load_without_a_warning() {
    let mut seen = 0;
    for entry in std::fs::read_dir("config").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            let loaded = config::load(&path, &environment).unwrap_or_else(|faults| panic!("{faults}"));
            assert_eq!(loaded.warnings, [], "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen} examples in config/");
}

#[test]
fn what_is_missing_is_named_with_its_place() {
    let faults = config::load(Path::new("config/minimal.yaml"), &|_| None).unwrap_err();
    assert_eq!(
        faults.to_string(),
        "config/minimal.yaml:40:11: the environment has no variable `TOKEN_SECRET`\n    \
         hint: set `TOKEN_SECRET` for this command as for `serve`, or write `{ file: PATH }` for a secret in a file\n1 fault"
    );
}
