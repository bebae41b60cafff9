//! A place for a store, and short ways to the values that the tests are made of.

use super::postgres_server::Postgres;
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::{
        model::{PostgresStore, SqliteStore, StoreConfig},
        scalar::Secret,
    },
    domain::{
        canary::{CanaryKind, Event, Judgement, Plan},
        evidence::{Content, Receipt, Submission, SubmissionResult},
        route::{CanaryId, Channel, IdempotencyKey, Location, NotificationId, RouteName},
        verdict::{Class, ExpectedEnd, Verdict},
    },
    store::{self, Append, Decision, Lease, PlanRequest, Planned, Store},
};
use std::sync::Arc;
use tempfile::TempDir;
use uuid::Uuid;

/// Where a store is: a file of a fresh folder, or a database of a fresh server.
pub struct Place {
    /// Goes with the place.
    _folder: TempDir,
    pub server: Option<Postgres>,
    pub config: StoreConfig,
}

impl Place {
    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let config = StoreConfig::Sqlite(SqliteStore { path: folder.path().join("store.db") });
        Self { _folder: folder, server: None, config }
    }

    pub async fn postgres() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let server = Postgres::start();
        let url = server.fresh_database().await;
        let config = StoreConfig::Postgres(PostgresStore { url: Secret::new(url), max_connections: 4 });
        Self { _folder: folder, server: Some(server), config }
    }

    /// Opens the store, as a process does.
    pub async fn open(&self) -> Arc<dyn Store> {
        store::open(&self.config).await.expect("the store opens")
    }

    /// The address of the same database, for looking into it from beside the store.
    pub fn address(&self) -> String {
        match &self.config {
            StoreConfig::Sqlite(config) => format!("sqlite:{}", config.path.display()),
            StoreConfig::Postgres(config) => config.url.expose().to_owned(),
        }
    }

    /// One number that a statement answers, read from beside the store.
    pub async fn number(&self, statement: &str) -> i64 {
        use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.address()).await.expect("the database is there");
        let row = sqlx::query(AssertSqlSafe(statement.to_owned())).fetch_one(&mut connection).await;
        let number = row.unwrap_or_else(|error| panic!("{statement}: {error}")).get(0);
        connection.close().await.expect("the connection closes");
        number
    }
}

/// Makes of each function of this module two tests, one for each database.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&mut crate::store::support::Place::sqlite().await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&mut crate::store::support::Place::postgres().await).await;
            })*
        }
    };
}
pub(crate) use on_both;

/// An instant some seconds after the beginning of a day.
pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_035_200 + seconds, 0).expect("an instant")
}

pub fn here() -> Location {
    Location::from_text("here")
}

pub fn route(name: &str) -> RouteName {
    RouteName::new(Channel::Webhook, name)
}

pub fn lease(owner: &str, until: DateTime<Utc>) -> Lease {
    Lease { owner: owner.into(), until }
}

/// A canary of this route, kind and slot.
pub fn plan(route_name: &str, kind: CanaryKind, slot: DateTime<Utc>) -> Plan {
    let (route, location) = (route(route_name), here());
    Plan {
        canary_id: CanaryId(Uuid::now_v7()),
        key: IdempotencyKey::derive(&route, &location, kind, slot),
        route,
        location,
        kind,
        slot,
        planned_at: slot + TimeDelta::milliseconds(3),
        deadline: TimeDelta::seconds(60),
        settle: TimeDelta::seconds(60),
        follow_for: TimeDelta::hours(24),
        ledger_overlap: TimeDelta::seconds(10),
        expected_end: ExpectedEnd::Delivered,
        has_ledger: true,
        has_sink: true,
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        parent: None,
    }
}

pub fn wish(plan: Plan, hourly_cap: u32) -> PlanRequest {
    let next_look = plan.slot + TimeDelta::seconds(120);
    PlanRequest { plan, hourly_cap, next_look }
}

/// Plans one scheduled canary and ends its lease.
pub async fn planned(store: &dyn Store, route_name: &str, slot: DateTime<Utc>) -> Plan {
    planned_of(store, plan(route_name, CanaryKind::Scheduled, slot)).await
}

/// Plans this canary and ends its lease.
pub async fn planned_of(store: &dyn Store, plan: Plan) -> Plan {
    let lease = lease("one", plan.slot + TimeDelta::seconds(30));
    let answer = store.plan(&[wish(plan.clone(), 1_000)], &lease).await.expect("plans");
    assert_eq!(answer, [Planned::Ours]);
    append(store, plan.canary_id, vec![accepted("n-1", plan.slot)], true).await;
    plan
}

pub async fn append(store: &dyn Store, canary_id: CanaryId, events: Vec<Event>, release: bool) {
    let append = Append { canary_id, events, look_by: None, release };
    store.append(&[append]).await.expect("appends");
}

pub fn accepted(notification_id: &str, when: DateTime<Utc>) -> Event {
    Event::Submitted(Submission {
        way: None,
        ledger: None,
        started_at: when,
        ended_at: when + TimeDelta::milliseconds(20),
        status: Some(202),
        result: SubmissionResult::Accepted {
            notification_id: Some(NotificationId::from_text(notification_id)),
        },
    })
}

pub fn arrived(arrival: &str, when: DateTime<Utc>) -> Event {
    Event::Received(Receipt {
        at: when,
        content: Content::Intact,
        digest: "5f".repeat(32),
        message: None,
        correlated: Some(true),
        arrival_id: arrival.into(),
    })
}

pub fn judged(verdict: Verdict, when: DateTime<Utc>) -> Judgement {
    Judgement { at: when, verdict, class: verdict.class(ExpectedEnd::Delivered) }
}

/// A decision on the canary as it now is.
pub async fn decision(store: &dyn Store, canary_id: CanaryId, events: Vec<Event>) -> Decision {
    let (stored, _) = store.canary(canary_id).await.expect("reads").expect("the canary is there");
    Decision { canary_id, version: stored.version, events, stopped: None, next_look: None }
}

pub async fn decide(store: &dyn Store, canary_id: CanaryId, events: Vec<Event>) {
    let decision = decision(store, canary_id, events).await;
    assert_eq!(store.decide(&[decision]).await.expect("decides"), [true]);
}

/// Settles a canary at an instant.
pub async fn settle(store: &dyn Store, canary_id: CanaryId, verdict: Verdict, when: DateTime<Utc>) {
    decide(store, canary_id, vec![Event::Settled(judged(verdict, when))]).await;
}

/// Sums over a window as (route, verdict, class, count), in order.
pub async fn window(
    store: &dyn Store,
    seconds: u64,
    now: DateTime<Utc>,
) -> Vec<(String, Verdict, Class, u64)> {
    let sums = store.window(std::time::Duration::from_secs(seconds), now).await.expect("reads");
    let mut sums: Vec<_> =
        sums.into_iter().map(|s| (s.route.as_str().to_owned(), s.verdict, s.class, s.count)).collect();
    sums.sort();
    sums
}
