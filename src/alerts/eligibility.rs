//! Which ratios may judge a route: the pairs of windows over which its budget burns, and how many notifications they need.
//!
//! A ratio of few notifications says little: with 20 in an hour, one that is bad is 5 per cent. So a pair may judge only where as many
//! are bad, when its bound is just reached, as K says: accepted x factor x budget >= K.

use super::number::full;
use crate::{
    catalog::labels::{VolumeClass, Window},
    config::{Route, alerts::Alerts},
};
use std::{fmt, time::Duration};

/// How many must be bad at the bound of a pair that pages.
pub const K_PAGE: f64 = 10.0;
/// How many must be bad at the bound of a pair that is a ticket.
pub const K_TICKET: f64 = 5.0;

/// A pair of windows: over both the budget must burn, so that it burns long enough and still burns now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The long window.
    pub long: Window,
    /// The short window.
    pub short: Window,
    /// The share of the whole period's budget that is gone when the budget has burnt so fast for the long window.
    pub share: f64,
    /// How many must be bad.
    pub k: f64,
}

/// 2 % of the budget in an hour.
pub const FAST: Pair = Pair { long: Window::Hour, short: Window::FiveMinutes, share: 0.02, k: K_PAGE };
/// 5 % in 6 hours.
pub const SLOW: Pair = Pair { long: Window::SixHours, short: Window::HalfHour, share: 0.05, k: K_PAGE };
/// 10 % in a day.
pub const DAY: Pair = Pair { long: Window::Day, short: Window::TwoHours, share: 0.1, k: K_TICKET };
/// 10 % in three days.
pub const DAYS: Pair = Pair { long: Window::ThreeDays, short: Window::SixHours, share: 0.1, k: K_TICKET };

impl Pair {
    /// How many times faster than allowed the budget of this period burns at the bound: 14.4 over an hour for 30 days.
    pub fn factor(&self, period: Duration) -> f64 {
        self.share * period.as_secs_f64() / self.long.duration().as_secs_f64()
    }

    /// The bound on the bad share, for an error budget that is a share of 1.
    pub fn bound(&self, period: Duration, budget: f64) -> f64 {
        self.factor(period) * budget
    }

    /// The least number of accepted notifications in the long window for which it may judge.
    pub fn least_accepted(&self, period: Duration, budget: f64) -> f64 {
        // What is all but a whole number is one.
        (self.k / self.bound(period, budget) - 1e-9).ceil()
    }

    /// Why it is left out on a route, if it is: it could never fire, also if a whole day's notifications came within its long window, as those of a
    /// batch do. Where they come evenly, the rule's own guard waits for enough.
    pub fn could_judge(
        &self,
        period: Duration,
        budget: f64,
        accepted_per_day: Option<f64>,
    ) -> Result<(), Reason> {
        let days = self.long.duration().as_secs_f64() / 86_400.0;
        self.judge_of(period, budget, accepted_per_day.map(|daily| daily * days.max(1.0)))
    }

    /// Why it does not judge a route whose notifications come evenly over the day, if it doesn't.
    pub fn judge(&self, period: Duration, budget: f64, accepted_per_day: Option<f64>) -> Result<(), Reason> {
        let days = self.long.duration().as_secs_f64() / 86_400.0;
        self.judge_of(period, budget, accepted_per_day.map(|daily| daily * days))
    }

    /// With so many expected within the long window.
    fn judge_of(&self, period: Duration, budget: f64, expected: Option<f64>) -> Result<(), Reason> {
        let bound = self.bound(period, budget);
        if bound >= 1.0 {
            return Err(Reason::NeverFires { factor: self.factor(period), budget, bound });
        }
        let least = self.least_accepted(period, budget);
        match expected {
            Some(expected) if expected < least => Err(Reason::TooFew { least, expected, window: self.long }),
            _ => Ok(()),
        }
    }
}

/// Why a pair is left out on a route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The bound is no share: more than all would have to be bad.
    NeverFires {
        /// The factor.
        factor: f64,
        /// The error budget.
        budget: f64,
        /// Their product.
        bound: f64,
    },
    /// The route has too few notifications.
    TooFew {
        /// So many are needed in the window.
        least: f64,
        /// So many are expected.
        expected: f64,
        /// The window.
        window: Window,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverFires { factor, budget, bound } => write!(
                f,
                "it could never fire: {} x a budget of {} is {}, and no share is above 1",
                full(*factor),
                full(*budget),
                full(*bound)
            ),
            Self::TooFew { least, expected, window } => write!(
                f,
                "too few notifications: it needs {least} in {}, and {expected:.1} are expected",
                window.word()
            ),
        }
    }
}

/// The volume class of a configured route. It is a fact only where the configuration says how many are accepted a day.
pub fn class_of(route: &Route, alerts: Option<&Alerts>) -> VolumeClass {
    let differs = alerts.and_then(|alerts| Some((alerts, alerts.routes.get(route.full_name().as_str())?)));
    match differs.and_then(|(alerts, differs)| Some((alerts, differs.accepted_per_day?))) {
        Some((alerts, daily)) => volume_class(alerts.slo_period.get(), route.budget(), daily),
        None => VolumeClass::Unknown,
    }
}

/// The volume class of a route: over which windows a page by ratio is eligible.
pub fn volume_class(period: Duration, budget: f64, accepted_per_day: f64) -> VolumeClass {
    let eligible = |pair: Pair| pair.judge(period, budget, Some(accepted_per_day)).is_ok();
    if eligible(FAST) {
        VolumeClass::High
    } else if eligible(SLOW) || eligible(DAY) {
        VolumeClass::Medium
    } else {
        VolumeClass::Low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MONTH: Duration = Duration::from_secs(30 * 86_400);

    fn near(left: f64, right: f64) -> bool {
        (left / right - 1.0).abs() < 1e-9
    }

    #[test]
    fn the_factors_of_thirty_days_are_the_usual_ones_and_scale_with_the_period() {
        for (pair, factor) in [(FAST, 14.4), (SLOW, 6.0), (DAY, 3.0), (DAYS, 1.0)] {
            assert!(near(pair.factor(MONTH), factor));
            assert!(near(pair.factor(MONTH / 2), factor / 2.0));
        }
    }

    #[test]
    fn a_pair_that_can_never_fire_is_refused_and_no_other() {
        assert!(matches!(FAST.judge(MONTH, 0.07, None), Err(Reason::NeverFires { .. })));
        assert!(FAST.judge(MONTH, 0.069, None).is_ok());
        assert!(SLOW.judge(MONTH, 0.07, None).is_ok());
    }

    #[test]
    fn a_batch_within_an_hour_keeps_the_pairs_of_its_day() {
        assert!(
            FAST.judge(MONTH, 0.001, Some(6_000.0)).is_err()
                && SLOW.judge(MONTH, 0.001, Some(6_000.0)).is_err()
        );
        assert_eq!(FAST.could_judge(MONTH, 0.001, Some(6_000.0)), Ok(()));
        assert_eq!(SLOW.could_judge(MONTH, 0.001, Some(6_000.0)), Ok(()));
        assert!(FAST.could_judge(MONTH, 0.001, Some(600.0)).is_err());
    }

    #[test]
    fn a_quiet_route_is_of_low_volume_and_a_busy_one_of_high() {
        let class = |daily| volume_class(MONTH, 0.001, daily);
        assert_eq!(FAST.least_accepted(MONTH, 0.001), 695.0);
        assert_eq!(class(16_681.0), VolumeClass::High);
        assert_eq!(class(16_000.0), VolumeClass::Medium);
        assert_eq!(class(1_700.0), VolumeClass::Medium);
        assert_eq!(class(1_000.0), VolumeClass::Low);
    }

    proptest! {
        #[test]
        fn at_its_bound_an_eligible_pair_has_k_bad(budget in 0.0001f64..0.06, extra in 0.0f64..1e6) {
            for pair in [FAST, SLOW, DAY, DAYS] {
                let least = pair.least_accepted(MONTH, budget);
                prop_assert!((least + extra) * pair.bound(MONTH, budget) >= pair.k - 1e-6);
                prop_assert!((least - 1.0) * pair.bound(MONTH, budget) < pair.k);
            }
        }

        #[test]
        fn what_judges_an_even_day_could_judge(budget in 0.0001f64..0.06, daily in 0.0f64..1e6) {
            for pair in [FAST, SLOW, DAY, DAYS] {
                let even = pair.judge(MONTH, budget, Some(daily)).is_ok();
                prop_assert!(!even || pair.could_judge(MONTH, budget, Some(daily)).is_ok());
            }
        }

        #[test]
        fn more_notifications_never_make_a_pair_ineligible(budget in 0.0001f64..0.06, daily in 0.0f64..1e6) {
            for pair in [FAST, SLOW, DAY, DAYS] {
                let now = pair.judge(MONTH, budget, Some(daily)).is_ok();
                prop_assert!(!now || pair.judge(MONTH, budget, Some(daily * 2.0)).is_ok());
            }
        }
    }
}
