//! Bombs are refused, and at once.

use super::{base, edit, load_text};
use std::time::Duration;

/// Loads a bomb: it must be refused in under a second of this thread's work, with something that says why.
fn refused(text: &str, why: &str) {
    let start = worked();
    let faults = load_text(text).expect_err("a bomb").to_string();
    let took = worked().saturating_sub(start);
    assert!(faults.contains(why), "`{why}` is not in {}", &faults[..faults.len().min(2000)]);
    assert!(took < Duration::from_secs(1), "`{why}` took {took:?} of work");
    assert!(faults.len() < 100_000, "the answer has {} bytes", faults.len());
}

/// The time that this thread has been on a processor: a busy machine does not lengthen it.
fn worked() -> Duration {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts a thread's time");
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number comes first");
    Duration::from_nanos(nanos)
}

#[test]
fn deep_nesting_is_refused() {
    refused(&"[".repeat(1_000_000), "deep");
    refused(&"{a: ".repeat(500_000), "deep");
    let stairs: String = (0..1000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    refused(&stairs, "deep");
    refused(&format!("{}x", "- ".repeat(100_000)), "deep");
}

#[test]
fn alias_bombs_are_refused() {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let before = format!("*a{}", n - 1);
        let ten = [before.as_str(); 10].join(", ");
        laughs += &format!("a{n}: &a{n} [{ten}]\n");
    }
    refused(&laughs, "aliases written out");
    let long = format!("a: &a \"{}\"\nb: [{}]", "x".repeat(60_000), ["*a"; 100_000].join(", "));
    refused(&long, "aliases written out");
    refused("a: &a [*a]\n", "inside what it names");
    refused("a: *nobody\n", "unknown anchor");
}

#[test]
fn huge_values_are_refused() {
    refused(&format!("a: \"{}\"\n", "x".repeat(3 << 20)), "a value of 3145728 bytes");
    refused(&format!("a: {}\n", "x ".repeat(1 << 20)), "a value of");
    refused(&format!("{}: a\n", "x".repeat(3 << 20)), "a value of");
    refused(&"x".repeat(5 << 20), "larger than 4194304 bytes; nothing else of it was checked");
    refused(&"- a\n".repeat(900_000), "more than 150000 values");
    refused(&(0..60_000).map(|n| format!("k{n}: 1\n")).collect::<String>(), "and 900 more");
    refused(&format!("a{}: 1\n", "?".repeat(1 << 20)), "a value of");
}

#[test]
fn files_that_are_no_configuration_are_refused() {
    for text in [
        "",
        "# nothing\n",
        "---\n",
        "~",
        "a",
        "- a",
        "{}",
        "\u{0}",
        "\t- x",
        "%YAML 1.1\n---\na: 1",
        "a: 1\n---\nb: 2",
    ] {
        load_text(text).expect_err(text);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.yaml");
    let load = || delivery_canary::config::load(&path, &super::environment).unwrap_err().to_string();
    assert!(load().contains("can't be read"));
    std::fs::write(&path, b"a: b\nc: \xc3\xa9 \xff").unwrap();
    assert!(load().contains(":2:6: this is not UTF-8"), "{}", load());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(load().contains("can't be read"));
    if std::path::Path::new("/dev/zero").exists() {
        let endless = delivery_canary::config::load("/dev/zero".as_ref(), &super::environment).unwrap_err();
        assert!(endless.to_string().contains("no regular file"), "{endless}");
    }
    // A pipe would be waited for until somebody writes into it.
    std::fs::remove_dir(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
    assert!(load().contains("no regular file"), "{}", load());
}

#[test]
fn a_variable_can_not_change_the_structure() {
    let text = edit(&base(), "tenant: acme", "tenant: ${TRICK}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("monitor.yaml");
    std::fs::write(&path, text).unwrap();
    let trick = "acme\n    hourly_cap: 9999\n    banana: [";
    let env = |name: &str| if name == "TRICK" { Some(trick.to_owned()) } else { super::environment(name) };
    // A line feed can't stand in the header that the variable goes into: that, and nothing else, is at fault.
    let faults = delivery_canary::config::load(&path, &env).unwrap_err();
    assert_eq!(faults.as_slice().len(), 1, "{faults}");
    assert!(faults.to_string().contains("can't stand in a header"), "{faults}");
}

#[test]
fn two_thousand_routes_load() {
    let base = base();
    let (head, rest) = base.split_once("routes:\n  - channel: webhook").unwrap();
    let (route, _) = rest.split_once("  - channel: email").unwrap();
    let mut text = format!("{}routes:\n", head.replace("name: at, time: naive_utc", "name: at, time: iso"));
    for n in 0..2000 {
        text += &format!(
            "  - channel: webhook{}",
            route.replace("name: receipts", &format!("name: receipts-{n}"))
        );
    }
    let text = edit(&text, "receipts: webhook/receipts\n", "receipts: webhook/receipts-7\n");
    let loaded = load_text(&text).unwrap_or_else(|faults| panic!("{}", faults.as_slice()[0]));
    assert_eq!(loaded.config.routes.len(), 2000);
}
