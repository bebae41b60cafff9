//! The follower of one ledger: it asks for the lead, makes passes while it has it, and stands by while another process does. A ledger that it
//! can't read it leaves to others.

mod counts;
mod patience;
mod unable;

use super::{
    audit::{Audit, Audited, Recent},
    behind::Behind,
    beyond::Beyond,
    elsewhere::HeldAgainst,
    error::PassError,
    pass::{Following, LedgerToFollow},
    report::{self, FlowNumbers},
    residue::Residue,
};
use crate::{
    catalog::labels::FollowerMode,
    clock,
    config::ledger::Ledger,
    domain::flow::time::Passing,
    ledger::FlowReader,
    monitor::{
        shared::Shared,
        sight::{Look, Reading},
        snapshot::Observer,
    },
    store::{Store, follower::Lead},
};
use chrono::{DateTime, TimeDelta, Utc};
use patience::Patience;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long the lead lasts without being asked for again: who dies is followed by another within this time.
const LEASE: Duration = Duration::from_secs(12);

/// How often the lead is asked for: by the one who has it, also while it makes a pass, and by those who stand by.
pub(super) const ASK_EVERY: Duration = Duration::from_secs(3);

/// Limit on one step. Its readings have their own, shorter ones; this keeps the loop alive whatever they do.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// How long nothing is followed after more was pending than may be held.
const BACK_OFF: Duration = Duration::from_secs(600);

/// The follower of one ledger.
pub(super) struct Follower {
    name: String,
    reader: Arc<dyn FlowReader>,
    /// The state, while this process leads and nothing has gone wrong since it was loaded.
    following: Option<Following>,
    residue: Residue,
    audit: Audit,
    accepted: HeldAgainst,
    beyond: Beyond,
    behind: Behind,
    erased: BTreeSet<String>,
    is_caught_up: bool,
    passing: Passing,
    /// Whether it was told that the clocks have jumped.
    has_jumped: bool,
    patience: Patience,
    /// Between two passes.
    every: Duration,
    /// When the next one is due.
    next: Instant,
    /// When the lead is asked for again, whether a pass is due or not.
    ask_at: Instant,
}

impl Follower {
    /// One that has read nothing yet.
    pub fn new(name: String, reader: Arc<dyn FlowReader>) -> Self {
        let now = Instant::now();
        Self {
            name,
            reader,
            following: None,
            residue: Residue::default(),
            audit: Audit::default(),
            accepted: HeldAgainst::default(),
            beyond: Beyond::default(),
            behind: Behind::default(),
            erased: BTreeSet::new(),
            is_caught_up: false,
            passing: Passing::default(),
            has_jumped: false,
            patience: Patience::new(now),
            every: ASK_EVERY,
            next: now,
            ask_at: now,
        }
    }

    /// Whether it reads by this reader.
    pub fn reads_by(&self, reader: &Arc<dyn FlowReader>) -> bool {
        Arc::ptr_eq(&self.reader, reader)
    }

    /// When its next step is due.
    pub fn due(&self) -> Instant {
        self.next.min(self.ask_at)
    }

    /// Makes a step, and takes note of what came of it: `true` where it went well.
    pub async fn step(&mut self, shared: &Shared) -> bool {
        let result = tokio::time::timeout(LIMIT, self.try_step(shared)).await;
        let result = result.unwrap_or(Err(PassError::TooLong(LIMIT)));
        let unread = result.as_ref().err().filter(|error| error.is_of_reading()).map(ToString::to_string);
        let is_good = self.ended(shared, result);
        if let Some(reason) = unread {
            self.reading_failed(shared, &reason).await;
        }
        is_good
    }

    /// Asks for the lead, and makes a pass where one is due.
    async fn try_step(&mut self, shared: &Shared) -> Result<(), PassError> {
        self.ask_at = Instant::now() + ASK_EVERY;
        let active = shared.active.load_full();
        let Some(config) = active.config.ledgers.get(&self.name) else {
            self.next = self.ask_at;
            return Ok(());
        };
        self.every = config.refresh_every.get();
        let now = clock::now();
        let is_old = |numbers: &FlowNumbers| {
            now - numbers.as_of > config.freshness.delta() + config.refresh_every.delta()
        };
        if shared.flow(&self.name).figures.is_some_and(|numbers| is_old(&numbers)) {
            self.withdraw(shared);
        }
        if self.patience.has_given_up() {
            return self.try_reading(shared, config).await;
        }
        match shared.store.lead(&self.name, &shared.owner, now, now + LEASE).await? {
            Lead::Theirs => {
                self.next = self.ask_at;
                self.stand_by(shared);
                return Ok(());
            }
            Lead::Ours { is_new, erased } => {
                self.accepted.watch(&self.name, &*self.reader);
                if is_new {
                    self.patience.good(Instant::now());
                }
                if is_new || erased != self.erased {
                    self.following = None;
                    self.audit.reload();
                    self.erased = erased;
                }
            }
        }
        if Instant::now() < self.next {
            return Ok(());
        }
        let name = self.name.clone();
        tokio::select! {
            result = self.pass(shared, config) => result,
            () = until_lost(&*shared.store, &name, &shared.owner) => Err(PassError::Lost),
        }
    }

    async fn pass(&mut self, shared: &Shared, config: &Ledger) -> Result<(), PassError> {
        let started = Instant::now();
        let mut following = match self.following.take() {
            Some(following) => following,
            None => self.load(shared, config).await?,
        };
        let passed = following.pass(&*shared.store, &self.erased, &mut self.passing).await?;
        self.tell_jump(passed.clock_jumped);
        let save = following.save(passed.changes);
        if !shared.store.save_followed(&self.name, &shared.owner, clock::now(), &save).await? {
            return Err(PassError::Lost);
        }
        self.patience.good(Instant::now());
        if let Some(counters) = shared.counters.ledger(&self.name) {
            counters.read_seconds.observe(started.elapsed());
        }
        self.observed(shared, Reading::Follow, Look::Good);
        if passed.has_reread {
            self.observed(shared, Reading::Reread, Look::Good);
        } else if shared.sights().is_reading_up(&Observer::Ledger(self.name.clone()), Reading::Lookup) {
            // There was nothing to look up again, and the query runs for canaries: that it failed before is over.
            self.observed(shared, Reading::Reread, Look::Empty);
        }
        if passed.is_end {
            self.next = started + self.every;
            self.caught_up(shared, &mut following, passed.as_of, config).await;
        } else {
            let per_second = f64::from(config.first_read.rows_per_second.max(1));
            #[allow(clippy::cast_precision_loss, reason = "rows of one pass are far below 2^53")]
            let fair = Duration::from_secs_f64(passed.rows as f64 / per_second);
            self.next = started + fair;
            let until = following.followed_until().map(|at| at.to_rfc3339());
            tracing::info!(event = "ledger_history_read", ledger = self.name, rows = passed.rows, until);
            if !self.is_caught_up {
                self.publish(shared, FollowerMode::CatchingUp, Some(&following));
            }
        }
        self.following = Some(following);
        self.audit(shared, config, &passed.recent, passed.is_end).await;
        Ok(())
    }

    /// Says once that the clocks have jumped ahead, and once that they are back.
    fn tell_jump(&mut self, jumped: Option<TimeDelta>) {
        match (std::mem::replace(&mut self.has_jumped, jumped.is_some()), jumped) {
            (false, Some(ahead)) => tracing::warn!(
                event = "ledger_clock_jumped",
                ledger = self.name,
                ahead_seconds = ahead.as_seconds_f64(),
                "nothing that was counted is forgotten by it; if the clock is right now, a restart takes it at its word"
            ),
            (true, None) => tracing::info!(event = "ledger_clock_jump_ended", ledger = self.name),
            _ => {}
        }
    }

    /// Reads again what is due of the sample. Following does not depend on it.
    async fn audit(&mut self, shared: &Shared, config: &Ledger, recent: &[Recent], is_end: bool) {
        let audited = Audited { ledger: &self.name, owner: &shared.owner, config, erased: &self.erased };
        let (reader, store) = (&*self.reader, &*shared.store);
        if let Err(error) = self.audit.pass(audited, reader, store, recent, is_end, clock::now()).await {
            tracing::warn!(event = "ledger_not_audited", ledger = self.name, reason = %error);
        }
    }

    /// Both streams were read to their end: the figures are those of now.
    async fn caught_up(
        &mut self,
        shared: &Shared,
        following: &mut Following,
        as_of: DateTime<Utc>,
        config: &Ledger,
    ) {
        self.count(shared, following, as_of).await;
        self.hold(shared, following, as_of).await;
        self.look_behind(shared, following, as_of, config).await;
        if !std::mem::replace(&mut self.is_caught_up, true) {
            let from = if following.began_anew() { "history" } else { "position" };
            tracing::info!(event = "ledger_followed", ledger = self.name, from);
            if let Some(reason) = config.finds_no_dated_back() {
                tracing::warn!(event = "ledger_dated_back_not_looked_for", ledger = self.name, reason);
            }
        }
        let (mut numbers, pending) = report::report(
            following.figures(as_of),
            self.reader.routes(),
            &self.residue,
            config.baseline.is_some(),
        );
        for (route, flow) in report::numbered(&mut numbers, self.reader.routes()) {
            flow.accepted_in_hour = self.accepted.of(route);
            flow.stuck_before_baseline = self.beyond.with(route, flow.stuck_before_baseline);
        }
        shared.publish_pending(&self.name, Some(pending));
        self.publish(shared, FollowerMode::Following, Some(following));
        shared.update_flow(&self.name, |flow| flow.figures = Some(Arc::new(numbers)));
    }

    /// Says what is done now. Figures that are there stay, until they are too old.
    fn publish(&self, shared: &Shared, mode: FollowerMode, following: Option<&Following>) {
        shared.update_flow(&self.name, |flow| {
            flow.mode = mode;
            flow.as_first_decided = Some(!self.reader.has_attempts());
            flow.followed_until = following.and_then(Following::followed_until);
            flow.held = following.map(Following::held);
            flow.unseen = following.and_then(|_| self.behind.unseen());
            flow.overdue = following.and_then(|_| self.audit.overdue());
        });
    }

    /// There are no figures any more: absent, and not zero.
    fn withdraw(&self, shared: &Shared) {
        shared.publish_pending(&self.name, None);
        shared.update_flow(&self.name, |flow| flow.figures = None);
    }

    /// Makes the state of what was kept.
    async fn load(&mut self, shared: &Shared, config: &Ledger) -> Result<Following, PassError> {
        let deadlines = shared.active.load().all_deadlines();
        let wanted = LedgerToFollow {
            ledger: &self.name,
            config,
            reader: Arc::clone(&self.reader),
            deadlines: &deadlines,
            erased: &self.erased,
        };
        match Following::load(&*shared.store, &wanted, clock::now()).await {
            Err(error @ PassError::Kept(_)) => {
                tracing::warn!(event = "ledger_begins_anew", ledger = self.name, reason = %error);
                self.is_caught_up = false;
                Following::anew(&wanted, clock::now())
            }
            result => result,
        }
    }

    fn observed(&self, shared: &Shared, reading: Reading, look: Look<'_>) {
        shared.observed(&Observer::Ledger(self.name.clone()), reading, look, clock::now());
    }

    fn forget(&self, shared: &Shared, reading: Reading) {
        shared.forget(&Observer::Ledger(self.name.clone()), reading);
    }

    /// Another process leads: what it finds is on its own page.
    fn stand_by(&mut self, shared: &Shared) {
        self.patience.good(Instant::now());
        self.following = None;
        self.audit.reload();
        self.is_caught_up = false;
        self.residue = Residue::default();
        self.behind = Behind::default();
        self.beyond = Beyond::default();
        self.accepted = HeldAgainst::default();
        forget(shared, &self.name);
        self.withdraw(shared);
        self.publish(shared, FollowerMode::Standby, None);
    }

    /// Takes note of what came of a step: `true` where it went well.
    fn ended(&mut self, shared: &Shared, result: Result<(), PassError>) -> bool {
        let Err(error) = result else { return true };
        // What was folded of a pass that failed is in no order any more; what was written before it is.
        self.following = None;
        self.next = Instant::now() + self.every;
        match &error {
            PassError::TooMany(_) => {
                self.patience.good(Instant::now());
                self.next = Instant::now() + BACK_OFF;
                self.is_caught_up = false;
                self.withdraw(shared);
                self.publish(shared, FollowerMode::Snapshot, None);
                tracing::warn!(event = "ledger_too_much_pending", ledger = self.name, reason = %error);
            }
            PassError::Lost => {
                // Another reads by now: the ledger is left to it for as long as a lead lasts.
                self.next = Instant::now() + LEASE;
                self.ask_at = self.next;
                self.stand_by(shared);
                tracing::warn!(event = "ledger_lead_lost", ledger = self.name, reason = %error);
            }
            PassError::Ledger(error) => {
                self.observed(shared, Reading::Follow, Look::of(error, &error.to_string()));
            }
            // What is new was read before.
            PassError::Reread(error) => {
                self.observed(shared, Reading::Follow, Look::Good);
                self.observed(shared, Reading::Reread, Look::of(error, &error.to_string()));
            }
            _ => tracing::warn!(event = "ledger_not_followed", ledger = self.name, reason = %error),
        }
        if self.patience.has_given_up() {
            self.hold_back();
        }
        if shared.flow(&self.name).mode == FollowerMode::Standby && !matches!(error, PassError::Lost) {
            // Whether another follows isn't known.
            self.publish(shared, FollowerMode::CatchingUp, None);
        }
        false
    }
}

/// Whether it could be followed says nothing of a ledger that this process does not follow.
pub(super) fn forget(shared: &Shared, ledger: &str) {
    let observer = Observer::Ledger(ledger.to_owned());
    Reading::OF_THE_FOLLOWER.into_iter().for_each(|reading| shared.forget(&observer, reading));
}

/// Keeps the lead while a pass is made, however long that takes. Ends when somebody else has it.
async fn until_lost(store: &dyn Store, ledger: &str, owner: &str) {
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        // Where it can't be said, it is said again in time.
        if let Ok(false) = store.keep_lead(ledger, owner, clock::now() + LEASE).await {
            return;
        }
    }
}
