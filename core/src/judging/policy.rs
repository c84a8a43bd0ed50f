//! What a channel's configuration says about access, addressing and limits, with the identity that
//! was learnt at start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use vocative_contract::identity::Identity;

use crate::addressing::Overlap;
use crate::ids::{AccountId, AgentName};
use crate::manners::Manners;
use crate::presence::Presence;
use crate::price::{Spent, shown_amount};
use crate::words::Language;

/// What counts as a follow-up in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadPolicy {
    /// Every message in a thread whose root addressed the agent.
    Participating,
    /// Only messages that address the agent themselves.
    Mention,
}

/// The policy of one channel.
#[derive(Clone, Debug)]
pub struct ChannelPolicy {
    /// The configured channel's name.
    pub channel: String,
    /// The account it turned out to be.
    pub account: AccountId,
    /// Who we are there.
    pub identity: Identity,
    /// The agents that serve it; not empty.
    pub agents: Vec<AgentPolicy>,
    /// Who answers where no alias picks one.
    pub default_agent: AgentName,
    /// Chats that are served, by platform id.
    pub allow_chats: AllowList,
    /// People who are served, by platform id. If empty, everybody in an allowed group is served, and no one in
    /// private.
    pub allow_people: AllowList,
    /// People who are always served, by platform id.
    pub admins: Vec<String>,
    /// Whether somebody who is not listed is let in to a direct chat by a code.
    pub has_pairing: bool,
    /// People who were let in so, by platform id.
    pub paired: Arc<BTreeSet<String>>,
    /// Whether people of another organisation in a shared channel are served.
    pub serves_strangers: bool,
    /// Whether guests of our own organisation are served.
    pub serves_guests: bool,
    /// Bots that may address an agent, by platform id.
    pub allow_bots: AllowList,
    /// Whether follow-ups in a thread whose root addressed an agent address it.
    pub thread_policy: ThreadPolicy,
    /// Whether an answer to a message in a channel opens a thread (where the platform has threads).
    pub answers_in_threads: bool,
    /// Commands that address the default agent without naming the bot (`ask`).
    pub commands: Vec<String>,
    /// What becomes of a message while an earlier one waits, in chats that differ from their agents, by
    /// platform id.
    pub chat_overlaps: BTreeMap<String, Overlap>,
    /// Limits.
    pub limits: Limits,
    /// How the bot behaves.
    pub manners: Manners,
    /// Whether the bot has a surface of its own, where every question begins a thread.
    pub has_agent_view: bool,
    /// Whether the platform can show something to one person alone.
    pub tells_privately: bool,
    /// Whether commands may stand behind a mention of the bot: where the platform's own can't be given
    /// everywhere.
    pub has_mentioned_commands: bool,
}

/// What addressing needs to know of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPolicy {
    /// Its name.
    pub name: AgentName,
    /// Its name for people.
    pub display_name: String,
    /// Names by which it is addressed, its name and display name included.
    pub aliases: Vec<String>,
    /// What becomes of a message to it while an earlier one still waits for its answer.
    pub overlap: Overlap,
    /// Where, for whom and when it works.
    pub presence: Presence,
    /// The configured names of the models that a question may ask for.
    pub models: Vec<String>,
}

/// Which ids are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<String>);

impl AllowList {
    /// A list of ids; `*` allows all.
    #[must_use]
    pub fn new(ids: Vec<String>) -> Self {
        Self(ids)
    }

    /// Whether an id is on the list.
    #[must_use]
    pub fn allows(&self, id: &str) -> bool {
        self.0.iter().any(|allowed| allowed == "*" || allowed == id)
    }

    /// Whether an id stands on the list itself.
    #[must_use]
    pub fn names(&self, id: &str) -> bool {
        self.0.iter().any(|allowed| allowed == id)
    }

    /// Whether nothing is on the list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Limits on what one channel takes in and answers. A limit of 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Runs per person in an hour.
    pub runs_per_hour_person: u32,
    /// Runs per chat in an hour.
    pub runs_per_hour_chat: u32,
    /// Tokens of the channel in a UTC day: answers, summaries, voice notes.
    pub tokens_per_day: u64,
    /// Tokens that one person's questions and voice notes may cost in a UTC day.
    pub tokens_per_day_person: u64,
    /// What the channel may cost in a UTC day, in millionths of the currency of the prices.
    pub cost_micros_per_day: u64,
    /// What one person's questions may cost in a UTC day, in the same.
    pub cost_micros_per_day_person: u64,
    /// A trigger older than this by platform time is captured and not answered, in milliseconds.
    pub max_trigger_age_ms: i64,
    /// How long the run of an album waits for further items, in milliseconds.
    pub album_wait_ms: i64,
    /// The length above which a text is cut, with a marker, in bytes.
    pub inbound_text_max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            runs_per_hour_person: 60,
            runs_per_hour_chat: 120,
            tokens_per_day: 0,
            tokens_per_day_person: 0,
            cost_micros_per_day: 0,
            cost_micros_per_day_person: 0,
            max_trigger_age_ms: 3_600_000,
            album_wait_ms: 1_000,
            inbound_text_max_bytes: 65_536,
        }
    }
}

impl Limits {
    /// What of the day is used up, given what the person and the whole channel have spent.
    #[must_use]
    pub fn spent(&self, by_person: Spent, by_channel: Spent) -> Option<SpentUp> {
        let is_over = |count: u64, max: u64| max > 0 && count >= max;
        if is_over(by_person.tokens, self.tokens_per_day_person)
            || is_over(by_person.cost_micros, self.cost_micros_per_day_person)
        {
            return Some(SpentUp::Person);
        }
        let is_channel = is_over(by_channel.tokens, self.tokens_per_day)
            || is_over(by_channel.cost_micros, self.cost_micros_per_day);
        is_channel.then_some(SpentUp::Channel)
    }

    /// Whether a request that may cost that much could pass a cap of the day, in millionths; a cap that is met already
    /// is [`Limits::spent`].
    #[must_use]
    pub fn too_costly(
        &self,
        by_person: Spent,
        by_channel: Spent,
        most_micros: u64,
    ) -> Option<TooCostly> {
        let caps = [
            (SpentUp::Person, self.cost_micros_per_day_person, by_person),
            (SpentUp::Channel, self.cost_micros_per_day, by_channel),
        ];
        let caps = caps.into_iter().filter(|(_, cap, _)| *cap > 0);
        let left = caps.map(|(whose, cap, spent)| TooCostly {
            whose,
            most_micros,
            left_micros: cap.saturating_sub(spent.cost_micros),
        });
        left.min_by_key(|it| it.left_micros)
            .filter(|it| it.left_micros < most_micros)
    }
}

/// A request that could pass a cap of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly {
    /// Whose cap.
    pub whose: SpentUp,
    /// What it may cost, in millionths of the currency of the prices.
    pub most_micros: u64,
    /// What is left of the day, in the same.
    pub left_micros: u64,
}

impl TooCostly {
    /// The words with which people are told; `currency` = `limits.currency`.
    #[must_use]
    pub fn text(self, currency: &str, language: Language) -> String {
        let (most, left) = (
            shown_amount(self.most_micros),
            shown_amount(self.left_micros),
        );
        match self.whose {
            SpentUp::Person => language.too_costly_person(most, currency, left),
            SpentUp::Channel => language.too_costly_channel(most, currency, left),
        }
    }
}

/// What of the day is used up: the person's or the channel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpentUp {
    /// One person's.
    Person,
    /// Everybody's.
    Channel,
}

impl SpentUp {
    /// The words with which people are told.
    #[must_use]
    pub fn text(self, language: Language) -> String {
        match self {
            Self::Person => language.day_used_up_person(),
            Self::Channel => language.day_used_up_channel(),
        }
    }
}

impl ChannelPolicy {
    /// The agent of that name, if it serves this channel.
    #[must_use]
    pub fn agent(&self, name: &AgentName) -> Option<&AgentPolicy> {
        self.agents.iter().find(|agent| agent.name == *name)
    }

    /// What becomes of a message to an agent in a chat while an earlier one waits.
    #[must_use]
    pub fn overlap(&self, agent: &AgentName, chat: &str) -> Overlap {
        let there = self.chat_overlaps.get(chat).copied();
        let own = || self.agent(agent).map(|agent| agent.overlap);
        there.or_else(own).unwrap_or(Overlap::Auto)
    }
}
