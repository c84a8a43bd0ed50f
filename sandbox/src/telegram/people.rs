//! What people do: they write, edit, press buttons, add and remove the bot, rename and move rooms.
//!
//! Owns the acting half of [`TelegramServer`]. Every act is stored and, where the bot may see it, becomes an update.
//! Naming a chat that does not exist panics: the scene is wrong.

use serde_json::{Map, Value, json};

use super::entities::{TextEntity, detect, utf16_len};
use super::events::PressResult;
use super::message::{MigrationOrder, TelegramForward, TelegramMedia, UserMessage};
use super::params::Upload;
use super::rooms::{NewMessageDraft, TelegramRooms, entities_json, text_fields};
use super::server::TelegramServer;
use super::world::{
    ANONYMOUS_ADMIN_ID, BotStatus, CHANNEL_SENDER_ID, SERVICE_ACCOUNT_ID, TelegramChatKind,
};

impl TelegramServer {
    /// Writes a text as a person; mentions, commands and links become entities. Returns the
    /// message's id, as do the other acts of writing.
    pub fn say(&self, chat: i64, user: i64, text: &str) -> i64 {
        self.send_with(UserMessage {
            chat,
            user,
            text: text.to_owned(),
            ..UserMessage::default()
        })
    }

    /// Writes a text into a forum topic.
    pub fn say_in_topic(&self, chat: i64, topic: i64, user: i64, text: &str) -> i64 {
        self.send_with(UserMessage {
            chat,
            user,
            topic: Some(topic),
            text: text.to_owned(),
            ..UserMessage::default()
        })
    }

    /// Replies to a message; in a forum the reply goes into that message's topic.
    pub fn reply(&self, chat: i64, user: i64, reply_to: i64, text: &str) -> i64 {
        self.send_with(UserMessage {
            chat,
            user,
            reply_to: Some(reply_to),
            text: text.to_owned(),
            ..UserMessage::default()
        })
    }

    /// Writes any message.
    pub fn send_with(&self, message: UserMessage) -> i64 {
        self.act(|rooms| rooms.write(message))
    }

    /// Adds a file to the platform; returns its object, for a field of a message ([`UserMessage::extra`]).
    pub fn add_file(&self, name: &str, mime_type: &str, bytes: Vec<u8>) -> Value {
        self.act(|rooms| {
            rooms.keep_file(Upload {
                file_name: name.to_owned(),
                content_type: mime_type.to_owned(),
                bytes,
            })
        })
    }

    /// Forgets a file: its id is invalid from here on.
    pub fn delete_file(&self, id: &str) {
        self.act(|rooms| rooms.files.remove(id));
    }

    /// The bytes of a file that somebody uploaded.
    #[must_use]
    pub fn file_bytes(&self, id: &str) -> Option<Vec<u8>> {
        self.look(|rooms| Some(rooms.files.get(id)?.upload.bytes.clone()))
    }

    /// Writes the items of an album, each a message (and an update) of its own.
    pub fn album(&self, items: Vec<UserMessage>) -> Vec<i64> {
        self.act(|rooms| {
            let group = format!("1{:016}", rooms.serial());
            items
                .into_iter()
                .map(|item| {
                    rooms.write(UserMessage {
                        media_group_id: Some(group.clone()),
                        ..item
                    })
                })
                .collect()
        })
    }

    /// Changes the text or caption of a message. False when the message is not there.
    pub fn edit(&self, chat: i64, message: i64, text: &str) -> bool {
        self.act(|rooms| rooms.rewrite(chat, message, Some(text)))
    }

    /// Deletes a message. Bots are not told. False when the message is not there.
    pub fn delete(&self, chat: i64, message: i64) -> bool {
        self.act(|rooms| match rooms.message_mut(chat, message) {
            Some(stored) => {
                stored.deleted = true;
                true
            }
            None => false,
        })
    }

    /// Posts into a channel in the channel's name.
    pub fn channel_post(&self, channel: i64, text: &str) -> i64 {
        self.act(|rooms| rooms.post_in_channel(channel, text))
    }

    /// Sends what a client sends for a pressed button, whether it is there or not; returns the
    /// callback's id.
    pub fn callback(&self, chat: i64, user: i64, message: i64, data: &str) -> String {
        self.act(|rooms| rooms.callback((chat, message), user, data))
    }

    /// Sends a press of a button in a message that a person had the bot write (inline mode) in a chat that the bot is
    /// not in; returns the callback's id.
    pub fn inline_callback(&self, inline_id: &str, user: i64, data: &str) -> String {
        self.act(|rooms| rooms.inline_callback(inline_id, user, data))
    }

    /// Presses an existing button, named by its words or its data: an inline one gives the callback's id, one of a
    /// keyboard of replies the id of the message that it writes.
    ///
    /// # Errors
    /// A sentence when there is no such button, or the person does not see it.
    pub fn press(
        &self,
        chat: i64,
        user: i64,
        message: i64,
        button: &str,
    ) -> Result<PressResult, String> {
        self.act(|rooms| rooms.press((chat, message), user, button))
    }

    /// The answer that the bot gave to a pressed button.
    #[must_use]
    pub fn callback_answer(&self, callback: &str) -> Option<Value> {
        self.look(|rooms| rooms.callbacks.get(callback)?.1.clone())
    }

    /// Puts everything back as it was at the start; ids go on, a webhook stays.
    pub fn reset(&self) {
        self.shared().reset();
    }

    /// Sets a reaction as a person; an update only for bots that asked for it and are admins.
    pub fn react(&self, chat: i64, user: i64, message: i64, emoji: &str) {
        self.act(|rooms| rooms.react((chat, message), user, emoji));
    }

    /// Adds the bot to a group or channel; in a private chat: starts or unblocks it.
    pub fn add_bot(&self, chat: i64, by: i64) {
        self.act(|rooms| rooms.set_bot_status(chat, by, BotStatus::Member));
    }

    /// Makes the bot an administrator.
    pub fn promote_bot(&self, chat: i64, by: i64) {
        self.act(|rooms| rooms.set_bot_status(chat, by, BotStatus::Admin));
    }

    /// Removes the bot without barring it.
    pub fn remove_bot(&self, chat: i64, by: i64) {
        self.act(|rooms| rooms.set_bot_status(chat, by, BotStatus::Left));
    }

    /// Removes and bars the bot; in a private chat: blocks it.
    pub fn kick_bot(&self, chat: i64, by: i64) {
        self.act(|rooms| rooms.set_bot_status(chat, by, BotStatus::Kicked));
    }

    /// A person comes into a group.
    pub fn join(&self, chat: i64, user: i64) -> i64 {
        self.act(|rooms| rooms.join(chat, user))
    }

    /// A person leaves a group.
    pub fn leave(&self, chat: i64, user: i64) -> i64 {
        self.act(|rooms| rooms.leave(chat, user))
    }

    /// Gives a group another title.
    pub fn rename(&self, chat: i64, user: i64, title: &str) -> i64 {
        self.act(|rooms| rooms.rename(chat, user, title))
    }

    /// Pins a message.
    pub fn pin(&self, chat: i64, user: i64, message: i64) -> i64 {
        self.act(|rooms| rooms.pin((chat, message), user))
    }

    /// Opens a forum topic and returns its id. `user` may be the bot.
    pub fn create_topic(&self, chat: i64, user: i64, name: &str) -> i64 {
        self.act(|rooms| rooms.create_topic(chat, user, name))
    }

    /// Closes a topic: only administrators can write there.
    pub fn close_topic(&self, chat: i64, user: i64, topic: i64) -> i64 {
        self.act(|rooms| rooms.change_topic(chat, user, topic, true))
    }

    /// Turns a basic group into a supergroup and returns the new id.
    pub fn migrate_to_supergroup(&self, chat: i64) -> i64 {
        self.migrate_in_order(chat, MigrationOrder::OldFirst)
    }

    /// Like [`Self::migrate_to_supergroup`], with a choice of which service message comes first.
    pub fn migrate_in_order(&self, chat: i64, order: MigrationOrder) -> i64 {
        self.act(|rooms| rooms.migrate(chat, order))
    }

    /// Queues an update as it is; `update_id` is added. For shapes that no act here makes.
    ///
    /// # Panics
    /// When `update` is no object.
    pub fn raw_update(&self, update: Value) -> Option<i64> {
        assert!(update.is_object(), "an update is an object");
        self.act(|rooms| rooms.push_raw(update))
    }

    /// Queues the newest unconfirmed update again under a new id. False when there is none.
    pub fn duplicate_update(&self) -> bool {
        self.act(TelegramRooms::duplicate_newest)
    }

    /// Numbers coming updates from here, as the platform does after a week of silence.
    pub fn restart_update_ids(&self, first_id: i64) {
        self.act(|rooms| rooms.queue.renumber_from(first_id));
    }

    /// Moves the platform's clock forward, so that things expire.
    pub fn advance_clock(&self, seconds: i64) {
        self.act(|rooms| rooms.clock_ahead_s += seconds);
    }

    /// Another program posts a message with the bot's token; returns its id.
    pub fn post_by_another_program(&self, chat: i64, text: &str) -> i64 {
        self.act(|rooms| rooms.post_unheard(chat, text))
    }

    /// Lets the Bot API server lag behind the rooms: it learns of the bot's posts only with the next message in the
    /// same sequence of ids. `false`: it learns of everything at once.
    pub fn lag_behind(&self, on: bool) {
        self.act(|rooms| rooms.lag_behind(on));
    }

    /// Switches privacy mode: `true` means that the bot hears everything in groups.
    pub fn set_hears_everything(&self, on: bool) {
        self.act(|rooms| rooms.world.bot.can_read_all_group_messages = on);
    }

    /// Revokes the token: every call answers 401 from now on.
    pub fn revoke_token(&self) {
        self.act(|rooms| rooms.logged_out = true);
    }
}

impl TelegramRooms {
    pub(super) fn write(&mut self, message: UserMessage) -> i64 {
        let (chat, user) = (message.chat, message.user);
        let topic = message.topic.or_else(|| {
            let target = self.message(chat, message.reply_to?)?;
            target.topic
        });
        let entities = message
            .entities
            .clone()
            .unwrap_or_else(|| entities_json(&detect(&message.text)));
        let mut fields = text_fields(&message.text, &entities, message.media.is_some());
        if let Some(media) = &message.media {
            self.media_fields(media, &mut fields);
        }
        let from = self.sender_fields(&message, &mut fields);
        self.origin_fields(&message, &mut fields);
        fields.extend(message.extra);
        if self.room(chat).kind == TelegramChatKind::Private && user == chat {
            self.start_if_new(chat);
        }
        self.post(NewMessageDraft {
            chat,
            from,
            topic,
            reply_to: message.reply_to,
            date_s: message.date_s,
            fields,
            ..NewMessageDraft::default()
        })
    }

    /// A person who writes to the bot has started it.
    fn start_if_new(&mut self, chat: i64) {
        let room = self.room_mut(chat);
        if room.bot_status == BotStatus::Left {
            room.bot_status = BotStatus::Member;
        }
    }

    /// Adds the fields of the sender, and returns the account in `from`.
    fn sender_fields(&self, message: &UserMessage, fields: &mut Map<String, Value>) -> Option<i64> {
        let (from, sender_chat) = match (message.automatic_forward_of, message.sender_chat) {
            (Some(channel), _) => {
                fields.insert("is_automatic_forward".to_owned(), json!(true));
                (Some(SERVICE_ACCOUNT_ID), Some(channel))
            }
            (None, Some(channel)) => (Some(CHANNEL_SENDER_ID), Some(channel)),
            (None, None) if message.anonymous_admin => {
                (Some(ANONYMOUS_ADMIN_ID), Some(message.chat))
            }
            (None, None) if self.room(message.chat).kind == TelegramChatKind::Channel => {
                (None, Some(message.chat))
            }
            (None, None) => (Some(message.user), None),
        };
        if let Some(sender) = sender_chat {
            fields.insert("sender_chat".to_owned(), self.world.chat_json(sender));
        }
        from
    }

    fn origin_fields(&self, message: &UserMessage, fields: &mut Map<String, Value>) {
        if let Some(group) = &message.media_group_id {
            fields.insert("media_group_id".to_owned(), json!(group));
        }
        if let Some(bot) = message.via_bot {
            fields.insert("via_bot".to_owned(), self.world.user_json(bot));
        }
        if let Some(quote) = &message.quote {
            let target = message
                .reply_to
                .and_then(|id| self.message(message.chat, id));
            let text = target.map_or("", |target| {
                target
                    .wire
                    .get("text")
                    .and_then(Value::as_str)
                    .unwrap_or("")
            });
            let position = text.find(quote).map_or(0, |byte| utf16_len(&text[..byte]));
            let quoted = json!({"text": quote, "position": position, "is_manual": true});
            fields.insert("quote".to_owned(), quoted);
        }
        let forward = message.forward.clone().or(message
            .automatic_forward_of
            .map(|channel| TelegramForward::Channel(channel, 1)));
        let date = self.now_s() - 60;
        let origin = match forward {
            None => return,
            Some(TelegramForward::User(user)) => {
                json!({"type": "user", "date": date, "sender_user": self.world.user_json(user)})
            }
            Some(TelegramForward::Hidden(name)) => {
                json!({"type": "hidden_user", "date": date, "sender_user_name": name})
            }
            Some(TelegramForward::Channel(channel, post)) => json!({
                "type": "channel", "date": date, "chat": self.world.chat_json(channel), "message_id": post,
            }),
        };
        fields.insert("forward_origin".to_owned(), origin);
    }

    fn media_fields(&mut self, media: &TelegramMedia, fields: &mut Map<String, Value>) {
        let serial = self.serial();
        let mut file = json!({
            "file_id": format!("AgACAgIAAxk{serial:08}"), "file_unique_id": format!("AQAD{serial:08}"),
            "file_size": 1_024 * serial,
        });
        let mut with = |more: Value| {
            if let (Some(file), Value::Object(more)) = (file.as_object_mut(), more) {
                file.extend(more);
            }
            file.clone()
        };
        let (name, content) = match media {
            TelegramMedia::Photo => ("photo", json!([with(json!({"width": 90, "height": 60}))])),
            TelegramMedia::Video { duration_s } => (
                "video",
                with(
                    json!({"width": 640, "height": 360, "duration": duration_s, "mime_type": "video/mp4"}),
                ),
            ),
            TelegramMedia::VideoNote { duration_s } => (
                "video_note",
                with(json!({"length": 240, "duration": duration_s})),
            ),
            TelegramMedia::Voice { duration_s } => (
                "voice",
                with(json!({"duration": duration_s, "mime_type": "audio/ogg"})),
            ),
            TelegramMedia::Audio { duration_s, title } => (
                "audio",
                with(json!({"duration": duration_s, "title": title})),
            ),
            TelegramMedia::Animation => {
                let animation =
                    with(json!({"width": 320, "height": 240, "duration": 2, "file_name": "a.mp4"}));
                fields.insert("document".to_owned(), animation.clone());
                ("animation", animation)
            }
            TelegramMedia::Document { file_name } => (
                "document",
                with(json!({"file_name": file_name, "mime_type": "application/octet-stream"})),
            ),
            TelegramMedia::Sticker { emoji } => (
                "sticker",
                with(
                    json!({"type": "regular", "width": 512, "height": 512, "is_animated": false,
                    "is_video": false, "emoji": emoji, "set_name": "loopback"}),
                ),
            ),
            TelegramMedia::Poll { question, options } => ("poll", poll(serial, question, options)),
            TelegramMedia::Location {
                latitude,
                longitude,
            } => (
                "location",
                json!({"latitude": latitude, "longitude": longitude}),
            ),
            TelegramMedia::Contact {
                phone_number,
                first_name,
            } => (
                "contact",
                json!({"phone_number": phone_number, "first_name": first_name}),
            ),
            TelegramMedia::Other { name, content } => (name.as_str(), content.clone()),
        };
        fields.insert(name.to_owned(), content);
    }

    /// Edits a message as its author; without a text the bot sees the same content again.
    pub(super) fn rewrite(&mut self, chat: i64, message: i64, text: Option<&str>) -> bool {
        let now_s = self.now_s();
        let Some(stored) = self.message_mut(chat, message) else {
            return false;
        };
        stored.wire.insert("edit_date".to_owned(), json!(now_s));
        if let Some(text) = text {
            stored.edited = true;
            let is_caption = !stored.wire.contains_key("text");
            stored.set_text(text, &detect(text), is_caption);
        }
        let kind = match self.room(chat).kind {
            TelegramChatKind::Channel => "edited_channel_post",
            _ => "edited_message",
        };
        self.announce(chat, message, kind);
        true
    }
}

impl super::rooms::KeptMessage {
    /// Replaces text and entities, or caption and caption entities.
    pub(super) fn set_text(&mut self, text: &str, entities: &[TextEntity], is_caption: bool) {
        for name in ["text", "entities", "caption", "caption_entities"] {
            self.wire.remove(name);
        }
        let fields = text_fields(text, &entities_json(entities), is_caption);
        self.wire.extend(fields);
    }
}

fn poll(serial: u64, question: &str, options: &[String]) -> Value {
    let options: Vec<Value> = options
        .iter()
        .enumerate()
        .map(|(n, text)| json!({"persistent_id": n.to_string(), "text": text, "voter_count": 0}))
        .collect();
    json!({
        "id": format!("5{serial:015}"), "question": question, "options": options, "total_voter_count": 0,
        "is_closed": false, "is_anonymous": true, "type": "regular", "allows_multiple_answers": false,
        "allows_revoting": true, "members_only": false,
    })
}
