//! A ledger that is followed, end to end: a service with customers, and monitors whose figures must be those of plain SQL.

use crate::common::{postgres, switch::Switch, world};
use delivery_canary::simulator::{
    Channel, Fault, ReaderAddress, SimulatorOptions, TrafficOptions, TrafficRoute,
};
use postgres::Postgres;
use sqlx::{AnyConnection, Connection, Row};
use std::{collections::BTreeMap, fs};
use world::{Place, Shape, World, until};

const FULL: &str = "webhook/receipts";
const ROUTE: (&str, &str) = ("route", FULL);

fn with_customers(options: &mut SimulatorOptions) {
    options.traffic = Some(TrafficOptions {
        per_second: 20.0,
        routes: vec![
            TrafficRoute { name: "receipts".into(), channel: Channel::Webhook },
            TrafficRoute { name: "elsewhere".into(), channel: Channel::Webhook },
        ],
        dead_recipients: 0.2,
    });
}

fn shape() -> Shape {
    Shape { is_followed: true, ..Shape::default() }
}

fn mode(place: &Place, mode: &str) -> bool {
    place.value("delivery_ledger_follower", &[("ledger", "attempts"), ("mode", mode)]) == Some(1.0)
}

fn until_mode(place: &Place, word: &str) {
    until(&format!("the follower to be {word}"), 40, || {
        if mode(place, word) { Ok(()) } else { Err(format!("{:?}; log:\n{}", place.scrape(), place.log())) }
    });
}

/// By the word of the newest attempt's outcome: customers' notifications on a route of the service's; one without attempts is `none`.
async fn plain_sql(world: &World, service_route: &str) -> BTreeMap<String, i64> {
    sqlx::any::install_default_drivers();
    let address = match &world.shape.ledger_url {
        Some(url) => url.clone(),
        None => format!("sqlite:{}", world.folder.path().join("ledger.db").display()),
    };
    let mut connection = AnyConnection::connect(&address).await.expect("the ledger is there");
    let text = "select coalesce((select a.outcome from delivery_attempts a where a.notification_id = n.notification_id \
                order by a.attempt_number desc limit 1), 'none'), count(*) from notifications n \
                where n.route = $1 and not n.is_canary group by 1";
    let rows =
        sqlx::query(text).bind(service_route.to_owned()).fetch_all(&mut connection).await.expect("it counts");
    rows.iter().map(|row| (row.get::<String, _>(0), row.get::<i64, _>(1))).collect()
}

/// What the page says of a route, in the words of [`plain_sql`].
fn figures(place: &Place, route: &str) -> Option<BTreeMap<String, i64>> {
    let page = place.scrape()?;
    let value = |name: &str, labels: &[(&str, &str)]| {
        #[allow(clippy::cast_possible_truncation, reason = "a count")]
        page.value(name, &[&[("route", route)], labels].concat()).map(|value| value as i64)
    };
    let disposition = |word: &str| {
        value("delivery_ledger_window_notifications", &[("window", "6h"), ("disposition", word)])
    };
    let known = [
        ("delivered", disposition("delivered")?),
        ("permanent_rejection", disposition("permanently_rejected")?),
        ("suppressed", disposition("suppressed")?),
    ];
    let accepted = value("delivery_ledger_window_accepted", &[("window", "6h")])?;
    let settled: i64 = known.iter().map(|(_, count)| count).sum();
    assert_eq!(accepted, settled + disposition("pending")?, "the four make up the accepted");
    Some(
        known.into_iter().filter(|(_, count)| *count > 0).map(|(word, count)| (word.into(), count)).collect(),
    )
}

/// Waits until the page says what plain SQL says. The windows end at the last whole minute before the deadline.
async fn until_balanced(world: &World, place: &Place) {
    for (service_route, route) in [("receipts", FULL), ("elsewhere", "other")] {
        let expected = plain_sql(world, service_route).await;
        assert!(expected.values().sum::<i64>() > 50, "too little to compare: {expected:?}");
        until(&format!("{route} to balance"), 90, || match figures(place, route) {
            Some(seen) if seen == expected => Ok(()),
            seen => Err(format!("{seen:?}, and by plain SQL {expected:?}; log:\n{}", place.log())),
        });
    }
    let page = place.scrape().expect("the page answers");
    for state in ["scheduled", "unattempted", "retrying", "unknown"] {
        assert_eq!(page.value("delivery_ledger_pending", &[ROUTE, ("state", state)]), Some(0.0), "{state}");
    }
    assert_eq!(page.value("delivery_ledger_pending_over_deadline", &[ROUTE]), Some(0.0));
    assert_eq!(page.value("delivery_ledger_canary_leaks", &[ROUTE]), Some(0.0));
}

/// Lets no more in, and waits until nothing is pending.
async fn until_settled(world: &World) {
    world.simulator.fault_on(Fault::AcceptanceDown).await.expect("the fault is there");
    for _ in 0..200 {
        let (mine, others) = (plain_sql(world, "receipts").await, plain_sql(world, "elsewhere").await);
        let is_open = |counts: &BTreeMap<String, i64>| {
            ["none", "retryable", "unknown"].iter().any(|word| counts.contains_key(*word))
        };
        if !is_open(&mine) && !is_open(&others) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("still pending: {:?}", plain_sql(world, "receipts").await);
}

async fn sleep_until_accepted(world: &World, count: i64) {
    for _ in 0..400 {
        if plain_sql(world, "receipts").await.values().sum::<i64>() >= count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("fewer than {count} were accepted");
}

/// Customers, retries, rejections, and a monitor that is killed and started again in between.
async fn the_figures_are_those_of_plain_sql(shape: Shape) {
    let world = World::with(shape, with_customers).await;
    let place = world.configure("monitor");
    let mut monitor = place.serve();
    until_mode(&place, "following");
    sleep_until_accepted(&world, 60).await;
    world.simulator.fault_on(Fault::Provider5xx).await.expect("the fault is there");
    until("retries to be seen", 20, || {
        let seen = place.value("delivery_ledger_pending", &[ROUTE, ("state", "retrying")]);
        if seen.is_some_and(|count| count > 5.0) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    monitor.kill();
    world.simulator.fault_off(Fault::Provider5xx).await.expect("the fault goes");
    sleep_until_accepted(&world, 160).await;
    let _monitor = place.serve();
    until_mode(&place, "following");
    sleep_until_accepted(&world, 200).await;
    until_settled(&world).await;
    until_balanced(&world, &place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_are_those_of_plain_sql_on_sqlite() {
    the_figures_are_those_of_plain_sql(shape()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_are_those_of_plain_sql_on_postgresql() {
    let server = Postgres::start();
    let ledger_url = Some(server.fresh_database().await);
    let store_url = Some(server.fresh_database().await);
    the_figures_are_those_of_plain_sql(Shape { ledger_url, store_url, ..shape() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_follows_and_another_takes_over() {
    let server = Postgres::start();
    let store_url = Some(server.fresh_database().await);
    let world = World::with(Shape { store_url, ..shape() }, with_customers).await;
    let (first, second) = (world.configure("first"), world.configure("second"));
    let mut leader = first.serve();
    until_mode(&first, "following");
    let _other = second.serve();
    until_mode(&second, "standby");
    let page = second.scrape().expect("the page answers");
    assert_eq!(
        page.value("delivery_ledger_window_accepted", &[ROUTE, ("window", "6h")]),
        None,
        "not its own"
    );
    sleep_until_accepted(&world, 60).await;
    leader.kill();
    until_mode(&second, "following");
    sleep_until_accepted(&world, 120).await;
    until_settled(&world).await;
    until_balanced(&world, &second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_can_not_reach_the_ledger_any_more_leaves_it_to_another_and_has_it_again_when_it_can() {
    let server = Postgres::start();
    let ledger_url = Some(server.fresh_database().await);
    let store_url = Some(server.fresh_database().await);
    let world = World::with(Shape { ledger_url, store_url, ..shape() }, with_customers).await;
    let (first, second) = (world.configure("first"), world.configure("second"));
    let direct = match world.simulator.ledger_reader() {
        ReaderAddress::Postgres(url) => url,
        ReaderAddress::Sqlite(path) => panic!("{} is not on PostgreSQL", path.display()),
    };
    let host =
        direct.rsplit_once('@').map_or("", |(_, rest)| rest).split('/').next().expect("a host").to_owned();
    let way = Switch::to(&host).await;
    let text = fs::read_to_string(&first.config).expect("it was written");
    assert!(text.contains(&direct), "{direct} in {text}");
    fs::write(&first.config, text.replace(&direct, &direct.replace(&host, &way.address)))
        .expect("it can be written");
    let _leader = first.serve();
    until_mode(&first, "following");
    let mut other = second.serve();
    until_mode(&second, "standby");
    sleep_until_accepted(&world, 60).await;
    // The ledger is well, and its way to the one that follows is not.
    way.lead_to(None);
    until("the other to follow", 90, || {
        if mode(&second, "following") { Ok(()) } else { Err(format!("{}\n{}", first.log(), second.log())) }
    });
    until_mode(&first, "unable");
    assert!(first.log().contains("ledger_given_up"), "{}", first.log());
    let up = |place: &Place| place.value("delivery_monitor_observer_up", &[("observer", "ledger/attempts")]);
    assert_eq!((up(&first), up(&second)), (Some(0.0), Some(1.0)));
    sleep_until_accepted(&world, 120).await;
    // Alone, it has it again as soon as it can read it, and nothing is lost or counted twice.
    other.kill();
    way.lead_to(Some(&host));
    until_mode(&first, "following");
    assert!(first.log().contains("ledger_readable_again"), "{}", first.log());
    sleep_until_accepted(&world, 160).await;
    until_settled(&world).await;
    until_balanced(&world, &first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_pending_than_may_be_held_is_counted_by_the_query_and_said() {
    let lines = "    max_pending: 1000\n".to_owned();
    let shape = Shape { ledger_lines: lines, ..shape() };
    let world = World::with(shape, |options| {
        with_customers(options);
        options.traffic.iter_mut().for_each(|traffic| traffic.per_second = 200.0);
    })
    .await;
    world.simulator.fault_on(Fault::Provider5xx).await.expect("the fault is there");
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until_mode(&place, "snapshot");
    until("the query to count", 20, || {
        let seen = place.value("delivery_ledger_pending", &[ROUTE, ("state", "retrying")]);
        if seen.is_some_and(|count| count > 400.0) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    let page = place.scrape().expect("the page answers");
    assert_eq!(
        page.value("delivery_ledger_window_accepted", &[ROUTE, ("window", "6h")]),
        None,
        "absent, not low"
    );
    assert!(place.log().contains("ledger_too_much_pending"), "{}", place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn canaries_among_the_customers_are_known_and_counted_as_leaks() {
    let world = World::with(shape(), with_customers).await;
    let place = world.configure("monitor");
    let text = fs::read_to_string(&place.config).expect("it was written");
    assert!(text.contains(", canary: is_canary"));
    fs::write(&place.config, text.replace(", canary: is_canary", "")).expect("it can be written");
    let _monitor = place.serve();
    until("leaks to be counted", 40, || {
        let seen = place.value("delivery_ledger_canary_leaks", &[ROUTE]);
        if seen.is_some_and(|count| count >= 5.0) {
            Ok(())
        } else {
            Err(format!("{seen:?}; log:\n{}", place.log()))
        }
    });
    until_settled(&world).await;
    let expected = plain_sql(&world, "receipts").await;
    until("the canaries to be left out", 90, || match figures(&place, FULL) {
        Some(seen) if seen == expected => Ok(()),
        seen => Err(format!("{seen:?}, and by plain SQL {expected:?}; log:\n{}", place.log())),
    });
}
