//! Breaks every number, clause, alternative, window, aggregation, comparison and holding time of the rules once, and demands that a scenario
//! fails.

use super::{bench::Bench, breaking, example, load};
use delivery_canary::{
    alerts::{
        catalog,
        number::literals,
        plan::Plan,
        rules::{ALL_ROUTES, Rule},
        scenarios::{self, Scenario},
    },
    config::Loaded,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// One rule, broken once.
struct Mutant {
    /// Its place among the rules.
    at: usize,
    rule: Rule,
    what: String,
}

fn with_expr(rule: &Rule, expr: String) -> Rule {
    let mut rule = rule.clone();
    match &mut rule {
        Rule::Record { expr: old, .. } => *old = expr,
        Rule::Alert(alert) => alert.expr = expr,
    }
    rule
}

/// The expression with a literal replaced wherever it stands as a whole word, outside of quotes.
fn replaced(expr: &str, from: &str, to: &str) -> String {
    let (mut out, mut word, mut quoted) = (String::new(), String::new(), false);
    for c in expr.chars() {
        let inside = c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
        if c == '"' {
            quoted = !quoted;
        }
        if inside && !quoted {
            word.push(c);
            continue;
        }
        out.push_str(if word == from { to } else { &word });
        word.clear();
        out.push(c);
    }
    out.push_str(if word == from { to } else { &word });
    out
}

fn numbers(at: usize, rule: &Rule, out: &mut Vec<Mutant>) {
    let written: BTreeSet<String> = literals(rule.expr()).into_iter().collect();
    for literal in written.iter().filter(|literal| !["0", "1"].contains(&literal.as_str())) {
        let others = match literal.parse::<f64>() {
            Ok(value) => vec![(value * 2.0).to_string(), (value / 2.0).to_string()],
            // A time that is looked back, or by which it is looked earlier: only shorter ones matter.
            Err(_) => vec!["1m".to_owned()],
        };
        for other in others {
            let expr = replaced(rule.expr(), literal, &other);
            out.push(Mutant { at, rule: with_expr(rule, expr), what: format!("{literal} is {other}") });
        }
    }
}

fn clauses(at: usize, rule: &Rule, out: &mut Vec<Mutant>) {
    let lines: Vec<&str> = rule.expr().lines().collect();
    for (n, line) in lines.iter().enumerate() {
        if !(line.starts_with("and ") || line.starts_with("unless ")) {
            continue;
        }
        // Brackets that close an earlier one stay, and so does the comma of what it is an argument of.
        let closing = line.matches(')').count().saturating_sub(line.matches('(').count());
        let comma = if line.ends_with(',') { "," } else { "" };
        let kept = format!("{}{comma}", ")".repeat(closing));
        let mut left = lines.clone();
        left[n] = &kept;
        let expr = with_expr(rule, left.join("\n"));
        out.push(Mutant { at, rule: expr, what: format!("without line {n}, `{line}`") });
    }
}

fn windows(at: usize, rule: &Rule, out: &mut Vec<Mutant>) {
    const OTHERS: [(&str, &str); 7] =
        [("5m", "1h"), ("30m", "6h"), ("1h", "5m"), ("2h", "1d"), ("6h", "30m"), ("1d", "1h"), ("3d", "6h")];
    for (window, other) in OTHERS {
        let label = format!("window=\"{window}\"");
        if rule.expr().contains(&label) {
            let expr = rule.expr().replace(&label, &format!("window=\"{other}\""));
            out.push(Mutant { at, rule: with_expr(rule, expr), what: format!("{window} is {other}") });
        }
    }
}

fn holds(at: usize, rule: &Rule, out: &mut Vec<Mutant>) {
    if let Rule::Alert(alert) = rule
        && alert.hold != "0m"
    {
        let mut alert = alert.clone();
        let what = format!("for {} is for nothing", alert.hold);
        alert.hold = "0m";
        out.push(Mutant { at, rule: Rule::Alert(alert), what });
    }
}

fn others(at: usize, rule: &Rule, out: &mut Vec<Mutant>) {
    let ways =
        [breaking::alternatives, breaking::clauses_within, breaking::aggregations, breaking::comparisons];
    let mut seen = BTreeMap::<String, u32>::new();
    for (what, expr) in ways.iter().flat_map(|way| way(rule.expr())) {
        // What stands in a rule twice is broken twice, and each must be found.
        let nth = seen.entry(what.clone()).and_modify(|nth| *nth += 1).or_insert(1);
        let what = if *nth > 1 { format!("{what} ({nth})") } else { what };
        out.push(Mutant { at, rule: with_expr(rule, expr), what });
    }
}

fn name(rule: &Rule) -> String {
    match rule {
        Rule::Record { name, .. } => (*name).to_owned(),
        Rule::Alert(alert) => {
            let labels: Vec<_> = alert.labels.iter().map(|(_, value)| value.as_str()).collect();
            format!("{} {} {}", alert.entry.name, alert.severity.word(), labels.join(" "))
        }
    }
}

/// The rules, with a broken one in the place of its own.
fn broken(bench: &Bench<'_>, mutant: &Mutant) -> Vec<Rule> {
    let mut rules = bench.rules.clone();
    rules[mutant.at] = mutant.rule.clone();
    rules
}

/// The alerts that read a rule.
fn readers(bench: &Bench<'_>, rule: &Rule) -> Vec<&'static str> {
    match rule {
        Rule::Alert(rule) => vec![rule.entry.name],
        Rule::Record { name, .. } => {
            let reads = |alert: &&str| scenarios::read_by(alert, &bench.rules).contains(name);
            catalog::ALL.iter().map(|entry| entry.name).filter(reads).collect()
        }
    }
}

/// A scenario that fails with a broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Witness {
    scenario: String,
    /// Of all that promtool read: it says the same of the same.
    digest: String,
}

/// What promtool would read, as one digest.
fn digest(files: &BTreeMap<String, String>) -> String {
    let mut sum = Sha256::new();
    for text in files.iter().flat_map(|(name, text)| [name, text]) {
        sum.update(text.len().to_le_bytes());
        sum.update(text);
    }
    sum.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Scenarios that may find a broken rule, each with its name and the alert that it is run for. The one that found it before comes first, those
/// about all alerts last.
fn tries<'a>(
    bench: &'a Bench<'_>,
    mutant: &Mutant,
    before: Option<&Witness>,
) -> Vec<(String, &'static str, &'a Scenario)> {
    let mut tries = Vec::new();
    for alert in readers(bench, &mutant.rule) {
        tries.extend(bench.of(alert).map(|scenario| {
            let about = scenario.alert.unwrap_or("all alerts");
            (format!("{about}: {}, {}", scenario.name, scenario.route()), alert, scenario)
        }));
    }
    let found = before.map(|before| &before.scenario);
    tries.sort_by_key(|(name, _, scenario)| (Some(name) != found, scenario.alert.is_none()));
    tries
}

/// Whether nothing that promtool read of a broken rule is other than when its scenario failed.
fn is_as_before(bench: &Bench<'_>, mutant: &Mutant, before: &Witness) -> bool {
    let tries = tries(bench, mutant, Some(before));
    tries.first().is_some_and(|(name, alert, scenario)| {
        let files = bench.files(alert, &broken(bench, mutant), std::slice::from_ref(*scenario));
        *name == before.scenario && digest(&files) == before.digest
    })
}

/// A scenario that fails with a broken rule, as promtool says now.
fn witness(bench: &Bench<'_>, mutant: &Mutant, before: Option<&Witness>) -> Option<Witness> {
    let rules = broken(bench, mutant);
    tries(bench, mutant, before).into_iter().find_map(|(scenario, alert, tried)| {
        let tried = std::slice::from_ref(tried);
        let (sound, said) = bench.run(alert, &rules, tried);
        assert!(sound || said.contains("got:"), "{}, {}: {said}", name(&mutant.rule), mutant.what);
        (!sound).then(|| Witness { scenario, digest: digest(&bench.files(alert, &rules, tried)) })
    })
}

/// Rules of further routes are made alike; those that a scenario is about stand for them.
fn is_looked_at(bench: &Bench<'_>, rule: &Rule) -> bool {
    let Rule::Alert(alert) = rule else { return true };
    let Some((_, route)) = alert.labels.iter().find(|(key, _)| *key == "route") else { return true };
    route == ALL_ROUTES || bench.of(alert.entry.name).any(|scenario| scenario.route() == route)
}

/// Why the sum of what is never below zero does as well as the greatest of it.
const ANY_AT_ALL: &str = "it is asked whether there is any at all";

/// Broken rules that do the same as ours, and why.
const EQUIVALENT: [(&str, &str, &str); 8] = [
    (
        "route:delivery_accepted_1d:known",
        "1h is 1m",
        "each evaluation goes on from the one before, a minute ago at the most",
    ),
    (
        "MonitorBlind ticket follower",
        "5m is 1m",
        "that nobody follows must hold for half an hour, and a gap that is bridged is shorter",
    ),
    (
        "route:delivery_maintenance:max",
        "5m is 1m",
        "what it mutes comes from the same scrapes, so both are there or neither",
    ),
    (
        "route:delivery_error_budget:ratio",
        "5m is 1m",
        "what it keeps quiet must hold for ten minutes, and a gap that is bridged is shorter",
    ),
    (
        "CanaryLeak ticket ",
        "max of `( last_over_time(delivery_ledger_canary_leaks{route=~\"webhook/receipts|webhook/transfer-alerts|webhook/opted-out\"}[5m]) and on (job, instance) instance_ledger:delivery_reading_age_seconds:fresh{ledger=\"attempts\"} )` is sum",
        ANY_AT_ALL,
    ),
    (
        "GuardRefused ticket ",
        "max of `(increase(delivery_canary_guard_refusals_total[3d]))` is sum",
        ANY_AT_ALL,
    ),
    (
        "ledger:delivery_history_violations_1d:sum",
        "max of `( last_over_time(delivery_ledger_history_violations[5m]) and on (job, instance) instance:delivery_runner_fresh:count )` is sum",
        ANY_AT_ALL,
    ),
    (
        "ledger:delivery_history_violations_1d:sum",
        "sum of `(max by (ledger, kind) ( last_over_time(delivery_ledger_history_violations[5m]) and on (job, instance) instance:delivery_runner_fresh:count ))` is max",
        ANY_AT_ALL,
    ),
];

/// Which scenario found which broken rule, and a digest of what promtool read then.
const WITNESSES: &str = "tests/data/broken_rules.json";

/// Of those that are as before, one in so many is run again all the same.
const SAMPLED: u64 = 16;

fn mutants(bench: &Bench<'_>) -> BTreeMap<String, Mutant> {
    let mut mutants = Vec::new();
    for (at, rule) in bench.rules.iter().enumerate().filter(|(_, rule)| is_looked_at(bench, rule)) {
        for breaker in [numbers, clauses, windows, holds, others] {
            breaker(at, rule, &mut mutants);
        }
    }
    let is_known = |mutant: &Mutant| {
        EQUIVALENT
            .iter()
            .any(|(rule, what, _)| (name(&mutant.rule).as_str(), mutant.what.as_str()) == (rule, what))
    };
    let count = mutants.len();
    mutants.retain(|mutant| !is_known(mutant));
    assert_eq!(count - mutants.len(), EQUIVALENT.len(), "each of them is a broken rule");
    let count = mutants.len();
    let named: BTreeMap<_, _> = mutants
        .into_iter()
        .map(|mutant| (format!("{}: {}", name(&mutant.rule), mutant.what), mutant))
        .collect();
    assert_eq!(named.len(), count, "no two have one name");
    named
}

/// promtool is asked about each broken rule that it was not asked about before, or of which something changed since, and about a sample of the
/// others: to ask it about all takes a quarter of an hour.
#[test]
fn every_rule_that_is_broken_makes_a_scenario_fail() {
    let Loaded { config, hash, .. } = load(&example());
    let plan = Plan::new(&config, config.alerts.as_ref().expect("it has alerts"), hash, false);
    let bench = Bench::new(&plan);
    let mutants = mutants(&bench);
    let known: BTreeMap<String, Witness> = fs::read_to_string(WITNESSES)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let open = Mutex::new(mutants.iter());
    let found = Mutex::new(BTreeMap::new());
    let asked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((what, mutant)) = open.lock().expect("nobody panicked").next() else { break };
                    let before = known.get(what);
                    let is_sampled = |before: &Witness| {
                        u64::from_str_radix(&before.digest, 16).is_ok_and(|digest| digest % SAMPLED == 0)
                    };
                    let as_before =
                        before.filter(|before| !is_sampled(before) && is_as_before(&bench, mutant, before));
                    let witness = as_before.cloned().or_else(|| {
                        asked.fetch_add(1, Relaxed);
                        witness(&bench, mutant, before)
                    });
                    found.lock().expect("nobody panicked").insert(what, witness);
                }
            });
        }
    });
    let found = found.into_inner().expect("nobody panicked");
    let survivors: Vec<_> =
        found.iter().filter(|(_, witness)| witness.is_none()).map(|(what, _)| what.as_str()).collect();
    println!(
        "{} broken rules, {} of them not found; promtool was asked about {}",
        found.len(),
        survivors.len(),
        asked.into_inner()
    );
    let witnesses: BTreeMap<_, _> =
        found.iter().filter_map(|(what, witness)| Some((what.as_str(), witness.as_ref()?))).collect();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(WITNESSES, serde_json::to_string_pretty(&witnesses).expect("it is JSON") + "\n")
            .expect("it is written");
    }
    assert!(
        survivors.is_empty(),
        "{} of {} broken rules are not found:\n{}",
        survivors.len(),
        found.len(),
        survivors.join("\n")
    );
    assert!(
        witnesses.len() == known.len()
            && witnesses.iter().all(|(what, witness)| known.get(*what) == Some(*witness))
            || std::env::var_os("UPDATE_GENERATED").is_some(),
        "{WITNESSES} is of other rules or scenarios: run this test with UPDATE_GENERATED=1"
    );
}
