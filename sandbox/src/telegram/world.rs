//! Who and what exists before the first update: the bot, people, chats and topics.
//!
//! Owns plain data and the wire form of users and chats. Knows no messages and no rules.

use serde_json::{Map, Value, json};

/// `from.id` of an anonymous administrator (the account `GroupAnonymousBot`).
pub const ANONYMOUS_ADMIN_ID: i64 = 1_087_968_824;
/// `from.id` of a channel post that was forwarded into the channel's discussion group.
pub const SERVICE_ACCOUNT_ID: i64 = 777_000;
/// `from.id` of a person who writes on behalf of a channel (the account `Channel_Bot`).
pub const CHANNEL_SENDER_ID: i64 = 136_817_688;
/// Supergroups and channels have ids below this number.
pub(super) const SUPERGROUP_ID_BASE: i64 = -1_000_000_000_000;

/// The one bot that this server answers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramBot {
    /// User id of the bot; also the part of the token before the colon.
    pub id: i64,
    /// Username without `@`.
    pub username: String,
    /// Display name.
    pub first_name: String,
    /// The whole token, `<id>:<secret>`.
    pub token: String,
    /// True when privacy mode is off, so that the bot hears everything in groups.
    pub can_read_all_group_messages: bool,
    /// Whether the bot may be added to groups.
    pub can_join_groups: bool,
    /// Whether the bot-to-bot communication mode is on.
    pub hears_bots: bool,
    /// Whether people can have the bot write messages in any chat (inline mode).
    pub has_inline_mode: bool,
}

/// A person, or another bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramUser {
    /// User id, positive.
    pub id: i64,
    /// Display name.
    pub first_name: String,
    /// Username without `@`.
    pub username: Option<String>,
    /// True for other bots.
    pub is_bot: bool,
}

/// What kind of room a chat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TelegramChatKind {
    /// One person and the bot; the chat's id is the person's id.
    Private,
    /// A basic group; id is a small negative number.
    Group,
    /// A supergroup; id is below -1000000000000.
    Supergroup,
    /// A channel; id is below -1000000000000.
    Channel,
}

impl TelegramChatKind {
    /// The `type` of a chat on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Group => "group",
            Self::Supergroup => "supergroup",
            Self::Channel => "channel",
        }
    }
}

/// What the bot is in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BotStatus {
    /// An ordinary member; in a private chat: started by the person.
    Member,
    /// An administrator.
    Admin,
    /// Not there; in a private chat: never started.
    Left,
    /// Removed and barred; in a private chat: blocked by the person.
    Kicked,
}

impl BotStatus {
    /// The `status` of a chat member on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "administrator",
            Self::Left => "left",
            Self::Kicked => "kicked",
        }
    }

    /// Whether the bot is in the chat.
    #[must_use]
    pub fn is_inside(self) -> bool {
        matches!(self, Self::Member | Self::Admin)
    }
}

/// A forum topic. Its id is the id of the service message that created it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// `message_thread_id`.
    pub id: i64,
    /// Title.
    pub name: String,
    /// A closed topic takes messages only from administrators.
    pub closed: bool,
}

/// A room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramChat {
    /// Chat id as the Bot API writes it.
    pub id: i64,
    /// What kind of room.
    pub kind: TelegramChatKind,
    /// Title; a private chat has none.
    pub title: String,
    /// Public name without `@`.
    pub username: Option<String>,
    /// A supergroup with topics.
    pub is_forum: bool,
    /// Topics besides General.
    pub topics: Vec<Topic>,
    /// Ids of the people inside.
    pub members: Vec<i64>,
    /// What the bot is here.
    pub bot_status: BotStatus,
}

/// Everything that exists at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramWorld {
    /// The bot.
    pub bot: TelegramBot,
    /// People and other bots.
    pub users: Vec<TelegramUser>,
    /// Rooms.
    pub chats: Vec<TelegramChat>,
}

impl TelegramWorld {
    /// Ann's user id, and the id of the private chat with her.
    pub const ANN: i64 = 5001;
    /// Bob's user id. He has not started the bot.
    pub const BOB: i64 = 5002;
    /// Another bot, `@other_bot`, a member of the supergroup.
    pub const OTHER_BOT: i64 = 987_654_321;
    /// The supergroup "Platform team".
    pub const SUPERGROUP: i64 = -1_001_234_567_890;
    /// The basic group "Lunch".
    pub const GROUP: i64 = -4_518_810_793;
    /// The forum "Incidents".
    pub const FORUM: i64 = -1_001_234_567_891;
    /// The forum's topic "Incident 42".
    pub const TOPIC_INCIDENT: i64 = 163;
    /// The forum's topic "Deploys".
    pub const TOPIC_DEPLOYS: i64 = 170;
    /// The channel "Announcements", where the bot is an administrator.
    pub const CHANNEL: i64 = -1_001_234_567_892;

    /// A small team: Ann and Bob, a supergroup, a basic group, a forum with two topics, a channel,
    /// and a private chat with Ann.
    #[must_use]
    pub fn team() -> Self {
        let everyone = vec![Self::ANN, Self::BOB];
        let room = |id, kind, title: &str| TelegramChat {
            id,
            kind,
            title: title.to_owned(),
            username: None,
            is_forum: false,
            topics: Vec::new(),
            members: everyone.clone(),
            bot_status: BotStatus::Member,
        };
        let topic = |id, name: &str| Topic {
            id,
            name: name.to_owned(),
            closed: false,
        };
        let mut supergroup = room(
            Self::SUPERGROUP,
            TelegramChatKind::Supergroup,
            "Platform team",
        );
        supergroup.members.push(Self::OTHER_BOT);
        Self {
            bot: TelegramBot {
                id: 123_456_789,
                username: "vocative_bot".to_owned(),
                first_name: "Team Bot".to_owned(),
                token: "123456789:AAloopback-telegram-token-000000000".to_owned(),
                can_read_all_group_messages: true,
                can_join_groups: true,
                hears_bots: false,
                has_inline_mode: false,
            },
            users: vec![
                person(Self::ANN, "Ann", Some("ann_dev")),
                person(Self::BOB, "Bob", None),
                TelegramUser {
                    is_bot: true,
                    ..person(Self::OTHER_BOT, "Other Bot", Some("other_bot"))
                },
            ],
            chats: vec![
                supergroup,
                room(Self::GROUP, TelegramChatKind::Group, "Lunch"),
                TelegramChat {
                    is_forum: true,
                    topics: vec![
                        topic(Self::TOPIC_INCIDENT, "Incident 42"),
                        topic(Self::TOPIC_DEPLOYS, "Deploys"),
                    ],
                    ..room(Self::FORUM, TelegramChatKind::Supergroup, "Incidents")
                },
                TelegramChat {
                    bot_status: BotStatus::Admin,
                    username: Some("acme_news".to_owned()),
                    ..room(Self::CHANNEL, TelegramChatKind::Channel, "Announcements")
                },
                TelegramChat {
                    members: vec![Self::ANN],
                    ..room(Self::ANN, TelegramChatKind::Private, "")
                },
            ],
        }
    }

    pub(super) fn user(&self, id: i64) -> Option<&TelegramUser> {
        self.users.iter().find(|user| user.id == id)
    }

    pub(super) fn chat(&self, id: i64) -> Option<&TelegramChat> {
        self.chats.iter().find(|chat| chat.id == id)
    }

    pub(super) fn chat_mut(&mut self, id: i64) -> Option<&mut TelegramChat> {
        self.chats.iter_mut().find(|chat| chat.id == id)
    }

    /// The `User` object of the bot or another account; unknown ids get a made-up name.
    pub(super) fn user_json(&self, id: i64) -> Value {
        match id {
            _ if id == self.bot.id => self.bot.as_user(),
            ANONYMOUS_ADMIN_ID => {
                json!({"id": id, "is_bot": true, "first_name": "Group", "username": "GroupAnonymousBot"})
            }
            SERVICE_ACCOUNT_ID => json!({"id": id, "is_bot": false, "first_name": "Telegram"}),
            CHANNEL_SENDER_ID => {
                json!({"id": id, "is_bot": true, "first_name": "Channel", "username": "Channel_Bot"})
            }
            _ => match self.user(id) {
                Some(user) => user.as_json(),
                None => json!({"id": id, "is_bot": false, "first_name": format!("User {id}")}),
            },
        }
    }

    /// The short `Chat` object that messages carry.
    pub(super) fn chat_json(&self, id: i64) -> Value {
        let Some(chat) = self.chat(id) else {
            return json!({"id": id, "type": "private"});
        };
        let mut object = Map::new();
        object.insert("id".to_owned(), json!(id));
        if chat.kind == TelegramChatKind::Private {
            if let Some(user) = self.user(id) {
                object.insert("first_name".to_owned(), json!(user.first_name));
                if let Some(username) = &user.username {
                    object.insert("username".to_owned(), json!(username));
                }
            }
        } else {
            object.insert("title".to_owned(), json!(chat.title));
            if let Some(username) = &chat.username {
                object.insert("username".to_owned(), json!(username));
            }
        }
        object.insert("type".to_owned(), json!(chat.kind.as_str()));
        if chat.is_forum {
            object.insert("is_forum".to_owned(), json!(true));
        }
        Value::Object(object)
    }
}

impl TelegramBot {
    /// The short `User` object of the bot, as messages carry it.
    pub(super) fn as_user(&self) -> Value {
        json!({"id": self.id, "is_bot": true, "first_name": self.first_name, "username": self.username})
    }

    /// The full object that `getMe` answers with.
    pub(super) fn as_me(&self) -> Value {
        json!({
            "id": self.id, "is_bot": true, "first_name": self.first_name, "username": self.username,
            "can_join_groups": self.can_join_groups,
            "can_read_all_group_messages": self.can_read_all_group_messages,
            "supports_inline_queries": self.has_inline_mode, "supports_guest_queries": false,
            "supports_join_request_queries": false, "can_connect_to_business": false,
            "has_main_web_app": false, "has_topics_enabled": false,
            "allows_users_to_create_topics": false, "can_manage_bots": false,
        })
    }
}

impl TelegramUser {
    fn as_json(&self) -> Value {
        let mut object =
            json!({"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name});
        if let Some(username) = &self.username {
            object["username"] = json!(username);
        }
        if !self.is_bot {
            object["language_code"] = json!("en");
        }
        object
    }
}

fn person(id: i64, first_name: &str, username: Option<&str>) -> TelegramUser {
    TelegramUser {
        id,
        first_name: first_name.to_owned(),
        username: username.map(str::to_owned),
        is_bot: false,
    }
}
