//! How far conversations were read: since when a room may lack messages, what was read back, and the notices that say
//! where something is missing.
//!
//! The account's row says since when *any* chat may lack messages. It is written before anything live
//! is captured after a loss, and cleared only when every chat was read, so that what is captured
//! meanwhile never hides a hole.

use crate::capability::MayReadBack;
use crate::engine::sql::{Connection, OptionalExtension, params};

use crate::contract::{AccountReach, AccountStatus, ChatReach, HistoryGap};
use crate::new_id::NewId as _;
use crate::registry::{Fate, MergeRule, STATE, StoreTable, account, text};
use crate::rows::columns::{chat_kind_from_name, chat_kind_name, count_from};
use crate::rows::jobs::enqueue_txn;
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::{
    ConversationRow, ConversationSeat, ensure_chat_txn, ensure_conversation_txn,
};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, TurnId};
use vocative_core::job::Job;
use vocative_core::turn::{ParticipantKind, TurnKind};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account("account_reach", text(&[], &[], &[]), STATE),
    account(
        "chat_reach",
        text(&[], &[], &["chat", "gap_reason"]),
        Fate {
            merge: MergeRule::Nothing("it is kept by the platform's id of the chat"),
            ..STATE
        },
    )
    .follows(&["gap_turn_seq"]),
];

/// The platform id of the participant that speaks for the daemon.
const DAEMON: &str = "vocative";
/// Events within this time, in milliseconds, that tell of the bot joining a chat tell of the same joining.
const TOLD_TWICE_MS: i64 = 60_000;
/// A time more than this after the present, in milliseconds, comes from a wrong clock.
const AHEAD_MS: i64 = 60_000;

impl Reader {
    /// The chats of an account in which the bot is, as far as known; the most recently heard first.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn chats_to_read(&self, account: AccountId) -> Result<Vec<ChatReach>, StoreError> {
        self.read(move |connection| chats_to_read(connection, account))
            .await
    }

    /// Whether a message was captured, whatever became of it since.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn is_captured(
        &self,
        account: AccountId,
        chat: String,
        message_id: String,
    ) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM chat_ids i
                                    JOIN messages m ON m.account_id = i.account_id
                                                   AND m.chat_id = i.identity_id
                                    WHERE i.account_id = ?1 AND i.platform_id = ?2
                                      AND m.platform_id = ?3) AS found",
                )?
                .query_row(params![account, chat, message_id], |row| row.get("found"))?;
            Ok(found)
        })
        .await
    }

    /// The threads of a chat in which something was said since `since_ms`, by their key, the latest
    /// first, at most `limit`.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn active_threads(
        &self,
        account: AccountId,
        chat: String,
        since_ms: i64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT t.thread FROM chat_ids i
                 JOIN conversations t ON t.chat_id = i.chat_id
                 WHERE i.account_id = ?1 AND i.platform_id = ?2 AND t.parent_id IS NOT NULL
                   AND t.last_activity_ms >= ?3
                 ORDER BY t.last_activity_ms DESC LIMIT ?4",
            )?;
            let rows = statement.query_map(params![account, chat, since_ms, limit], |row| {
                row.get("thread")
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// The threads of a chat in which a reply asked an agent something since `since_ms`, by their key, the
    /// latest first, at most `limit`.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn asked_threads(
        &self,
        account: AccountId,
        chat: String,
        since_ms: i64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT t.thread FROM chat_ids i
                 JOIN runs r ON r.chat_id = i.chat_id
                 JOIN conversations t ON t.id = r.conversation_id
                 WHERE i.account_id = ?1 AND i.platform_id = ?2 AND r.created_at_ms >= ?3
                   AND t.parent_id IS NOT NULL
                   AND EXISTS (SELECT 1 FROM run_triggers g JOIN turns q ON q.seq = g.turn_seq
                               WHERE g.run_id = r.id AND q.conversation_id = r.conversation_id)
                 GROUP BY t.id ORDER BY max(r.created_at_ms) DESC LIMIT ?4",
            )?;
            let rows = statement.query_map(params![account, chat, since_ms, limit], |row| {
                row.get("thread")
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

impl<C: MayReadBack> Store<C> {
    /// Notes that messages may be missing since an account was last heard, less `lead_ms`; an older
    /// hole stays as it is. Nothing is missing to an account of which nothing was ever captured.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn open_reach(
        &self,
        account: AccountId,
        lead_ms: i64,
        now_ms: i64,
    ) -> Result<AccountReach, StoreError> {
        self.write(move |connection| open_txn(connection, account, lead_ms, now_ms))
            .await
    }

    /// Queues the job that reads back what was missed in an account's chats.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn request_read_back(
        &self,
        account: AccountId,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let job = Job::ReadBack { account };
        self.write(move |connection| enqueue_txn(connection, &job, Some(account), now_ms))
            .await
    }

    /// Notes until when an account was heard, by the platform's time. A power cut may lose it, which only costs a
    /// longer reading, so it waits for no disk.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn note_heard(&self, account: AccountId, now_ms: i64) -> Result<(), StoreError> {
        self.write_riding(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE account_reach SET heard_until_ms = max(heard_until_ms, ?2)
                     WHERE account_id = ?1",
                )?
                .execute(params![account, now_ms])?;
            Ok(())
        })
        .await
    }

    /// Ends the hole of an account, unless another one was opened since. Returns whether it ended.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn close_reach(
        &self,
        account: AccountId,
        epoch: i64,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let changed = connection
                .prepare_cached(
                    "UPDATE account_reach
                     SET unread_from_ms = NULL, heard_until_ms = ?3
                     WHERE account_id = ?1 AND epoch = ?2",
                )?
                .execute(params![account, epoch, now_ms])?;
            Ok(changed > 0)
        })
        .await
    }

    /// Notes chats that the bot turns out to be in. One that is new is to be read from
    /// `backfill_until_ms` backwards, unless something of it was captured already.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn note_chats(
        &self,
        account: AccountId,
        chats: Vec<String>,
        backfill_until_ms: Option<i64>,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            for chat in &chats {
                note_chat_txn(connection, account, chat, backfill_until_ms)?;
            }
            Ok(())
        })
        .await
    }

    /// Notes that the bot joined a chat: what was said there before is to be read. A joining that is told again
    /// counts once.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn request_backfill(
        &self,
        account: AccountId,
        chat: String,
        until_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO chat_reach (account_id, chat, read_through_ms, backfill_until_ms)
                     VALUES (?1, ?2, ?3, ?3)
                     ON CONFLICT (account_id, chat) DO UPDATE
                     SET backfill_until_ms = excluded.backfill_until_ms,
                         read_through_ms = excluded.read_through_ms
                     WHERE abs(coalesce(read_through_ms, 0) - excluded.read_through_ms) >= ?4",
                )?
                .execute(params![account, chat, until_ms, TOLD_TWICE_MS])?;
            Ok(())
        })
        .await
    }

    /// Notes that nothing is missing in a chat up to a time; a notice that said otherwise goes.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn note_read(
        &self,
        account: AccountId,
        chat: String,
        through_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            ensure_row_txn(connection, account, &chat)?;
            hide_notice_txn(connection, account, &chat)?;
            connection
                .prepare_cached(
                    "UPDATE chat_reach
                     SET read_through_ms = ?3,
                         unread_from_ms = NULL, gap_reason = NULL, gap_turn_seq = NULL
                     WHERE account_id = ?1 AND chat = ?2",
                )?
                .execute(params![account, chat, through_ms])?;
            Ok(())
        })
        .await
    }

    /// Notes that what was said in a chat before the bot joined was read, as far as it is to be.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn note_backfilled(
        &self,
        account: AccountId,
        chat: String,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE chat_reach SET backfill_until_ms = NULL
                     WHERE account_id = ?1 AND chat = ?2",
                )?
                .execute(params![account, chat])?;
            Ok(())
        })
        .await
    }

    /// Says in a chat's timeline that something is missing there.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn note_gap(&self, gap: HistoryGap) -> Result<(), StoreError> {
        self.write(move |connection| note_gap_txn(connection, &gap))
            .await
    }
}

/// Opens a hole. A noted time in the future was written by a wrong clock; then only the time of what was said last is
/// known.
fn open_txn(
    connection: &Connection,
    account: AccountId,
    lead_ms: i64,
    now_ms: i64,
) -> Result<AccountReach, StoreError> {
    let reach = connection
        .prepare_cached(
            "INSERT INTO account_reach (account_id, heard_until_ms, unread_from_ms, epoch)
             SELECT id, min(coalesce(last_captured_ms, ?3), ?3), last_captured_ms - ?2, 1
             FROM accounts WHERE id = ?1
             ON CONFLICT (account_id) DO UPDATE SET epoch = epoch + 1
             RETURNING heard_until_ms, unread_from_ms, epoch",
        )?
        .query_row(params![account, lead_ms, now_ms], |row| {
            Ok((
                row.get("heard_until_ms")?,
                row.get("unread_from_ms")?,
                row.get("epoch")?,
            ))
        })?;
    let (heard_ms, hole_ms, epoch): (i64, Option<i64>, i64) = reach;
    let is_first = epoch == 1;
    let is_ahead = |time_ms: i64| time_ms > now_ms + AHEAD_MS;
    let unread_from_ms = match hole_ms {
        Some(hole_ms) if !is_ahead(hole_ms) => Some(hole_ms),
        None if is_first => None,
        _ if is_ahead(heard_ms) => {
            let said_ms = newest_said_ms(connection, account, now_ms)?;
            Some(said_ms.unwrap_or(0) - lead_ms)
        }
        _ => Some(heard_ms - lead_ms),
    };
    connection
        .prepare_cached(
            "UPDATE account_reach SET unread_from_ms = ?2, heard_until_ms = min(heard_until_ms, ?3)
             WHERE account_id = ?1",
        )?
        .execute(params![account, unread_from_ms, now_ms + AHEAD_MS])?;
    Ok(AccountReach {
        unread_from_ms,
        epoch,
    })
}

/// The platform's time of what was said last in an account, as far as that is not in the future.
fn newest_said_ms(
    connection: &Connection,
    account: AccountId,
    now_ms: i64,
) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT c.last_activity_ms FROM conversations c JOIN chats h ON h.id = c.chat_id
             WHERE h.account_id = ?1 AND c.last_activity_ms <= ?2
             ORDER BY c.last_activity_ms DESC LIMIT 1",
        )?
        .query_row(params![account, now_ms], |row| row.get("last_activity_ms"))
        .optional()?)
}

fn ensure_row_txn(
    connection: &Connection,
    account: AccountId,
    chat: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO chat_reach (account_id, chat) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        )?
        .execute(params![account, chat])?;
    Ok(())
}

fn note_chat_txn(
    connection: &Connection,
    account: AccountId,
    chat: &str,
    backfill_until_ms: Option<i64>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO chat_reach (account_id, chat, backfill_until_ms)
             SELECT ?1, ?2,
                    CASE WHEN EXISTS (SELECT 1 FROM chat_ids i
                                      JOIN conversations c ON c.chat_id = i.chat_id
                                      WHERE i.account_id = ?1 AND i.platform_id = ?2
                                        AND c.turn_count > 0)
                         THEN NULL ELSE ?3 END
             WHERE true ON CONFLICT DO NOTHING",
        )?
        .execute(params![account, chat, backfill_until_ms])?;
    Ok(())
}

fn chats_to_read(
    connection: &Connection,
    account: AccountId,
) -> Result<Vec<ChatReach>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT r.chat, c.kind, r.read_through_ms, r.unread_from_ms, r.backfill_until_ms,
                coalesce(c.last_heard_ms, 0) AS heard
         FROM chat_reach r
         LEFT JOIN chat_ids i ON i.account_id = r.account_id AND i.platform_id = r.chat
         LEFT JOIN chats c ON c.id = i.chat_id
         WHERE r.account_id = ?1 AND coalesce(c.is_present, 1) = 1
         UNION ALL
         SELECT c.platform_id, c.kind, NULL, NULL, NULL, c.last_heard_ms
         FROM chats c
         WHERE c.account_id = ?1 AND c.is_present = 1 AND c.last_heard_ms > 0
           AND NOT EXISTS (SELECT 1 FROM chat_reach r
                           WHERE r.account_id = ?1 AND r.chat = c.platform_id)
         ORDER BY heard DESC",
    )?;
    let rows = statement.query_map([account], |row| {
        let kind: Option<String> = row.get("kind")?;
        Ok(ChatReach {
            chat: row.get("chat")?,
            kind: kind.as_deref().and_then(chat_kind_from_name),
            is_heard: row.get::<_, i64>("heard")? > 0,
            read_through_ms: row.get("read_through_ms")?,
            unread_from_ms: row.get("unread_from_ms")?,
            backfill_until_ms: row.get("backfill_until_ms")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A notice that may be taken back: there is at most one for each chat, moved on as the hole grows.
fn note_gap_txn(connection: &Connection, gap: &HistoryGap) -> Result<(), StoreError> {
    let (account, chat) = (gap.account, gap.place.chat.as_str());
    ensure_row_txn(connection, account, chat)?;
    if gap.may_be_read_later {
        hide_notice_txn(connection, account, chat)?;
    }
    let row = ensure_chat_txn(connection, account, chat)?;
    let kind = gap.place.kind.or(row.kind);
    connection
        .prepare_cached(
            "UPDATE chats SET title = coalesce(?2, title), kind = coalesce(kind, ?3) WHERE id = ?1",
        )?
        .execute(params![row.id, gap.place.title, kind.map(chat_kind_name)])?;
    let conversation =
        ensure_conversation_txn(connection, row.id, ConversationSeat::Chat, gap.now_ms)?;
    let scope = conversation.scope(kind);
    let seq = insert_notice_txn(connection, gap, &conversation, scope.name())?;
    let may_be_read = gap.may_be_read_later;
    connection
        .prepare_cached(
            "UPDATE chat_reach
             SET gap_reason = ?3,
                 gap_turn_seq = CASE ?4 WHEN 1 THEN ?5 ELSE gap_turn_seq END,
                 unread_from_ms = CASE ?4 WHEN 1 THEN coalesce(?6, unread_from_ms)
                                  ELSE unread_from_ms END
             WHERE account_id = ?1 AND chat = ?2",
        )?
        .execute(params![
            account,
            chat,
            gap.reason,
            may_be_read,
            seq,
            gap.unread_from_ms
        ])?;
    Ok(())
}

fn insert_notice_txn(
    connection: &Connection,
    gap: &HistoryGap,
    conversation: &ConversationRow,
    scope: &str,
) -> Result<i64, StoreError> {
    let daemon = HeardSender {
        kind: ParticipantKind::System,
        platform_id: DAEMON,
        display_name: None,
        username: None,
        is_bot: None,
    };
    let participant = upsert_participant_txn(connection, gap.account, daemon, gap.now_ms)?;
    connection
        .prepare_cached(
            "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope, visibility,
                    participant_id, content, captured_at_ms, is_inbound)
             VALUES (?1, ?2, ?3, 0, ?4, ?5, 'timeline', ?6, ?7, ?8, 0)",
        )?
        .execute(params![
            TurnId::generate(),
            conversation.row,
            gap.at_ms.min(gap.now_ms),
            TurnKind::Notice,
            scope,
            participant,
            gap.text,
            gap.now_ms,
        ])?;
    Ok(connection.last_insert_rowid())
}

/// Takes back the notice of a hole that was read since.
fn hide_notice_txn(
    connection: &Connection,
    account: AccountId,
    chat: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE turns SET visibility = 'hidden', content = ''
             WHERE seq = (SELECT gap_turn_seq FROM chat_reach
                          WHERE account_id = ?1 AND chat = ?2)",
        )?
        .execute(params![account, chat])?;
    Ok(())
}

/// Reads since when an account's messages may be missing, and where some are.
pub(crate) fn read_reach(
    connection: &Connection,
    status: &mut AccountStatus,
) -> Result<(), StoreError> {
    status.unread_from_ms = connection
        .prepare_cached("SELECT unread_from_ms FROM account_reach WHERE account_id = ?1")?
        .query_row([status.account], |row| row.get("unread_from_ms"))
        .optional()?
        .flatten();
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FILTER (WHERE backfill_until_ms IS NOT NULL) AS backfills,
                count(*) FILTER (WHERE gap_reason IS NOT NULL) AS gaps,
                max(chat || ': ' || gap_reason) AS a_gap
         FROM chat_reach WHERE account_id = ?1",
    )?;
    (status.backfills, status.history_gaps, status.history_gap) =
        statement.query_row([status.account], |row| {
            Ok((
                count_from(row.get("backfills")?),
                count_from(row.get("gaps")?),
                row.get("a_gap")?,
            ))
        })?;
    Ok(())
}
