//! The follower under test: the real one, with a store in a file.

use crate::baselines::{self, Distribution};
use anyhow::{Context, Result, ensure};
use chrono::{DateTime, DurationRound, SubsecRound, TimeDelta, Utc};
use delivery_canary::{
    config::{
        ledger::Ledger,
        model::{SqliteStore, StoreConfig},
    },
    domain::{
        accounting::{Partition, residue},
        flow::{rows::RouteNo, time::Passing},
        route::RouteName,
    },
    ledger::{self, FlowReader},
    monitor::flow::{Following, LedgerToFollow},
    store::{self, Store, follower::FollowerSave},
};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The words of the ledger for its routes, and ours.
const ROUTES: [(&str, &str); 3] =
    [("receipts", "webhook/receipts"), ("alerts", "sms/alerts"), ("notices", "email/notices")];

/// The ledger's name.
pub const LEDGER: &str = "bench";
const OWNER: &str = "bench";

/// Where a ledger and its follower's store are.
pub struct Subject {
    url: String,
    pub store: Arc<dyn Store>,
    _folder: TempDir,
}

/// What one pass took.
pub struct Pass {
    /// Rows read.
    pub rows: u64,
    /// Whether it read to the end.
    pub is_end: bool,
    /// As of when.
    pub as_of: DateTime<Utc>,
    /// Reading and folding.
    pub pass: Duration,
    /// Writing it down.
    pub save: Duration,
}

impl Subject {
    /// A store of its own, and the lead of the ledger.
    pub async fn new(url: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let store = open_store(folder.path()).await?;
        Ok(Self { url: url.to_owned(), store, _folder: folder })
    }

    /// A follower that goes on from what the store has.
    pub async fn following(&self, overlap: Duration) -> Result<Following> {
        following(&*self.store, ledger(&self.url, overlap)?).await
    }

    /// Asks plain SQL, and ends with an error where any number differs: the pending by route and age, and where all that was accepted in the
    /// history stands.
    pub async fn check(&self, following: &Following, as_of: DateTime<Utc>) -> Result<()> {
        let as_of = as_of.trunc_subsecs(6);
        let mut connection = PgConnection::connect(&self.url).await?;
        let plain = baselines::distribution(&mut connection, as_of).await?;
        connection.close().await?;
        let ours = self.pending(following, as_of)?;
        ensure!(ours == plain, "the pending by route and age: {ours:?}, and by plain SQL {plain:?}");

        let hour = |at: DateTime<Utc>| at.duration_trunc(TimeDelta::hours(1));
        let (from, until) = (hour(as_of - TimeDelta::days(29))?, hour(as_of + TimeDelta::hours(1))?);
        let reader = reader(&ledger(&self.url, Duration::from_secs(60))?)?;
        let counted = reader.partition(from, until).await?;
        let mut accepted = 0;
        for route in (0..=u16::try_from(reader.routes().len())?).map(RouteNo) {
            let mut plain = Partition::default();
            for (standing, count) in counted.counts.get(&route).into_iter().flatten() {
                plain.add_count((*standing).into(), i64::try_from(*count)?);
            }
            let ours = following.partition(route, from, until);
            ensure!(
                residue(&ours, &plain) == 0,
                "what was accepted: {:?}, and by plain SQL {:?}",
                ours.counts,
                plain.counts
            );
            accepted += ours.accepted();
        }
        let pending: u64 = ours.values().flatten().sum();
        println!(
            "      equal to plain SQL to the row: {pending} pending by route and age, {accepted} accepted in 29 days by route and disposition"
        );
        Ok(())
    }

    fn pending(&self, following: &Following, as_of: DateTime<Utc>) -> Result<Distribution> {
        let figures = following.figures(as_of);
        let reader = reader(&ledger(&self.url, Duration::from_secs(60))?)?;
        let mut all = Distribution::new();
        for (name, route) in reader.routes().iter().zip(figures.routes) {
            let word = ROUTES.iter().find(|(_, ours)| *ours == name.as_str()).context("a route")?.0;
            all.insert(word.into(), route.pending.ages);
        }
        all.retain(|_, ages| ages.iter().any(|count| *count > 0));
        Ok(all)
    }
}

/// Opens the store in this folder, and takes the lead for longer than any bench.
pub async fn open_store(folder: &Path) -> Result<Arc<dyn Store>> {
    let store = store::open(&StoreConfig::Sqlite(SqliteStore { path: folder.join("store.db") })).await?;
    let now = Utc::now();
    store.lead(LEDGER, OWNER, now, now + TimeDelta::days(1)).await?;
    Ok(store)
}

/// The reader of a ledger.
pub fn reader(config: &Ledger) -> Result<Arc<dyn FlowReader>> {
    Ok(Arc::new(ledger::open(LEDGER, config)?.flow().context("the ledger is followed")?))
}

/// A follower that goes on from what the store has.
pub async fn following(store: &dyn Store, config: Ledger) -> Result<Following> {
    let deadline = |(_, name): (&str, &str)| (RouteName::from_text(name), Duration::from_secs(900));
    let deadlines: BTreeMap<RouteName, Duration> = ROUTES.map(deadline).into();
    let wanted = LedgerToFollow {
        ledger: LEDGER,
        config: &config,
        reader: reader(&config)?,
        deadlines: &deadlines,
        erased: &BTreeSet::new(),
    };
    Ok(Following::load(store, &wanted, Utc::now()).await?)
}

/// Makes a pass and writes it down, as the monitor does.
pub async fn pass(store: &dyn Store, following: &mut Following) -> Result<Pass> {
    let began = Instant::now();
    let passed = following.pass(store, &BTreeSet::new(), &mut Passing::default()).await?;
    let save: FollowerSave = following.save(passed.changes);
    let pass = began.elapsed();
    ensure!(store.save_followed(LEDGER, OWNER, Utc::now(), &save).await?, "the lead is ours");
    let (rows, is_end, as_of) = (passed.rows, passed.is_end, passed.as_of);
    Ok(Pass { rows, is_end, as_of, pass, save: began.elapsed() - pass })
}

fn routes() -> serde_json::Value {
    ROUTES
        .iter()
        .map(|(word, name)| (word.to_string(), json!(name)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// What each configuration has.
fn common(url: &str, overlap: Duration, fields: serde_json::Value) -> Result<Ledger> {
    let mut all = json!({
        "database": { "postgres": { "url": url } },
        "statuses": {
            "delivered": "delivered", "retryable": "retryable", "bounced": "rejected_recipient", "unknown": "unknown",
            "provider_refused": "rejected_service", "suppressed": "suppressed", "sent": "delivered",
        },
        "overlap": format!("{}s", overlap.as_secs()),
        // The exact count of 29 days is no query of every day.
        "statement_timeout": "10m",
    });
    if let (Some(all), Some(fields)) = (all.as_object_mut(), fields.as_object()) {
        all.extend(fields.clone());
    }
    Ok(serde_json::from_value(all)?)
}

/// The configuration of docs/ledger.md for the tables of this bench. What isn't named is left at its default.
pub fn ledger(url: &str, overlap: Duration) -> Result<Ledger> {
    let fields = json!({
        "lookup": {
            "sql": "select n.id, n.route, n.accepted_at, a.id as attempt_id, a.outcome, a.started_at
                      from notifications n left join attempts a on a.notification_id = n.id
                     where n.id = any(:ids::uuid[]) limit :limit",
            "columns": {
                "notification_id": "id", "route": "route", "accepted_at": "accepted_at",
                "attempt_id": "attempt_id", "attempt_status": "outcome", "attempt_at": "started_at",
            },
        },
        "notifications": {
            "sql": "select id, route, accepted_at from notifications where (accepted_at, id) > (:after_ts, :after_id)
                     order by accepted_at, id limit :limit",
            "columns": { "notification_id": "id", "route": "route", "accepted_at": "accepted_at" },
            "cursor": { "at": "accepted_at", "id": "id" },
            "routes": routes(),
        },
        "attempts": {
            "sql": "select id, notification_id, outcome, started_at from attempts
                     where (started_at, id) > (:after_ts, :after_id) and started_at < :until_ts
                     order by started_at, id limit :limit",
            "columns": {
                "attempt_id": "id", "notification_id": "notification_id", "status": "outcome", "at": "started_at",
            },
            "cursor": { "at": "started_at", "id": "id" },
        },
        "partition": {
            // All attempts of all notifications in one walk: by far the fastest for 29 days.
            "sql": "select n.route, a.outcome, count(*) as n
                      from notifications n
                      left join (select distinct on (notification_id) notification_id, outcome from attempts
                                  order by notification_id, outcome in ('delivered', 'bounced', 'provider_refused', 'suppressed') desc,
                                           started_at desc, id desc) a on a.notification_id = n.id
                     where n.accepted_at >= :from_ts and n.accepted_at < :until_ts
                     group by n.route, a.outcome limit :limit",
            "columns": { "route": "route", "status": "outcome", "count": "n" },
            "routes": routes(),
        },
    });
    common(url, overlap, fields)
}

/// The same with the exact count of docs/ledger.md, which is the one for an hour: it asks for the attempts of each notification.
pub fn by_the_hour(url: &str, overlap: Duration) -> Result<Ledger> {
    let mut config = ledger(url, overlap)?;
    let partition = config.partition.as_mut().context("it has an exact count")?;
    partition.sql = "select n.route, a.outcome, count(*) as n
                       from notifications n
                       left join lateral (select outcome from attempts where notification_id = n.id
                                           order by outcome in ('delivered', 'bounced', 'provider_refused', 'suppressed') desc,
                                                    started_at desc, id desc limit 1) a on true
                      where n.accepted_at >= :from_ts and n.accepted_at < :until_ts
                      group by n.route, a.outcome limit :limit"
        .into();
    Ok(config)
}

/// A ledger of one table, with a column of a state: see [`crate::memory`].
pub fn one_table(url: &str, table: &str, pending: u64) -> Result<Ledger> {
    let fields = json!({
        "lookup": {
            "sql": format!("select id, case when seq > {pending} then 'sent' end as state from {table}
                             where id = any(:ids::uuid[]) limit :limit"),
            "columns": { "notification_id": "id", "status": "state" },
        },
        "notifications": {
            "sql": format!("select id, route, accepted_at, case when seq > {pending} then 'sent' end as state from {table}
                             where (accepted_at, id) > (:after_ts, :after_id) order by accepted_at, id limit :limit"),
            "columns": { "notification_id": "id", "route": "route", "accepted_at": "accepted_at", "status": "state" },
            "cursor": { "at": "accepted_at", "id": "id" },
            "routes": routes(),
        },
        "max_pending": 1_000_000,
    });
    common(url, Duration::from_secs(60), fields)
}
