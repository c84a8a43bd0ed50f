//! `stopMessageLiveLocation`: the method that checks a message before it changes anything.
//!
//! Also keeps which messages the Bot API server has heard of: it does not find others, though they are in the room.

use serde_json::Value;

use super::failure::ApiFailure;
use super::methods::{MethodResult, Success};
use super::params::MethodParams;
use super::rooms::{KeptMessage, TelegramRooms, is_service};
use super::target::reply_markup;
use super::world::{BotStatus, TelegramChatKind};

const MISSING: &str = "message to edit not found";

pub(super) fn stop_live_location(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
) -> MethodResult<Success> {
    reply_markup(params)?;
    let (chat, id) = rooms.check_message(params, MISSING)?;
    let Some(stored) = rooms
        .message(chat, id)
        .filter(|_| rooms.has_heard_of(chat, id))
    else {
        return Err(ApiFailure::bad(MISSING));
    };
    if !rooms.can_edit(chat, stored) {
        return Err(ApiFailure::bad("message can't be edited"));
    }
    let is_live = |stored: &KeptMessage| stored.wire.get("location").map(is_live) == Some(true);
    if !is_live(stored) {
        return Err(ApiFailure::bad(
            "there is no live location in the message to edit",
        ));
    }
    if let Some(stored) = rooms.message_mut(chat, id)
        && let Some(location) = stored
            .wire
            .get_mut("location")
            .and_then(Value::as_object_mut)
    {
        location.remove("live_period");
    }
    Ok(rooms.wire_of(chat, id).into())
}

fn is_live(location: &Value) -> bool {
    location.get("live_period").is_some()
}

impl TelegramRooms {
    /// Whether the bot may edit a message: its own posts, those made through its inline mode, and everybody's in a
    /// channel that it administers. It can't edit service messages, forwards, or messages sent with a reply keyboard.
    fn can_edit(&self, chat: i64, stored: &KeptMessage) -> bool {
        let room = self.room(chat);
        let is_channel =
            room.kind == TelegramChatKind::Channel && room.bot_status == BotStatus::Admin;
        let bot = &self.world.bot;
        let is_via_bot = stored
            .wire
            .get("via_bot")
            .is_some_and(|via| via["id"] == bot.id);
        let is_forward = stored.wire.contains_key("forward_origin");
        let is_fixed =
            stored.is_fixed() || is_forward || is_service(&Value::Object(stored.wire.clone()));
        (stored.by_bot || is_channel || is_via_bot) && !is_fixed
    }

    /// The sequence in which a chat's messages are numbered.
    pub(super) fn sequence_of(&self, chat: i64) -> Option<i64> {
        let kind = self.world.chat(chat).map(|room| room.kind);
        let is_shared = matches!(
            kind,
            Some(TelegramChatKind::Private | TelegramChatKind::Group) | None
        );
        (!is_shared).then_some(chat)
    }

    /// Lets the server lag behind, or catch up: while it lags, it does not know the bot's posts until it learns of
    /// something newer in the same sequence.
    pub(super) fn lag_behind(&mut self, on: bool) {
        self.lags = on;
        if !on {
            self.unheard.clear();
        }
    }

    /// Notes that the server knows a message, and everything before it.
    pub(super) fn hear_of(&mut self, chat: i64, id: i64) {
        let sequence = self.sequence_of(chat);
        let is_older = |&(of, older): &(i64, i64)| self.sequence_of(of) == sequence && older <= id;
        let heard: Vec<(i64, i64)> = self.unheard.iter().copied().filter(is_older).collect();
        for message in heard {
            self.unheard.remove(&message);
        }
    }

    fn has_heard_of(&self, chat: i64, id: i64) -> bool {
        !self.unheard.contains(&(chat, id))
    }
}
