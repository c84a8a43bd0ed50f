//! What is sent to a platform: rendered parts, and where they go.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::card::CardButton;
use crate::people::{People, Person};

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

/// What is done to a room with one entry of the outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// A new message.
    #[default]
    Post,
    /// Another text for a message of ours.
    Edit {
        /// The platform's message id.
        message_id: String,
    },
    /// A message of ours is deleted.
    Delete {
        /// The platform's message id.
        message_id: String,
    },
    /// A message that one person sees, and that the platform doesn't keep.
    Ephemeral {
        /// The platform's user id.
        person: String,
    },
    /// A reaction of ours to a message; the part's text is the emoji as the platform names it.
    React {
        /// The platform's message id.
        message_id: String,
    },
    /// A reaction of ours is removed again.
    Unreact {
        /// The platform's message id.
        message_id: String,
    },
    /// A text for the person who pressed something, and nobody else; not kept by the platform. A part with an empty
    /// text only ends the platform's sign that it waits for an answer.
    Answer {
        /// The platform's identity of the interaction.
        interaction: String,
        /// The platform's user id.
        person: String,
    },
    /// A file; several calls.
    Upload,
}

impl Operation {
    /// The stored and shown name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Post => "post",
            Self::Edit { .. } => "edit",
            Self::Delete { .. } => "delete",
            Self::Ephemeral { .. } => "ephemeral",
            Self::React { .. } => "react",
            Self::Unreact { .. } => "unreact",
            Self::Answer { .. } => "answer",
            Self::Upload => "upload",
        }
    }

    /// Whether the room looks the same if it is done twice. Then an unknown outcome is simply retried. (A note that one
    /// person sees twice is gone with the next reload.)
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Edit { .. }
            | Self::Delete { .. }
            | Self::Ephemeral { .. }
            | Self::React { .. }
            | Self::Unreact { .. }
            | Self::Answer { .. } => true,
            Self::Post | Self::Upload => false,
        }
    }

    /// Whether it is a reaction or takes one away: it has no text, and no answer waits for it.
    #[must_use]
    pub fn is_reaction(&self) -> bool {
        matches!(self, Self::React { .. } | Self::Unreact { .. })
    }

    /// Whether it makes a message that others can reply to, edit and delete.
    #[must_use]
    pub fn makes_message(&self) -> bool {
        matches!(self, Self::Post | Self::Upload)
    }
}

/// One rendered post: the wire text and what belongs to it. Stored in the outbox as JSON.
///
/// Version 1 is text, and entities where the platform has them; version 2 may hold blocks, too; version 3
/// a file; version 4 the first words of a text that goes on; version 5 buttons; version 6 stored bytes; version 7 a
/// name of its own. All are read, and each part is written in the oldest version that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The version of this form.
    pub version: u32,
    /// The text as the platform takes it (escaped where the platform wants that).
    pub text: String,
    /// Formatting entities as the platform takes them, or `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entities: Option<serde_json::Value>,
    /// Blocks as the platform takes them: people see them, and `text` is used in notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<serde_json::Value>,
    /// The file of an upload; the text is posted with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Box<PartFile>>,
    /// How the part may be shown where the platform has posts that grow at their end; the text and blocks are shown
    /// where it has none, or refuses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Box<PartStream>>,
    /// Buttons below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<CardButton>,
    /// The name under which it is posted; without one, the bot's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Box<PostSpeaker>>,
}

/// The name and picture under which a post appears, where the platform lets a bot choose them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostSpeaker {
    /// The name.
    pub name: String,
    /// An emoji between colons, or the `https://` address of a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
}

/// The beginning of a text that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartStream {
    /// The words so far, CommonMark.
    pub text: String,
    /// The platform's user id of the person for whom it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
}

/// The file of an upload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFile {
    /// Its name, with extension.
    pub name: String,
    /// Its MIME type.
    pub mime_type: String,
    /// Its text; empty where the bytes are stored.
    pub content: String,
    /// Where its bytes are stored, if they are not the post's own text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredBytes>,
    /// The stored bytes, once delivery has read them.
    #[serde(skip)]
    pub loaded: Option<Arc<[u8]>>,
    /// How far the upload is, as [`crate::handles::Poster::prepare`] says; the outbox keeps it apart.
    #[serde(skip)]
    pub progress: Option<String>,
    /// What is posted instead where the platform refuses the file; `None` = all of its content as posts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<FileRest>,
}

/// Bytes that the store keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBytes {
    /// Their SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Their number.
    pub size_bytes: u64,
}

/// The posts that come in place of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRest {
    /// The text of these posts, CommonMark: all that the posts before the file have not said.
    pub text: String,
    /// The most posts that come in place of the file.
    pub parts_max: usize,
    /// Whom they mention.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<Person>,
}

impl PartFile {
    /// The bytes that are sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.loaded.as_deref().unwrap_or(self.content.as_bytes())
    }

    /// The text to post instead of the file, and the people it may mention.
    #[must_use]
    pub fn instead(&self) -> (&str, People) {
        match &self.rest {
            Some(rest) => (&rest.text, People::known(rest.people.iter().cloned())),
            None => (&self.content, People::nobody()),
        }
    }
}

impl Part {
    /// The newest version that this build writes and reads.
    pub const VERSION: u32 = 7;
    /// The version of a part with a name of its own.
    const SPEAKER_VERSION: u32 = 7;
    /// The version of a file whose bytes are stored.
    const STORED_VERSION: u32 = 6;
    /// The version of a part with buttons.
    const BUTTONS_VERSION: u32 = 5;
    /// The version of a part that is the beginning of a text.
    const STREAM_VERSION: u32 = 4;
    /// The version of a part with a file.
    const FILE_VERSION: u32 = 3;
    /// The version of a part with entities or blocks.
    const RENDERED_VERSION: u32 = 2;
    /// The version of a part that is text alone: older builds can send it, too.
    const TEXT_VERSION: u32 = 1;

    /// A part of text alone.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            version: Self::TEXT_VERSION,
            text: text.into(),
            entities: None,
            blocks: None,
            file: None,
            stream: None,
            buttons: Vec::new(),
            speaker: None,
        }
    }

    /// A file, and what is said with it.
    #[must_use]
    pub fn upload(text: impl Into<String>, file: PartFile) -> Self {
        let version = match file.stored {
            Some(_) => Self::STORED_VERSION,
            None => Self::FILE_VERSION,
        };
        Self {
            version,
            file: Some(Box::new(file)),
            ..Self::plain(text)
        }
    }

    /// A part with what belongs to its text.
    #[must_use]
    pub fn rendered(
        text: impl Into<String>,
        entities: Option<serde_json::Value>,
        blocks: Option<serde_json::Value>,
    ) -> Self {
        let has_more = entities.is_some() || blocks.is_some();
        Self {
            version: if has_more {
                Self::RENDERED_VERSION
            } else {
                Self::TEXT_VERSION
            },
            text: text.into(),
            entities,
            blocks,
            file: None,
            stream: None,
            buttons: Vec::new(),
            speaker: None,
        }
    }

    /// The same part, as the beginning of a text that goes on.
    #[must_use]
    pub fn streamed(self, stream: PartStream) -> Self {
        Self {
            version: self.version.max(Self::STREAM_VERSION),
            stream: Some(Box::new(stream)),
            ..self
        }
    }

    /// The same part, under a name of its own.
    #[must_use]
    pub fn spoken_by(self, speaker: PostSpeaker) -> Self {
        Self {
            version: self.version.max(Self::SPEAKER_VERSION),
            speaker: Some(Box::new(speaker)),
            ..self
        }
    }

    /// The same part, with buttons below it.
    #[must_use]
    pub fn with_buttons(self, buttons: Vec<CardButton>) -> Self {
        if buttons.is_empty() {
            return self;
        }
        Self {
            version: self.version.max(Self::BUTTONS_VERSION),
            buttons,
            ..self
        }
    }
}

/// One operation to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The outbox entry's id: opaque, carried in message metadata where the platform has it.
    pub marker: String,
    /// Where.
    pub target: Target,
    /// What is done.
    pub operation: Operation,
    /// The content.
    pub part: Part,
}

/// What the platform answered to a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The chat it went to by the platform's answer.
    pub chat: String,
    /// The platform's message id: for an edit, a reaction or a deletion, the id of the changed message.
    pub message_id: String,
    /// The platform's time of it, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// What the room shows, where the platform reports that and it differs from what was sent.
    pub shown: Option<Box<Part>>,
}

/// The result of looking for a post of unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// The post is there.
    Found(Delivered),
    /// The post is not there (yet).
    NotFound,
    /// This platform cannot say.
    Unsupported,
}

/// What is shown on a bot's own surface, where the platform has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dressing {
    /// What people may want to ask.
    Prompts(Vec<SuggestedPrompt>),
    /// What a thread is about.
    Title(String),
}

/// Something people may want to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestedPrompt {
    /// What is shown.
    pub title: String,
    /// What is sent when it is chosen.
    pub message: String,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::card::ButtonStyle;

    #[test]
    fn a_part_is_written_in_the_oldest_version_that_holds_it_and_read_in_every_one() {
        let stream = PartStream {
            text: "hi".to_owned(),
            person: None,
        };
        let speaker = PostSpeaker {
            name: "Pen".to_owned(),
            icon: Some(":pencil2:".to_owned()),
        };
        let button = |data: &str, style| CardButton {
            data: data.to_owned(),
            label: "Yes".to_owned(),
            style,
        };
        let buttons = vec![
            button("a", ButtonStyle::Positive),
            button("b", ButtonStyle::Plain),
        ];
        let table = [
            (Part::plain("hi"), r#"{"version":1,"text":"hi"}"#),
            (
                Part::plain("hi").with_buttons(Vec::new()),
                r#"{"version":1,"text":"hi"}"#,
            ),
            (
                Part::rendered("hi", None, Some(serde_json::json!([]))),
                r#"{"version":2,"text":"hi","blocks":[]}"#,
            ),
            (
                Part::plain("hi").streamed(stream),
                r#"{"version":4,"text":"hi","stream":{"text":"hi"}}"#,
            ),
            (
                Part::plain("hi").spoken_by(speaker),
                r#"{"version":7,"text":"hi","speaker":{"name":"Pen","icon":":pencil2:"}}"#,
            ),
            (
                Part::plain("hi").with_buttons(buttons),
                r#"{"version":5,"text":"hi","buttons":[{"data":"a","label":"Yes","style":"positive"},{"data":"b","label":"Yes"}]}"#,
            ),
        ];
        for (part, stored) in table {
            assert_eq!(serde_json::to_string(&part).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Part>(stored).unwrap(), part);
        }
    }
}
