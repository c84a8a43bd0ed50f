//! Our own posts coming back as events: the surest evidence for a post of unknown outcome.

use crate::capability::MayCapture;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::open_post;

use crate::acts::addressing::follow_ups::{Rooted, judge_follow_ups_txn};
use crate::acts::triggers::Addressed;
use crate::contract::{OwnPost, RunChanges};
use crate::rows::messages::{MessageEntry, MessageKey, add_message_txn, find_message};
use crate::rows::places::find_chat;
use crate::{Store, StoreError};
use vocative_core::ids::{AccountId, ChatId, OutboxId};

impl<C: MayCapture> Store<C> {
    /// Notes that a post of ours was seen. If its marker names an entry that is leased, of unknown
    /// outcome or held for it, that entry becomes sent. Replies below the post that were captured before
    /// it was known to be ours are judged again.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn confirm_own_post(&self, post: OwnPost) -> Result<RunChanges, StoreError> {
        let Some(marker) = post.marker.as_deref().and_then(|it| it.parse().ok()) else {
            return Ok(RunChanges::default());
        };
        self.write(move |connection| {
            confirm_txn(connection, &post, marker)?;
            let addressed = follow_up_txn(connection, &post)?;
            Ok(RunChanges {
                new_runs: addressed.new_runs,
                cancelled_runs: addressed.cancelled_runs,
                follow_ups: addressed.follow_ups,
            })
        })
        .await
    }
}

struct OpenEntry {
    row: i64,
    chat: ChatId,
    turn_seq: Option<i64>,
    part: i64,
}

pub(crate) fn confirm_txn(
    connection: &Connection,
    seen: &OwnPost,
    marker: OutboxId,
) -> Result<(), StoreError> {
    let Some(entry) = open_entry(connection, seen.account, marker)? else {
        return Ok(());
    };
    let chat = find_chat(connection, seen.account, &seen.place.chat)?;
    if let Some(chat) = &chat {
        let key = MessageKey {
            account: seen.account,
            chat,
            message_id: &seen.message_id,
        };
        if find_message(connection, key)?.is_some() {
            return Ok(());
        }
    }
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'sent', reason = NULL, message_id = ?2, finished_at_ms = ?3,
                    owner = NULL, token = NULL, lease_until_ms = NULL
             WHERE id = ?1",
        )?
        .execute(params![entry.row, seen.message_id, seen.now_ms])?;
    connection
        .prepare_cached(
            "UPDATE outbox_attempts SET ended_at_ms = ?2, outcome = 'seen'
             WHERE outbox_id = ?1 AND ended_at_ms IS NULL",
        )?
        .execute([entry.row, seen.now_ms])?;
    if entry.turn_seq.is_some() {
        add_message_txn(
            connection,
            MessageEntry {
                account: seen.account,
                identity: chat.map_or(entry.chat, |chat| chat.identity),
                message_id: &seen.message_id,
                turn_seq: entry.turn_seq,
                conversation: None,
                part: entry.part,
                text: None,
                edit_marker: None,
                sent_at_ms: None,
            },
        )?;
    }
    Ok(())
}

fn follow_up_txn(connection: &Connection, seen: &OwnPost) -> Result<Addressed, StoreError> {
    let Some(judge) = &seen.judge_follow_up else {
        return Ok(Addressed::default());
    };
    let rooted = Rooted {
        account: seen.account,
        place: &seen.place,
        root: &seen.message_id,
        since_ms: i64::MIN,
        now_ms: seen.now_ms,
        judge,
    };
    judge_follow_ups_txn(connection, &rooted)
}

/// The entry of a marker, if it is not known yet whether it is on the platform. A pending entry with that
/// marker was tried before and did arrive: it need not be sent again.
fn open_entry(
    connection: &Connection,
    account: AccountId,
    marker: OutboxId,
) -> Result<Option<OpenEntry>, StoreError> {
    let entry = connection
        .prepare_cached(concat!(
            "SELECT id, chat_id, turn_seq, part FROM outbox
             WHERE uuid = ?1 AND account_id = ?2 AND (",
            open_post!(),
            " OR state = 'held')"
        ))?
        .query_row(params![marker, account], |row| {
            Ok(OpenEntry {
                row: row.get("id")?,
                chat: row.get("chat_id")?,
                turn_seq: row.get("turn_seq")?,
                part: row.get("part")?,
            })
        })
        .optional()?;
    Ok(entry)
}
