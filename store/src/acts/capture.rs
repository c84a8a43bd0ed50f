//! Capturing one message: whether it is known and admitted, whom it addresses, and what is written.
//!
//! Everything happens in one transaction. Edits, album items and refused messages are handled in `edits`,
//! `album_items` and `notices`; the effects of a turn's addressees in `addressing`.

use std::path::PathBuf;

use crate::acts::album_items::add_item_txn;
use crate::acts::arrival::{Arrival, captured, known_message, sent_at_ms};
use crate::acts::command_giver::CommandGiver;
use crate::acts::parking::hear_chat_txn;
use crate::acts::twins::claim_twin_txn;
use crate::capability::MayCapture;
use crate::engine::sql::{Connection, params};
use crate::rows::turn_rows::{TurnRow, turn_at};
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::envelope::SenderKind;
use vocative_contract::outbound::Target;

use crate::acts::addressing::follow_ups::note_follow_up_txn;
use crate::acts::changing::change_by_reply_txn;
use crate::acts::commands::carry_out_txn;
use crate::acts::edits;
use crate::acts::erasure;
use crate::acts::facts::read_facts;
use crate::acts::forking::begin_of_fork;
use crate::acts::learn::settle_kind_txn;
use crate::acts::notices::{post_notice_turn_txn, refuse_txn};
use crate::acts::questions::answer_by_reply_txn;
use crate::acts::triggers::Addressed;
use crate::contract::{Captured, JudgedMessage, NewMessage};
use crate::rows::album;
use crate::rows::columns::stored_attachments;
use crate::rows::files::queue_files_txn;
use crate::rows::messages::{
    MessageEntry, MessageKey, add_message_txn, find_message, find_message_of_merged_chat,
};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::{
    ChatRow, ConversationSeat, HEARD_EVERY_MS, ensure_chat_txn, ensure_conversation_txn, find_chat,
    name_new_topic_txn, set_root_txn,
};
use crate::rows::raw::keep_envelope_txn;
use crate::rows::turns::{NewTurn, insert_turn_txn};
use crate::{Store, StoreError};
use vocative_core::addressing::{MessageFacts, Verdict};
use vocative_core::command::CommandVerdict;
use vocative_core::ids::Seq;
use vocative_core::turn::{Position, TurnKind};

impl<C: MayCapture> Store<C> {
    /// Captures a message, new or edited, in one transaction. Many callers' writes share a commit.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses, and then nothing was written; never because of what the
    /// message says.
    pub async fn capture_message(&self, message: NewMessage) -> Result<Captured, StoreError> {
        Ok(self.capture_judged(message).await?.captured)
    }

    /// Captures a message like [`Self::capture_message`], and says what was decided about it.
    ///
    /// # Errors
    /// As there.
    pub async fn capture_judged(&self, message: NewMessage) -> Result<JudgedMessage, StoreError> {
        let ledger = self.ledger_path();
        // The replaced text must not stay anywhere, not even in the write-ahead log.
        if message.is_edit && !message.keep_revisions {
            return self
                .write_and_clean(message.received_at_ms, move |connection| {
                    capture_txn(connection, message, ledger)
                })
                .await;
        }
        self.write_shared(move |connection| capture_txn(connection, message, ledger))
            .await
    }
}

/// Captures a message: finds it if it is known, judges it, and writes what follows.
pub(crate) fn capture_txn(
    connection: &Connection,
    mut message: NewMessage,
    ledger: Option<PathBuf>,
) -> Result<JudgedMessage, StoreError> {
    let unjudged = |captured| JudgedMessage {
        captured,
        verdict: None,
    };
    let judge = std::mem::replace(&mut message.judge, Box::new(|_| Verdict::default()));
    let chat = find_chat(connection, message.account, &message.place.chat)?;
    if let Some(chat) = chat
        .as_ref()
        .filter(|_| crash::is_sabotaged(Sabotage::NoDedupe))
    {
        forget_message_txn(connection, chat, &message)?;
    }
    let known = match known_message(connection, &message, chat.as_ref())? {
        None => claim_twin_txn(connection, &message, chat.as_ref())?,
        known => known,
    };
    let turn = match &known {
        Some(known) => match known.turn_seq {
            None => return Ok(unjudged(Captured::Tombstone)),
            Some(seq) => Some(turn_at(connection, seq)?),
        },
        None if is_from_before_erasure(connection, &message)? => {
            return Ok(unjudged(Captured::Tombstone));
        }
        None => album::turn_of_album(connection, &message, chat.as_ref())?,
    };
    if let (Some(known), Some(turn)) = (&known, &turn)
        && edits::is_outdated(&message, known)
    {
        let duplicate = Captured::Duplicate(captured(turn, Addressed::default()));
        return Ok(unjudged(duplicate));
    }
    let seq = turn.as_ref().map(|turn| turn.seq);
    let mut facts = read_facts(connection, &message, chat.as_ref(), seq)?;
    facts.is_known = known.is_some();
    let verdict = judge(&facts);
    if !verdict.is_admitted {
        let captured = refuse_txn(connection, &message, verdict.notice.as_ref())?;
        return Ok(JudgedMessage {
            captured,
            verdict: Some(verdict),
        });
    }
    let mut arrival = admit_txn(connection, &message, chat, facts, verdict)?;
    arrival.ledger = ledger;
    let captured = match (known, turn) {
        (Some(known), Some(turn)) if edits::is_newer(&message, &known, &turn) => {
            edits::edit_txn(connection, &arrival, turn, &known)?
        }
        (Some(_), Some(turn)) => {
            let runs = arrival.address_txn(connection, &turn, false)?;
            Captured::Duplicate(captured(&turn, runs))
        }
        (None, Some(turn)) => add_item_txn(connection, &arrival, turn)?,
        (_, None) => {
            note_captured_txn(connection, arrival.message)?;
            insert_txn(connection, &arrival)?
        }
    };
    Ok(JudgedMessage {
        captured,
        verdict: Some(arrival.verdict),
    })
}

/// Whether the message's sender or place was erased after it was sent: reading back history must not restore it.
pub(crate) fn is_from_before_erasure(
    connection: &Connection,
    message: &NewMessage,
) -> Result<bool, StoreError> {
    let place = &message.place;
    let heard = erasure::IncomingMessage {
        account: message.account,
        sender: &message.sender.id,
        chat: &place.chat,
        thread: ConversationSeat::of(place, &message.message_id).key(),
        is_topic: place.topic.is_some(),
        sent_at_ms: sent_at_ms(message),
    };
    erasure::is_erased(connection, &heard)
}

/// Forgets that a message was captured, so that it counts as new and gets a second turn on purpose.
fn forget_message_txn(
    connection: &Connection,
    chat: &ChatRow,
    message: &NewMessage,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM messages WHERE account_id = ?1 AND chat_id = ?2 AND platform_id = ?3",
        )?
        .execute(params![message.account, chat.identity, message.message_id])?;
    Ok(())
}

/// Stores the chat and the sender of an admitted message.
fn admit_txn<'a>(
    connection: &Connection,
    message: &'a NewMessage,
    chat: Option<ChatRow>,
    facts: MessageFacts,
    verdict: Verdict,
) -> Result<Arrival<'a>, StoreError> {
    let now_ms = message.received_at_ms;
    let mut chat = match chat {
        Some(chat) => chat,
        None => ensure_chat_txn(connection, message.account, &message.place.chat)?,
    };
    hear_chat_txn(connection, &chat, &message.place, now_ms)?;
    settle_kind_txn(connection, &chat, message.place.kind, now_ms)?;
    chat.kind = facts.chat_kind;
    let heard = HeardSender {
        kind: message.sender_kind,
        platform_id: &message.sender.id,
        display_name: message.sender.display_name.as_deref(),
        username: message.sender.username.as_deref(),
        is_bot: Some(message.sender.kind == SenderKind::Bot),
    };
    Ok(Arrival {
        message,
        chat,
        person: upsert_participant_txn(connection, message.account, heard, now_ms)?,
        facts,
        verdict,
        ledger: None,
    })
}

/// Notes when something new was last captured through an account.
fn note_captured_txn(connection: &Connection, message: &NewMessage) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE accounts SET last_captured_ms = ?2
             WHERE id = ?1 AND coalesce(last_captured_ms, 0) <= ?2 - ?3",
        )?
        .execute(params![
            message.account,
            message.received_at_ms,
            HEARD_EVERY_MS
        ])?;
    Ok(())
}

/// Inserts the turn of a new message.
pub(crate) fn insert_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
) -> Result<Captured, StoreError> {
    let message = arrival.message;
    let now_ms = message.received_at_ms;
    let seat = ConversationSeat::of(&message.place, &message.message_id);
    let conversation = ensure_conversation_txn(connection, arrival.chat.id, seat, now_ms)?;
    if let Some(title) = &message.place.topic_title {
        name_new_topic_txn(connection, conversation.row, title)?;
    }
    if let (ConversationSeat::Thread(root), None) = (seat, conversation.root_seq) {
        link_root_txn(connection, arrival, conversation.row, root)?;
    }
    let reply_to_seq = reply_target(connection, arrival)?;
    let behind_ms = begin_of_fork(connection, &conversation)?;
    let sent_at_ms = sent_at_ms(message).max(behind_ms.unwrap_or(i64::MIN));
    let turn = insert_turn_txn(
        connection,
        &NewTurn {
            conversation: &conversation,
            sent_at_ms,
            ordinal: message.ordinal,
            kind: TurnKind::Message,
            scope: message
                .scope_override
                .unwrap_or_else(|| conversation.scope(arrival.chat.kind)),
            participant: arrival.person,
            content: &message.text,
            attachments: stored_attachments(&message.attachments),
            reply_to_seq,
            reply_to_message: match reply_to_seq {
                Some(_) => None,
                None => message.reply_to.as_deref(),
            },
            quote: message.quote.as_deref(),
            album: message.album.as_deref(),
            tokens: message.tokens.as_ref(),
            is_inbound: true,
            captured_at_ms: now_ms,
        },
    )?;
    add_message_txn(
        connection,
        MessageEntry {
            account: message.account,
            identity: arrival.chat.identity,
            message_id: &message.message_id,
            turn_seq: Some(turn.seq),
            conversation: Some(&conversation),
            part: 0,
            text: message.album.as_ref().map(|_| message.text.as_str()),
            edit_marker: message.edit_marker.as_deref(),
            sent_at_ms: Some(sent_at_ms),
        },
    )?;
    keep_envelope_txn(connection, message, turn.seq)?;
    queue_files_txn(connection, turn.seq, &message.attachments, now_ms)?;
    if arrival.verdict.would_follow_up {
        note_follow_up_txn(connection, turn.seq, true)?;
    }
    let mut runs = arrival.address_txn(connection, &turn, false)?;
    arrival.count_exchange_txn(connection)?;
    if let Some(question) = arrival.verdict.answers {
        answer_by_reply_txn(connection, question, &turn, arrival.person, now_ms)?;
    }
    if let Some(notice) = arrival.verdict.notice_of_message() {
        post_notice_turn_txn(connection, arrival, &turn, notice)?;
    }
    if let Some(change) = &arrival.verdict.changes {
        change_by_reply_txn(connection, change, arrival.person, now_ms)?;
    }
    if let Some(command) = &arrival.verdict.command {
        runs.add(command_txn(connection, arrival, &turn, command)?);
    }
    Ok(Captured::New(captured(&turn, runs)))
}

/// Carries out a new message that is a command. Only the timeline shows such a message: it was not said to
/// the room.
fn command_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    turn: &TurnRow,
    command: &CommandVerdict,
) -> Result<Addressed, StoreError> {
    let message = arrival.message;
    connection
        .prepare_cached("UPDATE turns SET visibility = 'timeline' WHERE seq = ?1")?
        .execute([turn.seq])?;
    let asker = CommandGiver {
        account: message.account,
        chat: arrival.chat.id,
        platform_chat: &message.place.chat,
        person: arrival.person,
        sender: &message.sender.id,
        conversation: &turn.conversation,
        at: Position {
            sent_at_ms: turn.sent_at_ms,
            ordinal: turn.ordinal,
            seq: Seq(turn.seq),
        },
        target: Target {
            chat: message.place.chat.clone(),
            thread: message.place.thread.clone(),
            topic: message.place.topic.clone(),
            reply_to: Some(message.message_id.clone()),
        },
        ledger: arrival.ledger.as_deref(),
        now_ms: message.received_at_ms,
    };
    carry_out_txn(connection, &asker, command)
}

fn link_root_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    thread_row: i64,
    root: &str,
) -> Result<(), StoreError> {
    let key = MessageKey {
        account: arrival.message.account,
        chat: &arrival.chat,
        message_id: root,
    };
    match find_message_of_merged_chat(connection, key, None)?.and_then(|known| known.turn_seq) {
        Some(seq) => set_root_txn(connection, thread_row, seq),
        None => Ok(()),
    }
}

/// The turn a message replies to, where that was captured.
fn reply_target(connection: &Connection, arrival: &Arrival<'_>) -> Result<Option<i64>, StoreError> {
    let Some(message_id) = &arrival.message.reply_to else {
        return Ok(None);
    };
    let key = MessageKey {
        account: arrival.message.account,
        chat: &arrival.chat,
        message_id,
    };
    Ok(find_message(connection, key)?.and_then(|known| known.turn_seq))
}
