//! Rows of chats and conversations: how a place is found, and made when it is new.

use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use vocative_contract::envelope::{ChatKind, Place};

use crate::StoreError;
use crate::new_id::NewId as _;
use crate::registry::{
    ErasureRule, ExportRule, Fate, MergeRule, OTHER_SOURCE, STATE, StoreTable, account, text,
};
use crate::rows::columns::chat_kind_from_name;
use vocative_core::ids::{AccountId, ChatId, ConversationId};
use vocative_core::place::Scope;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "chat_ids",
        text(&[], &[], &["platform_id"]),
        Fate {
            merge: MergeRule::Moves,
            ..STATE
        },
    ),
    account(
        "chat_merges",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account(
        "chats",
        text(&[], &["title"], &["platform_id", "kind", "parked_reason"]),
        Fate {
            person: ErasureRule::Nothing(
                "a room's title is not theirs; that of a direct chat goes",
            ),
            chat: ErasureRule::Nothing(
                "a room's title is not what was said in it; that of a direct chat goes",
            ),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            merge: MergeRule::Joined,
            export: ExportRule::Exported,
            ..STATE
        },
    ),
];

/// A chat as found by one of its platform ids.
#[derive(Clone, Debug)]
pub(crate) struct ChatRow {
    pub(crate) id: ChatId,
    /// The row under which messages with that platform id are known.
    pub(crate) identity: ChatId,
    pub(crate) kind: Option<ChatKind>,
    pub(crate) title: Option<String>,
    pub(crate) refused_notice_at_ms: Option<i64>,
    pub(crate) limit_notice_at_ms: Option<i64>,
    pub(crate) last_heard_ms: i64,
    /// Whether the bot is there, as last heard.
    pub(crate) is_present: bool,
    /// Whether the bot can post there, and nothing keeps it from doing so.
    pub(crate) is_open: bool,
    /// Whether messages of it may be known under another of its ids too.
    pub(crate) has_other_ids: bool,
    /// Answers to other bots since a person spoke.
    pub(crate) bot_exchanges: u32,
    pub(crate) quiet_told_until_ms: Option<i64>,
}

/// Finds a chat by any platform id it has had.
pub(crate) fn find_chat(
    connection: &Connection,
    account: AccountId,
    platform_id: &str,
) -> Result<Option<ChatRow>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT c.id, i.identity_id, c.kind, c.title, c.refused_notice_at_ms,
                    c.limit_notice_at_ms, c.last_heard_ms,
                    c.is_present = 1 AND c.parked_until_ms IS NULL AND c.parked_reason IS NULL AS is_open,
                    EXISTS (SELECT 1 FROM chat_ids o
                            WHERE o.chat_id = c.id AND o.identity_id <> i.identity_id) AS has_other_ids,
                    c.bot_exchanges, c.quiet_told_until_ms, c.is_present
             FROM chat_ids i JOIN chats c ON c.id = i.chat_id
             WHERE i.account_id = ?1 AND i.platform_id = ?2",
        )?
        .query_row(params![account, platform_id], |row| {
            let kind: Option<String> = row.get("kind")?;
            Ok(ChatRow {
                id: row.get("id")?,
                identity: row.get("identity_id")?,
                kind: kind.as_deref().and_then(chat_kind_from_name),
                title: row.get("title")?,
                refused_notice_at_ms: row.get("refused_notice_at_ms")?,
                limit_notice_at_ms: row.get("limit_notice_at_ms")?,
                last_heard_ms: row.get("last_heard_ms")?,
                is_open: row.get("is_open")?,
                has_other_ids: row.get("has_other_ids")?,
                bot_exchanges: row.get("bot_exchanges")?,
                quiet_told_until_ms: row.get("quiet_told_until_ms")?,
                is_present: row.get("is_present")?,
            })
        })
        .optional()?;
    Ok(found)
}

/// Finds or makes a chat, by its id only.
pub(crate) fn ensure_chat_txn(
    connection: &Connection,
    account: AccountId,
    platform_id: &str,
) -> Result<ChatRow, StoreError> {
    if let Some(chat) = find_chat(connection, account, platform_id)? {
        return Ok(chat);
    }
    connection
        .prepare_cached("INSERT INTO chats (account_id, platform_id) VALUES (?1, ?2)")?
        .execute(params![account, platform_id])?;
    let id = ChatId(connection.last_insert_rowid());
    connection
        .prepare_cached(
            "INSERT INTO chat_ids (account_id, platform_id, chat_id, identity_id)
             VALUES (?1, ?2, ?3, ?3)",
        )?
        .execute(params![account, platform_id, id])?;
    Ok(ChatRow {
        id,
        identity: id,
        kind: None,
        title: None,
        refused_notice_at_ms: None,
        limit_notice_at_ms: None,
        last_heard_ms: 0,
        is_present: true,
        is_open: true,
        has_other_ids: false,
        bot_exchanges: 0,
        quiet_told_until_ms: None,
    })
}

/// How often the time at which a chat was last heard is noted anew, in milliseconds: in a busy room each message
/// would write it, and it is not needed to the millisecond.
pub(crate) const HEARD_EVERY_MS: i64 = 1_000;

impl ChatRow {
    /// Whether all that an event tells of the chat is noted already.
    pub(crate) fn knows(&self, place: &Place, now_ms: i64) -> bool {
        self.is_open
            && now_ms < self.last_heard_ms + HEARD_EVERY_MS
            && (place.title.is_none() || place.title == self.title)
            && (place.kind.is_none() || place.kind == self.kind)
    }
}

/// Which conversation of its chat a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConversationSeat<'a> {
    /// The chat's own.
    Chat,
    /// A thread below the chat's own.
    Thread(&'a str),
    /// A topic: a room of its own.
    Topic(&'a str),
}

impl<'a> ConversationSeat<'a> {
    /// The seat of a message. A thread's root is a message of the chat.
    pub(crate) fn of(place: &'a Place, message_id: &str) -> Self {
        match (&place.topic, &place.thread) {
            (Some(topic), _) => Self::Topic(topic),
            (None, Some(thread)) if thread != message_id => Self::Thread(thread),
            _ => Self::Chat,
        }
    }

    /// The stored key of it within the chat.
    pub(crate) fn key(self) -> &'a str {
        match self {
            Self::Chat => "",
            Self::Thread(key) | Self::Topic(key) => key,
        }
    }
}

/// A conversation's row.
#[derive(Clone, Debug)]
pub(crate) struct ConversationRow {
    pub(crate) row: i64,
    pub(crate) id: ConversationId,
    pub(crate) chat: ChatId,
    pub(crate) thread: String,
    pub(crate) is_topic: bool,
    pub(crate) root_seq: Option<i64>,
    /// Whether it is a fork of its parent.
    pub(crate) is_fork: bool,
}

impl ConversationRow {
    /// The scope of a turn captured into it.
    pub(crate) fn scope(&self, kind: Option<ChatKind>) -> Scope {
        Scope::of(kind, self.is_thread())
    }

    /// Whether it is a thread below its chat's own conversation.
    pub(crate) fn is_thread(&self) -> bool {
        !self.thread.is_empty() && !self.is_topic
    }

    fn from_row(row: &Row<'_>) -> crate::engine::sql::Result<Self> {
        Ok(Self {
            row: row.get("id")?,
            id: row.get("uuid")?,
            chat: row.get("chat_id")?,
            thread: row.get("thread")?,
            is_topic: row.get("is_topic")?,
            root_seq: row.get("root_turn_seq")?,
            is_fork: row.get("is_fork")?,
        })
    }
}

/// Finds a conversation by its key.
pub(crate) fn find_conversation(
    connection: &Connection,
    chat: ChatId,
    key: &str,
) -> Result<Option<ConversationRow>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT id, uuid, chat_id, thread, is_topic, root_turn_seq, is_fork
             FROM conversations WHERE chat_id = ?1 AND thread = ?2",
        )?
        .query_row(params![chat, key], ConversationRow::from_row)
        .optional()?;
    Ok(found)
}

/// A conversation by its row id.
pub(crate) fn conversation_at(
    connection: &Connection,
    row: i64,
) -> Result<ConversationRow, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT id, uuid, chat_id, thread, is_topic, root_turn_seq, is_fork
             FROM conversations WHERE id = ?1",
        )?
        .query_row([row], ConversationRow::from_row)?;
    Ok(found)
}

/// Finds or makes the conversation of a seat. A thread hangs on its chat's own conversation; its
/// root is filled in by the caller that knows it.
pub(crate) fn ensure_conversation_txn(
    connection: &Connection,
    chat: ChatId,
    seat: ConversationSeat<'_>,
    now_ms: i64,
) -> Result<ConversationRow, StoreError> {
    if let Some(found) = find_conversation(connection, chat, seat.key())? {
        return Ok(found);
    }
    let parent = match seat {
        ConversationSeat::Thread(_) => {
            Some(ensure_conversation_txn(connection, chat, ConversationSeat::Chat, now_ms)?.row)
        }
        ConversationSeat::Chat | ConversationSeat::Topic(_) => None,
    };
    let id = ConversationId::generate();
    let is_topic = matches!(seat, ConversationSeat::Topic(_));
    connection
        .prepare_cached(
            "INSERT INTO conversations
                 (uuid, chat_id, thread, is_topic, parent_id, created_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![id, chat, seat.key(), is_topic, parent, now_ms])?;
    Ok(ConversationRow {
        row: connection.last_insert_rowid(),
        id,
        chat,
        thread: seat.key().to_owned(),
        is_topic,
        root_seq: None,
        is_fork: false,
    })
}

/// Sets a thread's root, once. That is the first thing that happened in it.
pub(crate) fn set_root_txn(
    connection: &Connection,
    conversation_row: i64,
    root_seq: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations
             SET root_turn_seq = ?2,
                 last_activity_ms = max(last_activity_ms,
                                        (SELECT sent_at_ms FROM turns WHERE seq = ?2))
             WHERE id = ?1 AND root_turn_seq IS NULL",
        )?
        .execute([conversation_row, root_seq])?;
    Ok(())
}

/// Notes a topic's name.
pub(crate) fn name_topic_txn(
    connection: &Connection,
    conversation_row: i64,
    title: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE conversations SET title = ?2 WHERE id = ?1 AND is_topic = 1")?
        .execute(params![conversation_row, title])?;
    Ok(())
}

/// Notes the name a topic was made with; it may have another by now.
pub(crate) fn name_new_topic_txn(
    connection: &Connection,
    conversation_row: i64,
    title: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET title = ?2
             WHERE id = ?1 AND is_topic = 1 AND coalesce(title, '') = ''",
        )?
        .execute(params![conversation_row, title])?;
    Ok(())
}

/// Counts a new turn of a conversation. An archived conversation is back with it.
pub(crate) fn note_turn_txn(
    connection: &Connection,
    conversation_row: i64,
    seq: i64,
    at_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET turn_count = turn_count + 1, last_seq = ?2,
                    last_activity_ms = max(last_activity_ms, ?3), archived_at_ms = NULL,
                    expired_through_ms = min(expired_through_ms, ?3)
             WHERE id = ?1",
        )?
        .execute([conversation_row, seq, at_ms])?;
    Ok(())
}
