//! Conversations and the places they happen in.

use schemars::JsonSchema;
use serde::Deserialize;
use vocative_contract::envelope::ChatKind;

use crate::ids::{AccountId, ChatId, ConversationId, Seq, TurnId};

/// What kind of place a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A group room or one of its topics.
    Channel,
    /// A Slack thread in a channel.
    Thread,
    /// A direct chat; a thread inside one keeps this scope.
    Dm,
}

impl Scope {
    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Thread => "thread",
            Self::Dm => "dm",
        }
    }

    /// The scope of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Channel, Self::Thread, Self::Dm]
            .into_iter()
            .find(|scope| scope.name() == name)
    }

    /// The scope of a conversation in a chat of that kind. A chat of unknown kind counts as a
    /// channel until its kind is learnt.
    #[must_use]
    pub fn of(kind: Option<ChatKind>, is_thread: bool) -> Self {
        match (kind, is_thread) {
            (Some(ChatKind::Direct | ChatKind::GroupDirect), _) => Self::Dm,
            (_, true) => Self::Thread,
            _ => Self::Channel,
        }
    }
}

/// A chat as people name it in settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChatName {
    /// The configured channel.
    pub channel: String,
    /// The platform's id of the chat.
    pub chat: String,
}

/// What makes a conversation: a chat, and a thread or topic in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConversationKey {
    /// The chat.
    pub chat: ChatId,
    /// Slack thread root `ts` or Telegram topic id.
    pub thread_or_topic: Option<String>,
}

/// The durable container of turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// The account it belongs to.
    pub account: AccountId,
    /// Its key.
    pub key: ConversationKey,
    /// The chat's platform id (the newest one).
    pub platform_chat: String,
    /// Whether `thread_or_topic` is a Telegram topic.
    pub is_topic: bool,
    /// What kind of place.
    pub scope: Scope,
    /// The kind of chat, once learnt.
    pub chat_kind: Option<ChatKind>,
    /// The conversation a thread hangs on.
    pub parent: Option<ConversationId>,
    /// The turn of the parent that a thread started from.
    pub root: Option<TurnId>,
    /// Whether it is another course of its parent: what was said there up to the root belongs to it.
    pub is_fork: bool,
    /// A name for people: chat title, topic name; the id where none is known.
    pub title: String,
    /// Turns in it.
    pub turns: u64,
    /// The newest turn's seq.
    pub last_seq: Option<Seq>,
    /// When something last happened, in milliseconds since the Unix epoch.
    pub last_activity_ms: i64,
}
