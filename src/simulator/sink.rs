//! Where the background customers' webhooks arrive: counted and forgotten.

use super::statistics::Statistics;
use axum::{Router, extract::State, http::StatusCode, routing::post};
use std::sync::Arc;

/// The routes of the sink's listener.
pub fn router(statistics: Arc<Statistics>) -> Router {
    Router::new().route("/customers", post(receive)).with_state(statistics)
}

async fn receive(State(statistics): State<Arc<Statistics>>) -> StatusCode {
    statistics.add(|totals| totals.customers_received += 1);
    StatusCode::NO_CONTENT
}
