//! From the evidence of all locations of a route to its pages: by the route's rule of locations, muted by planned work, and only what has held.

use super::replay::{Judged, Replay};
use crate::{
    alerts::{
        AlertsError,
        catalog::{self, Severity},
        judge,
    },
    config::{
        Config, Route,
        alerts::SlowSeverity,
        model::{MaintenanceWindow, PageOn},
    },
    domain::{
        failure_evidence::{Question, Weights},
        route::{Location, RouteName},
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// How long the rules hold their tongue. A test holds it against the rules that are made.
pub const HOLD: TimeDelta = TimeDelta::minutes(1);

/// For so long after its last canary a location counts that is not configured.
const UNKNOWN_FOR: TimeDelta = TimeDelta::days(1);

/// The locations that are configured.
fn locations(config: &Config) -> BTreeSet<Location> {
    let of_alerts = config.alerts.iter().flat_map(|alerts| &alerts.locations);
    let all = of_alerts.chain(&config.locations).chain([&config.location]);
    all.map(|name| Location::from_text(name.clone())).collect()
}

/// A page, or a ticket, that would have come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The route.
    pub route: RouteName,
    /// The alert.
    pub alert: &'static str,
    /// How urgent it is.
    pub severity: Severity,
    /// When it fired.
    pub from: DateTime<Utc>,
    /// When it was over; nothing: not yet at the end of what was looked at.
    pub until: Option<DateTime<Utc>>,
}

/// What makes pages of a route's evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The route.
    pub route: RouteName,
    /// How failures are weighed.
    pub weights: Weights,
    /// How many locations must fail.
    pub page_on: PageOn,
    /// The locations that are configured. Another one, such as one that has had another name since, has a say for a day after its last canary.
    pub locations: BTreeSet<Location>,
    /// How long a canary can still be judged anew.
    pub corrected_for: TimeDelta,
    /// What it is that canaries come late.
    pub slow: Severity,
    /// When planned work mutes pages.
    pub muted: Vec<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Settings {
    /// Those of a route of this configuration, which may differ from what the configuration says of it.
    ///
    /// # Errors
    /// When one event would page, or none ever: no rule is made of that.
    pub fn of(config: &Config, route: &Route) -> Result<Self, AlertsError> {
        judge(route)?;
        let name = route.full_name();
        let evidence = &route.evidence;
        let differs = config.alerts.as_ref().and_then(|alerts| alerts.routes.get(name.as_str()));
        let covers = |window: &&MaintenanceWindow| {
            window.routes.is_empty() || window.routes.iter().any(|route| route == name.as_str())
        };
        let muted = config.maintenance.iter().filter(covers);
        Ok(Self {
            weights: Weights::new(
                route.healthy_failure_rate(),
                evidence.p1,
                evidence.bound,
                evidence.sustain.delta(),
            ),
            page_on: route.page_on,
            locations: locations(config),
            corrected_for: route.follow_for.delta() + TimeDelta::hours(1),
            slow: match differs.map(|differs| differs.slow).unwrap_or_default() {
                SlowSeverity::Page => Severity::Page,
                SlowSeverity::Ticket => Severity::Ticket,
            },
            muted: muted
                .map(|window| (window.from.unwrap_or(DateTime::<Utc>::MIN_UTC), window.until))
                .collect(),
            route: name,
        })
    }

    fn is_muted(&self, at: DateTime<Utc>) -> bool {
        self.muted.iter().any(|(from, until)| *from <= at && at < *until)
    }
}

/// One alert: since when its condition has held.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    alert: &'static str,
    severity: Severity,
    since: Option<DateTime<Utc>>,
}

/// The alerts on a route's canaries, as its judgements come in.
#[derive(Clone, Debug)]
pub struct Alarms {
    settings: Settings,
    locations: BTreeMap<Location, Replay>,
    /// When something was last judged at each.
    newest: BTreeMap<Location, DateTime<Utc>>,
    failing: Alarm,
    slow: Alarm,
    /// The bounds of planned work that are still ahead, the nearest last.
    ahead: Vec<DateTime<Utc>>,
    now: DateTime<Utc>,
    pages: Vec<Page>,
}

impl Alarms {
    /// With nothing judged yet.
    pub fn new(settings: Settings) -> Self {
        let alarm = |entry: &catalog::Entry, severity| Alarm { alert: entry.name, severity, since: None };
        let (failing, slow) =
            (alarm(&catalog::CANARY_FAILING, Severity::Page), alarm(&catalog::CANARY_SLOW, settings.slow));
        let mut ahead: Vec<_> = settings.muted.iter().flat_map(|(from, until)| [*from, *until]).collect();
        ahead.sort_unstable_by(|one, other| other.cmp(one));
        let now = DateTime::<Utc>::MIN_UTC;
        Self {
            settings,
            locations: BTreeMap::new(),
            newest: BTreeMap::new(),
            failing,
            slow,
            ahead,
            now,
            pages: Vec::new(),
        }
    }

    /// Takes the next judgement of any location, by time.
    pub fn take(&mut self, location: &Location, judged: &Judged) {
        self.go_on(judged.at);
        let Settings { weights, corrected_for, .. } = &self.settings;
        // A location can look from its first canary on.
        let fresh = || Replay::new(*weights, *corrected_for);
        self.locations.entry(location.clone()).or_insert_with(fresh).take(judged);
        self.newest.insert(location.clone(), judged.at);
    }

    /// What was judged at one moment is looked at when time goes on. Planned work begins and ends also while nothing is judged.
    fn go_on(&mut self, until: DateTime<Utc>) {
        if until > self.now {
            self.look();
        }
        while let Some(at) = self.ahead.pop_if(|at| *at <= until) {
            self.now = self.now.max(at);
            self.look();
        }
        // Clocks of replicas differ a little: time never goes back here.
        self.now = self.now.max(until);
    }

    fn has_a_say(&self, location: &Location) -> bool {
        let newest = self.newest.get(location).copied().unwrap_or(DateTime::<Utc>::MIN_UTC);
        self.settings.locations.contains(location) || self.now.signed_duration_since(newest) <= UNKNOWN_FOR
    }

    fn is_due(&self, question: Question) -> bool {
        let at_bound = self
            .locations
            .iter()
            .filter(|(name, replay)| self.has_a_say(name) && replay.is_at_bound(question))
            .count();
        match self.settings.page_on {
            PageOn::Any => at_bound > 0,
            PageOn::Majority => {
                at_bound * 2 > self.locations.iter().filter(|(name, _)| self.has_a_say(name)).count()
            }
        }
    }

    /// What the rules see now.
    fn look(&mut self) {
        let (now, is_muted) = (self.now, self.settings.is_muted(self.now));
        let fails = self.is_due(Question::Arrives);
        let is_slow = self.is_due(Question::InTime) && !fails;
        // Planned work mutes pages, and no tickets.
        let heard = |severity| !(is_muted && severity == Severity::Page);
        for (alarm, holds) in [(&mut self.failing, fails), (&mut self.slow, is_slow)] {
            let holds = holds && heard(alarm.severity);
            match alarm.since {
                None if holds => alarm.since = Some(now),
                Some(since) if !holds => {
                    alarm.since = None;
                    self.pages.extend(alarm.page(&self.settings.route, since, now, Some(now)));
                }
                _ => {}
            }
        }
    }

    /// All pages until then, by time. Nothing that was judged later has been taken.
    pub fn end(mut self, at: DateTime<Utc>) -> Vec<Page> {
        self.go_on(at);
        for alarm in [self.failing, self.slow] {
            let since = alarm.since.into_iter();
            self.pages.extend(since.filter_map(|since| alarm.page(&self.settings.route, since, at, None)));
        }
        self.pages.sort_by_key(|page| page.from);
        self.pages
    }

    /// Judgements that were left out, because their canaries were too old.
    pub fn too_late(&self) -> u32 {
        self.locations.values().map(Replay::too_late).sum()
    }
}

impl Alarm {
    /// The page of a condition that has held so long, if that is long enough.
    fn page(
        &self,
        route: &RouteName,
        since: DateTime<Utc>,
        at: DateTime<Utc>,
        until: Option<DateTime<Utc>>,
    ) -> Option<Page> {
        let Self { alert, severity, .. } = *self;
        (at - since >= HOLD).then(|| Page {
            route: route.clone(),
            alert,
            severity,
            from: since + HOLD,
            until,
        })
    }
}
