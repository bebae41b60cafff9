//! What the audit reads of a ledger: the histories of notifications, and who else has their keys.

use super::{ASKED_AT_ONCE, LedgerFlow};
use crate::{
    clock,
    domain::{
        audit::{compare::History, sample::Reading},
        flow::rows::LedgerId,
    },
    ledger::{LedgerError, adapter::as_of, binds::Binds, flow::text_of, lookup::HistoryRows, sql::Parameter},
};
use chrono::{DateTime, Utc};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What the lookup gave for some ids, or some keys.
struct Asked {
    as_of: DateTime<Utc>,
    found: HashMap<LedgerId, History>,
    keys: HashMap<LedgerId, String>,
}

impl LedgerFlow {
    /// Reads the histories of these notifications, in one statement, and where keys are to be compared in a second one.
    pub(super) async fn read_histories(
        &self,
        notifications: &[LedgerId],
        with_keys: bool,
    ) -> Result<Reading, LedgerError> {
        if notifications.is_empty() {
            return Ok(Reading { as_of: clock::now(), found: HashMap::new() });
        }
        let ids: BTreeSet<String> = notifications.iter().map(text_of).collect();
        let (prepared, layout) = &self.adapter.lookup;
        let asks_by_key = with_keys && prepared.query.binds(Parameter::Keys) && layout.has_key();
        self.adapter
            .counted(async {
                let mut asked = self.ask_histories(ids, |ids| Binds { ids, ..Binds::default() }).await?;
                if asks_by_key && !asked.keys.is_empty() {
                    let keys = asked.keys.values().cloned().collect();
                    let sharing = self.ask_histories(keys, |keys| Binds { keys, ..Binds::default() }).await?;
                    let mut holders: HashMap<&str, HashSet<&LedgerId>> = HashMap::new();
                    for (id, key) in sharing.keys.iter().chain(&asked.keys) {
                        holders.entry(key).or_default().insert(id);
                    }
                    for (id, key) in &asked.keys {
                        let is_shared = holders.get(key.as_str()).is_some_and(|holders| holders.len() > 1);
                        if let Some(history) = asked.found.get_mut(id) {
                            history.shares_key = is_shared;
                        }
                    }
                }
                Ok(Reading { as_of: asked.as_of, found: asked.found })
            })
            .await
    }

    /// Asks in parts, each within the limit of rows.
    async fn ask_histories(
        &self,
        wanted: BTreeSet<String>,
        binds: impl Fn(Vec<String>) -> Binds,
    ) -> Result<Asked, LedgerError> {
        let adapter = &self.adapter;
        let (prepared, layout) = &adapter.lookup;
        let wanted: Vec<String> = wanted.into_iter().collect();
        let mut all = Asked { as_of: clock::now(), found: HashMap::new(), keys: HashMap::new() };
        let mut left: Vec<&[String]> = wanted.chunks(ASKED_AT_ONCE).collect();
        while let Some(part) = left.pop() {
            let mut rows = HistoryRows::new(prepared, layout, &adapter.words);
            let binds = Binds { overlap: adapter.overlap, ..binds(part.to_vec()) };
            let head = adapter.read_rows(prepared, &binds, &mut rows).await?;
            if head.truncated && part.len() > 1 {
                left.extend(part.chunks(part.len().div_ceil(2)));
                continue;
            }
            if head.truncated {
                let reason = format!(
                    "more than {} rows for one notification or key: what was cut off would look absent. Raise `max_rows`",
                    prepared.max_rows
                );
                return Err(LedgerError::Shape { query: prepared.name, reason });
            }
            adapter.note(&rows.notes);
            all.as_of = all.as_of.min(as_of(&head));
            all.found.extend(rows.found);
            all.keys.extend(rows.keys);
        }
        Ok(all)
    }
}
