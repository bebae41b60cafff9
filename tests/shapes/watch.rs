//! The follower of the monitor, pass by pass, over a real store.

use super::{
    bed::Database,
    plain::{Counts, Plain, Question, WINDOWS, difference, followed},
};
use chrono::{DateTime, DurationRound, SubsecRound, TimeDelta, Utc};
use delivery_canary::{
    config::{
        Loaded,
        ledger::Ledger,
        model::{SqliteStore, StoreConfig},
    },
    domain::{
        accounting::Partition,
        flow::{rows::RouteNo, time::Passing},
        route::RouteName,
    },
    ledger::{self, FlowReader, LedgerAdapter, LedgerFigures},
    monitor::flow::{Following, LedgerToFollow, PassError, Passed},
    store::{self, Store, follower::Lead},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// How long a comparison may take to hold: rows close only after the overlap, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// A follower of one ledger.
pub struct Watch {
    name: String,
    config: Ledger,
    deadlines: BTreeMap<RouteName, Duration>,
    adapter: Arc<LedgerAdapter>,
    reader: Arc<dyn FlowReader>,
    store: Arc<dyn Store>,
    following: Option<Following>,
    _folder: TempDir,
}

impl Watch {
    /// A follower that has read nothing yet.
    pub async fn new(loaded: &Loaded, name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = StoreConfig::Sqlite(SqliteStore { path: folder.path().join("store.db") });
        let routes = loaded.config.routes.iter();
        let ledger = loaded.config.ledgers[name].clone();
        let adapter = ledger::open(name, &ledger).expect("the ledger can be read");
        Self {
            name: name.to_owned(),
            deadlines: routes.map(|route| (route.full_name(), route.deadline.get())).collect(),
            reader: Arc::new(adapter.flow().expect("it is followed")),
            adapter,
            config: ledger,
            store: store::open(&config).await.expect("the store opens"),
            following: None,
            _folder: folder,
        }
    }

    /// One pass that succeeds.
    async fn pass(&mut self) -> Passed {
        self.try_pass().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// One pass, written down. The first one after a start or a failure goes on from what was kept.
    pub async fn try_pass(&mut self) -> Result<Passed, PassError> {
        let now = Utc::now();
        let lead = self.store.lead(&self.name, "test", now, now + TimeDelta::minutes(10)).await;
        assert!(matches!(lead, Ok(Lead::Ours { .. })), "{lead:?}");
        let mut following = match self.following.take() {
            Some(following) => following,
            None => {
                let wanted = LedgerToFollow {
                    ledger: &self.name,
                    config: &self.config,
                    reader: Arc::clone(&self.reader),
                    deadlines: &self.deadlines,
                    erased: &BTreeSet::new(),
                };
                Following::load(&*self.store, &wanted, now).await.expect("it goes on from what was kept")
            }
        };
        let mut passed = following.pass(&*self.store, &BTreeSet::new(), &mut Passing::default()).await?;
        let save = following.save(std::mem::take(&mut passed.changes));
        let is_saved = self.store.save_followed(&self.name, "test", Utc::now(), &save).await;
        assert!(is_saved.expect("the store takes it"), "this is the one that leads");
        self.following = Some(following);
        Ok(passed)
    }

    /// What was read so far.
    pub fn figures(&self) -> LedgerFigures {
        self.adapter.stats().figures()
    }

    /// From what the follower of this process goes on; nothing before its first pass.
    pub fn began_anew(&self) -> Option<bool> {
        self.following.as_ref().map(Following::began_anew)
    }

    /// A process that ends and another one that begins.
    pub fn restart(&mut self) {
        self.following = None;
    }

    /// Makes passes until the follower says what plain SQL and the exact count by its own query say.
    pub async fn until_agreed(&mut self, what: &str, database: &Database, plain: &Plain) {
        self.until(what, database, plain, true).await;
    }

    /// Makes passes until the follower says what plain SQL says, where the ledger can't count any more what it has deleted.
    pub async fn until_followed(&mut self, what: &str, database: &Database, plain: &Plain) {
        self.until(what, database, plain, false).await;
    }

    async fn until(&mut self, what: &str, database: &Database, plain: &Plain, has_count: bool) {
        let (began, mut passes) = (Instant::now(), 0);
        loop {
            let passed = self.pass().await;
            passes += 1;
            let unlike = if passed.is_end {
                self.compare(passed.as_of, database, plain, has_count).await
            } else {
                Some("the history is still being read".into())
            };
            let Some(unlike) = unlike else { break };
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: no agreement in {PATIENCE:?} and {passes} passes: {unlike}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What the follower says against plain SQL, and against the exact count by the configured query: how they differ.
    async fn compare(
        &self,
        as_of: DateTime<Utc>,
        database: &Database,
        plain: &Plain,
        has_count: bool,
    ) -> Option<String> {
        let following = self.following.as_ref().expect("a pass was made");
        let as_of = as_of.trunc_subsecs(6);
        let figures = following.figures(as_of);
        let hour = as_of.duration_trunc(TimeDelta::hours(1)).expect("an hour");
        let (from, until) = (hour - TimeDelta::days(10), hour + TimeDelta::days(30));
        let names: Vec<String> = self.reader.routes().iter().map(ToString::to_string).collect();
        let counted = self.reader.partition(from, until).await.expect("it can be counted");
        let (mut all, mut cohorts, mut unlike) = (BTreeMap::new(), BTreeMap::new(), String::new());
        for ((place, name), route) in (0..=u16::MAX).map(RouteNo).zip(&names).zip(&figures.routes) {
            let ours = following.partition(place, from, until);
            let mut exact = Partition::default();
            for (standing, count) in counted.counts.get(&place).into_iter().flatten() {
                exact.add_count((*standing).into(), i64::try_from(*count).expect("a small count"));
            }
            if has_count && ours.counts != exact.counts {
                unlike += &format!(
                    "\n{name}: followed {:?}, by its own exact count {:?}",
                    ours.counts, exact.counts
                );
            }
            all.insert(name.clone(), ours.counts);
            for window in WINDOWS {
                let due_in = route.windows[&window].due_in;
                cohorts.insert((name.clone(), window), (due_in.from, due_in.until));
            }
        }
        let of_ledger = self.deadlines.iter().filter(|(route, _)| self.reader.routes().contains(route));
        let deadlines: BTreeMap<String, Duration> =
            of_ledger.map(|(route, deadline)| (route.to_string(), *deadline)).collect();
        let question = Question { as_of, deadlines: &deadlines, cohorts: &cohorts };
        let theirs: Counts = plain.answer(database, &question).await;
        assert!(theirs.values().len() > 10, "too little to compare: {theirs:?}");
        unlike += &difference(&followed(&figures, &names, &all), &theirs).unwrap_or_default();
        (!unlike.is_empty()).then_some(unlike)
    }
}
