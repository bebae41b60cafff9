//! Rules, their tests, the Alertmanager's tree and the runbooks: made from the configuration, and held to what they promise by the
//! tools that will read them.

mod bench;
mod breaking;
mod commands;
mod explain;
mod lint;
mod mutants;
mod naive;
mod refusals;

use bench::Bench;
use delivery_canary::{
    alerts::{self, ALERTMANAGER, Format, Generated, RULES, catalog, plan::Plan, rules, runbook, scenarios},
    catalog::family,
    config::{self, Config, ConfigHash, Loaded},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The environment of all these tests.
pub fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN_SECRET" | "TOKEN_SECRET_BEFORE" => Some("0123456789abcdef-hunter2".into()),
        "WEBHOOK_SECRET" => Some("whsec_aHVudGVyMi1odW50ZXIyLWh1bnRlcjI=".into()),
        "API_TOKEN" | "PROVIDER_TOKEN" | "STORE_PASSWORD" | "LEDGER_PASSWORD" => Some("hunter2".into()),
        _ => None,
    }
}

pub fn load(text: &str) -> Loaded {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.yaml");
    fs::write(&path, text).expect("it is written");
    config::load(&path, &environment).unwrap_or_else(|faults| panic!("{faults}"))
}

pub fn example() -> String {
    fs::read_to_string("config/example.yaml").expect("the example is there")
}

/// Replaces what must be there.
pub fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "`{from}` isn't there to be replaced");
    text.replacen(from, to, 1)
}

fn generate(text: &str, shadow: bool) -> Generated {
    let Loaded { config, hash, .. } = load(text);
    made(&config, hash, shadow)
}

fn made(config: &Config, hash: ConfigHash, shadow: bool) -> Generated {
    alerts::generate(config, hash, shadow, Format::Prometheus).unwrap_or_else(|error| panic!("{error}"))
}

/// Other configurations than the example: fewer things configured, and other choices; with the alerts whose rules then differ.
fn variants() -> Vec<(&'static str, String, Vec<&'static str>)> {
    let example = example();
    let from = example.find("    # The ledger is followed").expect("the streams are there");
    let until = example.find("    # The ledger's own words").expect("the statuses are there");
    let not_followed = format!("{}{}", &example[..from], &example[until..]);
    let any = edit(&example, "    deadline: 60s\n", "    deadline: 60s\n    page_on: any\n");
    let kept = "accepted_per_day: 40000\n      keep_firing: 10m";
    let kept = edit(&example, "accepted_per_day: 40000", kept);
    let minimal = fs::read_to_string("config/minimal.yaml").expect("it is there")
        + "\nalerts:\n  service: small\n  runbooks: https://runbooks.example.com\n";
    let (over, failing) = (catalog::OVER_DEADLINE.name, catalog::CANARY_FAILING.name);
    vec![
        ("no ledger is followed", not_followed, vec![over, catalog::BLIND.name]),
        ("one location is enough", any, vec![failing]),
        ("a page is kept", kept, vec![failing]),
        ("no ledger at all", minimal, vec![failing, catalog::BLIND.name]),
    ]
}

pub fn write(files: &BTreeMap<String, String>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        fs::write(path, text).expect("it is written");
    }
    folder
}

pub fn run(program: &str, package: &str, arguments: &[&str], files: &[PathBuf]) -> (bool, String) {
    // promtool keeps a database for each scenario, and leaves it where it is ended early: its room goes with the run.
    let room = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(program);
    command.args(arguments).args(files).env("TMPDIR", room.path());
    let output: Output = command
        .output()
        .unwrap_or_else(|error| panic!("{program} can't be run ({error}): install the package `{package}`"));
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

fn promtool_accepts(what: &str, made: &Generated) {
    let folder = write(&made.files);
    let rules = [folder.path().join(RULES)];
    let (sound, said) =
        run("promtool", "prometheus", &["check", "rules", "--lint=all", "--lint-fatal"], &rules);
    let wanted = format!("SUCCESS: {} rules found", made.alerts + made.recorded);
    assert!(sound && said.contains(&wanted) && !said.contains("duplicate"), "{what}: {said}");
}

/// Runs the scenarios of these alerts, each alert against those rules alone that it needs: all rules at each step of each scenario
/// are minutes of processor time.
fn scenarios_hold(what: &str, text: &str, wanted: &[&str]) {
    let Loaded { config, hash, .. } = load(text);
    let plan = Plan::new(&config, config.alerts.as_ref().expect("it has alerts"), hash, false);
    let bench = Bench::new(&plan);
    for alert in wanted {
        let scenarios: Vec<_> = bench.of(alert).cloned().collect();
        let (sound, said) = bench.run(alert, &bench.rules, &scenarios);
        let shown: String = said.chars().take(6_000).collect();
        assert!(sound, "{what}, {alert}: {shown}");
    }
}

#[test]
fn the_checked_in_alerts_are_those_of_the_example() {
    let made = generate(&example(), false).files;
    let folder = Path::new("alerts");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        let _ = fs::remove_dir_all(folder);
        for (name, text) in &made {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
            fs::write(path, text).expect("it is written");
        }
        return;
    }
    let mut there = BTreeSet::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("it is read").path();
            if path.is_dir() { open.push(path) } else { there.extend([path]) }
        }
    }
    let wanted: BTreeSet<_> = made.keys().map(|name| folder.join(name)).collect();
    assert_eq!(there, wanted, "run the tests with UPDATE_GENERATED=1");
    for (name, text) in made {
        let path = folder.join(name);
        let old = fs::read_to_string(&path).expect("it is text");
        assert!(old == text, "{} is not fresh; run the tests with UPDATE_GENERATED=1", path.display());
    }
}

#[test]
fn the_table_and_the_figures_in_the_guide_are_fresh() {
    const PATH: &str = "docs/alerting.md";
    let page = fs::read_to_string(PATH).expect("the guide is there");
    let figures = format!("```text\n{}```\n", explain::of_the_example());
    let wanted = [("alerts", runbook::table(catalog::ALL)), ("explain", figures)].iter().fold(
        page.clone(),
        |page, (name, text)| {
            let from = format!("<!-- {name} -->\n");
            let from = page.find(&from).expect("it has a beginning") + from.len();
            let until = page.find(&format!("<!-- /{name} -->")).expect("it has an end");
            format!("{}{text}{}", &page[..from], &page[until..])
        },
    );
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(PATH, wanted).expect("it is written");
    } else {
        assert!(page == wanted, "{PATH} is not fresh; run the tests with UPDATE_GENERATED=1");
    }
}

#[test]
fn the_block_in_the_guide_is_complete() {
    let page = fs::read_to_string("docs/alerting.md").expect("the guide is there");
    let (_, rest) = page.split_once("<!-- block -->\n```yaml\n").expect("it has a block");
    let (block, _) = rest.split_once("```\n<!-- /block -->").expect("it has an end");
    let minimal = fs::read_to_string("config/minimal.yaml").expect("it is there");
    let made = generate(&(minimal + block), false);
    assert!(made.files.contains_key(ALERTMANAGER), "{:?}", made.files.keys());
    assert!(!made.files[RULES].contains("keep_firing_for"), "nothing is kept by default");
}

#[test]
fn promtool_finds_nothing_and_every_scenario_holds_for_the_example() {
    promtool_accepts("the example", &generate(&example(), false));
    let all: Vec<_> = catalog::ALL.iter().map(|entry| entry.name).collect();
    scenarios_hold("the example", &example(), &all);
}

#[test]
fn promtool_finds_nothing_and_every_scenario_holds_for_other_configurations() {
    for (what, text, alerts) in variants() {
        promtool_accepts(what, &generate(&text, false));
        scenarios_hold(what, &text, &alerts);
    }
}

#[test]
fn in_the_shadow_week_nothing_pages() {
    let made = generate(&example(), true);
    assert!(!made.files[RULES].contains("severity: page"));
    assert!(made.files[RULES].contains("shadow: \"true\""));
    promtool_accepts("shadow", &made);
}

#[test]
fn the_alertmanager_takes_its_configuration() {
    let folder = write(&generate(&example(), false).files);
    let file = [folder.path().join(ALERTMANAGER)];
    let (sound, said) = run("amtool", "prometheus-alertmanager", &["check-config"], &file);
    assert!(sound && said.contains("SUCCESS"), "{said}");
    for (alert, receiver) in [
        ([("severity", "page"), ("audience", "service")], "payments-pager"),
        ([("severity", "ticket"), ("audience", "service")], "payments-tickets"),
        ([("severity", "page"), ("audience", "owners")], "monitoring-owners"),
        ([("severity", "ticket"), ("audience", "owners")], "monitoring-owners"),
        ([("severity", "none"), ("audience", "dead_man")], "dead-man"),
        ([("severity", "else"), ("audience", "else")], "payments-tickets"),
    ] {
        let path = file[0].display().to_string();
        let labels: Vec<_> = alert.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut arguments = vec!["config", "routes", "test", "--config.file", &path];
        arguments.extend(labels.iter().map(String::as_str));
        let (sound, said) = run("amtool", "prometheus-alertmanager", &arguments, &[]);
        assert!(sound && said.lines().next() == Some(receiver), "{alert:?}: {said}");
    }
}

#[test]
fn the_same_configuration_gives_the_same_files() {
    let Loaded { config, hash, .. } = load(&example());
    assert_eq!(made(&config, hash, false).files, made(&config, hash, false).files);
}

/// Trial 20: whoever keeps the last value for ever, such as a gateway that was pushed to or an exporter that stands still, shows it as if it
/// were of now. So rules look at the age of times that were exported: old troubles don't page, and old health is no health. That what
/// one-shot runs leave behind has such times too is theirs to show, when there are any.
#[test]
fn trial_20_a_last_value_that_stays_for_ever_is_judged_by_the_age_of_its_times() {
    let Loaded { config, hash, .. } = load(&example());
    let plan = Plan::new(&config, config.alerts.as_ref().expect("it has alerts"), hash, false);
    let bench = Bench::new(&plan);
    let blind = catalog::BLIND.name;
    let wanted = [
        "all loops stand still",
        "no ledger is read",
        "the monitor hangs, and shows old troubles",
        "the ledger is not read, and shows old troubles",
    ];
    let scenarios: Vec<_> =
        bench.of(blind).filter(|scenario| wanted.contains(&scenario.name.as_str())).cloned().collect();
    assert_eq!(scenarios.len(), wanted.len(), "each is a scenario");
    let (sound, said) = bench.run(blind, &bench.rules, &scenarios);
    assert!(sound, "{said}");
}

/// Trial 27: rules on metrics that do not exist.
#[test]
fn trial_27_every_metric_in_the_rules_is_exported_and_all_that_is_recorded_is_read() {
    let files = generate(&example(), false).files;
    let text = &files[RULES];
    let recorded: BTreeSet<&str> = rules::RECORDED.into_iter().collect();
    let mut seen = BTreeSet::new();
    for name in scenarios::names(text) {
        if name.contains(':') {
            let name = name.trim_end_matches(':');
            assert!(recorded.contains(name) || name.ends_with("delivery_canary"), "`{name}` is not recorded");
            seen.insert(name);
        } else if name != "delivery_canary" {
            assert!(family(name).is_some(), "`{name}` is not exported");
        }
    }
    for name in recorded {
        assert!(text.matches(name).count() > 1, "`{name}` is recorded and never read");
        assert!(seen.contains(name), "`{name}` is not recorded");
    }
}

#[test]
fn every_alert_of_the_catalog_is_made_and_has_a_runbook() {
    let files = generate(&example(), false).files;
    for entry in catalog::ALL {
        assert!(files[RULES].contains(&format!("alert: {}\n", entry.name)), "{} is not made", entry.name);
        let page = &files[&format!("runbooks/{}.md", entry.name)];
        for part in [entry.question, entry.says, entry.says_not, entry.first[0], entry.first[2], entry.stop] {
            assert!(page.contains(part), "{}: `{part}` is not in its runbook", entry.name);
        }
    }
}

#[test]
fn every_alert_has_scenarios_both_ways() {
    let Loaded { config, hash, .. } = load(&example());
    let plan = Plan::new(&config, config.alerts.as_ref().expect("it has alerts"), hash, false);
    let (rules, _) = rules::rules(&plan);
    let all = scenarios::scenarios(&plan, &rules);
    for entry in catalog::ALL {
        let mine: Vec<_> = all.iter().filter(|scenario| scenario.alert == Some(entry.name)).collect();
        assert!(mine.iter().any(|scenario| scenario.has_firing()), "{} never fires", entry.name);
        let is_always_there = entry.name == catalog::WATCHDOG.name;
        assert!(
            is_always_there || mine.iter().any(|scenario| scenario.has_silence()),
            "{} always fires",
            entry.name
        );
    }
}

/// What stands in a page, as Prometheus fills it in.
#[test]
fn a_page_says_where_it_stops_since_when_and_how_many_are_stuck() {
    let folder = write(&generate(&example(), false).files);
    let series = |name: &str, labels: &str, values: &str| {
        format!("      - {{series: '{name}{{job=\"m\", instance=\"a\", {labels}}}', values: '{values}'}}\n")
    };
    let here = "route=\"webhook/receipts\", location=\"eu-west\"";
    let arrives = format!("{here}, question=\"arrives\"");
    let mut known: String = ["evidence", "scheduler", "settler"]
        .iter()
        .map(|name| {
            let labels = format!("loop=\"{name}\"");
            series("delivery_monitor_loop_last_success_timestamp_seconds", &labels, "0+60x30")
        })
        .collect();
    known += &series("delivery_canary_failure_evidence", &arrives, "6+0x30");
    known += &series("delivery_canary_failing_since_timestamp_seconds", &arrives, "60+0x30");
    let bare = known.clone();
    known += &series("delivery_canary_stopped_at", &format!("{here}, stage=\"provider\""), "1+0x30");
    known += &series("delivery_ledger_pending_over_deadline", "route=\"webhook/receipts\"", "42+0x30");
    let said = |series: &str| {
        let test = format!(
            "rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n{series}    \
             alert_rule_test:\n      - {{alertname: CanaryDeliveryFailing, eval_time: 20m, exp_alerts: []}}\n"
        );
        let path = folder.path().join("page.yaml");
        fs::write(&path, test).expect("it is written");
        // It says what it got, because nothing is expected.
        let (sound, said) = run("promtool", "prometheus", &["test", "rules"], &[path]);
        assert!(!sound && said.contains("CanaryDeliveryFailing"), "{said}");
        said
    };
    let page = said(&known);
    for part in [
        "stopped at: provider.",
        "Provider: acme-hooks.",
        "Control arms: provider.",
        "First failure that counts: 1970-01-01 00:01:00",
        "past their deadline: 42.",
        "delivery-canary canary list --config FILE --route webhook/receipts",
        "https://runbooks.example.com/delivery-canary/CanaryDeliveryFailing.md",
        "severity=\"page\"",
        "channel=\"webhook\"",
    ] {
        assert!(
            page.contains(part) || page.contains(&part.replace('"', "\\\"")),
            "`{part}` is not in {page}"
        );
    }
    let page = said(&bare);
    for part in ["Where the newest failure stopped is not known.", "past their deadline is not known."] {
        assert!(page.contains(part), "`{part}` is not in {page}");
    }
}
