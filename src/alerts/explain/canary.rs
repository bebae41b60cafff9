//! The alerts on what canaries show, on one route: what their figures rest on, and the figures.

use super::{
    Given, Row, Size,
    outage::Setting,
    path::SHOWN_AFTER,
    seconds,
    times::{ByShare, Rate, Times},
};
use crate::{
    alerts::{
        AlertsError,
        alertmanager::GROUP_WAIT,
        catalog::{self, Entry},
        plan::{Plan, RoutePlan},
        rules::Rule,
        simulate::{Cadence, Confirmations, Millis, Random, Slots},
    },
    config::{
        model::{PageOn, ScheduleConfig},
        scalar::Span,
    },
    domain::{failure_evidence::Weights, verdict::ExpectedEnd},
};
use serde::Serialize;
use std::time::Duration;

/// What becomes of a canary in an outage.
const LOST: &str = "it doesn't arrive";
pub(super) const LATE: &str = "it comes late";

/// What the figures of a route's canaries rest on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// When they go out.
    pub schedule: String,
    /// The longest time between two scheduled ones.
    pub longest_gap_seconds: f64,
    /// The time between confirmations; nothing where none are sent.
    pub confirmations_seconds: Option<f64>,
    /// From going out until a failure is known: deadline, `settle`, and a second for the page.
    pub known_after_seconds: f64,
    /// The healthy failure rate.
    pub p0: f64,
    /// The failure rate worth waking somebody for.
    pub p1: f64,
    /// Places of observation.
    pub locations: usize,
    /// So many of them must agree.
    pub needed: usize,
}

impl Facts {
    pub(super) fn of(given: &Given<'_>, setting: &Setting) -> Self {
        let Setting { cadence, weights, locations, needed, .. } = setting;
        let slots = &cadence.slots;
        let gaps = (0..slots.in_round()).map(|n| slots.at(n + 1) - slots.at(n));
        let in_seconds = |time: Millis| time as f64 / 1_000.0;
        Self {
            schedule: match &given.route.route.schedule {
                ScheduleConfig::Every(span) => format!("every {span}"),
                ScheduleConfig::Cron(cron) => format!("by {} in {}", cron.expression, cron.zone),
            },
            longest_gap_seconds: in_seconds(gaps.max().unwrap_or(0)),
            confirmations_seconds: cadence.confirmations.map(|confirming| in_seconds(confirming.every)),
            known_after_seconds: in_seconds(cadence.bad_after),
            p0: weights.p0,
            p1: weights.p1,
            locations: *locations,
            needed: *needed,
        }
    }
}

/// The figures of all canaries of a setting.
#[derive(Clone, Debug)]
pub struct CanaryFigures {
    times: ByShare,
    for_nothing: Rate,
    /// When two canaries in a row were known to have failed, in total outages, in seconds, sorted; and of how many outages.
    twice: (Vec<f64>, usize),
}

impl CanaryFigures {
    pub(super) fn of(setting: &Setting, size: &Size) -> Self {
        let mut random = Random::new(size.seed);
        let [total, half, one_in_five] =
            [1.0, 0.5, 0.2].map(|share| setting.outages(share, size.outages, &mut random));
        let mut twice: Vec<f64> =
            total.iter().filter_map(|found| found.twice).map(|time| time as f64 / 1_000.0).collect();
        twice.sort_by(f64::total_cmp);
        let times = |found: Vec<super::Found>| {
            let fired = found.iter().map(|found| found.fired);
            Times::of(fired, setting.lasts()).later(seconds(GROUP_WAIT))
        };
        let for_nothing = match size.years {
            Some(years) => setting.noise_of_years(years, &mut random),
            None => setting.noise(size.outages.saturating_mul(10), &mut random),
        };
        Self {
            twice: (twice, total.len()),
            times: ByShare { total: times(total), half: times(half), one_in_five: times(one_in_five) },
            for_nothing,
        }
    }

    /// The probability that two canaries in a row are known to have failed, so many seconds after the beginning of a total outage.
    pub(super) fn failed_twice(&self, t: f64) -> f64 {
        let (twice, of) = &self.twice;
        twice.partition_point(|time| *time <= t) as f64 / (*of).max(1) as f64
    }
}

/// Everything on which the figures of a route's canaries depend.
pub(super) fn setting(
    plan: &Plan<'_>,
    route: &RoutePlan<'_>,
    rules: &[Rule],
) -> Result<Setting, AlertsError> {
    let config = route.route;
    let at_fault = |error: crate::domain::schedule::ScheduleError| AlertsError::Schedule {
        route: route.name.to_string(),
        why: error.to_string(),
    };
    let tolerance = config.schedule.schedule().map_err(at_fault)?.tolerance();
    let confirmations = Confirmations {
        every: millis(config.confirmations.every.get()),
        max: config.confirmations.max.into(),
        tolerance: millis(tolerance),
    };
    let bad_after = millis(config.deadline.get() + config.settle.get()) + SHOWN_AFTER;
    // An arrival is known at once. That one was held back, where that is expected, is known with the verdict.
    let is_known_at_once = config.expected_end == ExpectedEnd::Delivered;
    let evidence = &config.evidence;
    let locations = plan.locations().len();
    let hold = rules.iter().find_map(|rule| match rule {
        Rule::Alert(rule) if rule.entry.name == catalog::CANARY_FAILING.name => Some(rule.hold),
        _ => None,
    });
    Ok(Setting {
        cadence: Cadence {
            slots: Slots::of(&config.schedule).map_err(at_fault)?,
            confirmations: (confirmations.max > 0 && confirmations.every > 0).then_some(confirmations),
            good_after: if is_known_at_once { SHOWN_AFTER } else { bad_after },
            bad_after,
        },
        weights: Weights::new(
            config.healthy_failure_rate(),
            evidence.p1,
            evidence.bound,
            evidence.sustain.delta(),
        ),
        locations,
        needed: match config.page_on {
            PageOn::Any => 1,
            PageOn::Majority => locations / 2 + 1,
        },
        hold: millis(Duration::from_secs_f64(hold.map_or(0.0, seconds))),
    })
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX / 4)
}

pub(super) fn rows(given: &Given<'_>) -> Vec<Row> {
    let row = |entry: &'static Entry, outage| {
        let mut row = given.row(entry, outage);
        let evidence = &given.route.route.evidence;
        let sustain: Span = evidence.sustain;
        row.bound = format!("evidence {} in powers of ten, sustained {sustain}", evidence.bound);
        row.with(given.canaries.times, Some(given.canaries.for_nothing), "simulated")
    };
    vec![row(&catalog::CANARY_FAILING, LOST), row(&catalog::CANARY_SLOW, LATE)]
}
