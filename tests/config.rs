//! The configuration: what is read, what is refused, and in which words.

use delivery_canary::config;
use std::path::Path;

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN_SECRET" | "TOKEN_SECRET_BEFORE" => Some("0123456789abcdef-not-a-secret".into()),
        "WEBHOOK_SECRET" => Some("whsec_bm90LWEtc2VjcmV0LW5vdC1hLXNlY3JldA==".into()),
        "API_TOKEN" | "PROVIDER_TOKEN" | "STORE_PASSWORD" | "LEDGER_PASSWORD" => Some("not-a-secret".into()),
        _ => None,
    }
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
        "config/minimal.yaml:23:11: the environment has no variable `TOKEN_SECRET`\n    \
         hint: set it, or give a default: `${TOKEN_SECRET:-default}`\n1 fault"
    );
}
