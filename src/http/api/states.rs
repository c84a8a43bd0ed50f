//! The values that networks keep in conversations: seen by tokens that read, corrected by those that administer.

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::json;
use tracing::info;

use super::ApiState;
use super::asked::{InBody, conversation_id};
use super::callers::{Caller, Needed, need};
use super::refusal::ApiRefusal;
use crate::admin::operations::{ChangedState, StateOf};
use crate::admin::view::NetworkStateView;
use crate::config::ApiScope::{Admin, Read};

type StatePath = Result<Path<(String, String)>, PathRejection>;

/// The paths, each with the scopes of which one is needed.
pub(super) fn routes() -> Router<ApiState> {
    const PATH: &str = "/v1/conversations/{id}/state/{network}";
    let guarded = |needed: Needed, paths: Router<ApiState>| {
        paths.route_layer(from_fn_with_state(needed, need))
    };
    guarded(&[Read], Router::new().route(PATH, get(shown)))
        .merge(guarded(&[Admin], Router::new().route(PATH, post(changed))))
}

async fn shown(State(desk): State<ApiState>, of: StatePath) -> Result<Response, ApiRefusal> {
    Ok(answer(
        &desk.operations.network_state(&state_of(of)?).await?,
    ))
}

async fn changed(
    State(desk): State<ApiState>,
    caller: Caller,
    of: StatePath,
    body: InBody<ChangedState>,
) -> Result<Response, ApiRefusal> {
    let of = state_of(of)?;
    let view = desk.operations.change_network_state(&of, body.0?).await?;
    info!(token = %caller.name, network = of.network, "values of a network were changed through the API");
    Ok(answer(&view))
}

fn state_of(path: StatePath) -> Result<StateOf, ApiRefusal> {
    let (conversation, network) = path.map(|Path(names)| names).unwrap_or_default();
    Ok(StateOf {
        conversation: conversation_id(Ok(Path(conversation)))?.to_string(),
        network,
    })
}

fn answer(view: &NetworkStateView) -> Response {
    axum::Json(json!({ "state": view })).into_response()
}
