//! Connections to platforms.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::platforms::PlatformSettings;
use crate::config::template::Template;
use vocative_core::addressing::Overlap;
use vocative_core::ids::AgentName;
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::manners::Manners;
use vocative_core::options::OptionOverrides;
use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};

/// Limits on the use of one channel; 0 = no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most runs for one person in one hour.
    pub max_runs_per_hour_person: u32,
    /// The most runs in one chat in one hour.
    pub max_runs_per_hour_chat: u32,
    /// The most tokens of the channel in one UTC day.
    pub tokens_per_day: u64,
    /// The most tokens for one person in one UTC day.
    pub tokens_per_day_person: u64,
    /// The highest cost of the channel in one UTC day, in millionths of `limits.currency`.
    pub cost_micros_per_day: u64,
    /// The highest cost for one person in one UTC day, in millionths of `limits.currency`.
    pub cost_micros_per_day_person: u64,
}

/// Days for which a channel's data is kept; 0 = until it is erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionDays {
    /// Turns: text, earlier texts, attachments' names, full text.
    #[schemars(range(min = 0, max = 36_500))]
    pub text: u32,
    /// Raw events, commands, and texts before an edit.
    #[schemars(range(min = 0, max = 36_500))]
    pub raw: u32,
    /// Details of runs: model calls, tool calls and results, texts and attempts of posts.
    #[schemars(range(min = 0, max = 36_500))]
    pub runs: u32,
}

/// A configured connection to a platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its name in the configuration, unique over all platforms.
    pub name: String,
    /// The agent that answers when no alias picks one.
    pub default_agent: Option<AgentName>,
    /// Who is served.
    pub access: Access,
    /// What counts as a follow-up in a thread.
    pub thread_policy: ThreadPolicy,
    /// Whether an answer in a room opens a thread, where the platform has threads.
    pub answers_in_threads: bool,
    /// Commands that address the default agent, without the slash.
    pub commands: Vec<String>,
    /// Whether an answer starts with its agent's name.
    pub reply_prefix: ReplyPrefix,
    /// Whether `@Name` in an answer mentions a person who spoke in the conversation.
    pub mention_people: bool,
    /// Messages older than this, in milliseconds, are stored but not answered.
    pub max_trigger_age_ms: u64,
    /// What happens to a post of unknown outcome.
    pub on_unknown: OnUnknown,
    /// What happens to a post if it can't be found out whether it arrived.
    pub on_undecided: OnUndecided,
    /// Whether people see an answer while it is written.
    pub live: Live,
    /// Limits on its use.
    pub limits: Limits,
    /// Prompt options of single chats, by the platform's id of the chat.
    pub chats: BTreeMap<String, OptionOverrides>,
    /// How long its data is kept.
    pub retention_days: RetentionDays,
    /// How the bot behaves there.
    pub manners: Manners,
    /// Whether posts of an agent are shown under its name and icon.
    pub custom_names: bool,
    /// What the bot's own surface shows, if the platform has one and the app declares it.
    pub agent_view: Option<AgentView>,
    /// What happens to a message while an earlier one waits, for single chats that differ from their agents.
    pub chat_overlaps: BTreeMap<String, Overlap>,
    /// The text behind the instructions of every agent, for single chats.
    pub chat_instructions: BTreeMap<String, Template>,
    /// The tools that agents may use, for single chats that don't allow all.
    pub chat_tools: BTreeMap<String, Vec<String>>,
    /// The settings that only its platform has.
    pub platform: PlatformSettings,
}

/// A bot's own surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentView {
    /// Suggested questions: the text that is shown, and the text that is sent when one is chosen.
    pub prompts: Vec<(String, String)>,
}

/// Who is served on a channel, by platform id; `*` = all. The rules that use these lists are in capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Chats that are served.
    pub allow_chats: Vec<String>,
    /// People who are served; empty = everybody in a served room, nobody in private.
    pub allow_people: Vec<String>,
    /// People who may use admin commands; never `*`.
    pub admins: Vec<String>,
    /// Other bots that may address an agent.
    pub allow_bots: Vec<String>,
    /// Whether people who are not listed may be let in to a direct chat by a code.
    pub has_pairing: bool,
    /// Whether people of other organisations in shared channels are served.
    pub serves_strangers: bool,
    /// Whether guests of our own organisation are served.
    pub serves_guests: bool,
}

/// Whether an answer starts with its agent's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyPrefix {
    /// If several agents serve the channel.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}
