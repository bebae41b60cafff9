//! The audit of a ledger's history, end to end: an honest service that commits late, and then somebody who rewrites what it wrote.

use crate::common::{postgres, world};
use chrono::{SecondsFormat, Utc};
use delivery_canary::simulator::{Channel, Fault, FaultOrder, TrafficOptions, TrafficRoute};
use postgres::Postgres;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use world::{Place, Shape, World, until};

const KINDS: [&str; 4] =
    ["outcome_rewritten", "attempt_vanished", "attempt_after_terminal", "second_effect_for_one_key"];

fn shape() -> Shape {
    let lines = "    freshness: 2s\n    audit: { sample: 800, ages: [1s, 3s, 8s, 20s, 60s, 120s] }\n";
    Shape { is_followed: true, ledger_lines: lines.into(), ..Shape::default() }
}

async fn world(shape: Shape) -> World {
    World::with(shape, |options| {
        let route = TrafficRoute { name: "receipts".into(), channel: Channel::Webhook };
        options.traffic = Some(TrafficOptions { per_second: 5.0, routes: vec![route], dead_recipients: 0.2 });
    })
    .await
}

async fn ledger(world: &World) -> AnyConnection {
    sqlx::any::install_default_drivers();
    let address = match &world.shape.ledger_url {
        Some(url) => url.clone(),
        None => format!("sqlite:{}", world.folder.path().join("ledger.db").display()),
    };
    AnyConnection::connect(&address).await.expect("the ledger is there")
}

async fn execute(world: &World, sql: String) {
    let mut connection = ledger(world).await;
    let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut connection).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A customer's notification that was delivered some seconds ago, so that it was read once, and the next reading is to come.
async fn delivered(world: &World, but: &[String]) -> String {
    let mut connection = ledger(world).await;
    let text = "select cast(n.notification_id as text) from notifications n where not n.is_canary and exists \
                (select 1 from delivery_attempts a where a.notification_id = n.notification_id and a.outcome = 'delivered') \
                order by n.accepted_at desc limit 10 offset 40";
    let rows = sqlx::query(text).fetch_all(&mut connection).await.expect("it can be asked");
    let mut ids = rows.iter().map(|row| row.get::<String, _>(0));
    ids.find(|id| !but.contains(id)).expect("enough was delivered")
}

/// How often each kind was found, in the order of [`KINDS`]; nothing while there is no page.
fn found(place: &Place) -> Option<[f64; 4]> {
    let page = place.scrape()?;
    let name = "delivery_ledger_history_violations";
    Some(KINDS.map(|kind| {
        page.value(name, &[("ledger", "attempts"), ("kind", kind)])
            .expect("it is there from the first scrape on")
    }))
}

fn until_found(place: &Place, what: &str, expected: [f64; 4]) {
    until(what, 90, || match found(place) {
        Some(seen) if seen == expected => Ok(()),
        seen => Err(format!("{seen:?}, not {expected:?}; log:\n{}", place.log())),
    });
}

fn until_compared(place: &Place, count: f64) {
    until(&format!("{count} comparisons"), 90, || {
        let seen = place.value("delivery_ledger_history_compared", &[("ledger", "attempts")]);
        if seen.is_some_and(|seen| seen >= count) {
            Ok(())
        } else {
            Err(format!("{seen:?}; log:\n{}", place.log()))
        }
    });
}

async fn what_is_rewritten_is_seen_and_nothing_else(shape: Shape) {
    let world = world(shape).await;
    let late = FaultOrder::on(Fault::LateLedger).seconds(1.5);
    world.simulator.switch(late).await.expect("the fault is there");
    let place = world.configure("monitor");
    let mut monitor = place.serve();
    until("the first page", 40, || found(&place).map(drop).ok_or_else(|| place.log()));
    until_compared(&place, 200.0);
    assert_eq!(found(&place), Some([0.0; 4]), "an honest ledger; log:\n{}", place.log());

    // The service's tables take no changes, as they should. Whoever owns them can do otherwise.
    let triggers = if world.shape.ledger_url.is_some() {
        "drop trigger delivery_attempts_never_change on delivery_attempts"
    } else {
        "drop trigger delivery_attempts_never_change; drop trigger delivery_attempts_never_go"
    };
    execute(&world, triggers.into()).await;
    let mut changed: Vec<String> = Vec::new();
    for (what, expected) in [
        ("rewritten", [1.0, 0.0, 0.0, 0.0]),
        ("vanished", [1.0, 1.0, 0.0, 0.0]),
        ("appended", [1.0, 1.0, 1.0, 0.0]),
    ] {
        let id = delivered(&world, &changed).await;
        let of_it = format!("notification_id = '{id}' and outcome = 'delivered'");
        execute(&world, match what {
            "rewritten" => format!("update delivery_attempts set outcome = 'suppressed' where {of_it}"),
            "vanished" => format!("delete from delivery_attempts where {of_it}"),
            _ => {
                let (attempt, now) = (uuid::Uuid::now_v7(), Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true));
                format!(
                    "insert into delivery_attempts (attempt_id, notification_id, attempt_number, outcome, provider_code, started_at, ended_at) \
                     values ('{attempt}', '{id}', 99, 'retryable', '', '{now}', '{now}')"
                )
            }
        })
        .await;
        until_found(&place, what, expected);
        let told =
            place.log().lines().any(|line| line.contains("ledger_history_violation") && line.contains(&id));
        assert!(told, "{what}: the log does not name {id}:\n{}", place.log());
        changed.push(id);
    }

    // What was found is in the store, whoever shows it; and what is in the sample is not found twice.
    monitor.kill();
    let _monitor = place.serve();
    until_found(&place, "the same after a restart", [1.0, 1.0, 1.0, 0.0]);
    let compared = place.value("delivery_ledger_history_compared", &[("ledger", "attempts")]).unwrap_or(0.0);
    until_compared(&place, compared + 50.0);
    assert_eq!(found(&place), Some([1.0, 1.0, 1.0, 0.0]), "log:\n{}", place.log());
    assert_eq!(place.value("delivery_ledger_late_reversals", &[("ledger", "attempts")]), Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rewritten_is_seen_and_nothing_else_on_sqlite() {
    what_is_rewritten_is_seen_and_nothing_else(shape()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rewritten_is_seen_and_nothing_else_on_postgresql() {
    let server = Postgres::start();
    let ledger_url = Some(server.fresh_database().await);
    let store_url = Some(server.fresh_database().await);
    what_is_rewritten_is_seen_and_nothing_else(Shape { ledger_url, store_url, ..shape() }).await;
}
