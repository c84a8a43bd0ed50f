//! What exists, over HTTP: people, chats, topics, the bot's standing, files, the clock.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::super::message::MigrationOrder;
use super::super::params::Upload;
use super::super::rooms::ChatLog;
use super::super::server::SharedTelegram;
use super::super::world::{
    BotStatus, SUPERGROUP_ID_BASE, TelegramChat, TelegramChatKind, TelegramUser,
};
use super::{
    TelegramById, TelegramControlAnswer, TelegramControlRefusal, done, known_chat, known_user,
    message_id, read,
};

/// A person or another bot: added, or changed where the id is known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TelegramPersonEntry {
    id: i64,
    first_name: Option<String>,
    username: Option<String>,
    is_bot: Option<bool>,
}

pub(super) async fn user(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: TelegramPersonEntry = read(&body)?;
    if it.id <= 0 {
        return Err(TelegramControlRefusal(
            "the id of a user is positive".to_owned(),
        ));
    }
    shared.act(|rooms| {
        let users = &mut rooms.world.users;
        let at = users.iter().position(|user| user.id == it.id);
        let at = at.unwrap_or_else(|| {
            users.push(TelegramUser {
                id: it.id,
                first_name: format!("User {}", it.id),
                username: None,
                is_bot: false,
            });
            users.len() - 1
        });
        let user = &mut users[at];
        user.first_name = it
            .first_name
            .unwrap_or(std::mem::take(&mut user.first_name));
        user.username = it.username.or(user.username.take());
        user.is_bot = it.is_bot.unwrap_or(user.is_bot);
        Ok(Json(json!({"id": it.id})))
    })
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum ChatKindEntry {
    Private,
    Group,
    Supergroup,
    Channel,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MemberStanding {
    Member,
    Administrator,
    Left,
    Kicked,
}

impl From<MemberStanding> for BotStatus {
    fn from(standing: MemberStanding) -> Self {
        match standing {
            MemberStanding::Member => Self::Member,
            MemberStanding::Administrator => Self::Admin,
            MemberStanding::Left => Self::Left,
            MemberStanding::Kicked => Self::Kicked,
        }
    }
}

/// A chat: added, or changed where the id is known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatEntry {
    id: i64,
    kind: Option<ChatKindEntry>,
    title: Option<String>,
    username: Option<String>,
    is_forum: Option<bool>,
    members: Option<Vec<i64>>,
    bot_status: Option<MemberStanding>,
}

pub(super) async fn chat(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: ChatEntry = read(&body)?;
    shared.act(|rooms| {
        for member in it.members.iter().flatten() {
            known_user(rooms, *member)?;
        }
        if rooms.world.chat(it.id).is_none() {
            let room = new_room(&it)?;
            rooms.world.chats.push(room);
            rooms.chats.insert(it.id, ChatLog::default());
        }
        let room = rooms.room_mut(it.id);
        room.title = it.title.unwrap_or(std::mem::take(&mut room.title));
        room.username = it.username.or(room.username.take());
        room.is_forum = it.is_forum.unwrap_or(room.is_forum);
        room.members = it.members.unwrap_or(std::mem::take(&mut room.members));
        room.bot_status = it.bot_status.map_or(room.bot_status, BotStatus::from);
        Ok(Json(json!({"id": it.id})))
    })
}

/// A new chat, after checking that its id fits its kind.
fn new_room(it: &ChatEntry) -> Result<TelegramChat, TelegramControlRefusal> {
    let is_large = it.id < SUPERGROUP_ID_BASE;
    let (kind, fits) = match it.kind {
        Some(ChatKindEntry::Private) => (TelegramChatKind::Private, it.id > 0),
        Some(ChatKindEntry::Group) => (TelegramChatKind::Group, it.id < 0 && !is_large),
        Some(ChatKindEntry::Supergroup) => (TelegramChatKind::Supergroup, is_large),
        Some(ChatKindEntry::Channel) => (TelegramChatKind::Channel, is_large),
        None => {
            return Err(TelegramControlRefusal(
                "a new chat needs a `kind`".to_owned(),
            ));
        }
    };
    if !fits {
        return Err(TelegramControlRefusal(format!(
            "no {} has the id {}",
            kind.as_str(),
            it.id
        )));
    }
    let members = match kind {
        TelegramChatKind::Private => vec![it.id],
        _ => Vec::new(),
    };
    Ok(TelegramChat {
        id: it.id,
        kind,
        title: String::new(),
        username: None,
        is_forum: false,
        topics: Vec::new(),
        members,
        bot_status: BotStatus::Member,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bot {
    /// Whether privacy mode is off.
    can_read_all_group_messages: Option<bool>,
    can_join_groups: Option<bool>,
    hears_bots: Option<bool>,
    has_inline_mode: Option<bool>,
    username: Option<String>,
    first_name: Option<String>,
    /// `true`: every call answers 401.
    revoked: Option<bool>,
}

pub(super) async fn bot(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: Bot = read(&body)?;
    shared.act(|rooms| {
        let bot = &mut rooms.world.bot;
        let flags = [
            (
                &mut bot.can_read_all_group_messages,
                it.can_read_all_group_messages,
            ),
            (&mut bot.can_join_groups, it.can_join_groups),
            (&mut bot.hears_bots, it.hears_bots),
            (&mut bot.has_inline_mode, it.has_inline_mode),
        ];
        for (flag, value) in flags {
            *flag = value.unwrap_or(*flag);
        }
        bot.username = it.username.unwrap_or(std::mem::take(&mut bot.username));
        bot.first_name = it.first_name.unwrap_or(std::mem::take(&mut bot.first_name));
        rooms.logged_out = it.revoked.unwrap_or(rooms.logged_out);
    });
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BotStanding {
    chat: i64,
    user: i64,
    status: MemberStanding,
}

/// The bot joins, leaves, is promoted or banned; `user` does it.
pub(super) async fn bot_status(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: BotStanding = read(&body)?;
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        known_user(rooms, it.user)?;
        rooms.set_bot_status(it.chat, it.user, it.status.into());
        done()
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatMemberEntry {
    chat: i64,
    user: i64,
}

pub(super) async fn join(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: ChatMemberEntry = read(&body)?;
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        known_user(rooms, it.user)?;
        message_id(rooms.join(it.chat, it.user))
    })
}

pub(super) async fn leave(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: ChatMemberEntry = read(&body)?;
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        if !rooms.room(it.chat).members.contains(&it.user) {
            return Err(TelegramControlRefusal(format!(
                "{} is not in {}",
                it.user, it.chat
            )));
        }
        message_id(rooms.leave(it.chat, it.user))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TitleGiving {
    chat: i64,
    user: i64,
    title: String,
}

pub(super) async fn rename(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: TitleGiving = read(&body)?;
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        known_user(rooms, it.user)?;
        message_id(rooms.rename(it.chat, it.user, &it.title))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicAct {
    chat: i64,
    user: i64,
    /// The name of a new topic.
    name: Option<String>,
    /// The id of an existing topic.
    topic: Option<i64>,
    closed: Option<bool>,
}

/// Opens a topic (`name`), or closes or reopens one (`topic`, `closed`).
pub(super) async fn topic(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: TopicAct = read(&body)?;
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        known_user(rooms, it.user)?;
        let room = rooms.room(it.chat);
        if !room.is_forum {
            return Err(TelegramControlRefusal(format!("{} is no forum", it.chat)));
        }
        let is_there = |id: i64| room.topics.iter().any(|topic| topic.id == id);
        match (&it.name, it.topic, it.closed) {
            (Some(name), None, None) => {
                let id = rooms.create_topic(it.chat, it.user, name);
                Ok(Json(json!({"topic": id})))
            }
            (None, Some(topic), Some(closed)) if is_there(topic) => {
                message_id(rooms.change_topic(it.chat, it.user, topic, closed))
            }
            _ => Err(TelegramControlRefusal(
                "either the `name` of a new topic, or a `topic` and `closed`".to_owned(),
            )),
        }
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatMigration {
    chat: i64,
    #[serde(default)]
    new_first: bool,
}

/// A basic group becomes a supergroup.
pub(super) async fn migrate(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: ChatMigration = read(&body)?;
    let order = match it.new_first {
        true => MigrationOrder::NewFirst,
        false => MigrationOrder::OldFirst,
    };
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        let is_group = rooms.room(it.chat).kind == TelegramChatKind::Group;
        if !is_group || rooms.migrated.contains_key(&it.chat) {
            return Err(TelegramControlRefusal(format!(
                "{} is no basic group",
                it.chat
            )));
        }
        Ok(Json(json!({"chat": rooms.migrate(it.chat, order)})))
    })
}

#[derive(Deserialize)]
pub(super) struct NewTelegramFile {
    name: String,
    #[serde(rename = "type")]
    mime_type: Option<String>,
}

/// Adds a file to the platform: its bytes are the body. Returns its object, for `file` of `say`.
pub(super) async fn add_file(
    State(shared): State<SharedTelegram>,
    Query(new): Query<NewTelegramFile>,
    body: Bytes,
) -> TelegramControlAnswer {
    let upload = Upload {
        file_name: new.name,
        content_type: new
            .mime_type
            .unwrap_or("application/octet-stream".to_owned()),
        bytes: body.to_vec(),
    };
    Ok(Json(shared.act(|rooms| rooms.keep_file(upload))))
}

/// The bytes of a file.
pub(super) async fn file(
    State(shared): State<SharedTelegram>,
    Query(which): Query<TelegramById>,
) -> Response {
    let found = shared.peek(|rooms| {
        let kept = rooms.files.get(&which.id)?;
        Some((kept.upload.content_type.clone(), kept.upload.bytes.clone()))
    });
    match found {
        Some((mime_type, bytes)) => ([(header::CONTENT_TYPE, mime_type)], bytes).into_response(),
        None => TelegramControlRefusal(format!("no file {}", which.id)).into_response(),
    }
}

pub(super) async fn delete_file(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let which: TelegramById = read(&body)?;
    match shared.act(|rooms| rooms.files.remove(&which.id)) {
        Some(_) => done(),
        None => Err(TelegramControlRefusal(format!("no file {}", which.id))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockAdvance {
    advance_s: i64,
}

/// Moves the platform's clock forward, so that things expire.
pub(super) async fn clock(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: ClockAdvance = read(&body)?;
    shared.act(|rooms| rooms.clock_ahead_s += it.advance_s);
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstId {
    first_id: i64,
}

/// Numbers coming updates from here, as the platform does after a week of silence.
pub(super) async fn update_ids(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: FirstId = read(&body)?;
    shared.act(|rooms| rooms.queue.renumber_from(it.first_id));
    done()
}

/// Resets everything to the start; ids go on, a webhook stays.
pub(super) async fn reset(State(shared): State<SharedTelegram>) -> TelegramControlAnswer {
    shared.reset();
    done()
}
