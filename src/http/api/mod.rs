//! The API: conversations, runs, what happens in a run while it happens, and what waits for people, for programs.
//!
//! Off unless asked for. On a Unix socket by default; on an address and port only with a token. It shows what operators
//! see, direct messages included, and changes what waits for people, for tokens that may; other tokens ask agents, and
//! see what they asked. Reading order: this page, `gate` (who is let in), `callers` (what they may), `owning` (whose is
//! what), `asked` (what for), `refusal`, `deciding` (what waits for people), `asking`, `runs`, `following`,
//! `completions` (programs that ask), `stream` (one reader), `hub` (from the store to all of them), `frame` (what is
//! sent), `epoch` (ids after a restore).

mod asked;
mod asking;
mod callers;
mod completions;
mod deciding;
mod epoch;
mod following;
mod frame;
mod gate;
mod hub;
mod memories;
mod owning;
mod refusal;
mod runs;
mod states;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::json;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

pub use self::callers::ApiKey;

use self::asked::{IdInPath, RequestQuery, conversation_id, run_id};
use self::callers::{Caller, Needed, Sight, need};
use self::epoch::Epoch;
use self::gate::ApiGate;
use self::hub::Hub;
use self::refusal::ApiRefusal;
use self::stream::StreamSource;
use super::door::{ListenerDoor, Outside, Seat};
use crate::admin::operations::{Operations, place_in_list};
use crate::admin::socket;
use crate::admin::view::{ConversationView, RunView};
use crate::config::{API_CHANNEL, ApiAddress, ApiScope};
use vocative_store::contract::ConversationFilter;

/// Connections at once, where the process may have enough files open for them.
const CONNECTIONS_MAX: usize = 2_048;
/// The same where it can't be found out how many it may have.
const CONNECTIONS_MIN: usize = 128;

/// An open listener.
pub struct ApiListener {
    outside: Outside,
    shown: String,
}

/// Opens the listener.
///
/// # Errors
/// If the address or path can't be used.
pub async fn bind(address: &ApiAddress, group: Option<&str>) -> std::io::Result<ApiListener> {
    let outside = match address {
        ApiAddress::Unix(path) => Outside::Unix(socket::bind(path, group).await?),
        ApiAddress::Tcp(address) => Outside::Tcp(tokio::net::TcpListener::bind(address).await?),
    };
    Ok(ApiListener {
        outside,
        shown: address.to_string(),
    })
}

impl ApiListener {
    /// A socket that is open already, by the address that the configuration gives it.
    pub(crate) fn held(listener: UnixListener, address: &ApiAddress) -> Self {
        Self {
            outside: Outside::Unix(listener),
            shown: address.to_string(),
        }
    }

    /// Its address, if it listens on TCP.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.outside {
            Outside::Tcp(listener) => listener.local_addr().ok(),
            Outside::Unix(_) => None,
        }
    }
}

/// What requests need.
#[derive(Clone)]
struct ApiState {
    operations: Operations,
    source: StreamSource,
}

/// Serves until cancelled. With keys, every request must bear one of them; without any, everybody reads.
pub async fn serve(
    listener: ApiListener,
    keys: Vec<ApiKey>,
    operations: Operations,
    cancel: CancellationToken,
) {
    let seats = seats();
    let running = operations.running.as_ref();
    let health = running.map(|running| {
        let address = listener.shown.clone();
        running.health.listener("api", address, seats)
    });
    let health = health.unwrap_or_default();
    let epoch = match operations.store.restored_at_ms().await {
        Ok(restored_at_ms) => Epoch(restored_at_ms),
        Err(cause) => return error!(error = %cause, "the API is not served"),
    };
    let hub = Arc::new(Hub::new(operations.store.reader(), epoch));
    tokio::spawn(Arc::clone(&hub).run(cancel.clone()));
    let source = StreamSource {
        store: operations.store.reader(),
        hub,
        epoch,
        health: Arc::clone(&health),
        cancel: cancel.clone(),
    };
    let gate = ApiGate::new(&keys, Arc::clone(&health));
    info!(address = %listener.shown, connections = seats, "the API is served");
    let router = router(
        ApiState { operations, source },
        gate,
        listener.tcp_address(),
    );
    let service = router.into_make_service_with_connect_info::<Seat>();
    let served = axum::serve(ListenerDoor::new(listener.outside, seats, health), service)
        .with_graceful_shutdown(async move { cancel.cancelled().await });
    if let Err(cause) = served.await {
        error!(error = %cause, "the API listener ended");
    }
}

/// The limit on connections: half of the files that the process may open, since the database, the platforms and the
/// models need some.
fn seats() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
    files.map_or(CONNECTIONS_MIN, |files| (files / 2).min(CONNECTIONS_MAX))
}

fn router(desk: ApiState, gate: ApiGate, address: Option<SocketAddr>) -> Router {
    let needed: Needed = &[ApiScope::Read, ApiScope::Ask];
    let read = Router::new()
        .route("/v1/conversations", get(conversations))
        .route("/v1/conversations/{id}/runs", get(runs))
        .route("/v1/conversations/{id}/events", get(conversation_events))
        .route("/v1/runs/{id}", get(run))
        .route("/v1/runs/{id}/events", get(run_events))
        .route_layer(middleware::from_fn_with_state(needed, need));
    read.merge(deciding::routes())
        .merge(memories::routes())
        .merge(states::routes())
        .layer(DefaultBodyLimit::max(gate::BODY_MAX_BYTES))
        .merge(runs::routes(address))
        .layer(middleware::from_fn(gate::in_time))
        .merge(completions::routes(address))
        .method_not_allowed_fallback(|| async {
            ApiRefusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path does not take this method",
                "send GET to see something, POST to change it; see docs/API.md",
            )
        })
        .fallback(|| async { ApiRefusal::no_path() })
        .layer(middleware::from_fn_with_state(gate, gate::pass))
        .layer(middleware::from_fn(completions::in_form))
        .with_state(desk)
}

async fn conversations(
    State(desk): State<ApiState>,
    caller: Caller,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let limit = asked.limit()?;
    let before = asked.text("before")?.map(place_in_list).transpose()?;
    let channel = asked.text("channel")?.map(str::to_owned);
    let (channel, chats_of) = match caller.sight()? {
        Sight::Everything => (channel, None),
        Sight::Own(owner) => (Some(API_CHANNEL.to_owned()), Some(owner.chats())),
    };
    let filter = ConversationFilter {
        channel,
        chats_of,
        limit,
        with_archived: asked.is_set("archived")?,
        before,
    };
    let listed = desk.operations.conversations(filter).await?;
    let views = Vec::<ConversationView>::deserialize(&listed).unwrap_or_default();
    let next = views.last().filter(|_| views.len() == limit);
    let next = next.map(ConversationView::place);
    let body = json!({ "conversations": listed, "next_before": next });
    Ok(axum::Json(body).into_response())
}

async fn runs(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let (limit, before) = (asked.limit()?, asked.run_before()?);
    let id = conversation_id(id)?;
    if let Sight::Own(_) = caller.sight()? {
        desk.conversation_for(&caller, id).await?;
    }
    let store = &desk.operations.store;
    let found = store.runs_before(id, before, limit).await?;
    let next = found.last().filter(|_| found.len() == limit);
    let body = json!({
        "runs": found.iter().map(RunView::of).collect::<Vec<_>>(),
        "next_before": next.map(|run| run.id.to_string()),
    });
    Ok(axum::Json(body).into_response())
}

async fn run(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
) -> Result<Response, ApiRefusal> {
    let run = desk.run_for(&caller, run_id(id)?).await?;
    let conversation = run.conversation.to_string();
    let body = json!({ "run": RunView::of(&run), "conversation": conversation });
    Ok(axum::Json(body).into_response())
}

async fn run_events(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    headers: HeaderMap,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let after = asked.last_event(&headers, desk.source.epoch)?;
    let id = run_id(id)?;
    if let Sight::Own(_) = caller.sight()? {
        desk.run_for(&caller, id).await?;
    }
    Ok(stream::of_run(desk.source, id, after).await?)
}

async fn conversation_events(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    headers: HeaderMap,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let after = asked.last_event(&headers, desk.source.epoch)?;
    let id = conversation_id(id)?;
    if let Sight::Own(_) = caller.sight()? {
        desk.conversation_for(&caller, id).await?;
    }
    Ok(stream::of_conversation(desk.source, id, after).await?)
}
