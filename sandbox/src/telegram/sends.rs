//! Methods that post, edit and delete messages of the bot.
//!
//! Owns the effects of a call in a room. Where it may go is checked in `target`.

use serde_json::{Map, Value, json};

use super::failure::ApiFailure;
use super::media::set_markup;
use super::methods::{MethodResult, Success};
use super::params::MethodParams;
use super::rooms::{NewMessageDraft, TelegramRooms, entities_json, text_fields};
use super::target::{ChatAccess, MessageTarget, reply_keyboard, reply_markup};
use super::text::{Formatted, TextKind, formatted};
use super::world::{BotStatus, TelegramChatKind};

/// A bot can't delete a message older than this, in seconds.
const DELETE_AGE_S_MAX: i64 = 48 * 3600;

pub(super) fn message_text(params: &MethodParams) -> MethodResult<Formatted> {
    formatted(
        params.text("text"),
        params.get("parse_mode"),
        params.get("entities"),
        TextKind::Message,
    )
}

pub(super) fn send_message(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let text = message_text(params)?;
    let (markup, keyboard) = (reply_markup(params)?, reply_keyboard(params)?);
    let target = rooms.check_target(params)?;
    rooms.count_send(target.chat, sends_max)?;
    let fields = text_fields(&text.text, &text.entities_json(), false);
    Ok(rooms.send(target, fields, markup, keyboard).into())
}

pub(super) fn edit_message_text(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let text = message_text(params)?;
    let markup = reply_markup(params)?;
    let (chat, id) = rooms.check_message(params, "message to edit not found")?;
    let now_s = rooms.now_s();
    let Some(stored) = rooms.message(chat, id) else {
        return Err(ApiFailure::bad("message to edit not found"));
    };
    if !stored.by_bot || !stored.wire.contains_key("text") {
        return Err(ApiFailure::bad("message can't be edited"));
    }
    let entities = entities_json(&text.entities);
    let old_entities = stored.wire.get("entities").cloned();
    let same = stored.has("text", &json!(text.text))
        && old_entities.unwrap_or_else(|| json!([])) == entities
        && stored.wire.get("reply_markup") == markup.as_ref();
    if same {
        return Err(ApiFailure::not_modified());
    }
    // A call that is refused for its rate changes nothing.
    rooms.count_send(chat, sends_max)?;
    let Some(stored) = rooms.message_mut(chat, id) else {
        return Err(ApiFailure::bad("message to edit not found"));
    };
    stored.set_text(&text.text, &text.entities, false);
    stored.edited = true;
    stored.wire.insert("edit_date".to_owned(), json!(now_s));
    set_markup(&mut stored.wire, markup);
    Ok(rooms.wire_of(chat, id).into())
}

/// `editMessageReplyMarkup`: another inline keyboard, or none.
pub(super) fn edit_reply_markup(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let markup = reply_markup(params)?;
    let (chat, id) = rooms.own_message(params)?;
    let shown = rooms
        .message(chat, id)
        .and_then(|stored| stored.wire.get("reply_markup"));
    if shown == markup.as_ref() {
        return Err(ApiFailure::not_modified());
    }
    rooms.count_send(chat, sends_max)?;
    if let Some(stored) = rooms.message_mut(chat, id) {
        set_markup(&mut stored.wire, markup);
    }
    Ok(rooms.wire_of(chat, id).into())
}

pub(super) fn delete_message(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
) -> MethodResult<Success> {
    let (chat, id) = rooms.check_message(params, "message to delete not found")?;
    rooms.delete_by_bot(chat, id)?;
    Ok(json!(true).into())
}

pub(super) fn delete_messages(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
) -> MethodResult<Success> {
    let ids: Vec<i64> = serde_json::from_str(params.text("message_ids"))
        .map_err(|_| ApiFailure::bad("can't parse message identifiers JSON object"))?;
    if ids.is_empty() {
        return Err(ApiFailure::bad("message identifiers are not specified"));
    }
    if ids.len() > 100 {
        return Err(ApiFailure::bad("too many message identifiers specified"));
    }
    let chat = rooms.check_chat(params.text("chat_id"), ChatAccess::Read)?;
    for id in ids {
        if rooms.message(chat, id).is_some() {
            rooms.delete_by_bot(chat, id)?;
        }
    }
    Ok(json!(true).into())
}

impl TelegramRooms {
    /// Notes that a message or another draft took the place of a chat's drafts.
    pub(super) fn end_drafts(&mut self, chat: i64) {
        let drafts = self.drafts.iter_mut().filter(|draft| draft.chat == chat);
        drafts.for_each(|draft| draft.is_gone = true);
    }

    /// Posts a message of the bot. `keyboard` is a reply keyboard, which is no part of the message.
    pub(super) fn send(
        &mut self,
        target: MessageTarget,
        mut fields: Map<String, Value>,
        markup: Option<Value>,
        keyboard: Option<Value>,
    ) -> Value {
        self.end_drafts(target.chat);
        if let Some(quote) = target.quote {
            fields.insert("quote".to_owned(), quote);
        }
        if let Some(markup) = markup {
            fields.insert("reply_markup".to_owned(), markup);
        }
        let is_channel = self.room(target.chat).kind == TelegramChatKind::Channel;
        if is_channel {
            let sender = self.world.chat_json(target.chat);
            fields.insert("sender_chat".to_owned(), sender);
        }
        let id = self.store(NewMessageDraft {
            chat: target.chat,
            from: (!is_channel).then_some(self.world.bot.id),
            by_bot: true,
            keyboard,
            topic: target.topic,
            reply_to: target.reply_to,
            fields,
            ..NewMessageDraft::default()
        });
        self.wire_of(target.chat, id)
    }

    /// Finds the message of the bot that a call changes.
    pub(super) fn own_message(&self, params: &MethodParams) -> MethodResult<(i64, i64)> {
        let (chat, id) = self.check_message(params, "message to edit not found")?;
        let stored = self.message(chat, id);
        match stored.is_some_and(|stored| stored.by_bot && !stored.is_fixed()) {
            true => Ok((chat, id)),
            false => Err(ApiFailure::bad("message can't be edited")),
        }
    }

    /// Changes what a message holds, and marks it as edited.
    pub(super) fn change_content(
        &mut self,
        chat: i64,
        id: i64,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> MethodResult<Success> {
        let now_s = self.now_s();
        let stored = self.message_mut(chat, id);
        let stored = stored.ok_or_else(|| ApiFailure::bad("message to edit not found"))?;
        change(&mut stored.wire);
        stored.edited = true;
        stored.wire.insert("edit_date".to_owned(), json!(now_s));
        Ok(self.wire_of(chat, id).into())
    }

    /// Finds the message that a call is about.
    pub(super) fn check_message(
        &self,
        params: &MethodParams,
        missing: &str,
    ) -> MethodResult<(i64, i64)> {
        let id = params.integer("message_id");
        if id == 0 && params.text("chat_id").is_empty() {
            return Err(ApiFailure::bad("message identifier is not specified"));
        }
        let chat = self.check_chat(params.text("chat_id"), ChatAccess::Read)?;
        match self.message(chat, id) {
            Some(_) => Ok((chat, id)),
            None => Err(ApiFailure::bad(missing)),
        }
    }

    fn delete_by_bot(&mut self, chat: i64, id: i64) -> MethodResult<()> {
        let now_s = self.now_s();
        let room = self.room(chat);
        let (admin, private) = (
            room.bot_status == BotStatus::Admin,
            room.kind == TelegramChatKind::Private,
        );
        let Some(stored) = self.message_mut(chat, id) else {
            return Err(ApiFailure::bad("message to delete not found"));
        };
        let sent_s = stored.wire.get("date").and_then(Value::as_i64).unwrap_or(0);
        if now_s - sent_s > DELETE_AGE_S_MAX && !admin {
            return Err(ApiFailure::bad("message can't be deleted for everyone"));
        }
        if !stored.by_bot && !private && !admin {
            return Err(ApiFailure::bad("message can't be deleted"));
        }
        stored.deleted = true;
        Ok(())
    }
}
