//! What the tests of the audit share, and single cases.

use super::{
    compare::{Change, History, Seen},
    sample::{Kept, Reading, Sample, Settings},
};
use crate::domain::{
    flow::rows::{LedgerId, Standing},
    pending::Tried,
};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, HashMap};

const SECOND_READING: i64 = 60;

pub(super) fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).expect("an instant")
}

pub(super) fn settings(size: usize) -> Settings {
    Settings {
        size,
        ages: [300, 3_600, 21_600, 86_400].map(TimeDelta::seconds).to_vec(),
        retention: TimeDelta::days(31),
        second_reading: TimeDelta::seconds(SECOND_READING),
        meaning: 1,
    }
}

pub(super) fn id(number: i64) -> LedgerId {
    LedgerId::Int(number)
}

pub(super) fn seen(second: i64, leaves: Standing) -> Seen {
    Seen { destination: 0, at: Some(at(second)), leaves: Some(leaves) }
}

pub(super) const OPEN: [Standing; 2] =
    [Standing::Pending(Tried::WillRetry), Standing::Pending(Tried::OutcomeUnknown)];
pub(super) const TERMINAL: [Standing; 4] =
    [Standing::Delivered, Standing::RejectedRecipient, Standing::RejectedService, Standing::Suppressed];

/// A sample, and what is written of it.
pub(super) struct Audit {
    pub(super) sample: Sample,
    pub(super) kept: BTreeMap<String, Kept>,
    settings: Settings,
    now: i64,
}

impl Audit {
    pub(super) fn new(settings: Settings) -> Self {
        let sample = Sample::restore(settings.clone(), Vec::new());
        Self { sample, kept: BTreeMap::new(), settings, now: 0 }
    }

    pub(super) fn of_one(settings: Settings) -> Self {
        let mut audit = Self::new(settings);
        audit.sample.offer(&id(1), at(0), at(0));
        audit
    }

    pub(super) fn write(&mut self) {
        let changes = self.sample.changes();
        for key in changes.gone {
            assert!(self.kept.remove(&key).is_some(), "{key} is to go and isn't there");
        }
        self.kept.extend(changes.kept.into_iter().map(|kept| (kept.key.clone(), kept)));
    }

    pub(super) fn restart(&mut self) {
        self.write();
        self.sample = Sample::restore(self.settings.clone(), self.kept.values().cloned().collect());
    }

    /// The next reading that is due; nothing where none will be. `None` for a history: the notification isn't there.
    pub(super) fn read(&mut self, history: Option<&History>) -> Option<BTreeMap<Change, u64>> {
        let mut asked = self.sample.due(at(self.now), 10);
        while asked.is_empty() {
            if self.sample.is_empty() || self.now > 100 * 86_400 {
                return None;
            }
            self.now += 30;
            asked = self.sample.due(at(self.now), 10);
        }
        let found = history.map(|history| (id(1), history.clone())).into_iter().collect();
        let reading = Reading { as_of: at(self.now), found };
        let judged = self.sample.judge(&asked, &reading, at(self.now));
        self.now += 1;
        Some(judged.found.into_iter().map(|(_, change, count)| (change, count)).collect())
    }

    /// All that is found until nothing is looked at any more.
    pub(super) fn read_to_the_end(&mut self, history: Option<&History>) -> BTreeMap<Change, u64> {
        let mut all = BTreeMap::new();
        while let Some(found) = self.read(history) {
            found.into_iter().for_each(|(change, count)| *all.entry(change).or_default() += count);
        }
        all
    }
}

#[test]
fn what_may_be_gone_for_good_reason_is_not_looked_at() {
    let history =
        History { attempts: BTreeMap::from([(1, seen(0, Standing::Delivered))]), shares_key: false };
    let short = Settings { retention: TimeDelta::seconds(3_000), ..settings(10) };
    let mut audit = Audit::of_one(short);
    assert_eq!(audit.read(Some(&history)), None, "one age is left, and it can't be held against another");
    let short = Settings { retention: TimeDelta::seconds(4_000), ..settings(10) };
    let mut audit = Audit::of_one(short);
    assert_eq!(audit.read(Some(&history)), Some(BTreeMap::new()));
    assert_eq!(audit.read(None), Some(BTreeMap::new()), "it is gone, and a second reading is awaited");
    audit.now = 3_950;
    assert_eq!(audit.read(None), None, "by then it may be gone for good reason");
}

#[test]
fn another_meaning_of_the_words_is_no_change() {
    let delivered =
        History { attempts: BTreeMap::from([(1, seen(0, Standing::Delivered))]), shares_key: false };
    let held = History { attempts: BTreeMap::from([(1, seen(0, Standing::Suppressed))]), shares_key: false };
    let mut audit = Audit::of_one(settings(10));
    audit.read(Some(&delivered));
    audit.settings.meaning = 2;
    audit.restart();
    assert_eq!(audit.read_to_the_end(Some(&held)), BTreeMap::new());
}

#[test]
fn an_older_reading_than_the_last_one_tells_nothing() {
    let history =
        History { attempts: BTreeMap::from([(1, seen(0, Standing::Delivered))]), shares_key: false };
    let mut audit = Audit::of_one(settings(10));
    audit.read(Some(&history));
    let late = Reading { as_of: at(0), found: HashMap::new() };
    for now in [4_000, 5_000, 6_000] {
        let asked = audit.sample.due(at(now), 10);
        assert_eq!(asked, [id(1)]);
        let judged = audit.sample.judge(&asked, &late, at(now));
        assert_eq!((judged.found, judged.compared), (vec![], 0));
    }
}

#[test]
fn what_cannot_be_read_leaves_the_sample() {
    let kept = |key: &str, body: &str| Kept { key: key.into(), due: at(0), body: body.into() };
    let mut sample = Sample::restore(settings(10), vec![kept("?", "{}"), kept("i1", "{}")]);
    assert!(sample.is_empty());
    assert_eq!(sample.changes().gone, ["?", "i1"]);
}

#[test]
fn a_notification_with_very_many_attempts_is_held_in_part() {
    let mut history = History::default();
    for n in 0..5_000u64 {
        let second = i64::try_from(n).expect("a small number");
        history.attempts.insert(n * 13 % 5_003, seen(second, OPEN[0]));
    }
    let mut audit = Audit::of_one(settings(10));
    assert_eq!(audit.read(Some(&history)), Some(BTreeMap::new()));
    audit.write();
    let body = &audit.kept.values().next().expect("it is kept").body;
    assert!(body.len() < 8_000, "{} bytes", body.len());
    assert_eq!(audit.read(Some(&history)), Some(BTreeMap::new()));
}

/// A day and some hours of 5,000 notifications an hour, with a refresh each minute.
#[test]
fn what_is_read_is_bounded_by_the_sample_and_not_by_the_ledger() {
    let mut audit = Audit::new(settings(1_000));
    let history = History::default();
    let (mut number, mut read) = (0, BTreeMap::<i64, usize>::new());
    for minute in 0..30 * 60 {
        let now = at(60 * minute);
        for _ in 0..83 {
            number += 1;
            audit.sample.offer(&id(number), now, now);
        }
        let asked = audit.sample.due(now, 50);
        *read.entry(minute / 60).or_default() += asked.len();
        let found = asked.iter().map(|id| (id.clone(), history.clone())).collect();
        audit.sample.judge(&asked, &Reading { as_of: now, found }, now);
        assert!(audit.sample.len() <= 1_000);
    }
    let of_last_hours: usize = read.range(26..).map(|(_, count)| count).sum();
    assert!(audit.sample.len() > 900, "{}", audit.sample.len());
    assert!((160..300).contains(&(of_last_hours / 4)), "{of_last_hours} in four hours");
}
