//! The settings for single chats, in the form that agents need.

use std::collections::BTreeMap;

use crate::config::{self, Config, Template};
use vocative_core::options::AssemblerOptions;
use vocative_core::place::ChatName;

/// How an agent's prompts are assembled in the chats that have settings of their own.
pub(super) fn chat_options(
    config: &Config,
    agent: &config::Agent,
) -> BTreeMap<ChatName, AssemblerOptions> {
    in_its_chats(config, agent, |channel| &channel.chats)
        .map(|(name, overrides)| (name, overrides.over(&agent.prompt)))
        .collect()
}

/// An agent's instructions in the chats that add something to them.
pub(super) fn chat_instructions(
    config: &Config,
    agent: &config::Agent,
) -> BTreeMap<ChatName, Template> {
    in_its_chats(config, agent, |channel| &channel.chat_instructions)
        .map(|(name, further)| (name, agent.instructions.clone().and(further)))
        .collect()
}

/// The settings for single chats of the channels where an agent works.
fn in_its_chats<'a, T: 'a>(
    config: &'a Config,
    agent: &'a config::Agent,
    set: fn(&config::Channel) -> &BTreeMap<String, T>,
) -> impl Iterator<Item = (ChatName, &'a T)> {
    let works = |channel: &&config::Channel| {
        agent.channels.has(&channel.name) || works_in(config, agent, &channel.name)
    };
    let channels = config.channels.values().filter(works);
    channels.flat_map(move |channel| {
        set(channel).iter().map(|(chat, value)| {
            let name = ChatName {
                channel: channel.name.clone(),
                chat: chat.clone(),
            };
            (name, value)
        })
    })
}

/// Whether a network that an agent works for serves a channel.
fn works_in(config: &Config, agent: &config::Agent, channel: &str) -> bool {
    let mut networks = config
        .agents
        .values()
        .filter_map(|face| Some((face, face.network.as_ref()?)));
    networks
        .any(|(face, of)| face.channels.has(channel) && of.network.callable().contains(&agent.name))
}

/// The allowed tools of the chats that don't allow all.
pub(super) fn chat_tools(config: &Config) -> BTreeMap<ChatName, Vec<String>> {
    let channels = config.channels.values();
    let of_channel = |channel: &config::Channel| {
        let name = |chat: &String| ChatName {
            channel: channel.name.clone(),
            chat: chat.clone(),
        };
        let chats = channel.chat_tools.iter();
        let chats = chats.map(|(chat, tools)| (name(chat), tools.clone()));
        chats.collect::<Vec<_>>()
    };
    channels.flat_map(of_channel).collect()
}
