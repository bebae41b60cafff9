//! The database goes and comes back.

use super::{
    postgres_server::Postgres,
    support::{Place, append, arrived, at, here, lease, plan, planned, wish},
};
use delivery_canary::{
    config::{
        model::{PostgresStore, StoreConfig},
        scalar::Secret,
    },
    domain::canary::CanaryKind,
    store::{Planned, Store, StoreError},
};
use std::time::{Duration, Instant};
use tokio::io::copy_bidirectional;

/// How long a store may take to be used again. A busy machine is slow.
const WITHIN: Duration = Duration::from_secs(60);

/// Asks until it is answered.
async fn until_it_answers(store: &dyn Store) {
    let began = Instant::now();
    while let Err(error) = store.ping().await {
        assert!(began.elapsed() < WITHIN, "still not used again after {WITHIN:?}: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every sort of call answers that the store is unavailable, and none waits for ever.
async fn all_are_unavailable(store: &dyn Store) {
    let wishes = [wish(plan("a", CanaryKind::Scheduled, at(999)), 9)];
    let is_unavailable = |what: &str, error: Option<StoreError>| {
        assert!(matches!(error, Some(StoreError::Unavailable(_))), "{what}: {error:?}");
    };
    let (lease, here) = (lease("one", at(1_000)), here());
    let calls = async {
        tokio::join!(
            store.ping(),
            store.plan(&wishes, &lease),
            store.due(&here, at(0), 9, &[]),
            store.window(Duration::from_secs(300), at(0)),
        )
    };
    let (ping, plan, due, window) =
        tokio::time::timeout(WITHIN, calls).await.expect("the calls end by themselves");
    is_unavailable("ping", ping.err());
    is_unavailable("plan", plan.err());
    is_unavailable("due", due.err());
    is_unavailable("window", window.err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_stops_and_starts() {
    let mut place = Place::postgres().await;
    let store = place.open().await;
    let before = planned(&*store, "a", at(0)).await;
    place.server.as_mut().expect("a server").stop();
    all_are_unavailable(&*store).await;
    place.server.as_mut().expect("a server").start_again();
    until_it_answers(&*store).await;
    append(&*store, before.canary_id, vec![arrived("1", at(5))], false).await;
    let answer =
        store.plan(&[wish(plan("a", CanaryKind::Scheduled, at(60)), 9)], &lease("one", at(90))).await;
    assert_eq!(answer.expect("plans"), [Planned::Ours]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_may_be_down_at_the_start() {
    let mut place = Place::postgres().await;
    place.server.as_mut().expect("a server").stop();
    let store = place.open().await;
    all_are_unavailable(&*store).await;
    place.server.as_mut().expect("a server").start_again();
    until_it_answers(&*store).await;
    planned(&*store, "a", at(0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_make_the_schema_once() {
    let place = Place::postgres().await;
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let store = place.open().await;
        tasks.push(tokio::spawn(async move { store.ping().await.map(|()| store) }));
    }
    for task in tasks {
        task.await.expect("the task ends").expect("it can be used");
    }
    // Each step once: a second run of one would have met its own tables, or its own row.
    assert_eq!(place.number("SELECT COUNT(*) - MAX(step) FROM schema_step").await, 0);
    assert_eq!(place.number("SELECT value FROM counter WHERE name = 'ping'").await, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_database_gets_its_schema_again() {
    let place = Place::postgres().await;
    let store = place.open().await;
    store.ping().await.expect("it can be used");
    let server: &Postgres = place.server.as_ref().expect("a server");
    server.execute("test_0", "DROP SCHEMA public CASCADE; CREATE SCHEMA public").await;
    until_it_answers(&*store).await;
    planned(&*store, "a", at(0)).await;
}

/// A server that takes connections and then says nothing more: the worst sort of outage, since nothing breaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_unavailable_and_is_used_again() {
    let mut place = Place::postgres().await;
    let upstream = place.server.as_ref().expect("a server").address();
    let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = proxy.local_addr().expect("it is bound").to_string();
    let (hang, hangs) = tokio::sync::watch::channel(false);
    tokio::spawn({
        let upstream = upstream.clone();
        async move {
            while let Ok((mut near, _)) = proxy.accept().await {
                let (mut hangs, upstream) = (hangs.clone(), upstream.clone());
                tokio::spawn(async move {
                    let Ok(mut far) = tokio::net::TcpStream::connect(upstream).await else { return };
                    if !*hangs.borrow_and_update() {
                        tokio::select! {
                            _ = copy_bidirectional(&mut near, &mut far) => return,
                            _ = hangs.changed() => {}
                        }
                    }
                    // Both connections stay open for good, and nothing goes through them any more.
                    std::future::pending::<()>().await;
                });
            }
        }
    });
    let url = Secret::new(place.address().replace(&upstream, &address));
    place.config = StoreConfig::Postgres(PostgresStore { url, max_connections: 4 });
    let store = place.open().await;
    planned(&*store, "a", at(0)).await;
    hang.send(true).expect("the proxy is there");
    all_are_unavailable(&*store).await;
    hang.send(false).expect("the proxy is there");
    until_it_answers(&*store).await;
    planned(&*store, "a", at(60)).await;
}
