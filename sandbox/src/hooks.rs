//! A loopback server that hooks ask: it answers as a test wants, records what it was asked, and can hang or fail.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::socket::Serving;

/// A question that it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct HookAsked {
    /// The body.
    pub event: Value,
    /// The header `authorization`.
    pub authorization: Option<String>,
}

/// How it answers a question.
#[derive(Clone, Debug)]
enum HookReply {
    Says(Value),
    Fails(u16),
    Hangs,
}

#[derive(Debug, Default)]
struct HookDesk {
    asked: Vec<HookAsked>,
    replies: VecDeque<HookReply>,
}

type SharedDesk = Arc<Mutex<HookDesk>>;

/// The server.
#[derive(Debug)]
pub struct HookServer {
    serving: Serving,
    desk: SharedDesk,
}

impl HookServer {
    /// Starts it. It answers "pass" to questions without a scripted answer.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub async fn start(addr: SocketAddr) -> std::io::Result<Self> {
        let desk = SharedDesk::default();
        let router = Router::new()
            .route("/decide", post(decide))
            .with_state(Arc::clone(&desk));
        let serving = Serving::start(addr, router).await?;
        Ok(Self { serving, desk })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.serving.addr()
    }

    /// Scripts the answer to one further question.
    pub fn says(&self, verdict: Value) {
        self.desk().replies.push_back(HookReply::Says(verdict));
    }

    /// Lets it answer one further question with that status.
    pub fn fails(&self, status: u16) {
        self.desk().replies.push_back(HookReply::Fails(status));
    }

    /// Lets it leave one further question without an answer.
    pub fn hangs(&self) {
        self.desk().replies.push_back(HookReply::Hangs);
    }

    /// The questions that it was asked, oldest first.
    #[must_use]
    pub fn asked(&self) -> Vec<HookAsked> {
        self.desk().asked.clone()
    }

    fn desk(&self) -> MutexGuard<'_, HookDesk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn decide(
    State(desk): State<SharedDesk>,
    headers: HeaderMap,
    body: Json<Value>,
) -> (StatusCode, Json<Value>) {
    let authorization = headers.get("authorization");
    let authorization = authorization.and_then(|it| it.to_str().ok());
    let reply = {
        let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
        desk.asked.push(HookAsked {
            event: body.0,
            authorization: authorization.map(str::to_owned),
        });
        desk.replies.pop_front()
    };
    match reply {
        None => (StatusCode::OK, Json(json!({"verdict": "pass"}))),
        Some(HookReply::Says(verdict)) => (StatusCode::OK, Json(verdict)),
        Some(HookReply::Fails(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            (status, Json(json!({"verdict": "pass"})))
        }
        Some(HookReply::Hangs) => std::future::pending().await,
    }
}
