//! Feedback of people on answers, by thumbs.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::messages::{MessageKey, find_message_of_merged_chat};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::find_chat;
use crate::{Store, StoreError};
use vocative_contract::envelope::SenderKind;
use vocative_contract::feedback::ThumbChange;
use vocative_core::ids::AccountId;
use vocative_core::turn::ParticipantKind;

impl<C> Store<C> {
    /// Stores a thumb with the run whose answer it is on, or that it was removed: of the changes of one thumb the
    /// latest by the platform's clock counts, in whatever order they come. Returns whether it is on a known answer.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn capture_thumb(
        &self,
        account: AccountId,
        change: ThumbChange,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| thumb_txn(connection, account, &change, now_ms))
            .await
    }
}

fn thumb_txn(
    connection: &Connection,
    account: AccountId,
    change: &ThumbChange,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let Some(run) = answered_run(connection, account, change)? else {
        return Ok(false);
    };
    let sender = &change.sender;
    let heard = HeardSender {
        kind: ParticipantKind::User,
        platform_id: &sender.id,
        display_name: sender.display_name.as_deref(),
        username: sender.username.as_deref(),
        is_bot: Some(sender.kind == SenderKind::Bot),
    };
    let person = upsert_participant_txn(connection, account, heard, now_ms)?;
    let mut keep = connection.prepare_cached(
        "INSERT INTO feedback (run_id, participant_id, thumb, is_given, changed_at_ms, captured_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (run_id, participant_id, thumb) DO UPDATE
         SET is_given = excluded.is_given, changed_at_ms = excluded.changed_at_ms,
             captured_at_ms = excluded.captured_at_ms
         WHERE excluded.changed_at_ms >= changed_at_ms",
    )?;
    for (thumb, is_given) in &change.thumbs {
        keep.execute(params![
            run,
            person,
            thumb.name(),
            is_given,
            change.at_ms,
            now_ms
        ])?;
    }
    Ok(true)
}

/// The run whose answer a message is a part of.
fn answered_run(
    connection: &Connection,
    account: AccountId,
    change: &ThumbChange,
) -> Result<Option<i64>, StoreError> {
    let Some(chat) = find_chat(connection, account, &change.place.chat)? else {
        return Ok(None);
    };
    let key = MessageKey {
        account,
        chat: &chat,
        message_id: &change.message_id,
    };
    let message = find_message_of_merged_chat(connection, key, None)?;
    let Some(turn) = message.and_then(|message| message.turn_seq) else {
        return Ok(None);
    };
    Ok(connection
        .prepare_cached(
            "SELECT run_id FROM turns WHERE seq = ?1 AND run_id IS NOT NULL AND NOT is_inbound
               AND kind = 'message' AND visibility = 'room'",
        )?
        .query_row([turn], |row| row.get("run_id"))
        .optional()?)
}
