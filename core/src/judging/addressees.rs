//! Whom a message addresses. Pure.
//!
//! A turn addresses an agent when it is in a direct chat with it, mentions the
//! bot's platform identity, replies to a message of that agent, is a command for it, opens with one
//! of its aliases or `@`-mentions one (never in code or a link), or follows up in a thread whose root
//! addressed it.

use vocative_contract::envelope::{
    ChatKind, CommandTarget, CommandWord, InboundMessage, SenderKind,
};
use vocative_contract::markup::mentioned_ids;

use crate::addressing::{MessageFacts, Rule};
use crate::ids::AgentName;
use crate::judging::policy::ThreadPolicy;
use crate::judging::policy::{AgentPolicy, ChannelPolicy};
use crate::judging::speech::{calls_name, opens_with_name, spoken_text, without_leading_mentions};

/// The agents a message addresses, each once, in the order of the configuration.
#[must_use]
pub fn addressed_agents(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> Vec<AgentName> {
    addressing(message, facts, policy).1
}

/// The agents a message addresses, and the rule that says so.
#[must_use]
pub fn addressing(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> (Rule, Vec<AgentName>) {
    if !may_address(message, policy) {
        return (Rule::Sender, Vec::new());
    }
    if is_for_another_bot(message) {
        return (Rule::AnotherBot, Vec::new());
    }
    let speech = spoken_text(without_labels(message));
    let named = named_agents(&speech, policy);
    if !named.is_empty() {
        return (Rule::Name, named);
    }
    if let Some(agent) = replied_agent(message, facts, policy) {
        return (Rule::Reply, vec![agent]);
    }
    if let Some(rule) = called(message, facts, &speech, policy) {
        let agent = thread_agent(facts, policy);
        return (
            rule,
            vec![agent.unwrap_or_else(|| policy.default_agent.clone())],
        );
    }
    if is_rooted(facts) && !is_told_again(message, facts) && may_follow_up(message, facts, policy) {
        let agent = thread_agent(facts, policy);
        return (Rule::FollowUp, agent.into_iter().collect());
    }
    (Rule::Chatter, Vec::new())
}

/// Whether a message may be meant for somebody else than the agents that it addresses: a name in a room may be only
/// spoken of, and what is said in a thread may go to another person there.
#[must_use]
pub fn is_unsure(rule: Rule, message: &InboundMessage, facts: &MessageFacts) -> bool {
    match rule {
        Rule::Name => !message.mentions_bot && !is_direct(facts, message),
        Rule::FollowUp => true,
        _ => false,
    }
}

/// What calls the bot itself in a message, whichever agent that is.
fn called(
    message: &InboundMessage,
    facts: &MessageFacts,
    speech: &str,
    policy: &ChannelPolicy,
) -> Option<Rule> {
    let rules = [
        (message.mentions_bot, Rule::Mention),
        (is_direct(facts, message), Rule::Direct),
        (is_own_command(message, policy), Rule::Command),
        (calls_everybody(speech, policy), Rule::Everybody),
    ];
    rules.into_iter().find(|(is, _)| *is).map(|(_, rule)| rule)
}

/// Whether a message may follow up in its thread, if the thread is an agent's: the message is a person's and mentions
/// nobody.
#[must_use]
pub fn may_follow_up(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> bool {
    let mentions_somebody =
        !mentioned_ids(&message.text).is_empty() || !message.mentions.is_empty();
    policy.thread_policy == ThreadPolicy::Participating
        && message.place.topic.is_none()
        && facts.thread.is_some()
        && !mentions_somebody
        && message.sender.kind == SenderKind::Person
        && may_address(message, policy)
        && !is_for_another_bot(message)
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
            ..
        }) => policy.commands.contains(name) || (policy.manners.commands && name == "stop"),
        _ => false,
    }
}

/// The words by which platforms address everybody in a room.
const EVERYBODY: [&str; 3] = ["here", "channel", "everyone"];

/// Whether a text addresses everybody in the room, and that addresses the agents here.
fn calls_everybody(speech: &str, policy: &ChannelPolicy) -> bool {
    policy.manners.broadcast_addresses && EVERYBODY.iter().any(|name| calls_name(speech, name))
}

fn is_direct(facts: &MessageFacts, message: &InboundMessage) -> bool {
    message.place.kind.or(facts.chat_kind) == Some(ChatKind::Direct)
}

/// The text behind the labels that say what was attached (`[photo] kael, look` opens with `kael`).
pub(super) fn without_labels(message: &InboundMessage) -> &str {
    let mut text = message.text.as_str();
    for _ in &message.attachments {
        let label = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((_, behind)) = label else {
            break;
        };
        text = behind.trim_start();
    }
    text
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

/// Whether an id of a mention is the bot's.
pub(super) fn names_bot(id: &str, policy: &ChannelPolicy) -> bool {
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

/// Whether a message was captured before and is not edited. Whether it is a follow-up was settled then, or when its
/// thread became an agent's: a message from before that is none, however often it is delivered.
fn is_told_again(message: &InboundMessage, facts: &MessageFacts) -> bool {
    facts.is_known && message.edit_marker.is_none()
}

/// Whether the thread a message is in has a root that addressed an agent, or is an agent's.
fn is_rooted(facts: &MessageFacts) -> bool {
    facts
        .thread
        .as_ref()
        .is_some_and(|thread| !thread.root_addressed.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::envelope::{Attachment, ReplyTo};
    use vocative_contract::markup::mention_token;

    use super::*;
    use crate::addressing::ThreadFacts;
    use crate::judging::testing::{agent, message, policy};

    fn addressed(message: &InboundMessage, facts: &MessageFacts) -> Vec<String> {
        let agents = addressed_agents(message, facts, &policy());
        agents.iter().map(ToString::to_string).collect()
    }

    fn in_channel(text: &str) -> Vec<String> {
        addressed(&message(text), &MessageFacts::default())
    }

    #[test]
    fn the_rule_that_decided_is_told() {
        let bot = mention_token("UBOT");
        let direct = MessageFacts {
            chat_kind: Some(ChatKind::Direct),
            ..MessageFacts::default()
        };
        let mut privately = message("hello");
        privately.place.kind = None;
        let mut stranger = message("kael, hi");
        stranger.sender.kind = SenderKind::Bot;
        let room = MessageFacts::default();
        let table = [
            (message("hello"), &room, Rule::Chatter),
            (message(&format!("{bot} hi")), &room, Rule::Mention),
            (message("kael, hi"), &room, Rule::Name),
            (privately, &direct, Rule::Direct),
            (stranger, &room, Rule::Sender),
        ];
        for (message, facts, expected) in table {
            let (rule, agents) = addressing(&message, facts, &policy());
            assert_eq!(rule, expected, "{:?}", message.text);
            let addresses = !matches!(rule, Rule::Chatter | Rule::Sender | Rule::AnotherBot);
            assert_eq!(!agents.is_empty(), addresses, "{:?}", message.text);
        }
    }

    #[test]
    fn a_word_to_everybody_addresses_only_where_that_is_set() {
        let mut open = policy();
        open.manners.broadcast_addresses = true;
        let facts = MessageFacts::default();
        for (text, expected) in [
            ("@here who knows?", 1),
            ("hi @everyone", 1),
            ("@channel", 1),
            ("`@here`", 0),
            ("over here", 0),
            ("@hereafter", 0),
        ] {
            assert_eq!(in_channel(text), [""; 0], "{text}");
            let agents = addressed_agents(&message(text), &facts, &open);
            assert_eq!(agents.len(), expected, "{text}");
        }
    }

    #[test]
    fn in_a_channel_names_and_mentions_address_and_chatter_does_not() {
        let bot = mention_token("UBOT");
        let someone = mention_token("U2");
        let table: &[(String, &[&str])] = &[
            ("hello".into(), &[]),
            (format!("{bot} hi"), &["kael"]),
            (format!("hi {bot}"), &["kael"]),
            (format!("{someone} hi"), &[]),
            (format!("{bot} ops: restart"), &["ops"]),
            (format!("{bot}, the oracle: when?"), &["ops"]),
            ("kael, hi".into(), &["kael"]),
            ("hey ops do it".into(), &["ops"]),
            ("ask @ops and @kael".into(), &["kael", "ops"]),
            ("kael said so".into(), &[]),
            ("`kael, hi`".into(), &[]),
            ("see https://x.y/@kael".into(), &[]),
            ("kaelin, hi".into(), &[]),
        ];
        for (text, expected) in table {
            assert_eq!(in_channel(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn everything_a_person_says_in_a_direct_chat_addresses() {
        let mut direct = message("hello");
        direct.place.kind = Some(ChatKind::Direct);
        assert_eq!(addressed(&direct, &MessageFacts::default()), ["kael"]);
        direct.text = "ops, hello".into();
        assert_eq!(addressed(&direct, &MessageFacts::default()), ["ops"]);
        let mut group_direct = message("hello");
        group_direct.place.kind = Some(ChatKind::GroupDirect);
        assert!(addressed(&group_direct, &MessageFacts::default()).is_empty());
    }

    #[test]
    fn a_kind_learnt_earlier_counts_where_the_event_does_not_say() {
        let mut unsaid = message("hello");
        unsaid.place.kind = None;
        let facts = MessageFacts {
            chat_kind: Some(ChatKind::Direct),
            ..MessageFacts::default()
        };
        assert_eq!(addressed(&unsaid, &facts), ["kael"]);
    }

    #[test]
    fn a_reply_addresses_the_agent_that_wrote_the_message() {
        let mut reply = message("why?");
        reply.reply_to = Some(ReplyTo {
            message_id: "1.0".into(),
            is_own: true,
            quote: None,
            is_passed_on: false,
        });
        assert_eq!(addressed(&reply, &MessageFacts::default()), ["kael"]);
        let facts = MessageFacts {
            replies_to_agent: Some(agent("ops")),
            ..MessageFacts::default()
        };
        assert_eq!(addressed(&reply, &facts), ["ops"]);
        reply.reply_to = Some(ReplyTo {
            message_id: "1.0".into(),
            is_own: false,
            quote: None,
            is_passed_on: false,
        });
        assert!(addressed(&reply, &MessageFacts::default()).is_empty());
    }

    #[test]
    fn commands_address_by_their_target() {
        let command = |name: &str, target, text: &str| {
            let mut message = message(text);
            message.command = Some(CommandWord {
                name: name.into(),
                target,
                opens_chat: false,
            });
            addressed(&message, &MessageFacts::default())
        };
        assert_eq!(
            command("x", CommandTarget::ThisBot, "/x@kael_bot go"),
            ["kael"]
        );
        assert_eq!(command("ask", CommandTarget::Anyone, "/ask go"), ["kael"]);
        assert_eq!(
            command("ask", CommandTarget::Anyone, "/ask ops: go"),
            ["ops"]
        );
        assert!(command("other", CommandTarget::Anyone, "/other go").is_empty());
        let suppressed = format!("/ask@other {} kael, hi", mention_token("UBOT"));
        assert!(command("ask", CommandTarget::AnotherBot, &suppressed).is_empty());
    }

    #[test]
    fn a_caption_opens_behind_the_labels_of_what_is_attached() {
        let photo = Attachment {
            kind: "photo".into(),
            file_id: None,
            name: None,
            mime_type: None,
            size_bytes: None,
        };
        let table: &[(&str, usize, &[&str])] = &[
            ("[photo] kael, look", 1, &["kael"]),
            ("[photo] [file a.pdf] ops: look", 2, &["ops"]),
            ("[photo] [kael, look]", 1, &[]),
            ("[photo] look, kael", 1, &[]),
            ("[photo]", 1, &[]),
            ("[photo] kael, look", 0, &[]),
        ];
        for (text, attachments, expected) in table {
            let mut captioned = message(text);
            captioned.attachments = vec![photo.clone(); *attachments];
            let found = addressed(&captioned, &MessageFacts::default());
            assert_eq!(found, *expected, "{text:?}");
        }
    }

    #[test]
    fn follow_ups_in_a_thread_count_unless_they_mention_somebody_else() {
        let facts = MessageFacts {
            thread: Some(ThreadFacts {
                root_addressed: vec![agent("ops")],
                agents_in_it: vec![],
            }),
            ..MessageFacts::default()
        };
        let mut follow_up = message("and then?");
        follow_up.place.thread = Some("1.0".into());
        assert_eq!(addressed(&follow_up, &facts), ["ops"]);
        let mut to_other = message(&format!("{} look", mention_token("U2")));
        to_other.place.thread = Some("1.0".into());
        assert!(addressed(&to_other, &facts).is_empty());
        let both = format!("{} {} look", mention_token("U2"), mention_token("UBOT"));
        let mut to_both = message(&both);
        to_both.place.thread = Some("1.0".into());
        assert_eq!(addressed(&to_both, &facts), ["ops"]);
        let mention_only = ChannelPolicy {
            thread_policy: ThreadPolicy::Mention,
            ..policy()
        };
        assert!(addressed_agents(&follow_up, &facts, &mention_only).is_empty());
        // A message that is delivered again is judged as before; an edited one may be judged anew.
        let known = MessageFacts {
            is_known: true,
            ..facts
        };
        assert!(addressed(&follow_up, &known).is_empty());
        follow_up.edit_marker = Some("2.0".into());
        assert_eq!(addressed(&follow_up, &known), ["ops"]);
    }

    #[test]
    fn what_a_person_says_in_any_thread_to_nobody_else_may_be_a_follow_up() {
        let in_thread = MessageFacts {
            thread: Some(ThreadFacts::default()),
            ..MessageFacts::default()
        };
        let may = |change: &dyn Fn(&mut InboundMessage), facts: &MessageFacts| {
            let mut message = message("and then?");
            message.place.thread = Some("1.0".into());
            change(&mut message);
            may_follow_up(&message, facts, &policy())
        };
        assert!(may(&|_| (), &in_thread));
        // A root is in no thread.
        assert!(!may(&|_| (), &MessageFacts::default()));
        // Its blocks mention somebody, its text does not.
        assert!(!may(
            &|message| message.mentions.push("U2".into()),
            &in_thread
        ));
        assert!(!may(
            &|message| message.sender.kind = SenderKind::Bot,
            &in_thread
        ));
        assert!(!may(
            &|message| message.sender.id = "UBOT".into(),
            &in_thread
        ));
        assert!(!may(
            &|message| message.place.topic = Some("7".into()),
            &in_thread
        ));
    }

    #[test]
    fn bots_and_the_platform_address_nobody_unless_allowed() {
        for kind in [SenderKind::Bot, SenderKind::System] {
            let mut other = message("kael, hi");
            other.sender.kind = kind;
            assert!(
                addressed(&other, &MessageFacts::default()).is_empty(),
                "{kind:?}"
            );
        }
        let mut own = message("kael, hi");
        own.sender.id = "UBOT".into();
        assert!(addressed(&own, &MessageFacts::default()).is_empty());
        let mut peer = message("kael, hi");
        peer.sender.kind = SenderKind::Bot;
        let allowed = ChannelPolicy {
            allow_bots: crate::judging::policy::AllowList::new(vec!["U1".into()]),
            ..policy()
        };
        assert_eq!(
            addressed_agents(&peer, &MessageFacts::default(), &allowed),
            [agent("kael")]
        );
    }
}
