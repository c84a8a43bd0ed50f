//! Import: messages of an export become turns, as their live events would, except that they never address an agent.
//!
//! Two halves. The code that reads an export asks [`admission`] whether a message may be stored, by the access lists
//! that apply to live messages. The code that has the store hands batches of admitted messages to [`import`]. Knows
//! nothing of files.

use vocative_channels::export::{ExportedChat, ExportedIdentity, ExportedMessage};
use vocative_contract::crash;
use vocative_contract::envelope::{Belonging, ChatKind, InboundMessage, Sender};

use crate::capture::inbound::{Counter, cut_text, sender_kind};
use vocative_core::addressing::{Access, Verdict};
use vocative_core::ids::AccountId;
use vocative_core::judging::access::{PlaceAccess, access, place_access};
use vocative_core::judging::policy::ChannelPolicy;
use vocative_store::contract::{
    ImportBatch, ImportCounts, ImportMessage, ImportProgress, NewMessage,
};
use vocative_store::{Store, StoreError};

/// The messages that are imported in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The account.
    pub account: AccountId,
    /// Admitted messages, in the order of the export.
    pub messages: Vec<ExportedMessage>,
    /// People who are mentioned.
    pub people: Vec<Sender>,
    /// The progress of the import after this batch.
    pub progress: ImportProgress,
    /// Whether the batch is only counted, and nothing stored.
    pub is_preview: bool,
}

/// Whether a chat of an export is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatAdmission {
    /// The chat is read; single messages may still be refused.
    Read,
    /// It is private and the bot is no member: its messages don't belong in the bot's memory.
    Foreign,
    /// It is not on `allow_chats`.
    NotServed,
}

/// Decides about a chat; `is_named` says that the operator asked for this very chat.
///
/// A direct chat is decided by its people. Pure.
#[must_use]
pub fn chat_admission(
    chat: &ExportedChat,
    is_named: bool,
    policy: &ChannelPolicy,
) -> ChatAdmission {
    let is_outside = chat.has_bot == Some(false);
    match chat.kind {
        Some(ChatKind::Direct | ChatKind::GroupDirect) if is_outside => ChatAdmission::Foreign,
        Some(ChatKind::Private) if is_outside && !is_named => ChatAdmission::Foreign,
        kind => match place_access(&chat.chat, kind, policy) {
            PlaceAccess::Open | PlaceAccess::ByPerson => ChatAdmission::Read,
            // Admins are served everywhere.
            PlaceAccess::Closed if !policy.admins.is_empty() => ChatAdmission::Read,
            PlaceAccess::Closed => ChatAdmission::NotServed,
        },
    }
}

/// Whether a message may be stored, and its text within the limit. Pure.
#[must_use]
pub fn admission(exported: &mut ExportedMessage, policy: &ChannelPolicy) -> Access {
    let message = &mut exported.message;
    let access = if exported.is_own {
        own_access(message, policy)
    } else {
        // Exports don't say who is a guest.
        let (place, sender) = (&message.place, &message.sender);
        let known = match sender.is_stranger {
            true => Belonging::Stranger,
            false => Belonging::Member,
        };
        access(place, place.kind, sender, Some(known), policy)
    };
    if access == Access::Served {
        message.text = cut_text(&message.text, policy.limits.inbound_text_max_bytes);
    }
    access
}

/// The access of this bot's own messages: they are served wherever their chat is.
fn own_access(message: &InboundMessage, policy: &ChannelPolicy) -> Access {
    match place_access(&message.place.chat, message.place.kind, policy) {
        PlaceAccess::Closed => Access::ChatNotAllowed,
        PlaceAccess::Open | PlaceAccess::ByPerson => Access::Served,
    }
}

/// Imports a batch in one transaction, or counts what would happen with it.
///
/// # Errors
/// `Unavailable` if storage refuses; nothing of the batch is stored then.
pub async fn import(
    store: &Store,
    batch: Batch,
    counter: &Counter,
    keeps_revisions: bool,
    now_ms: i64,
) -> Result<ImportCounts, StoreError> {
    let account = batch.account;
    let messages = batch.messages.into_iter();
    let messages = messages
        .map(|message| import_message(message, account, counter, keeps_revisions, now_ms))
        .collect();
    let is_preview = batch.is_preview;
    let batch = ImportBatch {
        account,
        messages,
        people: batch.people,
        progress: batch.progress,
        now_ms,
    };
    if is_preview {
        store.preview_import(batch).await
    } else {
        crash::point("import.before-commit");
        let imported = store.import(batch).await;
        crash::point("import.after-commit");
        imported
    }
}

fn import_message(
    exported: ExportedMessage,
    account: AccountId,
    counter: &Counter,
    keeps_revisions: bool,
    now_ms: i64,
) -> ImportMessage {
    let message = exported.message;
    let (reply_to, quote) = match message.reply_to {
        Some(reply) => (Some(reply.message_id), reply.quote),
        None => (None, None),
    };
    ImportMessage {
        own_box: match exported.identity {
            ExportedIdentity::Shared => None,
            ExportedIdentity::OwnBox { occurrence } => Some(occurrence),
        },
        is_own: exported.is_own,
        message: NewMessage {
            account,
            place: message.place,
            scope_override: None,
            message_id: message.message_id,
            sender_kind: sender_kind(message.sender.kind),
            sender: message.sender,
            tokens: Some((counter)(&message.text)),
            text: message.text,
            attachments: message.attachments,
            reply_to,
            quote,
            // An export does not say which messages belong to one album.
            album: None,
            sent_at_ms: message.sent_at_ms,
            ordinal: message.ordinal,
            is_edit: message.edit_marker.is_some(),
            edit_marker: message.edit_marker,
            received_at_ms: now_ms,
            keep_revisions: keeps_revisions,
            raw: None,
            judge_follow_up: None,
            judge: Box::new(|_| Verdict::default()),
        },
    }
}
