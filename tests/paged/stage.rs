//! What happens on the stage of one test: faults, when they began and ended, and the wait for what must come of them.

use super::{
    clock::{Clock, s},
    installation::Installation,
    receivers::DEAD_MAN,
    servers::Servers,
    table::{Compared, Expected, Instants, Row, When, compare, undecided},
};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::{model::ScheduleConfig, scalar::Span},
    domain::route::{Channel, RouteName},
    monitor::active::offset_of,
    simulator::FaultOrder,
};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// How long nothing more may come when everything has: a `group_interval` of tickets.
const QUIET: Duration = s(300);

/// How often the `Watchdog` is sent.
const WATCHDOG_EVERY: Duration = s(300);

/// An installation, its servers, and what happened when.
pub struct Stage {
    /// The service and those who are told.
    pub here: Installation,
    /// What judges.
    pub servers: Servers,
    instants: Mutex<Instants>,
}

impl Stage {
    /// Nothing has happened yet.
    pub fn new(here: Installation, servers: Servers) -> Self {
        Self { here, servers, instants: Mutex::default() }
    }

    /// The clock.
    pub const fn clock(&self) -> Clock {
        self.here.clock
    }

    /// Something happens now.
    pub fn mark(&self, when: When) {
        self.mark_at(when, Utc::now());
    }

    /// Something happens then.
    pub fn mark_at(&self, when: When, at: DateTime<Utc>) {
        let before = self.instants.lock().unwrap_or_else(PoisonError::into_inner).insert(when, at);
        assert_eq!(before, None, "{when:?} is marked twice");
    }

    fn instants(&self) -> Instants {
        self.instants.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets so much time of a real installation go by.
    pub async fn pass(&self, real: Duration) {
        tokio::time::sleep(self.clock().short(real)).await;
    }

    /// Puts an order in force.
    pub async fn switch(&self, order: FaultOrder) {
        self.here.simulator.switch(order).await.expect("the order is fit");
    }

    /// A fault that lasts for so long.
    pub async fn fault(&self, row: &'static str, order: FaultOrder, real: Duration) {
        let off = FaultOrder { on: false, ratio: None, params: Default::default(), ..order.clone() };
        self.switch(order).await;
        self.mark(When::Began(row));
        self.pass(real).await;
        self.switch(off).await;
        self.mark(When::Ended(row));
    }

    /// Waits for the middle between two canaries of a route, so that a fault meets whole canaries.
    pub async fn between_canaries(&self, route: &str) {
        let interval = self.clock().short(s(60));
        let name = RouteName::new(Channel::Webhook, route);
        let offset = offset_of(&ScheduleConfig::Every(Span(interval)), &name).expect("an interval");
        let every = TimeDelta::from_std(interval).expect("short").num_milliseconds();
        let middle = TimeDelta::from_std(offset).expect("short").num_milliseconds() + every / 2;
        let wait = every - (Utc::now().timestamp_millis() - middle).rem_euclid(every);
        tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())).await;
    }

    /// Waits until a state holds, for so much time of a real installation at the most.
    pub async fn until(&self, what: &str, real: Duration, mut state: impl FnMut() -> Result<(), String>) {
        let until = tokio::time::Instant::now() + self.clock().short(real) + Duration::from_secs(20);
        while let Err(seen) = state() {
            assert!(tokio::time::Instant::now() < until, "waited {real:?} for {what}; last seen: {seen}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the rules have seen so many streams of evidence, and the dead man was told that the path is alive.
    pub async fn until_watched(&self, routes: usize) {
        self.until("the rules to see every route", s(1_200), || {
            let streams = self.servers.count("route_location_question:delivery_evidence:max")?;
            let told = self.here.receivers.told(DEAD_MAN).len();
            if streams == 2 * routes && told > 0 {
                Ok(())
            } else {
                Err(format!("{streams} streams, the dead man was told {told} times"))
            }
        })
        .await;
    }

    /// Waits for what must come, and for the quiet after it; then prints the table and fails if anything in it is wrong.
    pub async fn close(&self, rows: &[Row], expected: &[Expected]) {
        let (instants, clock) = (self.instants(), self.clock());
        loop {
            let open = undecided(expected, &self.here.receivers.episodes(), &instants, clock);
            if open.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.pass(QUIET).await;
        let Compared { text, mut wrong } =
            compare(rows, expected, &self.here.receivers.episodes(), &instants, clock);
        println!("{text}");
        wrong.extend(self.silence());
        assert!(wrong.is_empty(), "{}\n\n{text}", wrong.join("\n"));
    }

    /// Whether the dead man was left in silence for longer than the path takes between two signs of life.
    fn silence(&self) -> Option<String> {
        let told = self.here.receivers.told(DEAD_MAN);
        let longest = told.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        let real = self.clock().real(longest);
        // One sign may come late by what a busy machine takes.
        let most = TimeDelta::from_std(WATCHDOG_EVERY + s(60)).expect("short");
        println!("The dead man was told {} times, at most {}s apart.", told.len(), real.num_seconds());
        (real > most || told.len() < 2)
            .then(|| format!("the dead man heard nothing for {}s", real.num_seconds()))
    }
}
