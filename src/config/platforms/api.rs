//! The API's own channel. It has no table: it exists if a token may ask agents, and the tokens' settings define it.

use std::collections::{BTreeMap, BTreeSet};

use super::{CheckedPlatform, PlatformFacts, PlatformSettings};
use crate::config::resolve::{Inherited, Review};
use crate::config::secret::SecretRef;
use crate::config::settings::{Access, Api, Channel, ReplyPrefix};
use vocative_core::ids::AgentName;
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::manners::Manners;
use vocative_core::sending::policy::Live;

/// The name of the API's own channel.
pub const API_CHANNEL: &str = "api";

/// The facts about the API's channel.
pub(in crate::config) const API: PlatformFacts = PlatformFacts {
    name: "api",
    title: "API",
    is_built: true,
    shape: "ApiShape",
    sample: "",
    sample_chat: "",
    has_streams: false,
    tells_privately: false,
    has_mentioned_commands: false,
    is_called_by_username: false,
    people: "whoever has a token that may ask",
    anybody: None,
    has_strangers: false,
    reaction: "none on the API",
    strange_secret: |_, _| None,
    refused_secret: |_, _| None,
    #[cfg(test)]
    taken: &[],
    from_start: &[],
};

/// The agents that tokens of the API may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiChannelSettings {
    /// The agents that at least one token may ask.
    pub agents: BTreeSet<AgentName>,
}

impl CheckedPlatform for ApiChannelSettings {
    fn facts(&self) -> &'static PlatformFacts {
        &API
    }

    /// Its secrets are those of `api.tokens`.
    fn secrets(&self) -> Vec<(&'static str, &SecretRef)> {
        Vec::new()
    }

    /// The tokens' settings say which agents they may ask.
    fn asked_agents(&self) -> Option<&BTreeSet<AgentName>> {
        Some(&self.agents)
    }
}

/// Adds the API's channel if a token may ask agents.
pub(in crate::config) fn add_api_channel(
    channels: &mut BTreeMap<String, Channel>,
    api: &Api,
    inherited: Inherited,
    review: &mut Review<'_>,
) {
    let asking: Vec<_> = api
        .tokens
        .iter()
        .filter_map(|it| it.asking.as_ref())
        .collect();
    let Some(first) = asking.first().filter(|_| api.enabled) else {
        return;
    };
    if let Some(other) = channels.get(API_CHANNEL) {
        review.problem(
            &other.platform.facts().table(API_CHANNEL),
            "the API's own channel has this name, where tokens may ask agents; call this one something else",
        );
        return;
    }
    let people: BTreeSet<&String> = asking.iter().map(|it| &it.person).collect();
    let agents = asking
        .iter()
        .flat_map(|it| it.agents.iter().cloned())
        .collect();
    let channel = Channel {
        name: API_CHANNEL.to_owned(),
        default_agent: first.agents.first().cloned(),
        access: Access {
            allow_chats: vec!["*".to_owned()],
            allow_people: people.into_iter().cloned().collect(),
            admins: Vec::new(),
            allow_bots: Vec::new(),
            has_pairing: false,
            serves_strangers: true,
            serves_guests: true,
        },
        thread_policy: ThreadPolicy::Mention,
        answers_in_threads: false,
        commands: Vec::new(),
        reply_prefix: ReplyPrefix::Never,
        mention_people: false,
        max_trigger_age_ms: inherited.max_trigger_age_minutes.saturating_mul(60_000),
        on_unknown: inherited.on_unknown,
        on_undecided: inherited.on_undecided,
        live: Live::Off,
        limits: inherited.limits,
        chats: BTreeMap::new(),
        retention_days: api.retention_days,
        manners: Manners::default(),
        agent_view: None,
        custom_names: false,
        chat_overlaps: BTreeMap::new(),
        chat_tools: BTreeMap::new(),
        chat_instructions: BTreeMap::new(),
        platform: PlatformSettings::Api(ApiChannelSettings { agents }),
    };
    channels.insert(API_CHANNEL.to_owned(), channel);
}
