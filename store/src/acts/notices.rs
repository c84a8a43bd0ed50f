//! Notices that the daemon posts in a chat by itself: that it is not served, that a limit is met.

use crate::acts::arrival::Arrival;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::turn_rows::TurnRow;
use vocative_contract::outbound::{Part, Target};

use crate::StoreError;
use crate::acts::triggers::run_place_txn;
use crate::contract::{Captured, NewMessage};
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn, json, said_to};
use crate::rows::pairings::offer_code_txn;
use crate::rows::participants::{DAEMON, HeardSender, upsert_participant_txn};
use crate::rows::places::{ConversationRow, ensure_chat_txn};
use crate::rows::turns::{NewTurn, insert_turn_txn};
use vocative_core::addressing::{Notice, NoticeKind};
use vocative_core::ids::{AccountId, ChatId, Seq};
use vocative_core::turn::{ParticipantKind, TurnKind};

/// Turns a message away: nothing of it is stored. A notice needs its chat's ids, and is no turn.
pub(crate) fn refuse_txn(
    connection: &Connection,
    message: &NewMessage,
    notice: Option<&Notice>,
) -> Result<Captured, StoreError> {
    let Some(notice) = notice else {
        return Ok(Captured::NotAdmitted { has_notice: false });
    };
    let chat = ensure_chat_txn(connection, message.account, &message.place.chat)?;
    note_notice_txn(connection, chat.id, notice.kind, message.received_at_ms)?;
    let target = Target {
        chat: message.place.chat.clone(),
        thread: message.place.thread.clone(),
        topic: message.place.topic.clone(),
        reply_to: None,
    };
    let text = refusal_text_txn(connection, message, notice)?;
    let post = NewPost {
        account: message.account,
        chat: chat.id,
        turn_seq: None,
        person: notice.is_private.then_some(message.sender.id.as_str()),
        target: &target,
        text: &text,
        now_ms: message.received_at_ms,
    };
    queue_post_txn(connection, &post)?;
    Ok(Captured::NotAdmitted { has_notice: true })
}

/// The notice for a person who is not served: with a code, where they may be admitted by one.
fn refusal_text_txn(
    connection: &Connection,
    message: &NewMessage,
    notice: &Notice,
) -> Result<String, StoreError> {
    let NoticeKind::Unpaired { language } = notice.kind else {
        return Ok(notice.text.clone());
    };
    let who = (message.sender.id.as_str(), message.place.chat.as_str());
    let (account, now_ms) = (message.account, message.received_at_ms);
    let code = offer_code_txn(connection, account, who, language, now_ms)?;
    let offered = code.map(|code| language.pairing_offered(code.shown()));
    Ok(offered.unwrap_or_else(|| notice.text.clone()))
}

/// Posts a notice to one person where they wrote; it is no turn, because the room does not see it.
fn tell_person_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    notice: &Notice,
) -> Result<(), StoreError> {
    let message = arrival.message;
    let place = &message.place;
    let target = Target {
        chat: place.chat.clone(),
        thread: place.thread.clone(),
        topic: place.topic.clone(),
        reply_to: None,
    };
    let post = NewPost {
        account: message.account,
        chat: arrival.chat.id,
        turn_seq: None,
        person: Some(&message.sender.id),
        target: &target,
        text: &notice.text,
        now_ms: message.received_at_ms,
    };
    queue_post_txn(connection, &post)
}

/// Posts a notice about a captured turn where the answer would have been.
pub(crate) fn post_notice_turn_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    trigger: &TurnRow,
    notice: &Notice,
) -> Result<(), StoreError> {
    if notice.is_private {
        return tell_person_txn(connection, arrival, notice);
    }
    let message = arrival.message;
    let now_ms = message.received_at_ms;
    note_notice_txn(connection, arrival.chat.id, notice.kind, now_ms)?;
    let place = run_place_txn(
        connection,
        trigger,
        &message.message_id,
        &arrival.verdict,
        now_ms,
    )?;
    let daemon = HeardSender {
        kind: ParticipantKind::System,
        platform_id: DAEMON,
        display_name: None,
        username: None,
        is_bot: None,
    };
    let participant = upsert_participant_txn(connection, message.account, daemon, now_ms)?;
    let (sent_at_ms, ordinal) = newest_position(connection, &place, trigger)?;
    let turn = insert_turn_txn(
        connection,
        &NewTurn {
            conversation: &place,
            sent_at_ms,
            ordinal,
            kind: TurnKind::Notice,
            scope: place.scope(arrival.chat.kind),
            participant,
            content: &notice.text,
            attachments: None,
            reply_to_seq: Some(trigger.seq),
            reply_to_message: None,
            quote: None,
            album: None,
            tokens: None,
            is_inbound: false,
            captured_at_ms: now_ms,
        },
    )?;
    let key = Some(place.thread.clone()).filter(|key| !key.is_empty());
    let (thread, topic) = if place.is_topic {
        (None, key)
    } else {
        (key, None)
    };
    let target = Target {
        chat: message.place.chat.clone(),
        thread,
        topic,
        reply_to: Some(message.message_id.clone()),
    };
    let post = NewPost {
        account: message.account,
        chat: arrival.chat.id,
        turn_seq: Some(turn.seq),
        person: None,
        target: &target,
        text: &notice.text,
        now_ms,
    };
    queue_post_txn(connection, &post)
}

/// The position of the newest turn there. A turn of ours takes it, and is ordered after that turn by its seq.
fn newest_position(
    connection: &Connection,
    place: &ConversationRow,
    trigger: &TurnRow,
) -> Result<(i64, i64), StoreError> {
    let newest = connection
        .prepare_cached(
            "SELECT sent_at_ms, ordinal FROM turns WHERE conversation_id = ?1
             ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT 1",
        )?
        .query_row([place.row], |row| {
            Ok((row.get("sent_at_ms")?, row.get("ordinal")?))
        })
        .optional()?;
    let of_trigger = (trigger.sent_at_ms, trigger.ordinal);
    Ok(newest.map_or(of_trigger, |newest| of_trigger.max(newest)))
}

fn note_notice_txn(
    connection: &Connection,
    chat: ChatId,
    kind: NoticeKind,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = match kind {
        NoticeKind::NotServed | NoticeKind::Unpaired { .. } => {
            "UPDATE chats SET refused_notice_at_ms = ?2 WHERE id = ?1"
        }
        NoticeKind::LimitMet | NoticeKind::NotAtWork => {
            "UPDATE chats SET limit_notice_at_ms = ?2 WHERE id = ?1"
        }
        // Sent each time, so no time is noted.
        NoticeKind::Stopped | NoticeKind::NotCounted => return Ok(()),
        NoticeKind::Quiet { until_ms } => {
            connection
                .prepare_cached("UPDATE chats SET quiet_told_until_ms = ?2 WHERE id = ?1")?
                .execute(params![chat, until_ms])?;
            return Ok(());
        }
    };
    connection
        .prepare_cached(sql)?
        .execute(params![chat, now_ms])?;
    Ok(())
}

struct NewPost<'a> {
    account: AccountId,
    chat: ChatId,
    turn_seq: Option<i64>,
    /// The only person who sees the post; `None` = everybody.
    person: Option<&'a str>,
    target: &'a Target,
    text: &'a str,
    now_ms: i64,
}

fn queue_post_txn(connection: &Connection, post: &NewPost<'_>) -> Result<(), StoreError> {
    let posts = NewPosts {
        account: post.account,
        chat: post.chat,
        turn: post.turn_seq.map(Seq),
        run_row: None,
        operation: &said_to(post.person.map(str::to_owned)),
        target: post.target,
        parts: &[Part::plain(post.text)],
        now_ms: post.now_ms,
    };
    insert_posts_txn(connection, &posts).map(drop)
}

/// Posts a notice in a chat, or to one person there, by the platform's ids of both. It is no turn.
pub(crate) fn tell_chat_txn(
    connection: &Connection,
    (account, chat): (AccountId, ChatId),
    (platform_chat, person): (&str, Option<&str>),
    text: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let target = Target {
        chat: platform_chat.to_owned(),
        thread: None,
        topic: None,
        reply_to: None,
    };
    let post = NewPost {
        account,
        chat,
        turn_seq: None,
        person,
        target: &target,
        text,
        now_ms,
    };
    queue_post_txn(connection, &post)
}

/// How long an introduction waits in case the room already got one under another id: when a group is upgraded,
/// Telegram may first report that the bot was added to the new one.
const INTRODUCTION_WAIT_MS: i64 = 2_000;

/// Says who the bot is in a room that it was added to, once.
pub(crate) fn introduce_txn(
    connection: &Connection,
    account: AccountId,
    (chat, platform_chat): (ChatId, &str),
    text: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let is_first = connection
        .prepare_cached(
            "UPDATE chats SET introduced_at_ms = ?2 WHERE id = ?1 AND introduced_at_ms IS NULL",
        )?
        .execute(params![chat, now_ms])?;
    if is_first == 0 {
        return Ok(());
    }
    let place = (account, chat);
    tell_chat_txn(connection, place, (platform_chat, None), text, now_ms)?;
    connection
        .prepare_cached(
            "UPDATE outbox SET not_before_ms = ?2 + ?3
             WHERE id = (SELECT max(id) FROM outbox WHERE chat_id = ?1)",
        )?
        .execute(params![chat, now_ms, INTRODUCTION_WAIT_MS])?;
    Ok(())
}

/// Withdraws an introduction that waits in a room which turns out to be another room that already got one.
pub(crate) fn withdraw_introduction_txn(
    connection: &Connection,
    from: ChatId,
    target: ChatId,
) -> Result<(), StoreError> {
    // The introduction is the only such post without turn and run that is committed at exactly that time.
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'replaced', payload = ?3
             WHERE chat_id = ?2 AND turn_seq IS NULL AND run_id IS NULL AND operation = 'post'
               AND state = 'pending' AND attempts = 0
               AND created_at_ms = (SELECT introduced_at_ms FROM chats WHERE id = ?2)
               AND (SELECT introduced_at_ms FROM chats WHERE id = ?1) IS NOT NULL",
        )?
        .execute(params![from, target, json(&Part::plain(""))])?;
    Ok(())
}
