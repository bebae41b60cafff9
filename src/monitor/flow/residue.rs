//! Whether the books balance: the follower's division of a closed hour held against an exact count by the ledger itself.

use super::Following;
use crate::{
    domain::{
        accounting::{self, Partition},
        flow::rows::RouteNo,
    },
    ledger::{FlowReader, LedgerError},
};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// How long after its end, beside the overlap, an hour is counted.
pub(super) const MARGIN: TimeDelta = TimeDelta::seconds(60);

/// How often an hour is counted, at most, before a difference is believed: what changes between the two readings is no difference.
const TRIES: u32 = 3;

/// How long to wait after a count that failed: it may be dear.
const BACK_OFF: Duration = Duration::from_secs(600);

/// By how much the books of an hour don't balance on one route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unbalanced {
    /// The least number of notifications that would have to be placed otherwise.
    pub notifications: u64,
    /// How many the ledger counted in that hour.
    pub counted: u64,
}

impl Unbalanced {
    /// What two ledgers have together.
    pub fn and(self, other: Self) -> Self {
        Self {
            notifications: self.notifications + other.notifications,
            counted: self.counted + other.counted,
        }
    }
}

/// The residue of the last closed hour, by the place of the route.
#[derive(Debug, Default)]
pub struct Residue {
    /// The hour that is known, by its beginning.
    known: Option<(DateTime<Utc>, BTreeMap<RouteNo, Unbalanced>)>,
    /// The hour that is being counted: how often it was, and the least difference so far.
    counting: Option<(DateTime<Utc>, u32, BTreeMap<RouteNo, Unbalanced>)>,
    not_before: Option<Instant>,
}

impl Residue {
    /// What is known of the last closed hour; nothing before the first count.
    pub fn of(&self, route: RouteNo) -> Option<Unbalanced> {
        self.known.as_ref().and_then(|(_, routes)| routes.get(&route)).copied()
    }

    /// Counts the last closed hour, where it is not known yet. The follower has just made a pass that read to the end.
    ///
    /// # Errors
    /// When the ledger can't count it; it is tried again later.
    pub async fn look(
        &mut self,
        reader: &dyn FlowReader,
        following: &Following,
        as_of: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        let Some(hour) = last_closed_hour(as_of - following.overlap() - MARGIN) else { return Ok(()) };
        let is_known = self.known.as_ref().is_some_and(|(known, _)| *known == hour);
        let must_wait = self.not_before.is_some_and(|at| Instant::now() < at);
        if !reader.has_partition() || is_known || must_wait || hour < following.horizon() {
            return Ok(());
        }
        let until = hour + TimeDelta::hours(1);
        let counted = match reader.partition(hour, until).await {
            Ok(counted) => counted,
            Err(error) => {
                self.not_before = Some(Instant::now() + BACK_OFF);
                return Err(error);
            }
        };
        if !counted.is_exact() {
            // An hour that a clock change repeats can't be told apart in local time: nothing is concluded from it.
            self.known = Some((hour, BTreeMap::new()));
            return Ok(());
        }
        let (tries, least) = match self.counting.take() {
            Some((counting, tries, least)) if counting == hour => (tries + 1, Some(least)),
            _ => (1, None),
        };
        let routes = 0..=u16::try_from(reader.routes().len()).unwrap_or(u16::MAX);
        let residues: BTreeMap<RouteNo, Unbalanced> = routes
            .map(RouteNo)
            .map(|route| {
                let mut exact = Partition::default();
                for (standing, count) in counted.counts.get(&route).into_iter().flatten() {
                    exact.add_count((*standing).into(), i64::try_from(*count).unwrap_or(i64::MAX));
                }
                let residue = accounting::residue(&following.partition(route, hour, until), &exact);
                let before = least.as_ref().and_then(|least| least.get(&route));
                let notifications = before.map_or(residue, |before| before.notifications.min(residue));
                (route, Unbalanced { notifications, counted: exact.accepted().unsigned_abs() })
            })
            .collect();
        if residues.values().all(|residue| residue.notifications == 0) || tries >= TRIES {
            self.known = Some((hour, residues));
        } else {
            self.counting = Some((hour, tries, residues));
        }
        Ok(())
    }
}

/// The beginning of the newest clock hour (UTC) that ends at or before this.
pub(super) fn last_closed_hour(at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let hour = TimeDelta::hours(1);
    Some(at.duration_trunc(hour).ok()? - hour)
}
