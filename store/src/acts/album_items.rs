//! Captures a further item of an album.

use crate::StoreError;
use crate::acts::arrival::{Arrival, captured, sent_at_ms};
use crate::acts::triggers::{postpone_runs_txn, refresh_triggers_txn};
use crate::contract::Captured;
use crate::engine::sql::Connection;
use crate::rows::album::joined_text;
use crate::rows::columns::{attachments_from, stored_attachments};
use crate::rows::files::{queue_files_txn, with_transcripts};
use crate::rows::messages::{MessageEntry, add_message_txn};
use crate::rows::raw::keep_envelope_txn;
use crate::rows::turn_rows::TurnRow;
use crate::rows::turns::{Replacement, revise_turn_txn};

/// Adds an item to its album's turn; the album's runs wait for the items to come.
pub(crate) fn add_item_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    mut turn: TurnRow,
) -> Result<Captured, StoreError> {
    let message = arrival.message;
    let part = connection
        .prepare_cached(
            "SELECT coalesce(max(part), -1) + 1 AS part FROM messages WHERE turn_seq = ?1",
        )?
        .query_row([turn.seq], |row| row.get("part"))?;
    add_message_txn(
        connection,
        MessageEntry {
            account: message.account,
            identity: arrival.chat.identity,
            message_id: &message.message_id,
            turn_seq: Some(turn.seq),
            conversation: Some(&turn.conversation),
            part,
            text: Some(&message.text),
            edit_marker: message.edit_marker.as_deref(),
            sent_at_ms: Some(sent_at_ms(message)),
        },
    )?;
    keep_envelope_txn(connection, message, turn.seq)?;
    let mut attachments = attachments_from(turn.attachments.as_deref())?;
    attachments.extend(message.attachments.iter().cloned());
    let content = joined_text(connection, turn.seq)?;
    let content = with_transcripts(connection, turn.seq, content)?;
    let replacement = Replacement {
        tokens: message.tokens.as_ref().filter(|_| content == message.text),
        content,
        attachments: stored_attachments(&attachments),
        // No revision is kept: the item is added, nothing is replaced.
        keep_revision: false,
        now_ms: message.received_at_ms,
    };
    revise_turn_txn(connection, &mut turn, replacement)?;
    let now_ms = message.received_at_ms;
    queue_files_txn(connection, turn.seq, &message.attachments, now_ms)?;
    postpone_runs_txn(connection, &turn, arrival.verdict.not_before_ms)?;
    refresh_triggers_txn(connection, &turn)?;
    let runs = arrival.address_txn(connection, &turn, false)?;
    Ok(Captured::Revised(captured(&turn, runs)))
}
