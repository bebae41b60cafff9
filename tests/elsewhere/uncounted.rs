//! Counts of an hour that fail: the ledger is not up while they do, and nothing old is shown in their place.

use super::{
    FULL, configure, fill, hours,
    postgres::Postgres,
    seen,
    service::Service,
    text,
    world::{self, Place, Shape, World, until},
};
use std::fs;

pub fn until_up(place: &Place, up: f64) {
    until(&format!("the ledger to be {up}"), 90, || {
        match place.value("delivery_monitor_observer_up", &[("observer", "ledger/attempts")]) {
            Some(seen) if seen == up => Ok(()),
            other => Err(format!("{other:?}; log:\n{}", place.log())),
        }
    });
}

/// The readings of the ledger that an event of the log names, each once.
pub fn told(place: &Place, event: &str) -> Vec<String> {
    let event = format!("\"event\":\"{event}\"");
    let mut told: Vec<String> = place
        .log()
        .lines()
        .filter(|line| line.contains(&event) && line.contains("ledger/attempts"))
        .filter_map(|line| Some(line.split_once("\"reading\":\"")?.1.split_once('"')?.0.to_owned()))
        .collect();
    told.sort();
    told.dedup();
    told
}

/// Both counts of the ledger itself are made of a view that is not there yet.
#[tokio::test(flavor = "multi_thread")]
async fn counts_of_the_ledger_that_fail_are_down_until_they_work() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let service = Service::new(Some(url.clone()), "2s").await;
    fill(&service).await;
    configure(
        &service,
        &format!(
            "        sql:\n          database: {{ postgres: {{ url: {url} }} }}\n          \
             sql: select route, count(*) as n from message where made_at >= :from_ts and made_at < :until_ts group by route\n          \
             columns: {{ route: route, count: n }}\n          accepted_at: made_at"
        ),
    );
    let whole = fs::read_to_string(&service.place.config).expect("it was written");
    let broken = whole
        .replace(
            "from message m join target t on t.message_id = m.id\n        where m.made_at",
            "from counted m join target t on t.message_id = m.id\n        where m.made_at",
        )
        .replace(
            "sql: |\n          select route, count(*) as n from message",
            "sql: |\n          select route, count(*) as n from counted",
        );
    assert_eq!(broken.matches("from counted").count(), 2, "{whole}");
    fs::write(&service.place.config, broken).expect("it can be written");
    let _monitor = service.place.serve();
    service.until_followed();
    until_up(&service.place, 0.0);
    until("both to be told", 60, || match told(&service.place, "observer_down") {
        told if told == ["in_ledger", "partition"] => Ok(()),
        told => Err(format!("{told:?}; log:\n{}", service.place.log())),
    });
    let counts = || {
        let residue = service.place.value("delivery_ledger_residue", &[("route", FULL)]);
        (residue, seen(&service, FULL))
    };
    assert_eq!(counts(), (None, (None, None)), "absent, and no zeros");
    let following = [("ledger", "attempts"), ("mode", "following")];
    assert_eq!(
        service.place.value("delivery_ledger_follower", &following),
        Some(1.0),
        "following needs neither"
    );

    service.execute("create view counted as select * from message").await;
    // They are tried again long before the next hour.
    until_up(&service.place, 1.0);
    assert_eq!(told(&service.place, "observer_up"), ["in_ledger", "partition"]);
    assert_eq!(counts().0, Some(0.0));
    until("both counts of the closed hour", 60, || match seen(&service, FULL) {
        (Some(_), Some(_)) => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", service.place.log())),
    });
    let [hour, _] = hours();
    assert_eq!(
        super::reconcile(&service, hour, &[]).status.code(),
        Some(0),
        "{}",
        text(&super::reconcile(&service, hour, &[]).stdout)
    );
}

/// A page is looked at each minute: that it can't be is known long before the hour is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_can_not_be_looked_at_is_down() {
    let elsewhere = format!(
        "    accepted_elsewhere:\n      source: {{ prometheus_text: {{ url: 'http://{}/metrics', metric: accepted_total, route_label: route, edge: 1s }} }}\n      \
         routes: {{ receipts: webhook/receipts }}\n      in_ledger:\n        \
         sql: select route, count(*) as n from notifications where accepted_at >= :from_ts and accepted_at < :until_ts group by route\n        \
         columns: {{ route: route, count: n }}\n        routes: {{ receipts: webhook/receipts }}\n",
        world::free_address()
    );
    let shape = Shape {
        is_followed: true,
        schedule: "{ every: 1h }".into(),
        ledger_lines: elsewhere,
        ..Shape::default()
    };
    let world = World::new(shape).await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until("the page to be missed", 120, || match told(&place, "observer_down") {
        told if told == ["accepted_elsewhere"] => Ok(()),
        told => Err(format!("{told:?}; log:\n{}", place.log())),
    });
    until_up(&place, 0.0);
}
