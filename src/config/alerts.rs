//! What alert rules, their runbooks and the Alertmanager's tree are made from, as configuration.

use super::scalar::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What `alerts generate` makes rules from. The monitor itself takes only the routes' volume classes from it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alerts {
    /// The name of the monitored service, such as `notifications`: pages are grouped by it.
    pub service: String,
    /// Where the runbooks are published, an `https` address such as `https://runbooks.example.com/canary`; a page is found at `ADDRESS/ALERT.md`.
    pub runbooks: String,
    /// Who is told. Without it no Alertmanager configuration is made.
    #[serde(default)]
    pub receivers: Option<AlertReceivers>,
    /// The address of the Alertmanager, such as `http://alertmanager:9093`: `alerts page-test` sends its test there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alertmanager: Option<String>,
    /// When tickets are sent. Pages are sent at any time.
    #[serde(default)]
    pub office_hours: OfficeHours,
    /// Everything is a ticket: for the first week. `--shadow` does the same.
    #[serde(default)]
    pub shadow: bool,
    /// The period of the objectives. The factors by which a budget may burn are scaled to it.
    #[serde(default = "thirty_days")]
    pub slo_period: Span,
    /// How long an outcome may be unknown before it is a ticket.
    #[serde(default = "one_hour")]
    pub reconcile_after: Span,
    /// How many pages a year may come for nothing, on all routes together: `alerts suggest` proposes bounds that keep to it.
    #[serde(default = "one")]
    pub false_pages_a_year: f64,
    /// The locations whose metrics the rules will see. Empty: all of the configuration's.
    #[serde(default)]
    pub locations: Vec<String>,
    /// What differs on some routes, by the route's full name.
    #[serde(default)]
    pub routes: BTreeMap<String, RouteAlerts>,
}

/// Who is told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertReceivers {
    /// Is woken, such as `{ name: on-call }`.
    pub page: AlertReceiver,
    /// Takes what can wait for office hours, and whatever nothing else takes, such as `{ name: tickets }`.
    pub ticket: AlertReceiver,
    /// The owners of the monitor, told when it is blind, such as `{ name: monitoring-team }`.
    pub owners: AlertReceiver,
    /// A dead man's switch that pages when the `Watchdog` is silent, a service of somebody else, such as `{ receiver: { name: dead-man } }`.
    pub watchdog: WatchdogReceiver,
}

/// A receiver of the Alertmanager.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertReceiver {
    /// Its name, such as `on-call`. Where it has neither `url` nor `url_file`, it is one of your own, and is not written.
    pub name: String,
    /// The address of its webhook, `https` but on loopback, if the address is no secret.
    #[serde(default)]
    pub url: Option<String>,
    /// The file, where the Alertmanager runs, that has the address of its webhook. Alertmanager 0.26 and newer read it.
    #[serde(default)]
    pub url_file: Option<String>,
}

/// The receiver of the `Watchdog`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchdogReceiver {
    /// The receiver, such as `{ name: dead-man }`.
    pub receiver: AlertReceiver,
    /// How long it waits in silence before it pages, at least 3m. The `Watchdog` is sent three times in it.
    #[serde(default = "fifteen_minutes")]
    pub patience: Span,
}

/// When tickets are sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OfficeHours {
    /// The days, such as `monday:friday`; all of them are `sunday:saturday`.
    pub days: Vec<String>,
    /// From, such as `08:00`.
    pub from: String,
    /// Until, such as `18:00`.
    pub until: String,
    /// The IANA zone.
    pub zone: String,
}

impl Default for OfficeHours {
    fn default() -> Self {
        Self {
            days: vec!["monday:friday".into()],
            from: "08:00".into(),
            until: "18:00".into(),
            zone: "UTC".into(),
        }
    }
}

/// What differs on one route.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RouteAlerts {
    /// How long a notification may be pending before it counts as forgotten; 10 deadlines when absent.
    pub forgotten_after: Option<Span>,
    /// What it is that canaries come late for long.
    pub slow: SlowSeverity,
    /// How long an alert on what canaries show goes on after its evidence fell below the bound. For an outage of some of them, that would come and go. What
    /// is over is told so much later. Nothing when absent, 1h at the most.
    pub keep_firing: Option<Span>,
    /// How many notifications are accepted a day, by measurement. With it ratios are left out that could never judge so few.
    pub accepted_per_day: Option<f64>,
}

/// How urgent slow delivery is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlowSeverity {
    /// It can wait for office hours.
    #[default]
    Ticket,
    /// Somebody is woken.
    Page,
}

fn one() -> f64 {
    1.0
}
fn thirty_days() -> Span {
    Span::seconds(30 * 86_400)
}
fn one_hour() -> Span {
    Span::seconds(3_600)
}
fn fifteen_minutes() -> Span {
    Span::seconds(900)
}
