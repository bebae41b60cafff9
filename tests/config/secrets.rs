//! A secret is in nothing that is printed.

use super::{base, edit, environment, load_text};
use delivery_canary::config;

#[test]
fn a_loaded_configuration_prints_no_secret() {
    let loaded = load_text(&base()).unwrap_or_else(|faults| panic!("{faults}"));
    let printed = format!(
        "{loaded:?} {:#?} {} {}",
        loaded.config,
        serde_json::to_string(&loaded.config).unwrap(),
        serde_json::to_string(&delivery_canary::cli::check::summarise(&loaded, chrono::Utc::now())).unwrap(),
    );
    for secret in ["hunter2", "0123456789abcdef", "aHVudGVyMi"] {
        assert!(!printed.contains(secret), "`{secret}` was printed:\n{printed}");
    }
    assert!(printed.contains("[secret]"));
}

/// Whatever is wrong around or with a secret, it isn't shown.
#[test]
fn no_fault_prints_a_secret() {
    let plain = "hunter2-hunter2-hunter2";
    let places = [
        ("- ${TOKEN_SECRET}", "- {}"),
        ("- ${TOKEN_SECRET}", "{}"),
        ("- ${TOKEN_SECRET}", "- [{}]"),
        ("- ${TOKEN_SECRET}", "- { {}: x }"),
        ("- ${TOKEN_SECRET}", "- { file: x, y: {} }"),
        ("- ${TOKEN_SECRET}", "- ${NOBODY:-{}} ${NOBODY}"),
        ("token_secrets:", "token_secret: {}\n      token_secrets:"),
        ("Authorization: Bearer ${API_TOKEN}", "Authorization: \"{}\\n\""),
        ("Authorization: Bearer ${API_TOKEN}", "Auth orization: {}"),
        ("secret_headers:\n        Authorization: Bearer ${API_TOKEN}", "secret_headers: {}"),
        ("url: postgres://reader:${LEDGER_PASSWORD}@ledger.test/book", "url: {}"),
        ("url: postgres://reader:${LEDGER_PASSWORD}@ledger.test/book", "url: postgres://a:{}@[x/y"),
        ("url: postgres://reader:${LEDGER_PASSWORD}@ledger.test/book", "urll: postgres://a:{}@x/y"),
        ("sqlite:\n    path: canary.sqlite", "postgres: {}"),
        ("sqlite:\n    path: canary.sqlite", "postgres: { url: postgres://a:{}@x/y, max: 3 }"),
        ("public_url: https://hook.test/in", "public_url: gopher://a:{}@x/y"),
        ("public_url: https://hook.test/in", "public_url: https://a:{}@x y/"),
        ("url: http://provider.test/send", "url: \"http://a:{}@x/{{ nobody }}\""),
        ("secrets: [\"${WEBHOOK_SECRET}\"]", "secrets: {}"),
        ("secrets: [\"${WEBHOOK_SECRET}\"]", "secrets: [\"{}!\"]"),
        ("standard_webhooks:\n          secrets: [\"${WEBHOOK_SECRET}\"]", "standard_webhooks: {}"),
        ("standard_webhooks:\n          secrets: [\"${WEBHOOK_SECRET}\"]", "standard_webhook: {}"),
    ];
    for (from, to) in places {
        // Something else is always wrong too, so that also a secret that is accepted has a chance to be shown.
        let text = edit(&edit(&base(), from, &to.replace("{}", plain)), "grace: 25s", "grace: 0s");
        let faults = load_text(&text).expect_err(to);
        for printed in [faults.to_string(), format!("{faults:?}"), format!("{:?}", faults.as_slice())] {
            // `{ {}: x }` makes the secret a key, which nobody can tell from a word.
            assert!(!printed.contains("hunter2"), "{to}: {printed}");
        }
    }
}

#[test]
fn a_reference_is_shown_as_it_is_written() {
    let faults = load_text(&edit(&base(), "public_url: https://hook.test/in", "public_url: ${API_TOKEN}"))
        .unwrap_err();
    let printed = faults.to_string();
    assert!(printed.contains("value: `${API_TOKEN}`"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
}

#[test]
fn a_secret_is_read_from_a_file_beside_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("monitor.yaml");
    std::fs::write(&path, edit(&base(), "- ${TOKEN_SECRET}", "- { file: token }")).unwrap();
    let read = || {
        let loaded = config::load(&path, &environment).map_err(|faults| faults.to_string())?;
        let config::receipt::Receiver::Webhook(hook) = &loaded.config.receivers["hook"];
        Ok::<_, String>(hook.token_secrets[0].expose().to_owned())
    };
    std::fs::write(folder.path().join("token"), "a-secret-of-one-line\r\n").unwrap();
    assert_eq!(read().unwrap(), "a-secret-of-one-line");
    std::fs::write(folder.path().join("token"), " ends-with-two-feeds\n\n").unwrap();
    assert_eq!(read().unwrap(), " ends-with-two-feeds\n");
    std::fs::write(folder.path().join("token"), "\n").unwrap();
    assert!(read().unwrap_err().contains("is empty"));
    std::fs::write(folder.path().join("token"), "x".repeat(70_000)).unwrap();
    assert!(read().unwrap_err().contains("larger than"));
    std::fs::write(folder.path().join("token"), b"\xff\xfe0123456789abcdef").unwrap();
    assert!(read().unwrap_err().contains("not UTF-8"));
}
