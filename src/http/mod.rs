//! The optional HTTP listeners. This page: `/healthz`, `/readyz`, `/metrics`, read-only, loopback by
//! default. `api`: what programs follow, behind a `door` with a number of seats. `console`: pages for people, behind
//! the same. `webhooks`: what platforms call, with a `crowd` that makes room.
//!
//! `/healthz` says that the process serves, `/readyz` that storage works and every channel is
//! connected, `/metrics` what `vocative status` says, as OpenMetrics.

pub mod api;
mod bodies;
pub mod console;
mod crowd;
mod door;
mod host;
mod metrics;
pub mod webhooks;

use std::net::SocketAddr;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::admin::operations::{AdminOperation, Operations};
use crate::admin::view::StatusView;

/// Opens the listener.
///
/// # Errors
/// If the address can't be used.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves until cancelled.
pub async fn serve(listener: TcpListener, operations: Operations, cancel: CancellationToken) {
    let address = match listener.local_addr() {
        Ok(address) => address,
        Err(cause) => return error!(error = %cause, "the HTTP listener has no address"),
    };
    info!(%address, "health and metrics are served");
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(operations)
        .layer(middleware::from_fn_with_state(address, host::pass));
    let served = axum::serve(listener, router)
        .with_graceful_shutdown(async move { cancel.cancelled().await });
    if let Err(cause) = served.await {
        error!(error = %cause, "the HTTP listener ended");
    }
}

async fn status(operations: &Operations) -> Option<StatusView> {
    let answer = operations.execute(AdminOperation::Status).await.ok()?;
    serde_json::from_value(answer).ok()
}

/// 200 when storage answers and every channel is connected, else 503 with what is missing.
async fn ready(State(operations): State<Operations>) -> Response {
    let Some(view) = status(&operations).await else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer\n",
        )
            .into_response();
    };
    let missing: Vec<String> = view
        .channels
        .iter()
        // A channel that is only in the store was taken out of the configuration.
        .filter(|channel| channel.state != "connected" && channel.state != "stopped")
        .map(|channel| format!("{}: {}", channel.name, channel.state))
        .collect();
    let code = if missing.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(serde_json::json!({ "not_connected": missing }))).into_response()
}

async fn metrics(State(operations): State<Operations>) -> Response {
    let Some(view) = status(&operations).await else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer\n",
        )
            .into_response();
    };
    match metrics::encode(&view, &operations.counted()) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
