//! The parts that run as processes of their own, so that their processor time is not mixed with what is measured.

use crate::{load::client, monitor};
use anyhow::{Result, bail};
use async_trait::async_trait;
use axum::{Json, Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use chrono::{DateTime, Utc};
use delivery_canary::domain::watch::Way;
use delivery_canary::{
    config::receipt::{RouteReceipt, WebhookReceiver as Settings},
    domain::{
        evidence::ArrivalRefusal,
        route::{CanaryId, RouteName},
    },
    receipt::{Admission, Arrival, Keeper, rules::RouteRules, webhook::WebhookReceiver},
};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Runs a role until standard input ends.
pub async fn run(role: &str) -> Result<()> {
    std::thread::spawn(|| {
        let mut nothing = Vec::new();
        // Whatever ends it: the bench is gone.
        let _ = std::io::stdin().read_to_end(&mut nothing);
        std::process::exit(0);
    });
    match role {
        "target" => serve(target()?).await,
        "bare" => serve(Router::new().fallback(bare)).await,
        "receiver" => receiver().await,
        other => bail!("there is no role {other}"),
    }
}

fn say(address: SocketAddr) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{address}")?;
    Ok(out.flush()?)
}

async fn serve(router: Router) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    say(listener.local_addr()?)?;
    Ok(axum::serve(listener, router).await?)
}

/// A bare handler: reads the body, answers 200.
async fn bare(body: Bytes) -> &'static str {
    if body.is_empty() { "nothing\n" } else { "recorded\n" }
}

/// The least that a notification service does: accepts, and posts a webhook back.
fn target() -> Result<Router> {
    let client = client(Duration::from_secs(10))?;
    Ok(Router::new().route("/v1/notifications", post(accept)).with_state(client))
}

async fn accept(
    State(client): State<reqwest::Client>,
    Json(request): Json<Value>,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let callback = request["callback_url"].as_str().ok_or(StatusCode::BAD_REQUEST)?.to_owned();
    tokio::spawn(async move {
        // What does not arrive is seen by who waits for it.
        let _ = client.post(callback).body(monitor::WEBHOOK).send().await;
    });
    Ok((StatusCode::CREATED, Json(json!({ "notification_id": uuid::Uuid::now_v7() }))))
}

/// Keeps nothing, at once.
struct Forgetful;

#[async_trait]
impl Keeper for Forgetful {
    async fn arrived(&self, _: Arrival) -> Admission {
        Admission::Recorded
    }

    fn refused(&self, _: CanaryId, _: DateTime<Utc>, _: ArrivalRefusal) {}

    async fn proved(&self, _: &str, _: Way, _: DateTime<Utc>) {}
}

/// The monitor's own receiver, without its store.
async fn receiver() -> Result<()> {
    let settings: Settings = serde_json::from_value(json!({
        "listen": "127.0.0.1:0", "public_url": "http://127.0.0.1/receipts", "token_secrets": [monitor::SECRET],
    }))?;
    let receipt: RouteReceipt = serde_json::from_value(json!({
        "receiver": "sink", "expect": [{"name": "amount", "at": {"pointer": "/text"}, "matches": "12\\.34"}],
    }))?;
    let route = RouteName::from_text(format!("webhook/{}", monitor::name(0)));
    let receiver = WebhookReceiver::bind("sink", &settings, vec![RouteRules::compile(route, &receipt)?])?;
    say(receiver.local_addr())?;
    Ok(receiver.run(Arc::new(Forgetful), CancellationToken::new()).await?)
}
