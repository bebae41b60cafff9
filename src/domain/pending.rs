//! Everybody's pending notifications: how many, in which state, and how old.

use super::route::RouteName;
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, time::Duration};

/// The finite bounds of the age histogram, in whole seconds. With the infinite one they are twelve buckets.
pub const AGE_BOUNDS_SECONDS: [u64; 11] = [15, 30, 60, 120, 300, 600, 1_800, 3_600, 21_600, 86_400, 259_200];

/// Where a pending notification stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PendingState {
    /// It is not due yet.
    Scheduled,
    /// It is due and was never tried.
    Unattempted,
    /// It was tried, and will be tried again.
    Retrying,
    /// Nobody knows what its newest attempt came to.
    Unknown,
}

impl PendingState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Scheduled, Self::Unattempted, Self::Retrying, Self::Unknown];

    /// The word for it in labels and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unattempted => "unattempted",
            Self::Retrying => "retrying",
            Self::Unknown => "unknown",
        }
    }
}

/// What was tried for a pending notification so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tried {
    /// Nothing.
    Never,
    /// Something that will be repeated.
    WillRetry,
    /// Something of unknown outcome.
    OutcomeUnknown,
}

/// One row of a pending reading: one or more notifications that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingRow {
    /// The configured route; nothing where the row's route isn't configured.
    pub route: Option<RouteName>,
    /// The due time: the later of acceptance and `not_before`. Nothing where a time was missing or absurd.
    pub due: Option<DateTime<Utc>>,
    /// What was tried so far.
    pub tried: Tried,
    /// How many notifications the row stands for.
    pub count: u64,
}

/// The pending of one route. The default is a drained one without a deadline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutePending {
    /// Not due yet. These have no age.
    pub scheduled: u64,
    /// Due, and never tried.
    pub unattempted: u64,
    /// Due, tried, and to be tried again.
    pub retrying: u64,
    /// Due, with a newest attempt that nobody knows the outcome of.
    pub unknown: u64,
    /// Pending, but with a missing or absurd time: in no state above and of no age.
    pub refused_times: u64,
    /// Ages of those that are due: how many fall in each bucket of [`AGE_BOUNDS_SECONDS`] (not cumulated, a bound belongs to its
    /// bucket); the last is beyond all bounds.
    pub ages: [u64; AGE_BOUNDS_SECONDS.len() + 1],
    /// The sum of those ages, in seconds.
    pub age_sum_seconds: f64,
    /// How many are older than the route's deadline; nothing where the route has none.
    pub over_deadline: Option<u64>,
    /// The due time of the oldest that is due.
    pub oldest_due: Option<DateTime<Utc>>,
    /// The due time of the oldest that is due and in the state `unknown`.
    pub oldest_unknown: Option<DateTime<Utc>>,
}

impl RoutePending {
    /// A route with a deadline that has none pending: drained is explicit.
    pub fn drained() -> Self {
        Self { over_deadline: Some(0), ..Self::default() }
    }

    /// How many are in this state.
    pub fn in_state(&self, state: PendingState) -> u64 {
        match state {
            PendingState::Scheduled => self.scheduled,
            PendingState::Unattempted => self.unattempted,
            PendingState::Retrying => self.retrying,
            PendingState::Unknown => self.unknown,
        }
    }

    /// Adds a row, as of this time, under this deadline.
    pub(super) fn add(&mut self, row: &PendingRow, as_of: DateTime<Utc>, deadline: Option<Duration>) {
        let Some(due) = row.due else {
            self.refused_times = self.refused_times.saturating_add(row.count);
            return;
        };
        let Ok(age) = (as_of - due).to_std() else {
            self.scheduled = self.scheduled.saturating_add(row.count);
            return;
        };
        let in_state = match row.tried {
            Tried::Never => &mut self.unattempted,
            Tried::WillRetry => &mut self.retrying,
            Tried::OutcomeUnknown => &mut self.unknown,
        };
        *in_state = in_state.saturating_add(row.count);
        let bucket = AGE_BOUNDS_SECONDS.partition_point(|bound| Duration::from_secs(*bound) < age);
        self.ages[bucket] = self.ages[bucket].saturating_add(row.count);
        // A count above 2^53 loses its last digits; nobody waits for so many.
        self.age_sum_seconds += age.as_secs_f64() * row.count as f64;
        if deadline.is_some_and(|deadline| age > deadline) {
            let over = self.over_deadline.get_or_insert(0);
            *over = over.saturating_add(row.count);
        }
        let older = |known: Option<DateTime<Utc>>| Some(known.map_or(due, |known| known.min(due)));
        if row.count > 0 {
            self.oldest_due = older(self.oldest_due);
            if row.tried == Tried::OutcomeUnknown {
                self.oldest_unknown = older(self.oldest_unknown);
            }
        }
    }
}

/// The figures of one reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PendingFigures {
    /// By configured route. A route of this ledger with none pending is here, and drained.
    pub routes: BTreeMap<RouteName, RoutePending>,
    /// All notifications whose route isn't configured, together. They have no deadline.
    pub other: RoutePending,
    /// How many rows of the result these were.
    pub folded_rows: u64,
    /// How many rows said that they are not pending at all, and were left out: the query gives too much.
    pub settled_rows: u64,
}

/// One good reading of everybody's pending notifications. A reading that failed is no snapshot: absent, not zero.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingSnapshot {
    /// As of when, on our clock, less the ledger's known lag. Ages run to here.
    pub as_of: DateTime<Utc>,
    truncated: bool,
    figures: PendingFigures,
}

impl PendingSnapshot {
    /// Folds the rows of one reading. `deadlines` names every configured route of this ledger. `truncated` says that the result was cut at
    /// its row limit. A row of a route that `deadlines` doesn't name goes to `other`.
    pub fn fold(
        as_of: DateTime<Utc>,
        deadlines: &BTreeMap<RouteName, Duration>,
        rows: impl IntoIterator<Item = PendingRow>,
        settled_rows: u64,
        truncated: bool,
    ) -> Self {
        let routes = deadlines.keys().map(|route| (route.clone(), RoutePending::drained())).collect();
        let mut figures = PendingFigures { routes, settled_rows, ..PendingFigures::default() };
        for row in rows {
            let route = row.route.as_ref();
            match route.and_then(|route| Some((figures.routes.get_mut(route)?, deadlines.get(route)?))) {
                Some((pending, deadline)) => pending.add(&row, as_of, Some(*deadline)),
                None => {
                    figures.folded_rows += 1;
                    figures.other.add(&row, as_of, None);
                }
            }
        }
        Self { as_of, truncated, figures }
    }

    /// The figures of what is followed row by row. They are never cut.
    pub fn followed(as_of: DateTime<Utc>, figures: PendingFigures) -> Self {
        Self { as_of, truncated: false, figures }
    }

    /// Whether no row was read at all.
    pub fn is_empty(&self) -> bool {
        let states =
            |pending: &RoutePending| PendingState::ALL.iter().all(|state| pending.in_state(*state) == 0);
        let is_empty = |pending: &RoutePending| pending.refused_times == 0 && states(pending);
        self.figures.settled_rows == 0
            && is_empty(&self.figures.other)
            && self.figures.routes.values().all(is_empty)
    }

    /// Whether the result was cut at its row limit.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The figures as facts; nothing where the result was cut at its row limit.
    pub fn exact(&self) -> Option<&PendingFigures> {
        (!self.truncated).then_some(&self.figures)
    }

    /// The figures as lower bounds: what was read is pending, and there may be more of it and older ones.
    pub fn at_least(&self) -> &PendingFigures {
        &self.figures
    }
}

#[cfg(test)]
mod tests;
