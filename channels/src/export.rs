//! What a platform's own export of its history holds, read one message at a time.
//!
//! A reader walks through the files in their order and hands over what it finds; it keeps one
//! message in memory, never a file. Nothing it meets makes it stop or panic: what can't be read is
//! handed over as [`Exported::Unreadable`] with its place. It knows no store: who takes the messages
//! decides what is new. Reading order: this, `json_stream`, then a platform's `export`.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use vocative_contract::envelope::{ChatKind, InboundMessage, Sender};
use vocative_contract::identity::{Identity, Platform};

/// The longest JSON of one message that is read, in bytes; a longer one is reported and skipped.
pub const MESSAGE_MAX_BYTES: usize = 8 << 20;

/// An export that was opened and recognised.
pub trait Export: Send {
    /// The files it is read from, in order: what a resumed import compares.
    fn files(&self) -> &[ExportFile];

    /// Reads it from start to end. The same files give the same things in the same order.
    fn read(&mut self, sink: &mut dyn ExportSink);
}

/// A file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its name within the export.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was changed, in milliseconds since the Unix epoch; 0 = unknown.
    pub modified_ms: i64,
}

/// Takes what an export holds.
pub trait ExportSink {
    /// A chat begins; `false` passes it over unread.
    fn begin_chat(&mut self, chat: &ExportedChat) -> bool;

    /// The topics of a chat that are known from elsewhere, by id, with their titles.
    fn topics(&self, _chat: &ExportedChat) -> Vec<(String, Option<String>)> {
        Vec::new()
    }

    /// Takes one thing; `read_bytes` is how far the files have been read. `Break` ends the reading.
    fn take(&mut self, thing: Exported, read_bytes: u64) -> ControlFlow<()>;
}

/// A chat of an export, as the platform's live events would name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedChat {
    /// The platform's chat id.
    pub chat: String,
    /// Its title.
    pub title: Option<String>,
    /// What kind of chat it is.
    pub kind: Option<ChatKind>,
    /// Whether this bot is a member, where the export says so.
    pub has_bot: Option<bool>,
}

/// One thing that an export holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Exported {
    /// A message.
    Message(Box<ExportedMessage>),
    /// The name of somebody who is mentioned.
    Person(Sender),
    /// Something that is no message of a room.
    Skipped {
        /// Why, in a few words for counters.
        reason: Cow<'static, str>,
    },
    /// Something that can't be read.
    Unreadable {
        /// File and line.
        place: String,
        /// Why, and what becomes of the rest, in plain words.
        what: String,
    },
}

/// A message as live capture would have heard it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedMessage {
    /// The message. It never addresses anybody, whatever it mentions.
    pub message: InboundMessage,
    /// Whether `message_id` is the id that every account sees.
    pub identity: ExportedIdentity,
    /// Whether this bot posted it.
    pub is_own: bool,
}

/// What a message's id is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportedIdentity {
    /// The id is the same for everybody who sees the message, the bot included.
    Shared,
    /// The id counts in the exporting account's own message box (Telegram private chats and basic
    /// groups): it is made unlike any live one, and the message is recognised by sender, second and
    /// text.
    OwnBox {
        /// How many messages before it in this export have the same sender, second and text.
        occurrence: u32,
    },
}

/// Why an export can't be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file or folder can't be opened.
    #[error("{path} can't be read", path = path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// It is something else.
    #[error("{what}")]
    NotAnExport {
        /// What was looked for, and what to give instead.
        what: String,
    },
    /// This build leaves the platform out.
    #[error("this build has no {platform} adapter", platform = .0.name())]
    LeftOut(Platform),
}

/// Opens an export of that identity's platform.
///
/// # Errors
/// [`ExportError`] if there is nothing readable at `path` or it is no export of the platform.
pub fn open_export(path: &Path, identity: &Identity) -> Result<Box<dyn Export>, ExportError> {
    let platform = identity.platform;
    let offline = crate::offline_half(platform).ok_or(ExportError::LeftOut(platform))?;
    (offline.open_export)(path, identity)
}

/// The longest reason why an entry can't be read, in characters: the parser quotes what it read.
const MISMATCH_MAX_CHARS: usize = 200;

/// Why an entry can't be read, without names of our own types and without a position inside the entry.
pub(crate) fn mismatch(cause: &serde_json::Error) -> String {
    let told = cause.to_string();
    let told = told
        .rsplit_once(" at line ")
        .map_or(told.as_str(), |(what, _)| what);
    let words: Vec<&str> = told.split(' ').collect();
    let is_number = |word: &str| {
        matches!(
            word.trim_end_matches(','),
            "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize"
        )
    };
    let mut plain = Vec::new();
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        if matches!(word, "struct" | "enum") && words.len() > at + 1 {
            plain.push("an object");
            at += 1;
        } else if is_number(word) {
            plain.push("a whole number");
        } else {
            plain.push(word);
        }
        at += 1;
    }
    let told = plain.join(" ");
    let cut = told.char_indices().nth(MISMATCH_MAX_CHARS);
    match cut {
        Some((end, _)) => format!("it is no message: {}…", &told[..end]),
        None => format!("it is no message: {told}"),
    }
}

/// When a file was changed, in milliseconds since the Unix epoch; 0 where that is unknown.
pub(crate) fn modified_ms(metadata: &std::fs::Metadata) -> i64 {
    let since = metadata
        .modified()
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_quotes_a_bounded_piece_of_what_was_read() {
        let told = |json: &str| match serde_json::from_str::<u8>(json) {
            Ok(number) => panic!("{number} is a number"),
            Err(cause) => mismatch(&cause),
        };
        assert_eq!(
            told("\"x\""),
            "it is no message: invalid type: string \"x\", expected a whole number"
        );
        let long = told(&format!("\"{}\"", "é".repeat(1 << 20)));
        assert!(long.ends_with("é…"), "{}", long.len());
        assert!(long.chars().count() <= MISMATCH_MAX_CHARS + 20);
    }
}
