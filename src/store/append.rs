//! Appending events to canaries, whatever their version is.

use super::{
    Append, Appended,
    change::{NewEvent, Open, load, write_events},
    database::Dialect,
    fault::Fault,
    row::{ids, micros},
    statement::{Value, fetch_values, values},
    stream::Newest,
};
use crate::domain::{canary::Event, route::CanaryId};
use chrono::{DateTime, Utc};
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};

/// Most receipts that are kept of one canary. A sender that repeats itself without end must not fill the store.
pub(super) const RECEIPTS_KEPT: i64 = 32;

/// Appends within the open transaction. The answers are in the order of the appends.
pub(super) async fn append(
    conn: &mut AnyConnection,
    dialect: Dialect,
    appends: &[Append],
    now: DateTime<Utc>,
    newest: &mut Newest,
) -> Result<Vec<Appended>, Fault> {
    if appends.is_empty() {
        return Ok(Vec::new());
    }
    let mut opened = load(conn, dialect, &ids(appends.iter().map(|append| append.canary_id))).await?;
    let mut receipts: HashMap<CanaryId, i64> = opened.iter().map(|(id, open)| (*id, open.receipts)).collect();
    let mut touched = BTreeSet::new();
    let mut events = Vec::new();
    let mut answers = Vec::with_capacity(appends.len());
    for append in appends {
        answers.push(match opened.get_mut(&append.canary_id) {
            None => Appended::NoSuchCanary,
            Some(open) => {
                let answer = take(append, open, &mut events);
                if answer != Appended::Dropped || append.release {
                    touched.insert(append.canary_id);
                }
                answer
            }
        });
    }
    let written = write_events(conn, &events, &opened, now, newest).await?;
    // Only now is it known which receipts were new, and which the repetition of a write whose answer was lost.
    for new in &events {
        if matches!(new.event, Event::Received(_)) && written.contains(&(new.canary_id, new.seq)) {
            *receipts.entry(new.canary_id).or_default() += 1;
        }
    }
    let rows = touched.iter().map(|id| {
        let open = &opened[id];
        let receipts = receipts.get(id).copied().unwrap_or_default();
        values![id.to_string(), open.version, receipts, open.next_look, i64::from(open.is_leased)]
    });
    write_back(conn, rows.collect()).await?;
    Ok(answers)
}

/// Takes one append into the columns of its canary.
fn take<'a>(append: &'a Append, open: &mut Open, events: &mut Vec<NewEvent<'a>>) -> Appended {
    if append.release {
        open.is_leased = false;
    }
    let receipts_before = u32::try_from(open.receipts).unwrap_or(u32::MAX);
    let arrivals = append.events.iter().filter(|event| matches!(event, Event::Received(_))).count();
    if open.erased || (arrivals > 0 && open.receipts >= RECEIPTS_KEPT) {
        return Appended::Dropped;
    }
    for event in &append.events {
        open.version += 1;
        events.push(NewEvent { canary_id: append.canary_id, seq: open.version, event });
    }
    if append.events.is_empty() {
        open.version += 1;
    }
    open.receipts += i64::try_from(arrivals).unwrap_or(i64::MAX);
    open.next_look = match (open.next_look, append.look_by.map(micros)) {
        (Some(known), Some(wished)) => Some(known.min(wished)),
        (known, wished) => wished.or(known),
    };
    Appended::Written { receipts_before }
}

async fn write_back(conn: &mut AnyConnection, rows: Vec<Vec<Value>>) -> Result<(), Fault> {
    let head = "UPDATE canary SET version = fresh.column2, receipts = fresh.column3, next_look = fresh.column4, \
                lease_owner = CASE WHEN fresh.column5 = 0 THEN NULL ELSE lease_owner END, \
                lease_until = CASE WHEN fresh.column5 = 0 THEN NULL ELSE lease_until END FROM (";
    fetch_values(conn, head, ") AS fresh WHERE canary.canary_id = fresh.column1", rows).await.map(drop)
}
