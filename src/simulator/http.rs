//! HTTP over one connection, and the few things that all our handlers share.

use super::gate::Serve;
use async_trait::async_trait;
use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    http::{Response, StatusCode},
    response::IntoResponse,
};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{pin::pin, time::Duration};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Longest wait for the head of a request, which also ends idle connections.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Longest wait for the body of a request.
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// Longest head of a request, in bytes.
const MOST_HEAD_BYTES: usize = 32_768;

/// Marks an answer that is never to be sent: the connection is dropped instead.
#[derive(Clone, Copy, Debug)]
pub struct DropConnection;

#[derive(Debug, thiserror::Error)]
#[error("the connection is dropped without an answer, as ordered")]
struct Dropped;

/// Serves a router over HTTP/1.1.
pub struct HttpServer(pub Router);

#[async_trait]
impl Serve for HttpServer {
    async fn serve(&self, stream: TcpStream, stop: CancellationToken) {
        let router = TowerToHyperService::new(self.0.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let answer = router.call(request);
            async move {
                let answer: Response<Body> = answer.await.unwrap_or_else(|never| match never {});
                match answer.extensions().get::<DropConnection>() {
                    Some(_) => Err(Dropped),
                    None => Ok(answer),
                }
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(MOST_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        // How a connection ended is the peer's matter, or an ordered drop: there is nothing to mend here.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}

/// An answer with an error in it: a status, a code for programs and a sentence for people.
pub fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let error = serde_json::json!({ "error": { "code": code, "message": message } });
    (status, Json(error)).into_response()
}

/// An answer that is never sent.
pub fn dropped() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    answer.extensions_mut().insert(DropConnection);
    answer
}

/// Reads a body of at most `most_bytes`; the error is the answer to give.
pub async fn read_body(body: Body, most_bytes: usize) -> Result<Bytes, Response<Body>> {
    match tokio::time::timeout(BODY_WITHIN, to_bytes(body, most_bytes)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            "the body is too large, or was cut off",
        )),
        Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "the body did not come in time")),
    }
}
