//! The past of a route, from the store: its judgements in the order in which they were given, whatever its length.

use crate::{
    alerts::backtest::Judged,
    domain::{
        canary::CanaryKind,
        route::{CanaryId, Location, RouteName},
        verdict::{ExpectedEnd, Verdict},
    },
    store::{Past, Store, StoreError},
};
use chrono::{DateTime, Utc};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// Canaries in one reading.
const PAGE: u32 = 500;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// The slot of the first canary; nothing: there is none.
    pub(super) begins: Option<DateTime<Utc>>,
    /// How many there were, at each location.
    pub(super) canaries: BTreeMap<Location, u64>,
    /// How many of them were confirmations.
    pub(super) confirmations: u64,
}

impl Read {
    fn count(&mut self, past: &Past) {
        self.begins.get_or_insert(past.slot);
        *self.canaries.entry(past.location.clone()).or_default() += 1;
        self.confirmations += u64::from(past.kind == CanaryKind::Confirmation);
    }

    /// How many canaries there were.
    pub(super) fn all(&self) -> u64 {
        self.canaries.values().sum()
    }
}

/// A judgement that waits until all that were given before it are known, in their order.
type Waiting = (DateTime<Utc>, DateTime<Utc>, CanaryId, Verdict, ExpectedEnd, Location);

/// Reads the canaries of a route with a slot in `[from, until)`. Tells each canary by its slot, and each judgement by its time, but none that was given
/// after `until`.
pub(super) async fn read(
    store: &dyn Store,
    route: &RouteName,
    (from, until): (DateTime<Utc>, DateTime<Utc>),
    mut see: impl FnMut(&Past),
    mut take: impl FnMut(&Location, &Judged),
) -> Result<Read, StoreError> {
    let mut read = Read::default();
    let mut waiting: BinaryHeap<Reverse<Waiting>> = BinaryHeap::new();
    let mut place: (DateTime<Utc>, Option<CanaryId>) = (from, None);
    loop {
        let page = store.past(route, place.0, place.1, PAGE).await?;
        for past in page.iter().filter(|past| past.slot < until) {
            read.count(past);
            see(past);
            let judged = past.judgements.iter().filter(|judgement| judgement.at <= until);
            waiting.extend(judged.map(|judgement| {
                let Past { slot, canary_id, expected, ref location, .. } = *past;
                Reverse((judgement.at, slot, canary_id, judgement.verdict, expected, location.clone()))
            }));
        }
        let last = page.last().filter(|last| page.len() == PAGE as usize && last.slot < until);
        // No canary is judged before its slot. So nothing that is still to be read was judged before the last slot.
        while let Some(Reverse((at, ..))) = waiting.peek()
            && last.is_none_or(|last| *at < last.slot)
            && let Some(Reverse((at, slot, canary, verdict, expected, location))) = waiting.pop()
        {
            take(&location, &Judged { at, place: (slot, canary), verdict, expected });
        }
        match last {
            Some(last) => place = (last.slot, Some(last.canary_id)),
            None => return Ok(read),
        }
    }
}
