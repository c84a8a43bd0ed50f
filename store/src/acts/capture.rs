//! Capturing one message: is it known, is it admitted, whom does it address, and what is written.
//!
//! Everything happens in one transaction. What an edit, an album's item or a refused message does
//! is in `edits`, `album` and `notices`; whom a turn addresses in `triggers`.

use std::path::PathBuf;

use crate::capability::MayCapture;
use crate::engine::sql::{Connection, params};
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::envelope::SenderKind;
use vocative_contract::outbound::Target;

use crate::acts::changing::change_by_reply_txn;
use crate::acts::commands::{CommandGiver, carry_out_txn};
use crate::acts::edits;
use crate::acts::erasure;
use crate::acts::facts::read_facts;
use crate::acts::follow_ups::{Rooted, judge_follow_ups_txn, note_follow_up_txn};
use crate::acts::forking::begin_of_fork;
use crate::acts::import::claim_twin_txn;
use crate::acts::learn::settle_kind_txn;
use crate::acts::notices::{post_notice_turn_txn, refuse_txn};
use crate::acts::overlap::stop_txn;
use crate::acts::questions::answer_by_reply_txn;
use crate::acts::triggers::{Addressed, address_txn};
use crate::contract::{Captured, CapturedTurn, JudgedMessage, NewMessage};
use crate::rows::album;
use crate::rows::columns::stored_attachments;
use crate::rows::files::queue_files_txn;
use crate::rows::messages::{
    KnownMessage, MessageEntry, MessageKey, add_message_txn, find_message,
    find_message_of_merged_chat,
};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::{
    ChatRow, ConversationSeat, HEARD_EVERY_MS, ensure_chat_txn, ensure_conversation_txn, find_chat,
    hear_chat_txn, name_new_topic_txn, set_root_txn,
};
use crate::rows::raw::keep_envelope_txn;
use crate::rows::reactions::{Reaction, react_txn};
use crate::rows::turns::{NewTurn, TurnRow, insert_turn_txn, turn_at};
use crate::{Store, StoreError};
use vocative_core::addressing::{MessageFacts, NoticeKind, RunVerdict, Verdict};
use vocative_core::command::CommandVerdict;
use vocative_core::ids::{ParticipantId, RunId, Seq};
use vocative_core::running::follow_ups::RootMessage;
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
        // The text that an edit replaces is to be nowhere, the write-ahead log included.
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

/// Exchanges between bots are counted up to this number, which is above any limit on them.
const EXCHANGES_COUNTED_MAX: u32 = 1_000;

/// An admitted message: its chat and sender are rows.
pub(crate) struct Arrival<'a> {
    pub(crate) message: &'a NewMessage,
    pub(crate) chat: ChatRow,
    pub(crate) person: ParticipantId,
    pub(crate) facts: MessageFacts,
    pub(crate) verdict: Verdict,
    /// Where orders to erase are written, too.
    pub(crate) ledger: Option<PathBuf>,
}

impl Arrival<'_> {
    /// Whether it addresses an agent that this turn did not address before.
    pub(crate) fn addresses_anew(&self) -> bool {
        let before = &self.facts.addressed_before;
        let addressed = &self.verdict.addressed_to;
        addressed.iter().any(|agent| !before.contains(agent))
    }

    /// Notes whom the turn addresses, queues what is missing, stops what is to be stopped, and tells
    /// the room what is to be told. What was said below it before it was captured is judged again.
    pub(crate) fn address_txn(
        &self,
        connection: &Connection,
        turn: &TurnRow,
        is_revised: bool,
    ) -> Result<Addressed, StoreError> {
        let now_ms = self.message.received_at_ms;
        let id = &self.message.message_id;
        let revised = (is_revised, now_ms);
        let mut addressed = address_txn(connection, turn, id, &self.verdict, self.person, revised)?;
        if !self.addresses_anew() {
            return Ok(addressed);
        }
        let stopped = self.stop_and_tell_txn(connection, turn)?;
        addressed.cancelled_runs.extend(stopped);
        if addressed.dropped < self.verdict.addressed_to.len() {
            self.react_txn(connection, turn)?;
        }
        if let Some(judge) = self.message.judge_follow_up.as_ref()
            && turn.conversation.thread.is_empty()
        {
            let rooted = Rooted {
                account: self.message.account,
                place: &self.message.place,
                root: id,
                since_ms: self.addresses_since_ms(),
                now_ms,
                judge,
            };
            addressed.add(judge_follow_ups_txn(connection, &rooted)?);
        }
        Ok(addressed)
    }

    /// Stops what is to be stopped, and tells the room what is to be told. Returns the runs that end.
    pub(crate) fn stop_and_tell_txn(
        &self,
        connection: &Connection,
        turn: &TurnRow,
    ) -> Result<Vec<RunId>, StoreError> {
        let now_ms = self.message.received_at_ms;
        let stopped = match self.verdict.runs {
            RunVerdict::Stop { of_everybody } => {
                stop_txn(connection, turn, self.person, of_everybody, now_ms)?
            }
            _ => Vec::new(),
        };
        if let Some(notice) = &self.verdict.notice {
            post_notice_turn_txn(connection, self, turn, notice)?;
        }
        Ok(stopped)
    }

    /// Says with a reaction that it was heard.
    fn react_txn(&self, connection: &Connection, turn: &TurnRow) -> Result<(), StoreError> {
        let is_asked = self.verdict.runs == RunVerdict::Run;
        let Some(reaction) = self.verdict.reaction.as_ref().filter(|_| is_asked) else {
            return Ok(());
        };
        let reaction = Reaction {
            account: self.message.account,
            chat: self.chat.id,
            platform_chat: &self.message.place.chat,
            turn: Seq(turn.seq),
            message_id: &self.message.message_id,
            emoji: &reaction.emoji,
            stays: reaction.stays,
            now_ms: self.message.received_at_ms,
        };
        react_txn(connection, &reaction)
    }

    /// Counts what bots say to agents in a row; a person's word ends the row.
    pub(crate) fn count_exchange_txn(&self, connection: &Connection) -> Result<(), StoreError> {
        let known = self.facts.bot_exchanges;
        let now = match self.message.sender.kind {
            SenderKind::Person => 0,
            SenderKind::System => known,
            SenderKind::Bot => {
                let is_asked = !self.verdict.addressed_to.is_empty();
                known
                    .saturating_add(u32::from(is_asked))
                    .min(EXCHANGES_COUNTED_MAX)
            }
        };
        if now != known {
            connection
                .prepare_cached("UPDATE chats SET bot_exchanges = ?2 WHERE id = ?1")?
                .execute(params![self.chat.id, now])?;
        }
        Ok(())
    }

    /// Since when it addresses whom it does.
    fn addresses_since_ms(&self) -> i64 {
        let message = self.message;
        let root = RootMessage {
            sent_at_ms: message.sent_at_ms,
            received_at_ms: message.received_at_ms,
            is_edit_of_known: message.is_edit && self.facts.is_known,
            edit_marker: message.edit_marker.as_deref(),
        };
        root.addresses_since_ms()
    }
}

/// The platform's time of a message, never later than when it was received.
pub(crate) fn sent_at_ms(message: &NewMessage) -> i64 {
    message.sent_at_ms.min(message.received_at_ms)
}

/// A captured turn as it is reported.
pub(crate) fn captured(turn: &TurnRow, addressed: Addressed) -> CapturedTurn {
    CapturedTurn {
        turn: turn.id,
        conversation: turn.conversation.id,
        seq: Seq(turn.seq),
        new_runs: addressed.new_runs,
        cancelled_runs: addressed.cancelled_runs,
        erasures: addressed.erasures,
        follow_ups: addressed.follow_ups,
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
        (None, Some(turn)) => album::add_item_txn(connection, &arrival, turn)?,
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

/// Whether its sender or its place was erased after it was sent: history does not bring it back.
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

/// Makes a message new that was captured before: the promise of one turn is broken on purpose.
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

/// The message as it was captured before, if it was.
pub(crate) fn known_message(
    connection: &Connection,
    message: &NewMessage,
    chat: Option<&ChatRow>,
) -> Result<Option<KnownMessage>, StoreError> {
    let Some(chat) = chat else {
        return Ok(None);
    };
    let key = MessageKey {
        account: message.account,
        chat,
        message_id: &message.message_id,
    };
    find_message_of_merged_chat(connection, key, Some(sent_at_ms(message)))
}

/// Writes what an admitted message tells besides its text: its chat and its sender.
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

/// Makes the turn of a message that is not known.
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
    } else if let Some(notice) = &arrival.verdict.notice
        && matches!(notice.kind, NoticeKind::NotCounted | NoticeKind::NotAtWork)
    {
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

/// Carries out the command that a new message is. Only the timeline shows the message then: it was not
/// said to the room.
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
