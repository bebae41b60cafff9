//! The newest of each kind on each route: slot, submission and arrival. It outlives the canaries.

use super::{
    fault::Fault,
    row::micros,
    statement::{Value, fetch_values, values},
};
use crate::domain::{
    canary::{CanaryKind, Event},
    evidence::{Content, RefusalReason, SubmissionResult},
    route::{Location, RouteName},
};
use chrono::{DateTime, Utc};
use sqlx::AnyConnection;
use std::collections::BTreeMap;

/// A stored time that lies so far ahead of what happens now, in microseconds, was written by a clock that was wrong. Whatever is written
/// comes at most so long after it happened, and replicas' clocks differ by less.
const AHEAD_MICROS: i64 = 120_000_000;

/// What a transaction knows to be newer.
#[derive(Debug, Default)]
pub(super) struct Newest(BTreeMap<(RouteName, Location, &'static str), Times>);

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    slot: Option<DateTime<Utc>>,
    submitted_at: Option<DateTime<Utc>>,
    arrived_at: Option<DateTime<Utc>>,
}

impl Newest {
    /// A canary was planned for this slot.
    pub(super) fn planned(&mut self, of: (&RouteName, &Location, CanaryKind), slot: DateTime<Utc>) {
        let times = self.times(of);
        times.slot = times.slot.max(Some(slot));
    }

    /// Something happened to a canary.
    pub(super) fn happened(&mut self, of: (&RouteName, &Location, CanaryKind), event: &Event) {
        match event {
            // What our own guard stopped has not left.
            Event::Submitted(submission)
                if submission.result != (SubmissionResult::Refused { reason: RefusalReason::Guard }) =>
            {
                let times = self.times(of);
                times.submitted_at = times.submitted_at.max(Some(submission.started_at));
            }
            Event::Received(receipt) if receipt.content == Content::Intact => {
                let times = self.times(of);
                times.arrived_at = times.arrived_at.max(Some(receipt.at));
            }
            _ => {}
        }
    }

    fn times(&mut self, (route, location, kind): (&RouteName, &Location, CanaryKind)) -> &mut Times {
        self.0.entry((route.clone(), location.clone(), kind.word())).or_default()
    }

    /// Writes it down, where it is newer than what is there, or where what is there can't have come yet.
    pub(super) async fn write(self, conn: &mut AnyConnection) -> Result<(), Fault> {
        let stored = |at: Option<DateTime<Utc>>| at.map(micros);
        let rows: Vec<Vec<Value>> = self
            .0
            .into_iter()
            .map(|((route, location, kind), times)| {
                values![
                    route.as_str(),
                    location.as_str(),
                    kind,
                    stored(times.slot),
                    stored(times.submitted_at),
                    stored(times.arrived_at),
                ]
            })
            .collect();
        let head = "INSERT INTO stream (route, location, kind, slot, submitted_at, arrived_at)";
        // There is no function for the greater of two values that both databases know by one name.
        let newer = |column: &str| {
            format!(
                "{column} = CASE WHEN stream.{column} IS NULL OR excluded.{column} > stream.{column} \
                 OR excluded.{column} < stream.{column} - {AHEAD_MICROS} THEN excluded.{column} ELSE stream.{column} END"
            )
        };
        let tail = format!(
            "ON CONFLICT (route, location, kind) DO UPDATE SET {}, {}, {}",
            newer("slot"),
            newer("submitted_at"),
            newer("arrived_at")
        );
        fetch_values(conn, head, &tail, rows).await.map(drop)
    }
}
