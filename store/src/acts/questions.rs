//! Questions to people: one transaction asks a question and makes its call wait. A question is answered once, or ends
//! by time or with its run. `core/questioning` decides what is an answer.

use crate::acts::reply_room::room_of;
use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::leases::{LeasedRun, leased_run};
use crate::rows::turn_rows::TurnRow;
use vocative_contract::crash;
use vocative_contract::envelope::{ChatKind, Place};
use vocative_contract::outbound::{Operation, Part, Target};

use crate::acts::deciding::{AnsweredPress, known_name, replace_card_txn, wake_txn};
use crate::contract::{
    NewPress, NewQuestion, OperatorAnswer, OptionFacts, Pressed, PressedOption, QuestionAsked,
};
use crate::rows::outbox_rows::{NewPosts, append_post_txn, json};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::{
    ConversationRow, ConversationSeat, ensure_chat_txn, ensure_conversation_txn, find_chat,
};
use crate::rows::questions::{QuestionRow, not_found, post_of_question, question_of};
use crate::rows::turns::{NewTurn, insert_turn_txn};
use crate::{Store, StoreError};
use vocative_core::approving::ApprovalDeadline;
use vocative_core::ids::{AccountId, ChatId, ParticipantId, QuestionId, TurnId};
use vocative_core::questioning::{
    AnswerVerdict, QUESTIONS_MAX_RUN, QUESTIONS_OPEN_MAX_CHAT, QUESTIONS_OPEN_MAX_PERSON,
    QuestionState,
};
use vocative_core::tool_call::CallState;
use vocative_core::turn::{ParticipantKind, TurnKind};

/// The most questions that expire in one transaction.
const EXPIRED_AT_ONCE: i64 = 100;

/// The outcomes that can replace a question's post, in the order in which the row stores them.
#[derive(Clone, Copy)]
enum QuestionEnd {
    Expired,
    Cancelled,
    Replied,
}

impl<C: MayReply> Store<C> {
    /// Asks somebody a question: its call waits, and its post is committed with that.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn ask_question(&self, new: NewQuestion) -> Result<QuestionAsked, StoreError> {
        // Questions and approvals both ask a person, so both use the same crash points.
        crash::point("approval.before-commit");
        let asked = self
            .write(move |connection| ask_txn(connection, &new))
            .await?;
        crash::point("approval.after-commit");
        Ok(asked)
    }
}

impl Store {
    /// Cancels a question; its run goes on without an answer. Returns whether it was open.
    ///
    /// # Errors
    /// `NotFound` if there is no such question.
    pub async fn cancel_question(&self, id: QuestionId, now_ms: i64) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let found = question_of(connection, id)?.ok_or_else(|| not_found(id))?;
            let is_open = found.question.state == QuestionState::Open;
            if is_open {
                end_txn(connection, found.row, QuestionState::Cancelled, now_ms)?;
            }
            Ok(is_open)
        })
        .await
    }
}

impl Store {
    /// Takes an operator's answer in place of the people who were asked. Returns whether the question was open.
    ///
    /// # Errors
    /// `NotFound` if there is no such question.
    pub async fn answer_question(&self, answer: OperatorAnswer) -> Result<bool, StoreError> {
        self.write(move |connection| answer_by_operator_txn(connection, &answer))
            .await
    }
}

fn ask_txn(connection: &Connection, new: &NewQuestion) -> Result<QuestionAsked, StoreError> {
    let Some(leased) = leased_run(connection, new.run, new.token)? else {
        return Ok(QuestionAsked::Stale);
    };
    let call: Option<i64> = connection
        .prepare_cached(
            "SELECT id FROM tool_calls
             WHERE uuid = ?1 AND run_id = ?2 AND step IS NOT NULL AND state IN ('ready', 'waiting', 'running')",
        )?
        .query_row((new.call, leased.row), |row| row.get("id"))
        .optional()?;
    let Some(call) = call else {
        return Ok(QuestionAsked::SourceGone);
    };
    let room = room_of(connection, &leased)?;
    let chat = ensure_chat_txn(connection, room.account, &new.place.chat)?.id;
    if let Some(refused) = limit_met(connection, new, (leased.row, call), chat)? {
        return Ok(refused);
    }
    let posts = NewPosts {
        account: room.account,
        chat,
        turn: None,
        run_row: Some(leased.row),
        operation: &Operation::Post,
        target: &new.place,
        parts: std::slice::from_ref(&new.card),
        now_ms: new.now_ms,
    };
    let post = append_post_txn(connection, &posts, 0, &new.card)?;
    connection
        .prepare_cached(
            "INSERT INTO questions (uuid, call_id, run_id, participant_id, asked_id, is_for_experts, question, options, card_post,
                    outcomes, state, asked_at_ms, expires_at_ms, asked_form)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT id FROM outbox WHERE uuid = ?9), ?10, 'open', ?11, ?12, ?13)",
        )?
        .execute(params![
            new.id,
            call,
            leased.row,
            new.person,
            new.asked,
            new.is_for_experts,
            new.text,
            json(&new.options),
            post,
            json(&[&new.expired, &new.cancelled, &new.replied]),
            new.now_ms,
            new.expires_at_ms,
            new.form.as_ref().map(json),
        ])?;
    connection
        .prepare_cached("UPDATE tool_calls SET state = ?2 WHERE id = ?1")?
        .execute((call, CallState::Waiting))?;
    Ok(QuestionAsked::Waits)
}

/// Why a question is not asked, or that it was asked before.
fn limit_met(
    connection: &Connection,
    new: &NewQuestion,
    (run_row, call_row): (i64, i64),
    chat: ChatId,
) -> Result<Option<QuestionAsked>, StoreError> {
    // A model's call asks once; a server may ask again once it has its answer.
    let asks_once = new.form.is_none();
    let (was_asked, of_run): (bool, u32) = connection
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE call_id = ?2 AND (?3 OR state = 'open')) > 0 AS was_asked, count(*) AS of_run
             FROM questions WHERE run_id = ?1",
        )?
        .query_row((run_row, call_row, asks_once), |row| {
            Ok((row.get("was_asked")?, row.get("of_run")?))
        })?;
    let (of_person, of_chat): (u32, u32) = connection
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE q.participant_id = ?1) AS of_person,
                    count(*) FILTER (WHERE o.chat_id = ?2) AS of_chat
             FROM questions q INDEXED BY questions_open LEFT JOIN outbox o ON o.id = q.card_post
             WHERE q.state = 'open'",
        )?
        .query_row((new.person, chat), |row| {
            Ok((row.get("of_person")?, row.get("of_chat")?))
        })?;
    Ok(if was_asked {
        Some(QuestionAsked::Waits)
    } else if of_run >= QUESTIONS_MAX_RUN {
        Some(QuestionAsked::RunLimit)
    } else if of_person >= QUESTIONS_OPEN_MAX_PERSON || of_chat >= QUESTIONS_OPEN_MAX_CHAT {
        Some(QuestionAsked::TooManyOpen)
    } else {
        None
    })
}

/// A press of a question's button.
pub(crate) fn press_question_txn(
    connection: &Connection,
    press: &NewPress,
    pressed: PressedOption,
    to_presser: &AnsweredPress,
) -> Result<Pressed, StoreError> {
    let (account, now_ms) = (press.event.account, press.event.received_at_ms);
    let found = question_of(connection, pressed.button.question)?;
    let found = found.filter(|found| found.question.account == account);
    let option = found.as_ref().and_then(|found| {
        let options = &found.question.options;
        options.get(pressed.button.option).cloned()
    });
    let (Some(found), Some(option)) = (found, option) else {
        to_presser.answer_txn(connection, &Part::plain(""))?;
        return Ok(Pressed::default());
    };
    let facts = facts_of(connection, &found, press)?;
    let is_known = facts.presser_name.is_some();
    let answer = (pressed.judge)(facts);
    let counts = press.is_kept && answer.verdict == AnswerVerdict::Counts;
    if counts {
        // A press may name its person otherwise than messages do.
        let heard = HeardSender {
            kind: ParticipantKind::User,
            platform_id: &press.sender.id,
            display_name: press.sender.display_name.as_deref().filter(|_| !is_known),
            username: press.sender.username.as_deref(),
            is_bot: None,
        };
        let person = upsert_participant_txn(connection, account, heard, now_ms)?;
        let turn = say_txn(connection, &found, (person, &option), press)?;
        answer_txn(connection, &found, (turn.id, person), now_ms)?;
        if let Some(outcome) = &answer.outcome {
            show_txn(connection, found.row, outcome, now_ms)?;
        }
    }
    to_presser.answer_txn(connection, &answer.told)?;
    Ok(Pressed {
        is_decided: counts,
        ..Pressed::default()
    })
}

fn facts_of(
    connection: &Connection,
    found: &QuestionRow,
    press: &NewPress,
) -> Result<OptionFacts, StoreError> {
    let account = press.event.account;
    let chat = find_chat(connection, account, &press.place.chat)?;
    let post = post_of_question(connection, found.row)?;
    let mut asked = found.question.asked.iter();
    Ok(OptionFacts {
        question: found.question.clone(),
        is_post_known: post.as_ref().is_none_or(|post| post.message_id.is_some()),
        is_at_post: post.is_some_and(|post| {
            chat.is_some_and(|chat| chat.id == post.chat)
                && post.message_id.as_deref() == Some(&press.message_id)
        }),
        is_asked: found.question.is_for_experts || asked.any(|person| person.id == press.sender.id),
        presser_name: known_name(connection, account, &press.sender.id)?,
    })
}

/// Captures a person's choice as a message of theirs: where the run answers, or in the room of the experts.
fn say_txn(
    connection: &Connection,
    found: &QuestionRow,
    (person, option): (ParticipantId, &str),
    press: &NewPress,
) -> Result<TurnRow, StoreError> {
    let now_ms = press.event.received_at_ms;
    let seat = match found.question.is_for_experts {
        true => {
            let account = press.event.account;
            seat_at_txn(
                connection,
                account,
                (&press.place, &press.message_id),
                now_ms,
            )?
        }
        false => seat_of_run(connection, found)?,
    };
    let said = TypedAnswer {
        person,
        text: option,
        is_inbound: true,
        now_ms,
    };
    insert_answer_txn(connection, found, seat, &said)
}

/// Stores an operator's answer as a turn of the system where the question was asked.
fn answer_by_operator_txn(
    connection: &Connection,
    answer: &OperatorAnswer,
) -> Result<bool, StoreError> {
    let found = question_of(connection, answer.question)?;
    let found = found.ok_or_else(|| not_found(answer.question))?;
    let question = &found.question;
    if question.state != QuestionState::Open || question.expiry.is_over(answer.now_ms) {
        return Ok(false);
    }
    let post = post_of_question(connection, found.row)?;
    let target: Option<String> = match &post {
        Some(post) => connection
            .prepare_cached("SELECT target FROM outbox WHERE id = ?1")?
            .query_row([post.post_row], |row| row.get("target"))?,
        None => None,
    };
    let target: Option<Target> = target.and_then(|text| serde_json::from_str(&text).ok());
    let seat = match target.filter(|_| question.is_for_experts) {
        Some(target) => {
            let message = post.and_then(|post| post.message_id).unwrap_or_default();
            let at = (&target, message.as_str());
            seat_at_txn(connection, question.account, at, answer.now_ms)?
        }
        None => seat_of_run(connection, &found)?,
    };
    let heard = HeardSender {
        kind: ParticipantKind::System,
        platform_id: &format!("operator {}", answer.operator),
        display_name: Some(&answer.operator),
        username: None,
        is_bot: None,
    };
    let person = upsert_participant_txn(connection, question.account, heard, answer.now_ms)?;
    let said = TypedAnswer {
        person,
        text: &answer.text,
        is_inbound: false,
        now_ms: answer.now_ms,
    };
    let turn = insert_answer_txn(connection, &found, seat, &said)?;
    answer_txn(connection, &found, (turn.id, person), answer.now_ms)?;
    show_txn(connection, found.row, &answer.outcome, answer.now_ms)?;
    Ok(true)
}

/// Where a question's run answers.
fn seat_of_run(
    connection: &Connection,
    found: &QuestionRow,
) -> Result<(ConversationRow, Option<ChatKind>), StoreError> {
    let leased = LeasedRun {
        row: found.run_row,
        conversation_row: connection
            .prepare_cached("SELECT conversation_id FROM runs WHERE id = ?1")?
            .query_row([found.run_row], |row| row.get("conversation_id"))?,
        is_cancelled: false,
    };
    let room = room_of(connection, &leased)?;
    Ok((room.conversation, room.kind))
}

/// An answer that is not a message of the platform.
struct TypedAnswer<'a> {
    person: ParticipantId,
    text: &'a str,
    is_inbound: bool,
    now_ms: i64,
}

fn insert_answer_txn(
    connection: &Connection,
    found: &QuestionRow,
    (conversation, kind): (ConversationRow, Option<ChatKind>),
    said: &TypedAnswer<'_>,
) -> Result<TurnRow, StoreError> {
    let now_ms = said.now_ms;
    let turn = NewTurn {
        conversation: &conversation,
        sent_at_ms: now_ms,
        ordinal: 0,
        kind: TurnKind::Message,
        scope: conversation.scope(kind),
        participant: said.person,
        content: said.text,
        attachments: None,
        reply_to_seq: None,
        reply_to_message: None,
        quote: Some(&found.question.text),
        album: None,
        tokens: None,
        is_inbound: said.is_inbound,
        captured_at_ms: now_ms,
    };
    insert_turn_txn(connection, &turn)
}

/// The conversation of a room of experts that a post is in.
fn seat_at_txn(
    connection: &Connection,
    account: AccountId,
    (at, message_id): (&Target, &str),
    now_ms: i64,
) -> Result<(ConversationRow, Option<ChatKind>), StoreError> {
    let chat = ensure_chat_txn(connection, account, &at.chat)?;
    let place = Place {
        chat: at.chat.clone(),
        thread: at.thread.clone(),
        topic: at.topic.clone(),
        ..Place::default()
    };
    let seat = ConversationSeat::of(&place, message_id);
    let conversation = ensure_conversation_txn(connection, chat.id, seat, now_ms)?;
    Ok((conversation, chat.kind))
}

/// Takes a captured reply as the answer, if the question is still open.
pub(crate) fn answer_by_reply_txn(
    connection: &Connection,
    question: QuestionId,
    turn: &TurnRow,
    person: ParticipantId,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(found) = question_of(connection, question)? else {
        return Ok(());
    };
    let replied = outcome_of(connection, found.row, QuestionEnd::Replied)?;
    if answer_txn(connection, &found, (turn.id, person), now_ms)?
        && let Some(replied) = replied
    {
        show_txn(connection, found.row, &replied, now_ms)?;
    }
    Ok(())
}

/// Answers an open question, and wakes its run; of two answers the first one counts. Returns whether this one counted.
fn answer_txn(
    connection: &Connection,
    found: &QuestionRow,
    (turn, person): (TurnId, ParticipantId),
    now_ms: i64,
) -> Result<bool, StoreError> {
    let is_first = connection
        .prepare_cached(
            "UPDATE questions SET state = 'answered', ended_at_ms = ?2, answered_by = ?3, answer_turn = ?4, outcomes = '',
                    card_message = (SELECT message_id FROM outbox WHERE id = card_post)
             WHERE id = ?1 AND state = 'open'",
        )?
        .execute((found.row, now_ms, person, turn))?;
    if is_first == 0 {
        return Ok(false);
    }
    if !found.question.is_for_experts {
        involve_txn(connection, found, turn)?;
    }
    wake_txn(connection, found.run_row, now_ms)?;
    Ok(true)
}

/// Involves the agent in the answer, so that it stays in what the agent reads of its room.
fn involve_txn(
    connection: &Connection,
    found: &QuestionRow,
    turn: TurnId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how)
             SELECT conversation_id, ?2, sent_at_ms, ordinal, seq, 'answered' FROM turns WHERE uuid = ?1
             ON CONFLICT DO UPDATE SET how = excluded.how",
        )?
        .execute((turn, &found.question.agent))?;
    Ok(())
}

/// Ends questions whose time is over, and wakes their runs. Returns how many.
pub(crate) fn expire_questions_txn(
    connection: &Connection,
    now_ms: i64,
) -> Result<usize, StoreError> {
    let due: Vec<(i64, ApprovalDeadline)> = connection
        .prepare_cached(
            "SELECT id, asked_at_ms, expires_at_ms FROM questions
             WHERE state = 'open' AND (expires_at_ms <= ?1 OR asked_at_ms > ?1)
             ORDER BY expires_at_ms LIMIT ?2",
        )?
        .query_map((now_ms, EXPIRED_AT_ONCE), |row| {
            let expiry = ApprovalDeadline {
                asked_at_ms: row.get("asked_at_ms")?,
                expires_at_ms: Some(row.get("expires_at_ms")?),
            };
            Ok((row.get("id")?, expiry))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    let mut expired = 0;
    for (row, _) in due.iter().filter(|(_, expiry)| expiry.is_over(now_ms)) {
        end_txn(connection, *row, QuestionState::Expired, now_ms)?;
        expired += 1;
    }
    Ok(expired)
}

/// Cancels the open questions of a run, with their posts.
pub(crate) fn cancel_questions_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let open: Vec<i64> = connection
        .prepare_cached("SELECT id FROM questions WHERE run_id = ?1 AND state = 'open'")?
        .query_map([run_row], |row| row.get("id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for row in open {
        end_txn(connection, row, QuestionState::Cancelled, now_ms)?;
    }
    Ok(())
}

/// Cancels a question whose post was deleted, since it can't be answered any more.
pub(crate) fn cancel_question_of_post_txn(
    connection: &Connection,
    chat: ChatId,
    message_id: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let row: Option<i64> = connection
        .prepare_cached(
            "SELECT q.id FROM questions q INDEXED BY questions_open JOIN outbox o ON o.id = q.card_post
             WHERE q.state = 'open' AND o.chat_id = ?1 AND o.message_id = ?2",
        )?
        .query_row((chat, message_id), |row| row.get("id"))
        .optional()?;
    if let Some(row) = row {
        close_txn(connection, row, QuestionState::Cancelled, now_ms)?;
    }
    Ok(())
}

/// Ends an open question that nobody answered, with its post, and wakes its run.
fn end_txn(
    connection: &Connection,
    row: i64,
    state: QuestionState,
    now_ms: i64,
) -> Result<(), StoreError> {
    let which = match state {
        QuestionState::Expired => QuestionEnd::Expired,
        QuestionState::Open | QuestionState::Answered | QuestionState::Cancelled => {
            QuestionEnd::Cancelled
        }
    };
    let outcome = outcome_of(connection, row, which)?;
    // A post whose outcome text can't be decoded stays; an answer to it is told the state.
    if let Some(outcome) = outcome {
        show_txn(connection, row, &outcome, now_ms)?;
    }
    close_txn(connection, row, state, now_ms)
}

fn close_txn(
    connection: &Connection,
    row: i64,
    state: QuestionState,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE questions SET state = ?2, ended_at_ms = ?3, outcomes = '',
                    card_message = (SELECT message_id FROM outbox WHERE id = card_post)
             WHERE id = ?1 AND state = 'open'",
        )?
        .execute((row, state, now_ms))?;
    let run_row: i64 = connection
        .prepare_cached("SELECT run_id FROM questions WHERE id = ?1")?
        .query_row([row], |found| found.get("run_id"))?;
    wake_txn(connection, run_row, now_ms)
}

fn outcome_of(
    connection: &Connection,
    row: i64,
    which: QuestionEnd,
) -> Result<Option<Part>, StoreError> {
    let outcomes: String = connection
        .prepare_cached("SELECT outcomes FROM questions WHERE id = ?1")?
        .query_row([row], |found| found.get("outcomes"))?;
    let outcomes: Vec<Part> = serde_json::from_str(&outcomes).unwrap_or_default();
    Ok(outcomes.into_iter().nth(which as usize))
}

fn show_txn(
    connection: &Connection,
    row: i64,
    outcome: &Part,
    now_ms: i64,
) -> Result<(), StoreError> {
    match post_of_question(connection, row)? {
        Some(post) => {
            let edit = replace_card_txn(connection, post, outcome, now_ms)?;
            connection
                .prepare_cached(
                    "UPDATE questions SET outcome_post = (SELECT id FROM outbox WHERE uuid = ?2) WHERE id = ?1",
                )?
                .execute((row, edit))?;
            Ok(())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "../tests/asking.rs"]
mod tests;
