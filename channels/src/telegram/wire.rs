//! What Telegram sends, as far as this adapter reads it.
//!
//! Lenient on purpose: only what identifies a message must have its documented shape. Everything
//! else that is missing, `null` or of another shape counts as absent, so that a new API version
//! never makes a message unreadable. Nothing here leaves the adapter.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The envelope of every answer.
#[derive(Debug, Deserialize)]
pub(super) struct TelegramAnswer<'a> {
    #[serde(default)]
    pub(super) ok: bool,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error_code: Option<u16>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) description: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) parameters: Option<ResponseParameters>,
}

/// What a refusal says beside its words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct ResponseParameters {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) migrate_to_chat_id: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) retry_after: Option<u64>,
}

/// The part of an update that is read before anything else.
#[derive(Debug, Deserialize)]
pub(super) struct UpdateStub {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) update_id: Option<i64>,
}

/// The answer of `getWebhookInfo`. The URL itself may hold a secret and is never shown.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WebhookInfo {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) url: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) pending_update_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) last_error_message: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) max_connections: Option<u32>,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(super) allowed_updates: Vec<String>,
}

impl WebhookInfo {
    /// Whether a webhook is set.
    pub(super) fn is_set(&self) -> bool {
        self.url.as_ref().is_some_and(|url| !url.is_empty())
    }
}

/// The answer of `getMe`.
#[derive(Debug, Deserialize)]
pub(super) struct Me {
    pub(super) id: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) first_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) username: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) can_read_all_group_messages: Option<bool>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) supports_inline_queries: bool,
}

/// A person or bot.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct User {
    pub(super) id: i64,
    #[serde(default, deserialize_with = "flag")]
    pub(super) is_bot: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) first_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) last_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) username: Option<String>,
}

/// A chat as messages and `getChat` show it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(rename = "type", default, deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) is_direct_messages: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) username: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) first_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) last_name: Option<String>,
}

/// A span of a text, in UTF-16 code units.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct MessageEntity {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) offset: i64,
    pub(super) length: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) url: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) language: Option<String>,
}

/// The message a message replies to: what matters of it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RepliedMessage {
    pub(super) message_id: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) date: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) from: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) forum_topic_created: Option<Value>,
}

/// The passage a reply quotes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TextQuote {
    pub(super) text: String,
    #[serde(default, deserialize_with = "flag")]
    pub(super) is_manual: bool,
}

/// Where a forwarded message comes from, all kinds in one.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct MessageOrigin {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_user: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_user_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) chat: Option<Chat>,
}

/// A file as `getFile` describes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StoredFile {
    pub(super) file_size: Option<u64>,
    pub(super) file_path: Option<String>,
}

/// A file of any kind: the fields that photo sizes, videos, voices, documents, ... share.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Media {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) file_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) file_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) mime_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) file_size: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) width: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) height: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) duration: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) performer: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) emoji: Option<String>,
}

/// A poll.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Poll {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) question: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) options: Option<Vec<Labelled>>,
}

/// A checklist.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Checklist {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tasks: Option<Vec<Labelled>>,
}

/// A poll option or a checklist task.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Labelled {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) completion_date: Option<i64>,
}

/// A contact.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Contact {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) phone_number: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) first_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) last_name: Option<String>,
}

/// A location.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Location {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) live_period: Option<u64>,
}

/// A venue, a game, an invoice: things with a title.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Titled {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) address: Option<String>,
}

/// An animated emoji with a random value.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Dice {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) emoji: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) value: Option<i64>,
}

/// A topic's name in the service messages that carry it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TopicName {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
}

/// A message of any kind.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Message {
    pub(super) message_id: i64,
    pub(super) chat: Chat,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_thread_id: Option<i64>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) is_topic_message: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) from: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) author_signature: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) date: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) edit_date: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) business_connection_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) guest_query_id: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) is_automatic_forward: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) via_bot: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) media_group_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reply_to_message: Option<RepliedMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) quote: Option<TextQuote>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) forward_origin: Option<MessageOrigin>,
    /// `None` if absent or `null`; another shape than a string makes the message unreadable,
    /// because its words would be lost.
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(super) entities: Vec<MessageEntity>,
    #[serde(default)]
    pub(super) caption: Option<String>,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(super) caption_entities: Vec<MessageEntity>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) rich_message: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) animation: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) audio: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) document: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) live_photo: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) paid_media: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) photo: Option<Vec<Media>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sticker: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) story: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) video: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) video_note: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) voice: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) checklist: Option<Checklist>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) contact: Option<Contact>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) dice: Option<Dice>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) game: Option<Titled>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) poll: Option<Poll>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) venue: Option<Titled>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) location: Option<Location>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) invoice: Option<Titled>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) giveaway: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) giveaway_winners: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) new_chat_title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) migrate_to_chat_id: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) migrate_from_chat_id: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) forum_topic_created: Option<TopicName>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) forum_topic_edited: Option<TopicName>,
}

/// The fields of a message that give its number and its author.
#[derive(Debug, Deserialize)]
pub(super) struct MessageNumber {
    pub(super) message_id: i64,
    pub(super) chat: Chat,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) date: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) from: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) business_connection_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) guest_query_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reply_to_message: Option<RepliedMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) pinned_message: Option<RepliedMessage>,
}

/// A button press.
#[derive(Debug, Deserialize)]
pub(super) struct CallbackQuery {
    pub(super) id: String,
    pub(super) from: User,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<ButtonMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) data: Option<String>,
}

/// The message a pressed button belongs to; it may be inaccessible.
#[derive(Debug, Deserialize)]
pub(super) struct ButtonMessage {
    pub(super) message_id: i64,
    pub(super) chat: Chat,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) from: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) via_bot: Option<User>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) forward_origin: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_thread_id: Option<i64>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) is_topic_message: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) ephemeral_message_id: Option<Value>,
}

/// The bot's own standing in a chat changed.
#[derive(Debug, Deserialize)]
pub(super) struct ChatMemberUpdated {
    pub(super) chat: Chat,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) old_chat_member: Option<ChatMember>,
    pub(super) new_chat_member: ChatMember,
}

/// The reactions of a person to a message.
#[derive(Debug, Deserialize)]
pub(super) struct MessageReactions {
    pub(super) chat: Chat,
    pub(super) message_id: i64,
    /// `None` = a person who does not show who they are.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user: Option<User>,
    /// In seconds since the Unix epoch.
    pub(super) date: i64,
    pub(super) old_reaction: Vec<Value>,
    pub(super) new_reaction: Vec<Value>,
}

/// A standing in a chat.
#[derive(Debug, Deserialize)]
pub(super) struct ChatMember {
    pub(super) status: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_member: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) can_send_messages: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) can_post_messages: Option<bool>,
}

/// The answer of `sendMessage`.
#[derive(Debug, Deserialize)]
pub(super) struct SentMessage {
    pub(super) message_id: i64,
    pub(super) chat: Chat,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) date: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) entities: Option<Value>,
}

/// Absent, `null` and any other shape are `None`.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    if value.is_null() {
        return Ok(None);
    }
    Ok(serde_json::from_value(value).ok())
}

/// Only `true` is true.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(deserializer)? == Value::Bool(true))
}

/// The readable items of a list; anything else is an empty list.
pub(super) fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(items) = Value::deserialize(deserializer)? else {
        return Ok(Vec::new());
    };
    Ok(items
        .into_iter()
        .filter_map(|item| serde_json::from_value(item).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_another_shape_counts_as_absent() {
        let message: Message = serde_json::from_value(json!({
            "message_id": 7, "chat": {"id": -5, "type": 9, "title": null}, "from": "somebody",
            "is_topic_message": "yes", "text": "hello", "poll": 7, "photo": {"file_id": "x"},
            "entities": [{"type": "bold", "offset": 0, "length": 5}, {"type": "bold"}, null, 4],
            "reply_to_message": {"message_id": "x"}, "from_the_future": {"a": [1]},
        }))
        .unwrap();
        assert!(message.from.is_none() && message.poll.is_none() && message.photo.is_none());
        assert!(message.reply_to_message.is_none() && !message.is_topic_message);
        assert_eq!(message.text.as_deref(), Some("hello"));
        assert_eq!(message.entities.len(), 1);
        assert_eq!((message.chat.kind, message.chat.title), (None, None));
    }

    #[test]
    fn a_message_without_identity_or_with_unreadable_text_is_refused() {
        for bad in [
            json!({"chat": {"id": 1}, "text": "no id"}),
            json!({"message_id": 1, "text": "no chat"}),
            json!({"message_id": 1, "chat": {"id": 1}, "text": ["parts"]}),
        ] {
            assert!(serde_json::from_value::<Message>(bad).is_err());
        }
    }
}
