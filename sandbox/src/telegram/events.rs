//! What happens in rooms besides messages: buttons, reactions, joining and leaving, topics, upgrades.
//!
//! Owns the updates and service messages of these. What people write is in `people`.

use serde_json::{Map, Value, json};

use super::entities::detect;
use super::message::{MigrationOrder, UserMessage};
use super::rooms::{
    CALLBACK_LIFE_S, NewMessageDraft, TelegramRooms, entities_json, text_fields, topic_created,
};
use super::world::{ANONYMOUS_ADMIN_ID, BotStatus, SUPERGROUP_ID_BASE, TelegramChatKind, Topic};

/// Updates that are about no message live this long, in seconds.
const EVENT_LIFE_S: i64 = 24 * 3600;

/// The result of a pressed button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PressResult {
    /// The bot gets a callback; its id.
    Callback(String),
    /// The button wrote its words as a message; the message's id.
    Message(i64),
}

impl TelegramRooms {
    /// Queues an update as it is; a callback in it can be answered like any other.
    pub(super) fn push_raw(&mut self, update: Value) -> Option<i64> {
        let now_s = self.now_s();
        if let Some(id) = update["callback_query"]["id"].as_str() {
            self.callbacks.insert(id.to_owned(), (now_s, None));
        }
        self.queue.push(update, now_s + EVENT_LIFE_S)
    }

    pub(super) fn press(
        &mut self,
        (chat, message): (i64, i64),
        user: i64,
        button: &str,
    ) -> Result<PressResult, String> {
        let room = self
            .world
            .chat(chat)
            .ok_or_else(|| format!("no chat {chat}"))?;
        // Public chats can be read by everybody.
        let is_open = room.kind == TelegramChatKind::Channel || room.username.is_some();
        let is_there = room.members.contains(&user) || is_open;
        if self.world.user(user).is_none() || !is_there {
            return Err(format!("{user} is not in {chat} and sees no buttons there"));
        }
        let stored = self.message(chat, message);
        let stored = stored.ok_or_else(|| format!("no message {message} in {chat}"))?;
        let inline = stored
            .wire
            .get("reply_markup")
            .map(|it| &it["inline_keyboard"]);
        let replies = stored.keyboard.as_ref().map(|it| &it["keyboard"]);
        let of = |rows: Option<&Value>| -> Vec<Value> {
            let rows = rows.and_then(Value::as_array).into_iter().flatten();
            let buttons = rows.flat_map(|row| row.as_array().into_iter().flatten());
            buttons.cloned().collect()
        };
        let (inline, replies) = (of(inline), of(replies));
        let is_it = |it: &&Value| it["text"] == button || it["callback_data"] == button;
        if let Some(found) = inline.iter().find(is_it) {
            if found["disabled"] == true {
                return Err(format!("the button {button} is disabled"));
            }
            let data = found["callback_data"].as_str();
            let data =
                data.ok_or_else(|| format!("the bot hears nothing of the button {button}"))?;
            return Ok(PressResult::Callback(self.callback(
                (chat, message),
                user,
                data,
            )));
        }
        if let Some(found) = replies.iter().find(is_it) {
            let text = found["text"].as_str().unwrap_or_default().to_owned();
            let id = self.write(UserMessage {
                chat,
                user,
                text,
                ..UserMessage::default()
            });
            return Ok(PressResult::Message(id));
        }
        let there: Vec<&str> = inline
            .iter()
            .chain(&replies)
            .filter_map(|it| it["text"].as_str())
            .collect();
        Err(format!(
            "no button {button}; there is: {}",
            there.join(", ")
        ))
    }

    pub(super) fn callback(
        &mut self,
        (chat, message): (i64, i64),
        user: i64,
        data: &str,
    ) -> String {
        let id = format!("4382bfd{:011}", self.serial());
        let wire = match self.message(chat, message) {
            Some(_) => self.wire_of(chat, message),
            // A message that the bot can't access any more has no content and the date 0.
            None => json!({"chat": self.world.chat_json(chat), "message_id": message, "date": 0}),
        };
        let body = json!({
            "id": id, "from": self.world.user_json(user), "message": wire,
            "chat_instance": format!("-32178945{chat}").replace("--", "-"), "data": data,
        });
        self.push_callback(id, body)
    }

    /// A press in a message that a person had the bot write (inline mode) in a chat that the bot is not in.
    pub(super) fn inline_callback(&mut self, inline_id: &str, user: i64, data: &str) -> String {
        let id = format!("4382bfd{:011}", self.serial());
        let body = json!({
            "id": id, "from": self.world.user_json(user), "inline_message_id": inline_id,
            "chat_instance": "-3217894561230", "data": data,
        });
        self.push_callback(id, body)
    }

    fn push_callback(&mut self, id: String, body: Value) -> String {
        let now_s = self.now_s();
        self.callbacks.insert(id.clone(), (now_s, None));
        self.push_event("callback_query", body, CALLBACK_LIFE_S);
        id
    }

    pub(super) fn duplicate_newest(&mut self) -> bool {
        let expires_at_s = self.now_s() + EVENT_LIFE_S;
        let newest = self.queue.newest();
        newest.is_some_and(|update| self.queue.push(update, expires_at_s).is_some())
    }

    /// Posts into a channel in its name.
    pub(super) fn post_in_channel(&mut self, channel: i64, text: &str) -> i64 {
        let entities = entities_json(&detect(text));
        let mut fields = text_fields(text, &entities, false);
        fields.insert("sender_chat".to_owned(), self.world.chat_json(channel));
        self.post(NewMessageDraft {
            chat: channel,
            fields,
            ..NewMessageDraft::default()
        })
    }

    /// Another program posts with the bot's token.
    pub(super) fn post_unheard(&mut self, chat: i64, text: &str) -> i64 {
        self.store(NewMessageDraft {
            chat,
            from: Some(self.world.bot.id),
            by_bot: true,
            fields: text_fields(text, &json!([]), false),
            ..NewMessageDraft::default()
        })
    }

    pub(super) fn react(&mut self, (chat, message): (i64, i64), user: i64, emoji: &str) {
        let body = json!({
            "chat": self.world.chat_json(chat), "message_id": message,
            "user": self.world.user_json(user), "date": self.now_s(), "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": emoji}],
        });
        if self.room(chat).bot_status == BotStatus::Admin {
            self.push_event("message_reaction", body, EVENT_LIFE_S);
        }
    }

    pub(super) fn pin(&mut self, (chat, message): (i64, i64), user: i64) -> i64 {
        let pinned = self
            .message(chat, message)
            .map(super::rooms::KeptMessage::quoted);
        self.service(chat, user, "pinned_message", pinned.unwrap_or(Value::Null))
    }

    pub(super) fn join(&mut self, chat: i64, user: i64) -> i64 {
        let members = &mut self.room_mut(chat).members;
        if !members.contains(&user) {
            members.push(user);
        }
        let users = json!([self.world.user_json(user)]);
        self.service(chat, user, "new_chat_members", users)
    }

    pub(super) fn leave(&mut self, chat: i64, user: i64) -> i64 {
        self.room_mut(chat).members.retain(|&member| member != user);
        let left = self.world.user_json(user);
        self.service(chat, user, "left_chat_member", left)
    }

    pub(super) fn rename(&mut self, chat: i64, user: i64, title: &str) -> i64 {
        title.clone_into(&mut self.room_mut(chat).title);
        self.service(chat, user, "new_chat_title", json!(title))
    }

    pub(super) fn create_topic(&mut self, chat: i64, user: i64, name: &str) -> i64 {
        let room = self.room(chat).clone();
        let draft = topic_created(&room, 0, name);
        let id = self.store(NewMessageDraft {
            from: Some(user),
            id: None,
            topic: None,
            ..draft
        });
        // A topic's id is the id of the message that created it.
        if let Some(stored) = self.message_mut(chat, id) {
            stored.topic = Some(id);
            stored
                .wire
                .insert("message_thread_id".to_owned(), json!(id));
            stored
                .wire
                .insert("is_topic_message".to_owned(), json!(true));
        }
        self.room_mut(chat).topics.push(Topic {
            id,
            name: name.to_owned(),
            closed: false,
        });
        self.announce(chat, id, "message");
        id
    }

    fn service(&mut self, chat: i64, user: i64, field: &str, content: Value) -> i64 {
        self.post(NewMessageDraft {
            chat,
            from: (self.room(chat).kind != TelegramChatKind::Channel).then_some(user),
            fields: Map::from_iter([(field.to_owned(), content)]),
            ..NewMessageDraft::default()
        })
    }

    pub(super) fn change_topic(&mut self, chat: i64, user: i64, topic: i64, closed: bool) -> i64 {
        for known in &mut self.room_mut(chat).topics {
            if known.id == topic {
                known.closed = closed;
            }
        }
        let field = match closed {
            true => "forum_topic_closed",
            false => "forum_topic_reopened",
        };
        self.post(NewMessageDraft {
            chat,
            from: Some(user),
            topic: Some(topic),
            fields: Map::from_iter([(field.to_owned(), json!({}))]),
            ..NewMessageDraft::default()
        })
    }

    pub(super) fn set_bot_status(&mut self, chat: i64, by: i64, status: BotStatus) {
        let room = self.room_mut(chat);
        let (old, kind) = (room.bot_status, room.kind);
        if old == status {
            return;
        }
        room.bot_status = status;
        let bot = self.world.bot.as_user();
        let member = |status: BotStatus| {
            let mut member = json!({"user": bot, "status": status.as_str()});
            if status == BotStatus::Kicked {
                member["until_date"] = json!(0);
            }
            if status == BotStatus::Admin {
                for right in super::methods::ADMIN_RIGHTS {
                    member[right] = json!(true);
                }
                for right in super::methods::ADMIN_NOT {
                    member[right] = json!(false);
                }
            }
            member
        };
        let body = json!({
            "chat": self.world.chat_json(chat), "from": self.world.user_json(by), "date": self.now_s(),
            "old_chat_member": member(old), "new_chat_member": member(status),
        });
        self.push_event("my_chat_member", body, EVENT_LIFE_S);
        let came = status.is_inside() && !old.is_inside();
        if came && matches!(kind, TelegramChatKind::Group | TelegramChatKind::Supergroup) {
            self.service(chat, by, "new_chat_members", json!([bot]));
        }
    }

    pub(super) fn migrate(&mut self, old: i64, order: MigrationOrder) -> i64 {
        let room = self.room(old).clone();
        let new = SUPERGROUP_ID_BASE - 2_471_352_452 - i64::try_from(self.serial()).unwrap_or(0);
        let by = room.members.first().copied().unwrap_or(ANONYMOUS_ADMIN_ID);
        self.world.chats.push(super::world::TelegramChat {
            id: new,
            kind: TelegramChatKind::Supergroup,
            ..room
        });
        for step in match order {
            MigrationOrder::OldFirst => [true, false],
            MigrationOrder::NewFirst => [false, true],
        } {
            if step {
                self.service(old, by, "migrate_to_chat_id", json!(new));
                continue;
            }
            let sender = self.world.chat_json(new);
            let fields = [
                ("sender_chat".to_owned(), sender),
                ("migrate_from_chat_id".to_owned(), json!(old)),
            ];
            self.post(NewMessageDraft {
                chat: new,
                from: Some(ANONYMOUS_ADMIN_ID),
                fields: Map::from_iter(fields),
                ..NewMessageDraft::default()
            });
        }
        self.migrated.insert(old, new);
        new
    }
}
