//! The lists of commands that a bot registers: one for each scope and language.
//!
//! Owns `setMyCommands`, `getMyCommands` and `deleteMyCommands`, and their refusals. Knows no messages: registered or
//! not, a command in a message is text.

use serde_json::{Value, json};

use super::failure::ApiFailure;
use super::methods::{MethodResult, Success};
use super::params::MethodParams;
use super::rooms::TelegramRooms;
use super::target::ChatAccess;
use super::world::TelegramChatKind;

const COMMANDS_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 32;
const DESCRIPTION_CHARS_MAX: usize = 256;

/// Replaces the list of a scope.
pub(super) fn set(rooms: &mut TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let commands: Value = serde_json::from_str(params.text("commands"))
        .map_err(|_| ApiFailure::bad("can't parse commands JSON object"))?;
    let list = commands
        .as_array()
        .ok_or_else(|| ApiFailure::bad("expected an Array of BotCommand"))?;
    if list.len() > COMMANDS_MAX {
        return Err(ApiFailure::bad("BOT_COMMANDS_TOO_MUCH"));
    }
    let key = key_of(rooms, params)?;
    let list: Vec<Value> = list.iter().map(checked).collect::<MethodResult<_>>()?;
    if list.is_empty() {
        rooms.commands.remove(&key);
    } else {
        rooms.commands.insert(key, json!(list));
    }
    Ok(json!(true).into())
}

/// The list of exactly that scope and language.
pub(super) fn get(rooms: &TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let commands = rooms.commands.get(&key_of(rooms, params)?).cloned();
    Ok(commands.unwrap_or_else(|| json!([])).into())
}

/// Deletes the list of exactly that scope and language.
pub(super) fn delete(rooms: &mut TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let key = key_of(rooms, params)?;
    rooms.commands.remove(&key);
    Ok(json!(true).into())
}

/// The key of a scope without a language, given as the API writes scopes.
pub(super) fn key(scope: &Value) -> String {
    match scope["type"].as_str() {
        None | Some("default") => String::new(),
        Some(kind) => {
            let id = |name: &str| match &scope[name] {
                Value::String(text) => format!(" {text}"),
                Value::Null => String::new(),
                other => format!(" {other}"),
            };
            format!("{kind}{}{}", id("chat_id"), id("user_id"))
        }
    }
}

fn key_of(rooms: &TelegramRooms, params: &MethodParams) -> MethodResult<String> {
    let scope = read_scope(rooms, params.text("scope"))?;
    let language = params.text("language_code");
    let is_language = language.len() == 2 && language.bytes().all(|b| b.is_ascii_lowercase());
    if !language.is_empty() && !is_language {
        return Err(ApiFailure::bad("invalid language code specified"));
    }
    Ok(format!("{}{language}", key(&scope)))
}

fn read_scope(rooms: &TelegramRooms, raw: &str) -> MethodResult<Value> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    let wrong = |what: &str| ApiFailure::bad(&format!("can't parse BotCommandScope: {what}"));
    let scope: Value = serde_json::from_str(raw)
        .map_err(|_| ApiFailure::bad("can't parse bot command scope JSON object"))?;
    if !scope.is_object() {
        return Err(wrong("BotCommandScope must be an Object"));
    }
    let kind = scope["type"]
        .as_str()
        .ok_or_else(|| wrong("Can't find field \"type\""))?;
    match kind {
        "default" | "all_private_chats" | "all_group_chats" | "all_chat_administrators" => {
            return Ok(scope);
        }
        "chat" | "chat_administrators" | "chat_member" => {}
        _ => return Err(wrong("Unsupported type specified")),
    }
    let chat = match &scope["chat_id"] {
        Value::String(chat) if chat.is_empty() => return Err(wrong("Empty chat_id specified")),
        Value::String(chat) => chat.clone(),
        Value::Null => return Err(wrong("Can't find field \"chat_id\"")),
        chat => chat.to_string(),
    };
    if kind == "chat_member" {
        match &scope["user_id"] {
            Value::Null => return Err(wrong("Can't find field \"user_id\"")),
            user if user.as_i64().is_none_or(|user| user <= 0) => {
                return Err(wrong("Invalid user_id specified"));
            }
            _ => {}
        }
    }
    let chat = rooms.check_chat(&chat, ChatAccess::Read);
    // A list needs a chat that the bot knows, but no right to write there.
    let chat = chat.map_err(|_| ApiFailure::bad("chat not found"))?;
    match rooms.room(chat).kind {
        TelegramChatKind::Private if kind != "chat" => Err(ApiFailure::bad(
            "can't use specified scope in private chats",
        )),
        TelegramChatKind::Channel => Err(ApiFailure::bad("can't change commands in channel chats")),
        _ => Ok(scope),
    }
}

/// A command as the platform keeps it: trimmed, without a slash.
fn checked(command: &Value) -> MethodResult<Value> {
    let text = |name: &str| command[name].as_str().map(str::trim);
    let (Some(name), Some(description)) = (text("command"), text("description")) else {
        return Err(ApiFailure::bad(
            "can't parse BotCommand: Can't find field \"command\"",
        ));
    };
    let name = name.strip_prefix('/').unwrap_or(name);
    let checks = [
        (name.is_empty(), "command must be non-empty"),
        (
            name.chars().count() > NAME_CHARS_MAX,
            "command length must not exceed 32",
        ),
        (
            description.is_empty(),
            "command description must be non-empty",
        ),
        (
            description.chars().count() > DESCRIPTION_CHARS_MAX,
            "command description length must not exceed 256",
        ),
    ];
    if let Some((_, why)) = checks.iter().find(|(is_wrong, _)| *is_wrong) {
        return Err(ApiFailure::bad(why));
    }
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if !name.bytes().all(is_plain) {
        return Err(ApiFailure::bad("BOT_COMMAND_INVALID"));
    }
    Ok(json!({ "command": name, "description": description }))
}
