//! A counter on the service's own page, which can only be looked at now.

use super::{
    FULL,
    world::{Shape, World, until},
};
use chrono::{TimeDelta, Utc};
use delivery_canary::{
    config,
    domain::{
        elsewhere::{Bounds, Samples},
        flow::rows::RouteNo,
    },
    ledger::{self, FlowReader},
    simulator::Fault,
};
use serde_json::json;
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};

/// The simulator's own counter, which counts what is then never written.
async fn world() -> World {
    let world =
        World::new(Shape { is_followed: true, schedule: "{ every: 1h }".into(), ..Shape::default() }).await;
    let elsewhere = format!(
        r#"    accepted_elsewhere:
      source:
        prometheus_text:
          url: http://{}/metrics
          metric: service_route_accepted_total
          route_label: route
          edge: 1s
      routes: {{ receipts: webhook/receipts }}
      in_ledger:
        sql: select route, count(*) as n from notifications where accepted_at >= :from_ts and accepted_at < :until_ts group by route
        columns: {{ route: route, count: n }}
        routes: {{ receipts: webhook/receipts }}
"#,
        world.simulator.addresses().probes
    );
    World { shape: Shape { ledger_lines: elsewhere, ..world.shape }, ..world }
}

fn submit(world: &World, count: usize) {
    for _ in 0..count {
        let body = json!({
            "recipient": "suppressed-somebody", "template": "payment_receipt", "amount": "1.00", "channel": "webhook", "route": "receipts",
            "callback_url": "http://127.0.0.1:9/", "metadata": {},
        })
        .to_string();
        let mut stream =
            TcpStream::connect(world.simulator.addresses().acceptance).expect("the service is there");
        write!(
            stream,
            "POST /v1/notifications HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("it takes the request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_written_shows_between_two_looks_at_a_page() {
    let world = world().await;
    let place = world.configure("monitor");
    submit(&world, 3);
    let loaded = config::load(&place.config, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
    let adapter = ledger::open("attempts", &loaded.config.ledgers["attempts"]).expect("it can be opened");
    let flow = adapter.flow().expect("it is followed");
    let elsewhere = flow.elsewhere().expect("it is configured");
    let page = elsewhere.page().expect("it is a page");

    let before = page.sample().await.expect("the page is there");
    let place_of = |name: &str| flow.routes().iter().position(|route| route.as_str() == name);
    let route = RouteNo(u16::try_from(place_of(FULL).expect("the route is there")).expect("a small number"));
    assert_eq!((before.sums[&route], before.process), (3.0, None), "the simulator's page tells of no start");
    submit(&world, 7);
    world.simulator.fault_on(Fault::WriteLost).await.expect("the fault is there");
    submit(&world, 4);
    let after = page.sample().await.expect("the page is there");

    let (from, until) = (before.began - elsewhere.edge(), after.ended + elsewhere.edge());
    let mut samples = Samples::new(TimeDelta::hours(1));
    samples.push(before);
    samples.push(after);
    let counted = samples.increase(from, until, elsewhere.edge()).expect("both edges are covered");
    assert_eq!(counted[&route], Bounds { least: 11, most: None });
    // The three from before lie within the edge, where nobody knows: the ledger may have them, and then less seems to be missing.
    let here = flow.accepted(from, until).await.expect("the ledger counts").expect("there is a query");
    assert!((7..=10).contains(&here[&route]), "{here:?}");
    assert!(counted[&route].missing_of(here[&route]) >= 1, "{here:?}");
    let sure = flow
        .accepted(until - TimeDelta::hours(2), Utc::now())
        .await
        .expect("the ledger counts")
        .expect("there is a query");
    assert_eq!(sure[&route], 10, "of 14 that were accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_in_which_nobody_looked_is_absent_and_said_once() {
    let world = world().await;
    let place = world.configure("monitor");
    let _monitor = place.serve();
    until("it to be said", 40, || {
        if place.log().contains("accepted_not_known") { Ok(()) } else { Err(place.log()) }
    });
    let page = place.scrape().expect("the page answers");
    for name in ["delivery_ledger_accepted_elsewhere", "delivery_ledger_accepted_here"] {
        assert_eq!(page.value(name, &[("route", FULL)]), None, "{name}");
    }
    let text = fs::read_to_string(&place.config).expect("it was written");
    fs::write(&place.config, text.replace("service_route_accepted_total", "service_accepted_in_vain"))
        .expect("it can be written");
    let check = place.command(&["check", "--online"]);
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(said.contains("it has no `service_accepted_in_vain`"), "{said}");
}
