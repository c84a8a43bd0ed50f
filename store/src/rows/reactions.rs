//! The sign that a message was heard: a reaction of ours, put on it when its run is queued, and taken away when
//! nothing of it waits for an answer any more. Reactions wait for no other post and delay none.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::open_run;
use vocative_contract::outbound::{Operation, Part, Target};

use crate::StoreError;
use crate::new_id::NewId as _;
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn};
use vocative_core::ids::{AccountId, ChatId, Seq};
use vocative_core::outbox::DeadCause;

/// A reaction to a captured message.
pub(crate) struct Reaction<'a> {
    pub(crate) account: AccountId,
    pub(crate) chat: ChatId,
    /// The platform's id of the chat.
    pub(crate) platform_chat: &'a str,
    pub(crate) turn: Seq,
    /// The platform's id of the message.
    pub(crate) message_id: &'a str,
    pub(crate) emoji: &'a str,
    pub(crate) stays: bool,
    pub(crate) now_ms: i64,
}

/// Commits a reaction to a message, once.
pub(crate) fn react_txn(
    connection: &Connection,
    reaction: &Reaction<'_>,
) -> Result<(), StoreError> {
    if reaction_to(connection, reaction.turn)?.is_some() {
        return Ok(());
    }
    let message_id = reaction.message_id.to_owned();
    let posts = NewPosts {
        account: reaction.account,
        chat: reaction.chat,
        turn: Some(reaction.turn),
        run_row: None,
        operation: &Operation::React { message_id },
        target: &Target {
            chat: reaction.platform_chat.to_owned(),
            thread: None,
            topic: None,
            reply_to: None,
        },
        parts: &[Part::plain(reaction.emoji)],
        now_ms: reaction.now_ms,
    };
    insert_posts_txn(connection, &posts)?;
    if reaction.stays {
        connection
            .prepare_cached(
                "UPDATE outbox SET stays = 1 WHERE turn_seq = ?1 AND operation = 'react'",
            )?
            .execute([reaction.turn])?;
    }
    Ok(())
}

/// Removes the reactions to the messages that a run was to answer, where no other run is to answer them.
pub(crate) fn take_reactions_back_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT o.turn_seq FROM run_triggers g
         JOIN outbox o ON o.turn_seq = g.turn_seq AND o.operation = 'react'
              AND NOT o.stays
         WHERE g.run_id = ?1
           AND NOT EXISTS (SELECT 1 FROM run_triggers m JOIN runs r ON r.id = m.run_id
                           WHERE m.turn_seq = g.turn_seq AND m.run_id <> g.run_id
                             AND (",
        open_run!("r"),
        " OR r.state = 'held'))",
    ))?;
    let turns: Vec<Seq> = statement
        .query_map([run_row], |row| row.get("turn_seq"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for turn in turns {
        take_reaction_back_txn(connection, turn, now_ms)?;
    }
    Ok(())
}

/// Removes the reaction to a turn. A reaction that was not sent yet is not sent any more.
pub(crate) fn take_reaction_back_txn(
    connection: &Connection,
    turn: Seq,
    now_ms: i64,
) -> Result<(), StoreError> {
    let dropped = connection
        .prepare_cached(
            "UPDATE outbox SET state = 'dead', dead_cause = ?2, reason = ?2, finished_at_ms = ?3
             WHERE turn_seq = ?1 AND operation = 'react' AND state = 'pending'
               AND send_started = 0",
        )?
        .execute(params![turn, DeadCause::Dropped, now_ms])?;
    if dropped > 0 {
        return Ok(());
    }
    let Some(row) = reaction_to(connection, turn)? else {
        return Ok(());
    };
    let taken: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM outbox WHERE turn_seq = ?1 AND operation = 'unreact')
                 OR (SELECT state = 'dead' FROM outbox WHERE id = ?2) AS taken",
        )?
        .query_row(params![turn, row], |row| row.get("taken"))?;
    if taken {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, operation,
                    target, payload, state, not_before_ms, created_at_ms)
             SELECT ?2, account_id, chat_id, turn_seq, 0,
                    (SELECT coalesce(max(id), 0) + 1 FROM outbox), 'unreact', target, payload,
                    'pending', ?3, ?3
             FROM outbox WHERE id = ?1",
        )?
        .execute(params![
            row,
            vocative_core::ids::OutboxId::generate(),
            now_ms
        ])?;
    Ok(())
}

/// The reaction to a turn's message, whatever became of it.
fn reaction_to(connection: &Connection, turn: Seq) -> Result<Option<i64>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT id FROM outbox WHERE turn_seq = ?1 AND operation = 'react' LIMIT 1",
        )?
        .query_row([turn], |row| row.get("id"))
        .optional()?;
    Ok(found)
}
