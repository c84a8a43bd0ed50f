//! What is sent to a platform: rendered parts, and where they go.

use serde::{Deserialize, Serialize};

/// Where a post goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The platform's chat id.
    pub chat: String,
    /// Slack thread root `ts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Telegram forum topic id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The message it answers, where the platform has replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
}

/// One rendered post: the wire text and what belongs to it. Stored in the outbox as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The version of this form.
    pub version: u32,
    /// The text as the platform takes it (escaped where the platform wants that).
    pub text: String,
    /// Formatting entities as the platform takes them, or `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entities: Option<serde_json::Value>,
}

impl Part {
    /// The version this build writes.
    pub const VERSION: u32 = 1;

    /// A part without entities.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            version: Self::VERSION,
            text: text.into(),
            entities: None,
        }
    }
}

/// One post to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The outbox entry's id: opaque, carried in message metadata where the platform has it.
    pub marker: String,
    /// Where.
    pub target: Target,
    /// What.
    pub part: Part,
}

/// What the platform said of a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The chat it went to by the platform's answer.
    pub chat: String,
    /// The platform's message id.
    pub message_id: String,
    /// The platform's time of it, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
}

/// What a look for a post of unknown outcome found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// It is there.
    Found(Delivered),
    /// It is not there (yet).
    NotFound,
    /// This platform cannot say.
    Unsupported,
}
