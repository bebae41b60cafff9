//! Which units make two accounts differ: the interval is read afresh, and held against the follower's cells one by one.

use super::{super::Following, Asked, BooksError, RouteBooks, routes};
use crate::{
    domain::{
        accounting::{Misplaced, Partition, Place, explain},
        flow::{
            key::UnitKey,
            rows::{NotificationRow, RouteNo, Standing, UnitId},
        },
    },
    ledger::{FlowReader, LedgerError, flow::text_of},
    monitor::flow::pass::is_erased,
    store::Store,
};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// How many notifications are held before they are looked up.
const LOOKED_UP_AT_ONCE: usize = 1_000;

/// The units by which the two sides of a route differ, each with the beginning of the minute or hour that it was due in.
#[derive(Clone, Debug, Default)]
pub struct RouteUnits {
    /// What a fresh reading of the interval comes to. Where it isn't the count, the queries differ among themselves.
    pub fresh: Partition,
    /// Those that are surely meant.
    pub exact: Vec<(DateTime<Utc>, Misplaced)>,
    /// Where more than one differs in a minute or hour: all that can be meant, with where the fresh reading has them.
    pub candidates: Vec<(DateTime<Utc>, UnitId, Place)>,
    /// What only the follower has. Ids of what is settled aren't kept.
    pub only_followed: Vec<(DateTime<Utc>, Place)>,
    /// How many notifications the fresh reading left out because they are canaries.
    pub canaries: u64,
    /// How many it left out because they were erased: they are in no account but the ledger's.
    pub erased: u64,
}

/// The fresh reading of one route, by the beginning of the cell.
#[derive(Default)]
struct Fresh {
    cells: BTreeMap<i64, Vec<(UnitId, Standing)>>,
    canaries: u64,
    erased: u64,
}

/// Names the units of the routes whose sides differ.
///
/// # Errors
/// When the ledger or the store can't be used.
pub(super) async fn name(
    books: &mut [RouteBooks],
    asked: &Asked<'_>,
    reader: &dyn FlowReader,
    following: &Following,
    kept: (&dyn Store, &BTreeSet<String>),
) -> Result<(), BooksError> {
    let numbers: BTreeMap<RouteNo, usize> = routes(reader)
        .filter_map(|(number, name)| {
            let place = books.iter().position(|book| book.route == name && book.residue > 0)?;
            Some((number, place))
        })
        .collect();
    if numbers.is_empty() {
        return Ok(());
    }
    let wanted: BTreeSet<RouteNo> = numbers.keys().copied().collect();
    let begin = asked.interval.from - following.overlap();
    let mut fresh = read(asked, reader, following, kept, &wanted, begin).await?;
    let is_whole = numbers
        .iter()
        .all(|(number, place)| fresh.get(number).map_or(0, Fresh::count) >= books[*place].counted.accepted());
    if !is_whole && begin > following.horizon() {
        // What was put off may have been accepted at any time before.
        fresh = read(asked, reader, following, kept, &wanted, following.horizon()).await?;
    }
    let step = asked.interval.step(following);
    for (number, place) in numbers {
        let found = fresh.remove(&number).unwrap_or_default();
        let mut units =
            RouteUnits { canaries: found.canaries, erased: found.erased, ..RouteUnits::default() };
        let mut at = asked.interval.from;
        while at < asked.interval.until {
            let cell = found.cells.get(&at.timestamp()).map_or(&[][..], Vec::as_slice);
            let end = (at + step).min(asked.interval.until);
            units.hold(at, &following.partition(number, at, end), cell);
            at = end;
        }
        books[place].units = Some(units);
    }
    Ok(())
}

impl Fresh {
    fn count(&self) -> i64 {
        let units: usize = self.cells.values().map(Vec::len).sum();
        i64::try_from(units).unwrap_or(i64::MAX)
    }
}

impl RouteUnits {
    /// Holds one cell of the follower against what the fresh reading has in it.
    fn hold(&mut self, at: DateTime<Utc>, followed: &Partition, fresh: &[(UnitId, Standing)]) {
        for (unit, standing) in fresh {
            self.fresh.add((*standing).into(), UnitKey::from(unit.clone()).fingerprint());
        }
        let found = explain(followed, fresh);
        self.exact.extend(found.exact.into_iter().map(|unit| (at, unit)));
        self.candidates.extend(found.candidates.into_iter().map(|(unit, place)| (at, unit, place)));
        self.only_followed.extend(found.only_followed.map(|place| (at, place)));
    }
}

/// Reads the notifications that were due in the interval, and looks up where each stands.
async fn read(
    asked: &Asked<'_>,
    reader: &dyn FlowReader,
    following: &Following,
    (store, erased): (&dyn Store, &BTreeSet<String>),
    wanted: &BTreeSet<RouteNo>,
    begin: DateTime<Utc>,
) -> Result<BTreeMap<RouteNo, Fresh>, BooksError> {
    let interval = asked.interval;
    let step = interval.step(following).num_seconds();
    let last = routes(reader).last().map_or(RouteNo(0), |(number, _)| number);
    let until = interval.until + following.overlap();
    let mut place = reader.notifications_from(begin).await?;
    let mut fresh: BTreeMap<RouteNo, Fresh> = BTreeMap::new();
    let mut met: BTreeSet<UnitKey> = BTreeSet::new();
    let mut rows: Vec<NotificationRow> = Vec::new();
    let mut is_last = false;
    while !is_last {
        let page = reader.notifications_page(Some(&place), Some(until)).await?;
        is_last = !page.is_full || page.rows.last().and_then(|seen| seen.at).is_some_and(|at| at > until);
        if let Some(newest) = page.last() {
            place = newest.clone();
        } else if page.is_full {
            let reason = "a whole page of rows has no place in the stream".into();
            return Err(LedgerError::Shape { query: "notifications", reason }.into());
        }
        for mut row in page.rows.into_iter().filter_map(|seen| seen.row) {
            row.route = row.route.min(last);
            let is_due = interval.from <= row.due && row.due < interval.until;
            if is_due && wanted.contains(&row.route) && met.insert(UnitKey::from(row.unit.clone())) {
                rows.push(row);
            }
        }
        while rows.len() >= LOOKED_UP_AT_ONCE || (is_last && !rows.is_empty()) {
            let some: Vec<_> = rows.drain(..rows.len().min(LOOKED_UP_AT_ONCE)).collect();
            let ids: Vec<String> = some.iter().map(|row| text_of(&row.unit.notification)).collect();
            let known = store.canaries_among(&ids).await?;
            let units: Vec<UnitId> = some.iter().map(|row| row.unit.clone()).collect();
            let truths = reader.truths(&units).await?;
            for (row, id) in some.into_iter().zip(ids) {
                let route = fresh.entry(row.route).or_default();
                let is_canary = row.is_marked_canary || row.has_canary_key || known.contains(&id);
                if is_canary || is_erased(erased, &row.unit) {
                    route.canaries += u64::from(is_canary);
                    route.erased += u64::from(!is_canary);
                } else if let Some(truth) = truths.found.get(&row.unit) {
                    let second = row.due.timestamp();
                    let cell = route.cells.entry(second - second.rem_euclid(step)).or_default();
                    cell.push((row.unit, truth.standing()));
                }
            }
        }
    }
    Ok(fresh)
}
