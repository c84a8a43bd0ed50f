//! Conversations' own titles, and who gave them.
//!
//! `own_title_from` stays when a title is removed: where it is set, no model makes a title there any more.

use crate::capability::MayWork;
use crate::contract::{DueConversation, MadeTitle, ReadTurn, TitleSource};
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::rows::columns::{conversation_row_id, limit_of};
use crate::rows::names::NameLookup;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AgentName, ConversationId, ParticipantId, Seq};
use vocative_core::job::JobKind;
use vocative_core::title::{TITLED_AFTER_ANSWERS, TitledText};

/// A conversation that has been quiet for longer than this, in milliseconds, gets its title after its next answer.
const TITLED_WITHIN_MS: i64 = 86_400_000;
/// The most conversations that are queued at once.
const DUE_MAX: usize = 50;
/// The most texts that a model reads for a title.
const READ_MAX: usize = 8;

/// Whether the platform gives a conversation a name. A direct chat is called after who is there, which says nothing
/// of what it is about, and a thread shares its chat's title with all others.
macro_rules! is_named {
    () => {
        "((nullif(h.title, '') IS NOT NULL AND h.kind IS NOT 'direct' AND (c.thread = '' OR c.is_topic))
          OR (nullif(c.title, '') IS NOT NULL AND c.is_topic))"
    };
}

/// How many of an agent's answers stand in a conversation, up to a number.
macro_rules! answers {
    ($agent:literal, $up_to:literal) => {
        concat!(
            "(SELECT count(*) FROM (
                 SELECT 1 FROM runs r JOIN turns a ON a.run_id = r.id
                 WHERE r.conversation_id = c.id AND r.agent = ",
            $agent,
            " AND r.state = 'done'
                   AND a.visibility = 'room' AND a.kind = 'message' AND a.content <> '' LIMIT ",
            $up_to,
            "))"
        )
    };
}

const DUE_SQL: &str = concat!(
    "SELECT c.uuid, h.account_id
     FROM conversations c INDEXED BY conversations_by_activity JOIN chats h ON h.id = c.chat_id
     WHERE c.last_activity_ms >= ?2 AND c.own_title IS NULL AND c.own_title_from IS NULL
       AND NOT EXISTS (SELECT 1 FROM conversation_merges m WHERE c.id IN (m.source_id, m.target_id))
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.kind = ?3 AND j.key = lower(hex(c.uuid)))
       AND NOT ",
    is_named!(),
    " AND ",
    answers!("?1", "?5"),
    " = ?5
     ORDER BY c.last_activity_ms DESC LIMIT ?4"
);

/// The account of a conversation that is to have a title of a model's.
const WANTING_SQL: &str = concat!(
    "SELECT h.account_id FROM conversations c JOIN chats h ON h.id = c.chat_id
     WHERE c.id = ?1 AND c.own_title IS NULL AND c.own_title_from IS NULL AND NOT ",
    is_named!(),
    " AND ",
    answers!("?2", "?3"),
    " = ?3"
);

/// What was asked of an agent in a conversation and answered there. A thread's first question is a turn of its room.
const READ_SQL: &str = "SELECT t.seq, t.revision, t.content, p.kind <> 'user' AS is_agents
     FROM turns t JOIN participants p ON p.id = t.participant_id
     WHERE t.visibility = 'room' AND t.kind = 'message' AND t.content <> '' AND t.seq IN (
         SELECT g.turn_seq FROM runs r JOIN run_triggers g ON g.run_id = r.id
         WHERE r.conversation_id = ?1 AND r.agent = ?2 AND r.state = 'done'
         UNION
         SELECT a.seq FROM runs r JOIN turns a ON a.run_id = r.id
         WHERE r.conversation_id = ?1 AND r.agent = ?2 AND r.state = 'done')
     ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?3";

impl Reader {
    /// The conversations for whose title a model may be asked: they have none, and an agent answered in them.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn conversations_to_title(
        &self,
        agent: AgentName,
        now_ms: i64,
    ) -> Result<Vec<DueConversation>, StoreError> {
        self.read(move |connection| due(connection, &agent, now_ms))
            .await
    }

    /// What a model reads for a conversation's title; `None` = it is not to have one of a model's.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn title_source(
        &self,
        id: ConversationId,
        agent: AgentName,
    ) -> Result<Option<TitleSource>, StoreError> {
        self.read(move |connection| source(connection, id, &agent))
            .await
    }
}

impl<C: MayWork> Store<C> {
    /// Writes the title that a model made, or that there is none to be made, unless a title was given meanwhile.
    /// Returns whether that is settled: `false` if a turn that it read is gone or was changed.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn settle_title(&self, made: MadeTitle) -> Result<bool, StoreError> {
        self.write(move |connection| settle_title_txn(connection, &made))
            .await
    }
}

fn due(
    connection: &Connection,
    agent: &AgentName,
    now_ms: i64,
) -> Result<Vec<DueConversation>, StoreError> {
    let mut statement = connection.prepare_cached(DUE_SQL)?;
    let values = params![
        agent,
        now_ms.saturating_sub(TITLED_WITHIN_MS),
        JobKind::TitleConversation.name(),
        limit_of(DUE_MAX),
        limit_of(TITLED_AFTER_ANSWERS)
    ];
    let due = statement.query_map(values, |row| {
        Ok(DueConversation {
            conversation: row.get("uuid")?,
            account: row.get("account_id")?,
        })
    })?;
    Ok(due.collect::<crate::engine::sql::Result<_>>()?)
}

fn source(
    connection: &Connection,
    id: ConversationId,
    agent: &AgentName,
) -> Result<Option<TitleSource>, StoreError> {
    let row = conversation_row_id(connection, id)?;
    let wanting = params![row, agent, limit_of(TITLED_AFTER_ANSWERS)];
    let account = connection
        .prepare_cached(WANTING_SQL)?
        .query_row(wanting, |row| row.get("account_id"))
        .optional()?;
    let Some(account) = account else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(READ_SQL)?;
    let read = |row: &Row<'_>| {
        let turn = ReadTurn {
            seq: Seq(row.get("seq")?),
            revision: row.get("revision")?,
        };
        Ok((turn, row.get("is_agents")?, row.get("content")?))
    };
    let rows = statement.query_map(params![row, agent, limit_of(READ_MAX)], read)?;
    let rows: Vec<(ReadTurn, bool, String)> = rows.collect::<crate::engine::sql::Result<_>>()?;
    let mut names = NameLookup::new(connection, account);
    let mut found = TitleSource {
        account,
        texts: Vec::new(),
        read: Vec::new(),
    };
    for (turn, is_agents, content) in rows {
        let text = names.named(&content)?;
        found.texts.push(TitledText { is_agents, text });
        found.read.push(turn);
    }
    Ok(Some(found))
}

fn settle_title_txn(connection: &Connection, made: &MadeTitle) -> Result<bool, StoreError> {
    let row = conversation_row_id(connection, made.conversation)?;
    for turn in &made.read {
        if made.title.is_some() && !is_as_read(connection, *turn)? {
            return Ok(false);
        }
    }
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = ?2, own_title_from = 'model'
             WHERE id = ?1 AND own_title IS NULL AND own_title_from IS NULL",
        )?
        .execute(params![row, made.title])?;
    Ok(true)
}

fn is_as_read(connection: &Connection, turn: ReadTurn) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM turns WHERE seq = ?1 AND revision = ?2 AND visibility = 'room') AS is_so",
        )?
        .query_row(params![turn.seq, turn.revision], |row| row.get("is_so"))?)
}

/// A conversation's own title, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnTitle {
    /// The title.
    pub(crate) text: String,
    /// Whether an operator gave it.
    pub(crate) is_operators: bool,
}

/// The own title of a conversation.
pub(crate) fn own_title(connection: &Connection, row: i64) -> Result<Option<OwnTitle>, StoreError> {
    let (text, from): (Option<String>, Option<String>) = connection
        .prepare_cached(
            "SELECT nullif(own_title, '') AS own_title, own_title_from FROM conversations WHERE id = ?1",
        )?
        .query_row([row], |row| Ok((row.get("own_title")?, row.get("own_title_from")?)))?;
    Ok(text.map(|text| OwnTitle {
        text,
        is_operators: from.is_none(),
    }))
}

/// Gives a conversation a title of its own, as a person in it says.
pub(crate) fn give_title_txn(
    connection: &Connection,
    row: i64,
    title: &str,
    person: ParticipantId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = ?2, own_title_from = 'person', own_title_participant_id = ?3
             WHERE id = ?1",
        )?
        .execute(params![row, title, person])?;
    Ok(())
}

/// Removes a conversation's own title, as a person in it says.
pub(crate) fn take_title_txn(connection: &Connection, row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = NULL, own_title_from = 'person', own_title_participant_id = NULL
             WHERE id = ?1",
        )?
        .execute([row])?;
    Ok(())
}

/// Takes away the titles that these people gave; `people` is a JSON list of the rows of participants.
pub(crate) fn forget_titles_of_people_txn(
    connection: &Connection,
    people: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = NULL, own_title_participant_id = NULL
             WHERE own_title_participant_id IN (SELECT value FROM json_each(?1))",
        )?
        .execute([people])?;
    Ok(())
}

/// Takes away the titles that a model may have made of a turn: those of the conversation that the turn is in, that
/// it is the root of, or whose runs it asked.
pub(crate) fn forget_titles_of_turn_txn(
    connection: &Connection,
    seq: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = NULL
             WHERE id IN (SELECT conversation_id FROM turns WHERE seq = ?1
                          UNION SELECT id FROM conversations WHERE root_turn_seq = ?1
                          UNION SELECT r.conversation_id FROM run_triggers g JOIN runs r ON r.id = g.run_id
                                WHERE g.turn_seq = ?1)
               AND own_title_from = 'model' AND own_title IS NOT NULL",
        )?
        .execute([seq])?;
    Ok(())
}
