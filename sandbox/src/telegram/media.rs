//! Files and the messages that carry them: photos, documents, albums, voice, and their captions.
//!
//! Owns the files that the platform keeps and which of them a call means. *Source:* telegram.md §9.4
//! and the Bot API's own list of methods.

use serde_json::{Map, Value, json};

use super::failure::ApiFailure;
use super::methods::{MethodResult, Success};
use super::params::{MethodParams, Upload};
use super::rooms::{TelegramRooms, text_fields};
use super::target::{reply_keyboard, reply_markup};
use super::text::{Formatted, TextKind, formatted};

/// A bot can't download a larger file, in bytes.
const DOWNLOAD_BYTES_MAX: usize = 20 << 20;
/// The most bytes of a photo.
const PHOTO_BYTES_MAX: usize = 10 << 20;
/// Most messages of an album.
const ALBUM_MAX: usize = 10;

/// What a file is shown as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MediaKind {
    Animation,
    Audio,
    Document,
    Photo,
    Video,
    VideoNote,
    Voice,
}

impl MediaKind {
    /// The kind with this name in `InputMedia`, and as a field of a message.
    fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Animation,
            Self::Audio,
            Self::Document,
            Self::Photo,
            Self::Video,
            Self::VideoNote,
            Self::Voice,
        ];
        all.into_iter().find(|kind| kind.field() == name)
    }

    fn field(self) -> &'static str {
        match self {
            Self::Animation => "animation",
            Self::Audio => "audio",
            Self::Document => "document",
            Self::Photo => "photo",
            Self::Video => "video",
            Self::VideoNote => "video_note",
            Self::Voice => "voice",
        }
    }

    /// The name used in errors.
    fn title(self) -> &'static str {
        match self {
            Self::Animation => "Animation",
            Self::Audio => "Audio",
            Self::Document => "Document",
            Self::Photo => "Photo",
            Self::Video => "Video",
            Self::VideoNote => "VideoNote",
            Self::Voice => "VoiceNote",
        }
    }

    /// The prefix of ids of such files, and the folder of their paths.
    fn prefix_and_folder(self) -> (&'static str, &'static str) {
        match self {
            Self::Animation => ("CgACAgIAAxkDAAI", "animations"),
            Self::Audio => ("CQACAgIAAxkDAAI", "music"),
            Self::Document => ("BQACAgIAAxkDAAI", "documents"),
            Self::Photo => ("AgACAgIAAxkDAAI", "photos"),
            Self::Video => ("BAACAgIAAxkDAAI", "videos"),
            Self::VideoNote => ("DQACAgIAAxkDAAI", "video_notes"),
            Self::Voice => ("AwACAgIAAxkDAAI", "voice"),
        }
    }

    fn check(self, upload: &Upload) -> MethodResult<()> {
        let size = upload.bytes.len();
        if size == 0 {
            return Err(ApiFailure::bad("file must be non-empty"));
        }
        if self != Self::Photo {
            return Ok(());
        }
        if size > PHOTO_BYTES_MAX {
            return Err(ApiFailure::bad(&format!(
                "file of size {size} bytes is too big for a photo; the maximum size is {PHOTO_BYTES_MAX} bytes"
            )));
        }
        match is_image(&upload.bytes) {
            true => Ok(()),
            false => Err(ApiFailure::bad("IMAGE_PROCESS_FAILED")),
        }
    }
}

/// Whether bytes begin as a PNG, JPEG, GIF, BMP or WebP does.
fn is_image(bytes: &[u8]) -> bool {
    let starts: [&[u8]; 4] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM"];
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    is_webp || starts.iter().any(|start| bytes.starts_with(start))
}

/// Width and height of a PNG; of other pictures a common size.
fn dimensions(bytes: &[u8]) -> (u32, u32) {
    let number = |at: usize| {
        let four = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four)).filter(|it| (1..=10_000).contains(it))
    };
    let is_png = bytes.starts_with(b"\x89PNG");
    match (is_png, number(16), number(20)) {
        (true, Some(width), Some(height)) => (width, height),
        _ => (800, 600),
    }
}

/// A file that the platform keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptFile {
    kind: MediaKind,
    pub(super) upload: Upload,
}

impl KeptFile {
    /// The file's object, without what a message adds to it.
    fn to_json(&self, id: &str) -> Value {
        let mut file = json!({
            "file_id": id, "file_unique_id": format!("AgAD{}", &id[id.len() - 8..]),
            "file_size": self.upload.bytes.len(),
        });
        if !matches!(self.kind, MediaKind::Photo | MediaKind::VideoNote) {
            file["mime_type"] = json!(self.upload.content_type);
        }
        if !matches!(
            self.kind,
            MediaKind::Photo | MediaKind::VideoNote | MediaKind::Voice
        ) {
            file["file_name"] = json!(self.upload.file_name);
        }
        file
    }
}

/// `sendPhoto`, `sendDocument` and the other methods that send one file.
pub(super) fn send(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    kind: MediaKind,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let caption = match kind {
        MediaKind::VideoNote => Formatted::default(),
        _ => caption(|name| params.get(name))?,
    };
    let (markup, keyboard) = (reply_markup(params)?, reply_keyboard(params)?);
    let content = rooms.media(params, kind, params.text(kind.field()), &|name| {
        params.get(name).map(str::to_owned)
    })?;
    let target = rooms.check_target(params)?;
    rooms.count_send(target.chat, sends_max)?;
    let mut fields = text_fields(&caption.text, &caption.entities_json(), true);
    fields.extend(content);
    Ok(rooms.send(target, fields, markup, keyboard).into())
}

/// The caption of a call or of one item of an album.
fn caption<'a>(get: impl Fn(&str) -> Option<&'a str>) -> MethodResult<Formatted> {
    formatted(
        get("caption").unwrap_or_default(),
        get("parse_mode"),
        get("caption_entities"),
        TextKind::Caption,
    )
}

/// `sendMediaGroup`: an album, each item a message of its own.
pub(super) fn send_group(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let media: Value = serde_json::from_str(params.text("media"))
        .map_err(|_| ApiFailure::bad("can't parse media JSON object"))?;
    let items = media
        .as_array()
        .ok_or_else(|| ApiFailure::bad("expected an Array of InputMedia"))?;
    if items.is_empty() {
        return Err(ApiFailure::bad("there are no messages to send"));
    }
    if items.len() > ALBUM_MAX {
        return Err(ApiFailure::bad("too many messages to send as an album"));
    }
    let mut contents = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let content = album_item(rooms, params, items, item);
        let failed = |why: ApiFailure| {
            let why = why.description.replacen("Bad Request: ", "", 1);
            let message = format!(
                "failed to send message #{} with the error message \"{why}\"",
                n + 1
            );
            ApiFailure::bad(&message)
        };
        contents.push(content.map_err(failed)?);
    }
    let target = rooms.check_target(params)?;
    let group = format!("1{:016}", rooms.serial());
    let is_album = contents.len() > 1;
    let mut sent = Vec::new();
    for mut fields in contents {
        rooms.count_send(target.chat, sends_max)?;
        if is_album {
            fields.insert("media_group_id".to_owned(), json!(group));
        }
        sent.push(rooms.send(target.clone(), fields, None, None));
    }
    Ok(json!(sent).into())
}

fn album_item(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    items: &[Value],
    item: &Value,
) -> MethodResult<Map<String, Value>> {
    let name = item["type"].as_str().unwrap_or_default();
    let kind = MediaKind::named(name).filter(|kind| {
        use MediaKind::{Audio, Document, Photo, Video};
        [Audio, Document, Photo, Video].contains(kind)
    });
    let kind = kind.ok_or_else(|| ApiFailure::bad("can't parse InputMedia: unsupported type"))?;
    let is_alone = matches!(kind, MediaKind::Audio | MediaKind::Document);
    if is_alone && items.iter().any(|other| other["type"] != name) {
        return Err(ApiFailure::bad(&format!(
            "{} can't be mixed with other media types",
            kind.title()
        )));
    }
    input_media(rooms, params, kind, item)
}

/// The fields of one `InputMedia`, with its caption.
fn input_media(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    kind: MediaKind,
    item: &Value,
) -> MethodResult<Map<String, Value>> {
    let text = |name: &str| match &item[name] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let words = ["caption", "parse_mode", "caption_entities"].map(|name| (name, text(name)));
    let caption = caption(|name| {
        let found = words.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value.as_deref())
    })?;
    let media = text("media").unwrap_or_default();
    let mut fields = text_fields(&caption.text, &caption.entities_json(), true);
    fields.extend(rooms.media(params, kind, &media, &text)?);
    Ok(fields)
}

/// `editMessageMedia`: another file with another caption.
pub(super) fn edit_media(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let (chat, id) = rooms.own_message(params)?;
    let item: Value = serde_json::from_str(params.text("media"))
        .map_err(|_| ApiFailure::bad("can't parse input media JSON object"))?;
    let kind = MediaKind::named(item["type"].as_str().unwrap_or_default());
    let kind = kind.ok_or_else(|| ApiFailure::bad("can't parse InputMedia: unsupported type"))?;
    let markup = reply_markup(params)?;
    let fields = input_media(rooms, params, kind, &item)?;
    rooms.count_send(chat, sends_max)?;
    rooms.change_content(chat, id, |wire| {
        let is_content = |name: &String| {
            MediaKind::named(name).is_some()
                || ["text", "entities", "caption", "caption_entities"].contains(&name.as_str())
        };
        wire.retain(|name, _| !is_content(name));
        wire.extend(fields);
        set_markup(wire, markup);
    })
}

/// `editMessageCaption`.
pub(super) fn edit_caption(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    sends_max: Option<usize>,
) -> MethodResult<Success> {
    let caption = caption(|name| params.get(name))?;
    let markup = reply_markup(params)?;
    let (chat, id) = rooms.own_message(params)?;
    let stored = rooms.message(chat, id).map(|stored| &stored.wire);
    let wire = stored.ok_or_else(|| ApiFailure::bad("message to edit not found"))?;
    if !wire.keys().any(|name| MediaKind::named(name).is_some()) {
        return Err(ApiFailure::bad(
            "there is no caption in the message to edit",
        ));
    }
    let fields = text_fields(&caption.text, &caption.entities_json(), true);
    let is_same = ["caption", "caption_entities"]
        .iter()
        .all(|name| wire.get(*name) == fields.get(*name));
    if is_same && wire.get("reply_markup") == markup.as_ref() {
        return Err(ApiFailure::not_modified());
    }
    rooms.count_send(chat, sends_max)?;
    rooms.change_content(chat, id, |wire| {
        wire.remove("caption");
        wire.remove("caption_entities");
        wire.extend(fields);
        set_markup(wire, markup);
    })
}

/// Adds an inline keyboard to a message, or removes it.
pub(super) fn set_markup(wire: &mut Map<String, Value>, markup: Option<Value>) {
    match markup {
        Some(markup) => wire.insert("reply_markup".to_owned(), markup),
        None => wire.remove("reply_markup"),
    };
}

pub(super) fn get_file(rooms: &TelegramRooms, params: &MethodParams) -> MethodResult<Success> {
    let id = params.text("file_id");
    let Some(kept) = rooms.files.get(id) else {
        return Err(ApiFailure::bad("invalid file_id"));
    };
    if kept.upload.bytes.len() > DOWNLOAD_BYTES_MAX {
        return Err(ApiFailure::bad("file is too big"));
    }
    let whole = kept.to_json(id);
    let mut file = json!({});
    for name in ["file_id", "file_unique_id", "file_size"] {
        file[name] = whole[name].clone();
    }
    let (_, folder) = kept.kind.prefix_and_folder();
    file["file_path"] = json!(format!("{folder}/{id}"));
    Ok(file.into())
}

impl TelegramRooms {
    /// The media fields of a message: an upload, `attach://part`, or a file that the platform knows.
    fn media(
        &mut self,
        params: &MethodParams,
        kind: MediaKind,
        named: &str,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> MethodResult<Map<String, Value>> {
        let part = named.strip_prefix("attach://").unwrap_or(kind.field());
        let id = match params.file(part).cloned() {
            Some(upload) => {
                kind.check(&upload)?;
                self.keep_as(kind, upload)
            }
            None => self.known_file(kind, named)?,
        };
        let kept = &self.files[&id];
        let mut file = kept.to_json(&id);
        let number = |name: &str, default: i64| {
            let given = get(name).map(|raw| super::params::lenient_integer(&raw));
            json!(given.filter(|it| *it > 0).unwrap_or(default))
        };
        match kind {
            MediaKind::Document => {}
            MediaKind::Photo => {
                let (width, height) = dimensions(&kept.upload.bytes);
                (file["width"], file["height"]) = (json!(width), json!(height));
            }
            MediaKind::Video | MediaKind::Animation => {
                file["width"] = number("width", 320);
                file["height"] = number("height", 240);
                file["duration"] = number("duration", 1);
            }
            MediaKind::VideoNote => {
                file["length"] = number("length", 240);
                file["duration"] = number("duration", 1);
            }
            MediaKind::Voice => file["duration"] = number("duration", 1),
            MediaKind::Audio => {
                file["duration"] = number("duration", 1);
                for name in ["performer", "title"] {
                    if let Some(value) = get(name) {
                        file[name] = json!(value);
                    }
                }
            }
        }
        let content = match kind {
            MediaKind::Photo => json!([file]),
            _ => file,
        };
        let mut fields = Map::from_iter([(kind.field().to_owned(), content.clone())]);
        if kind == MediaKind::Animation {
            fields.insert("document".to_owned(), content);
        }
        let flags = [
            ("show_caption_above_media", "show_caption_above_media"),
            ("has_spoiler", "has_media_spoiler"),
        ];
        for (asked, shown) in flags {
            if get(asked).is_some_and(|raw| super::params::is_true(&raw)) {
                fields.insert(shown.to_owned(), json!(true));
            }
        }
        Ok(fields)
    }

    /// A file by its id. Internet addresses are not fetched here.
    fn known_file(&self, kind: MediaKind, named: &str) -> MethodResult<String> {
        match self.files.get(named) {
            Some(kept) if kept.kind == kind || kind == MediaKind::Document => Ok(named.to_owned()),
            Some(kept) => Err(ApiFailure::bad(&format!(
                "can't use file of type {} as {}",
                kept.kind.title(),
                kind.title()
            ))),
            None if named.is_empty() => Err(ApiFailure::bad(&format!(
                "there is no {} in the request",
                kind.field().replace('_', " ")
            ))),
            None if named.starts_with("http://") || named.starts_with("https://") => {
                Err(ApiFailure::bad("failed to get HTTP URL content"))
            }
            None => Err(ApiFailure::bad("wrong file identifier/HTTP URL specified")),
        }
    }

    /// Keeps the bytes of a document; gives its object.
    pub(super) fn keep_file(&mut self, upload: Upload) -> Value {
        let id = self.keep_as(MediaKind::Document, upload);
        self.files[&id].to_json(&id)
    }

    fn keep_as(&mut self, kind: MediaKind, upload: Upload) -> String {
        let (prefix, _) = kind.prefix_and_folder();
        let id = format!("{prefix}{:08}", self.serial());
        self.files.insert(id.clone(), KeptFile { kind, upload });
        id
    }
}
