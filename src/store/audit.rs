//! What the audit of ledgers keeps: its samples, and how often a history was found changed.

use super::{
    StoreError,
    database::{Access, transaction},
    fault::Fault,
    row::{instant, int, micros, text, word},
    sql::{SqlStore, start_of},
    statement::{Value, execute, fetch_in, fetch_values, values},
    sums::{self, COMPARED, Deltas, Family},
};
use crate::domain::audit::{
    compare::Change,
    sample::{Changes, Kept},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::AnyConnection;
use std::{collections::BTreeMap, time::Duration};

/// What readings of a sample came to, to be written with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSave {
    /// What changed of the sample.
    pub changes: Changes,
    /// How often which change was found.
    pub found: BTreeMap<Change, u64>,
    /// How many notifications were held against what was seen of them before.
    pub compared: u64,
}

/// What the audit of one ledger came to over some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSums {
    /// How often which change was found. What is missing is 0.
    pub found: BTreeMap<Change, u64>,
    /// How many notifications were held against what was seen of them before.
    pub compared: u64,
}

/// What the audit of ledgers keeps. Each call is one transaction.
#[async_trait]
pub trait AuditStore: Send + Sync + 'static {
    /// The sample of a ledger.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn audited(&self, ledger: &str) -> Result<Vec<Kept>, StoreError>;

    /// Writes down what readings of a sample came to, whole or not at all. `false` where somebody else follows the ledger by now: nothing is
    /// written.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn save_audit(
        &self,
        ledger: &str,
        owner: &str,
        now: DateTime<Utc>,
        save: &AuditSave,
    ) -> Result<bool, StoreError>;

    /// What the audits came to over [now - window, now), by ledger.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn audits(
        &self,
        window: Duration,
        now: DateTime<Utc>,
    ) -> Result<BTreeMap<String, AuditSums>, StoreError>;
}

#[async_trait]
impl AuditStore for SqlStore {
    async fn audited(&self, ledger: &str) -> Result<Vec<Kept>, StoreError> {
        let text = "SELECT unit, due, body FROM audit_sample WHERE ledger = $1 ORDER BY unit";
        let rows = self.database.query(text, values![ledger]).await?;
        let one = |row| -> Result<Kept, Fault> {
            Ok(Kept { key: self::text(row, 0)?, due: instant(int(row, 1)?)?, body: self::text(row, 2)? })
        };
        Ok(rows.iter().map(one).collect::<Result<_, _>>()?)
    }

    async fn save_audit(
        &self,
        ledger: &str,
        owner: &str,
        now: DateTime<Utc>,
        changes: &AuditSave,
    ) -> Result<bool, StoreError> {
        transaction!(self, Access::Write, work => save(&mut work, (ledger, owner), now, changes).await)
    }

    async fn audits(
        &self,
        window: Duration,
        now: DateTime<Utc>,
    ) -> Result<BTreeMap<String, AuditSums>, StoreError> {
        let from = start_of(window, now);
        let rows = transaction!(self, Access::Read, work => {
            sums::read(&mut work, Family::History, from, now).await
        })?;
        let mut all: BTreeMap<String, AuditSums> = BTreeMap::new();
        for row in &rows {
            let sums = all.entry(text(row, 0)?).or_default();
            let count = u64::try_from(int(row, 4)?).unwrap_or(0);
            if text(row, 2)? == COMPARED {
                sums.compared += count;
            } else {
                let change = word(row, 2, "a change of history", Change::from_word)?;
                *sums.found.entry(change).or_default() += count;
            }
        }
        Ok(all)
    }
}

async fn save(
    conn: &mut AnyConnection,
    (ledger, owner): (&str, &str),
    now: DateTime<Utc>,
    save: &AuditSave,
) -> Result<bool, Fault> {
    // It locks the row to the end of the transaction, so that nobody takes the lead in between.
    let text = "UPDATE follower SET owner = owner WHERE ledger = $1 AND owner = $2";
    if execute(conn, text, values![ledger, owner]).await? == 0 {
        return Ok(false);
    }
    let head = "DELETE FROM audit_sample WHERE ledger = $1 AND unit IN";
    fetch_in(conn, head, "", &[ledger.into()], &save.changes.gone).await?;
    let kept = save.changes.kept.iter();
    let kept: Vec<Vec<Value>> =
        kept.map(|one| values![ledger, one.key.as_str(), micros(one.due), one.body.as_str()]).collect();
    let head = "INSERT INTO audit_sample (ledger, unit, due, body)";
    let tail = "ON CONFLICT (ledger, unit) DO UPDATE SET due = excluded.due, body = excluded.body";
    fetch_values(conn, head, tail, kept).await?;
    let mut deltas = Deltas::default();
    for (change, count) in &save.found {
        deltas.audited(ledger, now, change.word(), *count);
    }
    deltas.audited(ledger, now, COMPARED, save.compared);
    deltas.write(conn).await?;
    Ok(true)
}
