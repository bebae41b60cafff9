//! A configuration made ready to run: schedules compiled, names resolved to adapters.

use super::{adapters::Adapters, counters::Counters};
use crate::{
    acceptance::Submitter,
    config::{
        Config, ConfigHash, Route,
        model::{MaintenanceWindow, ScheduleConfig},
    },
    domain::{
        canary::CanaryKind,
        failure_evidence::Weights,
        route::{Location, RouteName},
        schedule::{Interval, Schedule, ScheduleError},
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Slots of one kind on one route.
pub struct SlotStream {
    /// The kind of canary that they are for.
    pub kind: CanaryKind,
    /// When they are.
    pub schedule: Schedule,
    /// How long after its slot a canary goes out: fixed for the route, spread over the fleet.
    pub offset: TimeDelta,
    /// How late a slot may still be served; later it is missed.
    pub tolerance: Duration,
    /// By what it is submitted.
    pub acceptance: String,
}

/// A route made ready.
pub struct ActiveRoute {
    /// Its full name.
    pub name: RouteName,
    /// Its configuration.
    pub config: Route,
    /// Its slots: scheduled ones first, then replays and controls where configured.
    pub streams: Vec<SlotStream>,
    /// How its failures are weighed.
    pub weights: Weights,
    /// The median gap between its scheduled slots.
    pub interval: Duration,
    /// How long after acceptance its ledger may take to show a row.
    pub ledger_overlap: TimeDelta,
}

impl ActiveRoute {
    /// The scheduled slots.
    pub fn scheduled(&self) -> &SlotStream {
        &self.streams[0]
    }

    /// The slots of a kind; a manual canary or a confirmation goes as a scheduled one does.
    pub fn stream(&self, kind: CanaryKind) -> &SlotStream {
        self.streams.iter().find(|s| s.kind == kind).unwrap_or(&self.streams[0])
    }
}

/// A configuration in force.
pub struct Active {
    /// The configuration.
    pub config: Config,
    /// Its hash.
    pub hash: ConfigHash,
    /// The place of observation of this process.
    pub location: Location,
    /// Its routes.
    pub routes: BTreeMap<RouteName, Arc<ActiveRoute>>,
    /// Its adapters.
    pub adapters: Adapters,
}

/// Why a configuration can't be made ready. Validation finds these first; this is the second lock on the door.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// A schedule can't be read.
    #[error("the schedule of route {route}: {source}")]
    Schedule {
        /// The route.
        route: RouteName,
        /// Why.
        source: ScheduleError,
    },
    /// A name that nothing has.
    #[error("route {route} names the {what} `{name}`, which isn't configured")]
    Missing {
        /// The route.
        route: RouteName,
        /// A receiver, a ledger or an acceptance.
        what: &'static str,
        /// The name.
        name: String,
    },
}

impl Active {
    /// Makes a validated configuration ready.
    ///
    /// # Errors
    /// When a schedule can't be read or a name is of nothing.
    pub fn new(
        config: Config,
        hash: ConfigHash,
        adapters: Adapters,
        now: DateTime<Utc>,
    ) -> Result<Self, ActivationError> {
        let mut routes = BTreeMap::new();
        for route in &config.routes {
            let active = activate(route, &config, &adapters, now)?;
            routes.insert(active.name.clone(), Arc::new(active));
        }
        let location = Location::from_text(config.location.clone());
        Ok(Self { config, hash, location, routes, adapters })
    }

    /// Starts the counts of what is newly configured at 0, and drops those of what went.
    pub fn configure_counters(&self, counters: &Counters) {
        let deadline =
            |(name, route): (&RouteName, &Arc<ActiveRoute>)| (name.clone(), route.config.deadline.get());
        counters.configure(
            self.routes.iter().map(deadline),
            self.config.ledgers.keys().cloned(),
            self.config.receivers.keys().cloned(),
        );
    }

    /// The deadlines of the routes whose notifications are in this ledger.
    pub fn deadlines(&self, ledger: &str) -> BTreeMap<RouteName, Duration> {
        let in_it = self.routes.values().filter(|r| r.config.ledger.as_deref() == Some(ledger));
        in_it.map(|r| (r.name.clone(), r.config.deadline.get())).collect()
    }

    /// The deadlines of all routes.
    pub fn all_deadlines(&self) -> BTreeMap<RouteName, Duration> {
        self.routes.values().map(|route| (route.name.clone(), route.config.deadline.get())).collect()
    }

    /// The maintenance window in force on a route.
    pub fn maintenance(&self, route: &RouteName, now: DateTime<Utc>) -> Option<&MaintenanceWindow> {
        self.config.maintenance.iter().find(|window| {
            let covers = window.routes.is_empty() || window.routes.iter().any(|r| r == route.as_str());
            covers && window.from.is_none_or(|from| from <= now) && now < window.until
        })
    }

    /// The acceptance by which canaries of this kind go out on this route.
    pub fn submitter(&self, route: &ActiveRoute, kind: CanaryKind) -> Option<&Arc<dyn Submitter>> {
        self.adapters.acceptances.get(&route.stream(kind).acceptance)
    }
}

fn activate(
    route: &Route,
    config: &Config,
    adapters: &Adapters,
    now: DateTime<Utc>,
) -> Result<ActiveRoute, ActivationError> {
    let name = route.full_name();
    let missing =
        |what, name_: &str| ActivationError::Missing { route: name.clone(), what, name: name_.to_owned() };
    let mut streams = Vec::new();
    let mut add = |kind, schedule: &ScheduleConfig, acceptance: &String| {
        if !adapters.acceptances.contains_key(acceptance) {
            return Err(missing("acceptance", acceptance));
        }
        let schedule =
            compile(schedule).map_err(|source| ActivationError::Schedule { route: name.clone(), source })?;
        streams.push(stream(kind, schedule, &name, acceptance));
        Ok(())
    };
    add(CanaryKind::Scheduled, &route.schedule, &route.acceptance)?;
    if let Some(schedule) = &route.replay {
        add(CanaryKind::Replay, schedule, &route.acceptance)?;
    }
    if let Some(arm) = &route.controls.sink {
        add(CanaryKind::ControlSink, &arm.schedule, &arm.acceptance)?;
    }
    if let Some(arm) = &route.controls.provider {
        add(CanaryKind::ControlProvider, &arm.schedule, &arm.acceptance)?;
    }
    if let Some(receipt) = &route.receipt
        && !adapters.sinks.contains_key(&receipt.receiver)
    {
        return Err(missing("receiver", &receipt.receiver));
    }
    let ledger_overlap = match &route.ledger {
        Some(ledger) if !adapters.ledgers.contains_key(ledger) => return Err(missing("ledger", ledger)),
        Some(ledger) => config.ledgers.get(ledger).map_or(TimeDelta::zero(), |l| l.overlap.delta()),
        None => TimeDelta::zero(),
    };
    let evidence = &route.evidence;
    let weights =
        Weights::new(route.healthy_failure_rate(), evidence.p1, evidence.bound, evidence.sustain.delta());
    let interval = streams[0].schedule.typical_interval(now).unwrap_or(Duration::from_secs(60));
    Ok(ActiveRoute { name, config: route.clone(), streams, weights, interval, ledger_overlap })
}

fn compile(schedule: &ScheduleConfig) -> Result<Schedule, ScheduleError> {
    match schedule {
        ScheduleConfig::Every(interval) => Ok(Schedule::every(Interval::new(interval.get())?)),
        ScheduleConfig::Cron(cron) => Schedule::parse(&cron.expression, &cron.zone),
    }
}

/// How long after each slot the canaries of this route go out.
///
/// # Errors
/// When the schedule can't be read.
pub fn offset_of(schedule: &ScheduleConfig, route: &RouteName) -> Result<Duration, ScheduleError> {
    Ok(spread(&compile(schedule)?, route))
}

/// Over a minute at the most: a cron expression names a minute, and people look for their canary in it.
fn spread(schedule: &Schedule, route: &RouteName) -> Duration {
    schedule.offset_for(route.as_str(), Duration::from_secs(60))
}

fn stream(kind: CanaryKind, schedule: Schedule, route: &RouteName, acceptance: &str) -> SlotStream {
    let tolerance = schedule.tolerance();
    let offset = TimeDelta::from_std(spread(&schedule, route)).unwrap_or(TimeDelta::zero());
    SlotStream { kind, schedule, offset, tolerance, acceptance: acceptance.to_owned() }
}
