//! Senders that prove themselves, and those that can't.

use super::support::{Running, rules, settings};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{TimeDelta, Utc};
use delivery_canary::domain::evidence::ArrivalRefusal;
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

const OLD: &[u8] = b"the old key of the sender, 24 and more";
const NEW: &[u8] = b"the new key of the sender, 24 and more";

fn start(sender: Value) -> Running {
    Running::start(&settings(json!({ "sender": sender })), vec![rules("receipts", json!({}))])
}

fn standard() -> Running {
    let secrets = [format!("whsec_{}", BASE64_STANDARD.encode(NEW)), BASE64_STANDARD.encode(OLD)];
    start(json!({ "standard_webhooks": { "secrets": secrets, "tolerance": "60s" } }))
}

fn sign(key: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let text = format!("{id}.{timestamp}.{body}");
    let code = Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes();
    format!("v1,{}", BASE64_STANDARD.encode(code))
}

#[tokio::test]
async fn a_shared_secret_must_come_once_and_be_one_of_ours() {
    let running =
        start(json!({ "shared_secret": { "header": "X-Key", "secrets": ["sesame-new", "sesame-old"] } }));
    let (id, token) = running.plan("receipts");
    let path = format!("/{token}");
    let large = vec![b'x'; 2_000_000];
    assert_eq!(running.post(&path, &[], &large).await.0, 413);
    assert_eq!(running.post(&path, &[("x-key", "sesame-new")], &large).await.0, 413);
    let refused: Vec<_> = running.keeper.refused.lock().unwrap().drain(..).collect();
    assert_eq!(refused, [(id, ArrivalRefusal::Unproven), (id, ArrivalRefusal::TooLarge)]);
    for bad in [
        &[][..],
        &[("x-key", "")],
        &[("x-key", "sesame")],
        &[("x-key", "sesame-new ,")],
        &[("x-key", "sesame-new"), ("x-key", "sesame-new")],
    ] {
        assert_eq!(running.post(&path, bad, b"").await, (401, "bad_sender".into()), "{bad:?}");
    }
    assert!(running.arrivals().is_empty());
    assert_eq!(*running.keeper.refused.lock().unwrap(), [(id, ArrivalRefusal::Unproven); 5]);
    for good in ["sesame-new", "sesame-old"] {
        assert_eq!(running.post(&path, &[("X-KEY", good)], b"").await.0, 200);
    }
}

#[tokio::test]
async fn a_standard_signature_of_any_of_our_secrets_is_enough_among_others() {
    let running = standard();
    let now = Utc::now().timestamp().to_string();
    for key in [OLD, NEW] {
        let (_, token) = running.plan("receipts");
        let right = sign(key, "msg_1", &now, "{}");
        let many = format!("v1a,bm90IG91cnM= v1,bm90IGl0 {right} v2,x");
        for signature in [right, many] {
            let headers = [
                ("webhook-id", "msg_1"),
                ("webhook-timestamp", now.as_str()),
                ("webhook-signature", &signature),
            ];
            assert_eq!(running.post(&format!("/{token}"), &headers, b"{}").await.0, 200);
        }
    }
}

#[tokio::test]
async fn a_standard_signature_covers_id_time_and_body_and_is_fresh() {
    let running = standard();
    let (_, token) = running.plan("receipts");
    let now = Utc::now().timestamp().to_string();
    let [old, future] = [-90, 90].map(|s| (Utc::now() + TimeDelta::seconds(s)).timestamp().to_string());
    let right = sign(NEW, "msg_1", &now, "{}");
    let cases = [
        ("another id", "msg_2", now.as_str(), right.clone(), "{}"),
        ("another body", "msg_1", &now, right.clone(), "{ }"),
        ("another time", "msg_1", &old, right.clone(), "{}"),
        ("too old", "msg_1", &old, sign(NEW, "msg_1", &old, "{}"), "{}"),
        ("from the future", "msg_1", &future, sign(NEW, "msg_1", &future, "{}"), "{}"),
        ("no time", "msg_1", "soon", sign(NEW, "msg_1", "soon", "{}"), "{}"),
        (
            "beyond all time",
            "msg_1",
            "9223372036854775807",
            sign(NEW, "msg_1", "9223372036854775807", "{}"),
            "{}",
        ),
        ("another key", "msg_1", &now, sign(b"not our key", "msg_1", &now, "{}"), "{}"),
        ("no version", "msg_1", &now, right.replace("v1,", ""), "{}"),
        ("cut short", "msg_1", &now, "v1,".into(), "{}"),
        ("no id", "", &now, sign(NEW, "", &now, "{}"), "{}"),
    ];
    for (what, id, timestamp, signature, body) in cases {
        let headers =
            [("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", &signature)];
        let answer = running.post(&format!("/{token}"), &headers, body.as_bytes()).await;
        assert_eq!(answer, (401, "bad_sender".into()), "{what}");
    }
    assert_eq!(running.post(&format!("/{token}"), &[], b"{}").await.0, 401);
    assert!(running.arrivals().is_empty());
}

#[tokio::test]
async fn a_replay_of_a_signed_message_is_the_same_message() {
    let running = standard();
    let (_, token) = running.plan("receipts");
    let now = Utc::now().timestamp().to_string();
    let signature = sign(NEW, "msg_1", &now, "{}");
    let headers =
        [("webhook-id", "msg_1"), ("webhook-timestamp", now.as_str()), ("webhook-signature", &signature)];
    for expected in ["recorded", "duplicate"] {
        assert_eq!(running.post(&format!("/{token}"), &headers, b"{}").await, (200, expected.into()));
    }
    let messages: Vec<_> = running.arrivals().into_iter().map(|a| a.receipt.message).collect();
    assert!(messages[0].is_some() && messages[0] == messages[1]);
}
