//! The control surface: what `SlackServer`'s methods do, as JSON over HTTP on the same port.
//!
//! For bot authors who run the loopback platforms as a process of their own. Every request with its
//! fields is in the README of the crate. This module owns the routes and the form of bodies and
//! refusals; `acts` is what people do, `world` what exists, `failing` what goes wrong.

mod acts;
mod failing;
mod world;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::events::EventObject;
use super::server::posts_of;
use super::state::{SharedSlack, SlackCore};
use super::text::typed_to_wire;
use crate::journal::{self, JournalQuery};
use crate::wire::WirePeer;

type Server = State<Arc<SharedSlack>>;

/// The routes under `/control/`.
pub(super) fn routes() -> Router<Arc<SharedSlack>> {
    let messages = Router::new()
        .route("/post", post(acts::post_message))
        .route("/edit", post(acts::edit))
        .route("/delete", post(acts::delete))
        .route("/react", post(acts::react))
        .route("/unfurl", post(acts::unfurl))
        .route("/count_replies", post(acts::count_replies))
        .route("/stop", post(acts::stop))
        .route("/command", post(acts::command))
        .route("/click", post(acts::click))
        .route("/submit", post(acts::submit))
        .route("/close", post(acts::close))
        .route("/open", post(acts::open))
        .route("/event", post(acts::raw_event))
        .route("/payload", post(acts::raw_payload))
        .route("/frame", post(acts::raw_frame));
    let things = Router::new()
        .route("/invite", post(world::invite))
        .route("/remove", post(world::remove))
        .route("/join", post(world::join))
        .route("/leave", post(world::leave))
        .route("/archive", post(world::archive))
        .route("/rename", post(world::rename))
        .route("/change_id", post(world::change_id))
        .route("/user", post(world::user))
        .route("/channel", post(world::channel))
        .route("/app", post(world::app))
        .route("/clock", post(world::clock))
        .route("/file", post(world::add_file).get(world::file))
        .route("/file_mode", post(world::file_mode))
        .route("/delete_file", post(world::delete_file))
        .route("/reset", post(world::reset));
    let failing = Router::new()
        .route("/fault", post(failing::fault))
        .route("/clear_faults", post(failing::clear))
        .route("/knobs", post(failing::knobs))
        .route("/disconnect", post(failing::disconnect))
        .route("/redeliver", post(failing::redeliver))
        .route("/request_urls", post(failing::request_urls));
    let looks = Router::new()
        .route("/posts", get(posts))
        .route("/ephemerals", get(ephemerals))
        .route("/views", get(views))
        .route("/journal", get(read_journal))
        .route("/state", get(state));
    let all = messages.merge(things).merge(failing).merge(looks);
    Router::new().nest("/control", all)
}

/// A refusal, as HTTP 400.
#[derive(Debug)]
struct SlackControlRefusal(String);

impl IntoResponse for SlackControlRefusal {
    fn into_response(self) -> Response {
        let body = Json(json!({"error": self.0}));
        (StatusCode::BAD_REQUEST, body).into_response()
    }
}

impl From<String> for SlackControlRefusal {
    fn from(why: String) -> Self {
        Self(why)
    }
}

type SlackControlAnswer = Result<Json<Value>, SlackControlRefusal>;

/// A body as its fields; no body counts as an empty object, an unknown field is refused.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, SlackControlRefusal> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|why| SlackControlRefusal(why.to_string()))
}

fn done() -> SlackControlAnswer {
    Ok(Json(json!({})))
}

fn act(
    shared: &SharedSlack,
    act: impl FnOnce(&mut SlackCore) -> Result<Vec<EventObject>, String>,
) -> SlackControlAnswer {
    shared.change(|core| {
        let events = act(core)?;
        shared.emit(core, events);
        done()
    })
}

/// What a person typed, in wire form; `raw` text is that already.
fn wire_text(shared: &SharedSlack, text: &str, raw: bool) -> String {
    match raw {
        true => text.to_owned(),
        false => shared.read(|core| typed_to_wire(&core.world, text)),
    }
}

#[derive(Deserialize)]
struct InChannel {
    channel: String,
}

async fn posts(State(shared): Server, Query(query): Query<InChannel>) -> SlackControlAnswer {
    let posts = shared.read(|core| {
        core.channel(&query.channel)?;
        Ok::<_, String>(posts_of(core, &query.channel))
    });
    Ok(Json(json!({"posts": posts?})))
}

async fn ephemerals(State(shared): Server) -> Json<Value> {
    Json(json!({"ephemerals": shared.read(|core| core.ephemerals.clone())}))
}

async fn views(State(shared): Server) -> Json<Value> {
    Json(json!({"views": shared.read(|core| core.views.shown(&core.world))}))
}

async fn read_journal(State(shared): Server, Query(query): Query<JournalQuery>) -> Json<Value> {
    Json(journal::page(&shared.wire, WirePeer::Slack, &query))
}

async fn state(State(shared): Server) -> Json<Value> {
    Json(shared.read(|core| {
        let deliveries = &core.deliveries;
        let channels: Vec<Value> = core
            .world
            .channels
            .iter()
            .map(|channel| {
                json!({"id": channel.id, "name": channel.name, "type": channel.kind.list_type(),
                       "bot_is_member": channel.bot_is_member, "archived": channel.archived,
                       "members": channel.members})
            })
            .collect();
        json!({
            "team_id": core.world.team_id, "bot_user_id": core.world.bot_user_id,
            "scopes": core.world.scopes, "events": core.world.events, "channels": channels,
            "users": core.world.users.iter().map(|user| &user.id).collect::<Vec<_>>(),
            "files": core.files.keys().collect::<Vec<_>>(),
            "open_sockets": deliveries.open_sockets(), "unacked": deliveries.unacked(),
            "waiting": deliveries.waiting(),
            "acked": deliveries.acked(), "lost": deliveries.lost(),
            "given_up": deliveries.requests.is_disabled(),
            "violations": deliveries.violations(), "statuses": core.statuses, "dressings": core.dressings,
            "ephemerals": core.ephemerals,
        })
    }))
}
