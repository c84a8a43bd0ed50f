//! What Telegram Desktop exports, as far as it is read, and as the Bot API would have said it.
//!
//! An exported message is turned into the wire message that the bot would have got, so that live
//! capture and import say the same in the same words. Source: `reference` sheet "Telegram Desktop
//! export", after tdesktop's `export_output_json.cpp`.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::wire::{
    Chat, Contact, Labelled, Location, Media, Message, MessageEntity, MessageOrigin, Poll,
    RepliedMessage, Titled, User, lenient, lenient_list,
};

/// Bot API ids of supergroups and channels are below this.
const CHANNEL_ID_BASE: i64 = -1_000_000_000_000;

/// A message of any kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExportMessage {
    pub(super) id: i64,
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "number")]
    pub(super) date_unixtime: Option<i64>,
    #[serde(deserialize_with = "number")]
    pub(super) edited_unixtime: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    from: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) from_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    author: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) action: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    text: Value,
    #[serde(deserialize_with = "lenient_list")]
    text_entities: Vec<ExportedRun>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reply_to_message_id: Option<i64>,
    #[serde(deserialize_with = "present")]
    reply_to_peer_id: Option<Value>,
    #[serde(deserialize_with = "present")]
    forwarded_from: Option<Value>,
    #[serde(deserialize_with = "present")]
    photo: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    photo_file_size: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    file: Option<String>,
    #[serde(deserialize_with = "lenient")]
    file_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    file_size: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    media_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    mime_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    duration_seconds: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    sticker_emoji: Option<String>,
    #[serde(deserialize_with = "lenient")]
    performer: Option<String>,
    #[serde(deserialize_with = "lenient")]
    location_information: Option<Location>,
    #[serde(deserialize_with = "lenient")]
    contact_information: Option<Contact>,
    #[serde(deserialize_with = "lenient")]
    place_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    address: Option<String>,
    #[serde(deserialize_with = "lenient")]
    poll: Option<ExportPoll>,
    #[serde(deserialize_with = "lenient")]
    game_title: Option<String>,
}

/// A run of text with one style.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ExportedRun {
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    href: Option<String>,
    #[serde(deserialize_with = "lenient")]
    language: Option<String>,
    #[serde(deserialize_with = "lenient")]
    user_id: Option<i64>,
}

/// A poll, whose options are its answers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ExportPoll {
    #[serde(deserialize_with = "lenient")]
    question: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    answers: Vec<Labelled>,
}

/// Who wrote something: `user5001`, `channel123`, `chat77`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    User(i64),
    Chat(i64),
}

impl Author {
    pub(super) fn of(id: &str) -> Option<Self> {
        let number = |kind: &str| id.strip_prefix(kind)?.parse::<i64>().ok();
        number("user")
            .map(Self::User)
            .or_else(|| number("channel").map(|id| Self::Chat(channel_id(id))))
            .or_else(|| number("chat").map(|id| Self::Chat(-id.saturating_abs())))
    }
}

/// The Bot API's id of a supergroup or channel. A negative id already is one.
pub(super) fn channel_id(bare: i64) -> i64 {
    if bare < 0 {
        bare
    } else {
        CHANNEL_ID_BASE.saturating_sub(bare)
    }
}

impl ExportMessage {
    /// Who wrote it.
    pub(super) fn author(&self) -> Option<Author> {
        Author::of(self.from_id.as_deref()?)
    }

    /// The message as the bot would have got it; `blank` is one without content in the same chat.
    pub(super) fn into_wire(self, blank: &Message, topic: Option<i64>) -> Message {
        let (text, entities) = self.words();
        let mut message = blank.clone();
        message.message_id = self.id;
        message.date = self.date_unixtime;
        message.edit_date = self.edited_unixtime.filter(|at| *at > 0);
        message.text = Some(text).filter(|text| !text.is_empty());
        message.entities = entities;
        message.is_topic_message = topic.is_some();
        message.message_thread_id = topic;
        message.author_signature = self.author.clone();
        match self.author() {
            Some(Author::User(id)) => message.from = Some(user(id, self.from.clone())),
            Some(Author::Chat(id)) => {
                message.sender_chat = Some(Chat {
                    id,
                    title: self.from.clone(),
                    ..blank.chat.clone()
                });
            }
            None => {}
        }
        message.reply_to_message = self.reply();
        message.forward_origin = self.forwarded_from.as_ref().map(|name| MessageOrigin {
            sender_user_name: name.as_str().map(str::to_owned),
            ..MessageOrigin::default()
        });
        self.put_thing(&mut message);
        message
    }

    /// What it replies to, in the same chat.
    fn reply(&self) -> Option<RepliedMessage> {
        let message_id = self.reply_to_message_id?;
        self.reply_to_peer_id.is_none().then_some(RepliedMessage {
            message_id,
            date: None,
            from: None,
            sender_chat: None,
            chat: None,
            forum_topic_created: None,
        })
    }

    /// The text, and its styles as entities in UTF-16 units.
    fn words(&self) -> (String, Vec<MessageEntity>) {
        let runs = if self.text_entities.is_empty() {
            runs_of(&self.text)
        } else {
            self.text_entities.clone()
        };
        let (mut text, mut entities, mut offset) = (String::new(), Vec::new(), 0);
        for run in runs {
            let words = run.text.as_deref().unwrap_or_default();
            let length = i64::try_from(words.encode_utf16().count()).unwrap_or(i64::MAX);
            text.push_str(words);
            if let Some(kind) = run.kind.as_deref().and_then(entity_kind) {
                entities.push(MessageEntity {
                    kind: kind.to_owned(),
                    offset,
                    length,
                    url: run.href,
                    user: run.user_id.map(|id| user(id, None)),
                    language: run.language,
                });
            }
            offset += length;
        }
        (text, entities)
    }

    fn put_thing(self, message: &mut Message) {
        let mut media = Media {
            file_id: None,
            file_name: self.file_name.or_else(|| name_of(self.file.as_deref())),
            mime_type: self.mime_type,
            file_size: self.file_size,
            duration: self.duration_seconds,
            title: self.title,
            performer: self.performer,
            emoji: self.sticker_emoji,
            width: None,
            height: None,
        };
        match self.media_type.as_deref() {
            Some("sticker") => message.sticker = Some(media),
            Some("video_message") => message.video_note = Some(media),
            Some("voice_message") => message.voice = Some(media),
            Some("animation") => message.animation = Some(media),
            Some("video_file") => message.video = Some(media),
            Some("audio_file") => message.audio = Some(media),
            _ if self.photo.is_some() => {
                media.file_name = None;
                media.file_size = self.photo_file_size;
                message.photo = Some(vec![media]);
            }
            _ if self.file.is_some() => message.document = Some(media),
            _ => {}
        }
        message.contact = self.contact_information;
        message.poll = self.poll.map(|poll| Poll {
            question: poll.question,
            options: Some(poll.answers),
        });
        if self.place_name.is_some() || self.address.is_some() {
            message.venue = Some(Titled {
                title: self.place_name,
                address: self.address,
            });
        }
        message.location = self.location_information;
        message.game = self.game_title.map(|title| Titled {
            title: Some(title),
            address: None,
        });
    }
}

fn user(id: i64, name: Option<String>) -> User {
    User {
        id,
        is_bot: false,
        first_name: name,
        last_name: None,
        username: None,
    }
}

/// The Bot API's name of a style; `None` for plain text.
fn entity_kind(kind: &str) -> Option<&str> {
    match kind {
        "plain" | "unknown" => None,
        "link" => Some("url"),
        "mention_name" => Some("text_mention"),
        other => Some(other),
    }
}

/// Older exports have only `text`: a string, or strings and runs.
fn runs_of(text: &Value) -> Vec<ExportedRun> {
    let plain = |text: &str| ExportedRun {
        text: Some(text.to_owned()),
        ..ExportedRun::default()
    };
    match text {
        Value::String(text) => vec![plain(text)],
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Value::String(text) => Some(plain(text)),
                other => ExportedRun::deserialize(other).ok(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// A file's name by its path in the export; a file that was left out has a sentence in its place.
fn name_of(path: Option<&str>) -> Option<String> {
    let path = path.filter(|path| !path.starts_with("(File "))?;
    path.rsplit('/').next().map(str::to_owned)
}

/// A number, or a string that holds one.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_i64(),
        _ => None,
    })
}

/// Any value that is present, `null` included.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
