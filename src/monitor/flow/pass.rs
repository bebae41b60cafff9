//! One pass over a ledger: read what is new and the overlap before it, fold it, and look up what new rows alone don't settle.

use super::{
    audit::{self, Recent},
    error::PassError,
    keep,
    stream::{Attempts, Notifications, Watermark},
};
use crate::{
    catalog::bounds::LEDGER_WINDOWS,
    clock,
    config::ledger::Ledger,
    domain::{
        accounting::{Partition, Place},
        flow::{
            durable::Changes,
            figures::FlowFigures,
            follow::{Flow, Reach},
            rows::{NotificationRow, RouteNo, Truth, UnitId},
            settings::Settings,
            time::Passing,
        },
        route::RouteName,
    },
    ledger::{FlowReader, flow::text_of},
    store::{
        Store, StoreError,
        follower::{Followed, FollowerSave, erasure_digest},
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

/// How long counts by hour are kept: the longest window, and a day for the deadline before it.
const HISTORY: Duration = Duration::from_secs(31 * 86_400);

/// The deadline of a route that isn't configured.
const NO_DEADLINE: Duration = Duration::from_secs(86_400);

/// How many lookups a pass may ask for to settle what new rows don't.
const SETTLED_PER_PASS: usize = 2_000;

/// How often what is kept is read until no save came in between.
const READINGS: usize = 5;

/// How much older than its slot a canary may seem by the ledger's clock.
const CANARY_MARGIN: TimeDelta = TimeDelta::days(1);

/// What a pass came to.
pub struct Passed {
    /// What is to be written.
    pub changes: Changes,
    /// As of when the figures are.
    pub as_of: DateTime<Utc>,
    /// Whether both streams were read to their end.
    pub is_end: bool,
    /// How many rows were read.
    pub rows: u64,
    /// Whether something was looked up again.
    pub has_reread: bool,
    /// How far the clocks are ahead of where the monotonic one takes them since this process began, if that is far.
    pub clock_jumped: Option<TimeDelta>,
    /// Customers' notifications that are followed for good from this pass on, for the audit: those that it looks back to.
    pub recent: Vec<Recent>,
}

/// A ledger that is being followed.
pub struct Following {
    reader: Arc<dyn FlowReader>,
    flow: Flow,
    notifications: Watermark,
    attempts: Watermark,
    /// Where the history begins that is followed.
    horizon: DateTime<Utc>,
    overlap: TimeDelta,
    /// How far the audit looks back; nothing where there is none.
    audited_back: Option<TimeDelta>,
    /// Open notifications, and whether our own store knows them as canaries.
    open: HashMap<UnitId, bool>,
    /// What was due before can't be a canary of ours; nothing before the store was asked.
    canaries_from: Option<DateTime<Utc>>,
    /// Whether nothing of it was kept before, and nothing was written since.
    is_fresh: bool,
    /// Whether it began with the history, and not where another pass had come to.
    began_anew: bool,
    /// What was erased and kept all the same, by a pass that was under way meanwhile: it goes with the next save.
    kept_anyway: keep::Erased,
}

/// Which ledger is followed, by what, and what is to be left alone of it.
pub struct LedgerToFollow<'a> {
    /// The ledger's name.
    pub ledger: &'a str,
    /// Its configuration.
    pub config: &'a Ledger,
    /// Its reader.
    pub reader: Arc<dyn FlowReader>,
    /// The deadlines of all routes.
    pub deadlines: &'a BTreeMap<RouteName, Duration>,
    /// Digests of erased notifications.
    pub erased: &'a BTreeSet<String>,
}

impl Following {
    /// Goes on from what was kept; from the configured history where nothing was. What was erased and is kept all the same is
    /// left out, and removed with the next save.
    ///
    /// # Errors
    /// When the store can't be used, or what was kept can't be understood, or was saved anew each time that it was read.
    pub async fn load(
        store: &dyn Store,
        wanted: &LedgerToFollow<'_>,
        now: DateTime<Utc>,
    ) -> Result<Self, PassError> {
        for _ in 0..READINGS {
            let mut kept = store.followed(wanted.ledger).await?;
            let saved_at = kept.saved_at;
            let is_erased = |unit: &UnitId| is_erased(wanted.erased, unit);
            let mut kept_anyway = keep::Erased::default();
            kept_anyway.take_strays(&mut kept.strays, is_erased);
            let mut following = Self::new(wanted, kept, now)?;
            let mut after = String::new();
            loop {
                let mut page = store.followed_units(wanted.ledger, &after).await?;
                let Some(last) = page.last() else { break };
                after.clone_from(&last.unit);
                kept_anyway.take_units(&mut page, is_erased);
                let units = keep::units(page, wanted.reader.routes()).map_err(PassError::Kept)?;
                let restored = following.flow.restore_units(&units);
                restored.map_err(|error| PassError::Kept(error.to_string()))?;
            }
            // Only the one who leads writes. A reconciliation may read beside it, and must not take the parts of two states for one.
            if store.followed_saved_at(wanted.ledger).await? == saved_at {
                return Ok(Self { kept_anyway, ..following });
            }
        }
        Err(PassError::Moving)
    }

    /// Follows from the configured history on, whatever was kept: that goes with the next save.
    ///
    /// # Errors
    /// None that can be named: the same as for what was kept.
    pub fn anew(wanted: &LedgerToFollow<'_>, now: DateTime<Utc>) -> Result<Self, PassError> {
        Self::new(wanted, Followed::default(), now)
    }

    fn new(wanted: &LedgerToFollow<'_>, kept: Followed, now: DateTime<Utc>) -> Result<Self, PassError> {
        let (reader, config, deadlines) = (Arc::clone(&wanted.reader), wanted.config, wanted.deadlines);
        let is_fresh = kept.position.is_none();
        let places = match &kept.position {
            Some(text) => keep::Places::from_text(text).map_err(PassError::Kept)?,
            None => keep::Places::at(now - config.history.delta()),
        };
        let settings = settings(config, reader.routes(), deadlines, places.horizon);
        let saved = keep::saved(kept, reader.routes()).map_err(PassError::Kept)?;
        let flow = Flow::restore(settings, saved).map_err(|error| PassError::Kept(error.to_string()))?;
        Ok(Self {
            reader,
            flow,
            notifications: Watermark::kept(places.notifications),
            attempts: Watermark::kept(places.attempts),
            horizon: places.horizon,
            overlap: config.overlap.delta(),
            audited_back: audit::settings(config).looks_back(),
            open: HashMap::new(),
            canaries_from: None,
            is_fresh,
            began_anew: is_fresh,
            kept_anyway: keep::Erased::default(),
        })
    }

    /// Makes one pass. After an error this must not be used any more. `erased` are digests of notifications to leave alone; `passing` is one and
    /// the same for all passes of a process, whatever becomes of them.
    ///
    /// # Errors
    /// When the ledger or the store can't be used, or more is pending than may be held.
    pub async fn pass(
        &mut self,
        store: &dyn Store,
        erased: &BTreeSet<String>,
        passing: &mut Passing,
    ) -> Result<Passed, PassError> {
        let (reader, began) = (Arc::clone(&self.reader), Instant::now());
        let pages = Notifications(&*reader);
        let mut notifications = self.notifications.gather(self.overlap, None, &pages).await?;
        let bound = notifications.up_to;
        let mut attempts = if reader.has_attempts() {
            Some(self.attempts.gather(self.overlap, bound, &Attempts(&*reader, bound)).await?)
        } else {
            None
        };
        if !erased.is_empty() {
            let is_kept = |unit: &UnitId| !is_erased(erased, unit);
            notifications.rows.retain(|(row, _)| is_kept(&row.unit));
            attempts.iter_mut().for_each(|attempts| attempts.rows.retain(|(row, _)| is_kept(&row.unit)));
        }
        let is_end = bound.is_none() && attempts.as_ref().is_none_or(|attempts| attempts.up_to.is_none());
        let rows = notifications.read + attempts.as_ref().map_or(0, |attempts| attempts.read);

        let canaries = self.canaries_among(store, &notifications.rows).await?;
        let recent = self.recent(&notifications.rows, &canaries, notifications.as_of);
        let now = passing.read(began, notifications.surely);
        self.flow.begin_pass(now.at);
        self.flow.canaries(&canaries);
        for (row, is_closed) in notifications.rows {
            self.flow.notification(row, is_closed);
        }
        let attempts_mark = attempts.map(|attempts| {
            for (row, is_closed) in attempts.rows {
                self.flow.attempt(row, is_closed);
            }
            attempts.watermark
        });
        let wanted = self.flow.wanted(if is_end { Reach::End } else { Reach::Page });
        if !wanted.is_empty() {
            let ids: Vec<String> = wanted.iter().map(|unit| text_of(&unit.notification)).collect();
            let known = store.canaries_among(&ids).await?;
            let canaries: Vec<UnitId> =
                wanted.iter().filter(|unit| known.contains(&text_of(&unit.notification))).cloned().collect();
            self.flow.canaries(&canaries);
            let mut truths = reader.truths(&wanted).await.map_err(PassError::Reread)?;
            for unit in &wanted {
                let truth = truths.found.remove(unit);
                self.flow.truth(unit, truth);
            }
        }
        let changes = self.flow.end_pass()?;
        self.notifications = notifications.watermark;
        self.attempts = attempts_mark.unwrap_or_default();
        Ok(Passed {
            changes,
            as_of: notifications.as_of,
            is_end,
            rows,
            clock_jumped: now.jumped,
            has_reread: !wanted.is_empty(),
            recent,
        })
    }

    /// What the audit may take of these rows.
    fn recent(
        &self,
        rows: &[(NotificationRow, bool)],
        canaries: &[UnitId],
        as_of: DateTime<Utc>,
    ) -> Vec<Recent> {
        let Some(from) = self.audited_back.and_then(|back| as_of.checked_sub_signed(back)) else {
            return Vec::new();
        };
        let canaries: HashSet<&UnitId> = canaries.iter().collect();
        let is_taken = |(row, is_closed): &&(NotificationRow, bool)| {
            let is_canary = row.is_marked_canary || row.has_canary_key;
            *is_closed && row.due >= from && !is_canary && !canaries.contains(&row.unit)
        };
        rows.iter().filter(is_taken).map(|(row, _)| (row.unit.notification.clone(), row.due)).collect()
    }

    /// What is to be written of a pass.
    pub fn save(&mut self, changes: Changes) -> FollowerSave {
        let places = keep::Places {
            notifications: self.notifications.position.clone(),
            attempts: self.attempts.position.clone(),
            horizon: self.horizon,
        };
        let is_fresh = std::mem::take(&mut self.is_fresh);
        let mut save = keep::save(changes, self.reader.routes(), &places, is_fresh);
        std::mem::take(&mut self.kept_anyway).add_to(&mut save);
        save
    }

    /// The figures after the last pass.
    pub fn figures(&self, as_of: DateTime<Utc>) -> FlowFigures {
        self.flow.figures(as_of)
    }

    /// How many notifications are held in memory.
    pub fn held(&self) -> u64 {
        self.flow.held() as u64
    }

    /// Whether it began with the history; else it went on from where an earlier pass had come to.
    pub const fn began_anew(&self) -> bool {
        self.began_anew
    }

    /// Where the history begins that is followed.
    pub const fn horizon(&self) -> DateTime<Utc> {
        self.horizon
    }

    /// How late rows may become visible.
    pub const fn overlap(&self) -> TimeDelta {
        self.overlap
    }

    /// The time of the newest notification that is followed for good.
    pub fn followed_until(&self) -> Option<DateTime<Utc>> {
        self.notifications.at
    }

    /// From when on, in seconds since 1970, counts are kept: by minute, and by hour.
    pub const fn kept_from(&self) -> (i64, i64) {
        self.flow.kept_from()
    }

    /// How many are pending, by the beginning of the hour that they were due in.
    pub fn pending_by_hour(&self) -> BTreeMap<DateTime<Utc>, u64> {
        self.flow.pending_by_hour()
    }

    /// Whether this one is held in memory.
    pub fn is_held(&self, unit: &UnitId) -> bool {
        self.flow.is_held(unit)
    }

    /// Takes in a pending notification that no stream can show any more. See [`Flow::take_in`].
    pub fn take_in(&mut self, row: NotificationRow, truth: &Truth, counted_in: Option<Place>) -> bool {
        self.flow.take_in(row, truth, counted_in)
    }

    /// The follower's division of what was due in an interval, by the place of the route.
    pub fn partition(&self, route: RouteNo, from: DateTime<Utc>, until: DateTime<Utc>) -> Partition {
        self.flow.partition(route, from, until)
    }

    /// The notifications of these rows that our own store knows as canaries. Each row is asked for when it is first met, and again when it
    /// closes: the acceptance may have been answered later than the ledger showed the row. A history from before our first canary isn't asked for.
    async fn canaries_among(
        &mut self,
        store: &dyn Store,
        rows: &[(NotificationRow, bool)],
    ) -> Result<Vec<UnitId>, StoreError> {
        let from = match self.canaries_from {
            Some(from) => from,
            None => store.oldest_canary().await?.unwrap_or_else(clock::now) - CANARY_MARGIN,
        };
        self.canaries_from = Some(from);
        let is_asked = |(row, is_closed): &&(NotificationRow, bool)| {
            let is_known = row.is_marked_canary || row.has_canary_key;
            !is_known && row.due >= from && (*is_closed || !self.open.contains_key(&row.unit))
        };
        let ids: Vec<String> =
            rows.iter().filter(is_asked).map(|(row, _)| text_of(&row.unit.notification)).collect();
        let known = if ids.is_empty() { BTreeSet::new() } else { store.canaries_among(&ids).await? };
        let before = std::mem::take(&mut self.open);
        let mut canaries = Vec::new();
        for (row, is_closed) in rows {
            let is_canary = before.get(&row.unit).copied().unwrap_or(false)
                || (!known.is_empty() && known.contains(&text_of(&row.unit.notification)));
            if is_canary {
                canaries.push(row.unit.clone());
            }
            if !is_closed {
                self.open.insert(row.unit.clone(), is_canary);
            }
        }
        Ok(canaries)
    }
}

/// Whether this notification was erased, by the digests of those that were.
pub(super) fn is_erased(erased: &BTreeSet<String>, unit: &UnitId) -> bool {
    !erased.is_empty() && erased.contains(&erasure_digest(&text_of(&unit.notification)))
}

fn settings(
    config: &Ledger,
    routes: &[RouteName],
    deadlines: &BTreeMap<RouteName, Duration>,
    horizon: DateTime<Utc>,
) -> Settings {
    // Validation sees to it that the maps name configured routes only.
    let deadline = |route: &RouteName| deadlines.get(route).copied().unwrap_or(NO_DEADLINE);
    let deadlines: Vec<Duration> = routes.iter().map(deadline).collect();
    Settings {
        fine_for: Settings::fine_for(&deadlines),
        deadlines,
        windows: LEDGER_WINDOWS.iter().map(|window| window.duration()).collect(),
        baseline: config.baseline,
        horizon: Some(horizon),
        history: HISTORY,
        overlap: config.overlap.get(),
        max_pending: config.max_pending as usize,
        sweep_per_pass: config.reread.per_refresh as usize,
        settle_per_pass: SETTLED_PER_PASS,
    }
}
