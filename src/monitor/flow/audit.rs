//! The audit of a followed ledger's history, pass by pass: what is new is offered to the sample, and what is due of it is read again.

use super::pass::is_erased;
use crate::{
    config::ledger::Ledger,
    domain::{
        audit::{
            compare::Change,
            sample::{Judged, READ_PER_PASS, Sample, Settings},
        },
        disclosure::shown,
        flow::rows::LedgerId,
    },
    ledger::{FlowReader, LedgerError, flow::text_of},
    monitor::terminal::escaped,
    store::{AuditSave, Store, StoreError},
};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::Instant;

/// How long nothing is read after a reading failed.
const BACK_OFF: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

/// How many findings of a kind are told in an hour. The store counts them all.
const TOLD_PER_HOUR: u32 = 50;

/// A notification whose row is followed for good, and when it was due.
pub type Recent = (LedgerId, DateTime<Utc>);

/// Why a ledger could not be audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The ledger could not be read. Nothing follows from that.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whose audit it is.
#[derive(Clone, Copy)]
pub struct Audited<'a> {
    /// The ledger's name.
    pub ledger: &'a str,
    /// This process, which follows it.
    pub owner: &'a str,
    /// The ledger's configuration.
    pub config: &'a Ledger,
    /// Digests of notifications that were erased.
    pub erased: &'a BTreeSet<String>,
}

/// The audit of one ledger, as long as this process follows it.
#[derive(Debug, Default)]
pub struct Audit {
    /// The sample; nothing before it was loaded.
    sample: Option<Sample>,
    not_before: Option<Instant>,
    overdue: Option<u64>,
    /// When it was last told that it does not keep up.
    told_behind: Option<Instant>,
    /// By kind, since when findings are told, and how many were.
    told: BTreeMap<Change, (Instant, u32)>,
}

/// What the sample is told of a configuration.
pub fn settings(config: &Ledger) -> Settings {
    let words = serde_json::to_string(&(&config.statuses, &config.lookup)).unwrap_or_default();
    let meaning =
        Sha256::digest(words.as_bytes()).iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte));
    Settings {
        size: config.audit.sample as usize,
        ages: config.audit.ages.iter().map(|age| age.delta()).collect(),
        retention: config.retention.delta(),
        second_reading: config.overlap.delta().max(config.freshness.delta()),
        meaning,
    }
}

impl Audit {
    /// Begins anew from what is kept: somebody else followed in between, or something was erased.
    pub fn reload(&mut self) {
        (self.sample, self.overdue) = (None, None);
    }

    /// How many readings were due when the last pass had ended; nothing before the first one, and where nothing is sampled.
    pub const fn overdue(&self) -> Option<u64> {
        self.overdue
    }

    /// Offers what is new to the sample; where `is_end`, the follower has read to the end of the ledger, reads again what is due. Writes what
    /// came of it and tells what was found. `now` is our time before it.
    ///
    /// # Errors
    /// When the ledger can't be read or the store can't be used. What was due stays due.
    pub async fn pass(
        &mut self,
        audited: Audited<'_>,
        reader: &dyn FlowReader,
        store: &dyn Store,
        recent: &[Recent],
        is_end: bool,
        now: DateTime<Utc>,
    ) -> Result<Judged, AuditError> {
        // Whatever ends this early leaves nothing in memory that wasn't written.
        let mut sample = match self.sample.take() {
            Some(sample) => sample,
            None => {
                let kept = store.audited(audited.ledger).await?;
                let mut sample = Sample::restore(settings(audited.config), kept);
                sample.forget(|unit| is_erased(audited.erased, unit));
                sample
            }
        };
        for (notification, due) in recent {
            sample.offer(notification, *due, now);
        }
        let mut read = Ok(Judged::default());
        if is_end && self.not_before.is_none_or(|at| at <= Instant::now()) {
            let asked = sample.due(now, READ_PER_PASS);
            read = match reader.histories(&asked, audited.config.audit.keys).await {
                Ok(reading) => Ok(sample.judge(&asked, &reading, now)),
                Err(error) => {
                    self.not_before = Some(Instant::now() + BACK_OFF);
                    Err(error)
                }
            };
        }
        let judged = read.as_ref().ok();
        let mut found: BTreeMap<Change, u64> = BTreeMap::new();
        for (_, change, count) in judged.iter().flat_map(|judged| &judged.found) {
            *found.entry(*change).or_default() += count;
        }
        let save = AuditSave { changes: sample.changes(), found, compared: judged.map_or(0, |j| j.compared) };
        let is_written = save == AuditSave::default()
            || store.save_audit(audited.ledger, audited.owner, now, &save).await?;
        if !is_written {
            return Ok(Judged::default());
        }
        if audited.config.audit.sample > 0 {
            self.count_overdue(audited.ledger, sample.overdue(now));
        }
        self.sample = Some(sample);
        let judged = read?;
        for (notification, change, count) in &judged.found {
            self.tell(audited.ledger, notification, *change, *count);
        }
        Ok(judged)
    }

    /// What is due and was not read. More than one pass reads is told: it does not keep up, or readings fail.
    fn count_overdue(&mut self, ledger: &str, overdue: usize) {
        self.overdue = Some(overdue as u64);
        let is_new = self.told_behind.is_none_or(|told| told.elapsed() >= HOUR);
        if overdue > READ_PER_PASS && is_new {
            self.told_behind = Some(Instant::now());
            tracing::warn!(event = "ledger_audit_behind", ledger, overdue, per_refresh = READ_PER_PASS);
        }
    }

    fn tell(&mut self, ledger: &str, notification: &LedgerId, change: Change, count: u64) {
        let known = self.told.get(&change).copied().filter(|(since, _)| since.elapsed() < HOUR);
        let (since, told) = known.unwrap_or((Instant::now(), 0));
        self.told.insert(change, (since, told.saturating_add(1)));
        if told > TOLD_PER_HOUR {
            return;
        }
        if told == TOLD_PER_HOUR {
            tracing::warn!(
                event = "ledger_history_untold",
                ledger,
                kind = change.word(),
                "more changes of the history were found than are told in an hour: the sums have them all"
            );
            return;
        }
        let (notification_id, kind) = (escaped(&shown(&text_of(notification))), change.word());
        if change == Change::LateReversal {
            tracing::info!(event = "ledger_late_reversal", ledger, notification_id, count);
        } else {
            tracing::warn!(event = "ledger_history_violation", ledger, kind, notification_id, count);
        }
    }
}
