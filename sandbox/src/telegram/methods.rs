//! The methods of the API by name, and the small ones in full.
//!
//! Owns dispatch. Posting and editing are in `sends`, the long poll in `polling`. A method that the
//! API has and this server does not answers like an unknown one.

use serde_json::{Value, json};

use super::command_lists;
use super::copies::{self, CopyWay};
use super::failure::ApiFailure;
use super::media::{self, MediaKind};
use super::params::MethodParams;
use super::probes;
use super::rooms::{CALLBACK_LIFE_S, TelegramPreview, TelegramRooms};
use super::sends;
use super::target::ChatAccess;
use super::webhook;
use super::world::{BotStatus, TelegramChatKind};

/// Methods that this server answers, as the API spells them.
const NAMES: [&str; 42] = [
    "getMe",
    "getUpdates",
    "setWebhook",
    "deleteWebhook",
    "getWebhookInfo",
    "sendMessage",
    "sendDocument",
    "sendPhoto",
    "sendAudio",
    "sendVideo",
    "sendAnimation",
    "sendVoice",
    "sendVideoNote",
    "sendMediaGroup",
    "editMessageCaption",
    "editMessageMedia",
    "editMessageReplyMarkup",
    "copyMessage",
    "copyMessages",
    "forwardMessage",
    "forwardMessages",
    "sendChatAction",
    "sendMessageDraft",
    "editMessageText",
    "deleteMessage",
    "deleteMessages",
    "stopMessageLiveLocation",
    "setMessageReaction",
    "setMyCommands",
    "getMyCommands",
    "deleteMyCommands",
    "getChat",
    "getChatMember",
    "getChatMemberCount",
    "getChatAdministrators",
    "leaveChat",
    "getFile",
    "answerCallbackQuery",
    "logOut",
    "close",
    "setMyDescription",
    "setMyShortDescription",
];
/// The rights that an administrator always has in these rooms.
pub(super) const ADMIN_RIGHTS: [&str; 7] = [
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_change_info",
    "can_invite_users",
    "can_manage_topics",
];
/// The rights that an administrator never has in these rooms.
pub(super) const ADMIN_NOT: [&str; 7] = [
    "can_be_edited",
    "is_anonymous",
    "can_promote_members",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_send_welcome_messages",
];
/// Emoji that bots may react with (a part of the platform's list).
const REACTIONS: [&str; 40] = [
    "👍", "👎", "❤", "🔥", "🥰", "👏", "😁", "🤔", "🤯", "😱", "🤬", "😢", "🎉", "🤩", "🤮", "💩",
    "🙏", "👌", "🕊", "🤡", "🥱", "🥴", "😍", "🐳", "🌚", "💯", "🤣", "⚡", "🏆", "💔", "🤨", "😐",
    "👀", "✍", "🤝", "🫡", "🆒", "👻", "🤓", "😴",
];
/// The values of `action` in `sendChatAction`.
const ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];

pub(super) type MethodResult<T> = Result<T, ApiFailure>;

/// A result, with the description that some methods add.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Success {
    result: Value,
    description: Option<&'static str>,
}

impl From<Value> for Success {
    fn from(result: Value) -> Self {
        Self {
            result,
            description: None,
        }
    }
}

impl Success {
    /// `true`, with a description.
    pub(super) fn described(description: &'static str) -> Self {
        Self {
            result: json!(true),
            description: Some(description),
        }
    }

    pub(super) fn body(self) -> Value {
        let mut body = json!({"ok": true, "result": self.result});
        if let Some(description) = self.description {
            body["description"] = json!(description);
        }
        body
    }
}

/// A method's name as the API spells it.
pub(super) fn spelled(method: &str) -> String {
    let known = NAMES.iter().find(|name| name.eq_ignore_ascii_case(method));
    known.map_or_else(|| method.to_owned(), |&name| name.to_owned())
}

/// Carries out a method; `method` is in lower case.
pub(super) fn call(
    rooms: &mut TelegramRooms,
    method: &str,
    params: &MethodParams,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    match method {
        "getme" => Ok(rooms.world.bot.as_me().into()),
        "sendmessage" => sends::send_message(rooms, params, sends_max),
        "senddocument" => media::send(rooms, params, MediaKind::Document, sends_max),
        "sendphoto" => media::send(rooms, params, MediaKind::Photo, sends_max),
        "sendaudio" => media::send(rooms, params, MediaKind::Audio, sends_max),
        "sendvideo" => media::send(rooms, params, MediaKind::Video, sends_max),
        "sendanimation" => media::send(rooms, params, MediaKind::Animation, sends_max),
        "sendvoice" => media::send(rooms, params, MediaKind::Voice, sends_max),
        "sendvideonote" => media::send(rooms, params, MediaKind::VideoNote, sends_max),
        "sendmediagroup" => media::send_group(rooms, params, sends_max),
        "editmessagecaption" => media::edit_caption(rooms, params, sends_max),
        "editmessagemedia" => media::edit_media(rooms, params, sends_max),
        "editmessagereplymarkup" => sends::edit_reply_markup(rooms, params, sends_max),
        "copymessage" => copies::one(rooms, params, CopyWay::Copy, sends_max),
        "copymessages" => copies::many(rooms, params, CopyWay::Copy, sends_max),
        "forwardmessage" => copies::one(rooms, params, CopyWay::Forward, sends_max),
        "forwardmessages" => copies::many(rooms, params, CopyWay::Forward, sends_max),
        "editmessagetext" => sends::edit_message_text(rooms, params, sends_max),
        "deletemessage" => sends::delete_message(rooms, params),
        "deletemessages" => sends::delete_messages(rooms, params),
        "stopmessagelivelocation" => probes::stop_live_location(rooms, params),
        "getfile" => media::get_file(rooms, params),
        "sendchataction" => send_chat_action(rooms, params),
        "sendmessagedraft" => send_message_draft(rooms, params),
        "setmessagereaction" => set_message_reaction(rooms, params),
        "setmycommands" => command_lists::set(rooms, params),
        "getmycommands" => command_lists::get(rooms, params),
        "deletemycommands" => command_lists::delete(rooms, params),
        "setmydescription" | "setmyshortdescription" => Ok(json!(true).into()),
        "getchat" => get_chat(rooms, params),
        "getchatmember" => get_chat_member(rooms, params),
        "getchatmembercount" => {
            let chat = rooms.check_chat(params.text("chat_id"), ChatAccess::Read)?;
            Ok(json!(rooms.room(chat).members.len() + 1).into())
        }
        "getchatadministrators" => get_chat_administrators(rooms, params),
        "leavechat" => {
            let chat = rooms.check_chat(params.text("chat_id"), ChatAccess::Read)?;
            rooms.room_mut(chat).bot_status = BotStatus::Left;
            Ok(json!(true).into())
        }
        "answercallbackquery" => answer_callback_query(rooms, params),
        "deletewebhook" => Ok(webhook::delete(rooms, params)),
        "getwebhookinfo" => Ok(webhook::info(rooms)),
        "logout" => {
            rooms.logged_out = true;
            Ok(json!(true).into())
        }
        "close" => Ok(json!(true).into()),
        _ => Err(ApiFailure::worded(404, "method not found")),
    }
}

fn send_chat_action(rooms: &mut TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let action = params.text("action").to_ascii_lowercase();
    let chat = rooms.check_chat(params.text("chat_id"), ChatAccess::Write)?;
    if !ACTIONS.contains(&action.as_str()) {
        return Err(ApiFailure::bad("wrong parameter action in request"));
    }
    rooms.actions.push((chat, action));
    Ok(json!(true).into())
}

fn send_message_draft(rooms: &mut TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let chat = rooms.check_chat(params.text("chat_id"), ChatAccess::Write)?;
    let id = params.integer("draft_id");
    if rooms.room(chat).kind != TelegramChatKind::Private || id == 0 {
        return Err(ApiFailure::bad("TEXTDRAFT_PEER_INVALID"));
    }
    let text = match params.text("text") {
        "" => String::new(),
        _ => sends::message_text(params)?.text,
    };
    rooms.end_drafts(chat);
    let shown_s = rooms.now_s();
    rooms.drafts.push(TelegramPreview {
        chat,
        id,
        text,
        shown_s,
        is_gone: false,
    });
    Ok(json!(true).into())
}

fn set_message_reaction(rooms: &mut TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let (chat, id) = rooms.check_message(params, "message to react not found")?;
    let wanted: Value = match params.text("reaction") {
        "" => json!([]),
        raw => serde_json::from_str(raw)
            .map_err(|_| ApiFailure::bad("can't parse reaction types JSON object"))?,
    };
    let reactions = wanted
        .as_array()
        .ok_or_else(|| ApiFailure::bad("expected an Array of ReactionType"))?;
    let allowed = |reaction: &Value| {
        let emoji = reaction["emoji"].as_str().unwrap_or("");
        reaction["type"] == "emoji" && REACTIONS.contains(&emoji)
    };
    if reactions.len() > 1 {
        return Err(ApiFailure::bad("REACTIONS_TOO_MANY"));
    }
    if !reactions.iter().all(allowed) {
        return Err(ApiFailure::bad("REACTION_INVALID"));
    }
    rooms.reactions.insert((chat, id), wanted);
    Ok(json!(true).into())
}

fn get_chat(rooms: &TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let id = rooms.check_chat(params.text("chat_id"), ChatAccess::Read)?;
    let mut chat = rooms.world.chat_json(id);
    chat["accent_color_id"] = json!(3);
    chat["max_reaction_count"] = json!(11);
    chat["accepted_gift_types"] = json!({
        "unlimited_gifts": false, "limited_gifts": false, "unique_gifts": false,
        "premium_subscription": false, "gifts_from_channels": false,
    });
    if rooms.room(id).kind != TelegramChatKind::Private {
        chat["permissions"] = json!({"can_send_messages": true});
    }
    Ok(chat.into())
}

fn get_chat_member(rooms: &TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let chat = rooms.check_chat(params.text("chat_id"), ChatAccess::Read)?;
    let user = params.integer("user_id");
    if user <= 0 {
        return Err(ApiFailure::bad("invalid user_id specified"));
    }
    let known = user == rooms.world.bot.id || rooms.world.user(user).is_some();
    match known {
        true => Ok(member(rooms, chat, user).into()),
        false => Err(ApiFailure::bad("PARTICIPANT_ID_INVALID")),
    }
}

fn member(rooms: &TelegramRooms, chat: i64, user: i64) -> Value {
    let room = rooms.room(chat);
    let who = rooms.world.user_json(user);
    let position = room.members.iter().position(|&member| member == user);
    if user == rooms.world.bot.id {
        let mut me = json!({"user": who, "status": room.bot_status.as_str()});
        if room.bot_status == BotStatus::Admin {
            for right in ADMIN_RIGHTS {
                me[right] = json!(true);
            }
            for right in ADMIN_NOT {
                me[right] = json!(false);
            }
        }
        return me;
    }
    match position {
        // The first member is the creator of the room.
        Some(0) if room.kind != TelegramChatKind::Private => {
            json!({"user": who, "status": "creator", "is_anonymous": false})
        }
        Some(_) => json!({"user": who, "status": "member"}),
        None => json!({"user": who, "status": "left"}),
    }
}

fn get_chat_administrators(rooms: &TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let chat = rooms.check_chat(params.text("chat_id"), ChatAccess::Read)?;
    let room = rooms.room(chat);
    if room.kind == TelegramChatKind::Private {
        return Err(ApiFailure::bad(
            "there are no administrators in the private chat",
        ));
    }
    let mut admins: Vec<Value> = room
        .members
        .first()
        .map(|&creator| member(rooms, chat, creator))
        .into_iter()
        .collect();
    if room.bot_status == BotStatus::Admin {
        admins.push(member(rooms, chat, rooms.world.bot.id));
    }
    Ok(json!(admins).into())
}

fn answer_callback_query(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
) -> MethodResult<Success> {
    let now_s = rooms.now_s();
    let answer = json!({"text": params.text("text"), "show_alert": params.boolean("show_alert")});
    if params.text("text").chars().count() > 200 {
        return Err(ApiFailure::bad("MESSAGE_TOO_LONG"));
    }
    match rooms.callbacks.get_mut(params.text("callback_query_id")) {
        // A press can be answered only once.
        Some((pressed_s, stored)) if now_s - *pressed_s <= CALLBACK_LIFE_S && stored.is_none() => {
            *stored = Some(answer);
            Ok(json!(true).into())
        }
        _ => Err(ApiFailure::bad(
            "query is too old and response timeout expired or query ID is invalid",
        )),
    }
}
