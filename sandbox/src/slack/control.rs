//! The control surface: what `SlackServer`'s methods do, as JSON over HTTP on the same port.
//!
//! For bot authors who run the loopback platforms as a process of their own. The table of requests is
//! in the documentation of the `slack` module.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::deliveries::Command;
use super::events::Event;
use super::faults::{EventFault, Fault};
use super::post::UserPost;
use super::requests::{self, RequestUrls};
use super::server::{BlockAction, posts_of, press_button, slash_command};
use super::socket;
use super::state::{Core, Shared};
use super::text::typed_to_wire;

type Server = State<Arc<Shared>>;
type Body = Json<Value>;

/// The routes under `/control/`.
pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/control/post", post(post_message))
        .route("/control/edit", post(edit))
        .route("/control/delete", post(delete))
        .route("/control/react", post(react))
        .route("/control/stop", post(stop))
        .route("/control/command", post(command))
        .route("/control/click", post(click))
        .route("/control/invite", post(invite))
        .route("/control/remove", post(remove))
        .route("/control/posts", get(posts))
        .route("/control/fault", post(fault))
        .route("/control/knobs", post(knobs))
        .route("/control/disconnect", post(disconnect))
        .route("/control/redeliver", post(redeliver))
        .route("/control/request_urls", post(request_urls))
        .route("/control/state", get(state))
}

/// A refusal, as HTTP 400.
struct Refused(String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = Json(json!({"error": self.0}));
        (StatusCode::BAD_REQUEST, body).into_response()
    }
}

type Answer = Result<Json<Value>, Refused>;

async fn post_message(State(shared): Server, Json(body): Body) -> Answer {
    let text = wire_text(&shared, &body)?;
    let wanted = UserPost {
        channel: text_of(&body, "channel")?,
        user: text_of(&body, "user")?,
        text,
        thread_ts: optional(&body, "thread_ts"),
        subtype: optional(&body, "subtype"),
        broadcast: body["broadcast"] == true,
        ..UserPost::default()
    };
    let knobs = shared.faults.knobs();
    let ts = shared.change(|core| {
        let (ts, events) = core.user_post(wanted, &knobs).map_err(Refused)?;
        shared.emit(core, events);
        Ok(ts)
    })?;
    Ok(Json(json!({"ts": ts})))
}

async fn edit(State(shared): Server, Json(body): Body) -> Answer {
    let text = wire_text(&shared, &body)?;
    let (channel, ts) = item(&body)?;
    let knobs = shared.faults.knobs();
    act(&shared, |core| core.user_edit(&channel, &ts, &text, &knobs))
}

async fn delete(State(shared): Server, Json(body): Body) -> Answer {
    let (channel, ts) = item(&body)?;
    act(&shared, |core| core.delete(&channel, &ts))
}

async fn react(State(shared): Server, Json(body): Body) -> Answer {
    let (channel, ts) = item(&body)?;
    let (user, reaction) = (text_of(&body, "user")?, text_of(&body, "reaction")?);
    let add = body["remove"] != true;
    act(&shared, |core| {
        core.react((&channel, &ts), &user, &reaction, add)
    })
}

async fn stop(State(shared): Server, Json(body): Body) -> Answer {
    let (channel, ts) = item(&body)?;
    let user = text_of(&body, "user")?;
    act(&shared, |core| core.press_stop(&channel, &user, &ts))
}

async fn command(State(shared): Server, Json(body): Body) -> Answer {
    let (channel, user) = (text_of(&body, "channel")?, text_of(&body, "user")?);
    let command = text_of(&body, "command")?;
    let text = optional(&body, "text").unwrap_or_default();
    slash_command(&shared, [&channel, &user, &command, &text]).map_err(Refused)?;
    Ok(done())
}

async fn click(State(shared): Server, Json(body): Body) -> Answer {
    let (channel, message_ts) = item(&body)?;
    let action = BlockAction {
        channel,
        user: text_of(&body, "user")?,
        message_ts,
        block_id: optional(&body, "block_id").unwrap_or_default(),
        action_id: text_of(&body, "action_id")?,
        value: optional(&body, "value").unwrap_or_default(),
    };
    press_button(&shared, &action).map_err(Refused)?;
    Ok(done())
}

async fn invite(State(shared): Server, Json(body): Body) -> Answer {
    let (channel, by) = (text_of(&body, "channel")?, text_of(&body, "user")?);
    act(&shared, |core| core.set_bot_membership(&channel, &by, true))
}

async fn remove(State(shared): Server, Json(body): Body) -> Answer {
    let (channel, by) = (text_of(&body, "channel")?, text_of(&body, "user")?);
    act(&shared, |core| {
        core.set_bot_membership(&channel, &by, false)
    })
}

async fn posts(State(shared): Server, Query(query): Query<HashMap<String, String>>) -> Answer {
    let channel = query.get("channel").cloned().unwrap_or_default();
    let posts = shared.read(|core| {
        core.channel(&channel)?;
        Ok(posts_of(core, &channel))
    });
    Ok(Json(json!({"posts": posts.map_err(Refused)?})))
}

async fn fault(State(shared): Server, Json(body): Body) -> Answer {
    let (method, kind) = (text_of(&body, "method")?, text_of(&body, "kind")?);
    match (method.as_str(), kind.as_str()) {
        ("event", "reorder") => {
            let count = usize::try_from(number(&body, "count")?).unwrap_or(usize::MAX);
            shared.change(|core| core.deliveries.reorder_next(count));
        }
        ("event", _) => shared.faults.next_event(event_fault(&kind, &body)?),
        ("upgrade", _) => shared.faults.next_upgrade(status(&body)?),
        _ => shared.faults.next(&method, call_fault(&kind, &body)?),
    }
    Ok(done())
}

fn event_fault(kind: &str, body: &Value) -> Result<EventFault, Refused> {
    let count = || Ok(u32::try_from(number(body, "count")?).unwrap_or(u32::MAX));
    match kind {
        "drop" => Ok(EventFault::Drop),
        "duplicate" => Ok(EventFault::Duplicate(count()?)),
        "duplicate_event" => Ok(EventFault::DuplicateEvent(count()?)),
        "delay" => Ok(EventFault::Delay(number(body, "ms")?)),
        _ => Err(Refused(format!("no event fault of kind {kind}"))),
    }
}

fn call_fault(kind: &str, body: &Value) -> Result<Fault, Refused> {
    Ok(match kind {
        "latency" => Fault::Latency(number(body, "ms")?),
        "status" => Fault::Status(status(body)?),
        "status_after_apply" => Fault::StatusAfterApply(status(body)?),
        "rate_limited" => Fault::RateLimited(number(body, "retry_after_s")?),
        "error" => Fault::Error(text_of(body, "error")?),
        "error_after_apply" => Fault::ErrorAfterApply(text_of(body, "error")?),
        "reset_before" => Fault::ResetBefore,
        "reset_after" => Fault::ResetAfter,
        "lose_response" => Fault::LoseResponse,
        "html" => Fault::Html,
        "redirect" => Fault::Redirect(text_of(body, "to")?),
        _ => return Err(Refused(format!("no fault of kind {kind}"))),
    })
}

async fn knobs(State(shared): Server, Json(body): Body) -> Answer {
    let Some(fields) = body.as_object() else {
        return Err(Refused("the body must be an object".to_owned()));
    };
    let mut knobs = shared.faults.knobs();
    for (name, value) in fields {
        let number = value.as_u64();
        let known = match name.as_str() {
            "latency_ms" => put(&mut knobs.latency_ms, number),
            "visibility_delay_ms" => put(&mut knobs.visibility_delay_ms, number),
            "echo_own_posts" => put(&mut knobs.echo_own_posts, value.as_bool()),
            "echo_before_response" => put(&mut knobs.echo_before_response, value.as_bool()),
            "mention_on_edit" => put(&mut knobs.mention_on_edit, value.as_bool()),
            "mention_first" => put(&mut knobs.mention_first, value.as_bool().map(Some)),
            "post_gap_ms" => put(&mut knobs.post_gap_ms, number),
            "tiers_enforced" => put(&mut knobs.tiers_enforced, value.as_bool()),
            "history_gap_ms" => put(&mut knobs.history_gap_ms, number),
            "history_page_max" => put(&mut knobs.history_page_max, number),
            "stream_life_ms" => put(&mut knobs.stream_life_ms, number),
            "ping_every_ms" => put(&mut knobs.ping_every_ms, number),
            "disconnect_grace_ms" => put(&mut knobs.disconnect_grace_ms, number),
            _ => false,
        };
        if !known {
            return Err(Refused(format!("no knob {name} that takes {value}")));
        }
    }
    shared.faults.set_knobs(|current| *current = knobs);
    Ok(done())
}

fn put<T>(knob: &mut T, value: Option<T>) -> bool {
    let is_given = value.is_some();
    if let Some(value) = value {
        *knob = value;
    }
    is_given
}

async fn disconnect(State(shared): Server, Json(body): Body) -> Answer {
    let reason = text_of(&body, "reason")?;
    let end = |command: fn() -> Command| {
        shared.change(|core| {
            core.deliveries.tell_all(command);
        });
    };
    match reason.as_str() {
        "close" => end(|| Command::Close),
        "abort" => end(|| Command::Abort),
        "stall" => end(|| Command::Stall),
        _ => socket::disconnect(&shared, &reason),
    }
    Ok(done())
}

async fn request_urls(State(shared): Server, Json(body): Body) -> Answer {
    let Some(base) = optional(&body, "base") else {
        shared.change(|core| core.deliveries.requests.set(None));
        return Ok(done());
    };
    let urls = RequestUrls::under(&base);
    requests::verify(&shared, &urls.events)
        .await
        .map_err(Refused)?;
    shared.change(|core| core.deliveries.requests.set(Some(urls)));
    socket::disconnect(&shared, "link_disabled");
    Ok(done())
}

async fn redeliver(State(shared): Server) -> Answer {
    let plan = shared.faults.knobs().retry;
    shared.change(|core| core.deliveries.redeliver_all(&plan));
    Ok(done())
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
                       "bot_is_member": channel.bot_is_member, "archived": channel.archived})
            })
            .collect();
        json!({
            "team_id": core.world.team_id, "bot_user_id": core.world.bot_user_id,
            "scopes": core.world.scopes, "channels": channels,
            "users": core.world.users.iter().map(|user| &user.id).collect::<Vec<_>>(),
            "open_sockets": deliveries.open_sockets(), "unacked": deliveries.unacked(),
            "waiting": deliveries.waiting(),
            "acked": deliveries.acked(), "lost": deliveries.lost(),
            "violations": deliveries.violations(), "statuses": core.statuses, "dressings": core.dressings,
            "ephemerals": core.ephemerals,
        })
    }))
}

fn act(shared: &Shared, act: impl FnOnce(&mut Core) -> Result<Vec<Event>, String>) -> Answer {
    shared.change(|core| {
        let events = act(core).map_err(Refused)?;
        shared.emit(core, events);
        Ok(done())
    })
}

fn done() -> Json<Value> {
    Json(json!({}))
}

fn item(body: &Value) -> Result<(String, String), Refused> {
    Ok((text_of(body, "channel")?, text_of(body, "ts")?))
}

fn wire_text(shared: &Shared, body: &Value) -> Result<String, Refused> {
    let text = text_of(body, "text")?;
    if body["raw"] == true {
        return Ok(text);
    }
    Ok(shared.read(|core| typed_to_wire(&core.world, &text)))
}

fn text_of(body: &Value, name: &str) -> Result<String, Refused> {
    optional(body, name).ok_or_else(|| Refused(format!("`{name}` must be given, as text")))
}

fn optional(body: &Value, name: &str) -> Option<String> {
    body[name].as_str().map(str::to_owned)
}

fn number(body: &Value, name: &str) -> Result<u64, Refused> {
    let number = body[name].as_u64();
    number.ok_or_else(|| Refused(format!("`{name}` must be given, as a whole number")))
}

fn status(body: &Value) -> Result<u16, Refused> {
    let status = u16::try_from(number(body, "status")?).ok();
    status
        .filter(|status| (100..=599).contains(status))
        .ok_or_else(|| Refused("`status` must be an HTTP status".to_owned()))
}
