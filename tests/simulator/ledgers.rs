//! Both ledgers: the happy path, a restart, readers that are barred, and attempts that never change.

use super::{
    postgres::Postgres,
    support::{World, quick, rows, until},
};
use delivery_canary::simulator::{Fault, LedgerOptions, ReaderAddress, Simulator};
use sqlx::{Connection, PgConnection};

async fn world(ledger: &LedgerOptions) -> World {
    let ledger = ledger.clone();
    World::with(|options| options.ledger = ledger).await
}

async fn delivers_and_keeps_everything(ledger: LedgerOptions) {
    let world = world(&ledger).await;
    let id = world.accepted("key-1").await;
    let arrived = world.sink.has(1).await;
    assert_eq!(arrived[0].body["notification_id"], id.as_str());
    let rows =
        world.ledger_shows(&id, "a settled attempt", |rows| rows.iter().any(|row| row.is_settled)).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].outcome.as_str(), rows[0].attempt_number), ("delivered", 1));
    assert_eq!(rows[0].traceparent.as_deref(), Some(super::support::TRACE));
    assert!(rows[0].is_canary && rows[0].policy_version == "policy-1");
    assert!(rows[0].started_at >= rows[0].accepted_at);

    // The same again, and the same key with another body, before and after a restart on the same ledger.
    let (status, again) = world.submit("key-1").await;
    assert_eq!((status, again["notification_id"].as_str()), (200, Some(id.as_str())));
    world.simulator.fault_on(Fault::StuckWorker).await.unwrap();
    let stuck = world.accepted("key-2").await;
    let World { simulator, sink, .. } = world;
    simulator.stop().await;

    let second = Simulator::start(quick(ledger)).await.unwrap();
    let world = World::of(second, sink);
    let arrived = world.sink.has(2).await;
    assert_eq!(arrived[1].body["notification_id"], stuck.as_str());
    let (status, again) = world.submit("key-1").await;
    assert_eq!((status, again["notification_id"].as_str()), (200, Some(id.as_str())));
    let mut other = world.body();
    other["amount"] = "99.99 EUR".into();
    assert_eq!(world.send("key-1", &other).await.unwrap().status(), 422);
    world.ledger_shows(&stuck, "its attempt", |rows| rows.len() == 1).await;
    let counts = world.simulator.ledger_counts().await.unwrap();
    assert_eq!((counts.notifications, counts.pending, counts.attempts), (2, 0, 2));
    world.simulator.stop().await;
}

#[tokio::test]
async fn sqlite_delivers_and_loses_nothing_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    delivers_and_keeps_everything(LedgerOptions::Sqlite(folder.path().join("ledger.db"))).await;
}

#[tokio::test]
async fn postgres_delivers_and_loses_nothing_over_a_restart() {
    let server = Postgres::start();
    delivers_and_keeps_everything(LedgerOptions::Postgres(server.fresh_database().await)).await;
}

async fn bars_readers_while_the_service_goes_on(world: World) {
    let id = world.accepted("key-1").await;
    world.ledger_shows(&id, "an attempt", |rows| rows.len() == 1).await;
    let reader = world.simulator.ledger_reader();
    world.simulator.fault_on(Fault::LedgerUnreachable).await.unwrap();
    rows(&reader, &id).await.expect_err("readers are barred");
    let second = world.accepted("key-2").await;
    world.sink.has(2).await;
    until("the second settled", || async {
        let counts = world.simulator.ledger_counts().await.unwrap();
        if counts.pending == 0 { Ok(()) } else { Err(counts) }
    })
    .await;
    rows(&reader, &second).await.expect_err("readers are barred still");
    world.simulator.fault_off(Fault::LedgerUnreachable).await.unwrap();
    assert_eq!(world.rows(&second).await.len(), 1);
}

#[tokio::test]
async fn sqlite_bars_readers_that_are_connected_and_new_ones() {
    use sqlx::{SqliteConnection, sqlite::SqliteConnectOptions};
    let world = World::new().await;
    let ReaderAddress::Sqlite(path) = world.simulator.ledger_reader() else { panic!("not SQLite") };
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let options = options.busy_timeout(std::time::Duration::from_millis(100));
    let mut connected = SqliteConnection::connect_with(&options).await.unwrap();
    let mut count =
        async || sqlx::query("select count(*) from notifications").fetch_one(&mut connected).await;
    count().await.unwrap();
    world.simulator.fault_on(Fault::LedgerUnreachable).await.unwrap();
    count().await.expect_err("the connected reader is barred");
    world.simulator.fault_off(Fault::LedgerUnreachable).await.unwrap();
    count().await.unwrap();
    bars_readers_while_the_service_goes_on(world).await;
}

#[tokio::test]
async fn postgres_cuts_readers_that_are_connected_and_refuses_new_ones() {
    let server = Postgres::start();
    let world = world(&LedgerOptions::Postgres(server.fresh_database().await)).await;
    let ReaderAddress::Postgres(url) = world.simulator.ledger_reader() else { panic!("not PostgreSQL") };
    let mut connected = PgConnection::connect(&url).await.unwrap();
    connected.ping().await.unwrap();
    world.simulator.fault_on(Fault::LedgerUnreachable).await.unwrap();
    connected.ping().await.expect_err("the connection is cut");
    PgConnection::connect(&url).await.expect_err("new ones are refused");
    world.simulator.fault_off(Fault::LedgerUnreachable).await.unwrap();
    bars_readers_while_the_service_goes_on(world).await;
}

#[tokio::test]
async fn attempts_can_neither_change_nor_go_on_either_ledger() {
    use sqlx::SqliteConnection;
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let (one, two) = (World::new().await, world(&LedgerOptions::Postgres(url.clone())).await);
    for world in [&one, &two] {
        let id = world.accepted("key-1").await;
        world.ledger_shows(&id, "an attempt", |rows| rows.len() == 1).await;
    }
    let ReaderAddress::Sqlite(path) = one.simulator.ledger_reader() else { panic!("not SQLite") };
    let mut sqlite = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
    let mut postgres = PgConnection::connect(&url).await.unwrap();
    for sql in ["update delivery_attempts set outcome = 'unknown'", "delete from delivery_attempts"] {
        let refused = sqlx::query(sql).execute(&mut sqlite).await.expect_err("SQLite refuses");
        assert!(refused.to_string().contains("only appended"), "{refused}");
        let refused = sqlx::query(sql).execute(&mut postgres).await.expect_err("PostgreSQL refuses");
        assert!(refused.to_string().contains("only appended"), "{refused}");
    }
}

#[tokio::test]
async fn a_database_that_goes_away_and_comes_back_is_used_again() {
    let mut server = Postgres::start();
    let world = world(&LedgerOptions::Postgres(server.fresh_database().await)).await;
    world.accepted("key-1").await;
    world.sink.has(1).await;
    server.stop();
    assert_eq!(world.submit("key-2").await.0, 503);
    server.start_again();
    until("acceptance", || async {
        let (status, answer) = world.submit("key-3").await;
        if status == 201 { Ok(()) } else { Err(answer) }
    })
    .await;
    world.sink.has(2).await;
}
