//! What a person can put into a message.
//!
//! Plain data; how it looks on the wire is in `people`.

use serde_json::{Map, Value};

/// What a message holds besides text.
#[derive(Clone, Debug, PartialEq)]
pub enum TelegramMedia {
    /// A photo.
    Photo,
    /// A video.
    Video {
        /// Length in seconds.
        duration_s: u32,
    },
    /// A round video message.
    VideoNote {
        /// Length in seconds.
        duration_s: u32,
    },
    /// A voice message.
    Voice {
        /// Length in seconds.
        duration_s: u32,
    },
    /// A piece of music.
    Audio {
        /// Length in seconds.
        duration_s: u32,
        /// Title of the piece.
        title: String,
    },
    /// A soundless animation; the platform also sends it as a document.
    Animation,
    /// A file.
    Document {
        /// Name with extension.
        file_name: String,
    },
    /// A sticker.
    Sticker {
        /// The emoji it stands for.
        emoji: String,
    },
    /// A poll.
    Poll {
        /// What is asked.
        question: String,
        /// The answers to choose from.
        options: Vec<String>,
    },
    /// A place.
    Location {
        /// Degrees north.
        latitude: f64,
        /// Degrees east.
        longitude: f64,
    },
    /// A person's number.
    Contact {
        /// Number as written.
        phone_number: String,
        /// Name of the person.
        first_name: String,
    },
    /// Something of a kind that no client knows yet: the field's name and content.
    Other {
        /// Field of the message.
        name: String,
        /// What is in it.
        content: Value,
    },
}

/// Whom a forwarded message is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TelegramForward {
    /// A person of this world.
    User(i64),
    /// A person who hides behind a name.
    Hidden(String),
    /// A channel of this world, and the message there.
    Channel(i64, i64),
}

/// A message with everything that a person can put into one. Fill what matters and leave the rest
/// to `Default`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserMessage {
    /// Chat id.
    pub chat: i64,
    /// Who writes.
    pub user: i64,
    /// Text, or the caption when there is media.
    pub text: String,
    /// Entities as on the wire; `None` lets the platform find them.
    pub entities: Option<Value>,
    /// What it holds besides text.
    pub media: Option<TelegramMedia>,
    /// Forum topic.
    pub topic: Option<i64>,
    /// Message that it replies to.
    pub reply_to: Option<i64>,
    /// Part of the replied-to text that is quoted.
    pub quote: Option<String>,
    /// Whom it is forwarded from.
    pub forward: Option<TelegramForward>,
    /// Album.
    pub media_group_id: Option<String>,
    /// Written on behalf of this channel.
    pub sender_chat: Option<i64>,
    /// Written as an anonymous administrator of the chat.
    pub anonymous_admin: bool,
    /// Made by this inline bot.
    pub via_bot: Option<i64>,
    /// A post of this channel, forwarded by the platform into the discussion group.
    pub automatic_forward_of: Option<i64>,
    /// Unix seconds, instead of now.
    pub date_s: Option<i64>,
    /// Further fields of the message, as on the wire. They overwrite.
    pub extra: Map<String, Value>,
}

/// Which of the two service messages of an upgrade comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MigrationOrder {
    /// The one in the old group.
    #[default]
    OldFirst,
    /// The one in the new supergroup.
    NewFirst,
}
