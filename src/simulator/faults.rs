//! The faults that are on now. Read on every path of the service, so it is small and never blocks for long.

use super::fault::{Fault, FaultOrder, FaultParams};
use chrono::TimeDelta;
use rand::Rng;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

/// Most settings at a time: each fault everywhere, and some routes.
const MOST_SETTINGS: usize = 256;
/// Longest wait that an order may ask for, in seconds; a skew may be a year.
const LONGEST_WAIT_SECONDS: f64 = 3_600.0;
const LONGEST_SKEW_SECONDS: f64 = 366.0 * 86_400.0;

/// One fault that is on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmedFault {
    /// Which fault.
    pub fault: Fault,
    /// The route that it is confined to.
    pub route: Option<String>,
    /// The part of the cases that it strikes.
    pub ratio: f64,
    /// What it was given.
    pub params: FaultParams,
}

/// Why an order was refused.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum OrderError {
    /// The fault strikes the whole service.
    #[error("{0} strikes the whole service: leave `route` out")]
    NoRoute(Fault),
    /// The fault strikes always.
    #[error("{0} is on or off: leave `ratio` out")]
    NoRatio(Fault),
    /// A ratio out of bounds.
    #[error("`ratio` {0} is not above 0 and at most 1")]
    Ratio(f64),
    /// A parameter that the fault does not read.
    #[error("{fault} does not read `{param}`; it reads: {reads}")]
    Param {
        /// Which fault.
        fault: Fault,
        /// The parameter.
        param: &'static str,
        /// Those that it does read.
        reads: String,
    },
    /// A parameter out of bounds.
    #[error("`{param}` of {fault} must be {bounds}")]
    Bounds {
        /// Which fault.
        fault: Fault,
        /// The parameter.
        param: &'static str,
        /// What it must be.
        bounds: &'static str,
    },
    /// Too many at a time.
    #[error("{MOST_SETTINGS} settings are on already: switch some off first")]
    TooMany,
}

type Key = (Fault, Option<String>);

/// Which routes the workers leave alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Stuck {
    /// All of them.
    Everywhere,
    /// These.
    Routes(Vec<String>),
}

/// The faults that are on.
#[derive(Debug, Default)]
pub struct Faults {
    on: RwLock<BTreeMap<Key, ArmedFault>>,
}

impl Faults {
    /// Takes an order in. It changes only what is remembered here; listeners are the controls' matter.
    pub fn obey(&self, order: &FaultOrder) -> Result<(), OrderError> {
        check(order)?;
        let mut on = self.on.write().unwrap_or_else(PoisonError::into_inner);
        let key = (order.fault, order.route.clone());
        if !order.on {
            on.retain(|(fault, route), _| {
                *fault != order.fault || (order.route.is_some() && *route != order.route)
            });
            return Ok(());
        }
        if on.len() >= MOST_SETTINGS && !on.contains_key(&key) {
            return Err(OrderError::TooMany);
        }
        let armed = ArmedFault {
            fault: order.fault,
            route: order.route.clone(),
            ratio: order.ratio.unwrap_or(1.0),
            params: order.params.clone(),
        };
        on.insert(key, armed);
        Ok(())
    }

    /// Switches everything off.
    pub fn clear(&self) {
        self.on.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// All that is on.
    pub fn list(&self) -> Vec<ArmedFault> {
        self.read().values().cloned().collect()
    }

    /// Whether the fault is on for the whole service and in all cases.
    pub fn is_total(&self, fault: Fault) -> bool {
        self.read().get(&(fault, None)).is_some_and(|armed| armed.ratio >= 1.0)
    }

    /// Whether the fault strikes this case, and with what. A setting for the route goes before a general one.
    pub fn strikes(&self, fault: Fault, route: &str) -> Option<FaultParams> {
        let on = self.read();
        if on.is_empty() {
            return None;
        }
        let armed = on.get(&(fault, Some(route.to_owned()))).or_else(|| on.get(&(fault, None)))?;
        let hit = armed.ratio >= 1.0 || rand::rng().random_bool(armed.ratio);
        hit.then(|| armed.params.clone())
    }

    /// The wait that the fault asks for in this case.
    pub fn wait(&self, fault: Fault, route: &str, unless_told_seconds: f64) -> Option<Duration> {
        let params = self.strikes(fault, route)?;
        Some(Duration::from_secs_f64(params.seconds.unwrap_or(unless_told_seconds)))
    }

    /// How far the ledger's clock is off.
    pub fn skew(&self) -> TimeDelta {
        let on = self.read();
        let Some(armed) = on.get(&(Fault::ClockSkew, None)) else {
            return TimeDelta::zero();
        };
        // Bounded by the check of the order, far below what an i64 of milliseconds holds.
        #[allow(clippy::cast_possible_truncation)]
        TimeDelta::milliseconds((armed.params.seconds.unwrap_or(300.0) * 1_000.0) as i64)
    }

    /// What the workers leave alone.
    pub fn stuck(&self) -> Stuck {
        let on = self.read();
        if on.contains_key(&(Fault::StuckWorker, None)) {
            return Stuck::Everywhere;
        }
        let routes = on.keys().filter(|(fault, _)| *fault == Fault::StuckWorker);
        Stuck::Routes(routes.filter_map(|(_, route)| route.clone()).collect())
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Key, ArmedFault>> {
        self.on.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(order: &FaultOrder) -> Result<(), OrderError> {
    let (fault, kind) = (order.fault, order.fault.kind());
    if order.route.is_some() && !kind.takes_route {
        return Err(OrderError::NoRoute(fault));
    }
    if order.ratio.is_some() && !kind.takes_ratio {
        return Err(OrderError::NoRatio(fault));
    }
    if let Some(ratio) = order.ratio.filter(|ratio| !(*ratio > 0.0 && *ratio <= 1.0)) {
        return Err(OrderError::Ratio(ratio));
    }
    if let Some(param) = order.params.given().find(|param| !kind.takes.contains(param)) {
        let reads = if kind.takes.is_empty() { "nothing".into() } else { kind.takes.join(", ") };
        return Err(OrderError::Param { fault, param, reads });
    }
    let bounds = |param, bounds| Err(OrderError::Bounds { fault, param, bounds });
    let waits = 0.0..=LONGEST_WAIT_SECONDS;
    let skews = -LONGEST_SKEW_SECONDS..=LONGEST_SKEW_SECONDS;
    match order.params.seconds {
        Some(seconds) if fault == Fault::ClockSkew && !skews.contains(&seconds) => {
            return bounds("seconds", "at most a year either way");
        }
        Some(seconds) if fault != Fault::ClockSkew && !waits.contains(&seconds) => {
            return bounds("seconds", "from 0 to 3600");
        }
        _ => {}
    }
    if order.params.status.is_some_and(|status| !(500..600).contains(&status)) {
        return bounds("status", "from 500 to 599");
    }
    if order.params.code.as_ref().is_some_and(|code| code.is_empty() || code.len() > 64) {
        return bounds("code", "1 to 64 bytes long");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_setting_goes_before_a_general_one_and_off_clears_all() {
        let faults = Faults::default();
        faults.obey(&FaultOrder::on(Fault::ProviderSlow).seconds(1.0)).unwrap();
        faults.obey(&FaultOrder::on(Fault::ProviderSlow).seconds(2.0).on_route("a")).unwrap();
        assert_eq!(faults.wait(Fault::ProviderSlow, "a", 9.0), Some(Duration::from_secs(2)));
        assert_eq!(faults.wait(Fault::ProviderSlow, "b", 9.0), Some(Duration::from_secs(1)));
        faults.obey(&FaultOrder::off(Fault::ProviderSlow).on_route("a")).unwrap();
        assert_eq!(faults.wait(Fault::ProviderSlow, "a", 9.0), Some(Duration::from_secs(1)));
        faults.obey(&FaultOrder::off(Fault::ProviderSlow)).unwrap();
        assert_eq!(faults.list(), []);
    }

    #[test]
    fn orders_out_of_bounds_are_refused() {
        let faults = Faults::default();
        let mut half = FaultOrder::on(Fault::SilentDrop);
        half.ratio = Some(1.5);
        let refused = [
            FaultOrder::on(Fault::AcceptanceDown).on_route("a"),
            FaultOrder::on(Fault::SilentDrop).seconds(1.0),
            FaultOrder::on(Fault::ProviderSlow).seconds(f64::NAN),
            FaultOrder::on(Fault::ProviderSlow).seconds(-1.0),
            FaultOrder::on(Fault::ClockSkew).seconds(f64::INFINITY),
            half,
        ];
        for order in refused {
            assert!(faults.obey(&order).is_err(), "{order:?}");
        }
        assert_eq!(faults.list(), []);
    }

    #[test]
    fn a_ratio_strikes_a_part_of_the_cases() {
        let faults = Faults::default();
        let mut order = FaultOrder::on(Fault::SilentDrop);
        order.ratio = Some(0.5);
        faults.obey(&order).unwrap();
        let hits = (0..1_000).filter(|_| faults.strikes(Fault::SilentDrop, "a").is_some()).count();
        assert!((300..700).contains(&hits), "{hits}");
        assert!(!faults.is_total(Fault::SilentDrop));
    }
}
