//! What rules are made from: the configuration, seen from its alerts.

use super::eligibility::Reason;
use crate::{
    config::{
        Config, ConfigHash, Route,
        alerts::{Alerts, RouteAlerts},
        ledger::Ledger,
    },
    domain::route::RouteName,
};
use std::{fmt, time::Duration};

/// All that rules are made from.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Its block `alerts`.
    pub alerts: &'a Alerts,
    /// Its hash.
    pub hash: ConfigHash,
    /// Whether everything is a ticket.
    pub shadow: bool,
    /// The routes, in the configuration's order.
    pub routes: Vec<RoutePlan<'a>>,
    /// The ledgers whose readings the rules judge, by name.
    pub ledgers: Vec<LedgerPlan<'a>>,
}

/// A route, as rules see it.
#[derive(Debug)]
pub struct RoutePlan<'a> {
    /// Its full name.
    pub name: RouteName,
    /// Its configuration.
    pub route: &'a Route,
    /// What differs on it.
    pub differs: RouteAlerts,
    /// Its ledger, if its readings are judged.
    pub ledger: Option<&'a Ledger>,
}

/// A ledger whose pending are read, or that is followed.
#[derive(Debug)]
pub struct LedgerPlan<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its configuration.
    pub ledger: &'a Ledger,
    /// The routes whose ledger it is.
    pub routes: Vec<RouteName>,
}

/// A rule that was left out on a route.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The alert.
    pub alert: &'static str,
    /// The long window of the pair.
    pub window: &'static str,
    /// The route.
    pub route: RouteName,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {} on {}: {}", self.alert, self.window, self.route, self.reason)
    }
}

/// Whether the readings of a ledger are exported.
fn is_read(ledger: &Ledger) -> bool {
    ledger.pending.is_some() || ledger.notifications.is_some()
}

impl<'a> Plan<'a> {
    /// The plan of a configuration with a block `alerts`.
    pub fn new(config: &'a Config, alerts: &'a Alerts, hash: ConfigHash, shadow: bool) -> Self {
        let read = |name: &String| config.ledgers.get(name).filter(|ledger| is_read(ledger));
        let routes = config.routes.iter().map(|route| {
            let name = route.full_name();
            let differs = alerts.routes.get(name.as_str()).cloned().unwrap_or_default();
            RoutePlan { differs, ledger: route.ledger.as_ref().and_then(read), name, route }
        });
        let ledgers = config.ledgers.iter().filter(|(_, ledger)| is_read(ledger)).map(|(name, ledger)| {
            let here = |route: &&Route| route.ledger.as_ref() == Some(name);
            LedgerPlan {
                name,
                ledger,
                routes: config.routes.iter().filter(here).map(Route::full_name).collect(),
            }
        });
        Self {
            config,
            alerts,
            hash,
            shadow: shadow || alerts.shadow,
            routes: routes.collect(),
            ledgers: ledgers.filter(|ledger| !ledger.routes.is_empty()).collect(),
        }
    }

    /// The locations whose metrics the rules will see.
    pub fn locations(&self) -> Vec<&'a str> {
        let all =
            if self.alerts.locations.is_empty() { &self.config.locations } else { &self.alerts.locations };
        if all.is_empty() { vec![&self.config.location] } else { all.iter().map(String::as_str).collect() }
    }

    /// The address of the runbooks, without a slash at its end.
    pub fn runbooks(&self) -> &'a str {
        self.alerts.runbooks.trim_end_matches('/')
    }

    /// The period of the objectives.
    pub fn period(&self) -> Duration {
        self.alerts.slo_period.get()
    }

    /// The ledgers of which something is configured.
    pub fn ledgers_with(&self, has: impl Fn(&Ledger) -> bool) -> Vec<&LedgerPlan<'a>> {
        self.ledgers.iter().filter(|plan| has(plan.ledger)).collect()
    }
}

impl RoutePlan<'_> {
    /// The share of notifications that may be bad.
    pub fn budget(&self) -> f64 {
        self.route.budget()
    }

    /// Whether its ledger is followed.
    pub fn is_followed(&self) -> bool {
        self.ledger.is_some_and(|ledger| ledger.notifications.is_some())
    }
}
