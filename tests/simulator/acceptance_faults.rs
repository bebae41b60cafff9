//! Each fault of acceptance, seen by who submits.

use super::support::World;
use delivery_canary::simulator::{Fault, FaultOrder};
use std::time::{Duration, Instant};

#[tokio::test]
async fn acceptance_down_refuses_connections_and_comes_back_on_the_same_port() {
    let world = World::new().await;
    for round in 0..3 {
        world.simulator.fault_on(Fault::AcceptanceDown).await.unwrap();
        let refused = world.send("key-1", &world.body()).await.expect_err("the connection is refused");
        assert!(refused.is_connect(), "{refused:?}");
        world.simulator.fault_off(Fault::AcceptanceDown).await.unwrap();
        let (status, _) = world.submit("key-1").await;
        assert_eq!(status, if round == 0 { 201 } else { 200 });
    }
    assert_eq!(world.sink.has(1).await.len(), 1);
}

#[tokio::test]
async fn acceptance_5xx_accepts_nothing() {
    let world = World::new().await;
    let mut order = FaultOrder::on(Fault::Acceptance5xx);
    order.params.status = Some(502);
    world.simulator.switch(order).await.unwrap();
    let (status, answer) = world.submit("key-1").await;
    assert_eq!((status, answer["error"]["code"].as_str()), (502, Some("unavailable")));
    assert_eq!(world.simulator.ledger_counts().await.unwrap().notifications, 0);
    assert_eq!(world.simulator.effects("key-1").submissions, 1);
}

#[tokio::test]
async fn acceptance_slow_answers_later_and_accepts() {
    let world = World::new().await;
    world.simulator.switch(FaultOrder::on(Fault::AcceptanceSlow).seconds(0.4)).await.unwrap();
    let began = Instant::now();
    world.accepted("key-1").await;
    assert!(began.elapsed() >= Duration::from_millis(400));
    world.sink.has(1).await;
}

#[tokio::test]
async fn acceptance_slow_accepts_even_when_the_caller_has_gone() {
    let world = World::new().await;
    world.simulator.switch(FaultOrder::on(Fault::AcceptanceSlow).seconds(0.3)).await.unwrap();
    let url = format!("http://{}/v1/notifications", world.simulator.addresses().acceptance);
    let call = world.client.post(url).header("idempotency-key", "key-1").json(&world.body());
    let gone = call.timeout(Duration::from_millis(100)).send().await.expect_err("the caller gave up");
    assert!(gone.is_timeout(), "{gone:?}");
    world.sink.has(1).await;
    assert_eq!(world.simulator.effects("key-1").accepted, 1);
}

#[tokio::test]
async fn acceptance_ambiguous_accepts_and_never_answers() {
    let world = World::new().await;
    world.simulator.fault_on(Fault::AcceptanceAmbiguous).await.unwrap();
    let broken = world.send("key-1", &world.body()).await.expect_err("the connection is dropped");
    assert!(!broken.is_connect() && !broken.is_timeout(), "{broken:?}");
    let id = world.sink.has(1).await[0].body["notification_id"].clone();
    world.simulator.fault_off(Fault::AcceptanceAmbiguous).await.unwrap();
    let (status, again) = world.submit("key-1").await;
    assert_eq!((status, &again["notification_id"]), (200, &id));
    let effects = world.simulator.effects("key-1");
    assert_eq!((effects.submissions, effects.accepted, effects.replayed), (2, 1, 1));
    assert_eq!(effects.webhooks_sent, 1);
}

#[tokio::test]
async fn error_in_200_accepts_nothing() {
    let world = World::new().await;
    world.simulator.fault_on(Fault::ErrorIn200).await.unwrap();
    let (status, answer) = world.submit("key-1").await;
    assert_eq!((status, answer["error"]["code"].as_str()), (200, Some("queue_full")));
    assert!(answer["notification_id"].is_null());
    assert_eq!(world.simulator.ledger_counts().await.unwrap().notifications, 0);
}

#[tokio::test]
async fn write_lost_answers_with_an_id_and_writes_nothing() {
    let world = World::new().await;
    world.simulator.fault_on(Fault::WriteLost).await.unwrap();
    world.accepted("key-1").await;
    world.simulator.fault_off(Fault::WriteLost).await.unwrap();
    world.accepted("key-2").await;
    // The second has arrived, so the first would have.
    assert_eq!(world.sink.has(1).await.len(), 1);
    assert_eq!(world.simulator.ledger_counts().await.unwrap().notifications, 1);
    let totals = world.simulator.totals();
    assert_eq!((totals.accepted, totals.writes_lost), (2, 1));
}

#[tokio::test]
async fn a_ratio_strikes_a_part_of_the_submissions() {
    let world = World::new().await;
    let mut order = FaultOrder::on(Fault::Acceptance5xx);
    order.ratio = Some(0.5);
    world.simulator.switch(order).await.unwrap();
    let mut refused = 0;
    for n in 0..60 {
        let (status, _) = world.submit(&format!("key-{n}")).await;
        refused += usize::from(status == 503);
    }
    assert!((5..55).contains(&refused), "{refused} of 60");
}
