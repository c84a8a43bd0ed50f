//! Methods that post, edit and delete messages of the bot.
//!
//! Owns what a call leaves behind in a room. Where it may go is checked in `target`.

use serde_json::{Map, Value, json};

use super::failure::ApiFailure;
use super::methods::Success;
use super::params::{Params, Upload};
use super::rooms::{Draft, Rooms, entities_json, text_fields};
use super::target::{Access, Target, asks_for_replies, reply_markup};
use super::text::{Formatted, TextKind, formatted};
use super::world::{BotStatus, ChatKind};

/// A bot can't delete a message older than this, in seconds.
const DELETE_AGE_S_MAX: i64 = 48 * 3600;
/// A bot can't download a larger file, in bytes.
const DOWNLOAD_BYTES_MAX: usize = 20 << 20;

type Result<T> = std::result::Result<T, ApiFailure>;

pub(super) fn message_text(params: &Params) -> Result<Formatted> {
    formatted(
        params.text("text"),
        params.get("parse_mode"),
        params.get("entities"),
        TextKind::Message,
    )
}

pub(super) fn send_message(
    rooms: &mut Rooms,
    params: &Params,
    sends_max: Option<usize>,
) -> Result<Success> {
    let text = message_text(params)?;
    let markup = reply_markup(params)?;
    let target = rooms.check_target(params)?;
    rooms.count_send(target.chat, sends_max)?;
    let fields = text_fields(&text.text, &text.entities_json(), false);
    Ok(rooms
        .send(target, fields, markup, asks_for_replies(params))
        .into())
}

pub(super) fn send_document(
    rooms: &mut Rooms,
    params: &Params,
    sends_max: Option<usize>,
) -> Result<Success> {
    let caption = formatted(
        params.text("caption"),
        params.get("parse_mode"),
        params.get("caption_entities"),
        TextKind::Caption,
    )?;
    let markup = reply_markup(params)?;
    let document = rooms.document(params)?;
    let target = rooms.check_target(params)?;
    rooms.count_send(target.chat, sends_max)?;
    let mut fields = text_fields(&caption.text, &caption.entities_json(), true);
    fields.insert("document".to_owned(), document);
    Ok(rooms
        .send(target, fields, markup, asks_for_replies(params))
        .into())
}

pub(super) fn edit_message_text(
    rooms: &mut Rooms,
    params: &Params,
    sends_max: Option<usize>,
) -> Result<Success> {
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
        return Err(ApiFailure::bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
        ));
    }
    // What is refused for its rate changes nothing.
    rooms.count_send(chat, sends_max)?;
    let Some(stored) = rooms.message_mut(chat, id) else {
        return Err(ApiFailure::bad("message to edit not found"));
    };
    stored.set_text(&text.text, &text.entities, false);
    stored.edited = true;
    stored.wire.insert("edit_date".to_owned(), json!(now_s));
    match markup {
        Some(markup) => stored.wire.insert("reply_markup".to_owned(), markup),
        None => stored.wire.remove("reply_markup"),
    };
    Ok(rooms.wire_of(chat, id).into())
}

pub(super) fn delete_message(rooms: &mut Rooms, params: &Params) -> Result<Success> {
    let (chat, id) = rooms.check_message(params, "message to delete not found")?;
    rooms.delete_by_bot(chat, id)?;
    Ok(json!(true).into())
}

pub(super) fn delete_messages(rooms: &mut Rooms, params: &Params) -> Result<Success> {
    let ids: Vec<i64> = serde_json::from_str(params.text("message_ids"))
        .map_err(|_| ApiFailure::bad("can't parse message identifiers JSON object"))?;
    if ids.is_empty() {
        return Err(ApiFailure::bad("message identifiers are not specified"));
    }
    if ids.len() > 100 {
        return Err(ApiFailure::bad("too many message identifiers specified"));
    }
    let chat = rooms.check_chat(params.text("chat_id"), Access::Read)?;
    for id in ids {
        if rooms.message(chat, id).is_some() {
            rooms.delete_by_bot(chat, id)?;
        }
    }
    Ok(json!(true).into())
}

impl Rooms {
    /// Something else stands where a draft stood.
    pub(super) fn end_drafts(&mut self, chat: i64) {
        let drafts = self.drafts.iter_mut().filter(|draft| draft.chat == chat);
        drafts.for_each(|draft| draft.is_gone = true);
    }

    fn send(
        &mut self,
        target: Target,
        fields: Map<String, Value>,
        markup: Option<Value>,
        is_fixed: bool,
    ) -> Value {
        let mut fields = fields;
        self.end_drafts(target.chat);
        if let Some(quote) = target.quote {
            fields.insert("quote".to_owned(), quote);
        }
        if let Some(markup) = markup {
            fields.insert("reply_markup".to_owned(), markup);
        }
        let is_channel = self.room(target.chat).kind == ChatKind::Channel;
        if is_channel {
            let sender = self.world.chat_json(target.chat);
            fields.insert("sender_chat".to_owned(), sender);
        }
        let id = self.store(Draft {
            chat: target.chat,
            from: (!is_channel).then_some(self.world.bot.id),
            by_bot: true,
            is_fixed,
            topic: target.topic,
            reply_to: target.reply_to,
            fields,
            ..Draft::default()
        });
        self.wire_of(target.chat, id)
    }

    /// Finds the message that a call is about.
    pub(super) fn check_message(&self, params: &Params, missing: &str) -> Result<(i64, i64)> {
        let id = params.integer("message_id");
        if id == 0 && params.text("chat_id").is_empty() {
            return Err(ApiFailure::bad("message identifier is not specified"));
        }
        let chat = self.check_chat(params.text("chat_id"), Access::Read)?;
        match self.message(chat, id) {
            Some(_) => Ok((chat, id)),
            None => Err(ApiFailure::bad(missing)),
        }
    }

    fn delete_by_bot(&mut self, chat: i64, id: i64) -> Result<()> {
        let now_s = self.now_s();
        let room = self.room(chat);
        let (admin, private) = (
            room.bot_status == BotStatus::Admin,
            room.kind == ChatKind::Private,
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

    /// The document of a call: an upload, `attach://part`, or a file that the platform knows.
    fn document(&mut self, params: &Params) -> Result<Value> {
        let named = params.text("document");
        let part = named.strip_prefix("attach://").unwrap_or("document");
        if let Some(upload) = params.file(part).cloned() {
            if upload.bytes.is_empty() {
                return Err(ApiFailure::bad("file must be non-empty"));
            }
            return Ok(self.keep_file(upload));
        }
        match self.files.get(named) {
            Some(upload) => Ok(document_json(named, upload)),
            None if named.is_empty() => Err(ApiFailure::bad("there is no document in the request")),
            None => Err(ApiFailure::bad("wrong file identifier/HTTP URL specified")),
        }
    }

    /// Keeps the bytes of a file; gives its object.
    pub(super) fn keep_file(&mut self, upload: Upload) -> Value {
        let id = format!("BQACAgIAAxkDAAI{:08}", self.serial());
        let document = document_json(&id, &upload);
        self.files.insert(id, upload);
        document
    }
}

fn document_json(id: &str, upload: &Upload) -> Value {
    json!({
        "file_id": id, "file_unique_id": format!("AgAD{}", &id[id.len() - 8..]),
        "file_name": upload.file_name, "mime_type": upload.content_type,
        "file_size": upload.bytes.len(),
    })
}

pub(super) fn get_file(rooms: &Rooms, params: &Params) -> Result<Success> {
    let id = params.text("file_id");
    let Some(upload) = rooms.files.get(id) else {
        return Err(ApiFailure::bad("invalid file_id"));
    };
    if upload.bytes.len() > DOWNLOAD_BYTES_MAX {
        return Err(ApiFailure::bad("file is too big"));
    }
    let mut file = document_json(id, upload);
    file["file_path"] = json!(format!("documents/{id}"));
    Ok(file.into())
}
