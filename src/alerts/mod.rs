//! From a configuration: recording and alert rules, their tests, the Alertmanager's tree, a runbook page for each alert, and what each alert costs.
//!
//! Pure: a configuration goes in, texts and figures come out. Every metric that a rule reads is named by the catalog of what is exported.

pub mod alertmanager;
pub mod backtest;
pub mod catalog;
pub mod commands;
pub mod eligibility;
pub mod explain;
pub mod lint;
pub mod number;
pub mod page_test;
pub mod plan;
pub mod rules;
pub mod runbook;
pub mod scenarios;
pub mod simulate;
pub mod suggest;
pub mod yaml;

use crate::config::{Config, ConfigHash, Route, scalar::Span};
use plan::{LeftOut, Plan};
use rules::Rule;
use scenarios::Scenario;
use std::collections::BTreeMap;
use yaml::Yaml;

/// The form in which rules are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A rule file of Prometheus.
    #[default]
    Prometheus,
    /// The custom resource `PrometheusRule` of the Prometheus operator.
    PrometheusRule,
}

/// Why no rules are made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AlertsError {
    /// The configuration has no block `alerts`.
    #[error(
        "there is no block `alerts` in the configuration: write `service`, `runbooks` and `receivers` there"
    )]
    NoBlock,
    /// One failure would page.
    #[error(
        "one failed canary of {route} would page: it adds {up:.2} to the evidence, and the bound is {bound}; \
         write a greater `evidence.bound`, or an `evidence.sustain` above 0s"
    )]
    OneEvent {
        /// The route.
        route: String,
        /// What one failure adds.
        up: f64,
        /// The bound.
        bound: f64,
    },
    /// The objective leaves so little that canaries can't show it.
    #[error("evidence on {route} could never reach its bound: {why}")]
    NeverFires {
        /// The route.
        route: String,
        /// Why.
        why: String,
    },
    /// A schedule can't be used.
    #[error("the schedule of {route} can't be used: {why}")]
    Schedule {
        /// The route.
        route: String,
        /// Why.
        why: String,
    },
}

/// What was made.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The texts of the files, by their paths below the folder that was asked for.
    pub files: BTreeMap<String, String>,
    /// What was left out, and why.
    pub left_out: Vec<LeftOut>,
    /// How many alert rules there are.
    pub alerts: usize,
    /// How many recording rules there are.
    pub recorded: usize,
}

/// The name of the rule file.
pub const RULES: &str = "rules.yaml";
/// The name of the Alertmanager's configuration.
pub const ALERTMANAGER: &str = "alertmanager.yaml";

/// Makes everything.
///
/// # Errors
/// When the configuration has no block `alerts`, and when a page would come from one event, or never.
pub fn generate(
    config: &Config,
    hash: ConfigHash,
    shadow: bool,
    format: Format,
) -> Result<Generated, AlertsError> {
    let alerts = config.alerts.as_ref().ok_or(AlertsError::NoBlock)?;
    config.routes.iter().try_for_each(judge)?;
    let plan = Plan::new(config, alerts, hash, shadow);
    let (rules, left_out) = rules::rules(&plan);
    let scenarios = scenarios::scenarios(&plan, &rules);
    let mut files = BTreeMap::new();
    let groups = rules::groups(&plan, &rules);
    let head = head(&plan, &left_out);
    match format {
        Format::Prometheus => {
            files.insert(RULES.to_owned(), groups.document(&head));
            for (name, tests) in test_files(&plan, &rules, &scenarios) {
                files.insert(name, tests.document(&["For `promtool test rules`.".to_owned()]));
            }
        }
        Format::PrometheusRule => {
            let resource = Yaml::map([
                ("apiVersion", Yaml::text("monitoring.coreos.com/v1")),
                ("kind", Yaml::text("PrometheusRule")),
                (
                    "metadata",
                    Yaml::map([("name", Yaml::text(format!("delivery-canary-{}", alerts.service)))]),
                ),
                ("spec", groups),
            ]);
            files.insert(RULES.to_owned(), resource.document(&head));
        }
    }
    if let Some((configuration, head)) = alertmanager::configuration(&plan) {
        files.insert(ALERTMANAGER.to_owned(), configuration.document(&head));
    }
    for entry in catalog::ALL {
        files.insert(format!("runbooks/{}.md", entry.name), runbook::page(&plan, entry, &rules));
    }
    let recorded = rules.iter().filter(|rule| matches!(rule, Rule::Record { .. })).count();
    Ok(Generated { files, left_out, alerts: rules.len() - recorded, recorded })
}

/// Refuses evidence of which one failure is enough, and such as no failures reach.
fn judge(route: &Route) -> Result<(), AlertsError> {
    let (p0, evidence) = (route.healthy_failure_rate(), &route.evidence);
    let up = (evidence.p1 / p0).log10();
    let name = route.full_name().to_string();
    if up >= evidence.bound && evidence.sustain == Span::seconds(0) {
        return Err(AlertsError::OneEvent { route: name, up, bound: evidence.bound });
    }
    // A total outage must get there within a day, or nobody would wait for it.
    let failures = (evidence.bound / up).ceil();
    if failures > 1_440.0 {
        let why = format!("{failures} failures in a row would be needed, since `p1` is so near to `p0`");
        return Err(AlertsError::NeverFires { route: name, why });
    }
    Ok(())
}

/// Test files by name: one for each pace of scenarios.
pub fn test_files(plan: &Plan<'_>, rules: &[Rule], scenarios: &[Scenario]) -> BTreeMap<String, Yaml> {
    let mut by_step: BTreeMap<u32, Vec<&Scenario>> = BTreeMap::new();
    for scenario in scenarios {
        by_step.entry(scenario.step()).or_default().push(scenario);
    }
    let named = |(step, scenarios): (u32, Vec<&Scenario>)| {
        let file = scenarios::test_file(plan, rules, &scenarios, &format!("../{RULES}"))?;
        Some((format!("tests/every_{}.yaml", Span::seconds(step.into())), file))
    };
    by_step.into_iter().filter_map(named).collect()
}

fn head(plan: &Plan<'_>, left_out: &[LeftOut]) -> Vec<String> {
    let mut head = vec![
        "Made by `delivery-canary alerts generate`. Do not edit: change the configuration, and make them anew.".to_owned(),
        format!("Of the configuration {}. RulesStale says when another one runs.", plan.hash),
    ];
    if plan.shadow {
        head.push("Shadow: everything is a ticket. What would have paged has the label `shadow`.".to_owned());
    }
    head.extend(left_out.iter().map(|left| format!("Left out: {left}.")));
    head
}
