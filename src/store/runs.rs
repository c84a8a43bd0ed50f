//! Runs: who works on what, in which order, under which lease.
//!
//! Within a conversation runs go one at a time, oldest first. Among conversations the one whose
//! oldest run waits longest goes first, counted from when nothing else of the conversation stood
//! before it: a busy room has no advantage. A write that needs a lease compares the token; a stale
//! one writes nothing. Answers are committed in `reply`.

use rusqlite::{Connection, OptionalExtension, Row};
use vocative_channels::crash::{self, Sabotage};

use super::contract::{ClaimRequest, LeaseOutcome, RunLease};
use super::placeholder::retract_txn;
use super::reactions::take_reactions_back_txn;
use super::rows::{conversation_row_id, count_from, missing, stored_count};
use super::run_events::{tell_claim_txn, tell_usage_txn};
use super::{Store, StoreError};
use crate::domain::ids::{AccountId, ConversationId, LeaseToken, OwnerId, RunId, Seq, TurnId};
use crate::domain::run::{ClaimedRun, Run, RunState, Usage};

/// The oldest unfinished run of each conversation that has one, as `heads (id)`: one probe of
/// `runs_open` per conversation, however many runs wait or are finished. The planner would rather
/// walk what is finished, so the index is named.
macro_rules! with_heads {
    ($tail:literal) => {
        concat!(
            "WITH RECURSIVE
             open (conversation_id) AS (
                 SELECT (SELECT conversation_id FROM runs INDEXED BY runs_open
                         WHERE state IN ('queued', 'leased', 'waiting')
                         ORDER BY conversation_id LIMIT 1)
                 UNION ALL
                 SELECT (SELECT r.conversation_id FROM runs r INDEXED BY runs_open
                         WHERE r.state IN ('queued', 'leased', 'waiting')
                           AND r.conversation_id > open.conversation_id
                         ORDER BY r.conversation_id LIMIT 1)
                 FROM open WHERE open.conversation_id IS NOT NULL
             ),
             heads (id) AS (
                 SELECT (SELECT r.id FROM runs r INDEXED BY runs_open
                         WHERE r.state IN ('queued', 'leased', 'waiting')
                           AND r.conversation_id = open.conversation_id
                         ORDER BY r.id LIMIT 1)
                 FROM open WHERE open.conversation_id IS NOT NULL
             ) ",
            $tail
        )
    };
}

const CLAIMABLE_SQL: &str = with_heads!(
    "SELECT r.id, r.cancel_requested_by IS NOT NULL FROM heads JOIN runs r ON r.id = heads.id
     WHERE ((r.state = 'queued' AND r.not_before_ms <= ?1)
            OR (r.state = 'leased' AND r.lease_until_ms <= ?1))
       AND (SELECT h.account_id FROM conversations c JOIN chats h ON h.id = c.chat_id
            WHERE c.id = r.conversation_id) IN (SELECT value FROM json_each(?2))
       AND NOT EXISTS (SELECT 1 FROM runs o INDEXED BY runs_waiting
                       WHERE o.state IN ('queued', 'leased', 'waiting') AND o.state = 'leased'
                         AND o.lease_until_ms > ?1 AND o.conversation_id = r.conversation_id)
     ORDER BY max(r.not_before_ms, r.created_at_ms,
                  coalesce((SELECT p.finished_at_ms FROM runs p
                            WHERE p.conversation_id = r.conversation_id AND p.id < r.id
                            ORDER BY p.id DESC LIMIT 1), 0)), r.id
     LIMIT 1"
);

/// A head that is blocked by another live lease (two chats that were merged) is due when that ends.
const NEXT_DUE_SQL: &str = with_heads!(
    "SELECT min(max(CASE r.state WHEN 'leased' THEN r.lease_until_ms ELSE r.not_before_ms END,
                    coalesce((SELECT max(o.lease_until_ms) FROM runs o INDEXED BY runs_waiting
                              WHERE o.state IN ('queued', 'leased', 'waiting')
                                AND o.state = 'leased'
                                AND o.conversation_id = r.conversation_id), 0)))
     FROM heads JOIN runs r ON r.id = heads.id WHERE r.state IN ('queued', 'leased')"
);

macro_rules! select_runs {
    ($tail:literal) => {
        concat!(
            "SELECT r.id, r.uuid, c.uuid, r.agent, r.state, r.reason, r.not_before_ms, r.owner,
                    r.lease_until_ms, r.as_of_seq, r.first_claimed_at_ms, r.attempt,
                    r.created_at_ms, r.prompt_tokens, r.completion_tokens
             FROM runs r JOIN conversations c ON c.id = r.conversation_id ",
            $tail
        )
    };
}

impl Store {
    /// Leases the oldest run that may start, of a conversation with no leased run; rooms take turns.
    /// Expired leases count as queued.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn claim_run(&self, request: ClaimRequest) -> Result<Option<ClaimedRun>, StoreError> {
        self.write_riding(move |connection| claim_run_txn(connection, &request))
            .await
    }

    /// When the next unfinished run may start or its lease ends, in milliseconds since the Unix
    /// epoch; `None` if there is none. May lie in the past.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn next_run_due_ms(&self) -> Result<Option<i64>, StoreError> {
        self.read(next_run_due_ms).await
    }

    /// Makes a lease last until then.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn extend_run(
        &self,
        run: RunId,
        token: LeaseToken,
        until_ms: i64,
    ) -> Result<RunLease, StoreError> {
        self.write_riding(move |connection| extend_run_txn(connection, run, token, until_ms))
            .await
    }

    /// Gives a run back, to be claimed again not before that time. One that was asked to stop is
    /// cancelled instead.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn requeue_run(
        &self,
        run: RunId,
        token: LeaseToken,
        not_before_ms: i64,
        reason: &str,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        let requeue = Requeue {
            run,
            token,
            not_before_ms,
            reason: reason.to_owned(),
            counts: true,
            now_ms,
        };
        self.write(move |connection| requeue_run_txn(connection, &requeue))
            .await
    }

    /// Gives a run back that its worker was kept from working on, to be claimed again at once. The
    /// attempt does not count: however often a daemon is stopped, the run is not given up for it.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn return_run(
        &self,
        run: RunId,
        token: LeaseToken,
        reason: &str,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        let requeue = Requeue {
            run,
            token,
            not_before_ms: now_ms,
            reason: reason.to_owned(),
            counts: false,
            now_ms,
        };
        self.write(move |connection| requeue_run_txn(connection, &requeue))
            .await
    }

    /// Ends a run without a word in the room: a queued one at once, a leased one is asked to stop.
    /// Returns whether it was unfinished.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn cancel_run(
        &self,
        run: RunId,
        reason: &str,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let reason = reason.to_owned();
        self.write(move |connection| cancel_run_txn(connection, run, &reason, now_ms))
            .await
    }

    /// Runs that wait for a person, newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn held_runs(&self, limit: usize) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| held_runs(connection, limit))
            .await
    }

    /// A person decides that a held run is worked on after all.
    ///
    /// # Errors
    /// `NotFound` if no such run is held.
    pub async fn release_run(&self, run: RunId, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE runs SET state = 'queued', reason = NULL, attempt = 0,
                            not_before_ms = ?2
                     WHERE uuid = ?1 AND state = 'held' RETURNING id",
                )?
                .query_row((run, now_ms), |row| row.get::<_, i64>(0))
                .map_err(|error| missing(error, || format!("a held run {run}")))?;
            Ok(())
        })
        .await
    }

    /// Records a model call of a run: the provider's own message, opaque, and its usage. The same
    /// number again replaces it. A power cut may undo it until the reply is committed; the model is
    /// then asked again.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn record_step(
        &self,
        run: RunId,
        token: LeaseToken,
        number: u32,
        message: String,
        usage: Usage,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        let step = Step {
            run,
            token,
            number,
            message,
            usage,
            now_ms,
        };
        self.write_riding(move |connection| record_step_txn(connection, &step))
            .await
    }

    /// What a run's model calls answered, oldest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn steps(&self, run: RunId) -> Result<Vec<String>, StoreError> {
        self.read(move |connection| steps(connection, run)).await
    }

    /// A run.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub async fn run(&self, id: RunId) -> Result<Run, StoreError> {
        self.read(move |connection| run_by_id(connection, id)).await
    }

    /// Runs of a conversation that are older than one of them, newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no such run.
    pub async fn runs_before(
        &self,
        conversation: ConversationId,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| {
            let conversation_row = conversation_row_id(connection, conversation)?;
            let before = match before {
                Some(run) => connection
                    .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
                    .query_row([run], |row| row.get(0))
                    .map_err(|error| missing(error, || format!("run {run}")))?,
                None => i64::MAX,
            };
            let mut statement = connection.prepare_cached(select_runs!(
                "WHERE r.conversation_id = ?1 AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3"
            ))?;
            let page = (conversation_row, before, limit_of(limit));
            let rows = statement.query_map(page, run_from_row)?;
            with_triggers(connection, rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Runs of a conversation, newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn runs(
        &self,
        conversation: ConversationId,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| runs(connection, conversation, limit))
            .await
    }
}

pub(super) struct Requeue {
    pub(super) run: RunId,
    pub(super) token: LeaseToken,
    pub(super) not_before_ms: i64,
    pub(super) reason: String,
    /// Whether the attempt counts.
    pub(super) counts: bool,
    pub(super) now_ms: i64,
}

struct Step {
    run: RunId,
    token: LeaseToken,
    number: u32,
    message: String,
    usage: Usage,
    now_ms: i64,
}

pub(super) fn claim_run_txn(
    connection: &Connection,
    request: &ClaimRequest,
) -> Result<Option<ClaimedRun>, StoreError> {
    let accounts = account_list(&request.accounts);
    loop {
        let head: Option<(i64, bool)> = connection
            .prepare_cached(CLAIMABLE_SQL)?
            .query_row((request.now_ms, &accounts), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        match head {
            None => return Ok(None),
            // Its worker died before it could stop.
            Some((row, true)) => finish_cancelled_txn(connection, row, request.now_ms)?,
            Some((row, false)) => return lease_txn(connection, row, request).map(Some),
        }
    }
}

/// Accounts as a JSON array, for `json_each`.
pub(super) fn account_list(accounts: &[AccountId]) -> String {
    let ids: Vec<i64> = accounts.iter().map(|account| account.0).collect();
    serde_json::to_string(&ids).expect("numbers are always JSON")
}

/// Leases a run. The read bound and the run's "now" are written once, so that a retry reads the
/// same rows.
fn lease_txn(
    connection: &Connection,
    row: i64,
    request: &ClaimRequest,
) -> Result<ClaimedRun, StoreError> {
    tell_claim_txn(connection, row, request.now_ms)?;
    let token = LeaseToken::generate();
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'leased', owner = ?2, token = ?3, lease_until_ms = ?4 + ?5,
                    attempt = attempt + 1,
                    as_of_seq = coalesce(as_of_seq, (SELECT max(seq) FROM turns), 0),
                    first_claimed_at_ms = coalesce(first_claimed_at_ms, ?4)
             WHERE id = ?1",
        )?
        .execute((row, request.owner, token, request.now_ms, request.lease_ms))?;
    let (as_of_seq, as_of_ms, account) = connection
        .prepare_cached(
            "SELECT r.as_of_seq, r.first_claimed_at_ms, h.account_id
             FROM runs r JOIN conversations c ON c.id = r.conversation_id
             JOIN chats h ON h.id = c.chat_id WHERE r.id = ?1",
        )?
        .query_row([row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(ClaimedRun {
        run: run_by_row(connection, row)?,
        token,
        as_of_seq,
        as_of_ms,
        account,
    })
}

fn next_run_due_ms(connection: &Connection) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(NEXT_DUE_SQL)?
        .query_row([], |row| row.get(0))?)
}

pub(super) fn extend_run_txn(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
    until_ms: i64,
) -> Result<RunLease, StoreError> {
    let is_cancelled: Option<bool> = connection
        .prepare_cached(
            "UPDATE runs SET lease_until_ms = ?3
             WHERE uuid = ?1 AND token = ?2 AND state = 'leased'
             RETURNING cancel_requested_by IS NOT NULL",
        )?
        .query_row((run, token, until_ms), |row| row.get(0))
        .optional()?;
    Ok(match is_cancelled {
        None => RunLease::Lost,
        Some(true) => RunLease::CancelRequested,
        Some(false) => RunLease::Held,
    })
}

/// The row of a leased run, if the token still holds it, and whether it was asked to stop.
pub(super) fn leased_run(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
) -> Result<Option<LeasedRun>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT id, conversation_id, cancel_requested_by IS NOT NULL FROM runs
             WHERE uuid = ?1 AND ((token = ?2 AND state = 'leased') OR ?3)",
        )?
        .query_row(
            (run, token, crash::is_sabotaged(Sabotage::NoLeaseToken)),
            |row| {
                Ok(LeasedRun {
                    row: row.get(0)?,
                    conversation_row: row.get(1)?,
                    is_cancelled: row.get(2)?,
                })
            },
        )
        .optional()?)
}

/// A run whose lease is held.
pub(super) struct LeasedRun {
    pub(super) row: i64,
    pub(super) conversation_row: i64,
    pub(super) is_cancelled: bool,
}

pub(super) fn requeue_run_txn(
    connection: &Connection,
    requeue: &Requeue,
) -> Result<LeaseOutcome, StoreError> {
    let Some(leased) = leased_run(connection, requeue.run, requeue.token)? else {
        return Ok(LeaseOutcome::Stale);
    };
    if leased.is_cancelled {
        finish_cancelled_txn(connection, leased.row, requeue.now_ms)?;
        return Ok(LeaseOutcome::Written);
    }
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'queued', not_before_ms = ?2, reason = ?3,
                    attempt = attempt - iif(?4, 0, 1),
                    owner = NULL, token = NULL, lease_until_ms = NULL
             WHERE id = ?1",
        )?
        .execute((
            leased.row,
            requeue.not_before_ms,
            &requeue.reason,
            requeue.counts,
        ))?;
    Ok(LeaseOutcome::Written)
}

pub(super) fn cancel_run_txn(
    connection: &Connection,
    run: RunId,
    reason: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let (row, state): (i64, String) = connection
        .prepare_cached("SELECT id, state FROM runs WHERE uuid = ?1")?
        .query_row([run], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(|error| missing(error, || format!("run {run}")))?;
    match state.as_str() {
        "queued" | "waiting" | "held" => {
            ask_to_stop_txn(connection, row, reason)?;
            finish_cancelled_txn(connection, row, now_ms)?;
            Ok(true)
        }
        "leased" => {
            ask_to_stop_txn(connection, row, reason)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The first to ask is remembered.
pub(super) fn ask_to_stop_txn(
    connection: &Connection,
    row: i64,
    reason: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE runs SET cancel_requested_by = coalesce(cancel_requested_by, ?2) WHERE id = ?1",
        )?
        .execute((row, reason))?;
    Ok(())
}

/// Ends a run that was asked to stop, with the reason given then.
pub(super) fn finish_cancelled_txn(
    connection: &Connection,
    row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'cancelled', reason = cancel_requested_by,
                    owner = NULL, token = NULL, lease_until_ms = NULL, finished_at_ms = ?2
             WHERE id = ?1",
        )?
        .execute((row, now_ms))?;
    retract_txn(connection, row, now_ms)?;
    take_reactions_back_txn(connection, row, now_ms)
}

fn steps(connection: &Connection, run: RunId) -> Result<Vec<String>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT s.message FROM steps s JOIN runs r ON r.id = s.run_id
             WHERE r.uuid = ?1 ORDER BY s.n",
        )?
        .query_map([run], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

fn record_step_txn(connection: &Connection, step: &Step) -> Result<LeaseOutcome, StoreError> {
    let Some(leased) = leased_run(connection, step.run, step.token)? else {
        return Ok(LeaseOutcome::Stale);
    };
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO steps
                 (run_id, n, message, prompt_tokens, completion_tokens, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            leased.row,
            step.number,
            &step.message,
            stored_count(step.usage.prompt_tokens),
            stored_count(step.usage.completion_tokens),
            step.now_ms,
        ))?;
    let owner = (leased.row, leased.conversation_row);
    tell_usage_txn(connection, owner, step.number, step.usage, step.now_ms)?;
    Ok(LeaseOutcome::Written)
}

/// Takes over what a predecessor had leased: nobody works on it. Returns how many leases.
///
/// A post whose bytes may have left is of unknown outcome; every other one is pending again.
pub(super) fn take_back_leases_txn(
    connection: &Connection,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let stopped: Vec<i64> = connection
        .prepare(
            "SELECT id FROM runs
             WHERE state IN ('queued', 'leased', 'waiting') AND state = 'leased'
               AND cancel_requested_by IS NOT NULL ORDER BY id",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for row in &stopped {
        finish_cancelled_txn(connection, *row, now_ms)?;
    }
    let cancelled = stopped.len();
    let runs = connection.execute(
        "UPDATE runs SET state = 'queued', not_before_ms = min(not_before_ms, ?1),
                owner = NULL, token = NULL, lease_until_ms = NULL
         WHERE state IN ('queued', 'leased', 'waiting') AND state = 'leased'",
        [now_ms],
    )?;
    let posts = super::outbox::take_back_posts_txn(connection, now_ms)?;
    Ok(u64::try_from(cancelled + runs).unwrap_or(0) + posts)
}

/// The run of an id.
pub(super) fn run_by_id(connection: &Connection, id: RunId) -> Result<Run, StoreError> {
    let row = connection
        .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
        .query_row([id], |row| row.get(0))
        .map_err(|error| missing(error, || format!("run {id}")))?;
    run_by_row(connection, row)
}

/// The run of a row.
pub(super) fn run_by_row(connection: &Connection, row: i64) -> Result<Run, StoreError> {
    let (row, mut run) = connection
        .prepare_cached(select_runs!("WHERE r.id = ?1"))?
        .query_row([row], run_from_row)?;
    run.triggers = triggers(connection, row)?;
    Ok(run)
}

fn runs(
    connection: &Connection,
    conversation: ConversationId,
    limit: usize,
) -> Result<Vec<Run>, StoreError> {
    let conversation_row = conversation_row_id(connection, conversation)?;
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.conversation_id = ?1 ORDER BY r.id DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map((conversation_row, limit_of(limit)), run_from_row)?;
    with_triggers(connection, rows.collect::<rusqlite::Result<_>>()?)
}

/// Runs of a conversation that came to be at or after the first time and before the second, oldest
/// first.
pub(super) fn runs_created(
    connection: &Connection,
    conversation_row: i64,
    (from_ms, before_ms): (i64, i64),
) -> Result<Vec<Run>, StoreError> {
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.chat_id = (SELECT chat_id FROM conversations WHERE id = ?1)
           AND r.created_at_ms >= ?2 AND r.created_at_ms < ?3 AND r.conversation_id = ?1
         ORDER BY r.created_at_ms, r.id"
    ))?;
    let rows = statement.query_map((conversation_row, from_ms, before_ms), run_from_row)?;
    with_triggers(connection, rows.collect::<rusqlite::Result<_>>()?)
}

fn held_runs(connection: &Connection, limit: usize) -> Result<Vec<Run>, StoreError> {
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.state = 'held' ORDER BY r.id DESC LIMIT ?1"
    ))?;
    let rows = statement.query_map([limit_of(limit)], run_from_row)?;
    with_triggers(connection, rows.collect::<rusqlite::Result<_>>()?)
}

/// Runs that a turn triggered, oldest first.
pub(super) fn runs_of_turn(connection: &Connection, seq: Seq) -> Result<Vec<Run>, StoreError> {
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.id IN (SELECT run_id FROM run_triggers WHERE turn_seq = ?1) ORDER BY r.id"
    ))?;
    let rows = statement.query_map([seq], run_from_row)?;
    with_triggers(connection, rows.collect::<rusqlite::Result<_>>()?)
}

/// A limit for `LIMIT`.
pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn with_triggers(connection: &Connection, rows: Vec<(i64, Run)>) -> Result<Vec<Run>, StoreError> {
    rows.into_iter()
        .map(|(row, mut run)| {
            run.triggers = triggers(connection, row)?;
            Ok(run)
        })
        .collect()
}

/// The triggers of a run, oldest first.
fn triggers(connection: &Connection, row: i64) -> Result<Vec<TurnId>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT t.uuid FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
         WHERE g.run_id = ?1 ORDER BY t.sent_at_ms, t.ordinal, t.seq",
    )?;
    let triggers = statement.query_map([row], |row| row.get(0))?;
    Ok(triggers.collect::<rusqlite::Result<_>>()?)
}

fn run_from_row(row: &Row<'_>) -> rusqlite::Result<(i64, Run)> {
    let run = Run {
        id: row.get(1)?,
        conversation: row.get(2)?,
        agent: row.get(3)?,
        state: run_state(row)?,
        as_of_seq: row.get(9)?,
        first_claimed_at_ms: row.get(10)?,
        attempt: row.get(11)?,
        triggers: Vec::new(),
        created_at_ms: row.get(12)?,
        usage: Usage {
            prompt_tokens: count_from(row.get(13)?),
            completion_tokens: count_from(row.get(14)?),
        },
    };
    Ok((row.get(0)?, run))
}

fn run_state(row: &Row<'_>) -> rusqlite::Result<RunState> {
    let state: String = row.get(4)?;
    let reason: Option<String> = row.get(5)?;
    Ok(match state.as_str() {
        "queued" | "waiting" => RunState::Queued {
            not_before_ms: row.get(6)?,
        },
        "leased" => RunState::Leased {
            owner: row
                .get::<_, Option<OwnerId>>(7)?
                .unwrap_or(OwnerId(uuid::Uuid::nil())),
            until_ms: row.get::<_, Option<i64>>(8)?.unwrap_or(0),
        },
        "held" => RunState::Held {
            reason: reason.unwrap_or_default(),
        },
        "done" => RunState::Done,
        "cancelled" | "superseded" => RunState::Cancelled,
        // `failed` and `dead` were both given up.
        _ => RunState::Dead {
            reason: reason.unwrap_or_default(),
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::scene::{LEASE_MS, Scene};

    #[tokio::test]
    async fn runs_of_a_conversation_go_one_at_a_time_oldest_first() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (_, first) = scene.ask(&room, "one", 10).await;
        let (_, second) = scene.ask(&room, "two", 20).await;

        let claimed = scene.claim(100).await.unwrap();
        assert_eq!(claimed.run.id, first);
        assert_eq!(scene.claim(100).await, None);

        let answer = scene.answer(&claimed, &room, "done");
        scene.store.commit_reply(answer).await.unwrap();
        assert_eq!(scene.claim(200).await.unwrap().run.id, second);
    }

    #[tokio::test]
    async fn a_later_run_waits_for_an_earlier_one_that_waits_for_a_time() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "one", 10).await;
        scene.ask(&room, "two", 20).await;
        let claimed = scene.claim(100).await.unwrap();
        let given_back = scene
            .store
            .requeue_run(claimed.run.id, claimed.token, 5_000, "model is busy", 100)
            .await;
        assert_eq!(given_back.unwrap(), LeaseOutcome::Written);

        assert_eq!(scene.claim(4_999).await, None);
        assert_eq!(scene.store.next_run_due_ms().await.unwrap(), Some(5_000));
        let again = scene.claim(5_000).await.unwrap();
        assert_eq!((again.run.id, again.run.attempt), (claimed.run.id, 2));
    }

    #[tokio::test]
    async fn a_run_returned_at_a_stop_has_not_been_attempted() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "one", 10).await;
        let claimed = scene.claim(100).await.unwrap();
        let returned = scene
            .store
            .return_run(claimed.run.id, claimed.token, "shutdown", 100)
            .await;
        assert_eq!(returned.unwrap(), LeaseOutcome::Written);
        let again = scene.claim(100).await.unwrap();
        assert_eq!((again.run.id, again.run.attempt), (claimed.run.id, 1));
        assert_eq!(again.as_of_seq, claimed.as_of_seq);
    }

    #[tokio::test]
    async fn a_busy_room_takes_turns_with_a_quiet_one() {
        let scene = Scene::open().await;
        let (busy, quiet) = (scene.room("C1").await, scene.room("C2").await);
        for at_ms in [10, 11, 12] {
            scene.ask(&busy, "again", at_ms).await;
        }
        let (_, lone) = scene.ask(&quiet, "hello", 50).await;

        let first = scene.claim(100).await.unwrap();
        assert_eq!(first.run.conversation, busy.id);
        let answer = scene.answer(&first, &busy, "yes");
        scene.store.commit_reply(answer).await.unwrap();
        assert_eq!(scene.claim(102).await.unwrap().run.id, lone);
    }

    #[tokio::test]
    async fn an_expired_lease_is_claimed_again_and_its_token_writes_nothing() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "one", 10).await;
        let lost = scene.claim(100).await.unwrap();
        assert_eq!(
            scene.store.next_run_due_ms().await.unwrap(),
            Some(100 + LEASE_MS)
        );
        let held = scene.claim(100 + LEASE_MS).await.unwrap();
        assert_eq!((held.run.id, held.run.attempt), (lost.run.id, 2));

        let before = scene.store.run(lost.run.id).await.unwrap();
        let (run, token) = (lost.run.id, lost.token);
        let store = &scene.store;
        let requeued = store
            .requeue_run(run, token, 0, "late", 2_000)
            .await
            .unwrap();
        let step = store
            .record_step(run, token, 0, "{}".to_owned(), Usage::default(), 2_000)
            .await
            .unwrap();
        assert_eq!((requeued, step), (LeaseOutcome::Stale, LeaseOutcome::Stale));
        let extended = store.extend_run(run, token, 9_000).await.unwrap();
        assert_eq!(extended, RunLease::Lost);
        assert_eq!(store.run(run).await.unwrap(), before);
        assert_eq!(scene.value::<i64>("SELECT count(*) FROM steps").await, 0);
    }

    #[tokio::test]
    async fn the_read_bound_is_written_at_the_first_claim_and_stays() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (asked, _) = scene.ask(&room, "one", 10).await;
        let first = scene.claim(100).await.unwrap();
        assert_eq!((first.as_of_seq, first.as_of_ms), (asked.seq, 100));

        scene.say(&room, "meanwhile", 150).await;
        let second = scene.claim(100 + LEASE_MS).await.unwrap();
        assert_eq!((second.as_of_seq, second.as_of_ms), (asked.seq, 100));
    }

    #[tokio::test]
    async fn a_queued_run_is_cancelled_at_once_and_a_leased_one_is_asked_to_stop() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (_, first) = scene.ask(&room, "one", 10).await;
        let (_, second) = scene.ask(&room, "two", 20).await;
        let leased = scene.claim(100).await.unwrap();
        let store = &scene.store;
        assert!(store.cancel_run(second, "by hand", 101).await.unwrap());
        assert!(store.cancel_run(first, "by hand", 101).await.unwrap());
        assert_eq!(store.run(second).await.unwrap().state, RunState::Cancelled);

        let extended = store.extend_run(first, leased.token, 5_000).await.unwrap();
        assert_eq!(extended, RunLease::CancelRequested);
        let given_back = store
            .requeue_run(first, leased.token, 0, "stopped", 102)
            .await;
        assert_eq!(given_back.unwrap(), LeaseOutcome::Written);
        assert_eq!(store.run(first).await.unwrap().state, RunState::Cancelled);
        assert!(!store.cancel_run(first, "again", 103).await.unwrap());
        assert_eq!(scene.claim(9_999).await, None);
    }

    #[tokio::test]
    async fn an_expired_run_that_was_asked_to_stop_is_not_started_again() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (_, first) = scene.ask(&room, "one", 10).await;
        let (_, second) = scene.ask(&room, "two", 20).await;
        scene.claim(100).await.unwrap();
        scene.store.cancel_run(first, "by hand", 101).await.unwrap();
        let next = scene.claim(100 + LEASE_MS).await.unwrap();
        assert_eq!(next.run.id, second);
        let state = scene.store.run(first).await.unwrap().state;
        assert_eq!(state, RunState::Cancelled);
    }

    #[tokio::test]
    async fn a_start_takes_over_what_its_predecessor_had_leased() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let scene = Scene::open_at(Some(path.clone())).await;
        let room = scene.room("C1").await;
        let (_, run) = scene.ask(&room, "one", 10).await;
        scene.claim(100).await.unwrap();
        scene.store.close().await.unwrap();
        drop(scene);

        let scene = Scene::open_at(Some(path)).await;
        let claimed = scene.claim(150).await.unwrap();
        assert_eq!((claimed.run.id, claimed.run.attempt), (run, 2));
        assert_eq!(claimed.as_of_ms, 100);
    }

    #[tokio::test]
    async fn a_claim_reads_unfinished_runs_only() {
        let scene = Scene::open().await;
        for sql in [CLAIMABLE_SQL, NEXT_DUE_SQL] {
            let plan = scene.plan(sql).await;
            let bounded = [
                "INDEX runs_open",
                "INDEX runs_waiting (state=?)",
                "INTEGER PRIMARY KEY (rowid=?)",
                // One step down from a conversation's oldest unfinished run.
                "p USING INDEX runs_by_conversation (conversation_id=? AND id<?)",
            ];
            for step in plan.iter().filter(|step| step.contains(" USING ")) {
                let is_bounded = bounded.iter().any(|read| step.contains(read));
                assert!(is_bounded, "{step} in {plan:#?}");
            }
            assert!(!plan.contains(&"SCAN r".to_owned()), "{plan:#?}");
        }
    }
}
