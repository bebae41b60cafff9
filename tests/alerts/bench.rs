//! Runs scenarios of one alert against the rules that it needs.

use delivery_canary::alerts::{
    RULES, catalog,
    plan::Plan,
    rules::{self, ALL_ROUTES, Rule},
    scenarios::{self, Scenario},
    test_files,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::PathBuf,
};

/// Samples of more than three hours are cut into blocks, and each block that is written takes half a gigabyte while it is. So all tests of this
/// machine take turns: one such run at a time.
fn turn() -> File {
    let lock = File::create(std::env::temp_dir().join("delivery-canary-test-promtool.lock")).expect("a lock");
    lock.lock().expect("it is our turn one day");
    lock
}

/// The rules and scenarios of one configuration.
pub struct Bench<'a> {
    pub plan: &'a Plan<'a>,
    pub rules: Vec<Rule>,
    pub scenarios: Vec<Scenario>,
}

impl<'a> Bench<'a> {
    pub fn new(plan: &'a Plan<'a>) -> Self {
        let (rules, _) = rules::rules(plan);
        let scenarios = scenarios::scenarios(plan, &rules);
        Self { plan, rules, scenarios }
    }

    /// The scenarios of an alert. To those of `MonitorBlind` belong the ones about all alerts.
    pub fn of(&self, alert: &str) -> impl Iterator<Item = &Scenario> {
        let is_blind = alert == catalog::BLIND.name;
        self.scenarios.iter().filter(move |scenario| match scenario.alert {
            Some(about) => about == alert,
            None => is_blind,
        })
    }

    /// The rule file and the test files of some scenarios of one alert, with these rules in the place of ours. `MonitorBlind` is run with all rules.
    pub fn files(&self, alert: &str, rules: &[Rule], scenarios: &[Scenario]) -> BTreeMap<String, String> {
        let is_blind = alert == catalog::BLIND.name;
        let routes: BTreeSet<&str> = scenarios.iter().map(Scenario::route).collect();
        let read = scenarios::read_by(alert, rules);
        let is_needed = |rule: &&Rule| match rule {
            Rule::Record { name, .. } => is_blind || read.contains(name),
            Rule::Alert(rule) => {
                let is_here = |route: &str| route == ALL_ROUTES || routes.contains(route);
                let here = rule.labels.iter().all(|(key, value)| *key != "route" || is_here(value));
                here && (is_blind || rule.entry.name == alert)
            }
        };
        // The world is that of our rules, also where a broken one reads less of it.
        let mut files: BTreeMap<String, String> = test_files(self.plan, &self.rules, scenarios)
            .into_iter()
            .map(|(name, file)| (name, file.document(&[])))
            .collect();
        assert!(!files.is_empty(), "{alert} has no scenario");
        let needed: Vec<Rule> = rules.iter().filter(is_needed).cloned().collect();
        files.insert(RULES.to_owned(), rules::groups(self.plan, &needed).document(&[]));
        files
    }

    /// What promtool says of some scenarios of one alert, with these rules in the place of ours.
    pub fn run(&self, alert: &str, rules: &[Rule], scenarios: &[Scenario]) -> (bool, String) {
        let files = self.files(alert, rules, scenarios);
        let folder = super::write(&files);
        let tests: Vec<PathBuf> =
            files.keys().filter(|name| *name != RULES).map(|name| folder.path().join(name)).collect();
        let is_long = scenarios.iter().any(|scenario| scenario.seconds() > 3 * 3_600);
        let _turn = is_long.then(turn);
        super::run("promtool", "prometheus", &["test", "rules"], &tests)
    }
}
