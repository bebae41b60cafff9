//! From stored values to the domain's and back.

use super::{
    Settled, Stored,
    fault::Fault,
    statement::{Value, fetch_in, values},
};
use crate::domain::{
    canary::{Canary, CanaryKind, Event, Plan},
    following::Stopped,
    route::{CanaryId, IdempotencyKey, Location, RouteName},
    verdict::{Class, ExpectedEnd, Verdict},
};
use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, Row, any::AnyRow};
use std::collections::HashMap;

/// The columns of a plan, in the order of [`plan_values`].
pub(super) const PLAN: &str = "canary_id, idempotency_key, route, location, kind, slot, planned_at, deadline_ms, settle_ms, \
                               follow_for_ms, ledger_overlap_ms, expected_end, has_ledger, traceparent, parent, has_sink";

/// The columns of a canary: those of its plan, and what a [`Stored`] has besides.
pub(super) fn canary_columns() -> String {
    format!("{PLAN}, version, next_look, erased")
}

/// The columns of a settled canary, in the order that [`settled`] reads.
pub(super) const SETTLED: &str =
    "route, slot, canary_id, kind, verdict, class, stopped, change_number, expected_end";

/// An instant as it is stored: whole microseconds.
pub(super) fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

/// A stored instant.
pub(super) fn instant(micros: i64) -> Result<DateTime<Utc>, Fault> {
    DateTime::from_timestamp_micros(micros).ok_or_else(|| Fault::corrupt("an instant", micros))
}

/// The whole number in a column.
pub(super) fn int(row: &AnyRow, column: usize) -> Result<i64, Fault> {
    Ok(row.try_get(column)?)
}

/// The whole number in a column, if there is one.
pub(super) fn maybe_int(row: &AnyRow, column: usize) -> Result<Option<i64>, Fault> {
    Ok(row.try_get(column)?)
}

/// The text in a column.
pub(super) fn text(row: &AnyRow, column: usize) -> Result<String, Fault> {
    Ok(row.try_get(column)?)
}

/// The text in a column, if there is one.
pub(super) fn maybe_text(row: &AnyRow, column: usize) -> Result<Option<String>, Fault> {
    Ok(row.try_get(column)?)
}

/// The instant in a column, if there is one.
pub(super) fn maybe_instant(row: &AnyRow, column: usize) -> Result<Option<DateTime<Utc>>, Fault> {
    maybe_int(row, column)?.map(instant).transpose()
}

/// A word in a column, read by the type that it belongs to.
pub(super) fn word<T>(
    row: &AnyRow,
    column: usize,
    what: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Fault> {
    let word = text(row, column)?;
    read(&word).ok_or_else(|| Fault::corrupt(what, word))
}

/// The id in a column.
pub(super) fn canary_id(row: &AnyRow, column: usize) -> Result<CanaryId, Fault> {
    parse_id(&text(row, column)?)
}

fn parse_id(text: &str) -> Result<CanaryId, Fault> {
    text.parse().map(CanaryId).map_err(|error| Fault::corrupt("a canary's id", error))
}

const fn end_word(end: ExpectedEnd) -> &'static str {
    match end {
        ExpectedEnd::Delivered => "delivered",
        ExpectedEnd::Suppressed => "suppressed",
        ExpectedEnd::Rejected => "rejected",
    }
}

fn end_from_word(word: &str) -> Option<ExpectedEnd> {
    [ExpectedEnd::Delivered, ExpectedEnd::Suppressed, ExpectedEnd::Rejected]
        .into_iter()
        .find(|end| end_word(*end) == word)
}

/// A plan as the values of its columns.
pub(super) fn plan_values(plan: &Plan) -> Vec<Value> {
    values![
        plan.canary_id.to_string(),
        plan.key.as_str(),
        plan.route.as_str(),
        plan.location.as_str(),
        plan.kind.word(),
        micros(plan.slot),
        micros(plan.planned_at),
        plan.deadline.num_milliseconds(),
        plan.settle.num_milliseconds(),
        plan.follow_for.num_milliseconds(),
        plan.ledger_overlap.num_milliseconds(),
        end_word(plan.expected_end),
        i64::from(plan.has_ledger),
        plan.traceparent.as_str(),
        plan.parent.map(|parent| parent.to_string()),
        i64::from(plan.has_sink),
    ]
}

fn plan(row: &AnyRow) -> Result<Plan, Fault> {
    let span = |column| {
        let millis = int(row, column)?;
        TimeDelta::try_milliseconds(millis).ok_or_else(|| Fault::corrupt("a duration", millis))
    };
    Ok(Plan {
        canary_id: canary_id(row, 0)?,
        key: IdempotencyKey::from_text(text(row, 1)?),
        route: RouteName::from_text(text(row, 2)?),
        location: Location::from_text(text(row, 3)?),
        kind: word(row, 4, "a kind of canary", CanaryKind::from_word)?,
        slot: instant(int(row, 5)?)?,
        planned_at: instant(int(row, 6)?)?,
        deadline: span(7)?,
        settle: span(8)?,
        follow_for: span(9)?,
        ledger_overlap: span(10)?,
        expected_end: word(row, 11, "an expected end", end_from_word)?,
        has_ledger: int(row, 12)? != 0,
        traceparent: text(row, 13)?,
        parent: maybe_text(row, 14)?.as_deref().map(parse_id).transpose()?,
        has_sink: int(row, 15)? != 0,
    })
}

/// Canaries of rows with [`canary_columns`], in their order, each with its events folded.
pub(super) async fn stored(conn: &mut AnyConnection, rows: &[AnyRow]) -> Result<Vec<Stored>, Fault> {
    let ids = rows.iter().map(|row| text(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let mut events: HashMap<String, Vec<Event>> = HashMap::new();
    for row in fetch_in(conn, "SELECT canary_id, body FROM event WHERE canary_id IN", "", &[], &ids).await? {
        events.entry(text(&row, 0)?).or_default().push(event(&text(&row, 1)?)?);
    }
    let fold = |(row, id): (&AnyRow, &String)| {
        let events = events.get(id).map_or(&[][..], Vec::as_slice);
        stored_one(row, events)
    };
    rows.iter().zip(&ids).map(fold).collect()
}

/// A canary of a row with [`canary_columns`] and all of its events.
pub(super) fn stored_one(row: &AnyRow, events: &[Event]) -> Result<Stored, Fault> {
    Ok(Stored {
        canary: Canary::fold(plan(row)?, events),
        version: int(row, 16)?,
        next_look: maybe_instant(row, 17)?,
        erased: int(row, 18)? != 0,
    })
}

/// A settled canary of a row with the columns of [`SETTLED`].
pub(super) fn settled(row: &AnyRow) -> Result<Settled, Fault> {
    let stopped = maybe_text(row, 6)?
        .map(|word| Stopped::from_word(&word).ok_or_else(|| Fault::corrupt("a stage", word)))
        .transpose()?;
    Ok(Settled {
        route: RouteName::from_text(text(row, 0)?),
        slot: instant(int(row, 1)?)?,
        canary_id: canary_id(row, 2)?,
        kind: word(row, 3, "a kind of canary", CanaryKind::from_word)?,
        verdict: word(row, 4, "a verdict", Verdict::from_word)?,
        class: word(row, 5, "a class", Class::from_word)?,
        expected: word(row, 8, "an expected end", end_from_word)?,
        stopped,
        change: int(row, 7)?,
    })
}

/// An event of its stored body.
pub(super) fn event(body: &str) -> Result<Event, Fault> {
    serde_json::from_str(body).map_err(|error| Fault::corrupt("an event", error))
}

/// The body of an event, and the fingerprint by which a repeated write of it is known. Of arrivals that were refused for one reason
/// only the first is kept: whoever repeats himself must not fill the store.
pub(super) fn body(event: &Event) -> Result<(String, i64), Fault> {
    let body = serde_json::to_string(event).map_err(|error| Fault::corrupt("an event", error))?;
    let digest = match event {
        Event::ArrivalRefused { reason, .. } => Sha256::digest(format!("{} {reason:?}", event.word())),
        _ => Sha256::digest(body.as_bytes()),
    };
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    Ok((body, i64::from_be_bytes(first)))
}

/// The text under which an id is stored.
pub(super) fn ids(canaries: impl IntoIterator<Item = CanaryId>) -> Vec<String> {
    // Sorted, so that every process locks rows in one order.
    let sorted: std::collections::BTreeSet<String> = canaries.into_iter().map(|id| id.to_string()).collect();
    sorted.into_iter().collect()
}
