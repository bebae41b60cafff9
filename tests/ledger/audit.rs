//! The audit of a followed ledger on real databases: each change of history is found as what it is, and nothing that we merely can't see.

use super::support::{Bed, ends};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::{
        ledger::Ledger,
        model::{SqliteStore, StoreConfig},
    },
    domain::{
        audit::{
            compare::Change,
            sample::{Judged, READ_PER_PASS},
        },
        flow::{rows::LedgerId, time::Passing},
        route::RouteName,
    },
    ledger::{self, FlowReader},
    monitor::flow::{Audit, AuditError, Audited, Following, LedgerToFollow},
    store::{self, AuditSums, Store},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

pub const HOUR: i64 = 3_600;

/// A second reading is made this long after the first, at the least: the default of `freshness`.
pub const AGAIN: i64 = 61;

/// Makes a test for each database of each of these.
macro_rules! on_each {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::ledger::support::Bed::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::ledger::support::Bed::postgres().await).await;
            })*
        }
        mod mariadb {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::ledger::support::Bed::mariadb().await).await;
            })*
        }
    };
}

on_each!(
    each_change_is_found_as_what_it_is,
    what_cannot_be_read_is_no_change,
    a_status_that_is_changed_in_place_is_held_too,
    one_pass_reads_a_bounded_number,
);

/// A ledger, its follower and its audit.
pub struct Bench {
    pub bed: Bed,
    pub config: Ledger,
    pub reader: Arc<dyn FlowReader>,
    pub store: Arc<dyn Store>,
    pub audit: Audit,
    pub erased: BTreeSet<String>,
    /// When all notifications were accepted: long enough ago that their first reading is due.
    pub base: DateTime<Utc>,
    _folder: TempDir,
}

pub fn by_keys(bed: &Bed, column: &str) -> String {
    bed.any_of(column, "").replace(":ids", ":keys")
}

/// The queries over tables of notifications and attempts.
pub fn queries(bed: &Bed) -> Value {
    let (ids, keys) = (bed.any_of("n.id", "::int[]"), by_keys(bed, "n.k"));
    let cursor = json!({ "at": "at", "id": "id" });
    json!({
        "lookup": {
            "sql": format!(
                "select n.id, n.k, n.at, a.seq, a.status, a.at as started from n left join a on a.id = n.id where {ids} or {keys} limit :limit"),
            "columns": { "notification_id": "id", "idempotency_key": "k", "accepted_at": "at", "attempt_id": "seq",
                         "attempt_status": "status", "attempt_at": "started" },
        },
        "notifications": {
            "sql": format!("select id, at from n where {} order by at, id limit :limit", bed.behind("at", "id")),
            "columns": { "notification_id": "id", "accepted_at": "at" }, "cursor": cursor, "routes": { "*": "email/receipts" },
        },
        "attempts": {
            "sql": format!("select seq, id, status, at from a where {} order by at, seq limit :limit", bed.behind("at", "seq")),
            "columns": { "attempt_id": "seq", "notification_id": "id", "status": "status", "at": "at" },
            "cursor": { "at": "at", "id": "seq" },
        },
    })
}

impl Bench {
    pub async fn new(bed: Bed) -> Self {
        let (time, text) = (bed.time_type(), bed.text_type());
        bed.execute(&format!(
            "create table n (id integer, k {text}, at {time}); create table a (seq integer, id integer, status {text}, at {time})"
        ))
        .await;
        let queries = queries(&bed);
        Self::with(bed, queries).await
    }

    pub async fn with(bed: Bed, queries: Value) -> Self {
        let mut config = json!({
            "database": bed.database(),
            "statuses": { "delivered": "delivered", "failed": "retryable", "bounced": "rejected_recipient", "held": "suppressed" },
            "statement_timeout": "20s", "overlap": "1s",
        });
        config.as_object_mut().unwrap().extend(queries.as_object().unwrap().clone());
        let config: Ledger = serde_json::from_value(config).expect("the test's configuration is one");
        let reader = ledger::open("test", &config).unwrap().flow().expect("it is followed");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = StoreConfig::Sqlite(SqliteStore { path: folder.path().join("store.db") });
        let store = store::open(&place).await.expect("the store opens");
        let now = Utc::now();
        // The audit looks days ahead.
        store.lead("test", "me", now, now + TimeDelta::days(100)).await.expect("the store answers");
        Self {
            bed,
            config,
            reader: Arc::new(reader),
            store,
            audit: Audit::default(),
            erased: BTreeSet::new(),
            base: DateTime::from_timestamp(now.timestamp() - 400, 0).unwrap(),
            _folder: folder,
        }
    }

    pub fn time(&self, second: i64) -> String {
        self.bed.time(self.base + TimeDelta::seconds(second))
    }

    /// A notification, and its attempts by id, status and second.
    pub async fn insert(&self, id: i64, key: Option<&str>, attempts: &[(i64, &str, i64)]) {
        let key = key.map_or("null".to_owned(), |key| format!("'{key}'"));
        let mut sql = format!("insert into n values ({id}, {key}, '{}')", self.time(0));
        for (seq, status, second) in attempts {
            sql += &format!("; insert into a values ({seq}, {id}, '{status}', '{}')", self.time(*second));
        }
        self.bed.execute(&sql).await;
    }

    pub async fn pass(
        &mut self,
        recent: &[(LedgerId, DateTime<Utc>)],
        is_end: bool,
        ahead: i64,
    ) -> Result<Judged, AuditError> {
        let audited = Audited { ledger: "test", owner: "me", config: &self.config, erased: &self.erased };
        let now = Utc::now() + TimeDelta::seconds(ahead);
        let pass = self.audit.pass(audited, &*self.reader, &*self.store, recent, is_end, now);
        ends("an audit", pass).await
    }

    /// Follows to the end, and takes the sample.
    pub async fn follow(&mut self) {
        let deadlines = BTreeMap::from([(RouteName::from_text("email/receipts"), Duration::from_secs(60))]);
        let wanted = LedgerToFollow {
            ledger: "test",
            config: &self.config,
            reader: Arc::clone(&self.reader),
            deadlines: &deadlines,
            erased: &self.erased,
        };
        let mut following = Following::anew(&wanted, Utc::now()).unwrap();
        loop {
            let passed = ends("a pass", following.pass(&*self.store, &self.erased, &mut Passing::default()))
                .await
                .unwrap();
            self.pass(&passed.recent, false, 0).await.unwrap();
            if passed.is_end {
                break;
            }
        }
    }

    /// What is found when the audit looks so far ahead of now, by notification.
    pub async fn look(&mut self, ahead: i64) -> BTreeMap<i64, Vec<(Change, u64)>> {
        let judged = self.pass(&[], true, ahead).await.unwrap();
        let mut found: BTreeMap<i64, Vec<(Change, u64)>> = BTreeMap::new();
        for (id, change, count) in judged.found {
            let LedgerId::Int(id) = id else { panic!("{id:?} is no number") };
            found.entry(id).or_default().push((change, count));
        }
        found
    }

    pub async fn sums(&self) -> AuditSums {
        let all = store_sums(&*self.store).await;
        all.get("test").cloned().unwrap_or_default()
    }

    pub async fn sampled(&self) -> usize {
        self.store.audited("test").await.expect("the store answers").len()
    }
}

pub async fn store_sums(store: &dyn Store) -> BTreeMap<String, AuditSums> {
    let window = Duration::from_secs(10 * 86_400);
    store.audits(window, Utc::now() + TimeDelta::days(5)).await.expect("the store answers")
}

async fn each_change_is_found_as_what_it_is(bed: Bed) {
    use Change::{
        AttemptAfterTerminal, AttemptVanished, LateReversal, OutcomeRewritten, SecondEffectForOneKey,
    };
    let mut bench = Bench::new(bed).await;
    for id in 1..=12 {
        let key = format!("key-{id}");
        let key = (id < 10).then_some(key.as_str());
        let attempts = [(10 * id, "failed", 10), (10 * id + 1, "delivered", 20)];
        bench.insert(id, key, &attempts).await;
    }
    bench.insert(13, None, &[(130, "failed", 10)]).await;
    bench.insert(14, None, &[]).await;
    bench.insert(15, None, &[(150, "delivered", 10), (151, "failed", 20)]).await;
    bench.follow().await;
    let first = BTreeMap::from([(15, vec![(AttemptAfterTerminal, 1)])]);
    assert_eq!(bench.look(0).await, first, "that is there at the first reading");
    let late = bench.time(100);
    for sql in [
        "update a set status = 'held' where seq = 11",
        "update a set status = 'failed' where seq = 21",
        "delete from a where seq = 30",
        "update a set status = 'bounced' where seq = 41",
        &format!("insert into a values (52, 5, 'failed', '{late}')"),
        &format!("insert into a values (62, 6, 'bounced', '{late}')"),
        "delete from a where id = 7",
        "delete from n where id = 7",
        &format!("insert into n values (80, 'key-8', '{late}')"),
        // All of these are allowed: what isn't at its end goes on, and what became visible late was earlier.
        "update a set status = 'delivered' where seq = 130",
        &format!("insert into a values (140, 14, 'held', '{late}')"),
        &format!("insert into a values (92, 9, 'failed', '{}')", bench.time(15)),
    ] {
        bench.bed.execute(sql).await;
    }
    let mut all: BTreeMap<i64, Vec<(Change, u64)>> = BTreeMap::new();
    let mut at_once = Vec::new();
    for ahead in [HOUR, HOUR + AGAIN, HOUR + 2 * AGAIN, 6 * HOUR, 6 * HOUR + AGAIN, 24 * HOUR] {
        let found = bench.look(ahead).await;
        if ahead == HOUR {
            at_once.extend(found.keys().copied());
        }
        found.into_iter().for_each(|(id, found)| all.entry(id).or_default().extend(found));
    }
    assert_eq!(at_once, [4, 5, 6, 8], "what an older view can't look like needs no second reading");
    let expected = BTreeMap::from([
        (1, vec![(OutcomeRewritten, 1)]),
        (2, vec![(OutcomeRewritten, 1)]),
        (3, vec![(AttemptVanished, 1)]),
        (4, vec![(LateReversal, 1)]),
        (5, vec![(AttemptAfterTerminal, 1)]),
        (6, vec![(LateReversal, 1)]),
        (7, vec![(AttemptVanished, 2)]),
        (8, vec![(SecondEffectForOneKey, 1)]),
    ]);
    assert_eq!(all, expected);
    let sums = bench.sums().await;
    let of = |change| sums.found.get(&change).copied().unwrap_or(0);
    assert_eq!(Change::ALL.map(of), [2, 3, 2, 1, 2], "the same is in the store");
    // Fifteen after an hour, four of them twice, and fifteen after six hours and after a day.
    assert_eq!(sums.compared, 15 + 4 + 15 + 15);
    assert_eq!(bench.sampled().await, 0, "after the last age they leave the sample");
}

async fn what_cannot_be_read_is_no_change(bed: Bed) {
    let mut bench = Bench::new(bed).await;
    for id in 1..=3 {
        bench.insert(id, None, &[(10 * id, "delivered", 10)]).await;
    }
    bench.follow().await;
    assert_eq!(bench.look(0).await, BTreeMap::new());
    bench.bed.execute("alter table a rename to b").await;
    let error = bench.pass(&[], true, HOUR).await.expect_err("there is no such table");
    assert!(matches!(error, AuditError::Ledger(_)), "{error}");
    assert_eq!(bench.look(HOUR).await, BTreeMap::new(), "nothing is asked for a while");
    bench.bed.execute("alter table b rename to a").await;
    // Another process takes over, from what was written.
    bench.audit = Audit::default();
    // A view from before the attempts were made, as of a replica that says nothing of its lag.
    bench.bed.execute("update a set status = 'failed', id = -id").await;
    assert_eq!(bench.look(HOUR).await, BTreeMap::new());
    bench.bed.execute("update a set status = 'delivered', id = -id").await;
    for ahead in [HOUR + AGAIN, 6 * HOUR, 24 * HOUR] {
        bench.audit = Audit::default();
        assert_eq!(bench.look(ahead).await, BTreeMap::new());
    }
    let sums = bench.sums().await;
    assert_eq!((sums.found, sums.compared), (BTreeMap::new(), 12));
}

async fn a_status_that_is_changed_in_place_is_held_too(bed: Bed) {
    let (time, text) = (bed.time_type(), bed.text_type());
    bed.execute(&format!("create table n (id integer, k {text}, status {text}, at {time})")).await;
    let mut queries = queries(&bed);
    queries.as_object_mut().unwrap().remove("attempts");
    queries["lookup"] = json!({
        "sql": format!("select id, status, at from n where {} limit :limit", bed.any_of("id", "::int[]")),
        "columns": { "notification_id": "id", "status": "status", "accepted_at": "at" },
    });
    let sql = queries["notifications"]["sql"].as_str().unwrap().replace("select id", "select id, status");
    queries["notifications"]["sql"] = sql.into();
    queries["notifications"]["columns"]["status"] = "status".into();
    let mut bench = Bench::with(bed, queries).await;
    let at = bench.time(0);
    for (id, status) in
        [(1, "'delivered'"), (2, "'delivered'"), (3, "'held'"), (4, "null"), (5, "'failed'"), (6, "'held'")]
    {
        bench.bed.execute(&format!("insert into n values ({id}, null, {status}, '{at}')")).await;
    }
    bench.follow().await;
    assert_eq!(bench.look(0).await, BTreeMap::new());
    bench
        .bed
        .execute(
            "update n set status = 'bounced' where id = 1; update n set status = 'failed' where id = 2; delete from n where id = 3; \
             update n set status = 'failed' where id = 4; update n set status = 'delivered' where id = 5",
        )
        .await;
    let mut all = bench.look(HOUR).await;
    all.extend(bench.look(HOUR + AGAIN).await);
    let expected = BTreeMap::from([
        (1, vec![(Change::LateReversal, 1)]),
        (2, vec![(Change::OutcomeRewritten, 1)]),
        (3, vec![(Change::AttemptVanished, 1)]),
    ]);
    assert_eq!(all, expected);
}

async fn one_pass_reads_a_bounded_number(bed: Bed) {
    let mut bench = Bench::new(bed).await;
    let count = i64::try_from(READ_PER_PASS).unwrap() + 10;
    let rows: Vec<String> = (1..=count).map(|id| format!("({id}, null, '{}')", bench.time(0))).collect();
    bench.bed.execute(&format!("insert into n values {}", rows.join(", "))).await;
    bench.config.audit.sample = 20_000;
    bench.follow().await;
    assert_eq!(bench.sampled().await, READ_PER_PASS + 10);
    bench.look(0).await;
    assert_eq!(bench.audit.overdue(), Some(10), "what a pass leaves is told");
    bench.look(0).await;
    assert_eq!(bench.audit.overdue(), Some(0));
    for compared in [READ_PER_PASS, READ_PER_PASS + 10, READ_PER_PASS + 10] {
        bench.look(HOUR).await;
        assert_eq!(bench.sums().await.compared, u64::try_from(compared).unwrap());
    }
    // The part of the time that they are all in has so much room in a small sample, whoever asks.
    bench.config.audit.sample = 50;
    bench.audit.reload();
    bench.look(HOUR).await;
    assert_eq!(bench.sampled().await, 50);
}
