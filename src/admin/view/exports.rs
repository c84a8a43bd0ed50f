//! Exported conversations.

use serde::{Deserialize, Serialize};

use super::conversations::{ConversationView, ParticipantsView};
use crate::transcripts::lines::{MessageLine, ThreadLine};
use vocative_store::contract::ExportTurn;

/// A page of a whole conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportPageView {
    /// The conversation.
    pub conversation: ConversationView,
    /// On the first page, for people: who takes part.
    pub participants: ParticipantsView,
    /// Its messages, in the room's order.
    pub messages: Vec<ExportMessageView>,
    /// The newest capture order that any page holds.
    pub as_of: i64,
    /// The cursor of the next page; absent on the last.
    pub next: Option<[i64; 3]>,
}

/// A message of an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportMessageView {
    /// The message in the form for programs.
    pub line: MessageLine,
    /// When it was said, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// For people: what was said, mentions as names.
    pub text: String,
    /// For people: the passage it quotes.
    pub quote: Option<String>,
    /// For people: what it replies to.
    pub reply: Option<ReplyView>,
}

/// What a message replies to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplyView {
    /// Who said it.
    pub speaker: String,
    /// How it begins.
    pub text: String,
}

impl ExportMessageView {
    /// The view of an exported turn in a thread or not.
    #[must_use]
    pub fn of(exported: &ExportTurn, thread: Option<&ThreadLine>, is_shown: bool) -> Self {
        let reply = exported.replied_to.as_ref().map(|reply| ReplyView {
            speaker: reply.speaker.clone(),
            text: reply.text.clone(),
        });
        let text = if is_shown {
            exported.text.clone()
        } else {
            String::new()
        };
        Self {
            line: MessageLine::of(exported, thread),
            sent_at_ms: exported.turn.said_at_ms,
            text,
            quote: exported.quote.clone().filter(|_| is_shown),
            reply: reply.filter(|_| is_shown),
        }
    }
}
