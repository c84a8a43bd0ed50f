//! Who wrote a message: a person, a bot, or a person who writes as a chat.

use vocative_contract::envelope::{Sender, SenderKind};
use vocative_contract::markup::{neutral_text, one_line as label};

use super::content::{chat_title, user_name};
use super::wire::{Chat, Message, User};

/// Telegram's own account, which also stands in as the author of automatic forwards.
const TELEGRAM_SERVICE_ID: i64 = 777_000;

/// The accounts of Telegram's that stand in for an anonymous administrator and for a person who posts as a channel, and
/// those of its test servers.
const STAND_IN_IDS: [i64; 4] = [1_087_968_824, 136_817_688, 552_888, 936_174];

/// Whether an account stands in for people who don't show themselves.
pub(super) fn is_stand_in(user: &User) -> bool {
    STAND_IN_IDS.contains(&user.id)
}

/// The sender of a message.
///
/// A `sender_chat` comes before `from`, which is then a stand-in account of Telegram's.
pub(super) fn message_sender(message: &Message) -> Sender {
    let chat_kind = message.chat.kind.as_deref();
    let speaks_for_itself = message.is_automatic_forward || chat_kind == Some("channel");
    match (&message.sender_chat, &message.from) {
        (Some(chat), _) if speaks_for_itself => chat_sender(chat, None, SenderKind::System),
        (Some(chat), _) if chat.id == message.chat.id => {
            let signature = message.author_signature.as_deref().and_then(label);
            chat_sender(chat, signature, SenderKind::Person)
        }
        (Some(chat), _) => chat_sender(chat, None, SenderKind::Person),
        (None, Some(user)) => user_sender(user),
        (None, None) => chat_sender(&message.chat, None, SenderKind::System),
    }
}

/// A user as a sender.
pub(super) fn user_sender(user: &User) -> Sender {
    let kind = match user {
        User {
            id: TELEGRAM_SERVICE_ID,
            ..
        } => SenderKind::System,
        User { is_bot: true, .. } => SenderKind::Bot,
        User { .. } => SenderKind::Person,
    };
    Sender {
        id: user.id.to_string(),
        display_name: user_name(user),
        username: username(user.username.as_deref()),
        kind,
        is_stranger: false,
    }
}

fn chat_sender(chat: &Chat, name: Option<String>, kind: SenderKind) -> Sender {
    Sender {
        id: format!("chat:{}", chat.id),
        display_name: name.or_else(|| chat_title(chat)),
        username: username(chat.username.as_deref()),
        kind,
        is_stranger: false,
    }
}

fn username(name: Option<&str>) -> Option<String> {
    name.map(neutral_text).filter(|name| !name.is_empty())
}
