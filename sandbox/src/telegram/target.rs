//! Where a call goes: chat, topic, replied-to message, keyboard; and who may do it.
//!
//! Owns the order of the platform's checks and their texts. Changes nothing.

use serde_json::{Value, json};

use super::failure::ApiFailure;
use super::params::{MethodParams, is_true, lenient_integer};
use super::rooms::TelegramRooms;
use super::world::{BotStatus, TelegramChatKind};

/// The General topic; the platform refuses its number.
const GENERAL_TOPIC: i64 = 1;

/// What a call is about to do in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatAccess {
    /// Look, edit or delete.
    Read,
    /// Post something new.
    Write,
}

/// The `reply_parameters` of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyParameters {
    message: i64,
    chat: Option<String>,
    allow_missing: bool,
    quote: Option<String>,
}

/// A checked place for a new message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageTarget {
    pub(super) chat: i64,
    pub(super) topic: Option<i64>,
    pub(super) reply_to: Option<i64>,
    pub(super) quote: Option<Value>,
}

impl TelegramRooms {
    /// Finds the chat of a call and checks that the bot may act there.
    pub(super) fn check_chat(&self, raw: &str, access: ChatAccess) -> Result<i64, ApiFailure> {
        let id = self.find_chat(raw)?;
        let Some(room) = self.world.chat(id) else {
            return Err(self.stranger(id));
        };
        let (inside, kind) = (room.bot_status, room.kind);
        let noun = match kind {
            TelegramChatKind::Private => {
                return match inside {
                    BotStatus::Kicked => Err(ApiFailure::forbidden("bot was blocked by the user")),
                    BotStatus::Left => Err(ApiFailure::forbidden(
                        "bot can't initiate conversation with a user",
                    )),
                    BotStatus::Member | BotStatus::Admin => Ok(id),
                };
            }
            TelegramChatKind::Group => "group chat",
            TelegramChatKind::Supergroup => "supergroup chat",
            TelegramChatKind::Channel => "channel chat",
        };
        match inside {
            BotStatus::Kicked => Err(ApiFailure::forbidden(&format!(
                "bot was kicked from the {noun}"
            ))),
            BotStatus::Left => Err(ApiFailure::forbidden(&format!(
                "bot is not a member of the {noun}"
            ))),
            BotStatus::Member
                if kind == TelegramChatKind::Channel && access == ChatAccess::Write =>
            {
                Err(ApiFailure::bad(
                    "need administrator rights in the channel chat",
                ))
            }
            BotStatus::Member | BotStatus::Admin => Ok(id),
        }
    }

    fn find_chat(&self, raw: &str) -> Result<i64, ApiFailure> {
        if raw.is_empty() {
            return Err(ApiFailure::bad("chat_id is empty"));
        }
        if let Some(name) = raw.strip_prefix('@') {
            let found = self.world.chats.iter().find(|chat| {
                let username = chat.username.as_deref();
                username.is_some_and(|username| username.eq_ignore_ascii_case(name))
            });
            return found
                .map(|chat| chat.id)
                .ok_or_else(|| ApiFailure::bad("chat not found"));
        }
        let id: i64 = raw.parse().map_err(|_| ApiFailure::bad("chat not found"))?;
        match self.migrated.get(&id) {
            Some(&new) => Err(ApiFailure::migrated(new)),
            None => Ok(id),
        }
    }

    fn stranger(&self, id: i64) -> ApiFailure {
        match self.world.user(id) {
            Some(user) if user.is_bot => {
                ApiFailure::forbidden("the bot can't send messages to the bot")
            }
            Some(_) => ApiFailure::forbidden("bot can't initiate conversation with a user"),
            None => ApiFailure::bad("chat not found"),
        }
    }

    /// Checks everything about where a new message goes.
    pub(super) fn check_target(&self, params: &MethodParams) -> Result<MessageTarget, ApiFailure> {
        let reply = reply_parameters(params)?;
        let chat = self.check_chat(params.text("chat_id"), ChatAccess::Write)?;
        let named = self.check_thread(chat, params.integer("message_thread_id"))?;
        let (reply_to, quote) = self.check_reply(chat, reply)?;
        let of_reply = reply_to
            .and_then(|id| self.message(chat, id))
            .and_then(|stored| stored.topic);
        let topic = named.or(of_reply);
        self.check_open(chat, topic)?;
        Ok(MessageTarget {
            chat,
            topic,
            reply_to,
            quote,
        })
    }

    /// A thread id counts only in forums; elsewhere it is silently ignored.
    fn check_thread(&self, chat: i64, thread: i64) -> Result<Option<i64>, ApiFailure> {
        let room = self.room(chat);
        if thread == 0 || !room.is_forum {
            return Ok(None);
        }
        let known = room.topics.iter().any(|topic| topic.id == thread);
        match known && thread != GENERAL_TOPIC {
            true => Ok(Some(thread)),
            false => Err(ApiFailure::bad("message thread not found")),
        }
    }

    fn check_open(&self, chat: i64, topic: Option<i64>) -> Result<(), ApiFailure> {
        let room = self.room(chat);
        let closed = room
            .topics
            .iter()
            .any(|known| Some(known.id) == topic && known.closed);
        match closed && room.bot_status != BotStatus::Admin {
            true => Err(ApiFailure::bad("TOPIC_CLOSED")),
            false => Ok(()),
        }
    }

    fn check_reply(
        &self,
        chat: i64,
        reply: Option<ReplyParameters>,
    ) -> Result<(Option<i64>, Option<Value>), ApiFailure> {
        let Some(reply) = reply else {
            return Ok((None, None));
        };
        let other_chat = match &reply.chat {
            Some(raw) => self.check_chat(raw, ChatAccess::Read)? != chat,
            None => false,
        };
        let missing = ApiFailure::bad("message to be replied not found");
        if other_chat {
            let there = reply.chat.as_deref().and_then(|raw| raw.parse().ok());
            let found = there.is_some_and(|there| self.message(there, reply.message).is_some());
            return if found {
                Ok((None, None))
            } else {
                Err(missing)
            };
        }
        let Some(stored) = self.message(chat, reply.message) else {
            return if reply.allow_missing {
                Ok((None, None))
            } else {
                Err(missing)
            };
        };
        let Some(quote) = reply.quote.filter(|quote| !quote.is_empty()) else {
            return Ok((Some(reply.message), None));
        };
        let text = stored.wire.get("text").or(stored.wire.get("caption"));
        let text = text.and_then(Value::as_str).unwrap_or("");
        let Some(byte) = text.find(&quote) else {
            return Err(ApiFailure::bad("QUOTE_TEXT_INVALID"));
        };
        let position = super::entities::utf16_len(&text[..byte]);
        let quote = json!({"text": quote, "position": position, "is_manual": true});
        Ok((Some(reply.message), Some(quote)))
    }
}

/// Reads `reply_parameters`, or the older pair of parameters.
fn reply_parameters(params: &MethodParams) -> Result<Option<ReplyParameters>, ApiFailure> {
    let Some(raw) = params.get("reply_parameters").filter(|raw| !raw.is_empty()) else {
        let message = params.integer("reply_to_message_id");
        let reply = ReplyParameters {
            message,
            allow_missing: params.boolean("allow_sending_without_reply"),
            ..ReplyParameters::default()
        };
        return Ok((message > 0).then_some(reply));
    };
    let value: Value = serde_json::from_str(raw)
        .map_err(|_| ApiFailure::bad("can't parse reply parameters JSON object"))?;
    let object = value
        .as_object()
        .ok_or_else(|| ApiFailure::bad("object expected as reply parameters"))?;
    let text = |name: &str| {
        object.get(name).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    };
    let message = text("message_id").map_or(0, |raw| lenient_integer(&raw));
    let reply = ReplyParameters {
        message,
        chat: text("chat_id"),
        allow_missing: text("allow_sending_without_reply").is_some_and(|raw| is_true(&raw)),
        quote: text("quote"),
    };
    Ok((message > 0).then_some(reply))
}

/// Reads a reply keyboard, a request for a reply, or the request to remove a keyboard.
pub(super) fn reply_keyboard(params: &MethodParams) -> Result<Option<Value>, ApiFailure> {
    let markup = params.get("reply_markup").unwrap_or_default();
    let mut markup: Value = serde_json::from_str(markup).unwrap_or_default();
    let is_one = ["keyboard", "force_reply", "remove_keyboard"]
        .iter()
        .any(|kind| markup.get(kind).is_some());
    if !is_one {
        return Ok(None);
    }
    let bad = |why: &str| ApiFailure::bad(&format!("can't parse keyboard button: {why}"));
    if let Some(keyboard) = markup.get_mut("keyboard") {
        let rows = keyboard.as_array_mut().ok_or_else(|| {
            ApiFailure::bad("field \"keyboard\" of the ReplyKeyboardMarkup must be an Array")
        })?;
        for row in rows {
            let buttons = row
                .as_array_mut()
                .ok_or_else(|| ApiFailure::bad("field \"keyboard\" must be an Array of Arrays"))?;
            for button in buttons {
                if button.is_string() {
                    *button = json!({"text": button.clone()});
                }
                if !button["text"].is_string() {
                    return Err(bad("Can't find field \"text\""));
                }
            }
        }
    }
    Ok(Some(markup))
}

/// Reads `reply_markup`; only inline keyboards stay with a message.
pub(super) fn reply_markup(params: &MethodParams) -> Result<Option<Value>, ApiFailure> {
    let Some(raw) = params.get("reply_markup").filter(|raw| !raw.is_empty()) else {
        return Ok(None);
    };
    let markup: Value = serde_json::from_str(raw)
        .map_err(|_| ApiFailure::bad("can't parse reply keyboard markup JSON object"))?;
    if !markup.is_object() {
        return Err(ApiFailure::bad("object expected as reply markup"));
    }
    let Some(keyboard) = markup.get("inline_keyboard") else {
        return Ok(None);
    };
    let rows = keyboard.as_array().ok_or_else(|| {
        ApiFailure::bad("field \"inline_keyboard\" of the InlineKeyboardMarkup must be an Array")
    })?;
    let mut count = 0;
    for row in rows {
        let buttons = row.as_array().ok_or_else(|| {
            ApiFailure::bad("field \"inline_keyboard\" must be an Array of Arrays")
        })?;
        for button in buttons {
            check_button(button)?;
        }
        count += buttons.len();
    }
    if count > INLINE_BUTTONS_MAX {
        return Err(ApiFailure::bad("reply markup is too long"));
    }
    let empty = rows
        .iter()
        .all(|row| row.as_array().is_none_or(Vec::is_empty));
    Ok((!empty).then(|| json!({"inline_keyboard": keyboard})))
}

/// Most buttons of an inline keyboard.
const INLINE_BUTTONS_MAX: usize = 100;
/// Most characters of the text that a button copies.
const COPIED_CHARS_MAX: usize = 256;
/// The styles of a button.
const STYLES: [&str; 3] = ["danger", "success", "primary"];

fn check_button(button: &Value) -> Result<(), ApiFailure> {
    const ACTIONS: [&str; 8] = [
        "url",
        "callback_data",
        "web_app",
        "login_url",
        "switch_inline_query",
        "switch_inline_query_current_chat",
        "copy_text",
        "pay",
    ];
    let bad = |why: &str| ApiFailure::bad(&format!("can't parse inline keyboard button: {why}"));
    if button.get("text").and_then(Value::as_str).is_none() {
        return Err(bad("Can't find field \"text\""));
    }
    if !ACTIONS.iter().any(|action| button.get(action).is_some()) {
        return Err(bad("Text buttons are unallowed in the inline keyboard"));
    }
    // The words of these two refusals are our own; the limits are the platform's.
    let style = button.get("style").and_then(Value::as_str);
    if button.get("style").is_some() && !style.is_some_and(|style| STYLES.contains(&style)) {
        return Err(bad("unknown style specified"));
    }
    if let Some(copied) = button.get("copy_text") {
        let chars = copied["text"]
            .as_str()
            .map_or(0, |text| text.chars().count());
        if !(1..=COPIED_CHARS_MAX).contains(&chars) {
            return Err(bad("text to copy must have 1 to 256 characters"));
        }
    }
    let data = button.get("callback_data").and_then(Value::as_str);
    match data.map(str::len) {
        Some(0 | 65..) => Err(ApiFailure::bad("BUTTON_DATA_INVALID")),
        _ => Ok(()),
    }
}
