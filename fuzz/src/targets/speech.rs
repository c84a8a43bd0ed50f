//! What holds of every envelope, whichever platform it came from.

use vocative_contract::envelope::{Attachment, Envelope, Event, InboundMessage, Place, Sender};
use vocative_contract::error::ChannelError;
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::{LABEL_MAX_CHARS, MENTION_CLOSE, MENTION_OPEN, mentioned_ids};

/// A text is at most so many times as long as what it was made of: each level of a quote marks each
/// line, and serde goes 128 levels deep.
const GROWTH_MAX: usize = 150;

/// When everything here was received.
pub(crate) const NOW_MS: i64 = 1_763_712_345_678;

/// The bot of a Slack workspace.
pub(crate) fn slack_bot() -> Identity {
    Identity {
        platform: Platform::Slack,
        account: "T0AAAAAAA".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: "UBOT".to_owned(),
        other_ids: vec!["BBOT".to_owned(), "U0BOT0001".to_owned()],
        username: Some("kael".to_owned()),
        display_name: "Kael".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}

/// A Telegram bot.
pub(crate) fn telegram_bot() -> Identity {
    Identity {
        platform: Platform::Telegram,
        account: "777".to_owned(),
        account_name: "team_bot".to_owned(),
        user_id: "777".to_owned(),
        other_ids: Vec::new(),
        username: Some("team_bot".to_owned()),
        display_name: "Team Bot".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}

/// Holds an envelope against what was sent.
pub(super) fn check_envelope(envelope: &Envelope, raw: &str) {
    assert_eq!(envelope.raw, raw, "the raw event is kept as it came");
    match &envelope.event {
        Event::Posted(message) | Event::Edited(message) => check_message(message, raw.len()),
        Event::Deleted { place, message_id }
        | Event::OwnPost {
            place, message_id, ..
        } => {
            check_place(place);
            assert!(!message_id.is_empty());
        }
        Event::Command(command) => {
            check_place(&command.place);
            check_sender(&command.sender);
            check_text(&command.text, raw.len());
        }
        Event::Interaction(press) => {
            press.place.iter().for_each(check_place);
            check_sender(&press.sender);
        }
        Event::Thumb(change) => {
            check_place(&change.place);
            check_sender(&change.sender);
            assert!(!change.message_id.is_empty());
        }
        Event::ChatChanged { place }
        | Event::Membership { place, .. }
        | Event::Opened { place, .. } => check_place(place),
        Event::PersonChanged { sender } => check_sender(sender),
        Event::Untranslated { reason } => assert!(reason.len() < 80, "{reason}"),
        Event::ChatMoved { .. }
        | Event::Ignored { .. }
        | Event::OtherSender { .. }
        | Event::AccountLost { .. } => {}
    }
}

/// Holds a message against how much was sent for it.
pub(super) fn check_message(message: &InboundMessage, sent_bytes: usize) {
    check_place(&message.place);
    check_sender(&message.sender);
    check_text(&message.text, sent_bytes);
    assert!(!message.message_id.is_empty(), "a message without an id");
    let in_text = mentioned_ids(&message.text);
    for id in &in_text {
        let is_told = message.mentions.contains(id);
        assert!(
            is_told,
            "the text mentions {id:?}, the list does not: {:?}",
            message.mentions
        );
    }
    message.attachments.iter().for_each(check_attachment);
    if let Some(reply) = &message.reply_to {
        let quote = reply.quote.as_deref().unwrap_or_default();
        assert!(
            !quote.contains([MENTION_OPEN, MENTION_CLOSE]),
            "a quote forges a token"
        );
    }
}

/// A text has whole tokens only, and is not much longer than what it was made of.
pub(super) fn check_text(text: &str, sent_bytes: usize) {
    assert!(
        text.len() <= sent_bytes * GROWTH_MAX + 1_000,
        "{} from {sent_bytes}",
        text.len()
    );
    assert!(!text.contains('\0'), "NUL in a text");
    let mut is_open = false;
    for c in text.chars() {
        match c {
            MENTION_OPEN => assert!(!std::mem::replace(&mut is_open, true), "a token in a token"),
            MENTION_CLOSE => assert!(
                std::mem::replace(&mut is_open, false),
                "a token never opened"
            ),
            c => assert!(!is_open || !c.is_whitespace(), "white space in a token"),
        }
    }
    assert!(!is_open, "a token never closed");
}

fn check_place(place: &Place) {
    assert!(!place.chat.is_empty(), "a place without a chat");
    check_label(place.title.as_deref());
    check_label(place.topic_title.as_deref());
}

fn check_sender(sender: &Sender) {
    assert!(!sender.id.is_empty(), "a sender without an id");
    check_label(sender.display_name.as_deref());
}

fn check_attachment(attachment: &Attachment) {
    assert!(!attachment.kind.is_empty());
    check_label(attachment.name.as_deref());
    check_label(attachment.mime_type.as_deref());
}

/// A name is one short line without tokens.
fn check_label(label: Option<&str>) {
    let Some(label) = label else { return };
    assert!(!label.trim().is_empty(), "an empty label");
    assert!(label.chars().count() <= LABEL_MAX_CHARS + 1, "a long label");
    let is_bad = |c: char| c.is_control() || c == MENTION_OPEN || c == MENTION_CLOSE;
    assert!(!label.contains(is_bad), "{label:?}");
}

/// An error says what to do, in words that fit a log line.
pub(super) fn check_error(error: &ChannelError) {
    let reason = error.reason();
    assert!(
        reason.chars().count() <= 600,
        "{} characters",
        reason.chars().count()
    );
    assert!(!reason.contains(char::is_control), "{reason:?}");
    if let ChannelError::RetryAfter { wait_ms, .. } = error {
        assert!(*wait_ms >= 1_000, "a wait of {wait_ms} ms");
    }
}
