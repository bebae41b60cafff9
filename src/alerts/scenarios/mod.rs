//! Tests of the rules, for promtool: each alert both ways.
//!
//! Each number of a rule has a scenario just above it, which must fire, and one just below it, which must not; each clause has
//! one in which nothing but that clause keeps the alert silent.

mod canary;
mod customers;
mod monitor;
mod pending;
mod surge;
mod track;
mod world;

use super::{
    plan::{Plan, RoutePlan},
    rules::{ALL_ROUTES, AlertRule, Rule},
    yaml::Yaml,
};
use crate::catalog::{Family, families as f};
use std::collections::BTreeSet;
use track::{Pace, Phase, Seg, track, without};
use world::{Series, world};

/// Something that is not as usual.
#[derive(Clone, Debug)]
struct Change {
    family: &'static Family,
    labels: Vec<(&'static str, String)>,
    /// From where to where; nothing for the bad time.
    steps: Option<(u32, u32)>,
    seg: Seg,
}

/// What is firing, by the labels that tell alerts apart.
type Fired = Vec<(&'static str, String)>;

/// One scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The alert that it is about; nothing for all but the Watchdog.
    pub alert: Option<&'static str>,
    /// What happens.
    pub name: String,
    route: String,
    pace: Pace,
    changes: Vec<Change>,
    /// From which step to which all scrapes fail.
    gap: Option<(u32, u32)>,
    /// What fires at which steps; at all other steps that are looked at, nothing.
    checks: Vec<(u32, Vec<Fired>)>,
}

/// The labels by which alerts are told apart in scenarios.
const TOLD_APART: &str = "alertname, severity, route, blind, location, ledger, observer";

/// A change of a family's series with these labels, for the bad time.
fn change(family: &'static Family, labels: &[(&'static str, &str)], seg: Seg) -> Change {
    let labels = labels.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    Change { family, labels, steps: None, seg }
}

impl Change {
    /// The same, from one step to another.
    fn during(mut self, from: u32, until: u32) -> Self {
        self.steps = Some((from, until));
        self
    }

    /// The same, always.
    fn always(self) -> Self {
        self.during(0, u32::MAX)
    }

    /// The same, of one process alone.
    fn at(self, instance: &str) -> Self {
        self.labelled("instance", instance)
    }

    /// The same, of series with this label alone.
    fn labelled(mut self, label: &'static str, value: &str) -> Self {
        self.labels.push((label, value.to_owned()));
        self
    }
}

/// Makes the scenarios of one alert.
struct About<'a> {
    alert: &'static str,
    route: String,
    fired: Vec<Fired>,
    pace: Pace,
    hold: u32,
    /// For how many steps it is kept firing.
    keep: u32,
    /// Whether there is one already in which scrapes fail.
    has_gap: bool,
    out: &'a mut Vec<Scenario>,
}

impl About<'_> {
    /// It fires while these changes last, and neither before nor after them; and not if they last for less than it must hold.
    fn fires(&mut self, name: &str, changes: &[Change]) {
        let pace = self.pace;
        let mut checks = vec![
            (pace.before.saturating_sub(1), Vec::new()),
            (pace.late(), self.fired.clone()),
            (pace.total() - 1, Vec::new()),
        ];
        if self.keep > 0 {
            checks.insert(2, (pace.before + pace.during + self.keep - 1, self.fired.clone()));
        }
        self.add(name, changes, checks);
        if !self.has_gap {
            self.through_gap(name, changes);
        }
    }

    /// It goes on firing while two scrapes fail.
    fn through_gap(&mut self, name: &str, changes: &[Change]) {
        self.with_gap(&format!("{name}, and two scrapes fail"), changes, 2, self.fired.clone());
        self.has_gap = true;
    }

    /// It goes on being silent while scrapes fail, for as long as what was read counts as fresh: what keeps it so is bridged too. Two evaluations
    /// a minute, as in service: with one, what is missing for a moment could not hold for a minute.
    fn silent_through_gap(&mut self, name: &str, changes: &[Change]) {
        let pace = self.pace;
        let half = |steps: u32| steps * pace.step / 30;
        self.pace =
            Pace { step: 30, before: half(pace.before), during: half(pace.during), after: half(pace.after) };
        self.with_gap(&format!("{name}, and five scrapes fail"), changes, 5, Vec::new());
        self.pace = pace;
    }

    /// Where a step is longer than what is bridged, that can't be told.
    fn with_gap(&mut self, name: &str, changes: &[Change], scrapes: u32, fired: Vec<Fired>) {
        if self.pace.step > 60 {
            return;
        }
        let late = self.pace.late();
        let through = (late - 3 - scrapes..=late).map(|step| (step, fired.clone())).collect();
        self.add(name, changes, through);
        if let Some(added) = self.out.last_mut() {
            added.gap = Some((late - 2 - scrapes, late - 2));
        }
    }

    /// It does not fire while these changes last.
    fn silent(&mut self, name: &str, changes: &[Change]) {
        self.add(name, changes, vec![(self.pace.late(), Vec::new())]);
    }

    /// It fires at these steps, and at no other that is looked at.
    fn add(&mut self, name: &str, changes: &[Change], checks: Vec<(u32, Vec<Fired>)>) {
        self.out.push(Scenario {
            alert: Some(self.alert),
            name: name.to_owned(),
            route: self.route.clone(),
            pace: self.pace,
            changes: changes.to_vec(),
            gap: None,
            checks,
        });
    }

    /// The same changes for less than the alert must hold. What is then absent is bridged for a while, which counts.
    fn too_short(&mut self, changes: &[Change]) {
        let pace = self.pace;
        let hold = self.hold / pace.step;
        let shortened = |change: &Change| match (change.steps, bridged(change, pace)) {
            (None, bridged) => change.clone().during(pace.before, pace.before + hold.saturating_sub(bridged)),
            (Some(_), _) => change.clone(),
        };
        let changes: Vec<_> = changes.iter().map(shortened).collect();
        let checks = (pace.before..pace.before + hold + 2).map(|step| (step, Vec::new())).collect();
        self.add("it does not last", &changes, checks);
    }
}

/// For how many steps a change is still seen when it is over: times that never came are absent in a world where all is well.
fn bridged(change: &Change, pace: Pace) -> u32 {
    let is_absent_when_well =
        matches!(change.seg, Seg::Ago(_)) || change.family.name == f::CANARY_DISAGREEMENTS.name;
    if is_absent_when_well { 360 / pace.step } else { 0 }
}

/// Of the rules of one alert on one route, how long each must hold, in seconds.
fn hold(rule: &AlertRule) -> u32 {
    rule.hold.trim_end_matches('m').parse::<u32>().unwrap_or_default() * 60
}

/// All scenarios for these rules.
pub fn scenarios(plan: &Plan<'_>, rules: &[Rule]) -> Vec<Scenario> {
    let mut out = Vec::new();
    let alerts: Vec<&AlertRule> = rules
        .iter()
        .filter_map(|rule| match rule {
            Rule::Alert(rule) => Some(&**rule),
            Rule::Record { .. } => None,
        })
        .collect();
    canary::scenarios(plan, &alerts, &mut out);
    customers::scenarios(plan, &alerts, &mut out);
    surge::scenarios(plan, &alerts, &mut out);
    monitor::scenarios(plan, &alerts, &mut out);
    out
}

/// Starts the scenarios of the first rule of an alert that has these labels; nothing if there is no such rule.
fn about<'a>(
    plan: &Plan<'_>,
    alerts: &[&AlertRule],
    alert: &'static str,
    route: &RoutePlan<'_>,
    out: &'a mut Vec<Scenario>,
) -> Option<About<'a>> {
    let of_route = |rule: &&&AlertRule| {
        let is_here = |value: &str| value == ALL_ROUTES || value == route.name.as_str();
        rule.labels.iter().all(|(key, value)| *key != "route" || is_here(value))
    };
    let rule = alerts.iter().filter(|rule| rule.entry.name == alert).find(of_route)?;
    let mut fired: Fired = vec![("severity", rule.sent_as(plan.shadow).word().to_owned())];
    fired.push(("alertname", alert.to_owned()));
    fired.extend(rule.labels.iter().filter(|(key, _)| *key == "blind").cloned());
    // What is made of routes has the route as a label; the rest is of the monitor as a whole.
    let of_rule = rule.labels.iter().find(|(key, _)| *key == "route").map(|(_, route)| route.clone());
    let of_expr = rule.expr.contains("\"route\"").then(|| route.name.to_string());
    fired.extend(of_rule.or(of_expr).map(|route| ("route", route)));
    let keep = rule.keep_firing.map_or(0, |keep| u32::try_from(keep.get().as_secs()).unwrap_or(0));
    Some(About {
        alert,
        route: route.name.to_string(),
        fired: vec![fired],
        pace: Pace { after: Pace::MINUTES.after + keep.div_ceil(Pace::MINUTES.step), ..Pace::MINUTES },
        hold: hold(rule),
        keep: keep / Pace::MINUTES.step,
        has_gap: false,
        out,
    })
}

/// A test file of these scenarios, for promtool. `step` chooses those of one pace, since a file has one.
pub fn test_file(plan: &Plan<'_>, rules: &[Rule], scenarios: &[&Scenario], rule_file: &str) -> Option<Yaml> {
    let step = scenarios.first()?.pace.step;
    let tests = scenarios.iter().map(|scenario| scenario.yaml(plan, rules)).collect();
    Some(Yaml::map([
        ("rule_files", Yaml::texts([rule_file])),
        ("evaluation_interval", Yaml::text(format!("{step}s"))),
        ("tests", Yaml::List(tests)),
    ]))
}

impl Scenario {
    /// Seconds a step.
    pub const fn step(&self) -> u32 {
        self.pace.step
    }

    /// How many seconds of samples it has.
    pub const fn seconds(&self) -> u32 {
        self.pace.step * self.pace.total()
    }

    /// The route that it is about.
    pub fn route(&self) -> &str {
        &self.route
    }

    /// Whether it is held that the alert does not fire, at some step.
    pub fn has_silence(&self) -> bool {
        self.checks.iter().any(|(_, fired)| fired.is_empty())
    }

    /// Whether the alert fires in it.
    pub fn has_firing(&self) -> bool {
        self.checks.iter().any(|(_, fired)| !fired.is_empty())
    }

    /// The series that it needs: those that its alert reads, directly or by what is recorded.
    fn series(&self, plan: &Plan<'_>, rules: &[Rule]) -> Vec<Series> {
        let Some(route) = plan.routes.iter().find(|route| route.name.as_str() == self.route) else {
            return Vec::new();
        };
        let read = self.alert.map(|alert| read_by(alert, rules));
        let is_read = |name: &str| read.as_ref().is_none_or(|read| read.contains(name));
        world(plan, route).into_iter().filter(|series| is_read(series.family.name)).collect()
    }

    fn yaml(&self, plan: &Plan<'_>, rules: &[Rule]) -> Yaml {
        let pace = self.pace;
        let series = self.series(plan, rules).into_iter().map(|series| {
            let phases: Vec<_> = self
                .changes
                .iter()
                .filter(|change| change.family.name == series.family.name && series.has(&change.labels))
                .map(|change| {
                    let (from, until) = change.steps.unwrap_or((pace.before, pace.before + pace.during));
                    Phase { from, until, seg: change.seg }
                })
                .collect();
            Yaml::map([
                ("series", Yaml::text(series.notation())),
                ("values", Yaml::text(track(&pace, series.normal, &without(phases, self.gap)))),
            ])
        });
        let which = match self.alert {
            Some(alert) => format!("alertname=\"{alert}\""),
            None => "alertname!=\"Watchdog\"".to_owned(),
        };
        let expr = format!("group by ({TOLD_APART}) (ALERTS{{alertstate=\"firing\", {which}}})");
        let checks = self.checks.iter().map(|(step, fired)| {
            let samples = fired.iter().map(|labels| {
                let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
                let labels = format!("{{{}}}", labels.join(", "));
                Yaml::map([("labels", Yaml::text(labels)), ("value", Yaml::Plain("1".into()))])
            });
            Yaml::map([
                ("expr", Yaml::text(&expr)),
                ("eval_time", Yaml::text(pace.time(*step))),
                ("exp_samples", Yaml::List(samples.collect())),
            ])
        });
        let name = format!("{}: {}", self.alert.unwrap_or("all alerts"), self.name);
        Yaml::map([
            ("name", Yaml::text(name)),
            ("interval", Yaml::text(format!("{}s", pace.step))),
            ("input_series", Yaml::List(series.collect())),
            ("promql_expr_test", Yaml::List(checks.collect())),
        ])
    }
}

/// Names in an expression: whatever may be the name of a series.
pub fn names(expr: &str) -> BTreeSet<&str> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    expr.split(|c| !inside(c)).filter(|name| name.contains("delivery_")).collect()
}

/// All names that the rules of an alert read, directly or by what is recorded.
pub fn read_by<'r>(alert: &str, rules: &'r [Rule]) -> BTreeSet<&'r str> {
    let mut read = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for rule in rules {
        if let Rule::Alert(rule) = rule
            && rule.entry.name == alert
        {
            open.extend(names(&rule.expr));
        }
    }
    while let Some(name) = open.pop() {
        if read.insert(name) {
            for rule in rules {
                if let Rule::Record { name: recorded, expr, .. } = rule
                    && *recorded == name
                {
                    open.extend(names(expr));
                }
            }
        }
    }
    read
}
