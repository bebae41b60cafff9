//! Every case of cases.txt gives exactly the faults and warnings of cases.expected.txt.
//!
//! A case is a title and edits of base.yaml: a line `- ` with what stands there, a line `+ ` with what comes instead.

use super::{base, edit, environment};
use delivery_canary::config;
use std::fmt::Write as _;

const FOLDER: &str = "tests/data/config";

struct Case {
    title: String,
    text: String,
}

fn cases() -> Vec<Case> {
    let all = std::fs::read_to_string(format!("{FOLDER}/cases.txt")).expect("the cases are there");
    let mut cases: Vec<Case> = Vec::new();
    let mut from = None;
    for line in all.lines().filter(|line| !line.is_empty()) {
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case { title: title.into(), text: base() });
        } else if let Some(old) = line.strip_prefix("- ") {
            from = Some(old.replace("\\n", "\n"));
        } else if let Some(new) = line.strip_prefix('+') {
            let case = cases.last_mut().expect("a title comes first");
            let new = new.strip_prefix(' ').unwrap_or(new).replace("\\n", "\n");
            case.text = edit(&case.text, &from.take().expect("a line `- ` comes first"), &new);
        } else {
            panic!("not a line of a case: {line}");
        }
    }
    cases
}

#[test]
fn each_fault_is_reported_in_these_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("base.yaml");
    std::fs::create_dir(folder.path().join("secrets")).expect("a folder");
    std::fs::write(folder.path().join("secrets/empty"), "").expect("a file");
    let mut seen = String::new();
    for case in cases() {
        std::fs::write(&path, &case.text).expect("the case is written");
        writeln!(seen, "== {}", case.title).unwrap();
        match config::load(&path, &environment) {
            Ok(loaded) => {
                for warning in loaded.warnings {
                    writeln!(seen, "warning: {warning}").unwrap();
                }
            }
            Err(faults) => writeln!(seen, "{faults}").unwrap(),
        }
        seen.push('\n');
    }
    let seen = seen.replace(&format!("{}/", folder.path().display()), "");
    assert!(!seen.contains("hunter2"), "a secret was printed:\n{seen}");
    super::generated::fresh(&format!("{FOLDER}/cases.expected.txt"), &seen);
}
