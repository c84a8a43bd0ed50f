//! How the bot behaves in a channel: commands, reactions, bots among themselves, quiet hours. Settings as they were
//! checked.

use std::collections::BTreeMap;

use crate::command::CommandName;
use crate::wall_clock::{QuietHours, Zone};
use crate::words::Language;

/// How the bot behaves in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// In which language it speaks itself.
    pub language: Language,
    /// Whether commands are carried out.
    pub commands: bool,
    /// Commands that only admins may use.
    pub admins_only: Vec<CommandName>,
    /// The reaction that says that a message was heard and will be answered; empty = none.
    pub ack_reaction: String,
    /// Whether it stays once the message is answered.
    pub keeps_ack_reaction: bool,
    /// The most messages of other bots that are answered in a row in a chat where no person says anything.
    pub bot_exchanges_max: u32,
    /// The zone of times that people say.
    pub zone: Zone,
    /// When nothing is answered.
    pub quiet: Option<QuietHours>,
    /// Whether that holds in direct chats, too.
    pub is_quiet_in_direct: bool,
    /// When nothing is answered in chats that have hours of their own, by platform id; `None` = always answered.
    pub quiet_in: BTreeMap<String, Option<QuietHours>>,
    /// Whether a word to everybody (`@here`) addresses the default agent.
    pub broadcast_addresses: bool,
    /// What is said in a room that the bot was added to; empty = nothing.
    pub introduction: String,
    /// How long an answer follows edits of its question, in milliseconds; 0 = never.
    pub edit_answer_within_ms: i64,
}
