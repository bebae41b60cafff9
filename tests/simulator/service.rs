//! What the service does when nothing is wrong: bodies, keys, signatures, the provider's own door, traffic, the admin port.

use super::support::{TRACE, World, until};
use base64::{Engine, engine::general_purpose::STANDARD};
use delivery_canary::simulator::{
    Channel, Fault, LedgerOptions, SigningSecret, Simulator, SimulatorOptions, TrafficOptions, TrafficRoute,
};
use hmac::{Hmac, Mac};
use reqwest::Method;
use serde_json::json;
use sha2::Sha256;

#[tokio::test]
async fn the_webhook_carries_what_was_submitted_and_a_signature() {
    let world = World::with(|options| {
        options.signing_secret = Some(SigningSecret::parse("whsec_MDEyMzQ1Njc4OWFiY2RlZg==").unwrap());
    })
    .await;
    let id = world.accepted("key-1").await;
    let arrived = world.sink.has(1).await.remove(0);
    assert_eq!(arrived.body["notification_id"], id.as_str());
    assert_eq!(arrived.body["metadata"], json!({ "canary_id": "c-1", "token": "t-1" }));
    assert_eq!(arrived.body["traceparent"], TRACE);
    assert_eq!(arrived.headers["traceparent"], TRACE);
    assert_eq!(arrived.body["subject"], "Your payment of 12.34 EUR");
    let header = |name| arrived.headers.get(name).unwrap().to_str().unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(b"0123456789abcdef").unwrap();
    mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    mac.update(&arrived.raw);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header("webhook-signature"), expected);
}

#[tokio::test]
async fn unfit_submissions_are_refused_with_a_reason_and_leave_nothing() {
    let world = World::new().await;
    let changes = [
        ("recipient", json!("")),
        ("channel", json!("pigeon")),
        ("route", json!("no such route!")),
        ("callback_url", json!("http://192.0.2.1/away")),
        ("callback_url", json!("https://127.0.0.1/")),
        ("not_before", json!("tomorrow")),
        ("not_before", json!("+12345-01-01T00:00:00Z")),
        ("metadata", json!([1])),
        ("surprise", json!(1)),
    ];
    for (field, value) in changes {
        let mut body = world.body();
        body[field] = value;
        let answer = world.send("key-1", &body).await.unwrap();
        assert_eq!(answer.status(), 400, "{field}");
        let answer: serde_json::Value = answer.json().await.unwrap();
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty(), "{field}");
    }
    let mut large = world.body();
    large["metadata"]["much"] = "x".repeat(100_000).into();
    assert_eq!(world.send("key-1", &large).await.unwrap().status(), 413);
    assert_eq!(world.simulator.ledger_counts().await.unwrap().notifications, 0);
    assert_eq!(world.simulator.totals().refused, 10);
}

#[tokio::test]
async fn one_key_at_once_gives_one_id_and_one_effect() {
    let world = World::new().await;
    let body = world.body();
    let (a, b, c, d) = tokio::join!(
        world.send("key-1", &body),
        world.send("key-1", &body),
        world.send("key-1", &body),
        world.send("key-1", &body)
    );
    let (mut ids, mut created) = (Vec::new(), 0);
    for answer in [a, b, c, d] {
        let answer = answer.unwrap();
        created += u32::from(answer.status() == 201);
        ids.push(answer.json::<serde_json::Value>().await.unwrap()["notification_id"].clone());
    }
    ids.dedup();
    assert_eq!((ids.len(), created), (1, 1));
    world.sink.has(1).await;
    let effects = world.simulator.effects("key-1");
    assert_eq!((effects.submissions, effects.accepted, effects.replayed), (4, 1, 3));
}

#[tokio::test]
async fn without_a_key_each_submission_is_new_and_not_before_is_kept() {
    let world = World::new().await;
    let url = format!("http://{}/v1/notifications", world.simulator.addresses().acceptance);
    for _ in 0..2 {
        assert_eq!(world.client.post(&url).json(&world.body()).send().await.unwrap().status(), 201);
    }
    world.sink.has(2).await;
    let mut later = world.body();
    later["not_before"] = json!(chrono::Utc::now() + chrono::TimeDelta::hours(1));
    assert_eq!(world.send("key-later", &later).await.unwrap().status(), 201);
    world.accepted("key-now").await;
    world.sink.has(3).await;
    until("one pending", || async {
        let counts = world.simulator.ledger_counts().await.unwrap();
        if (counts.notifications, counts.pending) == (4, 1) { Ok(()) } else { Err(counts) }
    })
    .await;
}

#[tokio::test]
async fn the_providers_own_door_takes_a_notifications_body_past_the_service() {
    let world = World::new().await;
    let url = format!("http://{}/provider/v1/messages", world.simulator.addresses().provider);
    for _ in 0..2 {
        let post = world.client.post(&url).header("idempotency-key", "control-1").json(&world.body());
        let answer: serde_json::Value = post.send().await.unwrap().json().await.unwrap();
        assert!(answer["message_id"].is_string(), "{answer}");
    }
    assert_eq!(world.sink.has(1).await.len(), 1);
    assert_eq!(world.sink.arrived()[0].body["metadata"]["token"], "t-1");
    assert_eq!(world.simulator.ledger_counts().await.unwrap().notifications, 0);
    world.simulator.fault_on(Fault::ProviderDown).await.unwrap();
    assert!(world.client.post(&url).json(&world.body()).send().await.unwrap_err().is_connect());
}

#[tokio::test]
async fn customers_traffic_fills_the_ledger_and_stays_inside() {
    let world = World::with(|options| {
        let route = |name: &str, channel| TrafficRoute { name: name.into(), channel };
        options.traffic = Some(TrafficOptions {
            per_second: 200.0,
            routes: vec![route("receipts", Channel::Email), route("alerts", Channel::Sms)],
            dead_recipients: 0.3,
        });
    })
    .await;
    until("customers on both routes, and dead ones", || async {
        let totals = world.simulator.totals();
        let rejected = totals.attempts.get("permanent_rejection").copied().unwrap_or_default();
        let seen = totals.accepted_by_route.len() == 2 && totals.customers_received > 20 && rejected > 3;
        if seen { Ok(()) } else { Err(totals) }
    })
    .await;
    let url = format!("http://{}/metrics", world.simulator.addresses().probes);
    let page = world.client.get(url).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("service_route_accepted_total{route=\"alerts\"} "), "{page}");
    assert_eq!(world.sink.arrived().len(), 0);
    world.simulator.stop().await;
}

#[tokio::test]
async fn the_admin_port_switches_faults_and_shows_statistics() {
    let world = World::new().await;
    let order = json!({ "fault": "provider-slow", "on": true, "route": "receipts", "ratio": 0.5,
        "params": { "seconds": 1.5 } });
    let (status, answer) = world.admin(Method::POST, "/admin/faults", Some(order)).await;
    assert_eq!((status, answer["on"][0]["fault"].as_str()), (200, Some("provider-slow")));
    let (_, list) = world.admin(Method::GET, "/admin/faults", None).await;
    assert_eq!(list["faults"].as_array().unwrap().len(), Fault::kinds().len());
    assert_eq!(list["on"][0]["params"]["seconds"], 1.5);
    for unfit in [
        json!({ "fault": "no-such", "on": true }),
        json!({ "fault": "acceptance-down", "on": true, "route": "receipts" }),
        json!({ "fault": "provider-slow", "on": true, "params": { "status": 500 } }),
        json!({ "fault": "provider-slow", "on": true, "ratio": 2 }),
    ] {
        let (status, answer) = world.admin(Method::POST, "/admin/faults", Some(unfit.clone())).await;
        assert_eq!(status, 400, "{unfit}: {answer}");
    }
    let down = json!({ "fault": "acceptance-down", "on": true });
    assert_eq!(world.admin(Method::POST, "/admin/faults", Some(down)).await.0, 200);
    assert!(world.send("key-1", &world.body()).await.unwrap_err().is_connect());
    let (status, answer) = world.admin(Method::POST, "/admin/reset", None).await;
    assert_eq!((status, answer["on"].as_array().map(Vec::len)), (200, Some(0)));
    world.accepted("key-1").await;
    let (_, one) = world.admin(Method::GET, "/admin/statistics?idempotency_key=key-1", None).await;
    assert_eq!((one["submissions"].as_u64(), one["accepted"].as_u64()), (Some(1), Some(1)));
    let (_, all) = world.admin(Method::GET, "/admin/statistics", None).await;
    assert_eq!(
        (all["totals"]["accepted"].as_u64(), all["ledger"]["notifications"].as_u64()),
        (Some(1), Some(1))
    );
    let (_, addresses) = world.admin(Method::GET, "/admin/addresses", None).await;
    let acceptance = world.simulator.addresses().acceptance.to_string();
    assert_eq!(addresses["addresses"]["acceptance"].as_str(), Some(acceptance.as_str()));
}

#[tokio::test]
async fn options_that_can_not_work_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let usual = SimulatorOptions::new(LedgerOptions::Sqlite(folder.path().join("ledger.db")));
    let mut open_to_all = usual.clone();
    open_to_all.admin = "0.0.0.0:0".parse().unwrap();
    let mut idle = usual.clone();
    idle.workers = 0;
    for options in [open_to_all, idle] {
        assert!(Simulator::start(options).await.is_err());
    }
    let mut nowhere = usual;
    nowhere.ledger = LedgerOptions::Postgres("postgres://nobody@127.0.0.1:1/none".into());
    assert!(Simulator::start(nowhere).await.is_err());
}
