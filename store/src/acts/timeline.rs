//! The timeline of a run: two turns for each call, also for calls that were at work when the run ended.

use crate::StoreError;
use crate::acts::reply_room::{ReplyRoom, position, room_of, triggers};
use crate::contract::ToolTurn;
use crate::engine::sql::{Connection, params};
use crate::new_id::NewId as _;
use crate::rows::leases::LeasedRun;
use crate::rows::participants::{DAEMON, HeardSender, upsert_participant_txn};
use crate::rows::run_events::{ToldResult, tell_result_txn};
use crate::rows::turn_sources::{note_run_sources_txn, note_sources_txn};
use vocative_core::ids::{ParticipantId, ToolCallId, TurnId};
use vocative_core::tool_call::{CallState, Refusal};
use vocative_core::turn::{ParticipantKind, TokenCount, TurnKind};

/// What the model and the timeline are told of a call that was at work when its run ended.
const CUT_OFF: &str =
    "Error: the run was ended while this call was at work; it may have acted or not";

/// A call and its result as two turns.
pub(crate) struct TurnPair<'a> {
    pub(crate) id: ToolCallId,
    pub(crate) step: u32,
    pub(crate) agent_display_name: Option<&'a str>,
    pub(crate) turn: &'a ToolTurn,
}

/// A turn of the timeline to be written.
struct TimelineTurn<'a> {
    id: TurnId,
    kind: TurnKind,
    participant: ParticipantId,
    call_id: &'a str,
    content: &'a str,
    tokens: Option<&'a TokenCount>,
    reply_to_seq: Option<i64>,
}

/// Where the turns of a run's calls go.
pub(crate) struct Timeline {
    pub(crate) room: ReplyRoom,
    pub(crate) run_row: i64,
    pub(crate) agent: String,
    /// The question.
    pub(crate) asked: Option<i64>,
    pub(crate) sent_at_ms: i64,
    pub(crate) ordinal: i64,
    pub(crate) now_ms: i64,
}

impl Timeline {
    pub(crate) fn of(
        connection: &Connection,
        leased: &LeasedRun,
        now_ms: i64,
    ) -> Result<Self, StoreError> {
        let room = room_of(connection, leased)?;
        let triggers = triggers(connection, leased.row)?;
        let (sent_at_ms, ordinal) = position(connection, &room, &triggers, now_ms)?;
        let agent = connection
            .prepare_cached("SELECT agent FROM runs WHERE id = ?1")?
            .query_row([leased.row], |row| row.get("agent"))?;
        Ok(Self {
            room,
            run_row: leased.row,
            agent,
            asked: triggers.last().map(|trigger| trigger.seq.0),
            sent_at_ms,
            ordinal,
            now_ms,
        })
    }

    pub(crate) fn write_txn(
        &self,
        connection: &Connection,
        pair: &TurnPair<'_>,
        sources: &[i64],
    ) -> Result<i64, StoreError> {
        let call = pair.turn;
        let speaker = |kind, id: &str, name: Option<&str>| {
            let heard = HeardSender {
                kind,
                platform_id: id,
                display_name: name,
                username: None,
                is_bot: None,
            };
            upsert_participant_txn(connection, self.room.account, heard, self.now_ms)
        };
        let called = TimelineTurn {
            id: TurnId(pair.id.0),
            kind: TurnKind::ToolCall,
            participant: speaker(ParticipantKind::Agent, &self.agent, pair.agent_display_name)?,
            call_id: &call.call_id,
            content: &call.call,
            tokens: call.call_tokens.as_ref(),
            reply_to_seq: self.asked,
        };
        let called_seq = self.insert_txn(connection, &called)?;
        let result = TimelineTurn {
            id: TurnId::generate(),
            kind: TurnKind::ToolResult,
            participant: if call.is_known {
                speaker(ParticipantKind::System, &call.tool, Some(&call.tool))?
            } else {
                // A tool that does not exist is answered by the daemon: a name that a model made up must not
                // become a speaker.
                speaker(ParticipantKind::System, DAEMON, None)?
            },
            call_id: &call.call_id,
            content: &call.result,
            tokens: call.result_tokens.as_ref(),
            reply_to_seq: Some(called_seq),
        };
        let result_seq = self.insert_txn(connection, &result)?;
        let told = ToldResult {
            step: pair.step,
            call_id: &call.call_id,
            tool: &call.tool,
            turn: result.id,
        };
        let owner = (self.run_row, self.room.conversation.row);
        tell_result_txn(connection, owner, &told, self.now_ms)?;
        note_run_sources_txn(connection, self.run_row, sources)?;
        note_sources_txn(connection, result_seq, sources)?;
        Ok(result_seq)
    }

    /// Inserts a turn that only the timeline shows: not in the index, not counted among the room's.
    fn insert_txn(
        &self,
        connection: &Connection,
        turn: &TimelineTurn<'_>,
    ) -> Result<i64, StoreError> {
        connection
            .prepare_cached(
                "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope, visibility,
                        participant_id, content, reply_to_seq, call_id, run_id, tokens, counter,
                        captured_at_ms, is_inbound)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'timeline', ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0)",
            )?
            .execute(params![
                turn.id,
                self.room.conversation.row,
                self.sent_at_ms,
                self.ordinal,
                turn.kind,
                self.room.conversation.scope(self.room.kind),
                turn.participant,
                turn.content,
                turn.reply_to_seq,
                turn.call_id,
                self.run_row,
                turn.tokens.map(|count| count.tokens),
                turn.tokens.map(|count| count.counter.as_str()),
                self.now_ms,
            ])?;
        Ok(connection.last_insert_rowid())
    }
}

/// Ends the open calls of a run that ends: a call that acts and was at work may have acted, the others will not act.
/// The timeline shows only the tool's name, because the run may end to remove the words that the tool was asked.
pub(crate) fn end_calls_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE tool_calls SET state = ?2, refusal = ?3, finished_at_ms = ?4
             WHERE run_id = ?1
               AND (state IN ('waiting', 'ready') OR (state = 'running' AND rule = 'repeatable'))",
        )?
        .execute((run_row, CallState::Denied, Refusal::RunEnded, now_ms))?;
    let cut_off: Vec<(i64, ToolCallId, u32, String, String)> = connection
        .prepare_cached(
            "SELECT id, uuid, step, call_id, tool FROM tool_calls
             WHERE run_id = ?1 AND state = 'running' ORDER BY step, n",
        )?
        .query_map([run_row], |row| {
            Ok((
                row.get("id")?,
                row.get("uuid")?,
                row.get("step")?,
                row.get("call_id")?,
                row.get("tool")?,
            ))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    if cut_off.is_empty() {
        return Ok(());
    }
    let leased = LeasedRun {
        row: run_row,
        conversation_row: connection
            .prepare_cached("SELECT conversation_id FROM runs WHERE id = ?1")?
            .query_row([run_row], |row| row.get("conversation_id"))?,
        is_cancelled: true,
    };
    let timeline = Timeline::of(connection, &leased, now_ms)?;
    for (row, id, step, call_id, tool) in cut_off {
        connection
            .prepare_cached("UPDATE tool_calls SET state = ?2, finished_at_ms = ?3 WHERE id = ?1")?
            .execute((row, CallState::Unknown, now_ms))?;
        let turn = ToolTurn {
            call_id,
            call: tool.clone(),
            tool,
            is_known: true,
            call_tokens: None,
            result: CUT_OFF.to_owned(),
            result_tokens: None,
            sources: Vec::new(),
        };
        let pair = TurnPair {
            id,
            step,
            agent_display_name: None,
            turn: &turn,
        };
        timeline.write_txn(connection, &pair, &[])?;
    }
    Ok(())
}
