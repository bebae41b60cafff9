//! Pauses, the operators' record, and the proofs of the sinks.

use super::{
    Operation, Pause,
    fault::Fault,
    row::{instant, int, micros, text},
    statement::{execute, fetch, values},
};
use crate::domain::{
    route::RouteName,
    watch::{KEPT, Mark, MarkKind, Way},
};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{AnyConnection, any::AnyRow};
use uuid::Uuid;

/// Proofs that lie so far ahead of a new one were written by a clock that was wrong. Left alone, they would prove something when their
/// time comes.
const PROOFS_AHEAD: TimeDelta = TimeDelta::minutes(1);

/// `sink_proof` asks so.
pub(super) const SINK_PROOF: &str =
    "SELECT MIN(at) FROM sink_proof WHERE receiver = $1 AND at >= $2 AND at <= $3 AND opened = 0";

/// `sink_marks` asks so.
pub(super) const SINK_MARKS: &str =
    "SELECT at, opened FROM sink_proof WHERE receiver = $1 AND at >= $2 AND at <= $3 ORDER BY at";

/// `pauses` asks so.
pub(super) const PAUSES: &str =
    "SELECT route, owner, reason, ends_at FROM pause WHERE ends_at > $1 ORDER BY route";

/// `operations` asks so.
pub(super) const OPERATIONS: &str =
    "SELECT at, who, what, target FROM operation ORDER BY at DESC, operation_id DESC LIMIT $1";

/// No route is stored as the empty name, which no route has.
fn stored_route(route: Option<&RouteName>) -> &str {
    route.map_or("", RouteName::as_str)
}

pub(super) async fn pause(conn: &mut AnyConnection, pause: &Pause) -> Result<(), Fault> {
    let text = "INSERT INTO pause (route, owner, reason, ends_at) VALUES ($1, $2, $3, $4) \
                ON CONFLICT (route) DO UPDATE SET owner = excluded.owner, reason = excluded.reason, ends_at = excluded.ends_at";
    let route = stored_route(pause.route.as_ref());
    let values = values![route, pause.owner.as_str(), pause.reason.as_str(), micros(pause.until)];
    execute(conn, text, values).await.map(drop)
}

pub(super) async fn resume(
    conn: &mut AnyConnection,
    route: Option<&RouteName>,
    now: DateTime<Utc>,
) -> Result<bool, Fault> {
    let rows = fetch(
        conn,
        "DELETE FROM pause WHERE route = $1 RETURNING route, owner, reason, ends_at",
        values![stored_route(route)],
    )
    .await?;
    // One that had expired was no pause any more.
    let ended = rows.first().map(pause_of).transpose()?;
    Ok(ended.is_some_and(|pause| pause.until > now))
}

pub(super) fn pause_of(row: &AnyRow) -> Result<Pause, Fault> {
    pause_at(row, 0)
}

/// The pause whose columns begin at this one.
pub(super) fn pause_at(row: &AnyRow, first: usize) -> Result<Pause, Fault> {
    let route = text(row, first)?;
    Ok(Pause {
        route: (!route.is_empty()).then(|| RouteName::from_text(route)),
        owner: text(row, first + 1)?,
        reason: text(row, first + 2)?,
        until: instant(int(row, first + 3)?)?,
    })
}

pub(super) async fn note(conn: &mut AnyConnection, operation: &Operation) -> Result<(), Fault> {
    let text = "INSERT INTO operation (operation_id, at, who, what, target) VALUES ($1, $2, $3, $4, $5)";
    let Operation { at, who, what, on } = operation;
    let values = values![Uuid::now_v7().to_string(), micros(*at), who.as_str(), what.as_str(), on.as_str()];
    execute(conn, text, values).await.map(drop)
}

pub(super) fn mark_of(row: &AnyRow) -> Result<Mark, Fault> {
    let kind = if int(row, 1)? == 0 { MarkKind::Proof } else { MarkKind::Opened };
    Ok(Mark { at: instant(int(row, 0)?)?, kind })
}

pub(super) fn operation_of(row: &AnyRow) -> Result<Operation, Fault> {
    Ok(Operation { at: instant(int(row, 0)?)?, who: text(row, 1)?, what: text(row, 2)?, on: text(row, 3)? })
}

pub(super) async fn prove_sink(
    conn: &mut AnyConnection,
    way: Way,
    at: DateTime<Utc>,
    opened: Option<DateTime<Utc>>,
) -> Result<(), Fault> {
    // The column is older than ways.
    let way = way.to_string();
    let text = "INSERT INTO sink_proof (receiver, at, opened) VALUES ($1, $2, $3) ON CONFLICT (receiver, at) DO NOTHING";
    for (at, is_opened) in opened.map(|opened| (opened, 1i64)).into_iter().chain([(at, 0)]) {
        execute(conn, text, values![way.as_str(), micros(at), is_opened]).await?;
    }
    let text = "DELETE FROM sink_proof WHERE receiver = $1 AND (at < $2 OR at > $3)";
    execute(conn, text, values![way.as_str(), micros(at - KEPT), micros(at + PROOFS_AHEAD)]).await.map(drop)
}
