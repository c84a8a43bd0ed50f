//! `/control/`: acting as people, changing the world and setting faults from another process.
//!
//! Not part of the Bot API. Every request with its fields is in the README of the crate. This module owns
//! the routes and the form of bodies and refusals; `acts` is what people do, `world` what exists.

mod acts;
mod world;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Json, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::faults::TelegramFault;
use super::rooms::TelegramRooms;
use super::server::{SharedTelegram, posts};
use crate::journal::{self, JournalQuery};
use crate::wire::WirePeer;

pub(super) fn routes() -> Router<SharedTelegram> {
    let messages = Router::new()
        .route("/say", post(acts::say))
        .route("/album", post(acts::album))
        .route("/channel_post", post(acts::channel_post))
        .route("/other_program", post(acts::other_program))
        .route("/edit", post(acts::edit))
        .route("/delete", post(acts::delete))
        .route("/press", post(acts::press))
        .route("/react", post(acts::react))
        .route("/pin", post(acts::pin))
        .route("/update", post(acts::update))
        .route("/duplicate", post(acts::duplicate));
    let things = Router::new()
        .route("/user", post(world::user))
        .route("/chat", post(world::chat))
        .route("/bot", post(world::bot))
        .route("/bot_status", post(world::bot_status))
        .route("/join", post(world::join))
        .route("/leave", post(world::leave))
        .route("/rename", post(world::rename))
        .route("/topic", post(world::topic))
        .route("/migrate", post(world::migrate))
        .route("/file", post(world::add_file).get(world::file))
        .route("/delete_file", post(world::delete_file))
        .route("/clock", post(world::clock))
        .route("/update_ids", post(world::update_ids))
        .route("/reset", post(world::reset));
    let rest = Router::new()
        .route("/fault", post(fault))
        .route("/clear_faults", post(clear_faults))
        .route("/knobs", post(knobs))
        .route("/posts", get(room_posts))
        .route("/callback", get(callback).post(acts::callback))
        .route("/journal", get(read_journal))
        .route("/state", get(state));
    messages.merge(things).merge(rest)
}

/// A refusal, as HTTP 400.
#[derive(Debug)]
struct TelegramControlRefusal(String);

impl IntoResponse for TelegramControlRefusal {
    fn into_response(self) -> Response {
        let body = Json(json!({"error": self.0}));
        (StatusCode::BAD_REQUEST, body).into_response()
    }
}

impl From<String> for TelegramControlRefusal {
    fn from(why: String) -> Self {
        Self(why)
    }
}

type TelegramControlAnswer = Result<Json<Value>, TelegramControlRefusal>;

/// A body as its fields; no body counts as an empty object, an unknown field is refused.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, TelegramControlRefusal> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|why| TelegramControlRefusal(why.to_string()))
}

fn done() -> TelegramControlAnswer {
    Ok(Json(json!({"ok": true})))
}

fn message_id(id: i64) -> TelegramControlAnswer {
    Ok(Json(json!({"message_id": id})))
}

/// Checks that a chat exists.
fn known_chat(rooms: &TelegramRooms, chat: i64) -> Result<(), TelegramControlRefusal> {
    match rooms.world.chat(chat) {
        Some(_) => Ok(()),
        None => Err(TelegramControlRefusal(format!(
            "no chat {chat}; GET /control/state lists them"
        ))),
    }
}

/// Checks that a person or bot exists.
fn known_user(rooms: &TelegramRooms, user: i64) -> Result<(), TelegramControlRefusal> {
    match rooms.world.user(user) {
        Some(_) => Ok(()),
        None => Err(TelegramControlRefusal(format!(
            "no user {user}; GET /control/state lists them"
        ))),
    }
}

/// Checks that a message exists.
fn known_message(
    rooms: &TelegramRooms,
    chat: i64,
    message: i64,
) -> Result<(), TelegramControlRefusal> {
    known_chat(rooms, chat)?;
    match rooms.message(chat, message) {
        Some(_) => Ok(()),
        None => Err(TelegramControlRefusal(format!(
            "no message {message} in {chat}"
        ))),
    }
}

#[derive(Deserialize)]
struct MethodFaultEntry {
    method: String,
    #[serde(default)]
    always: bool,
    #[serde(flatten)]
    fault: TelegramFault,
}

async fn fault(State(shared): State<SharedTelegram>, body: Bytes) -> TelegramControlAnswer {
    let fault: MethodFaultEntry = read(&body)?;
    match fault.always {
        true => shared.faults().always(&fault.method, fault.fault),
        false => shared.faults().next(&fault.method, fault.fault),
    }
    done()
}

async fn clear_faults(State(shared): State<SharedTelegram>) -> TelegramControlAnswer {
    shared.faults().clear();
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TelegramKnobs {
    take_loopback_webhooks: Option<bool>,
    webhook_second_ms: Option<u64>,
    sends_per_minute_max: Option<usize>,
    guard_short_polls: Option<bool>,
    lag_behind: Option<bool>,
}

async fn knobs(State(shared): State<SharedTelegram>, body: Bytes) -> TelegramControlAnswer {
    let knobs: TelegramKnobs = read(&body)?;
    let faults = shared.faults();
    if let Some(on) = knobs.take_loopback_webhooks {
        faults.take_loopback_webhooks(on);
    }
    if let Some(ms) = knobs.webhook_second_ms {
        faults.set_webhook_second_ms(ms);
    }
    if let Some(max) = knobs.sends_per_minute_max {
        // 0 lifts the limit.
        faults.limit_sends_per_minute(Some(max).filter(|max| *max > 0));
    }
    if let Some(on) = knobs.guard_short_polls {
        faults.guard_short_polls(on);
    }
    if let Some(on) = knobs.lag_behind {
        shared.act(|rooms| rooms.lag_behind(on));
    }
    done()
}

#[derive(Deserialize)]
struct InChat {
    chat: i64,
}

async fn room_posts(
    State(shared): State<SharedTelegram>,
    Query(place): Query<InChat>,
) -> TelegramControlAnswer {
    let posts = shared.peek(|rooms| {
        known_chat(rooms, place.chat)?;
        let of_bot = |id: i64| rooms.reactions.get(&(place.chat, id)).cloned();
        let shown = posts(rooms, place.chat).into_iter().map(|post| {
            json!({
                "message_id": post.message_id, "from": post.from, "thread": post.thread,
                "text": post.text, "entities": post.entities, "reply_to": post.reply_to,
                "by_bot": post.by_bot, "edited": post.edited, "deleted": post.deleted,
                "keyboard": post.keyboard, "bot_reaction": of_bot(post.message_id),
                "message": post.wire,
            })
        });
        Ok::<Value, TelegramControlRefusal>(shown.collect())
    })?;
    Ok(Json(posts))
}

#[derive(Deserialize)]
struct TelegramById {
    id: String,
}

/// The bot's answer to a pressed button; `null` as long as there is none.
async fn callback(
    State(shared): State<SharedTelegram>,
    Query(which): Query<TelegramById>,
) -> TelegramControlAnswer {
    let found = shared.peek(|rooms| rooms.callbacks.get(&which.id).cloned());
    match found {
        Some((_, answer)) => Ok(Json(json!({"answer": answer}))),
        None => Err(TelegramControlRefusal(format!("no callback {}", which.id))),
    }
}

async fn read_journal(
    State(shared): State<SharedTelegram>,
    Query(query): Query<JournalQuery>,
) -> Json<Value> {
    Json(journal::page(shared.wire(), WirePeer::Telegram, &query))
}

async fn state(State(shared): State<SharedTelegram>) -> Json<Value> {
    let faults_applied = shared.faults().applied();
    let polls_answered = shared.polls(|polls| polls.answered);
    let state = shared.peek(|rooms| {
        let chats: Vec<Value> = rooms.world.chats.iter().map(|chat| room(rooms, chat.id)).collect();
        let drafts: Vec<Value> = rooms
            .drafts
            .iter()
            .map(|it| json!({"chat": it.chat, "id": it.id, "text": it.text, "gone": it.is_gone}))
            .collect();
        json!({
            "bot": rooms.world.bot.as_user(), "pending_updates": rooms.queue.len(),
            "webhook": rooms.webhook.url(), "commands": rooms.commands, "drafts": drafts,
            "actions": rooms.actions, "files": rooms.files.keys().collect::<Vec<_>>(),
            "polls_answered": polls_answered, "faults_applied": faults_applied, "chats": chats,
            "users": rooms.world.users.iter().map(|user| rooms.world.user_json(user.id)).collect::<Vec<_>>(),
        })
    });
    Json(state)
}

fn room(rooms: &TelegramRooms, chat: i64) -> Value {
    let mut room = rooms.world.chat_json(chat);
    let known = rooms.room(chat);
    room["bot_status"] = json!(known.bot_status.as_str());
    room["members"] = json!(known.members);
    room["topics"] = known
        .topics
        .iter()
        .map(|topic| json!({"id": topic.id, "name": topic.name, "closed": topic.closed}))
        .collect();
    room["messages"] = json!(rooms.chats.get(&chat).map_or(0, |log| log.messages.len()));
    room
}
