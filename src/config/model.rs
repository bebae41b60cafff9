//! The configuration as a whole, and its routes.

use super::{
    acceptance::Acceptance,
    alerts::Alerts,
    ledger::Ledger,
    receipt::{Receiver, RouteReceipt},
    scalar::{Secret, Span},
};
use crate::domain::{
    route::{Channel, RouteName},
    schedule::{Interval, Schedule, ScheduleError},
    verdict::ExpectedEnd,
};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

/// The whole configuration of one process.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name of this place of observation. It can be set by `--location` too. Replicas, which share a store, share it. An installation with another
    /// store that sends through the same service needs one of its own: idempotency keys are made of route, location, kind and instant, and the
    /// service answers equal keys with one notification, which only one of the two then sees arrive.
    #[serde(default = "default_location")]
    pub location: String,
    /// All places of observation that look at this service, this one among them. Empty: this one alone.
    #[serde(default)]
    pub locations: Vec<String>,
    /// The monitor's own listeners.
    #[serde(default)]
    pub listeners: Listeners,
    /// The monitor's own durable state: a file for one process, as in `store: { sqlite: { path: canary.sqlite } }`, or a PostgreSQL database
    /// for several.
    pub store: StoreConfig,
    /// How long things are kept.
    #[serde(default)]
    pub retention: Retention,
    /// Logging.
    #[serde(default)]
    pub log: Log,
    /// Acceptance APIs, by name: how a canary is submitted, as in `acceptances: { service: { http: { url: https://host/v1/notifications } } }`.
    /// Routes refer to them by the name.
    pub acceptances: BTreeMap<String, Acceptance>,
    /// Sinks, by name.
    #[serde(default)]
    pub receivers: BTreeMap<String, Receiver>,
    /// Ledgers, by name.
    #[serde(default)]
    pub ledgers: BTreeMap<String, Ledger>,
    /// The routes that are measured, a list, as in `routes: [{ channel: webhook, name: receipts, ... }]`. Each has at least `channel`, `name`,
    /// `schedule`, `deadline`, `acceptance`, `recipients`, `receipt` and `hourly_cap`; `config/minimal.yaml` has one.
    pub routes: Vec<Route>,
    /// Planned work: measuring goes on, pages are muted.
    #[serde(default)]
    pub maintenance: Vec<MaintenanceWindow>,
    /// What alert rules are made from.
    #[serde(default)]
    pub alerts: Option<Alerts>,
    /// How long a stop may take after SIGTERM.
    #[serde(default = "grace")]
    pub grace: Span,
}

/// The monitor's own listeners. Each has a port of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Listeners {
    /// `/metrics`.
    #[schemars(extend("format" = "socket-address"))]
    pub metrics: SocketAddr,
    /// `/startup`, `/ready` and `/live`.
    #[schemars(extend("format" = "socket-address"))]
    pub health: SocketAddr,
}

impl Default for Listeners {
    fn default() -> Self {
        Self {
            metrics: SocketAddr::from(([0, 0, 0, 0], 9464)),
            health: SocketAddr::from(([0, 0, 0, 0], 9465)),
        }
    }
}

/// The monitor's own durable state. Exactly one kind is given.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum StoreConfig {
    /// A file of the monitor's own, for one process.
    Sqlite(SqliteStore),
    /// A PostgreSQL database, shared by replicas and locations.
    Postgres(PostgresStore),
}

/// An SQLite store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqliteStore {
    /// The file, such as `canary.sqlite`. It is made when it isn't there; its folder must be. While a process serves it holds a lock beside it, `.serving`; a second one is refused.
    pub path: PathBuf,
}

/// A PostgreSQL store.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostgresStore {
    /// Where the database is, with the role that owns the monitor's tables, such as `postgres://canary:${PASSWORD}@host/db`.
    pub url: Secret,
    /// Most connections.
    #[serde(default = "four")]
    pub max_connections: u32,
}

/// How long things are kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Canaries with their events. At least twice the longest `follow_for`.
    pub canaries: Span,
    /// Sums by minute: what windows of up to 3 days are made of.
    pub minutes: Span,
    /// Sums by hour.
    pub hours: Span,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self {
            canaries: Span::seconds(7 * DAY),
            minutes: Span::seconds(4 * DAY),
            hours: Span::seconds(400 * DAY),
        }
    }
}

/// Logging.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The least severe level that is written.
    pub level: LogLevel,
    /// The form of a line.
    pub format: LogFormat,
}

/// The levels of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// The forms of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// Text for people.
    Text,
}

/// A path through the service that is measured.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// By what the notifications go, as in `channel: email`: one of `email`, `sms`, `webhook`, `push`. With the name it names the route.
    pub channel: Channel,
    /// The name, such as `receipts`: lower case letters, digits and hyphens, at most 40. With the channel it names the route: `email/receipts`.
    pub name: String,
    /// The provider behind it, for people who are paged.
    #[serde(default)]
    pub provider: Option<String>,
    /// When canaries go out, as in `schedule: { every: 5m }` or `schedule: { cron: { expression: "*/5 * * * *" } }`.
    pub schedule: ScheduleConfig,
    /// How long after acceptance a canary must have arrived, such as `60s`: what the service promises. What comes later is `late`.
    pub deadline: Span,
    /// How long after the deadline the verdict waits for evidence that is under way.
    #[serde(default = "one_minute")]
    pub settle: Span,
    /// How long after its slot a canary is followed.
    #[serde(default = "one_day")]
    pub follow_for: Span,
    /// The share of notifications that must arrive in time, in per cent, such as 99.9.
    #[serde(default = "three_nines")]
    pub objective_percent: f64,
    /// The acceptance API by which its canaries are submitted: a name of `acceptances`, such as `service`.
    pub acceptance: String,
    /// Further variables of the acceptance's templates, by name.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// The non-customer recipients, as in `recipients: [canary@example.com]`: the allow-list of what a request may name. The first is the
    /// `{{recipient}}` of every canary.
    pub recipients: Vec<String>,
    /// Where canaries arrive.
    #[serde(default)]
    pub receipt: Option<RouteReceipt>,
    /// The ledger, by name.
    #[serde(default)]
    pub ledger: Option<String>,
    /// Most canaries in one clock hour (UTC), of all kinds together, over restarts and replicas of a location, such as `80`: what stops a runaway. The
    /// count begins anew at each full hour, so up to twice as many may fall into 60 minutes around it. `check` says how many the route can need.
    pub hourly_cap: u32,
    /// The end that is expected of a canary.
    #[serde(default)]
    pub expected_end: ExpectedEnd,
    /// Canaries that are sent while there is evidence of failure.
    #[serde(default)]
    pub confirmations: Confirmations,
    /// How failures are weighed.
    #[serde(default)]
    pub evidence: EvidenceConfig,
    /// Control arms: canaries past the service, or past all but the sink.
    #[serde(default)]
    pub controls: Controls,
    /// Replays of one key, at once and after an aborted request. Needs a ledger or a receipt to count effects.
    #[serde(default)]
    pub replay: Option<ScheduleConfig>,
    /// How many locations must fail before a page.
    #[serde(default)]
    pub page_on: PageOn,
}

impl Route {
    /// The route's full name, `channel/name`.
    pub fn full_name(&self) -> RouteName {
        RouteName::new(self.channel, &self.name)
    }

    /// The error budget: the share of notifications that may be bad.
    pub fn budget(&self) -> f64 {
        // 100 - 99.9 is 0.0999... in binary: what was written in decimals is so again.
        ((100.0 - self.objective_percent) * 1e10).round() / 1e12
    }

    /// The healthy failure rate: as configured, or half of the error budget. A share of 1.
    pub fn healthy_failure_rate(&self) -> f64 {
        self.evidence.p0.unwrap_or(self.budget() / 2.0)
    }
}

/// When canaries go out: by cron expression, or at an interval.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ScheduleConfig {
    /// At an interval, counted from 1970.
    Every(Span),
    /// By a cron expression in a zone.
    Cron(CronConfig),
}

/// A cron expression.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CronConfig {
    /// Minute, hour, day, month and weekday, as Kubernetes reads them, such as `"*/5 * * * *"`; or `@hourly` and its kin.
    pub expression: String,
    /// The IANA zone.
    #[serde(default = "utc")]
    pub zone: String,
}

/// Canaries that are sent while there is evidence of failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Confirmations {
    /// Their interval.
    pub every: Span,
    /// Most of them after one scheduled canary: a day's, by default, since an outage that ends between two slots must be seen to end. 0 sends none.
    pub max: u32,
}

impl ScheduleConfig {
    /// The schedule.
    ///
    /// # Errors
    /// When the expression, the zone or the interval can't be used.
    pub fn schedule(&self) -> Result<Schedule, ScheduleError> {
        match self {
            Self::Every(span) => Interval::new(span.get()).map(Schedule::every),
            Self::Cron(cron) => Schedule::parse(&cron.expression, &cron.zone),
        }
    }
}

impl Default for Confirmations {
    fn default() -> Self {
        Self { every: Span::seconds(60), max: 1440 }
    }
}

/// How failures are weighed: docs/alerting.md.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvidenceConfig {
    /// The healthy failure rate; half of the error budget when absent.
    pub p0: Option<f64>,
    /// The failure rate worth waking somebody for.
    pub p1: f64,
    /// The evidence, in powers of ten, at which a page is due.
    pub bound: f64,
    /// How long the failing must have lasted before a page. A run of failures in a row counts in full only when it has lasted that long.
    pub sustain: Span,
}

impl Default for EvidenceConfig {
    fn default() -> Self {
        Self { p0: None, p1: 0.3, bound: 5.0, sustain: Span::seconds(300) }
    }
}

/// Control arms.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Controls {
    /// Straight to the sink.
    pub sink: Option<ControlArm>,
    /// Straight to the provider, past the service.
    pub provider: Option<ControlArm>,
}

/// One control arm: a submission past the service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlArm {
    /// The acceptance by which it is submitted past the service: a name of `acceptances`, such as `provider`.
    pub acceptance: String,
    /// When it is sent, as in `schedule: { every: 15m }`.
    pub schedule: ScheduleConfig,
}

/// How many locations must fail before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageOn {
    /// More than half.
    #[default]
    Majority,
    /// One is enough.
    Any,
}

/// Planned work on some routes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceWindow {
    /// The routes, by full name; empty: all.
    #[serde(default)]
    pub routes: Vec<String>,
    /// Who answers for it, such as `payments`: it is shown with what is muted.
    pub owner: String,
    /// Why, such as `moving the mail server`: it is shown with what is muted.
    pub reason: String,
    /// From when (RFC 3339); absent: at once.
    #[serde(default)]
    pub from: Option<DateTime<Utc>>,
    /// Until when, such as `2026-12-31T22:00:00Z` (RFC 3339). It can't be left out: what is muted without an end is forgotten.
    pub until: DateTime<Utc>,
}

fn default_location() -> String {
    "default".into()
}
fn grace() -> Span {
    Span::seconds(25)
}
fn four() -> u32 {
    4
}
fn one_minute() -> Span {
    Span::seconds(60)
}
fn one_day() -> Span {
    Span::seconds(86_400)
}
fn three_nines() -> f64 {
    99.9
}
fn utc() -> String {
    "UTC".into()
}
