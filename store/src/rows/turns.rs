//! Writing turns: inserting one, replacing its text, and what must stay true with it (the index, revisions,
//! summaries).

use crate::engine::sql::{Connection, params};
use crate::rows::indexed::in_index;
use crate::rows::turn_rows::TurnRow;

use crate::StoreError;
use crate::new_id::NewId as _;
use crate::registry::{
    Class, ErasureRule, ExpiryRule, ExportRule, Fate, MergeRule, OF_TURN, STATE, StoreTable,
    account, text,
};
use crate::rows::files::forget_files_txn;
use crate::rows::memories::forget_memories_of_turn_txn;
use crate::rows::memory_marks::read_again_txn;
use crate::rows::networks::forget_states_of_turn_txn;
use crate::rows::places::{ConversationRow, note_turn_txn};
use crate::rows::search_text::{index_turn_txn, unindex_turn_txn};
use crate::rows::summaries::{SummaryFate, invalidate_summaries_txn, stale_by_late_turn_txn};
use crate::rows::vectors::embed_again_txn;
use vocative_core::ids::{ParticipantId, Seq, TurnId};
use vocative_core::place::Scope;
use vocative_core::turn::{Position, TokenCount, TurnKind};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account("involvements", text(&[], &[], &["agent", "how"]), OF_TURN).goes_with_turn("seq"),
    account("revisions", text(&["content"], &[], &[]), OF_TURN)
        .follows(&["turn_seq"])
        .goes_with_turn("turn_seq"),
    account(
        "turns",
        text(
            &["content", "attachments", "quote"],
            &[],
            &[
                "kind",
                "scope",
                "visibility",
                "reply_to_message",
                "call_id",
                "parent_call_id",
                "root_call_id",
                "counter",
                "album",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            merge: MergeRule::FollowsTurn,
            expiry: ExpiryRule::Emptied(Class::Text),
            export: ExportRule::Exported,
            ..STATE
        },
    )
    .follows(&["reply_to_seq"]),
];

/// A turn to insert.
#[derive(Clone, Debug)]
pub(crate) struct NewTurn<'a> {
    pub(crate) conversation: &'a ConversationRow,
    pub(crate) sent_at_ms: i64,
    pub(crate) ordinal: i64,
    pub(crate) kind: TurnKind,
    pub(crate) scope: Scope,
    pub(crate) participant: ParticipantId,
    pub(crate) content: &'a str,
    pub(crate) attachments: Option<String>,
    pub(crate) reply_to_seq: Option<i64>,
    /// What it replies to, while that is not captured.
    pub(crate) reply_to_message: Option<&'a str>,
    pub(crate) quote: Option<&'a str>,
    pub(crate) album: Option<&'a str>,
    pub(crate) tokens: Option<&'a TokenCount>,
    pub(crate) is_inbound: bool,
    pub(crate) captured_at_ms: i64,
}

/// Inserts a turn that the room sees, and indexes it.
pub(crate) fn insert_turn_txn(
    connection: &Connection,
    turn: &NewTurn<'_>,
) -> Result<TurnRow, StoreError> {
    let id = TurnId::generate();
    connection
        .prepare_cached(
            "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                    participant_id, content, attachments, reply_to_seq, reply_to_message, quote,
                    album, tokens, counter, captured_at_ms, is_inbound)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            id,
            turn.conversation.row,
            turn.sent_at_ms,
            turn.ordinal,
            turn.kind,
            turn.scope,
            turn.participant,
            turn.content,
            turn.attachments,
            turn.reply_to_seq,
            turn.reply_to_message,
            turn.quote,
            turn.album,
            turn.tokens.map(|count| count.tokens),
            turn.tokens.map(|count| count.counter.as_str()),
            turn.captured_at_ms,
            turn.is_inbound,
        ])?;
    let seq = connection.last_insert_rowid();
    index_turn_txn(connection, seq)?;
    note_turn_txn(connection, turn.conversation.row, seq, turn.sent_at_ms)?;
    let at = Position {
        sent_at_ms: turn.sent_at_ms,
        ordinal: turn.ordinal,
        seq: Seq(seq),
    };
    stale_by_late_turn_txn(connection, turn.conversation.row, None, at)?;
    Ok(TurnRow {
        seq,
        id,
        conversation: turn.conversation.clone(),
        sent_at_ms: turn.sent_at_ms,
        ordinal: turn.ordinal,
        content: turn.content.to_owned(),
        attachments: turn.attachments.clone(),
        revision: 1,
        is_inbound: turn.is_inbound,
        album: turn.album.map(str::to_owned),
    })
}

/// What a turn says from here on.
#[derive(Clone, Debug)]
pub(crate) struct Replacement<'a> {
    pub(crate) content: String,
    pub(crate) attachments: Option<String>,
    /// The tokens of the text; `None` if they were not counted.
    pub(crate) tokens: Option<&'a TokenCount>,
    /// Whether the text that goes is kept.
    pub(crate) keep_revision: bool,
    pub(crate) now_ms: i64,
}

/// Makes a new revision of a turn if anything changes. Returns whether it did.
pub(crate) fn revise_turn_txn(
    connection: &Connection,
    turn: &mut TurnRow,
    replacement: Replacement<'_>,
) -> Result<bool, StoreError> {
    if turn.content == replacement.content && turn.attachments == replacement.attachments {
        return Ok(false);
    }
    if replacement.keep_revision {
        connection
            .prepare_cached(
                "INSERT INTO revisions (turn_seq, revision, content, replaced_at_ms, account_id)
                 SELECT ?1, ?2, ?3, ?4, h.account_id
                 FROM conversations c JOIN chats h ON h.id = c.chat_id WHERE c.id = ?5",
            )?
            .execute(params![
                turn.seq,
                turn.revision,
                turn.content,
                replacement.now_ms,
                turn.conversation.row
            ])?;
    }
    let row = turn.conversation.row;
    if is_in_index(connection, turn.seq)? {
        unindex_turn_txn(connection, turn.seq, row, &turn.content)?;
        index_turn_txn(connection, turn.seq)?;
    }
    connection
        .prepare_cached(
            "UPDATE turns SET content = ?2, attachments = ?3, tokens = ?4, counter = ?5,
                    revision = revision + 1
             WHERE seq = ?1",
        )?
        .execute(params![
            turn.seq,
            replacement.content,
            replacement.attachments,
            replacement.tokens.map(|count| count.tokens),
            replacement.tokens.map(|count| count.counter.as_str()),
        ])?;
    embed_again_txn(connection, turn.seq)?;
    if turn.content != replacement.content {
        forget_memories_of_turn_txn(connection, turn.seq)?;
        read_again_txn(connection, turn.seq)?;
        forget_states_of_turn_txn(connection, turn.seq)?;
    }
    forget_files_txn(connection, turn.seq, replacement.attachments.as_deref())?;
    invalidate_summaries_txn(connection, turn, SummaryFate::Stale)?;
    turn.content = replacement.content;
    turn.attachments = replacement.attachments;
    turn.revision += 1;
    Ok(true)
}

/// Whether the index has a turn: what the room sees, and commands of people.
pub(crate) fn is_in_index(connection: &Connection, seq: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(concat!(
            "SELECT ",
            in_index!("t"),
            " AS is_indexed FROM turns t WHERE t.seq = ?1"
        ))?
        .query_row([seq], |row| row.get("is_indexed"))?)
}
