//! How Telegram numbers messages, and which numbers an update contains. Pure.
//!
//! A supergroup has a sequence of its own; the private chats and basic groups of one bot share one.
//! Source: tdlib/td, `MessageId` and `DialogId`, as collected in `docs/adr/0033-probing.md`.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use vocative_contract::identity::Identity;
use vocative_contract::probe::{Numbered, OwnNumber, Sequence};

use super::translate::{is_service, present};
use super::wire::{MessageNumber, RepliedMessage};

/// The name of the sequence of a bot's private chats and basic groups.
const SHARED: &str = "account";
/// Ids of supergroups and channels are below this.
const SUPERGROUPS_BELOW: i64 = -1_000_000_000_000;
/// Ids of the direct messages of channels, and of other kinds of chats, are below this.
const OTHERS_BELOW: i64 = -2_000_000_000_000;

/// The updates that are about a message.
const MESSAGES: [&str; 2] = ["message", "edited_message"];

/// How the messages of a chat are numbered. By its id alone, a supergroup can't be told from a channel.
pub(super) fn sequence(chat: &str) -> Option<Sequence> {
    let id: i64 = chat.parse().ok().filter(|id| *id != 0)?;
    let (name, is_of_one_chat) = match id {
        _ if id > SUPERGROUPS_BELOW => (SHARED.to_owned(), false),
        _ if id > OTHERS_BELOW => (id.to_string(), true),
        _ => return None,
    };
    Some(Sequence {
        name,
        is_of_one_chat,
    })
}

/// The numbers that an update contains.
pub(super) fn numbered(bot: &Identity, update: &Map<String, Value>) -> Option<Numbered> {
    let message = MESSAGES.iter().find_map(|kind| present(update, kind));
    let pressed = present(update, "callback_query").and_then(|query| query.get("message"));
    let (value, is_pressed) = match (message, pressed) {
        (Some(message), _) => (message, false),
        (None, Some(pressed)) => (pressed, true),
        (None, None) => return None,
    };
    let message = MessageNumber::deserialize(value).ok()?;
    let is_elsewhere = message.business_connection_id.is_some() || message.guest_query_id.is_some();
    let is_room = matches!(
        message.chat.kind.as_deref(),
        Some("private" | "group" | "supergroup")
    );
    if is_elsewhere || !is_room || message.chat.is_direct_messages || message.message_id <= 0 {
        return None;
    }
    // A message that is inaccessible has no date.
    let sent_at_ms = message.date.filter(|date| *date > 0)?.checked_mul(1_000)?;
    let is_service = value.as_object().is_some_and(is_service);
    let from_bot = message.sender_chat.is_none() && is_bot(bot, message.from.as_ref());
    let shown = [&message.reply_to_message, &message.pinned_message];
    let mut own: Vec<OwnNumber> = shown
        .into_iter()
        .flatten()
        .filter(|shown| {
            shown
                .chat
                .as_ref()
                .is_none_or(|it| it.id == message.chat.id)
        })
        .filter_map(|shown| own_number(bot, shown))
        .collect();
    if from_bot && !is_service {
        own.push(OwnNumber {
            number: message.message_id,
            sent_at_ms,
        });
    }
    let chat = message.chat.id.to_string();
    Some(Numbered {
        sequence: sequence(&chat)?,
        chat,
        number: (!from_bot && !is_pressed).then_some(message.message_id),
        sent_at_ms,
        own,
    })
}

/// The number of a message that another one shows, if the bot posted it.
fn own_number(bot: &Identity, shown: &RepliedMessage) -> Option<OwnNumber> {
    let is_own = shown.sender_chat.is_none() && is_bot(bot, shown.from.as_ref());
    let is_post = shown.forum_topic_created.is_none() && shown.message_id > 0;
    let date = shown.date.filter(|date| is_own && is_post && *date > 0)?;
    Some(OwnNumber {
        number: shown.message_id,
        sent_at_ms: date.checked_mul(1_000)?,
    })
}

fn is_bot(bot: &Identity, user: Option<&super::wire::User>) -> bool {
    user.is_some_and(|user| bot.is_self(&user.id.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_support::bot;
    use super::*;

    #[test]
    fn supergroups_number_for_themselves_and_other_rooms_together() {
        let table = [
            ("5001", Some(("account", false))),
            ("-4518810793", Some(("account", false))),
            ("-1001234567890", Some(("-1001234567890", true))),
            ("-2001234567890", None),
            ("@acme_news", None),
            ("0", None),
        ];
        for (chat, expected) in table {
            let found = sequence(chat);
            let found = found
                .as_ref()
                .map(|it| (it.name.as_str(), it.is_of_one_chat));
            assert_eq!(found, expected, "{chat}");
        }
    }

    fn told(update: &Value) -> Option<(Option<i64>, Vec<i64>)> {
        let told = numbered(&bot(), update.as_object()?)?;
        Some((told.number, told.own.iter().map(|own| own.number).collect()))
    }

    #[test]
    fn an_update_tells_its_number_and_the_bots_messages_that_it_shows() {
        let me = json!({"id": 777, "is_bot": true, "first_name": "Team Bot"});
        let ann = json!({"id": 5001, "is_bot": false, "first_name": "Ann"});
        let group = json!({"id": -1_001_234_567_890_i64, "type": "supergroup"});
        let own = json!({"message_id": 7, "date": 90, "from": me, "chat": group});
        let message = |more: Value| {
            let mut message = json!({"message_id": 9, "date": 100, "from": ann, "chat": group});
            for (name, value) in more.as_object().into_iter().flatten() {
                message[name] = value.clone();
            }
            message
        };
        let table = [
            (
                json!({"message": message(json!({}))}),
                Some((Some(9), vec![])),
            ),
            (
                json!({"edited_message": message(json!({"edit_date": 200}))}),
                Some((Some(9), vec![])),
            ),
            (
                json!({"message": message(json!({"reply_to_message": own}))}),
                Some((Some(9), vec![7])),
            ),
            (
                json!({"message": message(json!({"pinned_message": own}))}),
                Some((Some(9), vec![7])),
            ),
            (
                json!({"message": message(json!({"from": me}))}),
                Some((None, vec![9])),
            ),
            (
                json!({"message": message(json!({"from": me, "new_chat_title": "x"}))}),
                Some((None, vec![])),
            ),
            (
                json!({"callback_query": {"id": "1", "message": own}}),
                Some((None, vec![7])),
            ),
            (
                json!({"message": message(json!({"business_connection_id": "b"}))}),
                None,
            ),
            (
                json!({"message": message(json!({"chat": {"id": -1, "type": "channel"}}))}),
                None,
            ),
            (json!({"message": message(json!({"date": 0}))}), None),
            (json!({"channel_post": message(json!({}))}), None),
            (json!({"poll": {}}), None),
        ];
        for (update, expected) in table {
            assert_eq!(told(&update), expected, "{update}");
        }
    }
}
