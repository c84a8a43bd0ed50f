//! Messages and policies for the tables of this room.

use std::collections::BTreeMap;
use std::sync::Arc;

use vocative_contract::envelope::{ChatKind, InboundMessage, Place, Sender, SenderKind};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::mentioned_ids;

use crate::addressing::Overlap;
use crate::ids::{AccountId, AgentName};
use crate::judging::policy::ThreadPolicy;
use crate::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use crate::manners::Manners;
use crate::presence::Presence;

/// An agent of this name.
pub fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

/// A Slack-like policy with two agents, `kael` (default) and `ops`.
pub fn policy() -> ChannelPolicy {
    let agent_policy = |name: &str, aliases: &[&str]| AgentPolicy {
        name: agent(name),
        display_name: name.to_owned(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        overlap: Overlap::Auto,
        presence: Presence::default(),
        models: Vec::new(),
    };
    ChannelPolicy {
        channel: "acme".into(),
        account: AccountId(1),
        identity: Identity {
            platform: Platform::Slack,
            account: "T1".into(),
            account_name: "Acme".into(),
            user_id: "UBOT".into(),
            other_ids: vec!["BBOT".into()],
            username: Some("kael_bot".into()),
            display_name: "Kael".into(),
            warnings: vec![],
            organisation: None,
        },
        agents: vec![
            agent_policy("kael", &["kael"]),
            agent_policy("ops", &["ops", "the oracle"]),
        ],
        default_agent: agent("kael"),
        allow_chats: AllowList::new(vec!["*".into()]),
        allow_people: AllowList::new(vec!["*".into()]),
        admins: vec!["UADMIN".into()],
        has_pairing: false,
        paired: Arc::default(),
        serves_strangers: false,
        serves_guests: true,
        allow_bots: AllowList::default(),
        thread_policy: ThreadPolicy::Participating,
        answers_in_threads: true,
        commands: vec!["ask".into()],
        chat_overlaps: BTreeMap::new(),
        limits: Limits::default(),
        manners: Manners {
            commands: true,
            bot_exchanges_max: 3,
            ..Manners::default()
        },
        has_agent_view: false,
        tells_privately: true,
        has_mentioned_commands: true,
    }
}

/// A person's message in a public channel.
pub fn message(text: &str) -> InboundMessage {
    let mentions = mentioned_ids(text);
    InboundMessage {
        place: Place {
            chat: "C1".into(),
            kind: Some(ChatKind::Public),
            ..Place::default()
        },
        message_id: "1.1".into(),
        sender: Sender {
            id: "U1".into(),
            display_name: Some("Ann".into()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        text: text.into(),
        mentions_bot: mentions.iter().any(|id| id == "UBOT"),
        mentions,
        command: None,
        reply_to: None,
        attachments: vec![],
        album: None,
        sent_at_ms: 1_000_000,
        ordinal: 0,
        edit_marker: None,
    }
}
