//! The whole program with a ledger in trouble: its view is unobserved, the page says so, and it comes back by itself.

use super::{
    postgres::Postgres,
    world::{Place, Shape, World, until},
};
use delivery_canary::simulator::ReaderAddress;
use sqlx::{Connection, Executor, PgConnection};
use std::fs;

const OBSERVER: (&str, &str) = ("observer", "ledger/attempts");
const LEDGER: (&str, &str) = ("ledger", "attempts");

fn figure(place: &Place) -> Option<f64> {
    let labels = [("route", "webhook/receipts"), ("window", "6h")];
    place.value("delivery_ledger_window_accepted", &labels)
}

/// It is not seen: the page says so, old figures are gone, and the program is alive.
fn until_unobserved(place: &Place, why: &str) {
    until(&format!("the ledger to be missed: {why}"), 60, || {
        let up = place.value("delivery_monitor_observer_up", &[OBSERVER]);
        match (up, figure(place)) {
            (Some(0.0), None) => Ok(()),
            seen => Err(format!("{seen:?}; log:\n{}", place.log())),
        }
    });
    assert_eq!(place.probe("/live"), Some(200), "{why}");
}

/// It is seen, and followed on from where it was.
fn until_followed_on(place: &Place, why: &str, from: f64) -> f64 {
    let mut reached = 0.0;
    until(&format!("the ledger to be followed: {why}"), 60, || {
        let up = place.value("delivery_monitor_observer_up", &[OBSERVER]);
        let until = place.value("delivery_ledger_followed_until_timestamp_seconds", &[LEDGER]);
        match (up, figure(place), until) {
            (Some(1.0), Some(_), Some(until)) if until > from => {
                reached = until;
                Ok(())
            }
            seen => Err(format!("{seen:?}; log:\n{}", place.log())),
        }
    });
    reached
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_in_trouble_is_unobserved_and_comes_back_by_itself() {
    let mut server = Postgres::start();
    let ledger_url = server.fresh_database().await;
    let lines = "    freshness: 3s\n".to_owned();
    let shape = Shape {
        ledger_url: Some(ledger_url.clone()),
        is_followed: true,
        ledger_lines: lines,
        ..Shape::default()
    };
    let world = World::new(shape).await;
    let reader = server.role("reader", &ledger_url).await;
    let mut owner = PgConnection::connect(&ledger_url).await.expect("the server takes connections");
    owner.execute("grant select on all tables in schema public to reader").await.expect("it can be granted");
    let place = world.configure("monitor");
    let ReaderAddress::Postgres(direct) = world.simulator.ledger_reader() else {
        panic!("a server was wanted")
    };
    let text = fs::read_to_string(&place.config).expect("it was written");
    assert!(text.contains(&direct));
    fs::write(&place.config, text.replace(&direct, &reader)).expect("it can be written");
    let _monitor = place.serve();
    let mut reached = until_followed_on(&place, "at the start", 0.0);
    assert_eq!(place.value("delivery_ledger_role_can_write", &[LEDGER]), Some(0.0));

    owner.execute("begin; lock table delivery_attempts in access exclusive mode").await.expect("a lock");
    until_unobserved(&place, "a lock on its table");
    owner.execute("rollback").await.expect("the lock goes");
    reached = until_followed_on(&place, "after the lock", reached);

    owner
        .execute(
            "create policy slow on delivery_attempts for select to reader using ((select pg_sleep(60))::text = '');
             alter table delivery_attempts enable row level security",
        )
        .await
        .expect("a policy");
    until_unobserved(&place, "statements that run into their limit");
    owner
        .execute(
            "alter table delivery_attempts disable row level security; drop policy slow on delivery_attempts",
        )
        .await
        .expect("it goes");
    reached = until_followed_on(&place, "after the limit", reached);

    for _ in 0..5 {
        owner
            .execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'reader'")
            .await
            .expect("backends can be ended");
        reached = until_followed_on(&place, "after the backends' end", reached);
        let held = "select count(*) from pg_stat_activity where usename = 'reader'
                     and state like 'idle in transaction%' and state_change < now() - interval '1 second'";
        let (held, all) =
            (count(&mut owner, held).await, "select count(*) from pg_stat_activity where usename = 'reader'");
        let all = count(&mut owner, all).await;
        assert!(held == 0 && all <= 2, "{held} of {all} sessions hold a transaction open");
    }
    drop(owner);

    server.stop();
    until_unobserved(&place, "a server that is down");
    server.start_again();
    until_followed_on(&place, "after the restart", reached);
}

async fn count(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("sessions can be seen")
}
