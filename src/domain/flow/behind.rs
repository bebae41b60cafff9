//! Notifications that are pending and that the stream never showed: their rows came behind its position. They are found by a look beside it.

use super::{
    cells::HOUR,
    follow::Flow,
    key::UnitKey,
    rows::{AttemptRow, NotificationRow, Truth, UnitId},
    unit::{Unit, deciding, micros},
};
use crate::domain::accounting::Place;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

impl Flow {
    /// How many are pending, by the beginning of the hour that they were due in. Costs a walk over the pending.
    pub fn pending_by_hour(&self) -> BTreeMap<DateTime<Utc>, u64> {
        let mut hours: BTreeMap<i64, u64> = BTreeMap::new();
        self.each_live(|_, unit, standing| {
            if !standing.is_terminal() {
                let second = unit.due.div_euclid(1_000_000);
                *hours.entry(second - second.rem_euclid(HOUR)).or_default() += 1;
            }
        });
        let instant = |(start, count)| Some((DateTime::from_timestamp(start, 0)?, count));
        hours.into_iter().filter_map(instant).collect()
    }

    /// Whether this one is in memory.
    pub fn is_held(&self, unit: &UnitId) -> bool {
        let key = UnitKey::from(unit.clone());
        self.units.contains_key(&key) || self.open.units.contains_key(&key)
    }

    /// Takes in a notification that is pending by all that the ledger says, between two passes: the next one writes it down. Its row must be one
    /// that no stream can show any more. Where it was settled before and is pending again, `counted_in` says as what it was counted: until the
    /// next pass it is in both places. `false` where it is known, or isn't pending.
    pub fn take_in(&mut self, row: NotificationRow, truth: &Truth, counted_in: Option<Place>) -> bool {
        let key = UnitKey::from(row.unit);
        let is_known = self.units.contains_key(&key)
            || self.open.units.contains_key(&key)
            || !self.strays.of(&key).is_empty();
        let due = truth.due.unwrap_or(row.due);
        if is_known || self.settings.horizon.is_some_and(|horizon| due < horizon) {
            return false;
        }
        let route = self.settings.place(truth.route.unwrap_or(row.route));
        let mut unit = Unit::new(route, micros(due), truth.own.or(row.own));
        let is_closed = |row: &&AttemptRow| !self.open.attempts.contains_key(&row.attempt);
        unit.set_deciding(deciding(truth.attempts.iter().filter(is_closed)));
        if unit.standing_with(self.open.deciding(&key)).is_terminal() {
            return false;
        }
        let print = key.fingerprint();
        if let Some(place) = counted_in
            && self.cells.can_hold(route, unit.due, place, print)
        {
            self.cells.settle(route, unit.due, place, print, false);
        }
        self.units.insert(key.clone(), unit);
        self.touch(&key);
        self.came_behind(route);
        true
    }
}
