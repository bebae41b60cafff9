//! The followers' part of the store, on a database of SQL.

use super::{
    Followed, FollowedCell, FollowedErasure, FollowedStray, FollowedUnit, FollowerSave, FollowerStore, Lead,
    erasure_digest,
};
use crate::store::{
    StoreError,
    database::{Access, Database, Dialect, transaction},
    fault::Fault,
    row::{instant, int, maybe_instant, maybe_text, micros, text},
    sql::SqlStore,
    statement::{Value, execute, fetch, fetch_in, fetch_values, values},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::{AnyConnection, any::AnyRow};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// Limit on writing one pass down. A page of history that is all pending is thousands of rows: a shorter limit might never be kept, and
/// the same page would be read for ever.
const SAVE_LIMIT: Duration = Duration::from_secs(20);

/// How many units, strays or cells one query gives when a follower is loaded.
const LOADED_AT_ONCE: usize = 20_000;

/// `erased`, and whoever leads, ask so.
const ERASED: &str = "SELECT digest FROM follower_erasure";

#[async_trait]
impl FollowerStore for SqlStore {
    async fn lead(
        &self,
        ledger: &str,
        owner: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Lead, StoreError> {
        let dialect = self.database.dialect;
        transaction!(self, Access::Write, work => lead(&mut work, dialect, (ledger, owner), now, until).await)
    }

    async fn keep_lead(&self, ledger: &str, owner: &str, until: DateTime<Utc>) -> Result<bool, StoreError> {
        let text = "UPDATE follower SET lease_until = $3 WHERE ledger = $1 AND owner = $2";
        let values = values![ledger, owner, micros(until)];
        transaction!(self, Access::Write, work => execute(&mut work, text, values).await.map(|rows| rows > 0))
    }

    async fn step_down(&self, ledger: &str, owner: &str) -> Result<(), StoreError> {
        let text = "UPDATE follower SET owner = '', lease_until = 0 WHERE ledger = $1 AND owner = $2";
        transaction!(self, Access::Write, work => execute(&mut work, text, values![ledger, owner]).await.map(drop))
    }

    async fn followed(&self, ledger: &str) -> Result<Followed, StoreError> {
        Ok(followed(&self.database, ledger).await?)
    }

    async fn followed_units(&self, ledger: &str, after: &str) -> Result<Vec<FollowedUnit>, StoreError> {
        let limit = i64::try_from(LOADED_AT_ONCE).unwrap_or(i64::MAX);
        let text = "SELECT unit, route, due, body FROM follower_unit WHERE ledger = $1 AND unit > $2 ORDER BY unit LIMIT $3";
        let rows = self.database.query(text, values![ledger, after, limit]).await?;
        Ok(rows.iter().map(unit_of).collect::<Result<_, Fault>>()?)
    }

    async fn followed_saved_at(&self, ledger: &str) -> Result<Option<DateTime<Utc>>, StoreError> {
        let text = "SELECT saved_at FROM follower WHERE ledger = $1";
        let rows = self.database.query(text, values![ledger]).await?;
        Ok(rows.first().map(|row| maybe_instant(row, 0)).transpose()?.flatten())
    }

    async fn save_followed(
        &self,
        ledger: &str,
        owner: &str,
        now: DateTime<Utc>,
        changes: &FollowerSave,
    ) -> Result<bool, StoreError> {
        Database::within(SAVE_LIMIT, async {
            let mut work = self.database.begin(Access::Write).await?;
            let result = save(&mut work, (ledger, owner), now, changes).await;
            self.database.finish(work, result).await
        })
        .await
        .map_err(StoreError::from)
    }

    async fn erased(&self) -> Result<BTreeSet<String>, StoreError> {
        let rows = self.database.query(ERASED, vec![]).await?;
        Ok(rows.iter().map(|row| text(row, 0)).collect::<Result<_, Fault>>()?)
    }

    async fn canaries_among(&self, notification_ids: &[String]) -> Result<BTreeSet<String>, StoreError> {
        let head = "SELECT DISTINCT notification_id FROM notification WHERE notification_id IN";
        transaction!(self, Access::Read, work => {
            let rows = fetch_in(&mut work, head, "", &[], notification_ids).await?;
            rows.iter().map(|row| text(row, 0)).collect()
        })
    }

    async fn oldest_canary(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        transaction!(self, Access::Read, work => {
            let rows = fetch(&mut work, "SELECT slot FROM canary ORDER BY slot LIMIT 1", values![]).await?;
            rows.first().map(|row| instant(int(row, 0)?)).transpose()
        })
    }

    async fn erase_followed(&self, which: &FollowedErasure, now: DateTime<Utc>) -> Result<u64, StoreError> {
        transaction!(self, Access::Write, work => erase(&mut work, which, now).await)
    }
}

async fn lead(
    conn: &mut AnyConnection,
    dialect: Dialect,
    (ledger, owner): (&str, &str),
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<Lead, Fault> {
    let text = "INSERT INTO follower (ledger, owner, lease_until) VALUES ($1, '', 0) ON CONFLICT (ledger) DO NOTHING";
    execute(conn, text, values![ledger]).await?;
    let text = format!("SELECT owner, lease_until FROM follower WHERE ledger = $1 {}", dialect.for_update());
    let rows = fetch(conn, text, values![ledger]).await?;
    let Some(row) = rows.first() else { return Err(Fault::corrupt("follower", "its row went")) };
    let (leader, leads_until) = (self::text(row, 0)?, int(row, 1)?);
    let is_ours = leader == owner;
    if !is_ours && leads_until > micros(now) {
        return Ok(Lead::Theirs);
    }
    let text = "UPDATE follower SET owner = $2, lease_until = $3 WHERE ledger = $1";
    execute(conn, text, values![ledger, owner, micros(until)]).await?;
    let rows = fetch(conn, ERASED, vec![]).await?;
    let erased = rows.iter().map(|row| self::text(row, 0)).collect::<Result<_, _>>()?;
    // Who had it in between, if only for a moment, left another owner behind, or none.
    Ok(Lead::Ours { is_new: !is_ours, erased })
}

async fn followed(database: &Database, ledger: &str) -> Result<Followed, Fault> {
    let text = "SELECT position, saved_at FROM follower WHERE ledger = $1";
    let rows = database.query(text, values![ledger]).await?;
    let Some(row) = rows.first() else { return Ok(Followed::default()) };
    let mut all =
        Followed { position: maybe_text(row, 0)?, saved_at: maybe_instant(row, 1)?, ..Followed::default() };
    // In parts, each within the limit of a call.
    let limit = i64::try_from(LOADED_AT_ONCE).unwrap_or(i64::MAX);
    loop {
        let (unit, attempt) = all.strays.last().map_or(("", ""), |stray| (&stray.unit, &stray.attempt));
        let text = "SELECT unit, attempt, body FROM follower_stray WHERE ledger = $1 AND (unit, attempt) > ($2, $3) \
                    ORDER BY unit, attempt LIMIT $4";
        let rows = database.query(text, values![ledger, unit, attempt, limit]).await?;
        let is_last = rows.len() < LOADED_AT_ONCE;
        all.strays.extend(rows.iter().map(stray_of).collect::<Result<Vec<_>, _>>()?);
        if is_last {
            break;
        }
    }
    loop {
        let (level, bucket, route) = all
            .cells
            .last()
            .map_or((0, 0, ""), |cell| (cell.level, micros(cell.bucket), cell.route.as_str()));
        let text = "SELECT level, bucket, route, body FROM follower_cell WHERE ledger = $1 AND (level, bucket, route) > ($2, $3, $4) \
                    ORDER BY level, bucket, route LIMIT $5";
        let rows = database.query(text, values![ledger, level, bucket, route, limit]).await?;
        let is_last = rows.len() < LOADED_AT_ONCE;
        all.cells.extend(rows.iter().map(cell_of).collect::<Result<Vec<_>, _>>()?);
        if is_last {
            return Ok(all);
        }
    }
}

fn unit_of(row: &AnyRow) -> Result<FollowedUnit, Fault> {
    Ok(FollowedUnit {
        unit: text(row, 0)?,
        route: text(row, 1)?,
        due: instant(int(row, 2)?)?,
        body: text(row, 3)?,
    })
}

fn stray_of(row: &AnyRow) -> Result<FollowedStray, Fault> {
    Ok(FollowedStray { unit: text(row, 0)?, attempt: text(row, 1)?, body: text(row, 2)? })
}

fn cell_of(row: &AnyRow) -> Result<FollowedCell, Fault> {
    Ok(FollowedCell {
        level: int(row, 0)?,
        bucket: instant(int(row, 1)?)?,
        route: text(row, 2)?,
        body: text(row, 3)?,
    })
}

async fn save(
    conn: &mut AnyConnection,
    (ledger, owner): (&str, &str),
    now: DateTime<Utc>,
    save: &FollowerSave,
) -> Result<bool, Fault> {
    let began = Instant::now();
    // It locks the row to the end of the transaction, so that nobody takes the lead in between. That the lease has ended is no matter as
    // long as nobody has taken it.
    let text = "UPDATE follower SET position = $3, saved_at = $4 WHERE ledger = $1 AND owner = $2";
    if execute(conn, text, values![ledger, owner, save.position.as_str(), micros(now)]).await? == 0 {
        return Ok(false);
    }
    if save.is_fresh {
        for table in ["follower_unit", "follower_stray", "follower_cell"] {
            execute(conn, format!("DELETE FROM {table} WHERE ledger = $1"), values![ledger]).await?;
        }
    }
    let head = "DELETE FROM follower_unit WHERE ledger = $1 AND unit IN";
    fetch_in(conn, head, "", &[ledger.into()], &save.gone).await?;
    let units: Vec<Vec<Value>> = save
        .units
        .iter()
        .map(|unit| {
            values![ledger, unit.unit.as_str(), unit.route.as_str(), micros(unit.due), unit.body.as_str()]
        })
        .collect();
    let head = "INSERT INTO follower_unit (ledger, unit, route, due, body)";
    let tail = "ON CONFLICT (ledger, unit) DO UPDATE SET route = excluded.route, due = excluded.due, body = excluded.body";
    fetch_values(conn, head, tail, units).await?;
    for (unit, attempt) in &save.found {
        let text = "DELETE FROM follower_stray WHERE ledger = $1 AND unit = $2 AND attempt = $3";
        execute(conn, text, values![ledger, unit.as_str(), attempt.as_str()]).await?;
    }
    let strays: Vec<Vec<Value>> = save
        .strays
        .iter()
        .map(|stray| values![ledger, stray.unit.as_str(), stray.attempt.as_str(), stray.body.as_str()])
        .collect();
    let head = "INSERT INTO follower_stray (ledger, unit, attempt, body)";
    let tail = "ON CONFLICT (ledger, unit, attempt) DO UPDATE SET body = excluded.body";
    fetch_values(conn, head, tail, strays).await?;
    let cells: Vec<Vec<Value>> = save
        .cells
        .iter()
        .map(|cell| values![ledger, cell.level, micros(cell.bucket), cell.route.as_str(), cell.body.as_str()])
        .collect();
    let head = "INSERT INTO follower_cell (ledger, level, bucket, route, body)";
    let tail = "ON CONFLICT (ledger, level, bucket, route) DO UPDATE SET body = excluded.body";
    fetch_values(conn, head, tail, cells).await?;
    for (level, before) in &save.forget {
        let text = "DELETE FROM follower_cell WHERE ledger = $1 AND level = $2 AND bucket < $3";
        execute(conn, text, values![ledger, *level, micros(*before)]).await?;
    }
    // The lead could not be kept meanwhile, as its row is locked.
    let took = i64::try_from(began.elapsed().as_micros()).unwrap_or(0);
    let text = "UPDATE follower SET lease_until = lease_until + $2 WHERE ledger = $1";
    execute(conn, text, values![ledger, took]).await?;
    Ok(true)
}

async fn erase(conn: &mut AnyConnection, which: &FollowedErasure, now: DateTime<Utc>) -> Result<u64, Fault> {
    let text = "INSERT INTO follower_erasure (digest, at) VALUES ($1, $2) ON CONFLICT (digest) DO UPDATE SET at = excluded.at";
    execute(conn, text, values![erasure_digest(&which.notification_id), micros(now)]).await?;
    let mut gone = 0;
    for table in ["follower_unit", "follower_stray", "audit_sample"] {
        for key in &which.keys {
            let text = format!("DELETE FROM {table} WHERE unit = $1");
            gone += execute(conn, text, values![key.as_str()]).await?;
        }
        for prefix in &which.prefixes {
            // By characters, since a pattern would give some of them a meaning.
            let text = format!("DELETE FROM {table} WHERE SUBSTR(unit, 1, LENGTH($1)) = $1");
            gone += execute(conn, text, values![prefix.as_str()]).await?;
        }
    }
    Ok(gone)
}
