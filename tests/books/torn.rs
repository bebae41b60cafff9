//! Reading what a follower keeps, beside the one who writes it.

use super::service::Service;
use chrono::{TimeDelta, Utc};
use delivery_canary::{
    config::{
        self,
        model::{SqliteStore, StoreConfig},
    },
    ledger,
    monitor::flow::{Following, LedgerToFollow, PassError},
    store::{
        self, Store,
        follower::{FollowedUnit, FollowerSave, Lead},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Several pages of units, so that reading them takes longer than a save.
const UNITS: i64 = 45_000;

const PATIENCE: Duration = Duration::from_secs(60);

async fn save(store: &dyn Store, save: &FollowerSave) {
    let is_saved = store.save_followed("books", "leader", Utc::now(), save).await;
    assert!(is_saved.expect("the store takes it"), "this is the one that leads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_two_states_are_never_taken_for_one() {
    let service = Service::new(None, "2s").await;
    let loaded = config::load(&service.place.config, &|name| std::env::var(name).ok()).expect("it is right");
    let (name, config) = loaded.config.ledgers.first_key_value().expect("there is a ledger");
    let reader =
        Arc::new(ledger::open(name, config).expect("it can be read").flow().expect("it is followed"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = StoreConfig::Sqlite(SqliteStore { path: folder.path().join("store.db") });
    let store = store::open(&place).await.expect("the store opens");
    let lead = store.lead("books", "leader", Utc::now(), Utc::now() + TimeDelta::hours(1)).await;
    assert!(matches!(lead, Ok(Lead::Ours { .. })), "{lead:?}");
    let unit = |n| FollowedUnit {
        unit: format!("i{n}"),
        route: "webhook/receipts".into(),
        due: Utc::now(),
        body: "0 0 0 0".into(),
    };
    let position = r#"{"notifications":null,"attempts":null,"horizon":"2026-01-01T00:00:00Z"}"#;
    let mut next = FollowerSave { position: position.into(), ..FollowerSave::default() };
    next.units = (0..UNITS).map(unit).collect();
    save(&*store, &next).await;

    let wanted = LedgerToFollow {
        ledger: "books",
        config,
        reader,
        deadlines: &BTreeMap::new(),
        erased: &BTreeSet::new(),
    };
    let began = Instant::now();
    // Saves follow each other without a pause, until a reading has met them.
    let mut is_met = false;
    while !is_met {
        assert!(began.elapsed() < PATIENCE, "no reading was met by a save");
        next.units = vec![unit(0)];
        let saving = async {
            loop {
                save(&*store, &next).await;
            }
        };
        tokio::select! {
            () = saving => {}
            loaded = Following::load(&*store, &wanted, Utc::now()) => {
                is_met = matches!(loaded, Err(PassError::Moving));
                assert!(is_met || loaded.is_ok(), "{:?}", loaded.err());
            }
        }
    }
    let loaded = timeout(PATIENCE, Following::load(&*store, &wanted, Utc::now())).await.expect("in time");
    assert_eq!(loaded.expect("nobody saves now").held(), u64::try_from(UNITS).expect("a count"));
}
