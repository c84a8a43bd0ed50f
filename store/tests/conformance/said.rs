//! What somebody says, as capture hands it to the store. Used by the conformance suite and by the store's own tests.

use vocative_contract::envelope::{Attachment, ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_core::addressing::{Judge, Verdict};
use vocative_core::ids::{AccountId, AgentName};
use vocative_core::turn::ParticipantKind;

use super::api::{AccountBinding, Captured, CapturedTurn, NewMessage};

pub(crate) const NOW_MS: i64 = 1_700_000_000_000;

pub(crate) fn binding(channel: &str) -> AccountBinding {
    AccountBinding {
        channel: channel.to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Acme".to_owned(),
    }
}

pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

pub(crate) fn admitted(agents: &[&str]) -> Verdict {
    Verdict {
        is_admitted: true,
        addressed_to: agents.iter().map(|name| agent(name)).collect(),
        ..Verdict::default()
    }
}

/// The turn of whatever became of a message.
pub(crate) fn turn_of(captured: Captured) -> CapturedTurn {
    match captured {
        Captured::New(turn) | Captured::Revised(turn) | Captured::Duplicate(turn) => turn,
        other => panic!("{other:?} has no turn"),
    }
}

/// A message as somebody says it; the rest has defaults.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) id: &'static str,
    pub(crate) text: &'static str,
    pub(crate) chat: &'static str,
    pub(crate) kind: Option<ChatKind>,
    pub(crate) title: Option<&'static str>,
    pub(crate) thread: Option<&'static str>,
    pub(crate) topic: Option<&'static str>,
    pub(crate) by: &'static str,
    pub(crate) name: Option<&'static str>,
    pub(crate) reply_to: Option<&'static str>,
    pub(crate) album: Option<&'static str>,
    pub(crate) file: Option<&'static str>,
    pub(crate) edit_marker: Option<&'static str>,
    pub(crate) at_ms: i64,
    pub(crate) received_at_ms: i64,
}

/// Somebody says a text in the chat C1, in a second of its own for each id.
pub(crate) fn said(id: &'static str, text: &'static str) -> Said {
    Said {
        id,
        text,
        chat: "C1",
        kind: Some(ChatKind::Public),
        title: None,
        thread: None,
        topic: None,
        by: "U1",
        name: Some("Ada"),
        reply_to: None,
        album: None,
        file: None,
        edit_marker: None,
        at_ms: NOW_MS + id.parse::<i64>().unwrap_or(0) * 1_000,
        received_at_ms: NOW_MS + 500_000,
    }
}

impl Said {
    pub(crate) fn message(self, account: AccountId, judge: Judge) -> NewMessage {
        // Of one without a name nothing is said.
        let attachment = |name: &str| Attachment {
            kind: match name {
                "" => "file",
                name if name.ends_with(".oga") => "voice",
                _ => "photo",
            }
            .to_owned(),
            file_id: Some(format!("file-{name}")),
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            mime_type: None,
            size_bytes: Some(9).filter(|_| !name.is_empty()),
        };
        NewMessage {
            account,
            place: Place {
                chat: self.chat.to_owned(),
                kind: self.kind,
                title: self.title.map(str::to_owned),
                thread: self.thread.map(str::to_owned),
                topic: self.topic.map(str::to_owned),
                ..Place::default()
            },
            scope_override: None,
            message_id: self.id.to_owned(),
            sender: Sender {
                id: self.by.to_owned(),
                display_name: self.name.map(str::to_owned),
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            sender_kind: ParticipantKind::User,
            text: self.text.to_owned(),
            attachments: self.file.map(attachment).into_iter().collect(),
            reply_to: self.reply_to.map(str::to_owned),
            quote: None,
            album: self.album.map(str::to_owned),
            sent_at_ms: self.at_ms,
            ordinal: self.id.parse().unwrap_or(0),
            is_edit: self.edit_marker.is_some(),
            // An empty marker stands for an edit without one.
            edit_marker: self
                .edit_marker
                .filter(|marker| !marker.is_empty())
                .map(str::to_owned),
            received_at_ms: self.received_at_ms,
            tokens: None,
            keep_revisions: true,
            raw: Some(format!("{{\"text\":\"{}\"}}", self.text)),
            judge,
            judge_follow_up: None,
        }
    }
}
