//! What people do, over HTTP: they write, edit, delete, press buttons, react. Raw updates, too.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::events::PressResult;
use super::super::message::{TelegramForward, TelegramMedia, UserMessage};
use super::super::rooms::TelegramRooms;
use super::super::server::SharedTelegram;
use super::{
    TelegramControlAnswer, TelegramControlRefusal, done, known_chat, known_message, known_user,
    message_id, read,
};

/// What a message holds besides text, by its `kind`.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum MediaEntry {
    Photo,
    Video {
        duration_s: u32,
    },
    VideoNote {
        duration_s: u32,
    },
    Voice {
        duration_s: u32,
    },
    Audio {
        duration_s: u32,
        title: String,
    },
    Animation,
    Document {
        file_name: String,
    },
    Sticker {
        emoji: String,
    },
    Poll {
        question: String,
        options: Vec<String>,
    },
    Location {
        latitude: f64,
        longitude: f64,
    },
    Contact {
        phone_number: String,
        first_name: String,
    },
    Other {
        name: String,
        content: Value,
    },
}

impl From<MediaEntry> for TelegramMedia {
    fn from(media: MediaEntry) -> Self {
        match media {
            MediaEntry::Photo => Self::Photo,
            MediaEntry::Video { duration_s } => Self::Video { duration_s },
            MediaEntry::VideoNote { duration_s } => Self::VideoNote { duration_s },
            MediaEntry::Voice { duration_s } => Self::Voice { duration_s },
            MediaEntry::Audio { duration_s, title } => Self::Audio { duration_s, title },
            MediaEntry::Animation => Self::Animation,
            MediaEntry::Document { file_name } => Self::Document { file_name },
            MediaEntry::Sticker { emoji } => Self::Sticker { emoji },
            MediaEntry::Poll { question, options } => Self::Poll { question, options },
            MediaEntry::Location {
                latitude,
                longitude,
            } => Self::Location {
                latitude,
                longitude,
            },
            MediaEntry::Contact {
                phone_number,
                first_name,
            } => Self::Contact {
                phone_number,
                first_name,
            },
            MediaEntry::Other { name, content } => Self::Other { name, content },
        }
    }
}

/// Whom a message is forwarded from.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Forward {
    User(i64),
    Hidden(String),
    Channel(i64, i64),
}

impl From<Forward> for TelegramForward {
    fn from(forward: Forward) -> Self {
        match forward {
            Forward::User(user) => Self::User(user),
            Forward::Hidden(name) => Self::Hidden(name),
            Forward::Channel(channel, post) => Self::Channel(channel, post),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saying {
    chat: i64,
    user: i64,
    #[serde(default)]
    text: String,
    topic: Option<i64>,
    reply_to: Option<i64>,
    quote: Option<String>,
    entities: Option<Value>,
    media: Option<MediaEntry>,
    /// A file of `/control/file`, as the document of the message.
    file: Option<Value>,
    forward: Option<Forward>,
    sender_chat: Option<i64>,
    #[serde(default)]
    anonymous_admin: bool,
    via_bot: Option<i64>,
    automatic_forward_of: Option<i64>,
    date_s: Option<i64>,
    #[serde(default)]
    extra: Map<String, Value>,
}

impl Saying {
    fn check(&self, rooms: &TelegramRooms) -> Result<(), TelegramControlRefusal> {
        known_chat(rooms, self.chat)?;
        known_user(rooms, self.user)?;
        for chat in [self.sender_chat, self.automatic_forward_of]
            .into_iter()
            .flatten()
        {
            known_chat(rooms, chat)?;
        }
        if let Some(message) = self.reply_to {
            known_message(rooms, self.chat, message)?;
        }
        let room = rooms.room(self.chat);
        let is_topic = |id: i64| room.topics.iter().any(|topic| topic.id == id);
        if let Some(topic) = self.topic.filter(|topic| !is_topic(*topic)) {
            return Err(TelegramControlRefusal(format!(
                "no topic {topic} in {}",
                self.chat
            )));
        }
        let is_empty = self.text.is_empty() && self.media.is_none() && self.file.is_none();
        match is_empty && self.extra.is_empty() {
            true => Err(TelegramControlRefusal(
                "`text`, `media` or `file` must be given".to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn into_message(self) -> UserMessage {
        let media = self.media.map(TelegramMedia::from);
        let of_file = self.file.map(|content| TelegramMedia::Other {
            name: "document".to_owned(),
            content,
        });
        UserMessage {
            chat: self.chat,
            user: self.user,
            text: self.text,
            entities: self.entities,
            media: media.or(of_file),
            topic: self.topic,
            reply_to: self.reply_to,
            quote: self.quote,
            forward: self.forward.map(TelegramForward::from),
            media_group_id: None,
            sender_chat: self.sender_chat,
            anonymous_admin: self.anonymous_admin,
            via_bot: self.via_bot,
            automatic_forward_of: self.automatic_forward_of,
            date_s: self.date_s,
            extra: self.extra,
        }
    }
}

pub(super) async fn say(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let saying: Saying = read(&body)?;
    shared.act(|rooms| {
        saying.check(rooms)?;
        message_id(rooms.write(saying.into_message()))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Album {
    items: Vec<Saying>,
}

pub(super) async fn album(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let album: Album = read(&body)?;
    shared.act(|rooms| {
        for item in &album.items {
            item.check(rooms)?;
        }
        let group = format!("1{:016}", rooms.serial());
        let mut ids = Vec::new();
        for item in album.items {
            ids.push(rooms.write(UserMessage {
                media_group_id: Some(group.clone()),
                ..item.into_message()
            }));
        }
        Ok(Json(json!({"message_ids": ids})))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextEntry {
    chat: i64,
    text: String,
}

pub(super) async fn channel_post(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: TextEntry = read(&body)?;
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        message_id(rooms.post_in_channel(it.chat, &it.text))
    })
}

/// Another program posts with the bot's token.
pub(super) async fn other_program(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: TextEntry = read(&body)?;
    shared.act(|rooms| {
        known_chat(rooms, it.chat)?;
        message_id(rooms.post_unheard(it.chat, &it.text))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TelegramEditing {
    chat: i64,
    message_id: i64,
    /// Without a text the bot gets the same content again.
    text: Option<String>,
}

pub(super) async fn edit(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: TelegramEditing = read(&body)?;
    shared.act(|rooms| {
        known_message(rooms, it.chat, it.message_id)?;
        rooms.rewrite(it.chat, it.message_id, it.text.as_deref());
        message_id(it.message_id)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TelegramItem {
    chat: i64,
    message_id: i64,
}

pub(super) async fn delete(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: TelegramItem = read(&body)?;
    shared.act(|rooms| {
        known_message(rooms, it.chat, it.message_id)?;
        if let Some(stored) = rooms.message_mut(it.chat, it.message_id) {
            stored.deleted = true;
        }
        done()
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pressing {
    chat: i64,
    user: i64,
    message_id: i64,
    /// The words on the button, or its `callback_data`.
    button: String,
}

pub(super) async fn press(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: Pressing = read(&body)?;
    let pressed = shared.act(|rooms| rooms.press((it.chat, it.message_id), it.user, &it.button))?;
    match pressed {
        PressResult::Callback(id) => Ok(Json(json!({"callback_id": id}))),
        PressResult::Message(id) => message_id(id),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Calling {
    user: i64,
    data: String,
    #[serde(default)]
    chat: i64,
    #[serde(default)]
    message_id: i64,
    /// Instead of chat and message.
    inline_message_id: Option<String>,
}

/// A press as a modified client may send it: whether the button is there or not, with any data.
pub(super) async fn callback(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: Calling = read(&body)?;
    let id = shared.act(|rooms| match &it.inline_message_id {
        Some(inline) => Ok(rooms.inline_callback(inline, it.user, &it.data)),
        None => {
            known_chat(rooms, it.chat)?;
            Ok::<_, TelegramControlRefusal>(rooms.callback(
                (it.chat, it.message_id),
                it.user,
                &it.data,
            ))
        }
    })?;
    Ok(Json(json!({"callback_id": id})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Acting {
    chat: i64,
    user: i64,
    message_id: i64,
    #[serde(default)]
    emoji: String,
}

pub(super) async fn react(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: Acting = read(&body)?;
    shared.act(|rooms| {
        known_message(rooms, it.chat, it.message_id)?;
        known_user(rooms, it.user)?;
        if it.emoji.is_empty() {
            return Err(TelegramControlRefusal("`emoji` must be given".to_owned()));
        }
        rooms.react((it.chat, it.message_id), it.user, &it.emoji);
        done()
    })
}

pub(super) async fn pin(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let it: Acting = read(&body)?;
    shared.act(|rooms| {
        known_message(rooms, it.chat, it.message_id)?;
        known_user(rooms, it.user)?;
        message_id(rooms.pin((it.chat, it.message_id), it.user))
    })
}

/// An update as it is; `update_id` is added.
pub(super) async fn update(
    State(shared): State<SharedTelegram>,
    body: Bytes,
) -> TelegramControlAnswer {
    let update: Map<String, Value> = read(&body)?;
    let id = shared.act(|rooms| rooms.push_raw(Value::Object(update)));
    Ok(Json(json!({"update_id": id})))
}

/// The newest unconfirmed update once more, under a new id.
pub(super) async fn duplicate(State(shared): State<SharedTelegram>) -> TelegramControlAnswer {
    match shared.act(TelegramRooms::duplicate_newest) {
        true => done(),
        false => Err(TelegramControlRefusal("no update waits".to_owned())),
    }
}
