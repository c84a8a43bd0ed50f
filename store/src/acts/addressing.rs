//! The effects of a captured message's addressees: runs, stops, notices and reactions.

pub(crate) mod follow_ups;

use crate::StoreError;
use crate::acts::addressing::follow_ups::{Rooted, judge_follow_ups_txn};
use crate::acts::arrival::Arrival;
use crate::acts::notices::post_notice_turn_txn;
use crate::acts::overlap::stop_txn;
use crate::acts::triggers::{Addressed, address_txn};
use crate::engine::sql::Connection;
use crate::rows::reactions::{Reaction, react_txn};
use crate::rows::turn_rows::TurnRow;
use vocative_core::addressing::RunVerdict;
use vocative_core::ids::{RunId, Seq};
use vocative_core::running::follow_ups::RootMessage;

impl Arrival<'_> {
    /// Notes whom the turn addresses, queues missing runs, stops runs that are to be stopped, and posts
    /// notices. Replies below it that were captured before it are judged again.
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

    /// Stops the runs that the verdict stops, and posts its notice. Returns the runs that end.
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

    /// Adds the reaction that shows that the message was heard.
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

    /// Since when the message addresses its addressees.
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
