//! Follow-ups that were captured before their thread was known to be an agent's.
//!
//! Events come late and out of order, and missed messages are read back while people go on talking. So
//! a turn that addresses nobody, but would be a follow-up if its thread were an agent's, is marked when it
//! is captured. Whatever makes the thread an agent's afterwards (its root is captured, is edited into a
//! question, or turns out to be a post of ours) has these turns judged again in its own transaction, in
//! the room's order, as if they came now. A verdict that the turn addresses an agent removes the mark, so
//! that happens once.

use crate::acts::arrival::Arrival;
use crate::engine::sql::{Connection, Row, params};
use crate::rows::turn_rows::{TurnRow, turn_at};
use vocative_contract::envelope::{InboundMessage, Place, Sender, SenderKind};

use crate::StoreError;
use crate::acts::facts::read_facts;
use crate::acts::triggers::Addressed;
use crate::contract::NewMessage;
use crate::rows::columns::attachments_from;
use crate::rows::places::{ChatRow, find_chat, find_conversation};
use vocative_core::addressing::{FollowUpJudge, Verdict};
use vocative_core::ids::{AccountId, ParticipantId};
use vocative_core::running::follow_ups::{FOLLOW_UPS_MAX, is_settled};
use vocative_core::turn::ParticipantKind;

/// A thread that has become an agent's.
pub(crate) struct Rooted<'a> {
    pub(crate) account: AccountId,
    /// The place of its root.
    pub(crate) place: &'a Place,
    /// The message id of its root.
    pub(crate) root: &'a str,
    /// Since when it is an agent's, by the platform's time, in milliseconds since the Unix epoch.
    pub(crate) since_ms: i64,
    pub(crate) now_ms: i64,
    pub(crate) judge: &'a FollowUpJudge,
}

/// Marks a turn as one that would go on with its thread, or not.
pub(crate) fn note_follow_up_txn(
    connection: &Connection,
    seq: i64,
    follows_up: bool,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE turns SET follows_up = ?2 WHERE seq = ?1 AND follows_up <> ?2")?
        .execute(params![seq, follows_up])?;
    Ok(())
}

/// Judges again the turns said in a thread since it became an agent's, but captured before that was
/// known.
pub(crate) fn judge_follow_ups_txn(
    connection: &Connection,
    rooted: &Rooted<'_>,
) -> Result<Addressed, StoreError> {
    let mut addressed = Addressed::default();
    let find_chat = || find_chat(connection, rooted.account, &rooted.place.chat);
    let Some(chat) = find_chat()? else {
        return Ok(addressed);
    };
    let Some(thread) = find_conversation(connection, chat.id, rooted.root)? else {
        return Ok(addressed);
    };
    let waiting = waiting(connection, thread.row, rooted.since_ms)?;
    if waiting.len() == FOLLOW_UPS_MAX {
        tracing::warn!(
            chat.id = %rooted.place.chat, follow_ups = FOLLOW_UPS_MAX,
            "more was said in a thread before its first message was captured than is judged again"
        );
    }
    for follow_up in waiting {
        // Judging the previous follow-up may have changed the chat's row by posting a notice.
        let Some(chat) = find_chat()? else { break };
        let changes = judge_again_txn(connection, rooted, chat, &follow_up)?;
        addressed.add(changes);
    }
    Ok(addressed)
}

/// A turn that may be a follow-up.
struct FollowUp {
    seq: i64,
    message_id: String,
    edit_marker: Option<String>,
    person: ParticipantId,
    sender: Sender,
}

fn waiting(
    connection: &Connection,
    thread_row: i64,
    since_ms: i64,
) -> Result<Vec<FollowUp>, StoreError> {
    let max = i64::try_from(FOLLOW_UPS_MAX).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "SELECT t.seq, m.platform_id AS message, m.edit_marker, p.id AS person, p.platform_id AS sender, p.display_name, p.username
         FROM turns t INDEXED BY turns_following_up
         JOIN participants p ON p.id = t.participant_id
         JOIN messages m ON m.turn_seq = t.seq
         WHERE t.follows_up = 1 AND t.conversation_id = ?1 AND t.sent_at_ms >= ?2
           AND t.visibility = 'room'
         ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?3",
    )?;
    let found = statement.query_map(params![thread_row, since_ms, max], follow_up)?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn follow_up(row: &Row<'_>) -> crate::engine::sql::Result<FollowUp> {
    Ok(FollowUp {
        seq: row.get("seq")?,
        message_id: row.get("message")?,
        edit_marker: row.get("edit_marker")?,
        person: row.get("person")?,
        sender: Sender {
            id: row.get("sender")?,
            display_name: row.get("display_name")?,
            username: row.get("username")?,
            // Only turns of served persons are marked.
            kind: SenderKind::Person,
            is_stranger: false,
        },
    })
}

fn judge_again_txn(
    connection: &Connection,
    rooted: &Rooted<'_>,
    chat: ChatRow,
    follow_up: &FollowUp,
) -> Result<Addressed, StoreError> {
    let turn = turn_at(connection, follow_up.seq)?;
    let message = as_captured(rooted, follow_up, &turn)?;
    let facts = read_facts(connection, &message, Some(&chat), Some(turn.seq))?;
    let said = as_said(&message);
    let verdict = (rooted.judge)(&said, &facts);
    if !is_settled(&verdict) {
        return Ok(Addressed::default());
    }
    note_follow_up_txn(connection, turn.seq, false)?;
    let arrival = Arrival {
        message: &message,
        chat,
        person: follow_up.person,
        facts,
        verdict,
        ledger: None,
    };
    let mut addressed = arrival.address_txn(connection, &turn, false)?;
    addressed.follow_ups.push(arrival.verdict.runs);
    Ok(addressed)
}

/// A stored turn as the message that it was captured from.
fn as_captured(
    rooted: &Rooted<'_>,
    follow_up: &FollowUp,
    turn: &TurnRow,
) -> Result<NewMessage, StoreError> {
    Ok(NewMessage {
        account: rooted.account,
        place: Place {
            thread: Some(rooted.root.to_owned()),
            ..rooted.place.clone()
        },
        scope_override: None,
        message_id: follow_up.message_id.clone(),
        sender: follow_up.sender.clone(),
        sender_kind: ParticipantKind::User,
        text: turn.content.clone(),
        attachments: attachments_from(turn.attachments.as_deref())?,
        reply_to: None,
        quote: None,
        album: None,
        sent_at_ms: turn.sent_at_ms,
        ordinal: turn.ordinal,
        is_edit: false,
        edit_marker: follow_up.edit_marker.clone(),
        received_at_ms: rooted.now_ms,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge: Box::new(|_| Verdict::default()),
        judge_follow_up: None,
    })
}

/// The message as the judge reads it. It mentions nobody, else it would not be marked.
fn as_said(message: &NewMessage) -> InboundMessage {
    InboundMessage {
        place: message.place.clone(),
        message_id: message.message_id.clone(),
        sender: message.sender.clone(),
        text: message.text.clone(),
        mentions: Vec::new(),
        mentions_bot: false,
        command: None,
        reply_to: None,
        attachments: message.attachments.clone(),
        album: None,
        sent_at_ms: message.sent_at_ms,
        ordinal: message.ordinal,
        edit_marker: message.edit_marker.clone(),
    }
}
