//! What the guard would stop at the first canary is found by `check`, with its place and without the address.

use super::{base, edit, environment};
use delivery_canary::cli::check;

/// The check's faults of this text; nothing where it has none.
fn faults(text: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("base.yaml");
    std::fs::write(&path, text).expect("the file is written");
    let now = "2026-11-30T10:02:00Z".parse().unwrap();
    let checked = check::run_offline(&path, None, &environment, now, false);
    checked.err().map(|text| text.replace(&format!("{}/", folder.path().display()), ""))
}

/// The line on which this text stands, from 1.
fn line_of(text: &str, what: &str) -> usize {
    text.lines().position(|line| line.contains(what)).expect("it is there") + 1
}

#[test]
fn a_literal_address_is_found_where_it_stands_and_is_not_repeated() {
    let body = r#"{"to": {{ recipient | tojson }}, "#;
    for (from, to, place, kind) in [
        (
            body,
            r#"{"cc": "somebody@bank.test", "to": {{ recipient | tojson }}, "#,
            "\"cc\"",
            "a mail address",
        ),
        (body, r#"{"cc": "+49 170 1234567", "to": {{ recipient | tojson }}, "#, "\"cc\"", "a phone number"),
        ("X-Tenant: \"{{ tenant }}\"", "X-Tenant: \"somebody@bank.test\"", "X-Tenant", "a mail address"),
        ("Bearer ${API_TOKEN}", "somebody@bank.test ${API_TOKEN}", "Authorization", "a mail address"),
        ("v1/{{ tenant | urlencode }}", "v1/somebody%40bank.test", "url: https://api.test", "a mail address"),
    ] {
        let text = edit(&base(), from, to);
        let found = faults(&text).unwrap_or_else(|| panic!("{to} was passed"));
        let line = line_of(&text, place);
        assert!(found.starts_with(&format!("base.yaml:{line}:")), "line {line} was wanted:\n{found}");
        for words in
            [kind, "would stop each canary of `email/alerts` and of 1 more", "{{ recipient }}", "1 fault"]
        {
            assert!(found.contains(words), "`{words}` is not in\n{found}");
        }
        for secret in ["somebody", "1234567", "hunter2"] {
            assert!(!found.contains(secret), "{found}");
        }
    }
}

#[test]
fn an_address_in_a_routes_variable_is_found_there() {
    let text = edit(
        &base(),
        "      tenant: acme\n    recipients",
        "      tenant: somebody@bank.test\n    recipients",
    );
    let found = faults(&text).unwrap();
    assert!(found.starts_with(&format!("base.yaml:{}:", line_of(&text, "tenant: somebody"))), "{found}");
    assert!(found.contains("`webhook/receipts` before"), "{found}");
}

#[test]
fn a_line_of_a_long_template_is_named() {
    let body = "        {\"to\": {{ recipient | tojson }}, \"url\": {{ callback_url | tojson }}}";
    let long = "        {\"to\": {{ recipient | tojson }}, \"url\": {{ callback_url | tojson }},\n         \"cc\": \"somebody@bank.test\"}";
    let found = faults(&edit(&base(), body, long)).unwrap();
    assert!(found.contains("on line 2 of what is written there"), "{found}");
}

#[test]
fn what_is_on_the_allow_list_passes() {
    assert_eq!(faults(&base()), None);
    let own = edit(&base(), "\"to\": {{ recipient", "\"from\": \"us@bank.test\", \"to\": {{ recipient");
    let own = edit(&own, "[endpoint-1]", "[endpoint-1, us@bank.test]");
    let own = edit(&own, "[canary@example.com]", "[canary@example.com, us@bank.test]");
    assert_eq!(faults(&own), None);
}
