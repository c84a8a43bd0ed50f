//! The state of the loopback platform: rooms with their messages, and the bot's queue of updates.
//!
//! Owns what is stored and which updates the bot gets (membership, privacy mode, allowed kinds).
//! Knows no HTTP. Time is this machine's clock plus what tests add to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::entities::TextEntity;
use super::failure::ApiFailure;
use super::media::KeptFile;
use super::queue::UpdateQueue;
use super::webhook::RegisteredWebhook;
use super::world::{BotStatus, TelegramChat, TelegramChatKind, TelegramWorld};
use crate::wire::now_ms;

/// Updates about messages live this long, in seconds.
const MESSAGE_LIFE_S: i64 = 24 * 3600;
/// A pressed button lives this long, in seconds.
pub(super) const CALLBACK_LIFE_S: i64 = 150;
/// Kinds that a bot gets only when it asks for them.
const OPT_IN_KINDS: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];
/// Every kind of update that the API names (10.3).
pub(super) const UPDATE_KINDS: [&str; 27] = [
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "guest_message",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "managed_bot",
    "subscription",
    "stopped_message_generation",
];

/// A message as it is stored: its wire form without an implicit reply.
#[derive(Clone, Debug)]
pub(super) struct KeptMessage {
    pub(super) wire: Map<String, Value>,
    pub(super) topic: Option<i64>,
    /// The bot posted it; a channel post does not show that.
    pub(super) by_bot: bool,
    /// The reply keyboard that came with it; the wire form does not show it.
    pub(super) keyboard: Option<Value>,
    pub(super) edited: bool,
    pub(super) deleted: bool,
    /// When it last changed, in the order of all changes.
    pub(super) touched: u64,
}

/// The messages of one chat.
#[derive(Debug, Default)]
pub(super) struct ChatLog {
    pub(super) messages: BTreeMap<i64, KeptMessage>,
    last_bot: Option<i64>,
    /// The id that its first message gets.
    first_id: i64,
    sends_s: Vec<i64>,
}

/// A preview of a text that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramPreview {
    /// The person's chat.
    pub chat: i64,
    /// Its number; the same for the same text.
    pub id: i64,
    /// The text so far; empty = "Thinking…".
    pub text: String,
    /// When it was shown, in seconds since the Unix epoch.
    pub shown_s: i64,
    /// Whether a message of the bot took its place since, or another draft.
    pub is_gone: bool,
}

/// How many seconds a draft is shown before it disappears.
pub(super) const DRAFT_LIFE_S: i64 = 30;

/// A message to store.
#[derive(Clone, Debug, Default)]
pub(super) struct NewMessageDraft {
    pub(super) chat: i64,
    pub(super) from: Option<i64>,
    pub(super) topic: Option<i64>,
    pub(super) reply_to: Option<i64>,
    pub(super) date_s: Option<i64>,
    pub(super) id: Option<i64>,
    pub(super) by_bot: bool,
    pub(super) keyboard: Option<Value>,
    pub(super) fields: Map<String, Value>,
}

#[derive(Debug)]
pub(super) struct TelegramRooms {
    pub(super) world: TelegramWorld,
    pub(super) chats: HashMap<i64, ChatLog>,
    pub(super) migrated: HashMap<i64, i64>,
    pub(super) queue: UpdateQueue,
    /// `None` is the default set.
    pub(super) allowed: Option<Vec<String>>,
    pub(super) webhook: RegisteredWebhook,
    pub(super) commands: BTreeMap<String, Value>,
    /// Pressed buttons: when, and the answer.
    pub(super) callbacks: HashMap<String, (i64, Option<Value>)>,
    pub(super) reactions: HashMap<(i64, i64), Value>,
    pub(super) actions: Vec<(i64, String)>,
    /// Every draft that was shown, oldest first.
    pub(super) drafts: Vec<TelegramPreview>,
    pub(super) files: HashMap<String, KeptFile>,
    pub(super) logged_out: bool,
    pub(super) clock_ahead_s: i64,
    /// Whether the server learns of the bot's posts only with what comes after them.
    pub(super) lags: bool,
    /// Posts of the bot that the server does not know yet: chat and id.
    pub(super) unheard: BTreeSet<(i64, i64)>,
    box_next: i64,
    serial: u64,
}

impl TelegramRooms {
    pub(super) fn new(world: TelegramWorld) -> Self {
        let first_id = rand::random_range(2_000_000..1_000_000_000);
        let mut rooms = Self {
            world,
            chats: HashMap::new(),
            migrated: HashMap::new(),
            queue: UpdateQueue::new(first_id),
            allowed: None,
            webhook: RegisteredWebhook::default(),
            commands: BTreeMap::new(),
            callbacks: HashMap::new(),
            reactions: HashMap::new(),
            actions: Vec::new(),
            drafts: Vec::new(),
            files: HashMap::new(),
            logged_out: false,
            clock_ahead_s: 0,
            lags: false,
            unheard: BTreeSet::new(),
            box_next: 1,
            serial: 0,
        };
        for chat in rooms.world.chats.clone() {
            rooms.chats.insert(chat.id, ChatLog::default());
            for topic in &chat.topics {
                rooms.store(topic_created(&chat, topic.id, &topic.name));
            }
        }
        rooms
    }

    /// Resets everything to `world`; ids of messages and updates go on.
    pub(super) fn reset(&mut self, world: TelegramWorld) {
        let old = std::mem::replace(
            self,
            Self::new(TelegramWorld {
                chats: Vec::new(),
                ..world.clone()
            }),
        );
        self.queue = old.queue;
        self.queue.clear();
        self.webhook = old.webhook;
        self.allowed = old.allowed;
        (self.box_next, self.serial) = (old.box_next, old.serial);
        self.world = world;
        for chat in self.world.chats.clone() {
            let last = old
                .chats
                .get(&chat.id)
                .and_then(|log| log.messages.last_key_value());
            let log = ChatLog {
                first_id: last.map_or(1, |(last, _)| last + 1),
                ..ChatLog::default()
            };
            self.chats.insert(chat.id, log);
        }
        for chat in self.world.chats.clone() {
            for topic in &chat.topics {
                self.store(topic_created(&chat, topic.id, &topic.name));
            }
        }
    }

    /// Seconds since the Unix epoch by the platform's clock.
    pub(super) fn now_s(&self) -> i64 {
        now_ms() / 1_000 + self.clock_ahead_s
    }

    /// A number that no earlier call got, for ids that are texts.
    pub(super) fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The number that the newest change got.
    pub(super) fn newest_change(&self) -> u64 {
        self.serial
    }

    /// A room that exists.
    ///
    /// # Panics
    /// When there is no such room: a scene that speaks into nowhere is a mistake in the scene.
    pub(super) fn room(&self, chat: i64) -> &TelegramChat {
        self.world
            .chat(chat)
            .unwrap_or_else(|| panic!("the loopback Telegram has no chat {chat}"))
    }

    pub(super) fn room_mut(&mut self, chat: i64) -> &mut TelegramChat {
        self.world
            .chat_mut(chat)
            .unwrap_or_else(|| panic!("the loopback Telegram has no chat {chat}"))
    }

    /// A message that is there and not deleted.
    pub(super) fn message(&self, chat: i64, id: i64) -> Option<&KeptMessage> {
        let stored = self.chats.get(&chat)?.messages.get(&id)?;
        (!stored.deleted).then_some(stored)
    }

    /// A message that is about to change.
    pub(super) fn message_mut(&mut self, chat: i64, id: i64) -> Option<&mut KeptMessage> {
        let touched = self.serial();
        let stored = self.chats.get_mut(&chat)?.messages.get_mut(&id)?;
        stored.touched = touched;
        (!stored.deleted).then_some(stored)
    }

    /// Gives a message its id and stores it; tells nobody.
    pub(super) fn store(&mut self, draft: NewMessageDraft) -> i64 {
        let id = draft.id.unwrap_or_else(|| self.next_message_id(draft.chat));
        let date = draft.date_s.unwrap_or_else(|| self.now_s());
        let mut wire = Map::new();
        wire.insert("message_id".to_owned(), json!(id));
        if let Some(from) = draft.from {
            wire.insert("from".to_owned(), self.world.user_json(from));
        }
        wire.insert("chat".to_owned(), self.world.chat_json(draft.chat));
        wire.insert("date".to_owned(), json!(date));
        if let Some(topic) = draft.topic {
            wire.insert("message_thread_id".to_owned(), json!(topic));
            wire.insert("is_topic_message".to_owned(), json!(true));
        }
        if let Some(target) = draft
            .reply_to
            .and_then(|target| self.message(draft.chat, target))
        {
            let target_id = target.wire["message_id"].clone();
            let thread = target.wire.get("message_thread_id").cloned();
            wire.insert("reply_to_message".to_owned(), target.quoted());
            if draft.topic.is_none() && self.has_reply_threads(draft.chat) {
                wire.insert("message_thread_id".to_owned(), thread.unwrap_or(target_id));
            }
        }
        wire.extend(draft.fields);
        let is_bot = wire.get("from").is_some_and(|from| from["is_bot"] == true)
            && !wire.contains_key("sender_chat");
        let touched = self.serial();
        let log = self.chats.entry(draft.chat).or_default();
        if is_bot {
            log.last_bot = draft.from;
        }
        if self.lags && draft.by_bot {
            self.unheard.insert((draft.chat, id));
        }
        log.messages.insert(
            id,
            KeptMessage {
                wire,
                topic: draft.topic,
                by_bot: draft.by_bot,
                keyboard: draft.keyboard,
                edited: false,
                deleted: false,
                touched,
            },
        );
        id
    }

    /// A supergroup without topics: replies there carry the id of the thread's first message.
    fn has_reply_threads(&self, chat: i64) -> bool {
        let room = self.room(chat);
        room.kind == TelegramChatKind::Supergroup && !room.is_forum
    }

    /// Supergroups and channels number their own messages; private chats and basic groups share the
    /// bot's message box.
    fn next_message_id(&mut self, chat: i64) -> i64 {
        if matches!(
            self.room(chat).kind,
            TelegramChatKind::Private | TelegramChatKind::Group
        ) {
            self.box_next += 1;
            return self.box_next - 1;
        }
        let log = self.chats.entry(chat).or_default();
        log.messages
            .last_key_value()
            .map_or(1, |(last, _)| last + 1)
            .max(log.first_id)
    }

    /// The wire form of a message, with the implicit reply to its topic's first message.
    pub(super) fn wire_of(&self, chat: i64, id: i64) -> Value {
        let Some(stored) = self.chats.get(&chat).and_then(|log| log.messages.get(&id)) else {
            return Value::Null;
        };
        let mut wire = stored.wire.clone();
        let root = stored
            .topic
            .filter(|&topic| topic != id && !wire.contains_key("reply_to_message"))
            .and_then(|topic| self.message(chat, topic));
        if let Some(root) = root {
            wire.insert("reply_to_message".to_owned(), root.quoted());
        }
        Value::Object(wire)
    }

    /// Stores a message that a person, a channel or the platform posts, and tells the bot.
    pub(super) fn post(&mut self, draft: NewMessageDraft) -> i64 {
        let chat = draft.chat;
        let id = self.store(draft);
        let kind = match self.room(chat).kind {
            TelegramChatKind::Channel => "channel_post",
            _ => "message",
        };
        self.announce(chat, id, kind);
        id
    }

    /// Queues an update about a message, if the bot may see it.
    pub(super) fn announce(&mut self, chat: i64, id: i64, kind: &str) {
        let wire = self.wire_of(chat, id);
        let dated = wire["edit_date"].as_i64().or(wire["date"].as_i64());
        let expires_at_s = dated.unwrap_or_else(|| self.now_s()) + MESSAGE_LIFE_S;
        if self.hears(chat, &wire) {
            self.hear_of(chat, id);
            self.push(kind, wire, expires_at_s);
        }
    }

    /// Queues an update that is about no message.
    pub(super) fn push_event(&mut self, kind: &str, body: Value, life_s: i64) {
        let expires_at_s = self.now_s() + life_s;
        self.push(kind, body, expires_at_s);
    }

    fn push(&mut self, kind: &str, body: Value, expires_at_s: i64) {
        if self.is_allowed(kind) && expires_at_s > self.now_s() {
            let update = Map::from_iter([(kind.to_owned(), body)]);
            self.queue.push(Value::Object(update), expires_at_s);
        }
    }

    /// Whether the bot asked for this kind of update. Kinds are filtered when updates are made.
    fn is_allowed(&self, kind: &str) -> bool {
        match &self.allowed {
            None => !OPT_IN_KINDS.contains(&kind),
            Some(kinds) => kinds.iter().any(|allowed| allowed == kind),
        }
    }

    /// Whether the bot sees a message: it is in the chat, and privacy mode allows it.
    fn hears(&self, chat: i64, wire: &Value) -> bool {
        let room = self.room(chat);
        let bot = &self.world.bot;
        if wire["from"]["id"] == json!(bot.id) && !is_service(wire) {
            return false;
        }
        match room.kind {
            TelegramChatKind::Private => return room.bot_status.is_inside(),
            TelegramChatKind::Channel => return room.bot_status == BotStatus::Admin,
            TelegramChatKind::Group | TelegramChatKind::Supergroup => {}
        }
        if !room.bot_status.is_inside() {
            return false;
        }
        let sees_all = room.bot_status == BotStatus::Admin || bot.can_read_all_group_messages;
        let replies = wire["reply_to_message"]["from"]["id"] == json!(bot.id)
            && wire["reply_to_message"]
                .get("forum_topic_created")
                .is_none();
        let named = self.has_command(wire, true);
        if wire["from"]["is_bot"] == true && wire.get("sender_chat").is_none() {
            return bot.hears_bots && (sees_all || replies || named) || is_service(wire);
        }
        let last_bot = self.chats.get(&chat).and_then(|log| log.last_bot);
        let bare = last_bot == Some(bot.id) && self.has_command(wire, false);
        let via = wire["via_bot"]["id"] == json!(bot.id);
        sees_all || is_service(wire) || replies || named || bare || via
    }

    /// Whether a text holds a command: one that names this bot, or (unless `named`) one that names no bot.
    fn has_command(&self, wire: &Value, named: bool) -> bool {
        let suffix = format!("@{}", self.world.bot.username.to_ascii_lowercase());
        commands(wire).into_iter().any(|command| {
            let command = command.to_ascii_lowercase();
            match named {
                true => command.ends_with(&suffix),
                false => !command.contains('@'),
            }
        })
    }

    /// Counts a send or edit of the bot towards the flood limit of a chat.
    pub(super) fn count_send(&mut self, chat: i64, max: Option<usize>) -> Result<(), ApiFailure> {
        let now_s = self.now_s();
        let log = self.chats.entry(chat).or_default();
        log.sends_s.retain(|&sent_s| sent_s > now_s - 60);
        if max.is_some_and(|max| log.sends_s.len() >= max) {
            let wait_s = log.sends_s[0] + 60 - now_s;
            return Err(ApiFailure::flood(
                u32::try_from(wait_s.max(1)).unwrap_or(60),
            ));
        }
        log.sends_s.push(now_s);
        Ok(())
    }
}

impl KeptMessage {
    /// The message as another one shows it that replies to it: one level only.
    pub(super) fn quoted(&self) -> Value {
        let mut wire = self.wire.clone();
        wire.remove("reply_to_message");
        Value::Object(wire)
    }

    /// Whether it was sent with something that keeps it from being edited.
    pub(super) fn is_fixed(&self) -> bool {
        let asks = |markup: &Value| {
            let kinds = ["keyboard", "force_reply"];
            kinds.iter().any(|kind| markup.get(kind).is_some())
        };
        self.keyboard.as_ref().is_some_and(asks)
    }

    pub(super) fn has(&self, field: &str, wanted: &Value) -> bool {
        self.wire.get(field) == Some(wanted)
    }
}

/// The service message that creates a topic.
pub(super) fn topic_created(chat: &TelegramChat, id: i64, name: &str) -> NewMessageDraft {
    let created = json!({"name": name, "icon_color": 7_322_096});
    NewMessageDraft {
        chat: chat.id,
        from: chat.members.first().copied(),
        topic: Some(id),
        id: Some(id),
        fields: Map::from_iter([("forum_topic_created".to_owned(), created)]),
        ..NewMessageDraft::default()
    }
}

/// Whether a message was made by the platform and has no content of its own.
pub(super) fn is_service(wire: &Value) -> bool {
    const SERVICE: [&str; 14] = [
        "new_chat_members",
        "left_chat_member",
        "new_chat_title",
        "group_chat_created",
        "supergroup_chat_created",
        "channel_chat_created",
        "migrate_to_chat_id",
        "migrate_from_chat_id",
        "pinned_message",
        "forum_topic_created",
        "forum_topic_edited",
        "forum_topic_closed",
        "forum_topic_reopened",
        "message_auto_delete_timer_changed",
    ];
    SERVICE.iter().any(|field| wire.get(field).is_some())
}

/// The commands in a text or caption, as they are written.
fn commands(wire: &Value) -> Vec<String> {
    let (text, entities) = match wire.get("text") {
        Some(text) => (text, &wire["entities"]),
        None => (&wire["caption"], &wire["caption_entities"]),
    };
    let units: Vec<u16> = text.as_str().unwrap_or("").encode_utf16().collect();
    let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
    let found = entities.as_array().into_iter().flatten();
    found
        .filter(|entity| entity["type"] == "bot_command")
        .filter_map(|entity| {
            let begin = number(&entity["offset"])?;
            let end = begin + number(&entity["length"])?;
            Some(String::from_utf16_lossy(units.get(begin..end)?))
        })
        .collect()
}

/// Text and entities as fields of a message, or caption and caption entities.
pub(super) fn text_fields(text: &str, entities: &Value, is_caption: bool) -> Map<String, Value> {
    let (text_name, entities_name) = match is_caption {
        true => ("caption", "caption_entities"),
        false => ("text", "entities"),
    };
    let mut fields = Map::new();
    if !text.is_empty() {
        fields.insert(text_name.to_owned(), json!(text));
    }
    if entities.as_array().is_some_and(|list| !list.is_empty()) {
        fields.insert(entities_name.to_owned(), entities.clone());
    }
    fields
}

/// The wire form of detected entities.
pub(super) fn entities_json(entities: &[TextEntity]) -> Value {
    entities.iter().map(TextEntity::as_json).collect()
}
