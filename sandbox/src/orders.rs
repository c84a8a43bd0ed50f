//! A loopback shop that takes orders: what an agent's tool acts upon. It takes every order that reaches it, also a
//! repeated one, unless both carry the same `Idempotency-Key`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::socket::Serving;

/// An order that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenOrder {
    /// What was ordered.
    pub body: Value,
    /// The key that it came with.
    pub key: Option<String>,
}

type Taken = Arc<Mutex<Vec<TakenOrder>>>;

/// The shop.
#[derive(Debug)]
pub struct OrderServer {
    serving: Serving,
    taken: Taken,
}

impl OrderServer {
    /// Starts it.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub async fn start(addr: SocketAddr) -> std::io::Result<Self> {
        let taken = Taken::default();
        let router = Router::new()
            .route("/orders", post(take))
            .route("/orders", get(count))
            .with_state(Arc::clone(&taken));
        let serving = Serving::start(addr, router).await?;
        Ok(Self { serving, taken })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.serving.addr()
    }

    /// The orders, oldest first.
    #[must_use]
    pub fn orders(&self) -> Vec<TakenOrder> {
        self.taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

async fn take(State(taken): State<Taken>, headers: HeaderMap, body: Json<Value>) -> Json<Value> {
    let key = headers.get("idempotency-key");
    let key = key.and_then(|key| key.to_str().ok()).map(str::to_owned);
    let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    let known = taken
        .iter()
        .position(|order| key.is_some() && order.key == key);
    let number = known.unwrap_or_else(|| {
        taken.push(TakenOrder { body: body.0, key });
        taken.len() - 1
    });
    Json(json!({"order": number + 1}))
}

async fn count(State(taken): State<Taken>) -> Json<Value> {
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    Json(json!({"orders": taken.len()}))
}
