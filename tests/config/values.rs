//! Values: durations come back as they are written, and our reading of the schema is that of anybody else.

use super::{base, edit, environment, load_text};
use delivery_canary::{cli::schema, config::scalar::Span};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

proptest! {
    #[test]
    fn a_duration_is_read_back_as_it_was_written(millis in 0u64..=u64::from(u32::MAX) * 1000) {
        let span = Span(Duration::from_millis(millis));
        prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        prop_assert_eq!(serde_json::from_value::<Span>(json!(span)).unwrap(), span);
    }

    #[test]
    fn no_text_makes_reading_a_duration_panic(text in "[0-9wdhms ]{0,30}|\\PC{0,20}") {
        if let Ok(span) = text.parse::<Span>() {
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }

    #[test]
    fn no_document_makes_loading_panic(lines in proptest::collection::vec("( {0,6})[a-z-]{0,8}(: ?)?([\\[\\]{}&*!|>'\"#%,$a-z0-9é:-]{0,10})", 0..12)) {
        let _ = load_text(&lines.join("\n"));
    }

    /// Any line of the sound file may be lost or repeated: there is an answer, and it points into the file.
    #[test]
    fn each_fault_points_into_the_file(line in 0usize..120, twice in any::<bool>()) {
        let base = base();
        let mut lines: Vec<&str> = base.lines().collect();
        let line = line % lines.len();
        if twice { lines.insert(line, lines[line]); } else { lines.remove(line); }
        if let Err(faults) = load_text(&lines.join("\n")) {
            for fault in faults.as_slice() {
                prop_assert!(fault.line >= 1 && fault.line as usize <= lines.len() + 1, "{}", fault);
                prop_assert!(fault.column >= 1, "{}", fault);
            }
        }
    }
}

#[test]
fn durations_that_are_refused() {
    for text in [
        "",
        "5",
        "s",
        "1s1m",
        "1s1s",
        "-1s",
        "1.5s",
        "1 s",
        "99999999999999999999s",
        "1y",
        "18446744073709551615w",
    ] {
        text.parse::<Span>().expect_err(text);
    }
}

#[test]
fn a_number_may_come_from_the_environment() {
    for written in ["${CAP}", "\"${CAP}\"", "${NOBODY:-101}"] {
        let text = edit(&base(), "hourly_cap: 100", &format!("hourly_cap: {written}"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("monitor.yaml");
        std::fs::write(&path, text).unwrap();
        let env = |name: &str| if name == "CAP" { Some("101".into()) } else { environment(name) };
        let loaded = delivery_canary::config::load(&path, &env).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(loaded.config.routes[0].hourly_cap, 101);
    }
}

#[test]
fn digits_from_the_environment_are_text_where_text_must_stand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("monitor.yaml");
    std::fs::write(&path, edit(&base(), "tenant: acme", "tenant: ${TENANT}")).unwrap();
    let env = |name: &str| if name == "TENANT" { Some("0042".into()) } else { environment(name) };
    let loaded = delivery_canary::config::load(&path, &env).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.config.routes[0].variables["tenant"], "0042");
}

/// The checked-in schema, read by a library that knows nothing of us, agrees with our walker on single changes of a sound page.
#[test]
fn an_independent_validator_agrees_on_form() {
    let schema: Value = serde_json::from_str(&schema::schema().unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let sound = json!({
        "store": { "sqlite": { "path": "x.sqlite" } },
        "acceptances": { "api": { "http": { "url": "http://a.test/", "body": "{{ callback_url | tojson }}" } } },
        "receivers": { "hook": { "webhook": {
            "listen": "127.0.0.1:1", "public_url": "http://a.test/in", "token_secrets": ["0123456789abcdef"] } } },
        "routes": [{
            "channel": "webhook", "name": "r", "schedule": { "every": "1h" }, "deadline": "60s", "acceptance": "api",
            "recipients": ["x"], "receipt": { "receiver": "hook" }, "hourly_cap": 70 }],
    });
    let values = [
        json!(null),
        json!(true),
        json!(7),
        json!(-1),
        json!(1.5),
        json!("word"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"x": 1}),
    ];
    let mut pointers = Vec::new();
    collect("", &sound, &mut pointers);
    let mut counts = [0, 0];
    for pointer in &pointers {
        for value in &values {
            let mut changed = sound.clone();
            *changed.pointer_mut(pointer).unwrap() = value.clone();
            let form = validator.is_valid(&changed);
            // JSON is YAML. What has the right form may still not fit together, so only one direction is sure.
            let loads = load_text(&changed.to_string()).is_ok();
            assert!(form || !loads, "{pointer} = {value} is loaded and does not fit the schema");
            counts[usize::from(form)] += 1;
        }
    }
    assert!(load_text(&sound.to_string()).is_ok() && validator.is_valid(&sound));
    assert!(counts[0] > 100 && counts[1] > 10, "{counts:?}");
}

fn collect(at: &str, value: &Value, pointers: &mut Vec<String>) {
    pointers.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| collect(&format!("{at}/{key}"), value, pointers))
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, value)| collect(&format!("{at}/{n}"), value, pointers));
        }
        _ => {}
    }
}
