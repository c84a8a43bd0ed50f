//! The server over HTTP: one request for each message, answered with JSON.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::world::{Era, McpReply, McpSession, McpWorld};
use crate::socket::Serving;

/// The id of the session, in the era with a handshake.
const SESSION: &str = "loopback-session";

type SharedWorld = Arc<Mutex<McpWorld>>;

/// The server.
#[derive(Debug)]
pub struct McpServer {
    serving: Serving,
    world: SharedWorld,
}

impl McpServer {
    /// Starts it.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub async fn start(addr: SocketAddr, world: McpWorld) -> std::io::Result<Self> {
        let world = Arc::new(Mutex::new(world));
        let router = Router::new()
            .route("/mcp", post(take))
            .with_state(Arc::clone(&world));
        let serving = Serving::start(addr, router).await?;
        Ok(Self { serving, world })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.serving.addr()
    }

    /// Changes its world.
    pub fn change(&self, change: impl FnOnce(&mut McpWorld)) {
        change(&mut lock(&self.world));
    }

    /// How many requests the client cancelled.
    #[must_use]
    pub fn cancelled(&self) -> usize {
        lock(&self.world).cancelled
    }

    /// The texts of the calls that went on after a size was given.
    #[must_use]
    pub fn sized(&self) -> Vec<String> {
        lock(&self.world).sized.clone()
    }

    /// How many calls it got.
    #[must_use]
    pub fn calls(&self) -> usize {
        lock(&self.world).calls
    }
}

fn lock(world: &SharedWorld) -> std::sync::MutexGuard<'_, McpWorld> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn take(
    State(world): State<SharedWorld>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (era, token) = {
        let world = lock(&world);
        (world.era, world.token.clone())
    };
    if token.is_some_and(|token| header("authorization") != Some(&format!("Bearer {token}"))) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let accepts = header("accept").unwrap_or_default();
    if !accepts.contains("application/json") || !accepts.contains("text/event-stream") {
        return StatusCode::NOT_ACCEPTABLE.into_response();
    }
    let method = message["method"].as_str().unwrap_or_default();
    let mut session = McpSession {
        is_open: header("mcp-session-id") == Some(SESSION),
        ..McpSession::default()
    };
    if era == Era::Modern
        && let Some(wrong) = mismatch(&message, method, &header)
    {
        let error = json!({"code": -32020, "message": wrong});
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        return (StatusCode::BAD_REQUEST, Json(body)).into_response();
    }
    let reply = lock(&world).answer(&message, &mut session);
    match reply {
        McpReply::Message(body) => {
            let status = match body["error"]["code"].as_i64() {
                Some(-32601) => StatusCode::NOT_FOUND,
                Some(-32022 | -32600) => StatusCode::BAD_REQUEST,
                _ => StatusCode::OK,
            };
            let session = [("mcp-session-id", SESSION)];
            match era == Era::Legacy && method == "initialize" {
                true => (status, session, Json(body)).into_response(),
                false => (status, Json(body)).into_response(),
            }
        }
        McpReply::Nothing => StatusCode::ACCEPTED.into_response(),
        McpReply::Broken => {
            (StatusCode::OK, [("content-type", "application/json")], "{").into_response()
        }
        McpReply::Die => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        McpReply::Hang => std::future::pending().await,
        McpReply::Notify(message) => {
            let event = format!("event: message\ndata: {message}\n\n");
            let first = futures_util::stream::once(async { Ok::<_, std::io::Error>(event) });
            let stream = first.chain(futures_util::stream::pending());
            let kind = [("content-type", "text/event-stream")];
            (kind, Body::from_stream(stream)).into_response()
        }
        // The server's own requests are supported over standard streams only.
        McpReply::Ask(_) => StatusCode::NOT_IMPLEMENTED.into_response(),
    }
}

/// The header of a request that differs from its body.
fn mismatch<'a>(
    message: &Value,
    method: &str,
    header: &impl Fn(&str) -> Option<&'a str>,
) -> Option<&'static str> {
    let version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    if header("mcp-protocol-version") != version {
        return Some("MCP-Protocol-Version is not the body's");
    }
    if header("mcp-method") != Some(method) {
        return Some("Mcp-Method is not the body's");
    }
    let name = message["params"]["name"].as_str();
    (method == "tools/call" && header("mcp-name") != name).then_some("Mcp-Name is not the body's")
}
