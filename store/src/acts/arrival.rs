//! An admitted message, before it becomes a turn.

use std::path::PathBuf;

use vocative_contract::envelope::SenderKind;

use crate::StoreError;
use crate::acts::triggers::Addressed;
use crate::contract::{CapturedTurn, NewMessage};
use crate::engine::sql::{Connection, params};
use crate::rows::messages::{KnownMessage, MessageKey, find_message_of_merged_chat};
use crate::rows::places::ChatRow;
use crate::rows::turn_rows::TurnRow;
use vocative_core::addressing::{MessageFacts, Verdict};
use vocative_core::ids::{ParticipantId, Seq};

/// Exchanges between bots are counted up to this number, which is above any limit on them.
const EXCHANGES_COUNTED_MAX: u32 = 1_000;

/// An admitted message: its chat and sender are rows.
pub(crate) struct Arrival<'a> {
    pub(crate) message: &'a NewMessage,
    pub(crate) chat: ChatRow,
    pub(crate) person: ParticipantId,
    pub(crate) facts: MessageFacts,
    pub(crate) verdict: Verdict,
    /// The ledger file to which erasure orders are also written.
    pub(crate) ledger: Option<PathBuf>,
}

impl Arrival<'_> {
    /// Whether the message addresses an agent that its turn did not address before.
    pub(crate) fn addresses_anew(&self) -> bool {
        let before = &self.facts.addressed_before;
        let addressed = &self.verdict.addressed_to;
        addressed.iter().any(|agent| !before.contains(agent))
    }

    /// Counts consecutive messages of bots to agents; a person's message resets the count.
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
