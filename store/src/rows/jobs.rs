//! The rows of jobs: put in, found, leased and taken away.
//!
//! Life of a job: *pending* -> *leased* -> gone. A failed job is pending again, not before a later time, and *dead*
//! in the end; one that waits for something that happens is *waiting*. There is at most one row for a kind and key.
//! What a job's end does to the thing that it is about: `acts/jobs`.

use crate::StoreError;
use crate::contract::{JobCount, JobRow};
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::new_id::NewId as _;
use crate::registry::{
    ExportRule, Fate, MergeRule, NO_CHAT, OF_TURN, OWN_STATE, Restore, StoreTable, account, text,
};
use crate::rows::columns::{count_from, limit_of};
use crate::rows::quarantine::{Queue, set_aside_txn};
use crate::rows::tellings::forget_telling_txn;
use vocative_core::ids::{AccountId, JobId, LeaseToken, OwnerId};
use vocative_core::job::{Job, JobKind, JobState, WaitsFor};
use vocative_core::queueing::Head;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "jobs",
    text(
        &[],
        &[],
        &["kind", "key", "payload", "state", "waits_for", "cause"],
    ),
    Fate {
        // What is to be done with a file goes with its turn.
        merge: MergeRule::Nothing(NO_CHAT),
        // Inquiries are not answered again.
        restore: Restore::Emptied,
        export: ExportRule::Nothing(OWN_STATE),
        ..OF_TURN
    },
)];

/// The first job of an account that is due.
pub(crate) const FIRST_SQL: &str = "SELECT id, not_before_ms FROM jobs INDEXED BY jobs_by_state
     WHERE state = ?4 AND kind = ?1 AND account_id IS ?2 AND not_before_ms <= ?3
     ORDER BY not_before_ms, id LIMIT 1";
/// The first job of an account that is due after a time.
pub(crate) const BEHIND_SQL: &str = "SELECT id, not_before_ms FROM jobs INDEXED BY jobs_by_state
     WHERE state = ?4 AND kind = ?1 AND account_id IS ?2 AND not_before_ms > ?3
     ORDER BY not_before_ms, id LIMIT 1";
/// The account with pending jobs that comes after another one.
pub(crate) const NEXT_ACCOUNT_SQL: &str = "SELECT account_id FROM jobs INDEXED BY jobs_by_state
     WHERE state = ?3 AND kind = ?1 AND account_id > ?2 ORDER BY account_id LIMIT 1";
/// Takes over leases of others that have ended.
pub(crate) const TAKE_OVER_SQL: &str = "UPDATE jobs INDEXED BY jobs_by_state
     SET state = ?3, owner = NULL, token = NULL, lease_until_ms = NULL
     WHERE state = ?4 AND owner IS NOT ?1 AND lease_until_ms <= ?2";

/// Puts a job into the queue, in the transaction that makes it necessary. One of the same kind and key that
/// waits for its time stays as it is; one at work is done once more; one that is dead or waits begins anew.
pub(crate) fn enqueue_txn(
    connection: &Connection,
    job: &Job,
    account: Option<AccountId>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let kind = job.kind();
    // One statement, because it is a part of each message and each answer; so it also says what becomes of a job that
    // is there already.
    connection
        .prepare_cached(
            "INSERT INTO jobs (kind, key, account_id, payload, version, not_before_ms, asked_at_ms, updated_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6)
             ON CONFLICT (kind, key) DO UPDATE SET
                 asked_at_ms = excluded.asked_at_ms,
                 updated_at_ms = excluded.updated_at_ms,
                 is_asked_again = (state = ?8),
                 attempts = iif(state IN (?9, ?10), 0, attempts),
                 not_before_ms = iif(state IN (?9, ?10) OR updated_at_ms > excluded.updated_at_ms + ?7,
                                     excluded.not_before_ms, not_before_ms),
                 waits_for = NULL,
                 state = iif(state IN (?9, ?10), ?11, state)",
        )?
        .execute(params![
            kind.name(),
            job.key(),
            account,
            job.payload(),
            kind.limits().version,
            now_ms,
            AHEAD_MAX_MS,
            JobState::Leased,
            JobState::Dead,
            JobState::Waiting,
            JobState::Pending
        ])?;
    Ok(())
}

/// Whether there is a job of that kind and key.
pub(crate) fn is_queued(connection: &Connection, job: &Job) -> Result<bool, StoreError> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT id FROM jobs WHERE kind = ?1 AND key = ?2")?
        .query_row(params![job.kind().name(), job.key()], |row| row.get("id"))
        .optional()?;
    Ok(found.is_some())
}

/// Deletes the job of a kind and a key: what it is about is gone or done. A worker that holds its lease can write
/// nothing any more.
pub(crate) fn forget_job_txn(
    connection: &Connection,
    kind: JobKind,
    key: &str,
) -> Result<(), StoreError> {
    let row: Option<i64> = connection
        .prepare_cached("DELETE FROM jobs WHERE kind = ?1 AND key = ?2 RETURNING id")?
        .query_row((kind.name(), key), |row| row.get("id"))
        .optional()?;
    row.map_or(Ok(()), |row| leave_quarantine_txn(connection, row))
}

/// Deletes the quarantine's entry of a job.
fn leave_quarantine_txn(connection: &Connection, row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM quarantine WHERE queue = ?1 AND row_id = ?2")?
        .execute((Queue::Jobs.name(), row))?;
    Ok(())
}

/// The first job of each account that is due, of one kind.
pub(crate) fn heads(
    connection: &Connection,
    kind: JobKind,
    connected: &[AccountId],
    now_ms: i64,
) -> Result<Vec<Head>, StoreError> {
    let mut heads = Vec::new();
    for account in accounts(connection, kind, connected)? {
        heads.extend(head_of(connection, kind, account, now_ms)?);
    }
    Ok(heads)
}

/// The accounts whose jobs of a kind may be done.
pub(crate) fn accounts(
    connection: &Connection,
    kind: JobKind,
    connected: &[AccountId],
) -> Result<Vec<Option<AccountId>>, StoreError> {
    if kind.limits().needs_channel {
        return Ok(connected.iter().copied().map(Some).collect());
    }
    let mut accounts = vec![None];
    let mut last = AccountId(i64::MIN);
    let mut statement = connection.prepare_cached(NEXT_ACCOUNT_SQL)?;
    loop {
        let next = statement.query_row((kind.name(), last, JobState::Pending), |row| {
            row.get("account_id")
        });
        match next.optional()? {
            Some(next) => {
                last = next;
                accounts.push(Some(next));
            }
            None => return Ok(accounts),
        }
    }
}

/// The first job of an account that is due. A job whose time lies farther ahead than its kind allows was put off
/// under another clock, and is due.
pub(crate) fn head_of(
    connection: &Connection,
    kind: JobKind,
    account: Option<AccountId>,
    now_ms: i64,
) -> Result<Option<Head>, StoreError> {
    let farthest_ms = now_ms.saturating_add(kind.limits().later_max_ms);
    for (sql, at_ms) in [(FIRST_SQL, now_ms), (BEHIND_SQL, farthest_ms)] {
        let found = connection
            .prepare_cached(sql)?
            .query_row(
                params![kind.name(), account, at_ms, JobState::Pending],
                |row| {
                    Ok(Head {
                        id: row.get("id")?,
                        account,
                        not_before_ms: row.get("not_before_ms")?,
                    })
                },
            )
            .optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// When the next job of an account comes due after a time.
pub(crate) fn next_due_ms(
    connection: &Connection,
    kind: JobKind,
    account: Option<AccountId>,
    now_ms: i64,
) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(BEHIND_SQL)?
        .query_row(
            params![kind.name(), account, now_ms, JobState::Pending],
            |row| row.get("not_before_ms"),
        )
        .optional()?)
}

/// A job as it was found: still to be decoded.
pub(crate) struct StoredJob {
    pub(crate) id: JobId,
    kind: String,
    version: u32,
    payload: String,
    pub(crate) account: Option<AccountId>,
    pub(crate) state: JobState,
    pub(crate) attempts: u32,
    pub(crate) asked_at_ms: i64,
    pub(crate) is_asked_again: bool,
    pub(crate) token: Option<LeaseToken>,
}

impl StoredJob {
    /// What there is to do.
    pub(crate) fn job(&self) -> Result<Job, StoreError> {
        Job::decode(&self.kind, self.version, &self.payload).map_err(|unknown| {
            StoreError::Undecodable {
                what: unknown.to_string(),
            }
        })
    }
}

/// The job of an id.
pub(crate) fn job_at(connection: &Connection, id: JobId) -> Result<Option<StoredJob>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT kind, version, payload, account_id, state, attempts, asked_at_ms, is_asked_again, token
             FROM jobs WHERE id = ?1",
        )?
        .query_row([id], |row| {
            Ok(StoredJob {
                id,
                kind: row.get("kind")?,
                version: row.get("version")?,
                payload: row.get("payload")?,
                account: row.get("account_id")?,
                state: row.get("state")?,
                attempts: row.get("attempts")?,
                asked_at_ms: row.get("asked_at_ms")?,
                is_asked_again: row.get("is_asked_again")?,
                token: row.get("token")?,
            })
        })
        .optional()?)
}

/// The job of an id while a lease on it holds.
pub(crate) fn leased_job(
    connection: &Connection,
    id: JobId,
    token: LeaseToken,
) -> Result<Option<StoredJob>, StoreError> {
    let found = job_at(connection, id)?;
    Ok(found.filter(|it| it.state == JobState::Leased && it.token == Some(token)))
}

/// Leases a job. Returns the lease's token.
pub(crate) fn lease_txn(
    connection: &Connection,
    id: JobId,
    owner: OwnerId,
    until_ms: i64,
    now_ms: i64,
) -> Result<LeaseToken, StoreError> {
    let token = LeaseToken::generate();
    connection
        .prepare_cached(
            "UPDATE jobs SET state = ?6, owner = ?2, token = ?3, lease_until_ms = ?4,
                    attempts = attempts + 1, is_asked_again = 0, updated_at_ms = ?5
             WHERE id = ?1",
        )?
        .execute((id, owner, token, until_ms, now_ms, JobState::Leased))?;
    Ok(token)
}

/// What a job's row holds from here on, without a lease.
pub(crate) struct JobStanding<'a> {
    pub(crate) state: JobState,
    pub(crate) waits_for: Option<WaitsFor>,
    pub(crate) not_before_ms: i64,
    pub(crate) attempts: u32,
    pub(crate) cause: Option<&'a str>,
    pub(crate) now_ms: i64,
}

/// Writes a job's state, and ends its lease.
pub(crate) fn settle_txn(
    connection: &Connection,
    id: JobId,
    standing: &JobStanding<'_>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE jobs SET state = ?2, waits_for = ?3, not_before_ms = ?4, attempts = ?5, cause = ?6,
                    owner = NULL, token = NULL, lease_until_ms = NULL, is_asked_again = 0, updated_at_ms = ?7
             WHERE id = ?1",
        )?
        .execute(params![
            id,
            standing.state,
            standing.waits_for.map(WaitsFor::name),
            standing.not_before_ms,
            standing.attempts,
            standing.cause,
            standing.now_ms
        ])?;
    Ok(())
}

/// Deletes a job and its entry in the quarantine.
pub(crate) fn remove_txn(connection: &Connection, id: JobId) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM jobs WHERE id = ?1")?
        .execute([id])?;
    leave_quarantine_txn(connection, id.0)
}

/// Deletes jobs that have been dead since before a time, and what they were to tell hooks.
fn forget_dead_txn(connection: &Connection, before_ms: i64) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM jobs WHERE state = ?2 AND updated_at_ms < ?1 RETURNING kind, payload, version",
    )?;
    let dead = statement.query_map((before_ms, JobState::Dead), |row| {
        Ok((row.get("kind")?, row.get("payload")?, row.get("version")?))
    })?;
    let dead: Vec<(String, String, u32)> = dead.collect::<crate::engine::sql::Result<_>>()?;
    for (kind, payload, version) in dead {
        if let Ok(Job::TellHook { telling }) = Job::decode(&kind, version, &payload) {
            forget_telling_txn(connection, telling)?;
        }
    }
    Ok(())
}

/// How far ahead of the time a job's wait may have begun, in milliseconds: corrections of the clock are small.
const AHEAD_MAX_MS: i64 = 60_000;

/// Puts the queue in order at an open, when every lease is of a process that is gone: jobs at work become pending,
/// waits since a time in the future end, kinds that this build does not know are set aside, and jobs that have long
/// been dead are deleted. Returns how many jobs were at work.
pub(crate) fn settle_at_open_txn(connection: &Connection, now_ms: i64) -> Result<u64, StoreError> {
    let taken_back = connection.execute(
        "UPDATE jobs INDEXED BY jobs_by_state
         SET state = ?2, not_before_ms = min(not_before_ms, ?1),
             owner = NULL, token = NULL, lease_until_ms = NULL
         WHERE state = ?3",
        (now_ms, JobState::Pending, JobState::Leased),
    )?;
    connection.execute(
        "UPDATE jobs INDEXED BY jobs_by_state SET not_before_ms = ?1
         WHERE state = ?3 AND not_before_ms > ?1 AND updated_at_ms > ?2",
        (
            now_ms,
            now_ms.saturating_add(AHEAD_MAX_MS),
            JobState::Pending,
        ),
    )?;
    forget_dead_txn(connection, now_ms.saturating_sub(DEAD_KEPT_MS))?;
    for state in [JobState::Pending, JobState::Waiting] {
        let mut last = String::new();
        while let Some(kind) = next_kind(connection, state, &last)? {
            if JobKind::from_name(&kind).is_none() {
                set_kind_aside_txn(connection, state, &kind, now_ms)?;
            }
            last = kind;
        }
    }
    Ok(taken_back as u64)
}

/// For how long a dead job is kept, in milliseconds.
const DEAD_KEPT_MS: i64 = 90 * 86_400_000;

fn next_kind(
    connection: &Connection,
    state: JobState,
    last: &str,
) -> Result<Option<String>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT kind FROM jobs INDEXED BY jobs_by_state
             WHERE state = ?1 AND kind > ?2 ORDER BY kind LIMIT 1",
        )?
        .query_row(params![state, last], |row| row.get("kind"))
        .optional()?)
}

fn set_kind_aside_txn(
    connection: &Connection,
    state: JobState,
    kind: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let rows: Vec<i64> = connection
        .prepare_cached("SELECT id FROM jobs WHERE state = ?1 AND kind = ?2")?
        .query_map(params![state, kind], |row| row.get("id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for row in rows {
        let what = format!("{kind:?} is no kind of job that this build knows");
        set_aside_txn(connection, Queue::Jobs, row, &what, now_ms)?;
    }
    Ok(())
}

/// Jobs of a state, oldest first.
pub(crate) fn jobs_of(
    connection: &Connection,
    state: JobState,
    limit: usize,
) -> Result<Vec<JobRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, kind, key, account_id, state, waits_for, not_before_ms, attempts, cause, asked_at_ms
         FROM jobs WHERE state = ?1 ORDER BY kind, account_id, not_before_ms, id LIMIT ?2",
    )?;
    let rows = statement.query_map(params![state, limit_of(limit)], shown_from_row)?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn shown_from_row(row: &Row<'_>) -> crate::engine::sql::Result<JobRow> {
    Ok(JobRow {
        id: row.get("id")?,
        kind: row.get("kind")?,
        key: row.get("key")?,
        account: row.get("account_id")?,
        state: row.get("state")?,
        waits_for: row.get("waits_for")?,
        not_before_ms: row.get("not_before_ms")?,
        attempts: row.get("attempts")?,
        cause: row.get("cause")?,
        asked_at_ms: row.get("asked_at_ms")?,
    })
}

/// How many jobs there are, by kind and state.
pub(crate) fn count_jobs(connection: &Connection) -> Result<Vec<JobCount>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, state, count(*) AS jobs FROM jobs INDEXED BY jobs_by_state
         GROUP BY state, kind ORDER BY state, kind",
    )?;
    let counts = statement.query_map([], |row| {
        Ok(JobCount {
            kind: row.get("kind")?,
            state: row.get("state")?,
            count: count_from(row.get("jobs")?),
        })
    })?;
    Ok(counts.collect::<crate::engine::sql::Result<_>>()?)
}
