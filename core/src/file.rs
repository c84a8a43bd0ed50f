//! Files that were attached to turns: how far each is known.

use std::fmt;

use crate::ids::{AccountId, FileId, TurnId};

/// The hash that bytes are stored under: SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId(pub [u8; 32]);

impl ContentId {
    /// Where its bytes are below the folder of a database.
    #[must_use]
    pub fn path(&self) -> String {
        let name = self.to_string();
        format!("files/{}/{}", &name[..2], &name[2..])
    }

    /// The hash of its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut id = [0; 32];
        if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (n, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&name[2 * n..2 * n + 2], 16).ok()?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The ids of files that tools gave begin with one of these, and platforms' do not.
const OF_TOOL: &str = "tool:";
const OF_TOOL_FOR_PEOPLE: &str = "tool-posted:";

/// The id of a file that a call gave, by its place among the call's files.
#[must_use]
pub fn tool_file_id(n: usize, is_for_people: bool) -> String {
    let of = if is_for_people {
        OF_TOOL_FOR_PEOPLE
    } else {
        OF_TOOL
    };
    format!("{of}{n}")
}

/// How far a file is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileState {
    /// It is to be fetched.
    Pending,
    /// Its bytes are here.
    Fetched,
    /// It is not to be had, or not wanted; the reason says which.
    Refused,
    /// It is larger than the limit for fetching.
    TooLarge,
    /// The platform no longer has it.
    Gone,
    /// Every attempt to fetch it failed.
    Failed,
    /// Its bytes were here and made room for newer ones.
    Evicted,
}

impl FileState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Fetched,
        Self::Refused,
        Self::TooLarge,
        Self::Gone,
        Self::Failed,
        Self::Evicted,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Fetched => "fetched",
            Self::Refused => "refused",
            Self::TooLarge => "too_large",
            Self::Gone => "gone",
            Self::Failed => "failed",
            Self::Evicted => "evicted",
        }
    }

    /// The state of a stored name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            // The row was set aside: what is known of the file can't be decoded.
            "quarantined" => Some(Self::Failed),
            name => Self::ALL.into_iter().find(|state| state.name() == name),
        }
    }
}

/// What kind of content a file has, by what its message says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Text, source, data that people can read.
    Text,
    /// A picture that models take.
    Image,
    /// Speech.
    Voice,
    /// Anything else.
    Other,
}

/// Endings of files that are text whatever their MIME type says.
const TEXT_ENDINGS: [&str; 74] = [
    "adoc",
    "bash",
    "bat",
    "c",
    "cc",
    "cfg",
    "clj",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "dart",
    "diff",
    "dockerfile",
    "el",
    "env",
    "ex",
    "gitignore",
    "go",
    "gradle",
    "graphql",
    "h",
    "hpp",
    "hs",
    "htm",
    "html",
    "ics",
    "ini",
    "java",
    "jl",
    "js",
    "json",
    "jsonl",
    "jsx",
    "kt",
    "log",
    "lua",
    "makefile",
    "md",
    "mjs",
    "nix",
    "patch",
    "php",
    "pl",
    "properties",
    "proto",
    "ps1",
    "py",
    "r",
    "rb",
    "rs",
    "rst",
    "sass",
    "scala",
    "sh",
    "sql",
    "srt",
    "svelte",
    "swift",
    "tex",
    "tf",
    "toml",
    "ts",
    "tsv",
    "tsx",
    "txt",
    "vtt",
    "vue",
    "xml",
    "yaml",
    "yml",
    "zig",
];
/// MIME types of pictures that models take.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
/// MIME types outside `text/` that are text.
const TEXT_TYPES: [&str; 8] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/sql",
    "application/x-sh",
];

impl FileKind {
    /// The kind of an attachment, by its platform kind, MIME type and name. Telegram's photos say no MIME
    /// type; they are JPEG.
    #[must_use]
    pub fn of(kind: &str, mime_type: Option<&str>, name: Option<&str>) -> Self {
        let mime_type = mime_type.unwrap_or_default();
        let mime_type = mime_type.split(';').next().unwrap_or_default().trim();
        let mime_type = mime_type.to_ascii_lowercase();
        if kind == "voice" {
            return Self::Voice;
        }
        let is_photo = kind == "photo" && mime_type.is_empty();
        if is_photo || IMAGE_TYPES.contains(&mime_type.as_str()) {
            return Self::Image;
        }
        let ending = name.and_then(|name| name.rsplit('.').next());
        let ending = ending.map(str::to_ascii_lowercase).unwrap_or_default();
        let is_text = mime_type.starts_with("text/")
            || TEXT_TYPES.contains(&mime_type.as_str())
            || TEXT_ENDINGS.contains(&ending.as_str());
        if is_text { Self::Text } else { Self::Other }
    }

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Voice => "voice",
            Self::Other => "other",
        }
    }
}

/// What a message says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The platform's kind of attachment (`photo`, `document`, ...).
    pub kind: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its MIME type, if it is told.
    pub mime_type: Option<String>,
    /// Its size, if it is told.
    pub size_bytes: Option<u64>,
}

impl FileFacts {
    /// What kind of content it has.
    #[must_use]
    pub fn content_kind(&self) -> FileKind {
        FileKind::of(&self.kind, self.mime_type.as_deref(), self.name.as_deref())
    }

    /// Whether its message says nothing of it: the platform wants to be asked (Slack's `check_file_info`).
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.kind == "file" && self.name.is_none() && self.mime_type.is_none()
    }

    /// What it is called where it is shown: its name, else its kind.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kind)
    }
}

/// A file that is to be fetched, or to be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// The file.
    pub id: FileId,
    /// The account it came through.
    pub account: AccountId,
    /// The platform's id of it.
    pub platform_id: String,
    /// What its message says of it.
    pub facts: FileFacts,
    /// When its message was sent, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// When its message was captured.
    pub captured_at_ms: i64,
    /// Where its bytes are, once they are here.
    pub content: Option<ContentId>,
}

/// A file of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnFile {
    /// The file.
    pub id: FileId,
    /// The turn.
    pub turn: TurnId,
    /// The platform's id of it.
    pub platform_id: String,
    /// What its message says of it.
    pub facts: FileFacts,
    /// How far it is known.
    pub state: FileState,
    /// Why it is not here.
    pub reason: Option<String>,
    /// Its bytes and their number.
    pub content: Option<(ContentId, u64)>,
    /// Whether its speech is still to be written down.
    pub is_to_be_heard: bool,
}

impl TurnFile {
    /// Whether a tool gave it to be posted.
    #[must_use]
    pub fn is_for_people(&self) -> bool {
        self.platform_id.starts_with(OF_TOOL_FOR_PEOPLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_follows_from_what_the_message_says() {
        let table = [
            ("document", Some("text/plain"), Some("a"), FileKind::Text),
            (
                "file",
                Some("text/markdown; charset=utf-8"),
                None,
                FileKind::Text,
            ),
            (
                "file",
                Some("application/json"),
                Some("a.json"),
                FileKind::Text,
            ),
            (
                "document",
                Some("application/octet-stream"),
                Some("main.RS"),
                FileKind::Text,
            ),
            ("document", None, Some("notes.md"), FileKind::Text),
            ("photo", None, None, FileKind::Image),
            ("photo", Some("image/png"), Some("x.png"), FileKind::Image),
            ("document", Some("IMAGE/WEBP"), Some("x"), FileKind::Image),
            (
                "photo",
                Some("image/svg+xml"),
                Some("x.svg"),
                FileKind::Other,
            ),
            ("photo", Some("image/heic"), Some("x.heic"), FileKind::Other),
            ("voice", Some("audio/ogg"), None, FileKind::Voice),
            (
                "document",
                Some("application/pdf"),
                Some("plan.pdf"),
                FileKind::Other,
            ),
            ("document", None, Some("md"), FileKind::Text),
            ("document", None, None, FileKind::Other),
        ];
        for (kind, mime_type, name, expected) in table {
            assert_eq!(
                FileKind::of(kind, mime_type, name),
                expected,
                "{kind} {mime_type:?} {name:?}"
            );
        }
    }
}
