//! What a platform can do, as data.

/// How a platform counts the length of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthUnit {
    /// Unicode scalar values.
    Chars,
    /// UTF-16 code units.
    Utf16,
}

impl LengthUnit {
    /// The length of a text in this unit.
    #[must_use]
    pub fn len(self, text: &str) -> usize {
        match self {
            Self::Chars => text.chars().count(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
        }
    }
}

/// What a platform can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest text of one post, in `text_unit`.
    pub text_max: usize,
    /// How `text_max` counts.
    pub text_unit: LengthUnit,
    /// Whether an answer in a channel can open a thread.
    pub has_threads: bool,
    /// Whether a post can refer to the message it answers.
    pub has_replies: bool,
    /// Whether a post of unknown outcome can be looked for (Slack history with metadata).
    pub can_read_back: bool,
    /// Whether messages that were sent while the bot was not connected can be read
    /// ([`crate::channel::Channel::history`]).
    pub can_read_history: bool,
    /// Whether a post can be a file.
    pub uploads_files: bool,
    /// Whether the bot's own posts come back as events.
    pub echoes_posts: bool,
    /// How long a "working" sign lasts before it must be sent again, in milliseconds; 0 = there is
    /// none.
    pub working_sign_ms: u64,
    /// The shortest time between two posts in one chat, in milliseconds.
    pub chat_interval_ms: u64,
    /// The shortest time between two states of a post that is edited while its text is written, in
    /// milliseconds; 0 = posts can't be edited.
    pub live_edit_ms: u64,
    /// The shortest time between two previews of a text that is being written, in milliseconds, in
    /// chats with one person; 0 = there are none.
    pub live_preview_ms: u64,
    /// The shortest time between two additions to a post that grows at its end, in milliseconds; 0 = there are none.
    pub live_stream_ms: u64,
}
