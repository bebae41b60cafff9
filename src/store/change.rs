//! What an append or a decision changes: loading canaries for a change, and writing events and columns back.

use super::{
    fault::Fault,
    row::{body, canary_id, int, maybe_int, micros, text, word},
    statement::{Value, fetch_in, fetch_values, values},
    stream::Newest,
};
use crate::{
    domain::{
        canary::{CanaryKind, Event},
        evidence::SubmissionResult,
        route::{CanaryId, Location, NotificationId, RouteName},
    },
    store::database::Dialect,
};
use chrono::{DateTime, Utc};
use sqlx::AnyConnection;
use std::collections::{HashMap, HashSet};

/// The columns of a canary that change, as they are, locked until the end of the transaction.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) route: RouteName,
    pub(super) location: Location,
    pub(super) kind: CanaryKind,
    pub(super) version: i64,
    pub(super) receipts: i64,
    pub(super) next_look: Option<i64>,
    pub(super) is_leased: bool,
    pub(super) settled_at: Option<i64>,
    pub(super) erased: bool,
}

impl Open {
    /// What it counts under.
    pub(super) const fn of(&self) -> (&RouteName, &Location, CanaryKind) {
        (&self.route, &self.location, self.kind)
    }
}

/// Loads and locks canaries.
pub(super) async fn load(
    conn: &mut AnyConnection,
    dialect: Dialect,
    ids: &[String],
) -> Result<HashMap<CanaryId, Open>, Fault> {
    let head = "SELECT canary_id, route, location, kind, version, receipts, next_look, lease_until, settled_at, erased \
                FROM canary WHERE canary_id IN";
    let tail = format!("ORDER BY canary_id {}", dialect.for_update());
    let rows = fetch_in(conn, head, &tail, &[], ids).await?;
    rows.iter()
        .map(|row| {
            let open = Open {
                route: RouteName::from_text(text(row, 1)?),
                location: Location::from_text(text(row, 2)?),
                kind: word(row, 3, "a kind of canary", CanaryKind::from_word)?,
                version: int(row, 4)?,
                receipts: int(row, 5)?,
                next_look: maybe_int(row, 6)?,
                is_leased: maybe_int(row, 7)?.is_some(),
                settled_at: maybe_int(row, 8)?,
                erased: int(row, 9)? != 0,
            };
            Ok((canary_id(row, 0)?, open))
        })
        .collect()
}

/// An event on its way into the store.
#[derive(Clone, Debug)]
pub(super) struct NewEvent<'a> {
    pub(super) canary_id: CanaryId,
    pub(super) seq: i64,
    pub(super) event: &'a Event,
}

/// Writes events, and what is found by them: notification ids, and the newest of each route. Answers which were not there before, by
/// canary and place in the history.
pub(super) async fn write_events(
    conn: &mut AnyConnection,
    events: &[NewEvent<'_>],
    opened: &HashMap<CanaryId, Open>,
    written_at: DateTime<Utc>,
    newest: &mut Newest,
) -> Result<HashSet<(CanaryId, i64)>, Fault> {
    let mut rows = Vec::with_capacity(events.len());
    let mut notifications: Vec<Vec<Value>> = Vec::new();
    for NewEvent { canary_id, seq, event } in events {
        let (body, fingerprint) = body(event)?;
        let id = canary_id.to_string();
        for notification in notification_ids(event) {
            notifications.push(values![notification.as_str(), id.as_str()]);
        }
        if let Some(open) = opened.get(canary_id) {
            newest.happened(open.of(), event);
        }
        rows.push(values![id, fingerprint, *seq, micros(written_at), event.word(), body]);
    }
    let head = "INSERT INTO event (canary_id, fingerprint, seq, written_at, kind, body)";
    let tail = "ON CONFLICT (canary_id, fingerprint) DO NOTHING RETURNING canary_id, seq";
    let written = fetch_values(conn, head, tail, rows).await?;
    let head = "INSERT INTO notification (notification_id, canary_id)";
    fetch_values(conn, head, "ON CONFLICT (notification_id, canary_id) DO NOTHING", notifications).await?;
    written.iter().map(|row| Ok((canary_id(row, 0)?, int(row, 1)?))).collect()
}

fn notification_ids(event: &Event) -> Vec<&NotificationId> {
    match event {
        Event::Submitted(submission) => match &submission.result {
            SubmissionResult::Accepted { notification_id } => notification_id.iter().collect(),
            _ => Vec::new(),
        },
        Event::LedgerRead { row: Some(row), .. } => row.notification_ids.iter().collect(),
        _ => Vec::new(),
    }
}
