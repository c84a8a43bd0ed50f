//! Questions to people as rows: how they are found and read back.

use crate::engine::sql::{Connection, OptionalExtension, Row, params};

use crate::contract::{Askable, NewMessage};
use crate::registry::{ErasureRule, Fate, OF_RUN, Restore, StoreTable, account, text};
use crate::rows::approvals::{CardRow, requesters};
use crate::rows::columns::{conversation_row_id, is_person, limit_of, missing};
use crate::rows::places::ChatRow;
use crate::{Reader, StoreError};
use vocative_contract::envelope::SenderKind;
use vocative_core::approving::{ApprovalDeadline, Requester};
use vocative_core::eliciting::AskedForm;
use vocative_core::ids::{
    AccountId, ConversationId, ParticipantId, QuestionId, ToolCallId, TurnId,
};
use vocative_core::questioning::{Nearness, ReplyFacts, StoredAnswer, StoredQuestion};
use vocative_core::turn::ParticipantKind;
use vocative_core::words::Language;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "questions",
    text(
        &["question", "options", "outcomes", "asked_form"],
        &[],
        &["state", "card_message"],
    ),
    Fate {
        person: ErasureRule::Emptied,
        chat: ErasureRule::Emptied,
        message: ErasureRule::Emptied,
        restore: Restore::Held,
        ..OF_RUN
    },
)];

/// The most people of an account whose names are compared.
const PEOPLE_MAX: usize = 5_000;
/// The most open questions of a chat that a message is compared with: more are never open there.
const COMPARED_MAX: usize = 50;

macro_rules! select_questions {
    ($tail:literal) => {
        concat!(
            "SELECT q.id, q.uuid, q.run_id, r.uuid AS run, c.account_id, i.platform_id AS chat, r.agent, q.is_for_experts, q.question, q.options,
                    q.state, q.asked_at_ms, q.expires_at_ms, q.ended_at_ms, q.answer_turn, q.asked_form,
                    a.platform_id AS asked_platform_id, a.display_name AS asked_display_name, a.username AS asked_username,
                    coalesce(b.display_name, b.username, b.platform_id) AS answered_by,
                    iif(t.visibility = 'room', t.content, NULL) AS answer
             FROM questions q JOIN runs r ON r.id = q.run_id
             JOIN chats c ON c.id = r.chat_id JOIN chat_ids i ON i.identity_id = (
                 SELECT max(n.identity_id) FROM chat_ids n WHERE n.chat_id = c.id)
             LEFT JOIN participants a ON a.id = q.asked_id
             LEFT JOIN participants b ON b.id = q.answered_by
             LEFT JOIN turns t ON t.uuid = q.answer_turn ",
            $tail
        )
    };
}

impl Reader {
    /// Questions, newest first; only open ones, or all, and only those that were asked before one.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn questions(
        &self,
        is_open: bool,
        before: Option<QuestionId>,
        limit: usize,
    ) -> Result<Vec<StoredQuestion>, StoreError> {
        self.read(move |connection| {
            let sql = match is_open {
                true => select_questions!(
                    "WHERE q.state = 'open' AND (?2 IS NULL OR q.id < (SELECT id FROM questions WHERE uuid = ?2))
                     ORDER BY q.id DESC LIMIT ?1"
                ),
                false => select_questions!(
                    "WHERE ?2 IS NULL OR q.id < (SELECT id FROM questions WHERE uuid = ?2)
                     ORDER BY q.id DESC LIMIT ?1"
                ),
            };
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map((limit_of(limit), before), question_row)?;
            let rows: Vec<QuestionRow> = rows.collect::<crate::engine::sql::Result<_>>()?;
            let rows = rows.into_iter();
            rows.map(|row| Ok(row.with_asked(connection)?.question))
                .collect()
        })
        .await
    }

    /// A question.
    ///
    /// # Errors
    /// `NotFound` if there is no such question.
    pub async fn question(&self, id: QuestionId) -> Result<StoredQuestion, StoreError> {
        self.read(move |connection| {
            let found = question_of(connection, id)?;
            Ok(found.ok_or_else(|| not_found(id))?.question)
        })
        .await
    }

    /// The question that a call asked, if it asked one.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn question_of_call(
        &self,
        call: ToolCallId,
    ) -> Result<Option<StoredQuestion>, StoreError> {
        self.read(move |connection| {
            let found = connection
                .prepare_cached(select_questions!(
                    "WHERE q.call_id = (SELECT id FROM tool_calls WHERE uuid = ?1) ORDER BY q.id DESC LIMIT 1"
                ))?
                .query_row([call], question_row)
                .optional()?;
            let found = found.map(|row| row.with_asked(connection)).transpose()?;
            Ok(found.map(|row| row.question))
        })
        .await
    }

    /// What a call's server of tools asked people, in the order in which it was asked. What can't be read is left out:
    /// its call is made anew, and the server asks once more.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn forms_of_call(
        &self,
        call: ToolCallId,
    ) -> Result<Vec<(StoredQuestion, AskedForm)>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(select_questions!(
                "WHERE q.call_id = (SELECT id FROM tool_calls WHERE uuid = ?1) AND q.asked_form IS NOT NULL ORDER BY q.id"
            ))?;
            let rows = statement.query_map([call], |row| {
                let asked: String = row.get("asked_form")?;
                Ok((question_row(row)?, serde_json::from_str(&asked).ok()))
            })?;
            let rows: Vec<(QuestionRow, Option<AskedForm>)> =
                rows.collect::<crate::engine::sql::Result<_>>()?;
            let rows = rows.into_iter().filter_map(|(row, asked)| Some((row, asked?)));
            rows.map(|(row, asked)| Ok((row.with_asked(connection)?.question, asked)))
                .collect()
        })
        .await
    }

    /// The people who have said something in a conversation, or in the chat that its thread belongs to, and are called
    /// so: by their shown name, username or id, whatever the case; else by a part of the shown name.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn people_called(
        &self,
        conversation: ConversationId,
        name: String,
    ) -> Result<Vec<Askable>, StoreError> {
        self.read(move |connection| {
            let row = conversation_row_id(connection, conversation)?;
            people_called(connection, row, &name)
        })
        .await
    }
}

fn people_called(
    connection: &Connection,
    conversation: i64,
    name: &str,
) -> Result<Vec<Askable>, StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT p.id, p.platform_id, p.display_name, p.username
         FROM conversations v JOIN chats c ON c.id = v.chat_id
         JOIN participants p ON p.account_id = c.account_id
         WHERE v.id = ?1 AND p.kind = 'user' AND ",
        is_person!("p"),
        " LIMIT ?2"
    ))?;
    let people = statement.query_map((conversation, limit_of(PEOPLE_MAX)), |row| {
        let person = Requester {
            id: row.get("platform_id")?,
            display_name: row.get("display_name")?,
            username: row.get("username")?,
        };
        Ok((row.get("id")?, person))
    })?;
    let wanted = name.trim().trim_start_matches('@').to_lowercase();
    let (mut exact, mut partly) = (Vec::new(), Vec::new());
    for found in people {
        let (id, person): (ParticipantId, Requester) = found?;
        let shown = person.display_name.as_deref().unwrap_or_default();
        let shown = shown.to_lowercase();
        let is_exact = person.is_called(name);
        let is_part = shown.split_whitespace().any(|word| word == wanted);
        if !is_exact && !is_part {
            continue;
        }
        let is_here: bool = connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_by_participant
                  WHERE participant_id = ?1 AND visibility = 'room' AND conversation_id IN (
                      SELECT ?2 UNION SELECT m.id FROM conversations v JOIN conversations m ON m.chat_id = v.chat_id
                      WHERE v.id = ?2 AND m.thread = '' AND NOT v.is_topic)) AS is_here",
            )?
            .query_row((id, conversation), |row| row.get("is_here"))?;
        if !is_here {
            continue;
        }
        let name = person.name().to_owned();
        let list = if is_exact { &mut exact } else { &mut partly };
        list.push(Askable { id, name });
    }
    Ok(if exact.is_empty() { partly } else { exact })
}

pub(crate) fn not_found(id: QuestionId) -> StoreError {
    missing(crate::engine::sql::Error::QueryReturnedNoRows, || {
        format!("question {id}")
    })
}

/// A question with where its row is.
pub(crate) struct QuestionRow {
    pub(crate) row: i64,
    pub(crate) run_row: i64,
    pub(crate) question: StoredQuestion,
}

impl QuestionRow {
    /// Adds the people whom the question asks: if it names none, those who asked for its run.
    fn with_asked(mut self, connection: &Connection) -> Result<Self, StoreError> {
        if self.question.asked.is_empty() && !self.question.is_for_experts {
            self.question.asked = requesters(connection, self.run_row)?;
        }
        Ok(self)
    }
}

/// A question by its identity.
pub(crate) fn question_of(
    connection: &Connection,
    id: QuestionId,
) -> Result<Option<QuestionRow>, StoreError> {
    let found = connection
        .prepare_cached(select_questions!("WHERE q.uuid = ?1"))?
        .query_row([id], question_row)
        .optional()?;
    found.map(|row| row.with_asked(connection)).transpose()
}

fn question_row(row: &Row<'_>) -> crate::engine::sql::Result<QuestionRow> {
    let asked: Option<String> = row.get("asked_platform_id")?;
    let asked = match asked {
        Some(id) => vec![Requester {
            id,
            display_name: row.get("asked_display_name")?,
            username: row.get("asked_username")?,
        }],
        None => Vec::new(),
    };
    let options: String = row.get("options")?;
    let turn: Option<TurnId> = row.get("answer_turn")?;
    let by: Option<String> = row.get("answered_by")?;
    let text: Option<String> = row.get("answer")?;
    Ok(QuestionRow {
        row: row.get("id")?,
        run_row: row.get("run_id")?,
        question: StoredQuestion {
            id: row.get("uuid")?,
            run: row.get("run")?,
            account: row.get::<_, AccountId>("account_id")?,
            chat: row.get("chat")?,
            agent: row.get("agent")?,
            text: row.get("question")?,
            // Options that can't be read are not offered; a reply answers all the same.
            options: serde_json::from_str(&options).unwrap_or_default(),
            asked,
            is_for_experts: row.get("is_for_experts")?,
            state: row.get("state")?,
            expiry: ApprovalDeadline {
                asked_at_ms: row.get("asked_at_ms")?,
                expires_at_ms: Some(row.get("expires_at_ms")?),
            },
            ended_at_ms: row.get("ended_at_ms")?,
            answer: turn.map(|turn| StoredAnswer {
                by: by.unwrap_or_default(),
                turn,
                text,
            }),
        },
    })
}

/// The entry of the outbox that shows a question, while it is kept.
pub(crate) fn post_of_question(
    connection: &Connection,
    question_row: i64,
) -> Result<Option<CardRow>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT o.id, o.account_id, o.chat_id, o.message_id,
                    o.state = 'pending' AND NOT o.send_started AS is_unsent
             FROM questions q JOIN outbox o ON o.id = q.card_post WHERE q.id = ?1",
        )?
        .query_row([question_row], CardRow::read)
        .optional()?)
}

/// The question that a message may be the answer to; `turn_seq` is the turn it belongs to, where it is known.
pub(crate) fn question_replied_to(
    connection: &Connection,
    message: &NewMessage,
    chat: &ChatRow,
    turn_seq: Option<i64>,
) -> Result<Option<ReplyFacts>, StoreError> {
    if let Some(seq) = turn_seq {
        let answered: Option<QuestionId> = connection
            .prepare_cached(
                "SELECT uuid FROM questions
                 WHERE answer_turn = (SELECT uuid FROM turns WHERE seq = ?1)",
            )?
            .query_row([seq], |row| row.get("uuid"))
            .optional()?;
        if let Some(id) = answered {
            return reply_facts(connection, id, Nearness::IsAnswer, message);
        }
    }
    if let Some((id, nearness)) = open_near(connection, message, chat)? {
        return reply_facts(connection, id, nearness, message);
    }
    let at = [message.reply_to.as_deref(), message.place.thread.as_deref()];
    for post in at.into_iter().flatten() {
        let over: Option<QuestionId> = connection
            .prepare_cached(
                "SELECT q.uuid FROM questions q JOIN outbox o ON o.id = q.card_post
                 WHERE q.card_message = ?1 AND o.chat_id = ?2",
            )?
            .query_row((post, chat.id), |row| row.get("uuid"))
            .optional()?;
        if let Some(id) = over {
            return reply_facts(connection, id, Nearness::AtPost, message);
        }
    }
    Ok(None)
}

/// The open question that a message is nearest to: the one whose post it replies to, else the oldest in its thread
/// that asks its sender. A reply to an unknown message may be for a post whose message id is not known yet.
fn open_near(
    connection: &Connection,
    message: &NewMessage,
    chat: &ChatRow,
) -> Result<Option<(QuestionId, Nearness)>, StoreError> {
    let thread = message.place.thread.as_deref();
    if message.reply_to.is_none() && thread.is_none() {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(
        "SELECT q.uuid,
                coalesce(o.message_id IN (?2, ?3), 0)
                    OR (o.message_id IS NULL AND o.send_started AND ?2 IS NOT NULL
                        AND o.state IN ('leased', 'unknown')
                        AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.account_id = o.account_id
                                          AND m.chat_id = ?5 AND m.platform_id = ?2)) AS is_at_post,
                coalesce(json_extract(o.target, '$.thread') = ?3, 0) AS is_in_thread
         FROM questions q INDEXED BY questions_open JOIN outbox o ON o.id = q.card_post
         WHERE q.state = 'open' AND o.chat_id = ?1 ORDER BY q.id LIMIT ?4",
    )?;
    let near = statement.query_map(
        params![
            chat.id,
            message.reply_to,
            thread,
            limit_of(COMPARED_MAX),
            chat.identity
        ],
        |row| {
            let id: QuestionId = row.get("uuid")?;
            let (at_post, in_thread): (bool, bool) =
                (row.get("is_at_post")?, row.get("is_in_thread")?);
            Ok((id, at_post, in_thread))
        },
    )?;
    let near: Vec<(QuestionId, bool, bool)> = near.collect::<crate::engine::sql::Result<_>>()?;
    if let Some((id, ..)) = near.iter().find(|(_, is_at_post, _)| *is_at_post) {
        return Ok(Some((*id, Nearness::AtPost)));
    }
    for (id, ..) in near.iter().filter(|(_, _, is_in_thread)| *is_in_thread) {
        let facts = reply_facts(connection, *id, Nearness::InThread, message)?;
        if facts.is_some_and(|facts| facts.is_asked) {
            return Ok(Some((*id, Nearness::InThread)));
        }
    }
    Ok(None)
}

fn reply_facts(
    connection: &Connection,
    id: QuestionId,
    nearness: Nearness,
    message: &NewMessage,
) -> Result<Option<ReplyFacts>, StoreError> {
    let Some(found) = question_of(connection, id)? else {
        return Ok(None);
    };
    let question = found.question;
    let is_user = message.sender_kind == ParticipantKind::User;
    let is_person = message.sender.kind == SenderKind::Person;
    let mut named = question.asked.iter();
    Ok(Some(ReplyFacts {
        question: id,
        state: question.state,
        expiry: question.expiry,
        nearness,
        is_asked: question.account == message.account
            && match question.is_for_experts {
                true => is_person,
                false => is_user && named.any(|it| it.id == message.sender.id),
            },
        is_for_experts: question.is_for_experts,
        // The language of these names does not matter, as they are never shown: nobody is told whom a question to the
        // experts asks, because what others say behind its answer is talk.
        asked: question.asked_names(Language::English),
    }))
}
