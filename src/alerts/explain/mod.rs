//! What each alert costs: how soon it would come in an outage, and how often for nothing.
//!
//! By simulation where canaries are judged, in closed form where the ledger is. Pure and seeded: the same configuration, the same figures.

mod canary;
mod ledger;
mod noise;
mod outage;
pub mod path;
pub mod poisson;
mod text;
pub mod times;

pub use canary::Facts;
pub use outage::{Found, Setting};
pub use text::text;

use super::{
    AlertsError,
    alertmanager::GROUP_WAIT,
    catalog::{self, Audience, Entry, Severity},
    eligibility::class_of,
    judge,
    plan::{Plan, RoutePlan},
    rules::{self, AlertRule, Rule},
};
use crate::{
    config::{Config, ConfigHash, scalar::Span},
    domain::route::RouteName,
};
use canary::CanaryFigures;
use path::TICK;
use serde::Serialize;
use times::{ByShare, Rate, Times};

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Size {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Outages of each share. Ten times as many episodes of noise are weighed.
    pub outages: usize,
    /// Years of noise that are counted, instead of weighing episodes.
    pub years: Option<f64>,
}

/// The figures of some routes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// On what they rest.
    pub assumed: Assumed,
    /// The routes.
    pub routes: Vec<RouteFigures>,
    /// Alerts for the service that have no figures: they ask other questions than how notifications fare in an outage.
    pub not_weighed: Vec<&'static str>,
}

/// What is the same for all figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assumed {
    /// How much was simulated.
    #[serde(flatten)]
    pub size: Size,
    /// How often Prometheus scrapes.
    pub scrape_seconds: f64,
    /// How often rules are evaluated.
    pub evaluation_seconds: f64,
    /// How long the Alertmanager waits for others of a group.
    pub group_wait_seconds: f64,
    /// Routes whose figures were those of another: they are alike in everything that matters.
    pub alike: usize,
}

/// The figures of one route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteFigures {
    /// Its full name.
    pub route: String,
    /// What its canaries' figures rest on.
    pub canaries: Facts,
    /// How many notifications are accepted a day, if that is configured.
    pub accepted_per_day: Option<f64>,
    /// Its volume class.
    pub volume_class: &'static str,
    /// What says so first, by how much fails.
    pub first: FirstByShare,
    /// Its alerts.
    pub alerts: Vec<Row>,
}

/// What says so first, by how much fails.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstByShare {
    /// Everything fails.
    pub total: First,
    /// Half of all fail.
    pub half: First,
    /// One in five fails.
    pub one_in_five: First,
}

/// What says first that notifications don't arrive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct First {
    /// The page that comes first by its median.
    pub page: Option<Said>,
    /// The ticket that comes first.
    pub ticket: Option<Said>,
}

/// An alert, and when it comes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Said {
    /// The alert.
    pub alert: &'static str,
    /// When somebody is told.
    #[serde(flatten)]
    pub times: Times,
}

/// One alert on one route. Those of pairs of windows have a row for each pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The alert.
    pub alert: &'static str,
    /// `page` or `ticket`: how urgent its rule is as it would be made now.
    pub told: &'static str,
    /// The outage that its times are about: what becomes of a notification that is hit.
    pub outage: &'static str,
    /// When it is due, in words.
    pub bound: String,
    /// The long window of a pair.
    pub window: Option<&'static str>,
    /// How long its condition must hold.
    pub hold_seconds: f64,
    /// Why it doesn't judge this route, if it doesn't.
    pub not_eligible: Option<String>,
    /// From the beginning of an outage until somebody is told.
    pub times: Option<ByShare>,
    /// How often it comes for nothing, at the healthy rate.
    pub for_nothing: Option<Rate>,
    /// Where its figures come from: `simulated` or `closed form`.
    pub by: Option<&'static str>,
    /// Why there are no figures where there are none.
    pub why_not: Option<String>,
}

impl Row {
    fn not_eligible(self, why: impl Into<String>) -> Self {
        Self { not_eligible: Some(why.into()), ..self }
    }

    fn without_figures(self, why: &str) -> Self {
        Self { why_not: Some(why.to_owned()), ..self }
    }

    fn with(self, times: ByShare, for_nothing: Option<Rate>, by: &'static str) -> Self {
        Self { times: Some(times), for_nothing, by: Some(by), ..self }
    }

    fn why_no_rate(self, why: &str) -> Self {
        Self { why_not: Some(why.to_owned()), ..self }
    }

    /// From the evaluation in which the rule holds first until somebody is told, in seconds.
    fn afterwards(&self) -> f64 {
        self.hold_seconds + seconds(GROUP_WAIT)
    }

    /// Whether it is about notifications that don't arrive, and not about late ones, say.
    fn is_of_delivery(&self) -> bool {
        !matches!(self.outage, canary::LATE | ledger::REFUSED | ledger::UNCLEAR)
    }
}

/// What the rows of a route are made from.
struct Given<'a> {
    plan: &'a Plan<'a>,
    route: &'a RoutePlan<'a>,
    rules: &'a [Rule],
    canaries: &'a CanaryFigures,
}

impl Given<'_> {
    /// The rule of an alert on this route: its own before one for all, a page before a ticket.
    fn rule(&self, entry: &Entry) -> Option<&AlertRule> {
        let of_route = |rule: &AlertRule| rule.labels.iter().find(|(key, _)| *key == "route").cloned();
        let here = self.rules.iter().filter_map(|rule| match rule {
            Rule::Alert(rule) if rule.entry.name == entry.name => Some((of_route(rule), rule)),
            _ => None,
        });
        here.filter(|(route, _)| route.as_ref().is_none_or(|(_, name)| name == self.route.name.as_str()))
            .min_by_key(|(route, rule)| (route.is_none(), rule.severity))
            .map(|(_, rule)| &**rule)
    }

    /// A number of that rule, by what it is.
    fn number(&self, entry: &Entry, what: &str) -> Option<f64> {
        let number = self.rule(entry)?.numbers.all().iter().find(|number| number.what == what)?;
        number.written.parse().ok()
    }

    fn row(&self, entry: &'static Entry, outage: &'static str) -> Row {
        let rule = self.rule(entry);
        let told = rule.map_or(entry.severity, |rule| rule.sent_as(self.plan.shadow));
        Row {
            alert: entry.name,
            told: told.word(),
            outage,
            bound: String::new(),
            window: None,
            hold_seconds: rule.map_or(0.0, |rule| seconds(rule.hold)),
            not_eligible: None,
            times: None,
            for_nothing: None,
            by: None,
            why_not: None,
        }
    }
}

/// A time as rules write it, in seconds.
fn seconds(span: &str) -> f64 {
    // Ours are all spans; a test reads each of them.
    span.parse::<Span>().map_or(0.0, |span| span.get().as_secs_f64())
}

/// Explains the alerts of one route, or of all.
///
/// # Errors
/// When no rules can be made from the configuration: [`super::generate`] says the same.
pub fn explain(
    config: &Config,
    hash: ConfigHash,
    only: Option<&RouteName>,
    size: &Size,
) -> Result<Explained, AlertsError> {
    let alerts = config.alerts.as_ref().ok_or(AlertsError::NoBlock)?;
    config.routes.iter().try_for_each(judge)?;
    let plan = Plan::new(config, alerts, hash, false);
    let (rules, _) = rules::rules(&plan);
    let mut known: Vec<(Setting, CanaryFigures)> = Vec::new();
    let (mut routes, mut alike) = (Vec::new(), 0);
    for route in plan.routes.iter().filter(|route| only.is_none_or(|only| *only == route.name)) {
        let setting = canary::setting(&plan, route, &rules)?;
        let figures = match known.iter().position(|(other, _)| *other == setting) {
            Some(place) => {
                alike += 1;
                known[place].1.clone()
            }
            None => {
                let figures = CanaryFigures::of(&setting, size);
                known.push((setting.clone(), figures.clone()));
                figures
            }
        };
        let given = Given { plan: &plan, route, rules: &rules, canaries: &figures };
        routes.push(of_route(&given, &setting));
    }
    let tick = TICK as f64 / 1_000.0;
    let assumed = Assumed {
        size: *size,
        scrape_seconds: tick,
        evaluation_seconds: tick,
        group_wait_seconds: seconds(GROUP_WAIT),
        alike,
    };
    let is_weighed = |name: &str| routes.iter().any(|route| route.alerts.iter().any(|row| row.alert == name));
    let not_weighed = catalog::ALL
        .iter()
        .filter(|entry| entry.audience == Audience::Service && !is_weighed(entry.name))
        .map(|entry| entry.name)
        .collect();
    Ok(Explained { assumed, routes, not_weighed })
}

/// What the figures of a route's canaries depend on; nothing where there is no such route.
///
/// # Errors
/// When no rules can be made from the configuration.
pub fn setting(config: &Config, hash: ConfigHash, route: &RouteName) -> Result<Option<Setting>, AlertsError> {
    let alerts = config.alerts.as_ref().ok_or(AlertsError::NoBlock)?;
    let plan = Plan::new(config, alerts, hash, false);
    let (rules, _) = rules::rules(&plan);
    let here = plan.routes.iter().find(|one| one.name == *route);
    here.map(|route| canary::setting(&plan, route, &rules)).transpose()
}

fn of_route(given: &Given<'_>, setting: &Setting) -> RouteFigures {
    let mut alerts = canary::rows(given);
    alerts.extend(ledger::rows(given));
    let daily = given.route.differs.accepted_per_day;
    let class = class_of(given.route.route, Some(given.plan.alerts)).word();
    let first = |share: usize| First {
        page: first_of(&alerts, Severity::Page, share),
        ticket: first_of(&alerts, Severity::Ticket, share),
    };
    RouteFigures {
        route: given.route.name.to_string(),
        canaries: Facts::of(given, setting),
        accepted_per_day: daily,
        volume_class: class,
        first: FirstByShare { total: first(0), half: first(1), one_in_five: first(2) },
        alerts,
    }
}

/// What comes first of this urgency, in an outage of one of the shares.
fn first_of(rows: &[Row], severity: Severity, share: usize) -> Option<Said> {
    let said = rows.iter().filter(|row| row.told == severity.word() && row.is_of_delivery());
    let said = said.filter_map(|row| Some(Said { alert: row.alert, times: row.times?.all()[share] }));
    let soonest = said.min_by(|one, other| one.times.median.rank().total_cmp(&other.times.median.rank()))?;
    soonest.times.median.rank().is_finite().then_some(soonest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::rules::INTERVAL;

    #[test]
    fn the_times_of_rules_are_read() {
        assert_eq!(seconds(INTERVAL) * 1_000.0, TICK as f64);
        assert!(seconds(GROUP_WAIT) > seconds(INTERVAL));
        assert_eq!(seconds("10m"), 600.0);
    }
}
