//! Runs: who works on what, in which order, under which lease.
//!
//! Within a conversation runs go one at a time, oldest first. Among conversations `domain::slots` decides:
//! fair shares of accounts and people, then the one whose oldest run waits longest, counted from when
//! nothing else of the conversation stood before it. A write that needs a lease compares the token; a stale
//! one writes nothing. Answers are committed in `reply`.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, Row};
use crate::rows::leases::{leased_run, spared_owner};
use crate::rows::open::{WAIT_MAX_MS, ahead_ms, later_run, open_run};
use crate::rows::run_events::{forget_live_text_txn, forget_texts_txn};

use crate::acts::ending::{EndOfRun, bring_back_txn, end_run_txn, stop_run_txn};
use crate::contract::{ClaimRequest, LeaseOutcome, RunLease};
use crate::new_id::NewId as _;
use crate::rows::columns::{account_list, missing};
use crate::rows::jobs::settle_at_open_txn;
use crate::rows::quarantine::{Queue, kept_or_set_aside_txn};
use crate::rows::run_events::tell_claim_txn;
use crate::rows::run_rows::run_by_row;
use crate::{Reader, Store, StoreError};
use vocative_core::delegating::CHILDREN_AT_ONCE;
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::run::{ClaimedRun, Stopping};
use vocative_core::running::budget::INTERRUPTIONS_FREE;
use vocative_core::running::stopping::Stop;
use vocative_core::slots::{Asker, PLACE_KEPT_MS_MAX, Slots, WaitingRun};

/// Each agent's oldest unfinished run of each conversation that keeps its place there, as `heads (id)`: one probe of
/// `runs_open_by_agent` for each, and a row for each run that is due later or waits for people. The planner would
/// rather walk what is finished, so the index is named. Parameters: 1 = now, 2 = `PLACE_KEPT_MS_MAX`, 3 =
/// `WAIT_MAX_MS`.
macro_rules! with_heads {
    ($tail:expr) => {
        concat!(
            "WITH RECURSIVE
             heads (id) AS (
                 SELECT (SELECT n.id FROM runs n INDEXED BY runs_open_by_agent
                         WHERE ",
            open_run!("n"),
            " AND n.parent_run_id IS NULL AND n.state <> 'waiting' AND NOT ",
            later_run!("n", "?1", "?2", "?3"),
            "
                         ORDER BY conversation_id, agent, id LIMIT 1)
                 UNION ALL
                 SELECT coalesce(
                     (SELECT n.id FROM runs n INDEXED BY runs_open_by_agent
                      WHERE ",
            open_run!("n"),
            " AND n.parent_run_id IS NULL AND n.state <> 'waiting' AND NOT ",
            later_run!("n", "?1", "?2", "?3"),
            "
                        AND n.conversation_id = h.conversation_id AND n.agent > h.agent
                      ORDER BY n.agent, n.id LIMIT 1),
                     (SELECT n.id FROM runs n INDEXED BY runs_open_by_agent
                      WHERE ",
            open_run!("n"),
            " AND n.parent_run_id IS NULL AND n.state <> 'waiting' AND NOT ",
            later_run!("n", "?1", "?2", "?3"),
            "
                        AND n.conversation_id > h.conversation_id
                      ORDER BY n.conversation_id, n.agent, n.id LIMIT 1))
                 FROM heads JOIN runs h ON h.id = heads.id
             ) ",
            $tail
        )
    };
}

/// The oldest runs of conversations without a run at work, and child runs: these keep no place in their conversation,
/// and run side by side up to parameter 6. A wait that begins in the future, or is longer than allowed, was
/// written under a wrong clock and counts as over. A run that was claimed before and was not put off waits for no time:
/// its `not_before_ms` is when it was queued again.
const WAITING_SQL: &str = with_heads!(concat!(
    "SELECT r.id, r.conversation_id, r.agent, r.asked_model, h.account_id, r.person_participant_id,
            max(r.not_before_ms, r.created_at_ms,
                coalesce((SELECT p.finished_at_ms FROM runs p
                          WHERE p.conversation_id = r.conversation_id AND p.id < r.id
                          ORDER BY p.id DESC LIMIT 1), 0)) AS since_ms,
            r.asked_at_run_ms,
            CASE r.state WHEN 'queued' THEN r.not_before_ms NOT BETWEEN ?1 + 1 AND ?1 + ?3
                                            OR coalesce(r.put_off_at_ms, r.created_at_ms) > ?1 + ",
    ahead_ms!(),
    "
                                            OR (r.put_off_at_ms IS NULL AND r.as_of_seq IS NOT NULL)
                         WHEN 'leased' THEN r.owner IS NOT ?5 AND r.lease_until_ms <= ?1
                         ELSE 0 END AS is_due,
            r.put_off_at_ms IS NOT NULL AS is_put_off, r.stop_cause IS NOT NULL AS is_cancelled
     FROM heads CROSS JOIN runs r ON r.id = heads.id
     CROSS JOIN conversations c ON c.id = r.conversation_id
     CROSS JOIN chats h ON h.id = c.chat_id
     WHERE h.account_id IN (SELECT value FROM json_each(?4))
       AND NOT EXISTS (SELECT 1 FROM runs o INDEXED BY runs_waiting
                       WHERE ",
    open_run!("o"),
    " AND o.state = 'leased'
                         AND (o.owner IS ?5 OR o.lease_until_ms > ?1)
                         AND o.parent_run_id IS NULL
                         AND o.conversation_id = r.conversation_id)
     UNION ALL
     SELECT r.id, -r.id, r.agent, r.asked_model, h.account_id, r.person_participant_id, max(r.not_before_ms, r.created_at_ms),
            r.asked_at_run_ms,
            CASE r.state WHEN 'queued' THEN (r.not_before_ms NOT BETWEEN ?1 + 1 AND ?1 + ?3
                                             OR coalesce(r.put_off_at_ms, r.created_at_ms) > ?1 + ",
    ahead_ms!(),
    "
                                             OR (r.put_off_at_ms IS NULL AND r.as_of_seq IS NOT NULL))
                         ELSE r.owner IS NOT ?5 AND r.lease_until_ms <= ?1 END
                AND (SELECT count(*) FROM runs s INDEXED BY runs_by_parent
                     WHERE s.parent_run_id = r.parent_run_id AND s.state = 'leased'
                       AND (s.owner IS ?5 OR s.lease_until_ms > ?1)) < ?6,
            r.put_off_at_ms IS NOT NULL, r.stop_cause IS NOT NULL
     FROM runs r INDEXED BY runs_open_children CROSS JOIN chats h ON h.id = r.chat_id
     WHERE r.parent_run_id IS NOT NULL AND ",
    open_run!("r"),
    " AND r.state <> 'waiting' AND h.account_id IN (SELECT value FROM json_each(?4))
     ORDER BY 2, 1"
));

/// A head that another live lease blocks is due when that lease ends. A run that keeps no place is due at its own time.
const NEXT_DUE_SQL: &str = with_heads!(concat!(
    "SELECT min(max(CASE r.state WHEN 'leased' THEN r.lease_until_ms ELSE r.not_before_ms END,
                    coalesce((SELECT max(o.lease_until_ms) FROM runs o INDEXED BY runs_waiting
                              WHERE ",
    open_run!("o"),
    "
                                AND o.state = 'leased' AND o.parent_run_id IS NULL
                                AND o.conversation_id = r.conversation_id), 0))) AS due_ms
     FROM heads CROSS JOIN runs r ON r.id = heads.id WHERE r.state IN ('queued', 'leased')
     UNION ALL
     SELECT (SELECT min(not_before_ms) FROM runs INDEXED BY runs_waiting
             WHERE ",
    open_run!(),
    " AND state = 'queued' AND not_before_ms > ?1)
     UNION ALL
     SELECT min(iif(state = 'leased', lease_until_ms, not_before_ms)) FROM runs INDEXED BY runs_open_children
     WHERE parent_run_id IS NOT NULL AND ",
    open_run!(),
    " AND state <> 'waiting'"
));

impl Reader {
    /// When the next unfinished run may start or its lease ends, in milliseconds since the Unix
    /// epoch; `None` if there is none. May lie in the past.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn next_run_due_ms(&self, now_ms: i64) -> Result<Option<i64>, StoreError> {
        self.read(move |connection| next_run_due_ms(connection, now_ms))
            .await
    }
}

impl<C: MayReply> Store<C> {
    /// Leases the run that comes next by the state of the slots, of a conversation with no leased run.
    /// Expired leases of others count as queued; what the claimer itself holds it gives back, however
    /// long that takes.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn claim_run(
        &self,
        request: ClaimRequest,
        slots: Slots,
    ) -> Result<Option<ClaimedRun>, StoreError> {
        self.write_riding(move |connection| claim_run_txn(connection, &request, &slots))
            .await
    }

    /// Extends a lease to a new end.
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

    /// Gives a run back, to be claimed again not before a given time. A run that was asked to stop is
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
            kind: RequeueKind::Failed,
            now_ms,
        };
        self.write(move |connection| requeue_run_txn(connection, &requeue))
            .await
    }

    /// Puts a run off whose model can't answer for now, to be claimed again not before a given time. The
    /// attempt does not count: such a run is given up by its age.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn put_run_off(
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
            kind: RequeueKind::PutOff,
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
            kind: RequeueKind::Returned,
            now_ms,
        };
        self.write(move |connection| requeue_run_txn(connection, &requeue))
            .await
    }

    /// Ends a run without a post in the room: a queued one at once, a leased one is asked to stop.
    /// Returns whether it was unfinished.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn cancel_run(
        &self,
        run: RunId,
        stopping: Stopping,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| cancel_run_txn(connection, run, &stopping, now_ms))
            .await
    }
}

impl Store {
    /// Releases a held run on a person's decision, so that it is worked on.
    ///
    /// # Errors
    /// `NotFound` if no such run is held.
    pub async fn release_run(&self, run: RunId, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| {
            let row = connection
                .prepare_cached("SELECT id FROM runs WHERE uuid = ?1 AND state = 'held'")?
                .query_row([run], |row| row.get("id"))
                .map_err(|error| missing(error, || format!("a held run {run}")))?;
            bring_back_txn(connection, row, Some(now_ms))
        })
        .await
    }
}

pub(crate) struct Requeue {
    pub(crate) run: RunId,
    pub(crate) token: LeaseToken,
    pub(crate) not_before_ms: i64,
    pub(crate) reason: String,
    pub(crate) kind: RequeueKind,
    pub(crate) now_ms: i64,
}

/// Why a run goes back into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequeueKind {
    /// The attempt failed, and counts.
    Failed,
    /// Its model can't answer for now.
    PutOff,
    /// Its worker was kept from working on it.
    Returned,
}

pub(crate) fn claim_run_txn(
    connection: &Connection,
    request: &ClaimRequest,
    slots: &Slots,
) -> Result<Option<ClaimedRun>, StoreError> {
    loop {
        let Some(next) = next_waiting(connection, request, slots)? else {
            return Ok(None);
        };
        if next.is_cancelled {
            // Its worker died before it could stop.
            end_or_set_aside_txn(connection, next.row, request.now_ms)?;
            continue;
        }
        let leased = lease_txn(connection, &next, request);
        let at = (Queue::Questions, next.row);
        let kept = kept_or_set_aside_txn(connection, at, leased, request.now_ms)?;
        if kept.is_some() {
            return Ok(kept);
        }
    }
}

/// Ends a run that was asked to stop; one that can't be decoded is set aside, so that it does not block others.
fn end_or_set_aside_txn(connection: &Connection, row: i64, now_ms: i64) -> Result<(), StoreError> {
    let ended = end_run_txn(connection, row, EndOfRun::Cancelled, now_ms);
    kept_or_set_aside_txn(connection, (Queue::Questions, row), ended, now_ms).map(drop)
}

fn next_waiting(
    connection: &Connection,
    request: &ClaimRequest,
    slots: &Slots,
) -> Result<Option<WaitingRun>, StoreError> {
    let accounts = account_list(&request.accounts);
    loop {
        let mut statement = connection.prepare_cached(WAITING_SQL)?;
        let mut rows = statement.query((
            request.now_ms,
            PLACE_KEPT_MS_MAX,
            WAIT_MAX_MS,
            &accounts,
            spared_owner(request.owner),
            CHILDREN_AT_ONCE,
        ))?;
        let mut failed = None;
        let decoded = std::iter::from_fn(|| match rows.next().transpose()? {
            Ok(row) => waiting_from_row(&row)
                .map_err(|error| failed = Some((row.get("id").ok(), error)))
                .ok(),
            Err(error) => {
                failed = Some((None, error));
                None
            }
        });
        let next = slots.next(decoded);
        let Some((row, error)) = failed else {
            return Ok(next);
        };
        let Some(row) = row else {
            return Err(error.into());
        };
        let undecoded: Result<(), StoreError> = Err(error.into());
        let at = (Queue::Questions, row);
        kept_or_set_aside_txn(connection, at, undecoded, request.now_ms)?;
    }
}

fn waiting_from_row(row: &Row<'_>) -> crate::engine::sql::Result<WaitingRun> {
    Ok(WaitingRun {
        row: row.get("id")?,
        conversation: row.get("conversation_id")?,
        agent: row.get("agent")?,
        asked_model: row.get("asked_model")?,
        asker: Asker {
            account: row.get("account_id")?,
            person: row.get("person_participant_id")?,
        },
        since_ms: row.get("since_ms")?,
        asked_at_run_ms: row.get("asked_at_run_ms")?,
        is_due: row.get("is_due")?,
        is_put_off: row.get("is_put_off")?,
        is_cancelled: row.get("is_cancelled")?,
    })
}

/// Leases a run. The read bound and the run's "now" are written once, so that a retry reads the
/// same rows.
fn lease_txn(
    connection: &Connection,
    next: &WaitingRun,
    request: &ClaimRequest,
) -> Result<ClaimedRun, StoreError> {
    let row = next.row;
    tell_claim_txn(connection, row, request.now_ms)?;
    let token = LeaseToken::generate();
    let (as_of_seq, as_of_ms, put_offs, attempt): (_, _, _, u32) = connection
        .prepare_cached(
            "UPDATE runs SET state = 'leased', owner = ?2, token = ?3, lease_until_ms = ?4 + ?5,
                    attempt = attempt + 1, put_off_at_ms = NULL,
                    as_of_seq = coalesce(as_of_seq, (SELECT max(seq) FROM turns), 0),
                    afresh_ms = coalesce(afresh_ms, first_claimed_at_ms, max(?4, coalesce(
                        (SELECT max(f.at_ms) FROM fresh_starts f
                         WHERE f.agent = runs.agent
                           AND f.conversation_id IN (
                               runs.conversation_id,
                               (SELECT c.parent_id FROM conversations c
                                WHERE c.id = runs.conversation_id))), ?4))),
                    first_claimed_at_ms = coalesce(first_claimed_at_ms, ?4)
             WHERE id = ?1
             RETURNING as_of_seq, first_claimed_at_ms, put_offs, attempt",
        )?
        .query_row(
            (row, request.owner, token, request.now_ms, request.lease_ms),
            |row| {
                Ok((
                    row.get("as_of_seq")?,
                    row.get("first_claimed_at_ms")?,
                    row.get("put_offs")?,
                    row.get("attempt")?,
                ))
            },
        )?;
    if attempt > 1 {
        // The previous attempt may have left half an answer as live text.
        forget_live_text_txn(connection, row)?;
    }
    Ok(ClaimedRun {
        run: run_by_row(connection, row)?,
        token,
        as_of_seq,
        as_of_ms,
        asker: next.asker,
        asked_model: next.asked_model.clone(),
        asked_at_run_ms: next.asked_at_run_ms,
        put_offs,
    })
}

fn next_run_due_ms(connection: &Connection, now_ms: i64) -> Result<Option<i64>, StoreError> {
    let mut statement = connection.prepare_cached(NEXT_DUE_SQL)?;
    let due = statement.query_map((now_ms, PLACE_KEPT_MS_MAX, WAIT_MAX_MS), |row| {
        row.get::<_, Option<i64>>("due_ms")
    })?;
    let due = due.collect::<crate::engine::sql::Result<Vec<_>>>()?;
    Ok(due.into_iter().flatten().min())
}

pub(crate) fn extend_run_txn(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
    until_ms: i64,
) -> Result<RunLease, StoreError> {
    let is_cancelled: Option<bool> = connection
        .prepare_cached(
            "UPDATE runs SET lease_until_ms = ?3
             WHERE uuid = ?1 AND token = ?2 AND state = 'leased'
             RETURNING stop_cause IS NOT NULL AS is_cancelled",
        )?
        .query_row((run, token, until_ms), |row| row.get("is_cancelled"))
        .optional()?;
    Ok(match is_cancelled {
        None => RunLease::Lost,
        Some(true) => RunLease::CancelRequested,
        Some(false) => RunLease::Held,
    })
}

pub(crate) fn requeue_run_txn(
    connection: &Connection,
    requeue: &Requeue,
) -> Result<LeaseOutcome, StoreError> {
    let Some(leased) = leased_run(connection, requeue.run, requeue.token)? else {
        return Ok(LeaseOutcome::Stale);
    };
    if leased.is_cancelled {
        end_run_txn(connection, leased.row, EndOfRun::Cancelled, requeue.now_ms)?;
        return Ok(LeaseOutcome::Written);
    }
    forget_live_text_txn(connection, leased.row)?;
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'queued', not_before_ms = ?2, reason = ?3,
                    attempt = attempt - ?4, put_offs = put_offs + ?5, put_off_at_ms = ?6,
                    owner = NULL, token = NULL, lease_until_ms = NULL
             WHERE id = ?1",
        )?
        .execute((
            leased.row,
            requeue.not_before_ms,
            &requeue.reason,
            requeue.kind == RequeueKind::Returned,
            requeue.kind == RequeueKind::PutOff,
            (requeue.kind != RequeueKind::Returned).then_some(requeue.now_ms),
        ))?;
    Ok(LeaseOutcome::Written)
}

pub(crate) fn cancel_run_txn(
    connection: &Connection,
    run: RunId,
    stopping: &Stopping,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let row: i64 = connection
        .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
        .query_row([run], |row| row.get("id"))
        .map_err(|error| missing(error, || format!("run {run}")))?;
    Ok(stop_run_txn(connection, row, stopping, now_ms)? != Stop::Over)
}

/// Takes back runs that an earlier process leased and no longer works on. Returns how many. Child runs of a restored
/// backup end: the runs that waited for them go on without them.
///
/// A post whose bytes may have left is of unknown outcome; every other one is pending again.
pub(crate) fn take_back_leases_txn(
    connection: &Connection,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let stopped: Vec<i64> = connection
        .prepare_cached(concat!(
            "SELECT id FROM runs
             WHERE ",
            open_run!(),
            " AND state = 'leased' AND stop_cause IS NOT NULL
             UNION
             SELECT id FROM runs WHERE state = 'held' AND parent_run_id IS NOT NULL ORDER BY id"
        ))?
        .query_map([], |row| row.get("id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for row in &stopped {
        end_or_set_aside_txn(connection, *row, now_ms)?;
    }
    let cancelled = stopped.len();
    forget_texts_txn(connection)?;
    let runs = connection.execute(
        concat!(
            "UPDATE runs SET state = 'queued', not_before_ms = min(not_before_ms, ?1),
                owner = NULL, token = NULL, lease_until_ms = NULL,
                put_offs = put_offs + iif(interruptions < ?2, 1, 0), interruptions = interruptions + 1
         WHERE ",
            open_run!(),
            " AND state = 'leased'"
        ),
        (now_ms, INTERRUPTIONS_FREE),
    )?;
    let posts = crate::acts::outbox::take_back_posts_txn(connection, now_ms)?;
    let jobs = settle_at_open_txn(connection, now_ms)?;
    Ok(u64::try_from(cancelled + runs).unwrap_or(0) + posts + jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test]
    async fn a_claim_reads_unfinished_runs_only() {
        let scene = Scene::open().await;
        for sql in [WAITING_SQL, NEXT_DUE_SQL] {
            let plan = scene.plan(sql).await;
            let bounded = [
                "INDEX runs_open_by_agent",
                "INDEX runs_waiting (state=?)",
                "INDEX runs_waiting (state=? AND not_before_ms>?)",
                "INTEGER PRIMARY KEY (rowid=?)",
                // One step down from a conversation's oldest unfinished run.
                "p USING INDEX runs_by_conversation (conversation_id=? AND id<?)",
                "INDEX runs_open_children",
                // At most a handful each.
                "s USING INDEX runs_by_parent (parent_run_id=?)",
            ];
            for step in plan.iter().filter(|step| step.contains(" USING ")) {
                let is_bounded = bounded.iter().any(|read| step.contains(read));
                assert!(is_bounded, "{step} in {plan:#?}");
            }
            assert!(!plan.contains(&"SCAN r".to_owned()), "{plan:#?}");
        }
    }
}
