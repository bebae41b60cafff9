//! The arrows of the house: a module knows only what stands below it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Each room, and the rooms it may know. `main` is left out: it knows `cli` alone, by the library's name.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("clock", &[]),
    ("simulator", &[]),
    ("trust", &[]),
    ("catalog", &["domain"]),
    ("dashboards", &[]),
    ("config", &["domain"]),
    ("store", &["domain", "clock", "config"]),
    ("acceptance", &["domain", "clock", "trust", "config"]),
    ("receipt", &["domain", "clock", "trust", "config"]),
    ("ledger", &["domain", "clock", "trust", "config"]),
    ("alerts", &["domain", "catalog", "config"]),
    (
        "monitor",
        &["domain", "clock", "catalog", "config", "store", "acceptance", "receipt", "ledger", "alerts"],
    ),
    ("exposition", &["domain", "catalog", "config", "store", "acceptance", "receipt", "ledger", "monitor"]),
    ("health", &["domain", "catalog", "config", "monitor", "exposition"]),
    (
        "cli",
        &[
            "domain",
            "clock",
            "simulator",
            "trust",
            "catalog",
            "dashboards",
            "config",
            "store",
            "acceptance",
            "receipt",
            "ledger",
            "alerts",
            "monitor",
            "exposition",
            "health",
        ],
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The room that a file is in.
fn room(path: &Path) -> String {
    let inside = path.strip_prefix(src()).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The rooms that a file names: after `crate::`, alone or in braces.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.chars().chain(['\n']))
        .collect();
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            let mut at_start = true;
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => at_start = true,
                    c if depth == 0 && at_start && (c.is_alphanumeric() || c == '_') => word.push(c),
                    c if c.is_whitespace() && word.is_empty() => continue,
                    _ => at_start = false,
                }
                if (!at_start || c == ',') && !word.is_empty() {
                    rooms.insert(std::mem::take(&mut word));
                }
            }
            if !word.is_empty() {
                rooms.insert(word);
            }
        } else {
            rooms.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    rooms
}

#[test]
fn no_arrow_runs_up_nor_between_adapters() {
    let mut files = Vec::new();
    sources(&src(), &mut files);
    let mut faults = Vec::new();
    for file in files {
        let room = room(&file);
        if room == "lib" || room == "main" {
            continue;
        }
        let Some((_, may)) = ARROWS.iter().find(|(name, _)| *name == room) else {
            faults.push(format!("{}: the room `{room}` is not on the plan", file.display()));
            continue;
        };
        for target in named(&fs::read_to_string(&file).unwrap()) {
            let is_room = ARROWS.iter().any(|(name, _)| *name == target);
            if is_room && target != room && !may.contains(&target.as_str()) {
                faults.push(format!("{}: `{room}` must not know `{target}`", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_reader_of_arrows_sees_both_ways_of_writing_them() {
    let text = "use crate::{\n    domain::route::{A, B},\n    store::Store,\n};\nfn f() { crate::monitor::x() }\n// crate::cli\n";
    let found: Vec<String> = named(text).into_iter().collect();
    assert_eq!(found, ["domain", "monitor", "store"]);
}

#[test]
fn the_core_has_no_clock_no_randomness_and_no_io() {
    let mut files = Vec::new();
    sources(&src().join("domain"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in [
            "Utc::now",
            "Instant::now",
            "SystemTime",
            "rand::",
            "now_v7",
            "new_v4",
            "std::fs",
            "std::net",
            "tokio",
            "async fn",
            "std::env",
        ] {
            assert!(!code.contains(word), "{}: `{word}` does not belong in the pure core", file.display());
        }
    }
}

#[test]
fn nothing_that_could_act_on_pods_is_in_the_dependency_tree() {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    for line in lock.lines().filter_map(|l| l.strip_prefix("name = ")) {
        let name = line.trim_matches('"');
        let is_client = name == "kube"
            || name.starts_with("kube-")
            || name.starts_with("k8s")
            || name.contains("kubernetes");
        assert!(!is_client, "the crate `{name}` could act on Pods");
    }
}

/// The processes that share a store go by its clock. Simulated services and tests have the system's.
#[test]
fn what_others_read_is_stamped_by_one_clock() {
    let mut files = Vec::new();
    for room in ["store", "acceptance", "receipt", "ledger", "monitor"] {
        sources(&src().join(room), &mut files);
    }
    let own = |file: &PathBuf| file.ends_with("store/look.rs") || file.ends_with("receipt/rules.rs");
    let asks = |file: &PathBuf| fs::read_to_string(file).unwrap().contains("Utc::now");
    let faults: Vec<_> = files.into_iter().filter(|file| !own(file) && asks(file)).collect();
    assert!(faults.is_empty(), "these ask the system what time it is; ask `clock::now`: {faults:?}");
}
