//! What Telegram Desktop exports: one `result.json`, of a chat or of a whole account, read message by
//! message however long it is.
//!
//! It is read twice. The first reading, the survey, learns what is only known at the end of a chat: whose export it is,
//! and where a basic group became a supergroup. Then every message goes through the same translation as a live one. In
//! supergroups and channels a message has the same id for every account, so that is the live identity. In basic groups
//! and private chats each account numbers messages for itself: such a message gets an id of its own (`import:…`) and is
//! recognised by sender, second and text; the same holds for what a supergroup keeps from the time when it was a basic
//! group.

use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::export::{
    Export, ExportError, ExportFile, ExportSink, Exported, ExportedChat, ExportedIdentity,
    ExportedMessage, MESSAGE_MAX_BYTES, mismatch, modified_ms,
};
use crate::json_object::read_object;
use crate::json_stream::{JsonStream, Lifted, ScanError, mend};
use vocative_contract::envelope::ChatKind;
use vocative_contract::identity::Identity;
use vocative_contract::markup::one_line;

use super::export_wire::{Author, ExportMessage, channel_id};
use super::translate::inbound_message;
use super::wire::{Chat, Message, lenient};

/// The file that Telegram Desktop writes.
const RESULT: &str = "result.json";
/// The longest field before a chat's messages, in bytes.
const FIELD_MAX_BYTES: usize = 1 << 16;
/// The most messages whose topic is remembered.
const IN_TOPICS_MAX: usize = 4_000_000;
/// The most different messages of one second that are counted as possible twins.
const TWINS_MAX: usize = 1_000_000;
/// The action of a service message that begins a topic; its id is the topic's.
const TOPIC_CREATED: &str = "topic_created";
/// Messages of a forum that are not stored: if stored in General, they would stay there for good.
const OF_UNKNOWN_TOPIC: &str = "messages of a forum's topic that is not known: they reply to what is before this export; export the whole chat";
/// The most topics of a chat that are told apart.
const TOPICS_MAX: usize = 100_000;

/// Opens an export for the bot of that identity.
///
/// # Errors
/// [`ExportError`] if there is no export at `path`.
pub fn open_export(path: &Path, identity: &Identity) -> Result<Box<dyn Export>, ExportError> {
    let cannot = |path: &Path, cause| ExportError::Open {
        path: path.to_owned(),
        cause,
    };
    let metadata = std::fs::metadata(path).map_err(|cause| cannot(path, cause))?;
    let path = if metadata.is_dir() {
        path.join(RESULT)
    } else {
        path.to_owned()
    };
    let metadata = std::fs::metadata(&path).map_err(|_| ExportError::NotAnExport {
        what: format!(
            "there is no {}; give the folder or the result.json that Telegram Desktop wrote (Export chat history, format: machine-readable JSON)",
            path.display()
        ),
    })?;
    let export = TelegramExport {
        file: ExportFile {
            name: path.file_name().map_or_else(
                || RESULT.to_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
            bytes: metadata.len(),
            modified_ms: modified_ms(&metadata),
        },
        path,
        identity: identity.clone(),
    };
    export.check_shape()?;
    Ok(Box::new(export))
}

struct TelegramExport {
    path: PathBuf,
    file: ExportFile,
    identity: Identity,
}

impl Export for TelegramExport {
    fn files(&self) -> &[ExportFile] {
        std::slice::from_ref(&self.file)
    }

    fn read(&mut self, sink: &mut dyn ExportSink) {
        let mut survey = Survey {
            bot: &self.identity,
            chats: Vec::new(),
        };
        // A broken file is reported by the second reading.
        let _ = self.walk(&mut survey);
        let mut reading = ExportReading {
            file: &self.file.name,
            bot: &self.identity,
            surveyed: survey.chats.into_iter(),
            sink,
            chat: None,
            flow: ControlFlow::Continue(()),
        };
        if let Err((line, cause)) = self.walk(&mut reading) {
            let _ = reading.sink.take(
                Exported::Unreadable {
                    place: format!("{} line {line}", self.file.name),
                    what: format!("{cause}; nothing after it was read: export the chat again, what is imported stays"),
                },
                self.file.bytes,
            );
        }
    }
}

impl TelegramExport {
    /// Checks that the file begins like an export; later faults are reported while it is read.
    fn check_shape(&self) -> Result<(), ExportError> {
        struct FirstChat(bool);
        impl ExportVisitor for FirstChat {
            fn begin_chat(&mut self, _: Header) -> ChatChoice {
                self.0 = true;
                ChatChoice::End
            }
            fn message(&mut self, _: Result<&[u8], String>, _: WalkProgress) -> ControlFlow<()> {
                ControlFlow::Break(())
            }
        }
        let mut nothing = FirstChat(false);
        match self.walk(&mut nothing) {
            Ok(()) if nothing.0 => Ok(()),
            walked => {
                let why = walked.err().map_or_else(
                    || "it has no chats".to_owned(),
                    |(line, cause)| format!("line {line}: {cause}"),
                );
                Err(ExportError::NotAnExport {
                    what: format!(
                        "{} is no Telegram Desktop export ({why}); export the chat history as machine-readable JSON and give its result.json",
                        self.path.display()
                    ),
                })
            }
        }
    }

    /// Walks through every chat and message of the file.
    fn walk(&self, visitor: &mut dyn ExportVisitor) -> Result<(), (u64, ScanError)> {
        let file = File::open(&self.path).map_err(|cause| (1, ScanError::Io(cause)))?;
        let mut stream = JsonStream::new(file).map_err(|cause| (1, cause))?;
        let walked = walk_object(&mut stream, visitor, true);
        walked.map(|_| ()).map_err(|cause| (stream.line(), cause))
    }
}

/// The fields of a chat's object that come before its messages.
#[derive(Clone, Debug, Default)]
struct Header {
    name: Option<String>,
    kind: String,
    id: Option<i64>,
}

/// How far a walk has read.
#[derive(Clone, Copy, Debug)]
struct WalkProgress {
    line: u64,
    read_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatChoice {
    Read,
    Skip,
    End,
}

trait ExportVisitor {
    fn begin_chat(&mut self, header: Header) -> ChatChoice;
    fn message(&mut self, raw: Result<&[u8], String>, at: WalkProgress) -> ControlFlow<()>;
}

type Walked = Result<ControlFlow<()>, ScanError>;

/// The root of the file, or one chat in its list.
fn walk_object(
    stream: &mut JsonStream<File>,
    visitor: &mut dyn ExportVisitor,
    is_root: bool,
) -> Walked {
    stream.enter(b'{', "an object")?;
    let (mut header, mut is_first) = (Header::default(), true);
    while let Some(key) = stream.next_key(&mut is_first)? {
        let flow = match key.as_str() {
            "name" | "type" | "id" => {
                read_field(stream, &key, &mut header)?;
                ControlFlow::Continue(())
            }
            "messages" => walk_messages(stream, visitor, &header)?,
            "chats" | "left_chats" if is_root => walk_chats(stream, visitor)?,
            _ => {
                stream.skip()?;
                ControlFlow::Continue(())
            }
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn read_field(
    stream: &mut JsonStream<File>,
    key: &str,
    header: &mut Header,
) -> Result<(), ScanError> {
    let mut raw = Vec::new();
    stream.lift(&mut raw, FIELD_MAX_BYTES)?;
    match (key, serde_json::from_str::<Value>(&mend(&raw))) {
        ("name", Ok(Value::String(name))) => header.name = one_line(&name),
        ("type", Ok(Value::String(kind))) => header.kind = kind,
        ("id", Ok(Value::Number(id))) => header.id = id.as_i64(),
        _ => {}
    }
    Ok(())
}

fn walk_chats(stream: &mut JsonStream<File>, visitor: &mut dyn ExportVisitor) -> Walked {
    if !stream.is_next(b'{')? {
        stream.skip()?;
        return Ok(ControlFlow::Continue(()));
    }
    stream.enter(b'{', "an object")?;
    let mut is_first_key = true;
    while let Some(key) = stream.next_key(&mut is_first_key)? {
        if key != "list" || !stream.is_next(b'[')? {
            stream.skip()?;
            continue;
        }
        stream.enter(b'[', "a list")?;
        let mut is_first = true;
        while stream.next_element(&mut is_first)? {
            if walk_object(stream, visitor, false)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn walk_messages(
    stream: &mut JsonStream<File>,
    visitor: &mut dyn ExportVisitor,
    header: &Header,
) -> Walked {
    match visitor.begin_chat(header.clone()) {
        ChatChoice::Read => {}
        ChatChoice::Skip => {
            stream.skip()?;
            return Ok(ControlFlow::Continue(()));
        }
        ChatChoice::End => return Ok(ControlFlow::Break(())),
    }
    stream.enter(b'[', "a list of messages")?;
    let (mut raw, mut is_first) = (Vec::new(), true);
    while stream.next_element(&mut is_first)? {
        let line = stream.line();
        let lifted = stream.lift(&mut raw, MESSAGE_MAX_BYTES)?;
        let at = WalkProgress {
            line,
            read_bytes: stream.read_bytes(),
        };
        let element = match lifted {
            Lifted::Whole => Ok(raw.as_slice()),
            Lifted::TooLong => Err(format!("it is longer than {} MiB", MESSAGE_MAX_BYTES >> 20)),
        };
        if visitor.message(element, at).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// What is known only once the whole chat was read.
#[derive(Clone, Debug, Default)]
struct Surveyed {
    messages: u64,
    /// Who exported: in a private chat with the bot, the participant who is not the bot.
    person: Option<i64>,
    /// How many messages at the start are from the basic group that became this supergroup.
    of_basic_group: u64,
    /// Tells one account's message numbering from another's, by the first message in it.
    tag: Option<String>,
    /// The first message with the same id for every account.
    first_id: Option<i64>,
    /// Whether a topic was created.
    has_topics: bool,
}

struct Survey<'a> {
    bot: &'a Identity,
    chats: Vec<Surveyed>,
}

/// The few fields that the survey reads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stub {
    id: i64,
    #[serde(deserialize_with = "lenient")]
    action: Option<String>,
    #[serde(deserialize_with = "lenient")]
    from_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    date_unixtime: Option<String>,
}

impl ExportVisitor for Survey<'_> {
    fn begin_chat(&mut self, _: Header) -> ChatChoice {
        self.chats.push(Surveyed::default());
        ChatChoice::Read
    }

    fn message(&mut self, raw: Result<&[u8], String>, _: WalkProgress) -> ControlFlow<()> {
        let chat = self.chats.last_mut().expect("a message is in a chat");
        let before = chat.messages;
        chat.messages += 1;
        let Some(stub) = raw
            .ok()
            .and_then(|raw| serde_json::from_str::<Stub>(&mend(raw)).ok())
        else {
            return ControlFlow::Continue(());
        };
        if stub.action.as_deref() == Some("migrate_from_group") {
            chat.of_basic_group = before;
        }
        chat.has_topics |= stub.action.as_deref() == Some(TOPIC_CREATED);
        if stub.id > 0 {
            chat.first_id = Some(chat.first_id.map_or(stub.id, |first| first.min(stub.id)));
        }
        if chat.tag.is_none() {
            let first = format!("{}@{}", stub.id, stub.date_unixtime.unwrap_or_default());
            chat.tag = Some(format!("{:08x}", fnv(first.as_bytes()) as u32));
        }
        if chat.person.is_none()
            && let Some(Author::User(id)) = stub.from_id.as_deref().and_then(Author::of)
            && !self.bot.is_self(&id.to_string())
        {
            chat.person = Some(id);
        }
        ControlFlow::Continue(())
    }
}

/// FNV-1a: a short fingerprint to tell accounts apart; it protects nothing.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

struct ExportReading<'a> {
    file: &'a str,
    bot: &'a Identity,
    surveyed: std::vec::IntoIter<Surveyed>,
    sink: &'a mut dyn ExportSink,
    chat: Option<OpenChat>,
    flow: ControlFlow<()>,
}

/// The chat that is being read.
struct OpenChat {
    blank: Message,
    place: ExportedChat,
    surveyed: Surveyed,
    /// Whether each account numbers the chat's messages for itself.
    is_own_box: bool,
    read: u64,
    topics: Topics,
    twins: Twins,
}

impl ExportVisitor for ExportReading<'_> {
    fn begin_chat(&mut self, header: Header) -> ChatChoice {
        let surveyed = self.surveyed.next().unwrap_or_default();
        let choice = match open_chat(&header, surveyed, self.bot) {
            Ok(mut chat) if self.sink.begin_chat(&chat.place) => {
                for (topic, title) in self.sink.topics(&chat.place) {
                    if let Ok(topic) = topic.parse() {
                        chat.topics.add(topic, title);
                    }
                }
                self.chat = Some(*chat);
                ChatChoice::Read
            }
            Ok(_) => ChatChoice::Skip,
            Err(reason) => {
                let reason = reason.into();
                self.flow = self.sink.take(Exported::Skipped { reason }, 0);
                ChatChoice::Skip
            }
        };
        if self.flow.is_break() {
            ChatChoice::End
        } else {
            choice
        }
    }

    fn message(&mut self, raw: Result<&[u8], String>, at: WalkProgress) -> ControlFlow<()> {
        let chat = self.chat.as_mut().expect("a message is in a chat");
        let index = chat.read;
        chat.read += 1;
        let read = raw.and_then(|raw| {
            let text = mend(raw);
            read_object::<ExportMessage>(&text).map_err(|cause| mismatch(&cause))
        });
        let thing = read.and_then(|message| chat.exported(message, index, self.bot));
        let thing = thing.unwrap_or_else(|what| Exported::Unreadable {
            place: format!("{} line {}", self.file, at.line),
            what,
        });
        self.sink.take(thing, at.read_bytes)
    }
}

/// What kind of chat it is, its Bot API id, and how its messages are numbered; or why it does not belong into a bot's
/// memory.
fn open_chat(
    header: &Header,
    surveyed: Surveyed,
    bot: &Identity,
) -> Result<Box<OpenChat>, &'static str> {
    let id = header.id.ok_or("chats without an id")?;
    let (wire_kind, kind, chat, is_own_box) = match header.kind.as_str() {
        "bot_chat" if bot.is_self(&id.to_string()) => {
            let person = surveyed.person.ok_or("chats without a message")?;
            ("private", ChatKind::Direct, person, true)
        }
        "bot_chat" => return Err("chats with other bots"),
        // No bot can be in it, so nothing of it may come into a bot's memory.
        "personal_chat" | "saved_messages" | "replies" | "verification_codes" => {
            return Err("private chats without this bot");
        }
        "private_group" => ("group", ChatKind::Private, -id.saturating_abs(), true),
        "private_supergroup" => ("supergroup", ChatKind::Private, channel_id(id), false),
        "public_supergroup" => ("supergroup", ChatKind::Public, channel_id(id), false),
        "private_channel" | "public_channel" => {
            ("channel", ChatKind::Broadcast, channel_id(id), false)
        }
        _ => return Err("chats of an unknown type"),
    };
    let is_direct = kind == ChatKind::Direct;
    let title = header.name.clone().filter(|_| !is_direct);
    let blank = Chat {
        id: chat,
        kind: Some(wire_kind.to_owned()),
        is_direct_messages: false,
        title: title.clone(),
        username: None,
        first_name: None,
        last_name: None,
    };
    Ok(Box::new(OpenChat {
        blank: blank_message(blank),
        place: ExportedChat {
            chat: chat.to_string(),
            title,
            kind: Some(kind),
            has_bot: is_direct.then_some(true),
        },
        is_own_box,
        read: 0,
        topics: Topics {
            is_forum: surveyed.has_topics,
            first_id: surveyed.first_id,
            ..Topics::default()
        },
        surveyed,
        twins: Twins::default(),
    }))
}

/// A message of that chat without any content.
fn blank_message(chat: Chat) -> Message {
    let chat_id = chat.id;
    let blank = serde_json::json!({ "message_id": 0, "chat": { "id": chat_id } });
    let mut blank = Message::deserialize(blank).expect("a message needs no more than its ids");
    blank.chat = chat;
    blank
}

impl OpenChat {
    fn exported(
        &mut self,
        message: ExportMessage,
        index: u64,
        bot: &Identity,
    ) -> Result<Exported, String> {
        match message.kind.as_deref() {
            Some("message") => {}
            Some("service") => {
                self.topics.note(&message);
                let reason = "joins and other service messages".into();
                return Ok(Exported::Skipped { reason });
            }
            Some("unsupported") => {
                let reason = "messages that Telegram Desktop can't export".into();
                return Ok(Exported::Skipped { reason });
            }
            _ => return Err("it is no message".to_owned()),
        }
        let id = message.id;
        if id == 0 {
            return Err("a message without an id".to_owned());
        }
        if message.date_unixtime.is_none_or(|at| at <= 0) {
            return Err("a message without date_unixtime, which older exports lack: export again with a current Telegram Desktop".to_owned());
        }
        let is_own_box = self.is_own_box || id < 0 || index < self.surveyed.of_basic_group;
        let topic = match self.topics.seat_of(&message) {
            _ if is_own_box => None,
            MessageSeat::Topic(topic) => Some(topic),
            MessageSeat::Chat => None,
            MessageSeat::Unknown => {
                let reason = OF_UNKNOWN_TOPIC.into();
                return Ok(Exported::Skipped { reason });
            }
        };
        let is_own =
            matches!(message.author(), Some(Author::User(id)) if bot.is_self(&id.to_string()));
        let wire = message.into_wire(&self.blank, topic);
        let mut inbound = inbound_message(bot, &wire, 0);
        inbound.place.kind = self.place.kind;
        inbound.place.topic_title = topic.and_then(|topic| self.topics.title(topic));
        let identity = if is_own_box {
            let sender = inbound.sender.id.as_str();
            let occurrence = self.twins.count(sender, inbound.sent_at_ms, &inbound.text);
            inbound.message_id = self.box_id(id);
            if let Some(reply) = &mut inbound.reply_to {
                let target = reply.message_id.parse().unwrap_or_default();
                reply.message_id = self.box_id(target);
            }
            ExportedIdentity::OwnBox { occurrence }
        } else {
            ExportedIdentity::Shared
        };
        Ok(Exported::Message(Box::new(ExportedMessage {
            message: inbound,
            identity,
            is_own,
        })))
    }

    /// The id of a message that the exporting account numbers for itself; it differs from every live id.
    fn box_id(&self, id: i64) -> String {
        let tag = self.surveyed.tag.as_deref().unwrap_or_default();
        format!("import:{tag}:{id}")
    }
}

/// Where in a chat a message belongs.
enum MessageSeat {
    /// The chat itself, or the General topic of a forum.
    Chat,
    Topic(i64),
    /// A topic of a forum that can't be determined.
    Unknown,
}

/// Finds the topic of a message, which the export tells only through its reply.
#[derive(Default)]
struct Topics {
    is_forum: bool,
    /// The id of the first message: a reply to an earlier one refers to something outside the export.
    first_id: Option<i64>,
    /// Titles, by topic id.
    topics: HashMap<i64, Option<String>>,
    /// Message id and topic; `None` where the topic is unknown.
    in_topics: Vec<(i64, Option<i64>)>,
}

impl Topics {
    fn note(&mut self, message: &ExportMessage) {
        if message.action.as_deref() == Some(TOPIC_CREATED) {
            let title = message.title.as_deref().and_then(one_line);
            self.add(message.id, title);
        }
    }

    fn add(&mut self, topic: i64, title: Option<String>) {
        self.is_forum = true;
        if self.topics.len() < TOPICS_MAX {
            self.topics.insert(topic, title);
        }
    }

    /// Where a message belongs; this is remembered for the replies to it.
    fn seat_of(&mut self, message: &ExportMessage) -> MessageSeat {
        let Some(target) = message.reply_to_message_id else {
            return MessageSeat::Chat;
        };
        let topic = if self.topics.contains_key(&target) {
            Some(target)
        } else if let Ok(at) = self.in_topics.binary_search_by_key(&target, |(id, _)| *id) {
            self.in_topics[at].1
        } else if self.is_forum && self.first_id.is_some_and(|first| target < first) {
            None
        } else {
            return MessageSeat::Chat;
        };
        let at = self.in_topics.partition_point(|(id, _)| *id < message.id);
        if self.in_topics.len() < IN_TOPICS_MAX {
            self.in_topics.insert(at, (message.id, topic));
        }
        topic.map_or(MessageSeat::Unknown, MessageSeat::Topic)
    }

    fn title(&self, topic: i64) -> Option<String> {
        self.topics.get(&topic).cloned().flatten()
    }
}

/// Counts messages with the same sender, second and text, which stand next to each other.
#[derive(Default)]
struct Twins {
    at_ms: i64,
    /// By a hash of sender and text.
    seen: HashMap<u64, u32>,
}

impl Twins {
    fn count(&mut self, sender: &str, at_ms: i64, text: &str) -> u32 {
        if self.at_ms != at_ms {
            self.at_ms = at_ms;
            self.seen.clear();
        }
        if self.seen.len() >= TWINS_MAX {
            return 0;
        }
        let seen = self.seen.entry(fnv(format!("{sender}\n{text}").as_bytes()));
        let count = seen.or_default();
        *count += 1;
        *count - 1
    }
}
