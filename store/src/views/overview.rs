//! What people are told of a conversation besides its turns: title, source, who takes part, what is
//! at work in it, whether it was put away.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::open_run;

use crate::contract::{ConversationOverview, Speaker, Speakers};
use crate::rows::columns::{chat_kind_from_name, chat_kind_name, conversation_row_id, count_from};
use crate::rows::columns::{limit_of, platform};
use crate::rows::conversations::conversation;
use crate::rows::names::NameLookup;
use crate::rows::run_rows::run_by_row;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::ConversationId;
use vocative_core::run::Run;
use vocative_core::title::{TITLE_MAX_CHARS, first_words};
use vocative_core::turn::{Participant, ParticipantKind};

/// How many of the first turns are searched for one that can name the conversation.
const OPENING_TURNS: i64 = 5;

impl Reader {
    /// What people are told of a conversation besides its turns.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn overview(&self, id: ConversationId) -> Result<ConversationOverview, StoreError> {
        self.read(move |connection| overview(connection, id)).await
    }

    /// Who speaks in a conversation, who says most first, and how many they are.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn speakers(&self, id: ConversationId, limit: usize) -> Result<Speakers, StoreError> {
        self.read(move |connection| speakers(connection, id, limit))
            .await
    }
}

impl Store {
    /// Gives a conversation a title of its own, or takes that away, as an operator says.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn set_title(
        &self,
        id: ConversationId,
        title: Option<String>,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let row = conversation_row_id(connection, id)?;
            connection
                .prepare_cached(
                    "UPDATE conversations SET own_title = ?2, own_title_from = NULL,
                            own_title_participant_id = NULL
                     WHERE id = ?1",
                )?
                .execute(params![row, title])?;
            Ok(())
        })
        .await
    }

    /// Puts a conversation away at that time, or takes it back (`None`); the next new turn takes it
    /// back, too. Returns whether that changed anything.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn set_archived(
        &self,
        id: ConversationId,
        at_ms: Option<i64>,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let row = conversation_row_id(connection, id)?;
            let changed = connection
                .prepare_cached(
                    "UPDATE conversations SET archived_at_ms = ?2
                     WHERE id = ?1 AND (archived_at_ms IS NULL) <> (?2 IS NULL)",
                )?
                .execute(params![row, at_ms])?;
            Ok(changed > 0)
        })
        .await
    }
}

fn overview(
    connection: &Connection,
    id: ConversationId,
) -> Result<ConversationOverview, StoreError> {
    let row = conversation_row_id(connection, id)?;
    let mut found = connection
        .prepare_cached(
            "SELECT coalesce((SELECT n.name FROM channels n WHERE n.account_id = a.id
                              ORDER BY n.bound_at_ms DESC LIMIT 1), a.name) AS channel,
                    a.platform, nullif(h.title, '') AS chat_title, nullif(c.own_title, '') AS own_title, c.archived_at_ms,
                    c.last_read_seq, h.kind
             FROM conversations c JOIN chats h ON h.id = c.chat_id
             JOIN accounts a ON a.id = h.account_id WHERE c.id = ?1",
        )?
        .query_row([row], |row| {
            let kind: Option<String> = row.get("kind")?;
            Ok(ConversationOverview {
                title: String::new(),
                channel: row.get("channel")?,
                platform: platform(row)?,
                chat_title: row.get("chat_title")?,
                own_title: row.get("own_title")?,
                archived_at_ms: row.get("archived_at_ms")?,
                chat_kind: kind
                    .as_deref()
                    .and_then(chat_kind_from_name)
                    .map(chat_kind_name),
                last_read: row.get("last_read_seq")?,
                active_run: None,
            })
        })?;
    found.title = match &found.own_title {
        Some(own) => own.clone(),
        None => title_without_own(connection, id, row)?,
    };
    found.active_run = active_run(connection, row)?;
    Ok(found)
}

/// What a conversation without a title of its own is called: a topic's name or the chat's title; the first words
/// where there is none, and of a thread, which shares its chat's title with all others.
pub(crate) fn title_without_own(
    connection: &Connection,
    id: ConversationId,
    row: i64,
) -> Result<String, StoreError> {
    let conversation = conversation(connection, id)?;
    if has_room_name(connection, row)? {
        return Ok(conversation.title);
    }
    let mut names = NameLookup::new(connection, conversation.account);
    for text in opening(connection, row)? {
        if let Some(title) = first_words(&names.named(&text)?, TITLE_MAX_CHARS) {
            return Ok(title);
        }
    }
    Ok(conversation.title)
}

/// Whether the platform says how a conversation is called: by its topic's name or its chat's title, which a thread
/// shares with all others.
fn has_room_name(connection: &Connection, row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT (nullif(h.title, '') IS NOT NULL AND (c.thread = '' OR c.is_topic))
                 OR (nullif(c.title, '') IS NOT NULL AND c.is_topic) AS value
             FROM conversations c JOIN chats h ON h.id = c.chat_id WHERE c.id = ?1",
        )?
        .query_row([row], |row| row.get("value"))?)
}

/// What was said first: by a thread's root, then in the conversation.
fn opening(connection: &Connection, row: i64) -> Result<Vec<String>, StoreError> {
    let root: Option<String> = connection
        .prepare_cached(
            "SELECT t.content FROM turns t
             WHERE t.seq = (SELECT root_turn_seq FROM conversations WHERE id = ?1)
               AND t.visibility = 'room'",
        )?
        .query_row([row], |row| row.get("content"))
        .optional()?;
    let mut statement = connection.prepare_cached(
        "SELECT content FROM turns
         WHERE conversation_id = ?1 AND visibility = 'room' AND kind = 'message' AND content <> ''
         ORDER BY sent_at_ms, ordinal, seq LIMIT ?2",
    )?;
    let first = statement.query_map([row, OPENING_TURNS], |row| row.get("content"))?;
    let first: Vec<String> = first.collect::<crate::engine::sql::Result<_>>()?;
    Ok(root.into_iter().chain(first).collect())
}

/// The oldest unfinished run: the one at work, or next.
fn active_run(connection: &Connection, row: i64) -> Result<Option<Run>, StoreError> {
    let run: Option<i64> = connection
        .prepare_cached(concat!(
            "SELECT id FROM runs INDEXED BY runs_open
             WHERE conversation_id = ?1 AND ",
            open_run!(),
            "
             ORDER BY id LIMIT 1"
        ))?
        .query_row([row], |row| row.get("id"))
        .optional()?;
    run.map(|run| run_by_row(connection, run)).transpose()
}

/// Counts along an index by participant: one step for each person of the account, without reading turns.
fn speakers(
    connection: &Connection,
    id: ConversationId,
    limit: usize,
) -> Result<Speakers, StoreError> {
    let row = conversation_row_id(connection, id)?;
    let account = conversation(connection, id)?.account;
    let mut statement = connection.prepare_cached(
        "WITH counted AS MATERIALIZED (
             SELECT p.id AS id, (SELECT count(*) FROM turns t INDEXED BY turns_by_participant
                                 WHERE t.participant_id = p.id AND t.conversation_id = ?1) AS turns
             FROM participants p WHERE p.account_id = ?2
         )
         SELECT p.id, p.kind, p.platform_id, p.display_name, p.username, n.turns,
                (SELECT count(*) FROM counted WHERE turns > 0) AS speakers
         FROM counted n JOIN participants p ON p.id = n.id
         WHERE n.turns > 0 ORDER BY n.turns DESC, n.id LIMIT ?3",
    )?;
    let mut total = 0;
    let rows = statement.query_map(params![row, account, limit_of(limit)], |row| {
        let speaker = Speaker {
            participant: Participant {
                id: row.get("id")?,
                kind: row.get::<_, ParticipantKind>("kind")?,
                platform_id: row.get("platform_id")?,
                display_name: row.get("display_name")?,
                username: row.get("username")?,
            },
            turns: count_from(row.get("turns")?),
        };
        Ok((speaker, count_from(row.get("speakers")?)))
    })?;
    let mut shown = Vec::new();
    for row in rows {
        let (speaker, count) = row?;
        total = count;
        shown.push(speaker);
    }
    Ok(Speakers { shown, total })
}
