//! The lint, both ways: nothing is found in what we make, and each thing that must not be is found where it stands.

use super::{edit, example, generate, run};
use delivery_canary::alerts::{ALERTMANAGER, RULES, lint::lint};
use std::collections::BTreeSet;

fn found(file: &str, text: &str) -> Vec<String> {
    let hosts = BTreeSet::from(["notifications.internal".to_owned()]);
    lint(file, text, &hosts).iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_is_found_in_what_we_make() {
    for shadow in [false, true] {
        let files = generate(&example(), shadow).files;
        for name in [RULES, ALERTMANAGER] {
            assert_eq!(found(name, &files[name]), Vec::<String>::new());
        }
    }
}

#[test]
fn what_must_not_be_in_rules_is_found_where_it_stands() {
    let text = &generate(&example(), false).files[RULES];
    let first = text.find("alert: CanaryDeliveryFailing").expect("it is there");
    let (before, after) = text.split_at(first);
    let line = |text: &str| text.lines().count();
    for (from, to, wanted) in [
        (
            "route_location_question:delivery_evidence:max{",
            "route_location_question:delivery_evidenze:max{",
            "there is no metric `route_location_question:delivery_evidenze:max`",
        ),
        ("severity: page", "severity: page\n          pod: x", "has the label `pod`"),
        ("audience: service\n", "team: service\n", "has no label `audience`"),
        ("count by (route) (", "count by (route, instance) (", "is grouped by `instance`"),
        ("count by (route) (", "count BY(pod) (", "is grouped by `pod`"),
        (
            "count by (route) (",
            "count by (route) (up * on (job) group_left(node) up + ",
            "is grouped by `node`",
        ),
        (
            "count by (route) (",
            "count by (route) (rate(delivery_canary_submissions_total[5m]) > 0 and ",
            "pages by `rate()`",
        ),
        ("runbook_url: \"https:", "runbook_url: \"http:", "has no `runbook_url` with https"),
        ("summary: \"", "summary: \"{{ $labels.canary_id }} ", "has an identifier: `canary_id`"),
        (
            "summary: \"",
            "action: kubectl rollout\n          summary: \"",
            "`kubectl` is a word of what acts on Pods",
        ),
        (">= 300", ">= 301", "has the number 301, and doesn't say where it comes from"),
    ] {
        let changed = format!("{before}{}", edit(after, from, to));
        let findings = found(RULES, &changed);
        assert!(findings.iter().any(|finding| finding.contains(wanted)), "{wanted}: {findings:?}");
        let end = line(before) + 60;
        for finding in findings {
            let at: usize = finding.split(':').nth(1).and_then(|n| n.parse().ok()).expect("a line");
            assert!((line(before)..end).contains(&at), "{finding}");
        }
    }
}

#[test]
fn what_must_not_be_in_the_alertmanagers_configuration_is_found() {
    let text = &generate(&example(), false).files[ALERTMANAGER];
    for (from, to, wanted) in [
        ("receiver: payments-tickets\n", "receiver: nobody\n", "there is no receiver `nobody`"),
        (
            "  - name: payments-tickets\n    webhook_configs:",
            "  - name: payments-tickets\n    x_configs:",
            "isn't known to tell a person",
        ),
        (
            "https://tickets.example.com/",
            "https://notifications.internal/",
            "a host of the monitored service",
        ),
        ("https://tickets.example.com/", "http://tickets.example.com/", "sends in the clear"),
        ("https://tickets.example.com/", "https://restarter.ops.svc/", "inside of the cluster"),
        ("https://tickets.example.com/", "https://remediator:8443/", "inside of the cluster"),
        ("https://tickets.example.com/", "https://example.com/pod_restart/", "`restart` is a word"),
        (
            "route:\n",
            "global:\n  smtp_smarthost: notifications.internal:587\nroute:\n",
            "a host of the monitored service",
        ),
        ("https://tickets.example.com/", "https://kubernetes.default/", "the cluster's own interface"),
        ("https://tickets.example.com/", "https://example.com/restart/", "`restart` is a word"),
        (
            "    target_matchers:\n      - \"audience=\\\"service\\\"\"\n      - \"severity=\\\"ticket\\\"\"\n",
            "    target_matchers:\n      - \"audience=\\\"service\\\"\"\n",
            "can keep a page quiet",
        ),
        ("    equal:\n      - service\n      - channel\n      - route\n", "", "needs nothing in common"),
        (
            "    equal:\n      - service\n      - channel\n      - route\n",
            "    equal:\n      - cluster\n",
            "needs only `cluster` in common",
        ),
        (
            "      repeat_interval: \"4h\"\n",
            "      repeat_interval: \"4h\"\n      mute_time_intervals:\n        - office-hours\n",
            "can keep pages quiet here",
        ),
    ] {
        let findings = found(ALERTMANAGER, &edit(text, from, to));
        assert!(findings.iter().any(|finding| finding.contains(wanted)), "{wanted}: {findings:?}");
    }
    // A part that is to be merged names receivers that it doesn't have: they are never passed over, and it is said what to do.
    let part = edit(
        &example(),
        "      name: payments-pager\n      url: https://pager.example.com/hooks/payments\n",
        "      name: payments-pager\n",
    );
    let findings = found(ALERTMANAGER, &generate(&part, false).files[ALERTMANAGER]);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert!(finding.contains("no receiver `payments-pager`") && finding.contains("merge first"), "{finding}");
    let nobody = "route:\n  receiver: none\nreceivers:\n  - name: none\n";
    assert!(found("am.yaml", nobody)[0].contains("tells nobody"));
    let tree = |matcher: &str| {
        let receivers =
            "receivers:\n  - name: person\n    email_configs: [{to: a@example.com}]\n  - name: none\n";
        let matchers = format!("{{receiver: none, matchers: [{matcher}]}}");
        found("am.yaml", &format!("route:\n  receiver: person\n  routes: [{matchers}]\n{receivers}"))
    };
    for ours in [
        "'severity=\"page\"'",
        "'alertname=\"CanaryDeliveryFailing\",severity=\"page\"'",
        "'severity=~\"page|none\"'",
        "team=a",
        "alertname=Watchdog",
    ] {
        let findings = tree(ours);
        assert!(findings.len() == 1 && findings[0].contains("`none` tells nobody"), "{ours}: {findings:?}");
    }
    for others in ["severity=none", "alertname=InfoInhibitor"] {
        assert!(tree(others).is_empty(), "{others}: {:?}", tree(others));
    }
    assert!(found("am.yaml", "a: b\n")[0].contains("neither a rule file nor"));
    assert!(found("am.yaml", "a: [b\n")[0].starts_with("am.yaml:"));
}

#[test]
fn the_command_says_what_it_found_and_ends_with_one() {
    let program = env!("CARGO_BIN_EXE_delivery-canary");
    let files = super::write(&generate(&example(), false).files);
    let paths = [files.path().join(RULES), files.path().join(ALERTMANAGER)];
    let (sound, said) = run(program, "", &["alerts", "lint"], &paths);
    assert!(sound && said == "2 files, nothing found\n", "{said}");
    let text = std::fs::read_to_string(&paths[0]).expect("it is there");
    std::fs::write(&paths[0], text.replacen("severity: page", "severity: page\n          node: x", 1))
        .expect("it is written");
    let (sound, said) = run(program, "", &["alerts", "lint"], &paths);
    assert!(!sound && said.contains("has the label `node`"), "{said}");
}
