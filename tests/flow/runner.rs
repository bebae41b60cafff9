//! A follower around the core, as small as can be: it reads the model ledger, and writes into a map.

use super::{
    model::{Ledger, at, page},
    plan::{Crash, Leaving, OVERLAP, Pass, Plan, leaving, ledger},
};
use delivery_canary::domain::flow::{
    cells::{Cell, CellKey, Level},
    durable::{Changes, DurableStray, DurableUnit, Saved},
    follow::{Flow, Reach},
    key::UnitKey,
    rows::UnitId,
    settings::Settings,
    time::{Passing, surely},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

pub const DEADLINES: [u64; 3] = [60, 300, 1_200];
pub const WINDOWS: [u64; 4] = [300, 3_600, 7_200, 21_600];

pub fn settings() -> Settings {
    Settings {
        deadlines: DEADLINES.map(Duration::from_secs).to_vec(),
        windows: WINDOWS.map(Duration::from_secs).to_vec(),
        baseline: None,
        horizon: None,
        history: Duration::from_secs(31 * 86_400),
        // Short, so that windows begin where only hours are left.
        fine_for: Duration::from_secs(3_600),
        overlap: Duration::from_secs(30),
        max_pending: 1_000,
        sweep_per_pass: 3,
        settle_per_pass: 4,
    }
}

/// What is written.
#[derive(Clone, Debug, Default)]
pub struct Store {
    pub units: BTreeMap<String, DurableUnit>,
    pub strays: BTreeMap<(String, String), DurableStray>,
    pub cells: BTreeMap<CellKey, Cell>,
    positions: [Option<(i64, i64)>; 2],
}

impl Store {
    pub fn write(&mut self, changes: Changes) {
        for key in changes.units_deleted {
            assert!(self.units.remove(&key).is_some(), "{key} is to be deleted and isn't there");
        }
        for unit in changes.units_upserted {
            self.units.insert(unit.key.clone(), unit);
        }
        for key in changes.strays_deleted {
            assert!(self.strays.remove(&key).is_some(), "{key:?} is to be deleted and isn't there");
        }
        for stray in changes.strays_inserted {
            let key = (stray.unit.clone(), stray.attempt.clone());
            assert!(self.strays.insert(key, stray).is_none(), "a stray is to be inserted and is there");
        }
        self.cells.extend(changes.cells);
        let kept = |key: &CellKey| {
            key.start >= if key.level == Level::Minute { changes.minutes_from } else { changes.hours_from }
        };
        self.cells.retain(|key, _| kept(key));
    }

    pub fn restore(&self, settings: Settings) -> Flow {
        let saved = Saved {
            units: self.units.values().cloned().collect(),
            strays: self.strays.values().cloned().collect(),
            cells: self.cells.iter().map(|(key, cell)| (*key, *cell)).collect(),
        };
        Flow::restore(settings, saved).unwrap()
    }
}

pub struct Runner {
    pub ledger: Ledger,
    pub flow: Flow,
    pub store: Store,
    pub second: i64,
    beginning: Instant,
    passing: Passing,
    database_clock: i64,
    leaving: Vec<(UnitId, Leaving)>,
}

impl Runner {
    pub fn new(plan: &Plan) -> Self {
        Self {
            ledger: ledger(&plan.notifications),
            flow: Flow::new(settings()),
            store: Store::default(),
            second: 0,
            beginning: Instant::now(),
            passing: Passing::default(),
            database_clock: plan.database_clock,
            leaving: leaving(&plan.notifications),
        }
    }

    /// What time it surely is, in seconds, at this one.
    fn surely(&self, second: i64, plan: &Pass) -> i64 {
        surely(at(second + plan.our_clock), at(second + self.database_clock)).timestamp() - at(0).timestamp()
    }

    /// One pass, or as much of it as there is before a crash.
    pub fn pass(&mut self, plan: &Pass) {
        self.second += plan.gap;
        let began = self.second;
        let (first, second) = (began, began + plan.pauses.0);
        let lookups = second + plan.pauses.1;
        self.second = lookups;
        let (read_notifications, read_attempts) =
            if plan.is_attempts_first { (second, first) } else { (first, second) };
        let [after_notification, after_attempt] = self.store.positions;
        let ledger = &self.ledger;
        let (notifications, is_cut) =
            page(ledger, &ledger.notifications, read_notifications, after_notification, plan.limit);
        let (attempts, are_cut) = page(ledger, &ledger.attempts, read_attempts, after_attempt, plan.limit);
        let position = |after, rows: &mut dyn Iterator<Item = (i64, i64)>, read: i64| {
            rows.filter(|(second, _)| *second <= self.surely(read, plan) - OVERLAP).last().or(after)
        };
        let positions = [
            position(
                after_notification,
                &mut notifications.iter().map(|(cursor, _)| *cursor),
                read_notifications,
            ),
            position(after_attempt, &mut attempts.iter().map(|(cursor, _)| *cursor), read_attempts),
        ];
        // A clock that was set back may have an attempt given up too early: it is then counted where it leads, and not among the attempts.
        self.ledger.has_rewritten_attempts |= plan.our_clock < -OVERLAP;
        self.ledger.has_removed_notifications |= plan.our_clock < -OVERLAP;
        let moment = self.beginning + Duration::from_secs(began.unsigned_abs());
        let now = self.passing.read(moment, at(self.surely(began, plan)));
        self.flow.begin_pass(now.at);
        self.flow.canaries(&self.ledger.canaries);
        let fed = if plan.crash == Crash::AmongRows { notifications.len() / 2 } else { usize::MAX };
        for (cursor, row) in notifications.into_iter().take(fed) {
            self.flow.notification(row, Some(cursor) <= positions[0]);
        }
        if plan.crash == Crash::AmongRows {
            return self.restart();
        }
        for (cursor, row) in attempts {
            self.flow.attempt(row, Some(cursor) <= positions[1]);
        }
        let reach = if is_cut || are_cut { Reach::Page } else { Reach::End };
        for unit in self.flow.wanted(reach) {
            if plan.are_lookups_answered {
                self.flow.truth(&unit, self.ledger.lookup(&unit, lookups));
            }
        }
        let changes = self.flow.end_pass().unwrap();
        match plan.crash {
            Crash::BeforeWriting => return self.restart(),
            Crash::LeadLost => {
                let (passing, crash) = (self.passing, Crash::No);
                self.restart();
                self.pass(&Pass { gap: 0, crash, ..plan.clone() });
                // What this one had to write is refused, and it begins from what the other one wrote.
                self.restart();
                self.passing = passing;
                return;
            }
            _ => {}
        }
        self.store.write(changes);
        self.store.positions = positions;
        if plan.crash == Crash::AfterWriting {
            self.restart();
        }
        self.leave();
    }

    fn restart(&mut self) {
        self.flow = self.store.restore(settings());
        self.passing = Passing::default();
    }

    /// Has rows leave that may: nothing is still to come of them, and all of them were read for good.
    fn leave(&mut self) {
        let [notifications, attempts] = self.store.positions;
        let mut stay = Vec::new();
        for (unit, how) in std::mem::take(&mut self.leaving) {
            let key = UnitKey::from(unit.clone()).to_text();
            let mut rows = self.ledger.notifications.iter().filter(|version| version.row.unit == unit);
            let mut tries = self.ledger.attempts.iter().filter(|version| version.row.unit == unit);
            let is_read = self.ledger.is_over(&unit, self.second)
                && rows.all(|version| Some(version.cursor) <= notifications)
                && tries.all(|version| Some(version.cursor) <= attempts);
            let is_settled =
                !self.store.units.contains_key(&key) && !self.store.strays.keys().any(|(of, _)| *of == key);
            match how {
                Leaving::Archived if is_read => {
                    self.ledger.archived.insert(unit, self.second + 1);
                }
                Leaving::Expired if is_read && is_settled => {
                    self.ledger.expired.insert(unit, self.second + 1);
                }
                _ => stay.push((unit, how)),
            }
        }
        self.leaving = stay;
    }

    /// Passes after everything has happened, until nothing is left to be found out.
    pub fn quiet(&mut self) {
        self.second = self.second.max(self.ledger.quiet_from + OVERLAP);
        let pass = Pass {
            gap: OVERLAP + 1,
            pauses: (0, 0),
            is_attempts_first: false,
            limit: usize::MAX,
            are_lookups_answered: true,
            crash: Crash::No,
            our_clock: 0,
        };
        let database_clock = self.database_clock;
        for number in 0..40 {
            // Once nothing is open any more, the only clock that there is jumps ahead, for one pass each.
            let our_clock = match number {
                20 => 36_000,
                25 => 2_764_800,
                _ => 0,
            };
            self.database_clock = if our_clock > 0 { our_clock } else { database_clock };
            self.pass(&Pass { our_clock, ..pass.clone() });
        }
    }
}
