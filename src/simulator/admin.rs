//! The admin listener: faults, statistics, addresses.

use super::{
    controls::{ControlError, Controls},
    fault::{Fault, FaultOrder},
    http::{read_body, refusal},
    ledger::ReaderAddress,
    running::Addresses,
    statistics::Statistics,
};
use axum::{
    Json, Router,
    body::Body,
    extract::{Query, State},
    http::{Response, StatusCode},
    response::IntoResponse,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, OnceLock};

const MOST_BODY_BYTES: usize = 8_192;

/// What the admin works with.
pub struct Admin {
    pub controls: Arc<Controls>,
    pub statistics: Arc<Statistics>,
    /// Set once all listeners are open.
    pub addresses: Arc<OnceLock<Addresses>>,
}

/// The routes of the admin listener.
pub fn router(admin: Arc<Admin>) -> Router {
    Router::new()
        .route("/admin/faults", get(list).post(switch))
        .route("/admin/reset", post(reset))
        .route("/admin/statistics", get(statistics))
        .route("/admin/addresses", get(addresses))
        .with_state(admin)
}

async fn list(State(admin): State<Arc<Admin>>) -> Response<Body> {
    Json(json!({ "on": admin.controls.faults.list(), "faults": Fault::kinds() })).into_response()
}

async fn switch(State(admin): State<Arc<Admin>>, body: Body) -> Response<Body> {
    let body = match read_body(body, MOST_BODY_BYTES).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let order: FaultOrder = match serde_json::from_slice(&body) {
        Ok(order) => order,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, "body", &error.to_string()),
    };
    admin.done(admin.controls.switch(&order).await)
}

async fn reset(State(admin): State<Arc<Admin>>) -> Response<Body> {
    admin.done(admin.controls.reset().await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    idempotency_key: Option<String>,
}

async fn statistics(State(admin): State<Arc<Admin>>, Query(asked): Query<Asked>) -> Response<Body> {
    if let Some(key) = asked.idempotency_key {
        return Json(admin.statistics.effects(&key)).into_response();
    }
    match admin.controls.ledger.counts().await {
        Ok(ledger) => Json(json!({ "totals": admin.statistics.totals(), "ledger": ledger })).into_response(),
        Err(error) => refusal(StatusCode::SERVICE_UNAVAILABLE, "ledger", &error.to_string()),
    }
}

async fn addresses(State(admin): State<Arc<Admin>>) -> Response<Body> {
    // A URL may hold a password: only what kind of ledger it is, and a file's path, are shown.
    let ledger = match admin.controls.ledger.reader() {
        ReaderAddress::Sqlite(path) => json!({ "sqlite": path }),
        ReaderAddress::Postgres(_) => json!("postgres"),
    };
    Json(json!({ "addresses": admin.addresses.get(), "ledger": ledger })).into_response()
}

impl Admin {
    fn done(&self, result: Result<(), ControlError>) -> Response<Body> {
        match result {
            Ok(()) => Json(json!({ "on": self.controls.faults.list() })).into_response(),
            Err(error @ ControlError::Order(_)) => {
                refusal(StatusCode::BAD_REQUEST, "order", &error.to_string())
            }
            Err(error) => refusal(StatusCode::SERVICE_UNAVAILABLE, "not_in_force", &error.to_string()),
        }
    }
}
