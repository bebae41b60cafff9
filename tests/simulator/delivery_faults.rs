//! Each fault between the service and the sink, seen from outside.

use super::support::{World, outcomes, until};
use delivery_canary::simulator::{Fault, FaultOrder, FaultParams, MalformedKind};
use std::time::Duration;

/// The attempts of a notification, once there are so many.
async fn attempts(world: &World, id: &str, number: usize) -> Vec<super::support::Row> {
    world.ledger_shows(id, &format!("attempt {number}"), |rows| rows.len() >= number).await
}

/// A fault under which attempts fail with this code until it is off; then the notification is delivered.
async fn fails_until_it_is_off(order: FaultOrder, code: &str) {
    let fault = order.fault;
    let world = World::new().await;
    world.simulator.switch(order).await.unwrap();
    let id = world.accepted("key-1").await;
    let rows = attempts(&world, &id, 3).await;
    for row in &rows[..3] {
        assert_eq!((row.outcome.as_str(), row.provider_code.as_str()), ("retryable", code));
        assert!(!row.is_settled);
    }
    assert_eq!(world.sink.arrived().len(), 0);
    world.simulator.fault_off(fault).await.unwrap();
    world.sink.has(1).await;
    let rows = world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
    assert_eq!(rows.last().map(|row| row.outcome.as_str()), Some("delivered"));
    let numbers: Vec<i64> = rows.iter().map(|row| row.attempt_number).collect();
    assert_eq!(numbers, (1..).take(rows.len()).collect::<Vec<_>>());
    assert_eq!(world.simulator.effects("key-1").webhooks_sent, 1);
}

#[tokio::test]
async fn provider_down_refuses_connections_and_is_retried() {
    fails_until_it_is_off(FaultOrder::on(Fault::ProviderDown), "connect_failed").await;
}

#[tokio::test]
async fn provider_down_for_one_route_answers_503_there() {
    fails_until_it_is_off(FaultOrder::on(Fault::ProviderDown).on_route("receipts"), "route_down").await;
}

#[tokio::test]
async fn provider_5xx_is_retried() {
    let mut order = FaultOrder::on(Fault::Provider5xx);
    order.params.status = Some(500);
    fails_until_it_is_off(order, "server_error").await;
}

#[tokio::test]
async fn a_sink_that_says_no_is_retried() {
    let world = World::new().await;
    world.sink.answer_with(503);
    let id = world.accepted("key-1").await;
    let rows = attempts(&world, &id, 2).await;
    assert_eq!((rows[0].outcome.as_str(), rows[0].provider_code.as_str()), ("retryable", "callback_503"));
    world.sink.answer_with(204);
    world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
    let effects = world.simulator.effects("key-1");
    assert_eq!((effects.webhooks_sent, effects.accepted), (1, 1));
}

#[tokio::test]
async fn a_fault_on_one_route_leaves_the_others_alone() {
    let world = World::new().await;
    world.simulator.switch(FaultOrder::on(Fault::ProviderDown).on_route("transfers")).await.unwrap();
    world.accepted("key-1").await;
    world.sink.has(1).await;
}

#[tokio::test]
async fn provider_slow_beyond_the_timeout_is_unknown_and_still_arrives_once() {
    let world = World::with(|options| options.provider_timeout = Duration::from_millis(100)).await;
    world.simulator.switch(FaultOrder::on(Fault::ProviderSlow).seconds(0.6)).await.unwrap();
    let id = world.accepted("key-1").await;
    let rows = world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
    assert_eq!((rows[0].outcome.as_str(), rows[0].provider_code.as_str()), ("unknown", "timeout"));
    assert_eq!(rows.last().map(|row| row.provider_code.as_str()), Some("delivered_before"));
    assert_eq!(world.sink.arrived().len(), 1);
}

#[tokio::test]
async fn ambiguous_timeout_delivers_once_and_stays_unknown_until_it_is_off() {
    let world = World::with(|options| options.provider_timeout = Duration::from_millis(150)).await;
    world.simulator.fault_on(Fault::AmbiguousTimeout).await.unwrap();
    let id = world.accepted("key-1").await;
    let rows = attempts(&world, &id, 2).await;
    assert_eq!(outcomes(&rows[..2]), ["unknown", "unknown"]);
    world.simulator.fault_off(Fault::AmbiguousTimeout).await.unwrap();
    let rows = world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
    assert_eq!(rows.last().map(|row| row.provider_code.as_str()), Some("delivered_before"));
    assert_eq!(world.sink.arrived().len(), 1);
}

#[tokio::test]
async fn attempts_that_are_used_up_end_as_a_rejection_and_unknown_ones_stay_pending() {
    let world = World::with(|options| {
        options.most_attempts = 2;
        options.provider_timeout = Duration::from_millis(150);
    })
    .await;
    world.simulator.fault_on(Fault::Provider5xx).await.unwrap();
    let id = world.accepted("key-1").await;
    let rows = world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
    assert_eq!(outcomes(&rows), ["retryable", "permanent_rejection"]);
    assert_eq!(rows[1].provider_code, "attempts_exhausted");

    world.simulator.fault_off(Fault::Provider5xx).await.unwrap();
    world.simulator.fault_on(Fault::AmbiguousTimeout).await.unwrap();
    let id = world.accepted("key-2").await;
    let rows = attempts(&world, &id, 2).await;
    assert_eq!(outcomes(&rows), ["unknown", "unknown"]);
    assert!(!rows[1].is_settled);
    // A reset has what is parked tried once more.
    world.simulator.reset().await.unwrap();
    world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
}

#[tokio::test]
async fn silent_drop_says_delivered_and_sends_nothing() {
    let world = World::new().await;
    world.simulator.fault_on(Fault::SilentDrop).await.unwrap();
    let id = world.accepted("key-1").await;
    let rows = world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
    assert_eq!(outcomes(&rows), ["delivered"]);
    assert_eq!((world.sink.arrived().len(), world.simulator.effects("key-1").webhooks_sent), (0, 0));
}

#[tokio::test]
async fn duplicate_sends_the_same_webhook_twice() {
    let world = World::new().await;
    world.simulator.fault_on(Fault::Duplicate).await.unwrap();
    let id = world.accepted("key-1").await;
    let arrived = world.sink.has(2).await;
    assert_eq!(arrived[0].headers["webhook-id"], arrived[1].headers["webhook-id"]);
    assert_eq!(attempts(&world, &id, 1).await.len(), 1);
    until("two webhooks in the statistics", || async {
        let effects = world.simulator.effects("key-1");
        if effects.webhooks_sent == 2 { Ok(()) } else { Err(effects) }
    })
    .await;
}

#[tokio::test]
async fn malformed_sends_placeholders_or_another_amount() {
    let world = World::new().await;
    world.accepted("key-0").await;
    assert!(world.sink.has(1).await[0].body["text"].as_str().unwrap().contains("12.34 EUR"));
    world.simulator.fault_on(Fault::Malformed).await.unwrap();
    world.accepted("key-1").await;
    let text = world.sink.has(2).await[1].body["text"].to_string();
    assert!(text.contains("{{ amount }}") && !text.contains("12.34"), "{text}");
    let params = FaultParams { kind: Some(MalformedKind::WrongAmount), ..FaultParams::default() };
    world.simulator.switch(FaultOrder { params, ..FaultOrder::on(Fault::Malformed) }).await.unwrap();
    world.accepted("key-2").await;
    let text = world.sink.has(3).await[2].body["text"].to_string();
    assert!(text.contains("23.45 EUR"), "{text}");
}

#[tokio::test]
async fn correlation_lost_leaves_the_traceparent_out() {
    let world = World::new().await;
    world.simulator.fault_on(Fault::CorrelationLost).await.unwrap();
    world.accepted("key-1").await;
    let arrived = world.sink.has(1).await;
    assert!(arrived[0].headers.get("traceparent").is_none() && arrived[0].body["traceparent"].is_null());
}

#[tokio::test]
async fn suppression_and_rejection_are_terminal_and_nothing_arrives() {
    let world = World::new().await;
    let mut rejection = FaultOrder::on(Fault::Rejection);
    rejection.params.code = Some("blocked_by_carrier".into());
    let cases = [
        (FaultOrder::on(Fault::Suppression), "suppressed", "policy"),
        (rejection, "permanent_rejection", "blocked_by_carrier"),
    ];
    for (order, outcome, code) in cases {
        let fault = order.fault;
        world.simulator.switch(order).await.unwrap();
        let id = world.accepted(fault.name()).await;
        let rows = world.ledger_shows(&id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
        assert_eq!(outcomes(&rows), [outcome]);
        assert_eq!(rows[0].provider_code, code);
        world.simulator.fault_off(fault).await.unwrap();
    }
    assert_eq!(world.sink.arrived().len(), 0);
}

#[tokio::test]
async fn recipients_can_be_suppressed_or_rejected_for_good() {
    let world = World::new().await;
    for (recipient, outcome) in
        [("suppressed-a@x.example.test", "suppressed"), ("rejected-a@x.example.test", "permanent_rejection")]
    {
        let mut body = world.body();
        body["recipient"] = recipient.into();
        let answer: serde_json::Value = world.send(recipient, &body).await.unwrap().json().await.unwrap();
        let id = answer["notification_id"].as_str().unwrap();
        let rows = world.ledger_shows(id, "settled", |rows| rows.iter().any(|row| row.is_settled)).await;
        assert_eq!(outcomes(&rows), [outcome]);
    }
    assert_eq!(world.sink.arrived().len(), 0);
}

#[tokio::test]
async fn stuck_worker_makes_no_attempts_and_the_probes_stay_green() {
    let world = World::new().await;
    world.simulator.switch(FaultOrder::on(Fault::StuckWorker).on_route("receipts")).await.unwrap();
    let id = world.accepted("key-1").await;
    let mut other = world.body();
    other["route"] = "transfers".into();
    world.send("key-2", &other).await.unwrap();
    // The later one has arrived, and the earlier one has not been tried.
    assert_eq!(world.sink.has(1).await[0].body["route"], "transfers");
    assert_eq!(world.rows(&id).await, []);
    for probe in ["startup", "ready", "live"] {
        let url = format!("http://{}/{probe}", world.simulator.addresses().probes);
        assert_eq!(world.client.get(url).send().await.unwrap().status(), 200, "{probe}");
    }
    world.simulator.fault_off(Fault::StuckWorker).await.unwrap();
    world.sink.has(2).await;
}

#[tokio::test]
async fn clock_skew_shifts_the_ledgers_times() {
    let world = World::new().await;
    world.simulator.switch(FaultOrder::on(Fault::ClockSkew).seconds(-7_200.0)).await.unwrap();
    let id = world.accepted("key-1").await;
    let rows = attempts(&world, &id, 1).await;
    let off = chrono::Utc::now() - rows[0].accepted_at;
    assert!((chrono::TimeDelta::minutes(119)..chrono::TimeDelta::minutes(125)).contains(&off), "{off}");
    assert!(rows[0].started_at >= rows[0].accepted_at);
}

#[tokio::test]
async fn late_ledger_shows_the_attempt_after_the_webhook_has_arrived() {
    let world = World::new().await;
    world.simulator.switch(FaultOrder::on(Fault::LateLedger).seconds(600.0)).await.unwrap();
    let id = world.accepted("key-1").await;
    world.sink.has(1).await;
    assert_eq!(world.rows(&id).await, []);
    // A second one, once the fault is off, is there at once; the first is late still.
    world.simulator.fault_off(Fault::LateLedger).await.unwrap();
    let second = world.accepted("key-2").await;
    attempts(&world, &second, 1).await;
    assert_eq!(world.rows(&id).await, []);
    // A stop does not wait for it, and does not lose it.
    let reader = world.simulator.ledger_reader();
    world.simulator.stop().await;
    assert_eq!(super::support::rows(&reader, &id).await.unwrap().len(), 1);
}
