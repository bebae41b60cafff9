//! A ledger with nothing in it that takes its time to say so, and a process that has the follower's loop alone.

use crate::{shapes::bed::run, store::support::Place};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use delivery_canary::{
    catalog::labels::FollowerMode,
    cli::wiring,
    clock,
    config::{self, scalar::Span},
    domain::{
        audit::sample::Reading,
        flow::rows::{AttemptRow, LedgerId, NotificationRow, UnitId},
        route::RouteName,
    },
    ledger::{
        FlowReader, LedgerError, Position,
        flow::{Page, PartitionReading, Truths},
    },
    monitor::{active::Active, adapters::Adapters, flow, shared::Shared},
};
use sqlx::{AnyConnection, Connection};
use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedRwLockWriteGuard, RwLock},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// How long a state may take to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for a state. What was seen last is told where it doesn't come.
pub async fn until<T: std::fmt::Display, F: Future<Output = (bool, T)>>(
    what: &str,
    mut look: impl FnMut() -> F,
) {
    let began = Instant::now();
    loop {
        let (is_so, seen) = look().await;
        if is_so {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "no {what} within {PATIENCE:?}: {seen}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Runs statements beside the store.
pub async fn execute(place: &Place, sql: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(&place.address()).await.expect("the database is there");
    run(&mut connection, sql).await;
    connection.close().await.expect("the connection closes");
}

/// An empty ledger.
pub struct Slow {
    takes: Duration,
    gate: Arc<RwLock<()>>,
    is_broken: AtomicBool,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Slow {
    /// Each page of it takes this long.
    pub fn of(takes: Duration) -> Self {
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { takes, gate: Arc::default(), is_broken: AtomicBool::new(false), begun, ended }
    }

    /// From now on it can't be read, or it can.
    pub fn breaks(&self, is_broken: bool) {
        self.is_broken.store(is_broken, Ordering::SeqCst);
    }

    /// Answers nothing as long as this is held.
    pub fn close(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).try_write_owned().expect("nobody reads yet")
    }

    /// How many pages were asked for.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// How many pages were answered.
    pub fn readings(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl FlowReader for Slow {
    fn routes(&self) -> &[RouteName] {
        &[]
    }

    fn has_attempts(&self) -> bool {
        false
    }

    fn has_partition(&self) -> bool {
        false
    }

    async fn notifications_page(
        &self,
        _after: Option<&Position>,
        _until: Option<DateTime<Utc>>,
    ) -> Result<Page<NotificationRow>, LedgerError> {
        let began_at = clock::now();
        self.begun.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        drop(self.gate.read().await);
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(LedgerError::Unreachable("it is broken".to_owned()));
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(Page {
            rows: vec![],
            is_full: false,
            began_at,
            database_now: began_at,
            lag: Duration::ZERO,
            refused: 0,
        })
    }

    async fn notifications_from(&self, _from: DateTime<Utc>) -> Result<Position, LedgerError> {
        unreachable!("nothing is pending in it")
    }

    async fn attempts_page(
        &self,
        _after: Option<&Position>,
        _until: Option<DateTime<Utc>>,
    ) -> Result<Page<AttemptRow>, LedgerError> {
        unreachable!("it has none")
    }

    async fn truths(&self, _units: &[UnitId]) -> Result<Truths, LedgerError> {
        Ok(Truths { as_of: clock::now(), found: HashMap::new(), refused: 0 })
    }

    async fn histories(&self, _notifications: &[LedgerId], _with_keys: bool) -> Result<Reading, LedgerError> {
        Ok(Reading { as_of: clock::now(), found: HashMap::new() })
    }

    async fn partition(
        &self,
        _from: DateTime<Utc>,
        _until: DateTime<Utc>,
    ) -> Result<PartitionReading, LedgerError> {
        unreachable!("it can't be counted")
    }
}

/// A process that follows ledgers, and does nothing else.
pub struct Process {
    shared: Arc<Shared>,
    cancel: CancellationToken,
    follows: JoinHandle<()>,
}

impl Process {
    /// Follows these ledgers, each every second.
    pub async fn start(place: &Place, readers: &[(&str, Arc<Slow>)]) -> Self {
        let env = |name: &str| {
            Some(if name.ends_with("_URL") {
                "postgres://nobody@127.0.0.1:1/none".to_owned()
            } else {
                "of-nobody-0123456789abcdef0123456789abcdef".to_owned()
            })
        };
        let mut loaded = config::load(Path::new("config/shapes/decimal_epochs.yaml"), &env)
            .unwrap_or_else(|faults| panic!("{faults}"));
        for ledger in loaded.config.ledgers.values_mut() {
            ledger.refresh_every = Span::seconds(1);
        }
        let config = loaded.config.clone();
        let hash = loaded.hash;
        let store = place.open().await;
        store.look().await.expect("the store answers");
        let shared = wiring::share(loaded, store, Arc::default()).expect("it is wired");
        let adapters = shared.active.load().adapters.clone();
        let read_by = |name: &str| {
            readers
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, reader)| Arc::clone(reader) as Arc<dyn FlowReader>)
        };
        let ledgers = adapters.ledgers.into_iter().map(|(name, mut adapter)| {
            adapter.flow = read_by(&name);
            (name, adapter)
        });
        let adapters = Adapters { ledgers: ledgers.collect(), ..adapters };
        shared
            .active
            .store(Arc::new(Active::new(config, hash, adapters, clock::now()).expect("it is ready")));
        let cancel = CancellationToken::new();
        let follows = tokio::spawn(flow::run(Arc::clone(&shared), cancel.clone()));
        Self { shared, cancel, follows }
    }

    /// What it does with a ledger.
    pub fn mode(&self, ledger: &str) -> FollowerMode {
        self.shared.flow(ledger).mode
    }

    /// Whether it shows figures.
    pub fn has_figures(&self, ledger: &str) -> bool {
        self.shared.flow(ledger).figures.is_some()
    }

    /// What is seen of it, to be told.
    pub fn seen(&self, ledger: &str) -> String {
        format!("{:?}", self.shared.flow(ledger))
    }

    /// When what is kept of a ledger was last written.
    pub async fn saved_at(&self, ledger: &str) -> Option<DateTime<Utc>> {
        self.shared.store.followed_saved_at(ledger).await.expect("the store answers")
    }

    /// Stops as at SIGTERM.
    pub async fn stop(self) {
        self.cancel.cancel();
        self.follows.await.expect("it comes to its end");
    }
}
