//! `copyMessage`, `forwardMessage` and their plurals: the content of one message in another chat.
//!
//! *Source:* telegram.md §9.2 and the Bot API's own list of methods.

use serde_json::{Map, Value, json};

use super::failure::ApiFailure;
use super::methods::{MethodResult, Success};
use super::params::MethodParams;
use super::rooms::{KeptMessage, TelegramRooms, is_service, text_fields};
use super::target::{ChatAccess, MessageTarget, reply_keyboard, reply_markup};
use super::text::{TextKind, formatted};
use super::world::TelegramChatKind;

/// Most messages of one call.
const MESSAGES_MAX: usize = 100;
/// Fields that belong to a message and not to its content.
const OWN_FIELDS: [&str; 16] = [
    "author_signature",
    "chat",
    "date",
    "edit_date",
    "forward_origin",
    "from",
    "is_automatic_forward",
    "is_topic_message",
    "media_group_id",
    "message_id",
    "message_thread_id",
    "quote",
    "reply_markup",
    "reply_to_message",
    "sender_chat",
    "via_bot",
];

/// Whether the new message says where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyWay {
    Copy,
    Forward,
}

impl CopyWay {
    fn verbs(self) -> (&'static str, &'static str) {
        match self {
            Self::Copy => ("copy", "copied"),
            Self::Forward => ("forward", "forwarded"),
        }
    }
}

/// `copyMessage` and `forwardMessage`.
pub(super) fn one(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    way: CopyWay,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let (markup, keyboard) = (reply_markup(params)?, reply_keyboard(params)?);
    let from = rooms.check_chat(params.text("from_chat_id"), ChatAccess::Read)?;
    let mut fields = content(rooms, from, params.integer("message_id"), way)?;
    let is_media = !fields.contains_key("text");
    if way == CopyWay::Copy && is_media && params.get("caption").is_some() {
        let caption = formatted(
            params.text("caption"),
            params.get("parse_mode"),
            params.get("caption_entities"),
            TextKind::Caption,
        )?;
        fields.remove("caption");
        fields.remove("caption_entities");
        fields.extend(text_fields(&caption.text, &caption.entities_json(), true));
    }
    let target = rooms.check_target(params)?;
    rooms.count_send(target.chat, sends_max)?;
    let sent = rooms.send(target, fields, markup, keyboard);
    Ok(match way {
        CopyWay::Copy => json!({"message_id": sent["message_id"]}).into(),
        CopyWay::Forward => sent.into(),
    })
}

/// `copyMessages` and `forwardMessages`: messages that are missing or can't be copied are left out.
pub(super) fn many(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    way: CopyWay,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let ids: Vec<i64> = serde_json::from_str(params.text("message_ids"))
        .map_err(|_| ApiFailure::bad("can't parse message identifiers JSON object"))?;
    if ids.is_empty() {
        return Err(ApiFailure::bad("message identifiers are not specified"));
    }
    if ids.len() > MESSAGES_MAX {
        return Err(ApiFailure::bad("too many message identifiers specified"));
    }
    let from = rooms.check_chat(params.text("from_chat_id"), ChatAccess::Read)?;
    let target: MessageTarget = rooms.check_target(params)?;
    let mut sent = Vec::new();
    for id in ids {
        let Ok(mut fields) = content(rooms, from, id, way) else {
            continue;
        };
        if params.boolean("remove_caption") {
            fields.remove("caption");
            fields.remove("caption_entities");
        }
        rooms.count_send(target.chat, sends_max)?;
        let message = rooms.send(target.clone(), fields, None, None);
        sent.push(json!({"message_id": message["message_id"]}));
    }
    match sent.is_empty() {
        true => Err(ApiFailure::bad(&format!(
            "there are no messages to {}",
            way.verbs().0
        ))),
        false => Ok(json!(sent).into()),
    }
}

/// What a message holds, with where it comes from when it is forwarded.
fn content(
    rooms: &TelegramRooms,
    chat: i64,
    id: i64,
    way: CopyWay,
) -> MethodResult<Map<String, Value>> {
    let (verb, done) = way.verbs();
    let stored = rooms.message(chat, id);
    let stored = stored.ok_or_else(|| ApiFailure::bad(&format!("message to {verb} not found")))?;
    if is_service(&Value::Object(stored.wire.clone())) {
        return Err(ApiFailure::bad(&format!("message can't be {done}")));
    }
    let mut fields = stored.wire.clone();
    fields.retain(|name, _| !OWN_FIELDS.contains(&name.as_str()));
    if way == CopyWay::Forward {
        fields.insert("forward_origin".to_owned(), origin(rooms, chat, stored));
    }
    Ok(fields)
}

fn origin(rooms: &TelegramRooms, chat: i64, stored: &KeptMessage) -> Value {
    if let Some(origin) = stored.wire.get("forward_origin") {
        return origin.clone();
    }
    let (date, id) = (&stored.wire["date"], &stored.wire["message_id"]);
    let sender = stored.wire.get("sender_chat");
    match (rooms.room(chat).kind, sender, stored.wire.get("from")) {
        (TelegramChatKind::Channel, _, _) => json!({
            "type": "channel", "date": date, "chat": rooms.world.chat_json(chat), "message_id": id,
        }),
        (_, Some(sender), _) => json!({"type": "chat", "date": date, "sender_chat": sender}),
        (_, None, from) => json!({"type": "user", "date": date, "sender_user": from}),
    }
}
