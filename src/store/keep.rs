//! Taking over, erasing and pruning canaries.

use super::{
    ErasureTarget, Horizon, Lease, RENEWED_BEFORE, Stored,
    database::Dialect,
    fault::Fault,
    levels::LEVELS,
    row::{canary_columns, maybe_int, micros, stored, text},
    statement::{Value, execute, fetch, fetch_in, values},
    sums::{Family, kept_name},
};
use crate::domain::route::Location;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::AnyConnection;

/// Takes over what another process left, and renews what is the owner's own. What it took first, nobody else takes.
pub(super) async fn take_over(
    conn: &mut AnyConnection,
    dialect: Dialect,
    location: &Location,
    now: DateTime<Utc>,
    lease: &Lease,
    limit: u32,
) -> Result<Vec<Stored>, Fault> {
    let left = format!(
        "SELECT canary_id FROM canary WHERE location = $3 AND lease_until <= $6 AND (lease_until <= $4 OR lease_owner = $1) \
         ORDER BY lease_until LIMIT $5 {}",
        dialect.for_update_skip_locked()
    );
    let text = format!(
        "UPDATE canary SET lease_owner = $1, lease_until = $2, version = version + 1 WHERE canary_id IN ({left}) \
         RETURNING {}",
        canary_columns()
    );
    let values = values![
        lease.owner.as_str(),
        micros(lease.until),
        location.as_str(),
        micros(now),
        i64::from(limit),
        micros(now + RENEWED_BEFORE),
    ];
    let rows = fetch(conn, text, values).await?;
    stored(conn, &rows).await
}

/// Erases a canary, or all that were accepted under a notification id. The key stays: it is made of the route, the location, the kind
/// and the slot alone, and without it the slot could get a second canary.
pub(super) async fn erase(
    conn: &mut AnyConnection,
    dialect: Dialect,
    target: &ErasureTarget,
) -> Result<bool, Fault> {
    let (condition, id) = match target {
        ErasureTarget::Canary(id) => ("canary_id = $1", id.to_string()),
        ErasureTarget::Notification(id) => (
            "canary_id IN (SELECT canary_id FROM notification WHERE notification_id = $1)",
            id.as_str().to_owned(),
        ),
    };
    let lock = dialect.for_update();
    let text_ids = format!("SELECT canary_id FROM canary WHERE {condition} ORDER BY canary_id {lock}");
    let found = fetch(conn, text_ids, values![id]).await?;
    let ids = found.iter().map(|row| text(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let head = "DELETE FROM event WHERE canary_id IN";
    // Verdicts and kinds of contradiction name nobody; without them the sums would not be explained.
    fetch_in(conn, head, "AND kind NOT IN ('settled', 'corrected', 'disagreed')", &[], &ids).await?;
    fetch_in(conn, "DELETE FROM notification WHERE canary_id IN", "", &[], &ids).await?;
    let head = "UPDATE canary SET erased = 1, version = version + 1, receipts = 0, traceparent = '', parent = NULL, \
                next_look = NULL, lease_owner = NULL, lease_until = NULL WHERE canary_id IN";
    fetch_in(conn, head, "", &[], &ids).await?;
    Ok(!ids.is_empty())
}

/// Removes closed canaries beyond the horizon, at most `limit`. What was never closed, because its location is served no more, goes
/// with the sums by hour.
pub(super) async fn prune_canaries(
    conn: &mut AnyConnection,
    dialect: Dialect,
    horizon: &Horizon,
    limit: u32,
) -> Result<u64, Fault> {
    let text = format!(
        "DELETE FROM canary WHERE canary_id IN (SELECT canary_id FROM canary \
         WHERE slot < $1 AND ((next_look IS NULL AND lease_until IS NULL) OR slot < $2) ORDER BY slot LIMIT $3 {})",
        dialect.for_update_skip_locked()
    );
    execute(conn, text, values![micros(horizon.canaries), micros(horizon.hours), i64::from(limit)]).await
}

/// Removes the oldest sums beyond the horizon: one bucket of each level and family, so that no transaction is long.
pub(super) async fn prune_sums(conn: &mut AnyConnection, horizon: &Horizon) -> Result<u64, Fault> {
    let mut removed = 0;
    for level in LEVELS {
        let before = level.bucket(micros(if level.is_fine { horizon.minutes } else { horizon.hours }));
        // Noted first, in the same transaction: no window reads a level that is half gone.
        let text = "UPDATE counter SET value = $1 WHERE name = $2 AND value < $1";
        execute(conn, text, values![before, kept_name(level.seconds)]).await?;
        for family in Family::ALL.map(Family::word) {
            let text = "SELECT MIN(bucket) FROM sums WHERE family = $1 AND level = $2";
            let rows = fetch(conn, text, values![family, level.seconds]).await?;
            let oldest = rows.first().map_or(Ok(None), |row| maybe_int(row, 0))?;
            if let Some(oldest) = oldest.filter(|oldest| *oldest < before) {
                let text = "DELETE FROM sums WHERE family = $1 AND level = $2 AND bucket = $3";
                removed += execute(conn, text, values![family, level.seconds, oldest]).await?;
            }
        }
    }
    Ok(removed)
}

/// Removes what else is beyond the horizon. All of it is little.
pub(super) async fn prune_the_rest(conn: &mut AnyConnection, horizon: &Horizon) -> Result<(), Fault> {
    // What was kept is as old as its last writing: who stops gracefully has no lease any more, and comes again.
    const UNFOLLOWED: &str = "lease_until < $1 AND COALESCE(saved_at, 0) < $1";
    let [units, strays, cells, samples] =
        ["follower_unit", "follower_stray", "follower_cell", "audit_sample"].map(|table| {
            format!("DELETE FROM {table} WHERE ledger IN (SELECT ledger FROM follower WHERE {UNFOLLOWED})")
        });
    let followers = format!("DELETE FROM follower WHERE {UNFOLLOWED}");
    let bounds: [(&str, DateTime<Utc>); 10] = [
        // The hour that runs still counts, however short canaries are kept.
        ("DELETE FROM cap WHERE clock_hour < $1", horizon.canaries - TimeDelta::hours(2)),
        ("DELETE FROM pause WHERE ends_at < $1", horizon.canaries),
        ("DELETE FROM operation WHERE at < $1", horizon.hours),
        ("DELETE FROM stream WHERE slot < $1", horizon.hours),
        ("DELETE FROM follower_erasure WHERE at < $1", horizon.canaries),
        (&units, horizon.hours),
        (&strays, horizon.hours),
        (&cells, horizon.hours),
        (&samples, horizon.hours),
        // The last, since those before it ask for its rows.
        (&followers, horizon.hours),
    ];
    for (text, before) in bounds {
        let values: Vec<Value> = values![micros(before)];
        execute(conn, text, values).await?;
    }
    Ok(())
}
