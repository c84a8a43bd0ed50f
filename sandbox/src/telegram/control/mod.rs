//! `/control/`: acting as people and setting faults from another process.
//!
//! Not part of the Bot API. Owns only the translation from JSON to the acts in `people`.

use axum::Router;
use axum::extract::{Json, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::faults::TelegramFault;
use super::message::UserMessage;
use super::rooms::Rooms;
use super::server::{Shared, posts};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/say", post(say))
        .route("/edit", post(edit))
        .route("/update", post(update))
        .route("/fault", post(fault))
        .route("/knobs", post(knobs))
        .route("/posts", get(room_posts))
        .route("/state", get(state))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Knobs {
    take_loopback_webhooks: Option<bool>,
    webhook_second_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Say {
    chat: i64,
    user: i64,
    text: String,
    topic: Option<i64>,
    reply_to: Option<i64>,
}

#[derive(Deserialize)]
struct Edit {
    chat: i64,
    message_id: i64,
    text: String,
}

#[derive(Deserialize)]
struct Fault {
    method: String,
    #[serde(default)]
    always: bool,
    #[serde(flatten)]
    fault: TelegramFault,
}

#[derive(Deserialize)]
struct InChat {
    chat: i64,
}

async fn say(State(shared): State<Shared>, Json(say): Json<Say>) -> Response {
    if let Some(refused) = no_such_room(&shared, say.chat) {
        return refused;
    }
    let message = UserMessage {
        chat: say.chat,
        user: say.user,
        text: say.text,
        topic: say.topic,
        reply_to: say.reply_to,
        ..UserMessage::default()
    };
    let id = shared.act(|rooms| rooms.write(message));
    Json(json!({"message_id": id})).into_response()
}

async fn edit(State(shared): State<Shared>, Json(edit): Json<Edit>) -> Response {
    if let Some(refused) = no_such_room(&shared, edit.chat) {
        return refused;
    }
    let done = shared.act(|rooms| rooms.rewrite(edit.chat, edit.message_id, Some(&edit.text)));
    match done {
        true => Json(json!({"message_id": edit.message_id})).into_response(),
        false => refused("no such message"),
    }
}

async fn update(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    if !body.is_object() {
        return refused("an update is an object");
    }
    let id = shared.act(|rooms| {
        let expires_at_s = rooms.now_s() + 24 * 3600;
        rooms.queue.push(body, expires_at_s)
    });
    Json(json!({"update_id": id})).into_response()
}

async fn fault(State(shared): State<Shared>, Json(fault): Json<Fault>) -> Response {
    match fault.always {
        true => shared.faults().always(&fault.method, fault.fault),
        false => shared.faults().next(&fault.method, fault.fault),
    }
    Json(json!({"ok": true})).into_response()
}

async fn knobs(State(shared): State<Shared>, Json(knobs): Json<Knobs>) -> Response {
    if let Some(on) = knobs.take_loopback_webhooks {
        shared.faults().take_loopback_webhooks(on);
    }
    if let Some(ms) = knobs.webhook_second_ms {
        shared.faults().set_webhook_second_ms(ms);
    }
    Json(json!({"ok": true})).into_response()
}

async fn room_posts(State(shared): State<Shared>, Query(place): Query<InChat>) -> Response {
    let posts: Vec<Value> = shared
        .peek(|rooms| posts(rooms, place.chat))
        .into_iter()
        .map(|post| {
            json!({
                "message_id": post.message_id, "from": post.from, "thread": post.thread,
                "text": post.text, "entities": post.entities, "reply_to": post.reply_to,
                "by_bot": post.by_bot, "edited": post.edited, "deleted": post.deleted,
            })
        })
        .collect();
    Json(posts).into_response()
}

async fn state(State(shared): State<Shared>) -> Response {
    let faults_applied = shared.faults().applied();
    let polls_answered = shared.polls(|polls| polls.answered);
    let state = shared.peek(|rooms| {
        let chats: Vec<Value> = rooms.world.chats.iter().map(|chat| room(rooms, chat.id)).collect();
        json!({
            "bot": rooms.world.bot.as_user(), "pending_updates": rooms.queue.len(),
            "webhook": rooms.webhook.url(),
            "polls_answered": polls_answered, "faults_applied": faults_applied, "chats": chats,
            "users": rooms.world.users.iter().map(|user| rooms.world.user_json(user.id)).collect::<Vec<_>>(),
        })
    });
    Json(state).into_response()
}

fn room(rooms: &Rooms, chat: i64) -> Value {
    let mut room = rooms.world.chat_json(chat);
    let known = rooms.room(chat);
    room["bot_status"] = json!(known.bot_status.as_str());
    room["topics"] = known
        .topics
        .iter()
        .map(|topic| json!({"id": topic.id, "name": topic.name, "closed": topic.closed}))
        .collect();
    room["messages"] = json!(rooms.chats.get(&chat).map_or(0, |log| log.messages.len()));
    room
}

fn no_such_room(shared: &Shared, chat: i64) -> Option<Response> {
    let known = shared.peek(|rooms| rooms.world.chat(chat).is_some());
    (!known).then(|| refused("no such chat; GET /control/state lists them"))
}

fn refused(why: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": why}))).into_response()
}
