//! What the store knows about a message when it is judged. Read in the transaction that writes the
//! verdict.

use crate::engine::sql::{Connection, OptionalExtension, params};

use crate::StoreError;
use crate::acts::changing::waiting_call;
use crate::acts::erasure::has_forgotten_lately;
use crate::contract::NewMessage;
use crate::rows::columns::{count_from, day_start_ms};
use crate::rows::messages::{MessageKey, find_message, find_message_of_merged_chat};
use crate::rows::places::{ChatRow, ConversationSeat, find_conversation};
use crate::rows::questions::question_replied_to;
use vocative_core::addressing::{MessageFacts, ThreadFacts};
use vocative_core::ids::{AccountId, AgentName, ChatId};
use vocative_core::price::Spent;
use vocative_core::turn::ParticipantKind;

/// A run made more than this in the future, in milliseconds, was made under a wrong clock.
const AHEAD_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// Reads the facts; `turn_seq` is the turn the message belongs to, where it is known.
pub(crate) fn read_facts(
    connection: &Connection,
    message: &NewMessage,
    chat: Option<&ChatRow>,
    turn_seq: Option<i64>,
) -> Result<MessageFacts, StoreError> {
    let usage = usage(connection, message, chat.map(|chat| chat.id))?;
    let mut facts = MessageFacts {
        chat_kind: message.place.kind,
        spent_today: usage.spent,
        spent_by_person_today: usage.spent_by_person,
        runs_by_person_last_hour: usage.runs_by_person,
        runs_in_chat_last_hour: usage.runs_in_chat,
        restored_at_ms: usage.restored_at_ms,
        has_forgotten_lately: has_forgotten_lately(
            connection,
            message.account,
            &message.sender.id,
            message.received_at_ms,
        )?,
        ..MessageFacts::default()
    };
    if let Some(seq) = turn_seq {
        facts.addressed_before = addressed_agents(connection, seq)?;
        facts.has_run_for = agents_with_run(connection, seq)?;
    }
    let seat = ConversationSeat::of(&message.place, &message.message_id);
    let Some(chat) = chat else {
        // An unknown thread has no root and no agents.
        facts.thread = matches!(seat, ConversationSeat::Thread(_)).then(ThreadFacts::default);
        return Ok(facts);
    };
    facts.is_known_chat = true;
    facts.chat_kind = facts.chat_kind.or(chat.kind);
    match replied_author(connection, message, chat)? {
        Some((ParticipantKind::Agent, name)) => {
            facts.replies_to_agent = Some(AgentName::trusted(name));
        }
        Some((kind, id)) => {
            facts.replies_to_sender = kind == message.sender_kind && id == message.sender.id;
        }
        None => {}
    }
    facts.question = question_replied_to(connection, message, chat, turn_seq)?;
    facts.waiting_call = waiting_call(connection, message, chat)?;
    facts.bot_exchanges = chat.bot_exchanges;
    facts.quiet_told_until_ms = chat.quiet_told_until_ms;
    facts.refused_notice_at_ms = chat.refused_notice_at_ms;
    facts.limit_notice_at_ms = chat.limit_notice_at_ms;
    if let ConversationSeat::Thread(root) = seat {
        facts.thread = Some(thread_facts(connection, message.account, chat, root)?);
    }
    Ok(facts)
}

/// The agents a turn addresses. A turn that was answered was addressed.
pub(crate) fn addressed_agents(
    connection: &Connection,
    seq: i64,
) -> Result<Vec<AgentName>, StoreError> {
    agents(
        connection,
        "SELECT DISTINCT agent FROM involvements
         WHERE seq = ?1 AND how IN ('addressed', 'answered') ORDER BY agent",
        seq,
    )
}

fn agents_with_run(connection: &Connection, seq: i64) -> Result<Vec<AgentName>, StoreError> {
    agents(
        connection,
        "SELECT agent FROM run_triggers WHERE turn_seq = ?1 ORDER BY agent",
        seq,
    )
}

fn agents(connection: &Connection, sql: &str, key: i64) -> Result<Vec<AgentName>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([key], |row| row.get("agent"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Who wrote the message that a message replies to: an agent by its name or by that of the network it spoke for,
/// others by platform id.
fn replied_author(
    connection: &Connection,
    message: &NewMessage,
    chat: &ChatRow,
) -> Result<Option<(ParticipantKind, String)>, StoreError> {
    let Some(reply_to) = &message.reply_to else {
        return Ok(None);
    };
    let key = MessageKey {
        account: message.account,
        chat,
        message_id: reply_to,
    };
    let Some(seq) = find_message(connection, key)?.and_then(|known| known.turn_seq) else {
        return Ok(None);
    };
    let author = connection
        .prepare_cached(
            "SELECT p.kind, coalesce(iif(p.kind = ?2, (SELECT i.agent FROM involvements i
                        WHERE i.seq = ?1 AND i.how = 'authored' LIMIT 1), NULL), p.platform_id) AS platform_id
             FROM turns t JOIN participants p ON p.id = t.participant_id WHERE t.seq = ?1",
        )?
        .query_row(params![seq, ParticipantKind::Agent], |row| {
            Ok((row.get("kind")?, row.get("platform_id")?))
        })
        .optional()?;
    Ok(author)
}

fn thread_facts(
    connection: &Connection,
    account: AccountId,
    chat: &ChatRow,
    root: &str,
) -> Result<ThreadFacts, StoreError> {
    let key = MessageKey {
        account,
        chat,
        message_id: root,
    };
    let root_seq = find_message_of_merged_chat(connection, key, None)?.and_then(|m| m.turn_seq);
    // A thread below a message of an agent's own goes on with that agent.
    let root_addressed = match root_seq {
        Some(seq) => agents(
            connection,
            "SELECT DISTINCT agent FROM involvements WHERE seq = ?1 ORDER BY agent",
            seq,
        )?,
        None => Vec::new(),
    };
    let agents_in_it = match find_conversation(connection, chat.id, root)? {
        Some(conversation) => agents_in(connection, account, conversation.row)?,
        None => Vec::new(),
    };
    Ok(ThreadFacts {
        root_addressed,
        agents_in_it,
    })
}

/// The agents that wrote in a conversation, or the networks they spoke for: one index probe for each agent, however
/// long the conversation is.
fn agents_in(
    connection: &Connection,
    account: AccountId,
    conversation_row: i64,
) -> Result<Vec<AgentName>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT coalesce((SELECT r.agent FROM
                        (SELECT run_id FROM turns WHERE participant_id = p.id AND conversation_id = ?3 LIMIT 1) t
                        JOIN runs r ON r.id = t.run_id), p.platform_id) AS agent
         FROM participants p
         WHERE p.account_id = ?1 AND p.kind = ?2
           AND EXISTS (SELECT 1 FROM turns t
                       WHERE t.participant_id = p.id AND t.conversation_id = ?3)
         ORDER BY agent",
    )?;
    let key = params![account, ParticipantKind::Agent, conversation_row];
    let rows = statement.query_map(key, |row| row.get("agent"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The usage that is compared with a channel's limits, and when the database was last restored.
struct LimitUsage {
    spent: Spent,
    spent_by_person: Spent,
    runs_by_person: u32,
    runs_in_chat: u32,
    restored_at_ms: Option<i64>,
}

/// Read for every message, so it is one statement. An unknown chat has no runs.
fn usage(
    connection: &Connection,
    message: &NewMessage,
    chat: Option<ChatId>,
) -> Result<LimitUsage, StoreError> {
    let now_ms = message.received_at_ms;
    let usage = connection
        .prepare_cached(
            "WITH self AS (SELECT id, person_id FROM participants
                           WHERE account_id = ?1 AND kind = ?3 AND platform_id = ?4),
                  accounts_of_person AS (SELECT id FROM self UNION
                           SELECT p.id FROM self JOIN participants p ON p.person_id = self.person_id)
             SELECT coalesce(max(d.tokens), 0) AS tokens, coalesce(max(d.cost_micros), 0) AS cost_micros,
                    coalesce(sum(u.tokens), 0) AS person_tokens, coalesce(sum(u.cost_micros), 0) AS person_cost_micros,
                    (SELECT count(*) FROM runs
                     WHERE person_participant_id IN (SELECT id FROM accounts_of_person)
                       AND created_at_ms BETWEEN ?5 + 1 AND ?7 AND parent_run_id IS NULL) AS runs_by_person,
                    (SELECT count(*) FROM runs
                     WHERE chat_id = ?6 AND created_at_ms BETWEEN ?5 + 1 AND ?7 AND parent_run_id IS NULL) AS runs_in_chat,
                    (SELECT max(at_ms) FROM restores) AS restored_at_ms
             FROM (SELECT 1)
             LEFT JOIN usage_days d ON d.account_id = ?1 AND d.day_start_ms = ?2
             LEFT JOIN usage_people u ON u.day_start_ms = ?2
                  AND u.participant_id IN (SELECT id FROM accounts_of_person)",
        )?
        .query_row(
            params![
                message.account,
                day_start_ms(now_ms),
                message.sender_kind,
                message.sender.id,
                now_ms - HOUR_MS,
                chat,
                now_ms + AHEAD_MS
            ],
            |row| {
                Ok(LimitUsage {
                    spent: Spent {
                        tokens: count_from(row.get("tokens")?),
                        cost_micros: count_from(row.get("cost_micros")?),
                    },
                    runs_by_person: row.get("runs_by_person")?,
                    runs_in_chat: row.get("runs_in_chat")?,
                    restored_at_ms: row.get("restored_at_ms")?,
                    spent_by_person: Spent {
                        tokens: count_from(row.get("person_tokens")?),
                        cost_micros: count_from(row.get("person_cost_micros")?),
                    },
                })
            },
        )?;
    Ok(usage)
}
