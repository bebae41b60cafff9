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
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Mutex,
};

/// One rule, broken once.
struct Mutant {
    /// Its place among the rules.
    at: usize,
    rule: Rule,
    what: String,
    /// It is broken in one of the further ways.
    is_further: bool,
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
            out.push(Mutant {
                at,
                rule: with_expr(rule, expr),
                what: format!("{literal} is {other}"),
                is_further: false,
            });
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
        out.push(Mutant { at, rule: expr, what: format!("without line {n}, `{line}`"), is_further: false });
    }
}

fn windows(at: usize, rule: &Rule, out: &mut Vec<Mutant>) {
    const OTHERS: [(&str, &str); 7] =
        [("5m", "1h"), ("30m", "6h"), ("1h", "5m"), ("2h", "1d"), ("6h", "30m"), ("1d", "1h"), ("3d", "6h")];
    for (window, other) in OTHERS {
        let label = format!("window=\"{window}\"");
        if rule.expr().contains(&label) {
            let expr = rule.expr().replace(&label, &format!("window=\"{other}\""));
            out.push(Mutant {
                at,
                rule: with_expr(rule, expr),
                what: format!("{window} is {other}"),
                is_further: false,
            });
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
        out.push(Mutant { at, rule: Rule::Alert(alert), what, is_further: false });
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
        out.push(Mutant { at, rule: with_expr(rule, expr), what, is_further: true });
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

/// The name of a scenario that fails with a broken rule. The one that failed before is tried first, those about all alerts last.
fn witness(bench: &Bench<'_>, mutant: &Mutant, before: Option<&String>) -> Option<String> {
    let rules = broken(bench, mutant);
    let mut tries: Vec<(String, &str, &Scenario)> = Vec::new();
    for alert in readers(bench, &mutant.rule) {
        tries.extend(bench.of(alert).map(|scenario| {
            let about = scenario.alert.unwrap_or("all alerts");
            (format!("{about}: {}, {}", scenario.name, scenario.route()), alert, scenario)
        }));
    }
    tries.sort_by_key(|(name, _, scenario)| (Some(name) != before, scenario.alert.is_none()));
    tries.into_iter().find_map(|(name, alert, scenario)| {
        let (sound, said) = bench.run(alert, &rules, std::slice::from_ref(scenario));
        assert!(sound || said.contains("got:"), "{}, {}: {said}", self::name(&mutant.rule), mutant.what);
        (!sound).then_some(name)
    })
}

/// Rules of further routes are made alike; those that a scenario is about stand for them.
fn is_looked_at(bench: &Bench<'_>, rule: &Rule) -> bool {
    let Rule::Alert(alert) = rule else { return true };
    let Some((_, route)) = alert.labels.iter().find(|(key, _)| *key == "route") else { return true };
    route == ALL_ROUTES || bench.of(alert.entry.name).any(|scenario| scenario.route() == route)
}

/// Broken rules that no scenario finds yet: what keeps data of a hung replica out, or bridges failed scrapes, in rules that a scenario reads only
/// together with others. Each wants a scenario of its own.
const WITHOUT_SCENARIO: [(&str, &str); 6] = [
    ("ledger:delivery_history_doubtful_1d:max", "5m is 1m"),
    (
        "ledger:delivery_history_violations_1d:sum",
        "without line 2, `and on (job, instance) instance:delivery_runner_fresh:count`",
    ),
    (
        "route:delivery_pending_over_deadline:max",
        "without line 2, `and on (job, instance) instance_ledger:delivery_reading_age_seconds:fresh{ledger=\"attempts\"}`",
    ),
    ("route:delivery_residue_doubtful:max", "5m is 1m"),
    ("route_location_verdict:delivery_unmeasured_since:max", "5m is 1m"),
    (
        "route_location_verdict:delivery_unmeasured_since:max",
        "without line 2, `and on (job, instance) instance:delivery_runner_fresh:count`",
    ),
];

/// Broken rules that do the same as ours, and why.
const EQUIVALENT: [(&str, &str, &str); 3] = [
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
];

/// Which scenario found which broken rule. It saves trying the others; what is not in it, or doesn't hold, is looked for anew.
const WITNESSES: &str = "tests/data/broken_rules.json";

#[test]
fn every_rule_that_is_broken_makes_a_scenario_fail() {
    let Loaded { config, hash, .. } = load(&example());
    let plan = Plan::new(&config, config.alerts.as_ref().expect("it has alerts"), hash, false);
    let bench = Bench::new(&plan);
    let mut mutants = Vec::new();
    for (at, rule) in bench.rules.iter().enumerate().filter(|(_, rule)| is_looked_at(&bench, rule)) {
        for breaker in [numbers, clauses, windows, holds, others] {
            breaker(at, rule, &mut mutants);
        }
    }
    let listed = || EQUIVALENT.iter().map(|(rule, what, _)| (*rule, *what)).chain(WITHOUT_SCENARIO);
    let is_known = |mutant: &Mutant| {
        listed().any(|(rule, what)| (name(&mutant.rule).as_str(), mutant.what.as_str()) == (rule, what))
    };
    let count = mutants.len();
    mutants.retain(|mutant| !is_known(mutant));
    assert_eq!(count - mutants.len(), listed().count(), "each of them is a broken rule");
    let known: BTreeMap<String, String> = fs::read_to_string(WITNESSES)
        .map(|text| serde_json::from_str(&text).expect("it is a map of texts"))
        .unwrap_or_default();
    // To look for a scenario among all of them takes minutes for each: in the further ways, all are broken when the list is made anew, and
    // otherwise those that are in it.
    let is_made_anew = std::env::var_os("UPDATE_GENERATED").is_some();
    let is_listed = |mutant: &Mutant| known.contains_key(&format!("{}: {}", name(&mutant.rule), mutant.what));
    mutants.retain(|mutant| !mutant.is_further || is_made_anew || is_listed(mutant));
    let open = Mutex::new(mutants.iter());
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(mutant) = open.lock().expect("nobody panicked").next() else { break };
                    let what = format!("{}: {}", name(&mutant.rule), mutant.what);
                    let witness = witness(&bench, mutant, known.get(&what));
                    found.lock().expect("nobody panicked").insert(what, witness);
                }
            });
        }
    });
    let found = found.into_inner().expect("nobody panicked");
    let survivors: Vec<_> =
        found.iter().filter(|(_, witness)| witness.is_none()).map(|(what, _)| what.as_str()).collect();
    println!("{} broken rules, {} of them not found", found.len(), survivors.len());
    if is_made_anew {
        let known: BTreeMap<_, _> =
            found.iter().filter_map(|(what, witness)| Some((what, witness.as_ref()?))).collect();
        fs::write(WITNESSES, serde_json::to_string_pretty(&known).expect("it is JSON") + "\n")
            .expect("it is written");
    }
    assert!(
        survivors.is_empty(),
        "{} of {} broken rules are not found:\n{}",
        survivors.len(),
        found.len(),
        survivors.join("\n")
    );
}
