//! Tool calls of a leased run: recorded when the model asks for them, begun, and finished with their result.
//!
//! A call that acts is marked as begun, and that is on disk, before it is made. Its result and its two turns of
//! the timeline are one transaction, so that every call has exactly one pair of turns, however often its run is
//! resumed.

use crate::acts::call_files::attach_txn;
use crate::acts::timeline::{Timeline, TurnPair};
use crate::capability::MayReply;
use crate::engine::contents::FinishedContent;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::leases::{LeasedRun, leased_run};
use crate::rows::turn_sources::visible_sources;
use std::path::Path;
use vocative_contract::crash::{self, Sabotage};

use crate::acts::approving::{consent, sought_after, use_grant_txn};
use crate::acts::changing::know_changed_txn;
use crate::acts::delegating::taint_by_task_txn;
use crate::contract::{CallBegun, CallToBegin, CallToFinish, GoneOn, NewToolCall, StepOutcome};
use crate::new_id::NewId as _;
use crate::rows::hook_verdicts::keep_verdicts_txn;
use crate::rows::run_taints::{are_of_others, taint_txn};
use crate::rows::tool_calls::calls_of_step;
use crate::rows::tool_days::{begun_today, count_begun_txn, count_over_txn};
use crate::{Store, StoreError};
use vocative_core::acting::{Beginning, CallFacts, begin};
use vocative_core::approving::{Consent, OutsideSource, Taint};
use vocative_core::ids::{LeaseToken, RunId, ToolCallId};
use vocative_core::tool_call::{CHANGED_DIGEST, CallDigest, CallRule, CallState, StoredCall};

impl<C: MayReply> Store<C> {
    /// Records the calls that a recorded step asks for; calls that are recorded already stay as they are. Returns
    /// the step's calls in order: none if the step was forgotten, `None` if the lease is no longer held.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn record_tool_calls(
        &self,
        run: RunId,
        token: LeaseToken,
        step: u32,
        calls: Vec<NewToolCall>,
        now_ms: i64,
    ) -> Result<Option<Vec<StoredCall>>, StoreError> {
        self.write_riding(move |connection| {
            let Some(leased) = leased_run(connection, run, token)? else {
                return Ok(None);
            };
            let has_step: bool = connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM steps WHERE run_id = ?1 AND n = ?2) AS has_step",
                )?
                .query_row((leased.row, step), |row| row.get("has_step"))?;
            if !has_step {
                // The step was forgotten together with one of its sources.
                return Ok(Some(Vec::new()));
            }
            for (n, call) in calls.iter().enumerate() {
                record_call_txn(connection, (leased.row, step, n), call, now_ms)?;
            }
            calls_of_step(connection, leased.row, step).map(Some)
        })
        .await
    }

    /// Decides whether a call is made. A call that acts is on disk as begun when this returns; for any other call
    /// a power cut may undo the mark.
    ///
    /// # Errors
    /// Storage refuses; then the call is not to be made.
    pub async fn begin_tool_call(&self, call: CallToBegin) -> Result<CallBegun, StoreError> {
        let rule = call.rule;
        let job = move |connection: &Connection| begin_call_txn(connection, &call);
        match rule {
            CallRule::Repeatable => self.write_riding(job).await,
            CallRule::Keyed | CallRule::Once => self.write(job).await,
        }
    }

    /// Lets a call go on whose server asked people: from here on it may act.
    ///
    /// # Errors
    /// Storage refuses; then the call is not to be made.
    pub async fn go_on_with_call(
        &self,
        run: RunId,
        token: LeaseToken,
        call: ToolCallId,
    ) -> Result<GoneOn, StoreError> {
        self.write(move |connection| {
            let Some(leased) = leased_run(connection, run, token)? else {
                return Ok(GoneOn::Stale);
            };
            let begun = connection
                .prepare_cached(
                    "UPDATE tool_calls SET state = 'running' WHERE uuid = ?1 AND run_id = ?2 AND step IS NOT NULL
                       AND (state IN ('ready', 'waiting') OR state = 'running' AND rule = 'repeatable')",
                )?
                .execute((call, leased.row))?;
            Ok(match begun {
                0 => GoneOn::SourceGone,
                _ => GoneOn::Begun,
            })
        })
        .await
    }

    /// Finishes a call with its result.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn finish_tool_call(&self, call: CallToFinish) -> Result<StepOutcome, StoreError> {
        let contents = self.written_files(&call.files).await?;
        let folder = self.files_folder().to_owned();
        self.write(move |connection| finish_call_txn(connection, &call, (&folder, contents)))
            .await
    }
}

fn record_call_txn(
    connection: &Connection,
    (run_row, step, n): (i64, u32, usize),
    call: &NewToolCall,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO tool_calls
                 (uuid, run_id, step, n, call_id, tool, arguments, digest, rule, state, created_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (run_id, step, n) DO NOTHING",
        )?
        .execute(params![
            ToolCallId::generate(),
            run_row,
            step,
            i64::try_from(n).unwrap_or(i64::MAX),
            call.call_id,
            call.tool,
            call.arguments,
            &call.digest[..],
            call.rule,
            CallState::Ready,
            now_ms,
        ])?;
    Ok(())
}

/// The row of a call, read before it is changed.
struct CallRow {
    row: i64,
    step: u32,
    n: u32,
    tool: String,
    digest: CallDigest,
    state: CallState,
}

fn call_row(
    connection: &Connection,
    leased: &LeasedRun,
    call: ToolCallId,
) -> Result<Option<CallRow>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT id, step, n, tool, digest, state FROM tool_calls
             WHERE uuid = ?1 AND run_id = ?2 AND step IS NOT NULL",
        )?
        .query_row((call, leased.row), |row| {
            Ok(CallRow {
                row: row.get("id")?,
                step: row.get("step")?,
                n: row.get("n")?,
                tool: row.get("tool")?,
                digest: row.get("digest")?,
                state: row.get("state")?,
            })
        })
        .optional()?)
}

fn begin_call_txn(connection: &Connection, call: &CallToBegin) -> Result<CallBegun, StoreError> {
    let Some(leased) = leased_run(connection, call.run, call.token)? else {
        return Ok(CallBegun::Stale);
    };
    let Some(mut row) = call_row(connection, &leased, call.call)? else {
        return Ok(CallBegun::SourceGone);
    };
    if row.state == CallState::Ready && row.digest == CHANGED_DIGEST {
        if !know_changed_txn(connection, row.row, call)? {
            return Ok(CallBegun::Decided(Beginning::Wait));
        }
        row.digest = call.digest;
    }
    keep_verdicts_txn(connection, leased.row, &call.verdicts, call.now_ms)?;
    let digest = narrow_txn(connection, &mut row, call)?;
    let of_call = (leased.row, row.row);
    let sought = sought_after(connection, (leased.row, row.step), call.sought)?;
    let (consent, by, grant) = consent(connection, of_call, &sought, call.now_ms)?;
    let facts = CallFacts {
        is_as_asked: row.digest == digest,
        ..facts_of(connection, &leased, call, &row, consent)?
    };
    let decided = begin(&facts, &call.limits);
    if let (Beginning::Refuse(_), Consent::Refused(state)) = (decided, consent) {
        return Ok(CallBegun::NotAllowed(state, by));
    }
    if decided == Beginning::Make {
        connection
            .prepare_cached(
                "UPDATE tool_calls SET state = ?2, attempts = attempts + 1,
                        started_at_ms = coalesce(started_at_ms, ?3) WHERE id = ?1",
            )?
            .execute((row.row, CallState::Running, call.now_ms))?;
        if row.state != CallState::Running {
            count_begun_txn(connection, call.asker, &row.tool, call.now_ms)?;
        }
        if let Some(grant) = grant {
            use_grant_txn(connection, grant)?;
        }
    }
    Ok(CallBegun::Decided(decided))
}

/// Gives a call the arguments that hooks put in place of its own, if it is still the call that they were asked about.
/// Returns what the call would do now.
fn narrow_txn(
    connection: &Connection,
    row: &mut CallRow,
    call: &CallToBegin,
) -> Result<CallDigest, StoreError> {
    let Some(narrowed) = &call.narrowed else {
        return Ok(call.digest);
    };
    if row.state != CallState::Ready || row.digest != call.digest {
        return Ok(call.digest);
    }
    connection
        .prepare_cached("UPDATE tool_calls SET arguments = ?2, digest = ?3 WHERE id = ?1")?
        .execute(params![row.row, narrowed.arguments, &narrowed.digest[..]])?;
    row.digest = narrowed.digest;
    Ok(narrowed.digest)
}

fn facts_of(
    connection: &Connection,
    leased: &LeasedRun,
    call: &CallToBegin,
    row: &CallRow,
    consent: Consent,
) -> Result<CallFacts, StoreError> {
    let rule = match crash::is_sabotaged(Sabotage::RepeatCalls) {
        true => CallRule::Repeatable,
        false => call.rule,
    };
    let day_tool_calls = begun_today(connection, call.asker, &row.tool, call.now_ms)?;
    let facts = connection
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE attempts > 0) AS run_calls,
                    count(*) FILTER (WHERE attempts > 0 AND tool = ?4) AS run_tool_calls,
                    count(*) FILTER (WHERE digest = ?5 AND step IS NOT NULL AND (step, n) < (?2, ?3)) AS same_calls,
                    count(*) FILTER (WHERE digest = ?5 AND step IS NULL) > 0 AS was_made_before
             FROM tool_calls WHERE run_id = ?1",
        )?
        .query_row(
            params![leased.row, row.step, row.n, row.tool, &row.digest[..]],
            |found| {
                Ok(CallFacts {
                    state: row.state,
                    rule,
                    is_as_asked: row.digest == call.digest,
                    run_calls: found.get("run_calls")?,
                    run_tool_calls: found.get("run_tool_calls")?,
                    day_tool_calls,
                    same_calls: found.get("same_calls")?,
                    was_made_before: found.get("was_made_before")?,
                    consent,
                    is_behind_open: call.is_behind_open,
                })
            },
        )?;
    Ok(facts)
}

fn finish_call_txn(
    connection: &Connection,
    call: &CallToFinish,
    (folder, contents): (&Path, Vec<FinishedContent>),
) -> Result<StepOutcome, StoreError> {
    let Some(leased) = leased_run(connection, call.run, call.token)? else {
        return Ok(StepOutcome::Stale);
    };
    let Some(row) = call_row(connection, &leased, call.call)? else {
        return Ok(StepOutcome::SourceGone);
    };
    let Some(sources) = visible_sources(connection, &call.turn.sources)? else {
        return Ok(StepOutcome::SourceGone);
    };
    if row.state.is_over() {
        return Ok(StepOutcome::Written);
    }
    connection
        .prepare_cached(
            "UPDATE tool_calls SET state = ?2, refusal = ?3, result = ?4, finished_at_ms = ?5 WHERE id = ?1",
        )?
        .execute(params![
            row.row,
            call.state,
            call.refusal,
            call.result,
            call.now_ms
        ])?;
    keep_verdicts_txn(connection, leased.row, &call.verdicts, call.now_ms)?;
    let of_step = (leased.row, row.step);
    note_reading_txn(connection, of_step, call, &sources)?;
    taint_by_task_txn(connection, of_step, row.row, call.now_ms)?;
    if call.turn.is_known {
        count_over_txn(connection, call.asker, &row.tool, call.state, call.now_ms)?;
    }
    let timeline = Timeline {
        agent: call.agent.to_string(),
        ..Timeline::of(connection, &leased, call.now_ms)?
    };
    let pair = TurnPair {
        id: call.call,
        step: row.step,
        agent_display_name: Some(&call.agent_display_name),
        turn: &call.turn,
    };
    let result_seq = timeline.write_txn(connection, &pair, &sources)?;
    let files = (&call.files[..], contents);
    attach_txn(connection, folder, result_seq, files, call.now_ms)?;
    Ok(StepOutcome::Written)
}

/// Marks the run as tainted if the call's result is a text that the run's askers did not write.
fn note_reading_txn(
    connection: &Connection,
    (run_row, step): (i64, u32),
    call: &CallToFinish,
    sources: &[i64],
) -> Result<(), StoreError> {
    let source = if call.is_outside {
        OutsideSource::Tool
    } else if are_of_others(connection, run_row, sources)? {
        OutsideSource::Found
    } else {
        return Ok(());
    };
    let taint = Taint {
        step,
        source,
        tool: call.turn.tool.clone(),
    };
    taint_txn(connection, run_row, &taint, call.now_ms)
}

#[cfg(test)]
#[path = "../tests/calling.rs"]
mod tests;
