//! How far agents have read conversations for what is worth keeping, and what of them they have not read. What is
//! learnt of it is written by `acts/extraction`.

use vocative_contract::markup::{mentioned_ids, replace_mentions};

use crate::contract::{DueConversation, ReadMark, UnreadQuery, UnreadTurn, UnreadTurns};
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::registry::{Fate, MergeRule, OF_TURN, STATE, StoreTable, account, text};
use crate::rows::columns::{
    chat_kind_from_name, conversation_row_id, count_from, day_start_ms, limit_of,
};
use crate::rows::participants::{NAME_BY_ID_SQL, NAME_BY_USERNAME_SQL};
use crate::{Reader, StoreError};
use vocative_core::ids::{AccountId, AgentName, Seq};
use vocative_core::job::JobKind;
use vocative_core::remembering::extracting::{LINE_MAX_CHARS, READ_AT_LINES, READ_BACK_MS};
use vocative_core::remembering::own_words;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "memory_marks",
        text(&[], &[], &["agent"]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account("memory_rereads", text(&[], &[], &["agent"]), OF_TURN).follows(&["turn_seq"]),
];

/// The most conversations that are looked at, by activity; an older one waits for its next turn.
const LOOKED_AT_MAX: usize = 500;
/// The most new turns of one reading.
const NEW_MAX: usize = 40;
/// The most turns of one reading that were read before and say something else by now.
const REREAD_MAX: usize = 20;
/// How long before the newest turn that was read turns captured late are looked for, in milliseconds.
const LATE_MS: i64 = 86_400_000;

const DUE_SQL: &str = "SELECT c.id, c.uuid, h.account_id, c.last_activity_ms, coalesce(k.through_seq, 0) AS through_seq,
            coalesce(k.through_sent_at_ms, 0) AS through_sent_at_ms
     FROM conversations c INDEXED BY conversations_by_activity JOIN chats h ON h.id = c.chat_id
     LEFT JOIN memory_marks k ON k.conversation_id = c.id AND k.agent = ?1
     WHERE c.last_activity_ms >= ?2 AND c.last_seq > coalesce(k.through_seq, 0)
       AND NOT EXISTS (SELECT 1 FROM conversation_merges m WHERE c.id IN (m.source_id, m.target_id))
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.kind = ?3 AND j.key = lower(hex(c.uuid)))
     ORDER BY c.last_activity_ms DESC LIMIT ?4";

const CHANGED_SQL: &str = "SELECT DISTINCT c.uuid, h.account_id
     FROM memory_rereads r JOIN turns t ON t.seq = r.turn_seq JOIN conversations c ON c.id = t.conversation_id
     JOIN chats h ON h.id = c.chat_id
     WHERE r.agent = ?1 AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.kind = ?2 AND j.key = lower(hex(c.uuid)))
     LIMIT ?3";

const UNREAD_SQL: &str = "SELECT seq FROM turns INDEXED BY turns_by_position
     WHERE conversation_id = ?1 AND sent_at_ms >= ?2 AND seq > ?3 ORDER BY seq LIMIT ?4";

const REREAD_SQL: &str =
    "SELECT r.turn_seq AS seq FROM memory_rereads r JOIN turns t ON t.seq = r.turn_seq
     WHERE t.conversation_id = ?1 AND r.agent = ?2 ORDER BY r.turn_seq LIMIT ?3";

impl Reader {
    /// The conversations that an agent has not read to their end and that have settled, or in which much was said
    /// since.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn conversations_to_read(
        &self,
        agent: AgentName,
        quiet_ms: i64,
        now_ms: i64,
    ) -> Result<Vec<DueConversation>, StoreError> {
        self.read(move |connection| due(connection, &agent, quiet_ms, now_ms))
            .await
    }

    /// The turns of a conversation that an agent has not read; `None` = it has read all of them.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn unread_turns(
        &self,
        query: UnreadQuery,
    ) -> Result<Option<UnreadTurns>, StoreError> {
        self.read(move |connection| unread(connection, &query))
            .await
    }

    /// Tokens that an account's readings have cost on the UTC day of that time.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn memory_tokens(&self, account: AccountId, now_ms: i64) -> Result<u64, StoreError> {
        self.read(move |connection| {
            let tokens: Option<i64> = connection
                .prepare_cached(
                    "SELECT memory_tokens FROM usage_days WHERE account_id = ?1 AND day_start_ms = ?2",
                )?
                .query_row(
                    (account, day_start_ms(now_ms)),
                    |row| row.get("memory_tokens"),
                )
                .optional()?;
            Ok(count_from(tokens.unwrap_or(0)))
        })
        .await
    }
}

fn due(
    connection: &Connection,
    agent: &AgentName,
    settled_after_ms: i64,
    now_ms: i64,
) -> Result<Vec<DueConversation>, StoreError> {
    let kind = JobKind::ExtractMemories.name();
    let place = |row: &Row<'_>| {
        Ok(DueConversation {
            conversation: row.get("uuid")?,
            account: row.get("account_id")?,
        })
    };
    let mut statement = connection.prepare_cached(DUE_SQL)?;
    let since_ms = now_ms.saturating_sub(READ_BACK_MS);
    let values = params![agent, since_ms, kind, limit_of(LOOKED_AT_MAX)];
    let mut rows = statement.query(values)?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let quiet_ms = now_ms.saturating_sub(row.get("last_activity_ms")?);
        // A clock that was set back would keep every conversation from settling.
        let has_settled = quiet_ms.saturating_abs() >= settled_after_ms;
        let mark = StoredMark::of(&row)?;
        if has_settled
            || mark
                .unread(connection, row.get("id")?, now_ms, READ_AT_LINES)?
                .len()
                == READ_AT_LINES
        {
            due.push(place(&row)?);
        }
    }
    let mut statement = connection.prepare_cached(CHANGED_SQL)?;
    let changed = statement.query_map(params![agent, kind, limit_of(LOOKED_AT_MAX)], place)?;
    for changed in changed {
        let changed = changed?;
        if !due.contains(&changed) {
            due.push(changed);
        }
    }
    Ok(due)
}

/// How far a conversation was read.
#[derive(Clone, Copy, Default)]
struct StoredMark {
    through_seq: i64,
    through_sent_at_ms: i64,
}

impl StoredMark {
    fn of(row: &Row<'_>) -> crate::engine::sql::Result<Self> {
        Ok(Self {
            through_seq: row.get("through_seq")?,
            through_sent_at_ms: row.get("through_sent_at_ms")?,
        })
    }

    /// The turns behind it, in the order in which they were captured.
    fn unread(
        self,
        connection: &Connection,
        conversation: i64,
        now_ms: i64,
        limit: usize,
    ) -> Result<Vec<i64>, StoreError> {
        let since_ms = now_ms.saturating_sub(READ_BACK_MS);
        let since_ms = since_ms.max(self.through_sent_at_ms.saturating_sub(LATE_MS));
        let mut statement = connection.prepare_cached(UNREAD_SQL)?;
        let values = params![conversation, since_ms, self.through_seq, limit_of(limit)];
        let seqs = statement.query_map(values, |row| row.get("seq"))?;
        Ok(seqs.collect::<crate::engine::sql::Result<_>>()?)
    }
}

/// The seq up to which an agent has read a conversation; 0 = nothing of it.
pub(crate) fn read_through(
    connection: &Connection,
    conversation: i64,
    agent: &AgentName,
) -> Result<i64, StoreError> {
    let mark = mark_of(connection, conversation, agent)?;
    Ok(mark.unwrap_or_default().through_seq)
}

fn mark_of(
    connection: &Connection,
    conversation: i64,
    agent: &AgentName,
) -> Result<Option<StoredMark>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT through_seq, through_sent_at_ms FROM memory_marks WHERE conversation_id = ?1 AND agent = ?2",
        )?
        .query_row(params![conversation, agent], StoredMark::of)
        .optional()?)
}

fn unread(connection: &Connection, query: &UnreadQuery) -> Result<Option<UnreadTurns>, StoreError> {
    let conversation = conversation_row_id(connection, query.conversation)?;
    let mark = mark_of(connection, conversation, &query.agent)?.unwrap_or_default();
    let new = mark.unread(connection, conversation, query.now_ms, NEW_MAX + 1)?;
    let mut statement = connection.prepare_cached(REREAD_SQL)?;
    let values = params![conversation, query.agent, limit_of(REREAD_MAX)];
    let reread = statement.query_map(values, |row| row.get("seq"))?;
    let reread: Vec<i64> = reread.collect::<crate::engine::sql::Result<_>>()?;
    let (mut found, last_seq) = connection
        .prepare_cached(
            "SELECT h.account_id, h.platform_id, h.kind, coalesce(c.last_seq, 0) AS last_seq
             FROM conversations c JOIN chats h ON h.id = c.chat_id WHERE c.id = ?1",
        )?
        .query_row([conversation], |row| {
            let kind: Option<String> = row.get("kind")?;
            let found = UnreadTurns {
                account: row.get("account_id")?,
                chat: row.get("platform_id")?,
                kind: kind.as_deref().and_then(chat_kind_from_name),
                mark: ReadMark {
                    after: Seq(mark.through_seq),
                    through: Seq(mark.through_seq),
                    through_sent_at_ms: mark.through_sent_at_ms,
                },
                turns: Vec::new(),
                silent: Vec::new(),
                has_more: false,
            };
            Ok((found, row.get::<_, i64>("last_seq")?))
        })?;
    if reread.is_empty() && last_seq <= mark.through_seq {
        return Ok(None);
    }
    let (mut chars, mut taken) = (0, 0);
    let reread = reread.into_iter().map(|seq| (false, seq));
    for (is_new, seq) in reread.chain(new.into_iter().map(|seq| (true, seq))) {
        if taken == NEW_MAX || chars >= query.max_chars {
            found.has_more = true;
            break;
        }
        let (turn, is_own) = turn_of(connection, found.account, seq)?;
        if is_new {
            taken += 1;
            found.mark.through = Seq(seq);
            let newest_ms = found.mark.through_sent_at_ms.max(turn.sent_at_ms);
            found.mark.through_sent_at_ms = newest_ms;
        }
        if is_own {
            chars += turn.shown.chars().count();
            found.turns.push(turn);
        } else {
            found.silent.push(turn.id);
        }
    }
    if !found.has_more {
        // What is too old to be learnt from is passed over.
        found.mark.through = Seq(last_seq.max(mark.through_seq));
    }
    found.turns.sort_by_key(|turn| turn.sent_at_ms);
    Ok(Some(found))
}

/// A turn as it may be shown, and whether it has a person's own words.
fn turn_of(
    connection: &Connection,
    account: AccountId,
    seq: i64,
) -> Result<(UnreadTurn, bool), StoreError> {
    let (turn, is_person) = connection
        .prepare_cached(
            "SELECT t.uuid, t.participant_id, p.platform_id, t.content, t.sent_at_ms,
                    coalesce(p.display_name, p.username, p.platform_id) AS name,
                    p.kind = 'user' AND NOT p.is_bot AND t.visibility = 'room' AND t.kind = 'message' AS is_person
             FROM turns t JOIN participants p ON p.id = t.participant_id WHERE t.seq = ?1",
        )?
        .query_row([seq], |row| {
            let turn = UnreadTurn {
                id: row.get("uuid")?,
                said_by: row.get("participant_id")?,
                platform_id: row.get("platform_id")?,
                name: row.get("name")?,
                content: row.get("content")?,
                shown: String::new(),
                sent_at_ms: row.get("sent_at_ms")?,
            };
            Ok((turn, row.get::<_, bool>("is_person")?))
        })?;
    if !is_person {
        return Ok((turn, false));
    }
    let own: String = own_words(&turn.content)
        .chars()
        .take(LINE_MAX_CHARS)
        .collect();
    let mut names = std::collections::HashMap::new();
    for id in mentioned_ids(&own) {
        let (sql, key) = match id.strip_prefix('@') {
            Some(username) => (NAME_BY_USERNAME_SQL, username),
            None => (NAME_BY_ID_SQL, id.as_str()),
        };
        let name: Option<Option<String>> = connection
            .prepare_cached(sql)?
            .query_row(params![account, key], |row| row.get("name"))
            .optional()?;
        names.insert(id.clone(), name.flatten().unwrap_or_default());
    }
    let shown = replace_mentions(&own, |id| names.get(id).cloned().unwrap_or_default());
    let shown = shown.trim().to_owned();
    let is_own = !shown.is_empty();
    Ok((UnreadTurn { shown, ..turn }, is_own))
}

/// Notes that a conversation was read up to a mark.
pub(crate) fn put_mark_txn(
    connection: &Connection,
    conversation: i64,
    agent: &AgentName,
    mark: ReadMark,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO memory_marks (conversation_id, agent, through_seq, through_sent_at_ms, read_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET through_seq = excluded.through_seq,
                 through_sent_at_ms = excluded.through_sent_at_ms, read_at_ms = excluded.read_at_ms",
        )?
        .execute(params![
            conversation,
            agent,
            mark.through,
            mark.through_sent_at_ms,
            now_ms
        ])?;
    Ok(())
}

/// Has a changed turn read again by the agents that have read it.
pub(crate) fn read_again_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO memory_rereads (turn_seq, agent)
             SELECT t.seq, k.agent FROM turns t JOIN memory_marks k ON k.conversation_id = t.conversation_id
             WHERE t.seq = ?1 AND k.through_seq >= t.seq",
        )?
        .execute([seq])?;
    Ok(())
}

/// Forgets that a turn is to be read again: it is gone, or was read.
pub(crate) fn forget_rereads_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM memory_rereads WHERE turn_seq = ?1")?
        .execute([seq])?;
    Ok(())
}

/// Joins the marks when turns moved to another conversation, under new seqs. An agent that has read either one goes
/// on behind what moved: turns that were unread by then stay unread, because reading a whole past again would cost
/// more than they are worth.
pub(crate) fn merge_marks_txn(
    connection: &Connection,
    source: i64,
    target: i64,
    newest_seq: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO memory_marks (conversation_id, agent, through_seq, through_sent_at_ms, read_at_ms)
             SELECT ?2, agent, ?3, max(through_sent_at_ms), max(read_at_ms) FROM memory_marks
             WHERE conversation_id IN (?1, ?2) GROUP BY agent
             ON CONFLICT DO UPDATE SET through_seq = max(through_seq, excluded.through_seq),
                 through_sent_at_ms = max(through_sent_at_ms, excluded.through_sent_at_ms)",
        )?
        .execute([source, target, newest_seq])?;
    Ok(())
}

/// Deletes the marks of a conversation.
pub(crate) fn delete_marks_txn(
    connection: &Connection,
    conversation: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM memory_marks WHERE conversation_id = ?1")?
        .execute([conversation])?;
    Ok(())
}
