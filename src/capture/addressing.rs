//! Whom a message addresses. Pure.
//!
//! Source: DESIGN §7. A turn addresses an agent when it is in a direct chat with it, mentions the
//! bot's platform identity, replies to a message of that agent, is a command for it, opens with one
//! of its aliases or `@`-mentions one (never in code or a link), or follows up in a thread whose root
//! addressed it.

use vocative_channels::envelope::{
    ChatKind, CommandTarget, CommandWord, InboundMessage, SenderKind,
};
use vocative_channels::markup::mentioned_ids;

use crate::capture::policy::{AgentPolicy, ChannelPolicy, ThreadPolicy};
use crate::capture::speech::{calls_name, opens_with_name, spoken_text, without_leading_mentions};
use crate::domain::addressing::MessageFacts;
use crate::domain::ids::AgentName;

/// The agents a message addresses, each once, in the order of the configuration.
#[must_use]
pub fn addressed_agents(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> Vec<AgentName> {
    if !may_address(message, policy) || is_for_another_bot(message) {
        return Vec::new();
    }
    let speech = spoken_text(&message.text);
    let named = named_agents(&speech, policy);
    if !named.is_empty() {
        return named;
    }
    if let Some(agent) = replied_agent(message, facts, policy) {
        return vec![agent];
    }
    if is_direct(facts, message) || message.mentions_bot || is_own_command(message, policy) {
        return vec![thread_agent(facts, policy).unwrap_or_else(|| policy.default_agent.clone())];
    }
    if follows_up(message, facts, policy) {
        return thread_agent(facts, policy).into_iter().collect();
    }
    Vec::new()
}

/// Whether this sender's messages can address anybody: people, and bots that are allowed to.
fn may_address(message: &InboundMessage, policy: &ChannelPolicy) -> bool {
    match message.sender.kind {
        SenderKind::Person => !policy.identity.is_self(&message.sender.id),
        SenderKind::Bot => policy.allow_bots.allows(&message.sender.id),
        SenderKind::System => false,
    }
}

fn is_for_another_bot(message: &InboundMessage) -> bool {
    matches!(
        &message.command,
        Some(CommandWord {
            target: CommandTarget::AnotherBot,
            ..
        })
    )
}

fn is_own_command(message: &InboundMessage, policy: &ChannelPolicy) -> bool {
    match &message.command {
        Some(CommandWord {
            target: CommandTarget::ThisBot,
            ..
        }) => true,
        Some(CommandWord {
            target: CommandTarget::Anyone,
            name,
        }) => policy.commands.contains(name),
        _ => false,
    }
}

fn is_direct(facts: &MessageFacts, message: &InboundMessage) -> bool {
    message.place.kind.or(facts.chat_kind) == Some(ChatKind::Direct)
}

/// Agents whose alias opens the text or is `@`-mentioned in it.
fn named_agents(speech: &str, policy: &ChannelPolicy) -> Vec<AgentName> {
    let opening = without_leading_mentions(speech, &|id| names_bot(id, policy));
    let opening = without_command(opening);
    let is_named = |agent: &&AgentPolicy| {
        agent
            .aliases
            .iter()
            .any(|alias| opens_with_name(opening, alias) || calls_name(speech, alias))
    };
    policy
        .agents
        .iter()
        .filter(is_named)
        .map(|agent| agent.name.clone())
        .collect()
}

fn names_bot(id: &str, policy: &ChannelPolicy) -> bool {
    let username = policy.identity.username.as_deref();
    policy.identity.is_self(id)
        || id
            .strip_prefix('@')
            .is_some_and(|name| Some(name) == username)
}

/// The text behind a command word (`/ask@bot ops: …` opens with `ops`).
fn without_command(text: &str) -> &str {
    if !text.starts_with('/') {
        return text;
    }
    text.split_once(char::is_whitespace)
        .map_or("", |(_, rest)| rest.trim_start())
}

fn replied_agent(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> Option<AgentName> {
    if let Some(agent) = &facts.replies_to_agent {
        return policy.agent(agent).map(|agent| agent.name.clone());
    }
    let is_own = message.reply_to.as_ref().is_some_and(|reply| reply.is_own);
    is_own.then(|| policy.default_agent.clone())
}

/// The agent of the thread a message is in: whom its root addressed, else who wrote in it.
fn thread_agent(facts: &MessageFacts, policy: &ChannelPolicy) -> Option<AgentName> {
    let thread = facts.thread.as_ref()?;
    thread
        .root_addressed
        .iter()
        .chain(&thread.agents_in_it)
        .find(|agent| policy.agent(agent).is_some())
        .cloned()
}

/// Whether a message goes on with a thread whose root addressed an agent.
fn follows_up(message: &InboundMessage, facts: &MessageFacts, policy: &ChannelPolicy) -> bool {
    let is_rooted = facts
        .thread
        .as_ref()
        .is_some_and(|thread| !thread.root_addressed.is_empty());
    let mentions_somebody =
        !mentioned_ids(&message.text).is_empty() || !message.mentions.is_empty();
    policy.thread_policy == ThreadPolicy::Participating
        && message.place.topic.is_none()
        && is_rooted
        && !mentions_somebody
        && message.sender.kind == SenderKind::Person
}
