//! Entries of memory as rows: which may appear where, and how they go with what they were made from. What tool calls do
//! to them: `acts/memories`.

use crate::engine::sql::{Connection, Row, params};
use uuid::Uuid;

use crate::contract::{MemoryFilter, MemoryQuery};
use crate::registry::{
    ErasureRule, ExportRule, Fate, MergeRule, OF_RUN, OF_TURN, SAYS_NOTHING, StoreTable, account,
    text,
};
use crate::rows::columns::{chat_kind_from_name, chat_kind_name, conversation_row_id, limit_of};
use crate::rows::memory_marks::forget_rereads_txn;
use crate::{Reader, Store, StoreError};
use vocative_contract::envelope::ChatKind;
use vocative_core::ids::{AccountId, AgentName, ChatId, ParticipantId, TurnId};
use vocative_core::remembering::{
    AskedRoom, ELSEWHERE, ENTRIES_MAX_ROOM, LearntIn, MemoryId, MemoryKind, MemoryOrigin,
    MemoryPerson, MemoryRef, MemoryScope, StoredMemory, may_appear,
};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "memories",
        text(
            &["text"],
            &[],
            &["agent", "kind", "learnt_kind", "origin", "share"],
        ),
        Fate {
            merge: MergeRule::Moves,
            export: ExportRule::Nothing("it is a note of what is exported"),
            ..OF_TURN
        },
    ),
    account("memory_sources", text(&[], &[], &[]), OF_TURN).follows(&["turn_seq"]),
    account(
        "memory_writes",
        text(&[], &[], &["outcome"]),
        Fate {
            person: ErasureRule::Nothing(SAYS_NOTHING),
            chat: ErasureRule::Nothing(SAYS_NOTHING),
            message: ErasureRule::Nothing(SAYS_NOTHING),
            ..OF_RUN
        },
    ),
];

/// The most entries that are read for a room: its own and shared ones.
const READ_MAX: usize = 2 * ENTRIES_MAX_ROOM;

macro_rules! select_memories {
    ($tail:literal) => {
        concat!(
            "SELECT m.id, m.version, m.account_id, m.agent, m.kind, m.chat_id, m.learnt_kind, h.kind AS kind_now, m.share,
                    m.subject_id IS NULL OR m.subject_id = m.teller_id AS is_own, h.platform_id AS room,
                    coalesce(nullif(h.title, ''), h.platform_id) AS room_title,
                    m.teller_id, w.platform_id AS teller, coalesce(w.display_name, w.username, w.platform_id) AS teller_name,
                    m.subject_id, s.platform_id AS subject, coalesce(s.display_name, s.username, s.platform_id) AS subject_name,
                    m.text, m.since_ms, m.until_ms, m.superseded_by, m.written_at_ms, m.origin,
                    (SELECT json_group_array(lower(hex(o.uuid))) FROM memory_sources x JOIN turns o ON o.seq = x.turn_seq
                     WHERE x.memory_id = m.id) AS sources
             FROM memories m JOIN chats h ON h.id = m.chat_id JOIN participants w ON w.id = m.teller_id
             LEFT JOIN participants s ON s.id = m.subject_id ",
            $tail
        )
    };
}

/// The entries of an agent that [`may_appear`] is asked of in a room, whose sources are all there. Rows that it would
/// refuse are left out here as well, because they count for the limit.
pub(crate) const IN_ROOM_SQL: &str = select_memories!(
    "WHERE m.id IN (
         SELECT r.id FROM memories r WHERE r.chat_id = ?1 AND r.agent = ?2 AND r.account_id = ?3
         UNION
         SELECT e.id FROM memories e JOIN chats l ON l.id = e.chat_id
         WHERE e.account_id = ?3 AND e.agent = ?2 AND e.share = ?7 AND e.learnt_kind = ?8
           AND l.kind = ?8 AND (e.subject_id IS NULL OR e.subject_id = e.teller_id))
       AND (?4 OR m.until_ms IS NULL) AND (?5 IS NULL OR m.id IN (SELECT value FROM json_each(?5)))
       AND EXISTS (SELECT 1 FROM memory_sources x WHERE x.memory_id = m.id)
       AND NOT EXISTS (SELECT 1 FROM memory_sources x JOIN turns o ON o.seq = x.turn_seq
                       WHERE x.memory_id = m.id AND o.visibility <> 'room')
     ORDER BY m.id DESC LIMIT ?6"
);

const SAID_ELSEWHERE_SQL: &str = select_memories!(
    "WHERE m.teller_id = ?1 AND m.account_id = ?2 AND m.chat_id <> ?3 AND m.until_ms IS NULL
     ORDER BY m.id DESC LIMIT ?4"
);

const LISTED_SQL: &str = select_memories!(
    "WHERE (?1 IS NULL OR m.account_id = ?1) AND (?2 IS NULL OR m.agent = ?2)
       AND (?3 IS NULL OR w.platform_id = ?3 OR s.platform_id = ?3) AND (?4 OR m.until_ms IS NULL)
       AND (?5 IS NULL OR m.id < ?5) AND (?6 IS NULL OR m.id = ?6)
     ORDER BY m.id DESC LIMIT ?7"
);

/// All entries that hold, the newest first.
const NEWEST_SQL: &str =
    select_memories!("WHERE m.id < ?1 AND m.until_ms IS NULL ORDER BY m.id DESC LIMIT ?2");

impl Reader {
    /// Entries of all agents and rooms that hold, the newest first; for those who run the daemon.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn newest_memories(
        &self,
        before: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        self.read(move |connection| {
            let before = before.map_or(i64::MAX, |id| id.0);
            let mut statement = connection.prepare_cached(NEWEST_SQL)?;
            let found = statement.query_map(params![before, limit_of(limit)], |row| {
                Ok(memory_row(row).ok())
            })?;
            let found: Vec<_> = found.collect::<crate::engine::sql::Result<_>>()?;
            // An entry that can't be decoded is not shown.
            Ok(found.into_iter().flatten().collect())
        })
        .await
    }

    /// Entries as operators see them: of all rooms, the newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn memories(&self, filter: MemoryFilter) -> Result<Vec<StoredMemory>, StoreError> {
        self.read(move |connection| listed(connection, &filter))
            .await
    }

    /// Entries that may appear in a conversation, the newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn memories_in(&self, query: MemoryQuery) -> Result<Vec<StoredMemory>, StoreError> {
        self.read(move |connection| {
            let row = conversation_row_id(connection, query.conversation)?;
            let room = connection
                .prepare_cached(
                    "SELECT c.chat_id, h.account_id FROM conversations c JOIN chats h ON h.id = c.chat_id WHERE c.id = ?1",
                )?
                .query_row([row], |row| {
                    Ok(AskedRoom {
                        account: row.get("account_id")?,
                        chat: row.get("chat_id")?,
                    })
                })?;
            let wanted = query.only.as_deref();
            memories_in(connection, room, &query.agent, query.with_replaced, wanted)
        })
        .await
    }
}

impl Store {
    /// Takes an entry away. Returns whether it was there.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn forget_memory(&self, id: MemoryId) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let is_there: bool = connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM memories WHERE id = ?1) AS is_there")?
                .query_row([id], |row| row.get("is_there"))?;
            delete_memories_txn(connection, &[id])?;
            Ok(is_there)
        })
        .await
    }
}

/// Entries of an agent that may appear in a room, the newest first.
pub(crate) fn memories_in(
    connection: &Connection,
    room: AskedRoom,
    agent: &AgentName,
    with_replaced: bool,
    only: Option<&[MemoryRef]>,
) -> Result<Vec<StoredMemory>, StoreError> {
    let ids = only.map(|only| {
        let ids: Vec<i64> = only.iter().map(|it| it.id.0).collect();
        serde_json::json!(ids).to_string()
    });
    let mut statement = connection.prepare_cached(IN_ROOM_SQL)?;
    let found = statement.query_map(
        params![
            room.chat,
            agent,
            room.account,
            with_replaced,
            ids,
            limit_of(READ_MAX),
            ELSEWHERE.share,
            chat_kind_name(ELSEWHERE.kind)
        ],
        |row| Ok(memory_row(row).ok()),
    )?;
    let mut entries = Vec::new();
    for entry in found {
        // A row that can't be decoded is left out; `vocative memory` still shows the other entries.
        let Some(entry) = entry? else { continue };
        let is_wanted = only.is_none_or(|only| only.contains(&entry.at));
        if is_wanted && may_appear(&entry.learnt, room) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Entries of a filter. A row that can't be decoded is left out.
pub(crate) fn listed(
    connection: &Connection,
    filter: &MemoryFilter,
) -> Result<Vec<StoredMemory>, StoreError> {
    let mut statement = connection.prepare_cached(LISTED_SQL)?;
    let values = params![
        filter.account,
        filter.agent,
        filter.person,
        filter.with_replaced,
        filter.before,
        filter.only,
        limit_of(filter.limit)
    ];
    let found = statement.query_map(values, |row| Ok(memory_row(row).ok()))?;
    let found: Vec<Option<StoredMemory>> = found.collect::<crate::engine::sql::Result<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// An entry from a row of `select_memories`.
fn memory_row(row: &Row<'_>) -> crate::engine::sql::Result<StoredMemory> {
    let kind = |name: Option<String>| name.as_deref().and_then(chat_kind_from_name);
    let account: AccountId = row.get("account_id")?;
    let subject: Option<ParticipantId> = row.get("subject_id")?;
    let sources: String = row.get("sources")?;
    let sources: Vec<String> = serde_json::from_str(&sources).unwrap_or_default();
    let subject = match subject {
        Some(id) => Some(MemoryPerson {
            row: id,
            id: row.get("subject")?,
            name: row.get("subject_name")?,
        }),
        None => None,
    };
    Ok(StoredMemory {
        at: MemoryRef {
            id: row.get("id")?,
            version: row.get("version")?,
        },
        account,
        agent: AgentName::trusted(&row.get::<_, String>("agent")?),
        kind: row.get("kind")?,
        learnt: LearntIn {
            account,
            chat: row.get("chat_id")?,
            kind_then: kind(row.get("learnt_kind")?),
            kind_now: kind(row.get("kind_now")?),
            share: row.get("share")?,
            is_own_words: row.get("is_own")?,
        },
        room: row.get("room")?,
        room_title: row.get("room_title")?,
        teller: MemoryPerson {
            row: row.get("teller_id")?,
            id: row.get("teller")?,
            name: row.get("teller_name")?,
        },
        subject,
        text: row.get("text")?,
        since_ms: row.get("since_ms")?,
        until_ms: row.get("until_ms")?,
        superseded_by: row.get("superseded_by")?,
        sources: sources
            .iter()
            .filter_map(|id| Uuid::parse_str(id).ok().map(TurnId))
            .collect(),
        written_at_ms: row.get("written_at_ms")?,
        origin: row.get("origin")?,
    })
}

/// An entry to be written.
pub(crate) struct NewEntry<'a> {
    pub(crate) account: AccountId,
    pub(crate) agent: &'a AgentName,
    pub(crate) kind: MemoryKind,
    pub(crate) chat: ChatId,
    pub(crate) chat_kind: Option<ChatKind>,
    pub(crate) teller: ParticipantId,
    /// Whom it is about; `None` = the room.
    pub(crate) subject: Option<ParticipantId>,
    pub(crate) text: &'a str,
    pub(crate) since_ms: i64,
    pub(crate) origin: MemoryOrigin,
    /// Rows of the turns that say it.
    pub(crate) sources: &'a [i64],
    pub(crate) now_ms: i64,
}

/// Writes an entry with its sources.
pub(crate) fn insert_memory_txn(
    connection: &Connection,
    new: &NewEntry<'_>,
) -> Result<MemoryRef, StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO memories (version, account_id, agent, kind, chat_id, learnt_kind, share, teller_id, subject_id,
                    text, since_ms, written_at_ms, origin)
             VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            new.account,
            new.agent,
            new.kind,
            new.chat,
            new.chat_kind.map(chat_kind_name),
            MemoryScope::Room,
            new.teller,
            new.subject,
            new.text,
            new.since_ms,
            new.now_ms,
            new.origin,
        ])?;
    let id = MemoryId(connection.last_insert_rowid());
    let mut statement = connection
        .prepare_cached("INSERT INTO memory_sources (memory_id, turn_seq) VALUES (?1, ?2)")?;
    for seq in new.sources {
        statement.execute((id, seq))?;
    }
    Ok(MemoryRef { id, version: 1 })
}

/// Ends an entry, because another one takes its place.
pub(crate) fn replace_memory_txn(
    connection: &Connection,
    old: MemoryId,
    by: MemoryId,
    until_ms: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE memories SET until_ms = ?3, superseded_by = ?2, version = version + 1, written_at_ms = ?4
             WHERE id = ?1",
        )?
        .execute(params![old, by, until_ms, now_ms])?;
    Ok(())
}

/// Changes the text of an entry.
pub(crate) fn change_text_txn(
    connection: &Connection,
    id: MemoryId,
    text: &str,
    origin: MemoryOrigin,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE memories SET text = ?2, origin = ?3, version = version + 1, written_at_ms = ?4 WHERE id = ?1",
        )?
        .execute(params![id, text, origin, now_ms])?;
    Ok(changed > 0)
}

/// Sets in which rooms an entry may appear.
pub(crate) fn share_txn(
    connection: &Connection,
    id: MemoryId,
    share: MemoryScope,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE memories SET share = ?2, written_at_ms = ?3 WHERE id = ?1")?
        .execute(params![id, share, now_ms])?;
    Ok(())
}

/// What a person said in other rooms of the account: theirs to see where nobody else is. The newest first.
pub(crate) fn said_elsewhere(
    connection: &Connection,
    room: AskedRoom,
    person: ParticipantId,
) -> Result<Vec<StoredMemory>, StoreError> {
    let mut statement = connection.prepare_cached(SAID_ELSEWHERE_SQL)?;
    let values = params![person, room.account, room.chat, limit_of(READ_MAX)];
    let found = statement.query_map(values, |row| Ok(memory_row(row).ok()))?;
    let found: Vec<Option<StoredMemory>> = found.collect::<crate::engine::sql::Result<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// How many entries of other rooms are about a person and said by others.
pub(crate) fn count_about_elsewhere(
    connection: &Connection,
    room: AskedRoom,
    person: ParticipantId,
) -> Result<usize, StoreError> {
    let count: i64 = connection
        .prepare_cached(
            "SELECT count(*) AS n FROM memories
             WHERE subject_id = ?1 AND teller_id <> ?1 AND account_id = ?2 AND chat_id <> ?3 AND until_ms IS NULL",
        )?
        .query_row(params![person, room.account, room.chat], |row| row.get("n"))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Takes entries away.
pub(crate) fn delete_memories_txn(
    connection: &Connection,
    ids: &[MemoryId],
) -> Result<usize, StoreError> {
    for id in ids {
        for sql in [
            "UPDATE memories SET superseded_by = NULL WHERE superseded_by = ?1",
            "DELETE FROM memory_sources WHERE memory_id = ?1",
            "DELETE FROM memories WHERE id = ?1",
        ] {
            connection.prepare_cached(sql)?.execute([id])?;
        }
    }
    Ok(ids.len())
}

/// Deletes the entries that were learnt from a turn which is gone or was changed.
pub(crate) fn forget_memories_of_turn_txn(
    connection: &Connection,
    seq: i64,
) -> Result<(), StoreError> {
    let learnt: Vec<MemoryId> = connection
        .prepare_cached("SELECT memory_id FROM memory_sources WHERE turn_seq = ?1")?
        .query_map([seq], |row| row.get("memory_id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    delete_memories_txn(connection, &learnt)?;
    forget_rereads_txn(connection, seq)
}

/// Deletes the entries that people said, or that are about them. `people` = rows of participants, as JSON.
pub(crate) fn forget_memories_of_people_txn(
    connection: &Connection,
    people: &str,
    until_ms: i64,
) -> Result<(), StoreError> {
    let theirs: Vec<MemoryId> = connection
        .prepare_cached(
            "SELECT id FROM memories WHERE written_at_ms <= ?2 AND teller_id IN (SELECT value FROM json_each(?1))
             UNION
             SELECT id FROM memories WHERE written_at_ms <= ?2 AND subject_id IN (SELECT value FROM json_each(?1))",
        )?
        .query_map((people, until_ms), |row| row.get("id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    delete_memories_txn(connection, &theirs)?;
    Ok(())
}

/// Moves the entries of a chat to the one that it is merged into.
pub(crate) fn move_memories_txn(
    connection: &Connection,
    from: ChatId,
    target: ChatId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE memories SET chat_id = ?2 WHERE chat_id = ?1")?
        .execute((from, target))?;
    Ok(())
}
