//! Recording and alert rules.
//!
//! Each clause of an expression stands on a line of its own and starts with `and`, `unless` or `or`: that is for those who read
//! them, and for the tests that break one clause after the other.

mod budget;
mod canary;
mod ledger;
mod monitor;
mod names;
mod own;
mod recorded;
mod surge;

pub use names::RECORDED;

use super::{
    catalog::{Audience, Entry, Severity},
    commands,
    number::{Number, Numbers},
    plan::{LeftOut, Plan},
    yaml::Yaml,
};
use crate::config::scalar::Span;

/// The `route` of an alert that is of no one route.
pub const ALL_ROUTES: &str = "all";

/// How often rules are evaluated.
pub const INTERVAL: &str = "30s";

/// One rule.
#[derive(Clone, Debug)]
pub enum Rule {
    /// A recording rule.
    Record {
        /// The name of what it records.
        name: &'static str,
        /// The expression.
        expr: String,
        /// Its numbers.
        numbers: Vec<Number>,
    },
    /// An alert rule.
    Alert(Box<AlertRule>),
}

/// An alert rule.
#[derive(Clone, Debug)]
pub struct AlertRule {
    /// The alert.
    pub entry: &'static Entry,
    /// How urgent this rule is.
    pub severity: Severity,
    /// The expression.
    pub expr: String,
    /// How long it must hold.
    pub hold: &'static str,
    /// How long it goes on when that doesn't hold any more.
    pub keep_firing: Option<Span>,
    /// Labels beyond those that every rule has.
    pub labels: Vec<(&'static str, String)>,
    /// One line: what happened where.
    pub summary: String,
    /// What is known beyond what the alert says anyway. Templates are filled in by Prometheus.
    pub details: String,
    /// Its numbers.
    pub numbers: Numbers,
}

/// All rules, and what was left out, with the reason.
pub fn rules(plan: &Plan<'_>) -> (Vec<Rule>, Vec<LeftOut>) {
    let mut rules = recorded::rules(plan);
    let mut left_out = Vec::new();
    let mut alerts = Vec::new();
    for route in &plan.routes {
        alerts.push(canary::failing(route));
        alerts.push(canary::slow(route));
        budget::rules(plan, route, &mut alerts, &mut left_out);
    }
    ledger::rules(plan, &mut alerts);
    surge::rules(plan, &mut alerts);
    canary::rules(plan, &mut alerts);
    monitor::rules(plan, &mut alerts);
    own::rules(plan, &mut alerts);
    rules.extend(alerts.into_iter().map(|rule| Rule::Alert(Box::new(rule))));
    (rules, left_out)
}

/// The groups of a rule file: one, so that what is recorded is of the same moment as the alerts that read it.
pub fn groups(plan: &Plan<'_>, rules: &[Rule]) -> Yaml {
    let rules = rules.iter().map(|rule| rule.yaml(plan)).collect();
    Yaml::map([(
        "groups",
        Yaml::List(vec![Yaml::map([
            ("name", Yaml::text("delivery-canary")),
            ("interval", Yaml::text(INTERVAL)),
            ("rules", Yaml::List(rules)),
        ])]),
    )])
}

impl Rule {
    fn yaml(&self, plan: &Plan<'_>) -> Yaml {
        match self {
            Self::Record { name, expr, numbers } => Yaml::Noted(
                numbers.iter().map(ToString::to_string).collect(),
                Box::new(Yaml::map([("record", Yaml::text(*name)), ("expr", Yaml::text(expr))])),
            ),
            Self::Alert(rule) => rule.yaml(plan),
        }
    }

    /// Its expression.
    pub fn expr(&self) -> &str {
        match self {
            Self::Record { expr, .. } => expr,
            Self::Alert(rule) => &rule.expr,
        }
    }

    /// Its numbers.
    pub fn numbers(&self) -> &[Number] {
        match self {
            Self::Record { numbers, .. } => numbers,
            Self::Alert(rule) => rule.numbers.all(),
        }
    }
}

impl AlertRule {
    /// The severity that it is sent with.
    pub fn sent_as(&self, shadow: bool) -> Severity {
        match self.severity {
            Severity::Page if shadow => Severity::Ticket,
            other => other,
        }
    }

    fn yaml(&self, plan: &Plan<'_>) -> Yaml {
        let mut labels = vec![
            ("severity", self.sent_as(plan.shadow).word().to_owned()),
            ("audience", self.entry.audience.word().to_owned()),
            ("service", plan.alerts.service.clone()),
        ];
        if plan.shadow && self.severity == Severity::Page {
            labels.push(("shadow", "true".to_owned()));
        }
        labels.extend(self.labels.iter().cloned());
        let labels = labels.into_iter().map(|(key, value)| (key, Yaml::text(value)));
        let mut description = self.entry.says.to_owned();
        if !self.details.is_empty() {
            description = format!("{description}\n{}", self.details);
        }
        let numbers: Vec<_> = self.numbers.all().iter().map(ToString::to_string).collect();
        let route = self.labels.iter().find(|(key, route)| *key == "route" && route != ALL_ROUTES);
        let route = route.map(|(_, route)| route.as_str());
        let mut annotations = vec![
            ("summary", self.summary.clone()),
            ("question", self.entry.question.to_owned()),
            ("description", description),
            ("first", commands::annotation(plan, self.entry, route)),
            ("runbook_url", format!("{}/{}.md", plan.runbooks(), self.entry.name)),
        ];
        if !numbers.is_empty() {
            annotations.push(("numbers", numbers.join("\n")));
        }
        let annotations = annotations.into_iter().map(|(key, value)| (key, Yaml::text(value)));
        let mut map = vec![("alert", Yaml::text(self.entry.name)), ("expr", Yaml::text(&self.expr))];
        if self.hold != "0m" {
            map.push(("for", Yaml::text(self.hold)));
        }
        if let Some(keep) = self.keep_firing.filter(|keep| !keep.get().is_zero()) {
            map.push(("keep_firing_for", Yaml::text(keep.to_string())));
        }
        map.push(("labels", Yaml::map(labels)));
        map.push(("annotations", Yaml::map(annotations)));
        Yaml::map(map)
    }
}

/// An alert on routes: `channel` is made of the route's name, so that every alert of a route has it.
fn of_routes(
    entry: &'static Entry,
    expr: &str,
    hold: &'static str,
    summary: &str,
    numbers: Numbers,
) -> AlertRule {
    debug_assert!(entry.audience != Audience::DeadMan);
    let expr = format!("label_replace(\n{expr},\n\"channel\", \"$1\", \"route\", \"(.*)/.*\")");
    AlertRule {
        entry,
        severity: entry.severity,
        expr,
        hold,
        keep_firing: None,
        labels: Vec::new(),
        summary: format!("{{{{ $labels.route }}}}: {summary}"),
        details: String::new(),
        numbers,
    }
}

/// An alert of the monitor itself.
fn of_monitor(
    entry: &'static Entry,
    expr: String,
    hold: &'static str,
    summary: &str,
    numbers: Numbers,
) -> AlertRule {
    AlertRule {
        entry,
        severity: entry.severity,
        expr,
        hold,
        keep_firing: None,
        labels: Vec::new(),
        summary: summary.to_owned(),
        details: String::new(),
        numbers,
    }
}
