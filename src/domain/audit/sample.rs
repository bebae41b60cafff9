//! The sample: which notifications are read again, when, and what is held of each.
//!
//! The time that is looked back over is cut into equal parts. Of the notifications that were due in a part those with the least digests of
//! their ids are in the sample: always the same, whoever follows, in whatever order they came. So it is bounded, even over time, and nobody
//! can tell beforehand what will not be looked at again.

use super::compare::{Change, Finding, Held, History};
use crate::domain::flow::{
    key::UnitKey,
    rows::{LedgerId, UnitId},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many parts the time is cut into that is looked back over.
const PARTS: usize = 24;

/// The most notifications that are read again in one pass: in one statement, and a second one by their keys.
pub const READ_PER_PASS: usize = 50;

/// How many of them may fall due between two passes by the settings alone: second readings come on top.
const PLANNED_PER_PASS: i64 = 40;

/// How long before the end of retention nothing is concluded any more: our clock and the ledger's are not one.
const MARGIN: TimeDelta = TimeDelta::seconds(60);

/// What a sample is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most notifications in it. Zero: none is looked at.
    pub size: usize,
    /// The ages, since a notification was due, at which it is read; ascending. The first reading is what the others are held against.
    pub ages: Vec<TimeDelta>,
    /// How long after it was due a notification surely stays in the ledger, with its attempts.
    pub retention: TimeDelta,
    /// How long after something was missing or other than before it is read again.
    pub second_reading: TimeDelta,
    /// A digest of what gives the ledger's rows their meaning. What was held under another one is not held against anything.
    pub meaning: u64,
}

impl Settings {
    /// The ages that are below retention.
    fn ages(&self) -> impl Iterator<Item = i64> + '_ {
        let before = self.retention - MARGIN;
        self.ages.iter().filter(move |age| **age < before).map(|age| micros_of(*age))
    }

    fn last_age(&self) -> Option<i64> {
        self.ages().last()
    }

    /// The length of one part of the time, in microseconds.
    fn part(&self) -> i64 {
        (self.last_age().unwrap_or(0) / i64::try_from(PARTS).unwrap_or(1)).max(1)
    }

    /// The most notifications of one part: so many parts and one, since they don't begin with the time that is looked back over.
    fn most_of_part(&self) -> usize {
        if self.size == 0 { 0 } else { (self.size / (PARTS + 1)).max(1) }
    }

    /// How many readings fall due within this time on a ledger that fills the sample, and how many of them can be made in a pass.
    pub fn readings_in(&self, span: TimeDelta) -> (i64, i64) {
        (self.readings_of(self.most_of_part(), span), PLANNED_PER_PASS)
    }

    /// The greatest sample whose readings can be made where there is a pass each time that this has gone by; 0 where none can.
    pub fn largest_for(&self, span: TimeDelta) -> usize {
        let ages = i64::try_from(self.ages().count()).unwrap_or(i64::MAX).max(1);
        let of_one = ages.saturating_mul(micros_of(span)).max(1);
        let most = PLANNED_PER_PASS.saturating_mul(self.part()) / of_one;
        usize::try_from(most).unwrap_or(0).saturating_mul(PARTS + 1)
    }

    /// So many are in each part of the time, and each is read at each age.
    fn readings_of(&self, most_of_part: usize, span: TimeDelta) -> i64 {
        let ages = i64::try_from(self.ages().count()).unwrap_or(i64::MAX);
        let most = i64::try_from(most_of_part).unwrap_or(i64::MAX).saturating_mul(ages);
        let part = i128::from(self.part());
        let readings = (i128::from(most) * i128::from(micros_of(span)) + part - 1) / part;
        i64::try_from(readings).unwrap_or(i64::MAX)
    }

    /// How far back a notification may have been due that is worth taking; nothing where none is looked at.
    pub fn looks_back(&self) -> Option<TimeDelta> {
        self.last_age().filter(|_| self.size > 0).map(TimeDelta::microseconds)
    }
}

/// One notification of the sample, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The key of the notification.
    pub key: String,
    /// When it was due.
    pub due: DateTime<Utc>,
    /// What is held of it.
    pub body: String,
}

/// What has to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What is new or has changed.
    pub kept: Vec<Kept>,
    /// The keys of what is in the sample no more.
    pub gone: Vec<String>,
}

/// What a reading says of the notifications that it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Our time before the first statement, less the ledger's known lag.
    pub as_of: DateTime<Utc>,
    /// By notification; what isn't in the ledger isn't here.
    pub found: HashMap<LedgerId, History>,
}

/// What came of holding readings against what was seen before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// What was found, with how many attempts each is of.
    pub found: Vec<(LedgerId, Change, u64)>,
    /// How many notifications were held against an earlier reading.
    pub compared: u64,
}

/// One notification of the sample. Times are microseconds since 1970.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    #[serde(skip)]
    due: i64,
    #[serde(skip)]
    is_kept: bool,
    next: i64,
    as_of: i64,
    meaning: u64,
    held: Option<Held>,
    doubtful: BTreeSet<Finding>,
}

/// The sample of one ledger.
#[derive(Debug)]
pub struct Sample {
    settings: Settings,
    entries: BTreeMap<UnitKey, Entry>,
    /// The notifications of each part of the time, by their digests.
    parts: BTreeMap<i64, BTreeSet<(u64, UnitKey)>>,
    changed: BTreeSet<UnitKey>,
    gone: Vec<String>,
}

impl Sample {
    /// Goes on from what was kept. What can't be read of it leaves the sample.
    pub fn restore(settings: Settings, kept: Vec<Kept>) -> Self {
        let (entries, parts, changed) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut sample = Self { settings, entries, parts, changed, gone: Vec::new() };
        for one in kept {
            let entry = serde_json::from_str::<Entry>(&one.body).ok();
            match (UnitKey::from_text(&one.key), entry) {
                (Ok(key), Some(entry)) => {
                    let entry = Entry { due: one.due.timestamp_micros(), is_kept: true, ..entry };
                    sample.part_of(entry.due).insert((key.fingerprint(), key.clone()));
                    sample.entries.insert(key, entry);
                }
                _ => sample.gone.push(one.key),
            }
        }
        sample.shrink();
        sample
    }

    /// Offers a notification whose row is followed for good. Customers' only: canaries are looked at in full elsewhere. One that is put off
    /// until later than now is left out.
    pub fn offer(&mut self, notification: &LedgerId, due: DateTime<Utc>, now: DateTime<Utc>) {
        let (due, now) = (due.timestamp_micros(), now.timestamp_micros());
        let (Some(first), Some(last)) = (self.settings.ages().next(), self.settings.last_age()) else {
            return;
        };
        let most = self.settings.most_of_part();
        let next = due.saturating_add(first).max(now);
        // A first reading that no other is held against tells nothing.
        if due > now || next >= due.saturating_add(last) || most == 0 {
            return;
        }
        let key = key_of(notification);
        if self.entries.contains_key(&key) {
            return;
        }
        let place = (key.fingerprint(), key.clone());
        let part = self.part_of(due);
        if part.len() >= most {
            if part.last().is_none_or(|greatest| *greatest < place) {
                return;
            }
            if let Some((_, greatest)) = part.last().cloned() {
                self.remove(&greatest);
            }
        }
        self.part_of(due).insert(place);
        let entry = Entry {
            due,
            is_kept: false,
            next,
            as_of: i64::MIN,
            meaning: self.settings.meaning,
            held: None,
            doubtful: BTreeSet::new(),
        };
        self.entries.insert(key.clone(), entry);
        self.changed.insert(key);
        self.shrink();
    }

    /// Takes a notification out of the sample.
    pub fn forget(&mut self, is_meant: impl Fn(&UnitId) -> bool) {
        let meant: Vec<UnitKey> = self.entries.keys().filter(|key| is_meant(&key.unit())).cloned().collect();
        meant.iter().for_each(|key| self.remove(key));
    }

    /// The notifications to read now, at most `limit`, the longest due first. Whatever may be gone for good reason leaves the sample.
    pub fn due(&mut self, now: DateTime<Utc>, limit: usize) -> Vec<LedgerId> {
        let before = (now + MARGIN - self.settings.retention).timestamp_micros();
        let expired =
            self.entries.iter().filter(|(_, entry)| entry.due <= before).map(|(key, _)| key.clone());
        expired.collect::<Vec<_>>().iter().for_each(|key| self.remove(key));
        let now = now.timestamp_micros();
        let due =
            self.entries.iter().filter(|(_, entry)| entry.next <= now).map(|(key, entry)| (entry.next, key));
        let mut due: Vec<(i64, &UnitKey)> = due.collect();
        due.sort_unstable();
        due.into_iter().take(limit).map(|(_, key)| key.unit().notification).collect()
    }

    /// Holds a reading of these notifications against what was seen of them before. `now` is our time before it.
    pub fn judge(&mut self, asked: &[LedgerId], reading: &Reading, now: DateTime<Utc>) -> Judged {
        let mut judged = Judged::default();
        for notification in asked {
            let key = key_of(notification);
            let found = self.judge_one(&key, reading, notification, now, &mut judged.compared);
            let mut counts: BTreeMap<Change, u64> = BTreeMap::new();
            for one in found {
                *counts.entry(one.change).or_default() += 1;
            }
            judged
                .found
                .extend(counts.into_iter().map(|(change, count)| (notification.clone(), change, count)));
        }
        judged
    }

    fn judge_one(
        &mut self,
        key: &UnitKey,
        reading: &Reading,
        notification: &LedgerId,
        now: DateTime<Utc>,
        compared: &mut u64,
    ) -> BTreeSet<Finding> {
        let (now, as_of) = (now.timestamp_micros(), reading.as_of.timestamp_micros());
        let again = now.saturating_add(micros_of(self.settings.second_reading));
        let Some(entry) = self.entries.get_mut(key) else { return BTreeSet::new() };
        self.changed.insert(key.clone());
        if as_of < entry.as_of {
            // It shows less than what was read before.
            entry.next = again;
            return BTreeSet::new();
        }
        let is_first = entry.held.is_none();
        let is_same = entry.meaning == self.settings.meaning;
        let mut held = entry.held.take().filter(|_| is_same).unwrap_or_default();
        let seen = reading.found.get(notification);
        let (mut certain, doubtful) = Held::judge(held.compare(seen), &entry.doubtful);
        held.hold(seen, &doubtful);
        if !is_first && !is_same {
            // What another configuration called otherwise was changed by nobody.
            certain.clear();
        }
        *compared += u64::from(!is_first && is_same);
        entry.held = Some(held);
        entry.as_of = as_of;
        entry.meaning = self.settings.meaning;
        let next_age = self.settings.ages().map(|age| entry.due.saturating_add(age)).find(|at| *at > now);
        let next = if doubtful.is_empty() { next_age } else { Some(again) };
        entry.doubtful = doubtful;
        match next {
            Some(next) => entry.next = next,
            None => self.remove(key),
        }
        certain
    }

    /// What has to be written since this was last asked.
    pub fn changes(&mut self) -> Changes {
        let mut changes = Changes { kept: Vec::new(), gone: std::mem::take(&mut self.gone) };
        for key in std::mem::take(&mut self.changed) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            entry.is_kept = true;
            changes.kept.push(Kept {
                key: key.to_text(),
                due: DateTime::from_timestamp_micros(entry.due).unwrap_or(DateTime::UNIX_EPOCH),
                // Numbers and words always are JSON.
                body: serde_json::to_string(entry).unwrap_or_default(),
            });
        }
        changes
    }

    /// How many notifications are due to be read at this moment.
    pub fn overdue(&self, now: DateTime<Utc>) -> usize {
        let now = now.timestamp_micros();
        self.entries.values().filter(|entry| entry.next <= now).count()
    }

    /// How many notifications are in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn part_of(&mut self, due: i64) -> &mut BTreeSet<(u64, UnitKey)> {
        self.parts.entry(due.div_euclid(self.settings.part())).or_default()
    }

    fn remove(&mut self, key: &UnitKey) {
        let Some(entry) = self.entries.remove(key) else { return };
        let number = entry.due.div_euclid(self.settings.part());
        if let Some(part) = self.parts.get_mut(&number) {
            part.remove(&(key.fingerprint(), key.clone()));
            if part.is_empty() {
                self.parts.remove(&number);
            }
        }
        self.changed.remove(key);
        if entry.is_kept {
            self.gone.push(key.to_text());
        }
    }

    /// Never more than its size, whatever was kept and however long looks were put off: the oldest go.
    fn shrink(&mut self) {
        while self.entries.len() > self.settings.size {
            let oldest = self.parts.values().next().and_then(|part| part.last()).map(|(_, key)| key.clone());
            match oldest {
                Some(key) => self.remove(&key),
                None => break,
            }
        }
    }
}

fn key_of(notification: &LedgerId) -> UnitKey {
    UnitId { notification: notification.clone(), destination: None }.into()
}

fn micros_of(span: TimeDelta) -> i64 {
    span.num_microseconds().unwrap_or(i64::MAX)
}
