//! Pending notifications whose rows came behind the cursor: imported, or dated back by more than the overlap. No stream shows them, so the ledger's
//! own counts of the pending are held against what is followed, hour by hour, and an hour that has more is read afresh.

use super::{
    beyond::Beyond,
    error::PassError,
    pass::{Following, is_erased},
    residue::{MARGIN, last_closed_hour},
};
use crate::{
    config::ledger::Ledger,
    domain::{
        accounting::{Partition, Place},
        flow::rows::{NotificationRow, RouteNo, Truth, UnitId},
    },
    ledger::{
        FlowReader, LedgerError,
        flow::{PendingCount, text_of},
    },
    store::Store,
};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};
use tokio::time::Instant;

/// How long nothing is looked at after a reading failed: it may be dear.
const BACK_OFF: Duration = Duration::from_secs(600);

/// Limit on reading one hour afresh: the figures wait for it.
const LONGEST: Duration = Duration::from_secs(20);

/// How many notifications are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 1_000;

/// What is looked at, right after a pass that read to the end.
pub struct Looked<'a> {
    /// The ledger's name.
    pub ledger: &'a str,
    /// Its configuration.
    pub config: &'a Ledger,
    /// Its reader.
    pub reader: &'a dyn FlowReader,
    /// Our store, which knows the canaries.
    pub store: &'a dyn Store,
    /// Digests of notifications that were erased.
    pub erased: &'a BTreeSet<String>,
    /// As of when the follower is.
    pub as_of: DateTime<Utc>,
}

/// The looks at one ledger, as long as this process follows it.
#[derive(Debug, Default)]
pub struct Behind {
    /// Hours in which the ledger has more pending than is followed, by their beginning, with how many more. They are read afresh, one a pass.
    suspected: BTreeMap<DateTime<Utc>, u64>,
    /// How many more it still has after the hour was read afresh.
    unseen: BTreeMap<DateTime<Utc>, u64>,
    /// The hour that was counted last, where that is done by the exact count.
    counted: Option<DateTime<Utc>>,
    again: Option<Instant>,
    has_looked: bool,
    not_before: Option<Instant>,
}

impl Behind {
    /// How many pending notifications the ledger has in closed hours that are not followed, as far as was looked; nothing before the first look.
    pub fn unseen(&self) -> Option<u64> {
        self.has_looked.then(|| self.unseen.iter().chain(&self.suspected).map(|(_, count)| count).sum())
    }

    /// Holds the ledger's pending against what is followed, where it is time to, and takes in what is found. `beyond` has just been asked;
    /// `pending` are the rows that it read.
    ///
    /// # Errors
    /// When the ledger or the store can't be used. It is tried again later.
    pub async fn look(
        &mut self,
        looked: &Looked<'_>,
        (beyond, pending): (&Beyond, Option<&[PendingCount]>),
        following: &mut Following,
    ) -> Result<(), PassError> {
        let hours = Hours::of(looked, following).filter(|_| looked.config.dated_back.look);
        let must_wait = self.not_before.is_some_and(|at| Instant::now() < at);
        let Some(hours) = hours.filter(|_| !must_wait) else { return Ok(()) };
        let result = match pending {
            Some(rows) => {
                self.compare(rows, hours, &following.pending_by_hour());
                Ok(())
            }
            None if !beyond.tells() => self.count_next(looked, hours, following).await,
            None => Ok(()),
        };
        let result = match result {
            Ok(()) => self.read_next(looked, following).await,
            failed => failed,
        };
        if result.is_err() {
            self.not_before = Some(Instant::now() + BACK_OFF);
        }
        result
    }

    fn compare(&mut self, rows: &[PendingCount], hours: Hours, followed: &BTreeMap<DateTime<Utc>, u64>) {
        let mut counted: BTreeMap<DateTime<Utc>, u64> = BTreeMap::new();
        for row in rows {
            if let Some(hour) = hour_of(row.due).filter(|hour| hours.has(*hour)) {
                *counted.entry(hour).or_default() += row.count;
            }
        }
        self.has_looked = true;
        self.suspected.clear();
        self.unseen.retain(|hour, _| counted.contains_key(hour));
        for (hour, count) in counted {
            self.counts_more(hour, count.saturating_sub(followed.get(&hour).copied().unwrap_or(0)));
        }
    }

    /// Counts the next older hour, where it is time to.
    async fn count_next(
        &mut self,
        looked: &Looked<'_>,
        hours: Hours,
        following: &Following,
    ) -> Result<(), PassError> {
        let is_time = self.again.is_none_or(|again| again <= Instant::now());
        if !looked.reader.has_partition() || !is_time {
            return Ok(());
        }
        self.again = Some(Instant::now() + looked.config.dated_back.every_hour_after(hours.count()));
        let older = self.counted.map(|counted| counted - TimeDelta::hours(1));
        let hour = older.filter(|hour| hours.has(*hour)).unwrap_or(hours.last);
        let reading = looked.reader.partition(hour, hour + TimeDelta::hours(1)).await?;
        (self.counted, self.has_looked) = (Some(hour), true);
        if reading.is_exact() {
            let by_standing = reading.counts.values().flatten();
            let pending = by_standing.filter(|(standing, _)| !standing.is_terminal());
            let counted: u64 = pending.map(|(_, count)| count).sum();
            let followed = following.pending_by_hour().get(&hour).copied().unwrap_or(0);
            self.suspected.remove(&hour);
            self.counts_more(hour, counted.saturating_sub(followed));
        }
        self.unseen.retain(|hour, _| hours.has(*hour));
        Ok(())
    }

    /// Takes note of how many more pending ones the ledger has in an hour.
    fn counts_more(&mut self, hour: DateTime<Utc>, more: u64) {
        let known = self.unseen.get(&hour).copied().unwrap_or(0);
        if more > known {
            self.suspected.insert(hour, more);
        } else if more == 0 {
            self.unseen.remove(&hour);
        } else {
            self.unseen.insert(hour, more);
        }
    }

    /// Reads one of the suspected hours afresh.
    async fn read_next(&mut self, looked: &Looked<'_>, following: &mut Following) -> Result<(), PassError> {
        let Some((&hour, &more)) = self.suspected.first_key_value() else { return Ok(()) };
        let fresh = tokio::time::timeout(LONGEST, Fresh::read(looked, hour, following)).await;
        let Ok(fresh) = fresh else {
            // It would take as long again.
            self.suspected.remove(&hour);
            self.unseen.insert(hour, more);
            return Err(PassError::TooLong(LONGEST));
        };
        let taken_in = fresh?.map_or(0, |fresh| fresh.take_in(looked, following));
        self.suspected.remove(&hour);
        let left = more.saturating_sub(taken_in);
        if left > 0 {
            self.unseen.insert(hour, left);
        } else {
            self.unseen.remove(&hour);
        }
        let hour = hour.to_rfc3339();
        tracing::warn!(event = "ledger_dated_back", ledger = looked.ledger, hour, taken_in, left);
        Ok(())
    }
}

/// The whole hours that are followed and closed.
#[derive(Clone, Copy)]
struct Hours {
    first: DateTime<Utc>,
    last: DateTime<Utc>,
}

impl Hours {
    fn of(looked: &Looked<'_>, following: &Following) -> Option<Self> {
        let last = last_closed_hour(looked.as_of - following.overlap() - MARGIN)?;
        let begun = hour_of(following.horizon())?;
        let first = if begun == following.horizon() { begun } else { begun + TimeDelta::hours(1) };
        (first <= last).then_some(Self { first, last })
    }

    fn has(self, hour: DateTime<Utc>) -> bool {
        self.first <= hour && hour <= self.last
    }

    fn count(self) -> u32 {
        u32::try_from((self.last - self.first).num_hours() + 1).unwrap_or(1)
    }
}

fn hour_of(at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    at.duration_trunc(TimeDelta::hours(1)).ok()
}

/// One hour of the ledger as it is now: what no stream can show any more, without canaries and without what was erased.
#[derive(Default)]
struct Fresh {
    /// What is settled, by route and cell.
    settled: BTreeMap<(RouteNo, DateTime<Utc>), Partition>,
    /// What is pending.
    pending: Vec<(NotificationRow, Truth)>,
    step: TimeDelta,
}

impl Fresh {
    /// Reads it; nothing where the cursor has no time: a row that comes later has a greater id there, and the stream shows it.
    async fn read(
        looked: &Looked<'_>,
        hour: DateTime<Utc>,
        following: &Following,
    ) -> Result<Option<Self>, PassError> {
        let (reader, overlap) = (looked.reader, following.overlap());
        let (until, closed) = (hour + TimeDelta::hours(1), looked.as_of - overlap - MARGIN);
        let mut place = reader.notifications_from(hour - overlap).await?;
        if !place.has_time() {
            return Ok(None);
        }
        let is_fine = hour.timestamp() >= following.kept_from().0;
        let step = if is_fine { TimeDelta::minutes(1) } else { TimeDelta::hours(1) };
        let mut fresh = Self { step, ..Self::default() };
        let (mut met, mut rows) = (HashSet::<UnitId>::new(), Vec::new());
        let mut is_last = false;
        while !is_last {
            let page = reader.notifications_page(Some(&place), Some(until + overlap)).await?;
            is_last = !page.is_full
                || page.rows.last().and_then(|seen| seen.at).is_some_and(|at| at > until + overlap);
            match page.last() {
                Some(newest) => place = newest.clone(),
                None if page.is_full => {
                    let reason = "a whole page of rows has no place in the stream".into();
                    return Err(LedgerError::Shape { query: "notifications", reason }.into());
                }
                None => {}
            }
            let of_hour = page.rows.into_iter().filter(|seen| seen.at.is_some_and(|at| at <= closed));
            let of_hour =
                of_hour.filter_map(|seen| seen.row).filter(|row| hour <= row.due && row.due < until);
            rows.extend(of_hour.filter(|row| met.insert(row.unit.clone())));
            while rows.len() >= LOOKED_UP_AT_ONCE || (is_last && !rows.is_empty()) {
                let some = rows.drain(..rows.len().min(LOOKED_UP_AT_ONCE)).collect();
                fresh.look_up(looked, some).await?;
            }
        }
        Ok(Some(fresh))
    }

    async fn look_up(&mut self, looked: &Looked<'_>, rows: Vec<NotificationRow>) -> Result<(), PassError> {
        let ids: Vec<String> = rows.iter().map(|row| text_of(&row.unit.notification)).collect();
        let canaries = looked.store.canaries_among(&ids).await?;
        let units: Vec<UnitId> = rows.iter().map(|row| row.unit.clone()).collect();
        let mut truths = looked.reader.truths(&units).await?;
        for (row, id) in rows.into_iter().zip(ids) {
            let is_canary = row.is_marked_canary || row.has_canary_key || canaries.contains(&id);
            let Some(truth) = truths.found.remove(&row.unit) else { continue };
            if is_canary || is_erased(looked.erased, &row.unit) {
                continue;
            }
            let standing = truth.standing();
            if standing.is_terminal() {
                let cell = self.cell_of(&row, &truth);
                self.settled.entry(cell).or_default().add_count(standing.into(), 1);
            } else {
                self.pending.push((row, truth));
            }
        }
        Ok(())
    }

    fn cell_of(&self, row: &NotificationRow, truth: &Truth) -> (RouteNo, DateTime<Utc>) {
        let due = truth.due.unwrap_or(row.due);
        (truth.route.unwrap_or(row.route), due.duration_trunc(self.step).unwrap_or(due))
    }

    /// Takes in what is pending and isn't followed. Where more were settled than the ledger has settled by now, though nothing may be gone from
    /// it yet, one of those is pending again.
    fn take_in(self, looked: &Looked<'_>, following: &mut Following) -> u64 {
        let stays_from = looked.as_of - looked.config.retention.delta();
        let mut over: BTreeMap<(RouteNo, DateTime<Utc>), [i64; 4]> = BTreeMap::new();
        let mut taken_in = 0;
        for (row, truth) in &self.pending {
            if following.is_held(&row.unit) {
                continue;
            }
            let (route, cell) = self.cell_of(row, truth);
            let over = over.entry((route, cell)).or_insert_with(|| {
                let followed = following.partition(route, cell, cell + self.step);
                let settled = self.settled.get(&(route, cell)).copied().unwrap_or_default();
                Place::TERMINAL.map(|place| followed.count(place) - settled.count(place))
            });
            let counted_in = Place::TERMINAL
                .into_iter()
                .zip(over.iter_mut())
                .find(|(_, over)| cell >= stays_from && **over > 0)
                .map(|(place, over)| {
                    *over -= 1;
                    place
                });
            taken_in += u64::from(following.take_in(row.clone(), truth, counted_in));
        }
        taken_in
    }
}
