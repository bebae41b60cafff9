//! What no rules are made from, and what is left out.

use super::{edit, environment, example, generate, load};
use delivery_canary::{
    alerts::{self, AlertsError, Format, RULES},
    config,
};

fn refused(text: &str) -> AlertsError {
    let loaded = load(text);
    alerts::generate(&loaded.config, loaded.hash, false, Format::Prometheus).expect_err("it is refused")
}

#[test]
fn without_a_block_nothing_is_made() {
    let text = example();
    let at = text.find("\n# What `alerts generate`").expect("the block is there");
    let until = text[at + 1..].find("\n# Planned work").expect("the next one is there") + at + 1;
    assert_eq!(refused(&format!("{}{}", &text[..at], &text[until..])), AlertsError::NoBlock);
}

#[test]
fn a_page_by_one_event_is_refused() {
    let evidence = "    evidence: { bound: 2, sustain: 0s }\n    deadline: 60s\n";
    let error = refused(&edit(&example(), "    deadline: 60s\n", evidence));
    assert!(matches!(error, AlertsError::OneEvent { .. }), "{error}");
    assert!(error.to_string().contains("webhook/receipts"), "{error}");
    let sound = evidence.replace("0s", "1m");
    generate(&edit(&example(), "    deadline: 60s\n", &sound), false);
}

#[test]
fn evidence_that_comes_nowhere_is_refused() {
    let evidence = "    evidence: { p0: 0.2999, p1: 0.3 }\n    deadline: 60s\n";
    let error = refused(&edit(&example(), "    deadline: 60s\n", evidence));
    assert!(matches!(error, AlertsError::NeverFires { .. }), "{error}");
}

#[test]
fn a_pair_that_can_never_fire_is_left_out_and_named() {
    let made = generate(&edit(&example(), "objective_percent: 99.9", "objective_percent: 93"), false);
    let left: Vec<_> = made.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        left,
        [
            "DeliveryBudgetBurnFast over 1h on webhook/receipts: it could never fire: 14.4 x a budget of 0.07 is 1.008, and no share is above 1"
        ]
    );
    assert!(made.files[RULES].contains("# Left out: DeliveryBudgetBurnFast over 1h on webhook/receipts"));
    assert!(generate(&example(), false).left_out.is_empty());
}

#[test]
fn a_quiet_route_gets_no_ratio() {
    let made = generate(&edit(&example(), "accepted_per_day: 40000", "accepted_per_day: 200"), false);
    let left: Vec<_> = made.left_out.iter().map(|left| (left.alert, left.window)).collect();
    let all = [("Fast", "1h"), ("Slow", "6h"), ("Ticket", "1d"), ("Ticket", "3d")];
    let names: Vec<_> =
        left.iter().map(|(name, window)| (&name["DeliveryBudgetBurn".len()..], *window)).collect();
    assert_eq!(names, all);
    assert!(made.files[RULES].contains("alert: LowVolumeFailures"));
}

#[test]
fn a_page_is_kept_only_where_that_is_asked_for() {
    let kept = |text: &str| generate(text, false).files[RULES].matches("keep_firing_for: \"10m\"").count();
    assert_eq!(kept(&example()), 0, "what is over is over");
    let text =
        edit(&example(), "      forgotten_after: 15m", "      forgotten_after: 15m\n      keep_firing: 10m");
    // Both alerts on what its canaries show, and no other.
    assert_eq!(kept(&text), 2);
}

#[test]
fn factors_scale_with_the_period() {
    let made = generate(
        &edit(&example(), "  service: notifications\n", "  service: notifications\n  slo_period: 15d\n"),
        false,
    );
    assert!(made.files[RULES].contains("> 0.0072\n") && !made.files[RULES].contains("> 0.0144\n"));
}

#[test]
fn the_operators_resource_has_the_same_groups() {
    let loaded = load(&example());
    let make =
        |format| alerts::generate(&loaded.config, loaded.hash, false, format).expect("it is made").files;
    let (plain, resource) = (make(Format::Prometheus), make(Format::PrometheusRule));
    let indented = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.trim().to_owned()).collect()
    };
    let resource = indented(&resource[RULES]);
    let at = resource.iter().position(|line| line == "spec:").expect("it has a spec");
    assert_eq!(resource[at + 1..], indented(&plain[RULES])[..]);
    assert_eq!(resource[..2], ["apiVersion: monitoring.coreos.com/v1", "kind: PrometheusRule"]);
}

#[test]
fn what_is_wrong_with_the_block_is_said_with_its_place() {
    for (from, to, wanted) in [
        ("  runbooks: https", "  runbooks: http", "this address is not https"),
        ("  service: notifications", "  service: Not A Name", "is not a name"),
        (
            "    page:\n      name: payments-pager\n      url: https",
            "    page:\n      name: payments-pager\n      url: http",
            "in the clear",
        ),
        ("    from: \"08:00\"", "    from: \"8\"", "this is no time of day"),
        ("    days: [monday:friday]", "    days: [friday:monday]", "these are no days of a week"),
        // The Alertmanager would refuse it: its week begins on Sunday.
        ("    days: [monday:friday]", "    days: [monday:sunday]", "these are no days of a week"),
        ("    zone: Europe/Berlin\n", "    zone: Europe/Berlim\n", "there is no such zone"),
        (
            "\n    webhook/transfer-alerts:",
            "\n    webhook/transfer-alert:",
            "there is no route `webhook/transfer-alert`",
        ),
        ("      patience: 15m", "      patience: 1m", "1m is out of range here"),
        ("      forgotten_after: 15m", "      forgotten_after: 1s", "1s is out of range here"),
        ("      forgotten_after: 15m", "      keep_firing: 2h", "2h is out of range here"),
        (
            "  service: notifications",
            "  service: notifications\n  false_pages_a_year: 0",
            "0 false pages a year",
        ),
        (
            "  service: notifications",
            "  service: notifications\n  slo_period: 400d",
            "400d is out of range here",
        ),
        (
            "  service: notifications",
            "  service: notifications\n  locations: [eu-wset]",
            "there is no location `eu-wset`",
        ),
    ] {
        let text = example();
        let at = text.find("\nalerts:\n").expect("the block is there");
        let text = format!("{}{}", &text[..at], edit(&text[at..], from, to));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("monitor.yaml");
        std::fs::write(&path, text).expect("it is written");
        let faults = config::load(&path, &environment).expect_err("it is refused").to_string();
        assert!(faults.contains(wanted) && !faults.contains(":0:"), "{to}: {faults}");
        assert_eq!(faults.lines().filter(|line| line.contains("monitor.yaml:")).count(), 1, "{faults}");
    }
}
