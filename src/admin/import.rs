//! What an import says over the socket: batches of admitted messages, and what became of them.
//!
//! The shapes are those of [`vocative_channels::export`], without what importing does not use (whom a
//! message mentions, commands, raw JSON).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use vocative_channels::export::{ExportedIdentity, ExportedMessage};
use vocative_contract::envelope::{
    Attachment, ChatKind, InboundMessage, Place, ReplyTo, Sender, SenderKind,
};

use crate::capture::import::Batch;
use vocative_core::ids::AccountId;
use vocative_store::contract::{ImportCounts, ImportProgress};

/// Into which account an import goes, and how far an earlier one got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportBeginView {
    /// The platform.
    pub platform: String,
    /// The platform's account id.
    pub account: String,
    /// What people call the account.
    pub name: String,
    /// The bot's own user ids, its user id first; empty while no start has learnt them.
    pub own_ids: Vec<String>,
    /// People who were let in by a code.
    #[serde(default)]
    pub paired: BTreeSet<String>,
    /// Items of the export that an earlier, interrupted import had handled.
    pub things: u64,
    /// The known topics of the account's chats.
    #[serde(default)]
    pub topics: Vec<TopicLine>,
}

/// A topic of a forum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicLine {
    /// The platform's chat id.
    pub chat: String,
    /// The platform's id of the topic.
    pub topic: String,
    /// What it is called, where that is known.
    pub title: Option<String>,
}

/// What is imported in one transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportBatchView {
    messages: Vec<ImportedMessageLine>,
    people: Vec<SenderLine>,
    fingerprint: String,
    things: u64,
    is_finished: bool,
    is_preview: bool,
    /// Whether an edit keeps the text it replaces.
    pub keeps_revisions: bool,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportCountsView {
    /// New turns.
    pub imported: u64,
    /// Edits that the bot had not received live.
    pub revised: u64,
    /// Messages that were known before.
    pub known: u64,
    /// Messages that were deleted or erased before.
    pub gone: u64,
    /// Posts of this bot that its own answers stand for.
    pub own: u64,
    /// Messages that overlap with live turns and were found among them.
    pub overlap_found: u64,
    /// Messages that overlap with live turns and were not found among them.
    pub overlap_missing: u64,
    /// Messages under whose id another message is known.
    pub conflicts: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ImportedMessageLine {
    chat: String,
    kind: Option<String>,
    title: Option<String>,
    thread: Option<String>,
    topic: Option<String>,
    topic_title: Option<String>,
    id: String,
    /// For an id that counts in one person's own message box: which of the equal messages it is.
    own_box: Option<u32>,
    is_own: bool,
    sender: SenderLine,
    text: String,
    reply_to: Option<String>,
    quote: Option<String>,
    attachments: Vec<ImportedAttachmentLine>,
    sent_at_ms: i64,
    ordinal: i64,
    edit_marker: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SenderLine {
    id: String,
    name: Option<String>,
    username: Option<String>,
    kind: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ImportedAttachmentLine {
    kind: String,
    file_id: Option<String>,
    name: Option<String>,
    mime_type: Option<String>,
    size_bytes: Option<u64>,
}

const CHAT_KINDS: [(ChatKind, &str); 5] = [
    (ChatKind::Direct, "direct"),
    (ChatKind::GroupDirect, "group_direct"),
    (ChatKind::Private, "private"),
    (ChatKind::Public, "public"),
    (ChatKind::Broadcast, "broadcast"),
];

const SENDER_KINDS: [(SenderKind, &str); 3] = [
    (SenderKind::Person, "person"),
    (SenderKind::Bot, "bot"),
    (SenderKind::System, "system"),
];

impl ImportBatchView {
    /// A batch as it is sent.
    #[must_use]
    pub fn of(batch: Batch, keeps_revisions: bool) -> Self {
        Self {
            messages: batch
                .messages
                .into_iter()
                .map(ImportedMessageLine::of)
                .collect(),
            people: batch.people.into_iter().map(SenderLine::of).collect(),
            fingerprint: batch.progress.fingerprint,
            things: batch.progress.things,
            is_finished: batch.progress.is_finished,
            is_preview: batch.is_preview,
            keeps_revisions,
        }
    }

    /// The batch, for that account.
    #[must_use]
    pub fn batch(self, account: AccountId) -> Batch {
        Batch {
            account,
            messages: self
                .messages
                .into_iter()
                .map(ImportedMessageLine::message)
                .collect(),
            people: self.people.into_iter().map(SenderLine::sender).collect(),
            progress: ImportProgress {
                fingerprint: self.fingerprint,
                things: self.things,
                is_finished: self.is_finished,
            },
            is_preview: self.is_preview,
        }
    }
}

impl ImportCountsView {
    /// The counts of a batch.
    #[must_use]
    pub fn of(counts: &ImportCounts) -> Self {
        Self {
            imported: counts.imported,
            revised: counts.revised,
            known: counts.known,
            gone: counts.gone,
            own: counts.own,
            overlap_found: counts.overlap_found,
            overlap_missing: counts.overlap_missing,
            conflicts: counts.conflicts,
        }
    }

    /// Adds the counts of another batch.
    pub fn add(&mut self, other: &Self) {
        self.imported += other.imported;
        self.revised += other.revised;
        self.known += other.known;
        self.gone += other.gone;
        self.own += other.own;
        self.overlap_found += other.overlap_found;
        self.overlap_missing += other.overlap_missing;
        self.conflicts += other.conflicts;
    }
}

impl ImportedMessageLine {
    fn of(exported: ExportedMessage) -> Self {
        let message = exported.message;
        let (reply_to, quote) = match message.reply_to {
            Some(reply) => (Some(reply.message_id), reply.quote),
            None => (None, None),
        };
        Self {
            kind: message
                .place
                .kind
                .and_then(|kind| name_in(&CHAT_KINDS, kind)),
            chat: message.place.chat,
            title: message.place.title,
            thread: message.place.thread,
            topic: message.place.topic,
            topic_title: message.place.topic_title,
            id: message.message_id,
            own_box: match exported.identity {
                ExportedIdentity::Shared => None,
                ExportedIdentity::OwnBox { occurrence } => Some(occurrence),
            },
            is_own: exported.is_own,
            sender: SenderLine::of(message.sender),
            text: message.text,
            reply_to,
            quote,
            attachments: message
                .attachments
                .into_iter()
                .map(ImportedAttachmentLine::of)
                .collect(),
            sent_at_ms: message.sent_at_ms,
            ordinal: message.ordinal,
            edit_marker: message.edit_marker,
        }
    }

    fn message(self) -> ExportedMessage {
        ExportedMessage {
            identity: match self.own_box {
                None => ExportedIdentity::Shared,
                Some(occurrence) => ExportedIdentity::OwnBox { occurrence },
            },
            is_own: self.is_own,
            message: InboundMessage {
                place: Place {
                    chat: self.chat,
                    kind: self.kind.and_then(|name| named(&CHAT_KINDS, &name)),
                    title: self.title,
                    thread: self.thread,
                    topic: self.topic,
                    topic_title: self.topic_title,
                    is_shared: false,
                },
                message_id: self.id,
                sender: self.sender.sender(),
                text: self.text,
                mentions: Vec::new(),
                mentions_bot: false,
                command: None,
                reply_to: self.reply_to.map(|message_id| ReplyTo {
                    message_id,
                    is_own: false,
                    quote: self.quote,
                    is_passed_on: false,
                }),
                attachments: self
                    .attachments
                    .into_iter()
                    .map(ImportedAttachmentLine::attachment)
                    .collect(),
                album: None,
                sent_at_ms: self.sent_at_ms,
                ordinal: self.ordinal,
                edit_marker: self.edit_marker,
            },
        }
    }
}

impl SenderLine {
    fn of(sender: Sender) -> Self {
        Self {
            id: sender.id,
            name: sender.display_name,
            username: sender.username,
            kind: name_in(&SENDER_KINDS, sender.kind).unwrap_or_default(),
        }
    }

    fn sender(self) -> Sender {
        Sender {
            id: self.id,
            display_name: self.name,
            username: self.username,
            kind: named(&SENDER_KINDS, &self.kind).unwrap_or(SenderKind::Person),
            is_stranger: false,
        }
    }
}

impl ImportedAttachmentLine {
    fn of(attachment: Attachment) -> Self {
        Self {
            kind: attachment.kind,
            file_id: attachment.file_id,
            name: attachment.name,
            mime_type: attachment.mime_type,
            size_bytes: attachment.size_bytes,
        }
    }

    fn attachment(self) -> Attachment {
        Attachment {
            kind: self.kind,
            file_id: self.file_id,
            name: self.name,
            mime_type: self.mime_type,
            size_bytes: self.size_bytes,
        }
    }
}

fn name_in<T: Copy + PartialEq>(names: &[(T, &str)], value: T) -> Option<String> {
    let found = names.iter().find(|(known, _)| *known == value);
    found.map(|(_, name)| (*name).to_owned())
}

fn named<T: Copy>(names: &[(T, &str)], name: &str) -> Option<T> {
    let found = names.iter().find(|(_, known)| *known == name);
    found.map(|(value, _)| *value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_comes_through_the_socket_as_it_was() {
        let sender = Sender {
            id: "U1".to_owned(),
            display_name: Some("Ann".to_owned()),
            username: None,
            kind: SenderKind::Bot,
            is_stranger: false,
        };
        let message = InboundMessage {
            place: Place {
                chat: "-1001".to_owned(),
                kind: Some(ChatKind::Public),
                title: Some("Team".to_owned()),
                thread: Some("1.0".to_owned()),
                topic: Some("7".to_owned()),
                topic_title: Some("Deploys".to_owned()),
                is_shared: false,
            },
            message_id: "import:ab:8".to_owned(),
            sender: sender.clone(),
            text: "a\nb \u{1f600}".to_owned(),
            mentions: Vec::new(),
            mentions_bot: false,
            command: None,
            reply_to: Some(ReplyTo {
                message_id: "7".to_owned(),
                is_own: false,
                quote: Some("q".to_owned()),
                is_passed_on: false,
            }),
            attachments: vec![Attachment {
                kind: "photo".to_owned(),
                file_id: None,
                name: Some("n".to_owned()),
                mime_type: None,
                size_bytes: Some(9),
            }],
            album: None,
            sent_at_ms: 5,
            ordinal: 8,
            edit_marker: Some("9".to_owned()),
        };
        let batch = Batch {
            account: AccountId(3),
            messages: vec![ExportedMessage {
                message,
                identity: ExportedIdentity::OwnBox { occurrence: 2 },
                is_own: true,
            }],
            people: vec![sender],
            progress: ImportProgress {
                fingerprint: "f".to_owned(),
                things: 4,
                is_finished: true,
            },
            is_preview: true,
        };
        let json = serde_json::to_string(&ImportBatchView::of(batch.clone(), true)).unwrap();
        assert!(!json.contains('\n'));
        let view: ImportBatchView = serde_json::from_str(&json).unwrap();
        assert!(view.keeps_revisions);
        assert_eq!(view.batch(AccountId(3)), batch);
    }
}
