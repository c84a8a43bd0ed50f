//! What agents remember: seen by tokens that read, corrected by those that administer.

use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;
use tracing::info;

use super::ApiState;
use super::asked::{EmptyBody, IdInPath, InBody, RequestQuery, id_in};
use super::callers::{Caller, Needed, need};
use super::refusal::ApiRefusal;
use crate::admin::operations::{ChangedMemory, MemoriesAsked};
use crate::config::ApiScope::{Admin, Read};

/// The paths, each with the scopes of which one is needed.
pub(super) fn routes() -> Router<ApiState> {
    let guarded = |needed: Needed, paths: Router<ApiState>| {
        paths.route_layer(from_fn_with_state(needed, need))
    };
    let seen = Router::new()
        .route("/v1/memories", get(memories))
        .route("/v1/memories/{id}", get(memory));
    let corrected = Router::new()
        .route("/v1/memories/{id}/edit", post(edit))
        .route("/v1/memories/{id}/forget", post(forget))
        .route("/v1/memories/{id}/share", post(share))
        .route("/v1/memories/{id}/unshare", post(unshare));
    guarded(&[Read], seen).merge(guarded(&[Admin], corrected))
}

async fn memories(
    State(desk): State<ApiState>,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let text = |name| Ok::<_, ApiRefusal>(asked.text(name)?.map(str::to_owned));
    let limit = asked.limit()?;
    let found = desk.operations.memories(MemoriesAsked {
        channel: text("channel")?,
        agent: text("agent")?,
        person: text("person")?,
        all: asked.is_set("all")?,
        before: asked.text("before")?.map(number).transpose()?,
        limit,
    });
    let found = found.await?;
    let next = found.last().filter(|_| found.len() == limit);
    let next = next.map(|last| last.id);
    Ok(axum::Json(json!({ "memories": found, "next_before": next })).into_response())
}

async fn memory(State(desk): State<ApiState>, id: IdInPath) -> Result<Response, ApiRefusal> {
    let found = desk.operations.memory(number(&id_in(id))?).await?;
    Ok(axum::Json(json!({ "memory": found })).into_response())
}

/// What an entry is to say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditBody {
    text: String,
    /// The version that was looked at.
    version: u32,
}

async fn edit(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<EditBody>,
) -> Result<Response, ApiRefusal> {
    let EditBody { text, version } = body.0?;
    let version = Some(version);
    change(&desk, &caller, id, ChangedMemory::Edit { text, version }).await
}

async fn forget(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<EmptyBody>,
) -> Result<Response, ApiRefusal> {
    body.0?;
    change(&desk, &caller, id, ChangedMemory::Forget).await
}

async fn share(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<EmptyBody>,
) -> Result<Response, ApiRefusal> {
    body.0?;
    change(&desk, &caller, id, ChangedMemory::Share).await
}

async fn unshare(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<EmptyBody>,
) -> Result<Response, ApiRefusal> {
    body.0?;
    change(&desk, &caller, id, ChangedMemory::Unshare).await
}

async fn change(
    desk: &ApiState,
    caller: &Caller,
    id: IdInPath,
    change: ChangedMemory,
) -> Result<Response, ApiRefusal> {
    let id = number(&id_in(id))?;
    let found = desk.operations.change_memory(id, change).await?;
    info!(token = %caller.name, memory = id, "an entry of memory was changed through the API");
    Ok(axum::Json(json!({ "memory": found })).into_response())
}

fn number(text: &str) -> Result<i64, ApiRefusal> {
    let advice = "find it with GET /v1/memories";
    text.parse()
        .map_err(|_| ApiRefusal::wrong("the id of an entry is a whole number", advice))
}
