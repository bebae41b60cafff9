//! Reading canaries.

use super::{
    Filter, InFlight, Settled, Stored,
    fault::Fault,
    row::{
        SETTLED, canary_columns, event, instant, int, maybe_instant, micros, settled, stored, stored_one,
        text,
    },
    statement::{Value, fetch, values},
};
use crate::domain::{
    canary::{CanaryKind, Event},
    disagreement::Disagreement,
    route::{CanaryId, Location, RouteName},
};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{AnyConnection, any::AnyRow};
use std::collections::BTreeSet;

/// `due` asks so, but for so many routes. The condition on the lease is that of its index.
fn due_condition(but: usize) -> String {
    let places: Vec<String> = (4..4 + but).map(|n| format!("${n}")).collect();
    let but = if but == 0 { String::new() } else { format!("AND route NOT IN ({})", places.join(", ")) };
    format!(
        "FROM canary WHERE location = $1 AND next_look <= $2 AND lease_until IS NULL {but} ORDER BY next_look LIMIT $3"
    )
}

/// `next_due` asks so.
pub(super) const NEXT_DUE: &str = "SELECT next_look FROM canary WHERE location = $1 AND next_look IS NOT NULL \
                                   AND lease_until IS NULL ORDER BY next_look LIMIT 1";

/// `settled_since` asks so.
pub(super) const SETTLED_SINCE: &str =
    "FROM canary WHERE location = $1 AND change_number > $2 ORDER BY change_number LIMIT $3";

/// `settled` asks so about one route.
pub(super) const SETTLED_OF_ROUTE: &str = "FROM canary WHERE location = $1 AND slot >= $2 AND verdict IS NOT NULL \
                                           AND kind IN ('scheduled', 'confirmation') AND route = $3";

/// `settled` asks so about all routes.
pub(super) const SETTLED_OF_ALL: &str = "FROM canary WHERE location = $1 AND slot >= $2 AND verdict IS NOT NULL \
                                         AND kind IN ('scheduled', 'confirmation')";

/// `in_flight` asks so.
pub(super) const IN_FLIGHT: &str = "SELECT route, COUNT(*), MIN(slot) FROM canary \
                                    WHERE location = $1 AND verdict IS NULL AND erased = 0 GROUP BY route";

/// `canary` asks so for its row.
pub(super) const CANARY: &str = "FROM canary WHERE canary_id = $1";

/// `canary` asks so for its events.
pub(super) const EVENTS: &str = "SELECT written_at, body FROM event WHERE canary_id = $1 ORDER BY seq";

/// `list` asks so for those of a notification id.
const OF_NOTIFICATION: &str = "canary_id IN (SELECT canary_id FROM notification WHERE notification_id = $)";

pub(super) async fn due(
    conn: &mut AnyConnection,
    location: &Location,
    now: DateTime<Utc>,
    limit: u32,
    but: &[RouteName],
) -> Result<Vec<Stored>, Fault> {
    let text = format!("SELECT {} {}", canary_columns(), due_condition(but.len()));
    let mut values = values![location.as_str(), micros(now), i64::from(limit)];
    values.extend(but.iter().map(|route| Value::from(route.as_str())));
    let rows = fetch(conn, text, values).await?;
    stored(conn, &rows).await
}

pub(super) async fn canary(
    conn: &mut AnyConnection,
    id: CanaryId,
) -> Result<Option<(Stored, Vec<(DateTime<Utc>, Event)>)>, Fault> {
    let text = format!("SELECT {} {CANARY}", canary_columns());
    let rows = fetch(conn, text, values![id.to_string()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let history = fetch(conn, EVENTS, values![id.to_string()]).await?;
    let history: Vec<(DateTime<Utc>, Event)> = history.iter().map(written_event).collect::<Result<_, _>>()?;
    let events: Vec<Event> = history.iter().map(|(_, event)| event.clone()).collect();
    Ok(Some((stored_one(row, &events)?, history)))
}

fn written_event(row: &AnyRow) -> Result<(DateTime<Utc>, Event), Fault> {
    Ok((instant(int(row, 0)?)?, event(&text(row, 1)?)?))
}

/// The statement of `settled`. The order is made by the caller: only it knows how ids compare.
pub(super) fn settled_statement(
    location: &Location,
    route: Option<&RouteName>,
    from: DateTime<Utc>,
) -> (String, Vec<Value>) {
    let mut values = values![location.as_str(), micros(from)];
    values.extend(route.map(|route| Value::from(route.as_str())));
    let condition = if route.is_some() { SETTLED_OF_ROUTE } else { SETTLED_OF_ALL };
    (format!("SELECT {SETTLED} {condition}"), values)
}

pub(super) fn settled_rows(rows: &[AnyRow]) -> Result<Vec<Settled>, Fault> {
    rows.iter().map(settled).collect()
}

pub(super) fn in_flight(row: &AnyRow) -> Result<InFlight, Fault> {
    Ok(InFlight {
        route: RouteName::from_text(text(row, 0)?),
        count: u64::try_from(int(row, 1)?).unwrap_or(0),
        oldest_slot: maybe_instant(row, 2)?,
    })
}

/// How far ahead of now a time may lie: clocks of replicas differ. What lies further ahead was written by a clock that was wrong.
const AHEAD: TimeDelta = TimeDelta::minutes(1);

/// The statement of `newest`. What goes past the service says nothing about its route, nor does what can't have happened yet.
pub(super) fn newest_statement(location: &Location, now: DateTime<Utc>) -> (String, Vec<Value>) {
    let kinds: Vec<String> = CanaryKind::ALL
        .into_iter()
        .filter(|kind| !kind.is_control())
        .map(|kind| format!("'{}'", kind.word()))
        .collect();
    let text = format!(
        "SELECT route, MAX(CASE WHEN submitted_at <= $2 THEN submitted_at END), \
         MAX(CASE WHEN arrived_at <= $2 THEN arrived_at END) FROM stream WHERE location = $1 AND kind IN ({}) GROUP BY route",
        kinds.join(", ")
    );
    (text, values![location.as_str(), micros(now + AHEAD)])
}

/// The word of the events that say that views contradict each other.
const DISAGREED: &str = "disagreed";

/// The condition of canaries that have a contradiction of one of these kinds. Each canary's events are found by its id.
fn contradicted(kinds: &BTreeSet<Disagreement>) -> String {
    // The words are ours, and none has a quote in it.
    let of_kind = |kind: &Disagreement| format!("event.body LIKE '%\"kind\":\"{}\"%'", kind.word());
    let of_kinds: Vec<String> = kinds.iter().map(of_kind).collect();
    format!(
        "EXISTS (SELECT 1 FROM event WHERE event.canary_id = canary.canary_id AND event.kind = $ AND ({}))",
        of_kinds.join(" OR ")
    )
}

pub(super) async fn list(conn: &mut AnyConnection, filter: &Filter) -> Result<Vec<Stored>, Fault> {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut condition = |text: &str, value: Value| {
        values.push(value);
        conditions.push(text.replace('$', &format!("${}", values.len())));
    };
    if let Some(route) = &filter.route {
        condition("route = $", route.as_str().into());
    }
    if let Some(id) = &filter.notification {
        condition(OF_NOTIFICATION, id.as_str().into());
    }
    if let Some(verdict) = filter.verdict {
        condition("verdict = $", verdict.word().into());
    }
    if !filter.disagreements.is_empty() {
        condition(&contradicted(&filter.disagreements), DISAGREED.into());
    }
    if let Some(from) = filter.from {
        condition("slot >= $", micros(from).into());
    }
    if let Some(until) = filter.until {
        condition("slot < $", micros(until).into());
    }
    values.push(i64::from(filter.limit).into());
    let limit = values.len();
    let conditions =
        if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    let columns = canary_columns();
    let text = format!(
        "SELECT {columns} FROM canary {conditions} ORDER BY slot DESC, canary_id DESC LIMIT ${limit}"
    );
    let rows = fetch(conn, text, values).await?;
    stored(conn, &rows).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::model::{SqliteStore, StoreConfig},
        store::{control, open, past::PAST},
    };
    use sqlx::{AssertSqlSafe, Connection, Row};

    /// How SQLite finds the rows of a statement.
    async fn way(conn: &mut AnyConnection, statement: &str) -> String {
        let text = format!("EXPLAIN QUERY PLAN {statement}");
        let rows = sqlx::query(AssertSqlSafe(text)).fetch_all(conn).await.expect("it can be explained");
        let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        steps.join("; ")
    }

    #[tokio::test]
    async fn queries_search_by_their_indexes() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("store.db");
        open(&StoreConfig::Sqlite(SqliteStore { path: path.clone() })).await.expect("the store opens");
        let address = format!("sqlite:{}", path.display());
        let mut conn = AnyConnection::connect(&address).await.expect("the database is there");
        let all = |condition: &str| format!("SELECT {} {condition}", canary_columns());
        let sums =
            "SELECT amount FROM sums WHERE family = $1 AND level = $2 AND bucket >= $3 AND bucket < $4";
        let taken = "SELECT 1 FROM canary WHERE idempotency_key IN ($1, $2)";
        let left = "SELECT canary_id FROM canary WHERE location = $1 AND lease_until <= $2 \
                    AND (lease_until <= $3 OR lease_owner = $4) ORDER BY lease_until LIMIT 9";
        let erased = "SELECT canary_id FROM notification WHERE notification_id = $1";
        let condition = OF_NOTIFICATION.replace('$', "$1");
        let of_notification =
            all(&format!("FROM canary WHERE {condition} ORDER BY slot DESC, canary_id DESC LIMIT 9"));
        let kinds = contradicted(&Disagreement::ALL.into()).replace('$', "$1");
        let with_contradiction =
            format!("SELECT slot FROM canary WHERE route = $2 AND {kinds} ORDER BY slot DESC LIMIT 9");
        let ways = [
            (with_contradiction, "PRIMARY KEY (canary_id=?)"),
            (of_notification, "INDEX sqlite_autoindex_canary_1 (canary_id=?)"),
            (all(&due_condition(0)), "INDEX canary_due (location=? AND next_look<?)"),
            (all(&due_condition(3)), "INDEX canary_due (location=? AND next_look<?)"),
            (NEXT_DUE.into(), "INDEX canary_due (location=?"),
            (all(SETTLED_SINCE), "INDEX canary_change (location=? AND change_number>?)"),
            (all(SETTLED_OF_ROUTE), "INDEX canary_route (route=? AND slot>?)"),
            (all(SETTLED_OF_ALL), "INDEX canary_slot (slot>?)"),
            (all(PAST), "INDEX canary_route (route=? AND slot>?)"),
            (IN_FLIGHT.into(), "INDEX canary_open (location=?)"),
            (all(CANARY), "INDEX sqlite_autoindex_canary_1 (canary_id=?)"),
            (EVENTS.into(), "PRIMARY KEY (canary_id=?)"),
            (sums.into(), "PRIMARY KEY (family=? AND level=? AND bucket>? AND bucket<?)"),
            (taken.into(), "INDEX sqlite_autoindex_canary_2 (idempotency_key=?)"),
            (left.into(), "INDEX canary_leased (location=? AND lease_until<?)"),
            (erased.into(), "PRIMARY KEY (notification_id=?)"),
            (control::SINK_PROOF.into(), "PRIMARY KEY (receiver=? AND at>? AND at<?)"),
            (control::SINK_MARKS.into(), "PRIMARY KEY (receiver=? AND at>? AND at<?)"),
        ];
        for (statement, expected) in ways {
            let way = way(&mut conn, &statement).await;
            assert!(way.contains(expected) && !way.contains("SCAN"), "{statement}: {way}");
        }
        for sorted in
            [all(&due_condition(0)), all(&due_condition(3)), all(SETTLED_SINCE), control::SINK_MARKS.into()]
        {
            let way = way(&mut conn, &sorted).await;
            assert!(!way.contains("TEMP B-TREE"), "{sorted}: {way}");
        }
    }
}
