//! Who gave a command, and where.

use std::path::Path;

use vocative_contract::outbound::Target;

use crate::rows::places::ConversationRow;
use vocative_core::ids::{AccountId, ChatId, ParticipantId};
use vocative_core::turn::Position;

/// Who gave a command, and where.
pub(crate) struct CommandGiver<'a> {
    pub(crate) account: AccountId,
    pub(crate) chat: ChatId,
    /// The platform's id of the chat.
    pub(crate) platform_chat: &'a str,
    pub(crate) person: ParticipantId,
    /// The platform's id of the person.
    pub(crate) sender: &'a str,
    pub(crate) conversation: &'a ConversationRow,
    /// Where the command stands in it.
    pub(crate) at: Position,
    /// Where an answer goes.
    pub(crate) target: Target,
    /// The ledger file to which erasure orders are also written.
    pub(crate) ledger: Option<&'a Path>,
    pub(crate) now_ms: i64,
}
