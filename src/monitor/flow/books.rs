//! The books of an interval: the follower's division of what was due in it, held against an exact count by the ledger itself.
//!
//! The follower is made of what the store keeps and reads on in memory alone: nothing is written, and nobody's lead is touched.

mod units;

pub use units::RouteUnits;

use super::{Following, LedgerToFollow, PassError, elsewhere::hold};
use crate::{
    catalog::labels::OTHER_ROUTE,
    clock,
    config::ledger::Ledger,
    domain::{
        accounting::{self, Partition},
        elsewhere::Accepted,
        flow::{rows::RouteNo, time::Passing},
        route::RouteName,
    },
    ledger::{ElsewhereError, FlowReader, LedgerError},
    store::{Store, StoreError},
};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// How often an interval is counted, at most, before a difference is believed: what changes between the two readings is no difference.
const TRIES: u32 = 3;

/// The due times that are looked at: from is among them, until isn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first.
    pub from: DateTime<Utc>,
    /// Before this.
    pub until: DateTime<Utc>,
}

/// Why the books can't be held against each other.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// The ledger or the store can't be used.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// Nobody follows it.
    #[error(
        "the ledger `{0}` has not been followed yet, so there is nothing to hold against it: start `delivery-canary serve`, and wait for \
         `ledger_followed` in its log"
    )]
    NotFollowed(String),
    /// The interval is none that can be looked at.
    #[error("{0}")]
    Interval(String),
    /// The independent count of the accepted could not be taken.
    #[error("the accepted could not be held against an independent count: {0}")]
    Elsewhere(ElsewhereError),
}

impl From<LedgerError> for BooksError {
    fn from(error: LedgerError) -> Self {
        Self::Pass(error.into())
    }
}

impl From<StoreError> for BooksError {
    fn from(error: StoreError) -> Self {
        Self::Pass(error.into())
    }
}

/// The books of one ledger.
#[derive(Clone, Debug)]
pub struct Books {
    /// As of when the follower's side is.
    pub as_of: DateTime<Utc>,
    /// By route; those with nothing on both sides are here too.
    pub routes: Vec<RouteBooks>,
    /// Why there is no independent count of the accepted, where one is configured.
    pub elsewhere_unknown: Option<ElsewhereError>,
}

impl Books {
    /// Whether both sides agree on every route, and the ledger surely lacks nothing of what was accepted by an independent count.
    pub fn is_balanced(&self) -> bool {
        let is_whole = |route: &RouteBooks| route.accepted.is_none_or(|accepted| accepted.missing() == 0);
        self.routes.iter().all(|route| route.residue == 0 && is_whole(route))
    }
}

/// The books of one route.
#[derive(Clone, Debug)]
pub struct RouteBooks {
    /// The route, `other` among them.
    pub route: RouteName,
    /// The follower's side.
    pub followed: Partition,
    /// The ledger's own count.
    pub counted: Partition,
    /// How many would have to be placed otherwise for both to agree.
    pub residue: u64,
    /// What was accepted in the interval, by the ledger and by a count that is independent of it, where both are known.
    pub accepted: Option<Accepted>,
    /// Which ones they are, where that was asked for and there are any.
    pub units: Option<RouteUnits>,
}

/// What to look at.
pub struct Asked<'a> {
    /// The ledger's name.
    pub ledger: &'a str,
    /// Its configuration.
    pub config: &'a Ledger,
    /// The deadlines of all routes.
    pub deadlines: &'a BTreeMap<RouteName, Duration>,
    /// The due times.
    pub interval: Interval,
    /// One route alone.
    pub route: Option<&'a RouteName>,
    /// Whether to name the units by which the sides differ.
    pub with_units: bool,
}

/// Makes the follower of what is kept, reads to the end of the ledger, and holds it against the exact count.
///
/// # Errors
/// When the ledger or the store can't be used, nobody follows the ledger, or the interval is none that can be counted.
pub async fn reconcile(
    asked: &Asked<'_>,
    reader: Arc<dyn FlowReader>,
    store: &dyn Store,
) -> Result<Books, BooksError> {
    if store.followed_saved_at(asked.ledger).await?.is_none() {
        return Err(BooksError::NotFollowed(asked.ledger.to_owned()));
    }
    let erased = store.erased().await?;
    let wanted = LedgerToFollow {
        ledger: asked.ledger,
        config: asked.config,
        reader: Arc::clone(&reader),
        deadlines: asked.deadlines,
        erased: &erased,
    };
    let mut following = Following::load(store, &wanted, clock::now()).await?;
    let mut tries = 0;
    loop {
        let as_of = catch_up(&mut following, store, &erased).await?;
        tries += 1;
        if tries == 1 {
            asked.interval.is_within(&following, as_of)?;
        }
        let routes = count(asked, &*reader, &following).await?;
        let mut books = Books { as_of, routes, elsewhere_unknown: None };
        if books.is_balanced() || tries >= TRIES {
            hold_accepted(&mut books, asked.interval, &*reader, &following).await?;
            if asked.with_units {
                units::name(&mut books.routes, asked, &*reader, &following, (store, &erased)).await?;
            }
            return Ok(books);
        }
    }
}

/// Passes until both streams were read to their end. Nothing of them is written.
async fn catch_up(
    following: &mut Following,
    store: &dyn Store,
    erased: &BTreeSet<String>,
) -> Result<DateTime<Utc>, PassError> {
    let mut passing = Passing::default();
    loop {
        let passed = following.pass(store, erased, &mut passing).await?;
        if passed.is_end {
            return Ok(passed.as_of);
        }
    }
}

async fn count(
    asked: &Asked<'_>,
    reader: &dyn FlowReader,
    following: &Following,
) -> Result<Vec<RouteBooks>, BooksError> {
    let Interval { from, until } = asked.interval;
    let reading = reader.partition(from, until).await?;
    if let Some(repeated) = reading.shown_twice {
        let [first, last] =
            [repeated.from, repeated.until].map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
        let reason = format!(
            "in the ledger's local time the clock goes back: what was due from {first} to {last} has the same times twice, and can be \
             counted only together. Neither --from nor --to may lie between the two"
        );
        return Err(BooksError::Interval(reason));
    }
    let books = routes(reader).filter(|(_, name)| asked.route.is_none_or(|route| route == name));
    let books = books.map(|(place, route)| {
        let mut counted = Partition::default();
        for (standing, count) in reading.counts.get(&place).into_iter().flatten() {
            counted.add_count((*standing).into(), i64::try_from(*count).unwrap_or(i64::MAX));
        }
        let followed = following.partition(place, from, until);
        let residue = accounting::residue(&followed, &counted);
        RouteBooks { route, followed, counted, residue, accepted: None, units: None }
    });
    Ok(books.collect())
}

/// Holds the ledger's count of the accepted against the independent one, where there is one.
async fn hold_accepted(
    books: &mut Books,
    Interval { from, until }: Interval,
    reader: &dyn FlowReader,
    following: &Following,
) -> Result<(), BooksError> {
    let Some(elsewhere) = reader.elsewhere() else { return Ok(()) };
    match elsewhere.accepted(from, until, books.as_of - following.overlap()).await {
        Ok(bounds) => {
            let both = hold(&bounds, reader, following, from, until).await?;
            for (place, name) in routes(reader) {
                let book = books.routes.iter_mut().find(|book| book.route == name);
                book.into_iter().for_each(|book| book.accepted = both.get(&place).copied());
            }
        }
        Err(error) => books.elsewhere_unknown = Some(error),
    }
    Ok(())
}

/// The routes that a ledger's rows can be of, with their places.
fn routes(reader: &dyn FlowReader) -> impl Iterator<Item = (RouteNo, RouteName)> {
    let names = reader.routes().iter().cloned().chain([RouteName::from_text(OTHER_ROUTE)]);
    (0..=u16::MAX).map(RouteNo).zip(names)
}

impl Interval {
    /// The length of the cells that it is made of: minutes, or hours where minutes aren't kept any more.
    fn step(&self, following: &Following) -> TimeDelta {
        let is_fine = self.from.timestamp() >= following.kept_from().0;
        if is_fine { TimeDelta::minutes(1) } else { TimeDelta::hours(1) }
    }

    /// Whether it can be looked at: whole minutes or hours, closed, and not older than what is kept.
    fn is_within(&self, following: &Following, as_of: DateTime<Utc>) -> Result<(), BooksError> {
        let (minutes_from, hours_from) = following.kept_from();
        let text = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let wrong = |reason: String| Err(BooksError::Interval(reason));
        let is_whole = |at: DateTime<Utc>, step: i64| {
            at.timestamp().rem_euclid(step) == 0 && at.timestamp_subsec_nanos() == 0
        };
        let ceil = |at: DateTime<Utc>, step: i64| {
            let second = at.timestamp() + i64::from(at.timestamp_subsec_nanos() > 0);
            DateTime::from_timestamp(second + (-second).rem_euclid(step), 0).unwrap_or(at)
        };
        if self.from >= self.until {
            return wrong("--from must be before --to".into());
        }
        for at in [self.from, self.until] {
            if !is_whole(at, 60) {
                return wrong(format!("{} is no whole minute: the follower counts by minute", text(at)));
            }
            if at.timestamp() < minutes_from && !is_whole(at, 3_600) {
                let fine = DateTime::from_timestamp(minutes_from, 0).unwrap_or(as_of);
                let at = text(at);
                return wrong(format!(
                    "{at} is no whole hour (UTC): before {} the follower keeps hours alone",
                    text(fine)
                ));
            }
        }
        let oldest = following.horizon().max(DateTime::from_timestamp(hours_from, 0).unwrap_or_default());
        if self.from < oldest {
            let first = ceil(oldest, if oldest.timestamp() < minutes_from { 3_600 } else { 60 });
            return wrong(format!(
                "the ledger is followed since {0}: --from can be {0} at the earliest",
                text(first)
            ));
        }
        let closed = as_of - following.overlap();
        if self.until > closed {
            let last = closed.timestamp() - closed.timestamp().rem_euclid(60);
            let last = DateTime::from_timestamp(last, 0).unwrap_or(closed);
            return wrong(format!(
                "what was due up to {} may still become visible: --to can be {} at the latest now",
                text(self.until),
                text(last)
            ));
        }
        Ok(())
    }
}
