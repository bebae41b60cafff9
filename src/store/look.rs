//! A look at the store: its clock and the pauses in force, in one question.

use super::{
    Pause,
    control::{self, pause_at},
    database::{Access, CALL_LIMIT, Database, Dialect},
    fault::Fault,
    row::{instant, int, maybe_text, micros},
    statement::fetch_simple,
};
use crate::clock::{self, Reading, Skew};
use chrono::{TimeDelta, Utc};
use sqlx::{AnyConnection, Row, any::AnyRow};
use std::time::Instant;

/// Times that lie closer together than this are the same to everything that is done with them: loops wait for longer.
const SAME_TIME: TimeDelta = TimeDelta::seconds(1);

/// PostgreSQL's clock, in microseconds, and the pauses that it finds in force. A row without a pause is there for the clock alone.
const PAUSES_AND_CLOCK: &str = "SELECT clock.at, route, owner, reason, ends_at \
     FROM (SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS at) clock \
     LEFT JOIN pause ON ends_at > clock.at ORDER BY route";

/// PostgreSQL's clock alone, in microseconds.
const CLOCK: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";

/// What a look at the store shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The pauses in force now.
    pub pauses: Vec<Pause>,
    /// How far the store's clock is ahead of the system's. Nothing for a file: it has no clock.
    pub skew: Option<Skew>,
}

/// Asks in one round trip; the first column of the first row is PostgreSQL's clock.
async fn ask(conn: &mut AnyConnection, text: &str) -> Result<(Vec<AnyRow>, Reading), Fault> {
    let (asked_at, asked) = (Utc::now(), Instant::now());
    let rows = fetch_simple(conn, text).await?;
    let answered = Instant::now();
    let said = rows.first().map_or(Err(Fault::corrupt("the clock", "no row")), |row| int(row, 0))?;
    Ok((rows, Reading { asked, asked_at, answered, said: instant(said)? }))
}

/// At the first contact: from now on it is as late as the store says. Where that is another time than before, what was asked for by
/// the time of before must not be done.
pub(super) async fn set_clock(conn: &mut AnyConnection) -> Result<Result<(), TimeDelta>, Fault> {
    let (_, reading) = ask(conn, CLOCK).await?;
    let moved = clock::learn(&reading);
    Ok(if moved.abs() > SAME_TIME { Err(moved) } else { Ok(()) })
}

impl Database {
    /// Looks at the pauses, and at the clock where the store has one of its own.
    pub(super) async fn look(&self) -> Result<Look, Fault> {
        match self.look_once().await {
            // It asks for nothing by any time, so that it may simply ask again.
            Err(Fault::ClockMoved(_)) => self.look_once().await,
            other => other,
        }
    }

    async fn look_once(&self) -> Result<Look, Fault> {
        if self.dialect == Dialect::Sqlite {
            let rows = self.query(control::PAUSES, super::statement::values![micros(clock::now())]).await?;
            let pauses = rows.iter().map(control::pause_of).collect::<Result<_, _>>()?;
            return Ok(Look { pauses, skew: None });
        }
        let (rows, reading) = Self::within(CALL_LIMIT, async {
            let mut work = self.begin(Access::Read).await?;
            let result = ask(&mut work, PAUSES_AND_CLOCK).await;
            self.finish(work, result).await
        })
        .await?;
        clock::learn(&reading);
        let is_pause = |row: &&AnyRow| row.len() > 1 && !matches!(maybe_text(row, 1), Ok(None));
        let pauses =
            rows.iter().filter(is_pause).map(|row| pause_at(row, 1)).collect::<Result<Vec<Pause>, _>>()?;
        Ok(Look { pauses, skew: Some(reading.skew()) })
    }
}
