//! Whether the books balance: the follower's division of a closed hour held against an exact count by the ledger itself.

use super::Following;
use crate::{
    domain::{
        accounting::{self, Partition},
        flow::rows::RouteNo,
    },
    ledger::{FlowReader, LedgerError},
    monitor::sight::Look,
};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// How long after its end, beside the overlap, an hour is counted.
pub(super) const MARGIN: TimeDelta = TimeDelta::seconds(60);

/// How often an hour is counted, at most, before a difference is believed: what changes between the two readings is no difference.
const TRIES: u32 = 3;

/// How long to wait after a count that failed. It doubles with each that fails after it, since a count may be dear.
const FIRST_BACK_OFF: Duration = Duration::from_secs(20);

/// The longest such wait.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);

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
    /// How many counts failed in a row.
    failed: u32,
    not_before: Option<Instant>,
}

impl Residue {
    /// What is known of the last closed hour; nothing before the first count, and after one that failed.
    pub fn of(&self, route: RouteNo) -> Option<Unbalanced> {
        self.known.as_ref().and_then(|(_, routes)| routes.get(&route)).copied()
    }

    /// Counts the last closed hour, where it is not known yet, and says how that reading went. The follower has just made a pass that read to the
    /// end.
    ///
    /// # Errors
    /// When the ledger can't count it; it is tried again later.
    pub async fn look(
        &mut self,
        reader: &dyn FlowReader,
        following: &Following,
        as_of: DateTime<Utc>,
    ) -> Result<Option<Look<'static>>, LedgerError> {
        let Some(hour) = last_closed_hour(as_of - following.overlap() - MARGIN) else { return Ok(None) };
        let is_known = self.known.as_ref().is_some_and(|(known, _)| *known == hour);
        let must_wait = self.not_before.is_some_and(|at| Instant::now() < at);
        if !reader.has_partition() || is_known || must_wait || hour < following.horizon() {
            return Ok(None);
        }
        let until = hour + TimeDelta::hours(1);
        let counted = match reader.partition(hour, until).await {
            Ok(counted) => counted,
            Err(error) => {
                self.fail(Instant::now());
                return Err(error);
            }
        };
        (self.failed, self.not_before) = (0, None);
        let look = if counted.counts.is_empty() { Look::Empty } else { Look::Good };
        if !counted.is_exact() {
            // An hour that a clock change repeats can't be told apart in local time: nothing is concluded from it.
            self.known = Some((hour, BTreeMap::new()));
            return Ok(Some(look));
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
        Ok(Some(look))
    }

    /// A count failed: what is known of an hour before is not passed off as that of the last one.
    fn fail(&mut self, now: Instant) {
        self.known = None;
        let wait = FIRST_BACK_OFF.saturating_mul(1 << self.failed.min(8)).min(LONGEST_BACK_OFF);
        self.failed = self.failed.saturating_add(1);
        self.not_before = Some(now + wait);
    }
}

/// The beginning of the newest clock hour (UTC) that ends at or before this.
pub(super) fn last_closed_hour(at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let hour = TimeDelta::hours(1);
    Some(at.duration_trunc(hour).ok()? - hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_count_that_failed_no_older_one_is_shown_and_it_is_tried_soon_and_then_less_often() {
        let (now, known) = (Instant::now(), BTreeMap::from([(RouteNo(0), Unbalanced::default())]));
        let mut residue = Residue { known: Some((DateTime::UNIX_EPOCH, known)), ..Residue::default() };
        assert!(residue.of(RouteNo(0)).is_some());
        let waits = [(); 7].map(|()| {
            residue.fail(now);
            residue.not_before.map(|at| (at - now).as_secs())
        });
        assert_eq!(residue.of(RouteNo(0)), None);
        assert_eq!(waits, [20, 40, 80, 160, 320, 600, 600].map(Some));
    }
}
