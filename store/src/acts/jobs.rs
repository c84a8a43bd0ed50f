//! The queue of jobs: claims, ends, and decisions of operators; and what the end of a job does to the row that it is
//! about.
//!
//! A lease has an owner, a token and an end. The end only matters for leases of other processes: this process
//! gives its own back itself, whatever the clock says, and opening the store takes back a predecessor's leases.

use vocative_contract::crash;

use crate::capability::MayWork;
use crate::contract::{JobClaim, JobRow, JobsDue};
use crate::engine::sql::{Connection, params};
use crate::rows::files::{give_file_up_txn, give_speech_up_txn, want_again_txn};
use crate::rows::jobs::{
    JobStanding, StoredJob, TAKE_OVER_SQL, accounts, enqueue_txn, head_of, heads, is_queued,
    job_at, jobs_of, lease_txn, leased_job, next_due_ms, remove_txn, settle_txn,
};
use crate::rows::leases::spared_owner;
use crate::rows::quarantine::{Queue, kept_or_set_aside_txn, set_aside_txn};
use crate::rows::tellings::forget_telling_txn;
use crate::{Reader, Store, StoreError};
use vocative_core::file::FileState;
use vocative_core::ids::{AccountId, JobId, LeaseToken};
use vocative_core::job::{ClaimedJob, Job, JobKind, JobState, JobSubject, WaitsFor};
use vocative_core::queueing::{Head, JobChange, has_lapsed, worn_out};

/// The most obsolete jobs that one claim passes over.
const LAPSED_MAX: usize = 100;

/// The reason that is stored with a file or voice note whose job an operator cancelled.
const CANCELLED: &str = "an operator cancelled it";

impl Reader {
    /// Whether a claim would find a job, without a write.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn jobs_due(&self, claim: JobClaim) -> Result<JobsDue, StoreError> {
        self.read(move |connection| jobs_due(connection, &claim))
            .await
    }

    /// Whether there is a job of that kind and key, in whatever state.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn is_queued(&self, job: Job) -> Result<bool, StoreError> {
        self.read(move |connection| is_queued(connection, &job))
            .await
    }

    /// The jobs of those leases that still hold; the others were cancelled, or the thing they are about is gone.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn held_jobs(
        &self,
        leases: Vec<(JobId, LeaseToken)>,
    ) -> Result<Vec<JobId>, StoreError> {
        self.read(move |connection| {
            let mut held = Vec::new();
            for (id, token) in leases {
                held.extend(leased_job(connection, id, token)?.map(|it| it.id));
            }
            Ok(held)
        })
        .await
    }

    /// The jobs that are not done: first those that need a person; at most `limit` of each state.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn jobs(&self, limit: usize) -> Result<Vec<JobRow>, StoreError> {
        self.read(move |connection| {
            let mut rows = Vec::new();
            for state in [
                JobState::Dead,
                JobState::Quarantined,
                JobState::Waiting,
                JobState::Leased,
                JobState::Pending,
            ] {
                rows.extend(jobs_of(connection, state, limit)?);
            }
            Ok(rows)
        })
        .await
    }
}

impl<C: MayWork> Store<C> {
    /// Puts a job into the queue.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn enqueue_job(
        &self,
        job: Job,
        account: Option<AccountId>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| enqueue_txn(connection, &job, account, now_ms))
            .await
    }

    /// Leases jobs that are due, as far as slots are free. Expired leases of others count as pending.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn claim_jobs(&self, claim: JobClaim) -> Result<Vec<ClaimedJob>, StoreError> {
        self.write_riding(move |connection| claim_txn(connection, &claim))
            .await
    }

    /// Extends leases to a new end.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn extend_jobs(
        &self,
        leases: Vec<(JobId, LeaseToken)>,
        until_ms: i64,
    ) -> Result<(), StoreError> {
        self.write_riding(move |connection| {
            let mut extend = connection.prepare_cached(
                "UPDATE jobs SET lease_until_ms = ?3
                 WHERE id = ?1 AND token = ?2 AND state = 'leased'",
            )?;
            for (id, token) in leases {
                extend.execute(params![id, token, until_ms])?;
            }
            Ok(())
        })
        .await
    }

    /// Ends a lease with the outcome of its job. Returns whether the lease still held; if not, nothing changed.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn finish_job(
        &self,
        id: JobId,
        token: LeaseToken,
        change: JobChange,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        crash::point("job.before-finish");
        // If a power cut undoes the finish, the job is done again.
        let finished =
            self.write_riding(move |connection| finish_txn(connection, id, token, &change, now_ms));
        let finished = finished.await?;
        crash::point("job.after-finish");
        Ok(finished)
    }

    /// Sets a leased job aside because the row that it is about can't be decoded.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn set_job_aside(
        &self,
        id: JobId,
        token: LeaseToken,
        what: String,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| match leased_job(connection, id, token)? {
            Some(_) => set_aside_txn(connection, Queue::Jobs, id.0, &what, now_ms),
            None => Ok(()),
        })
        .await
    }

    /// Wakes the jobs that wait for something that has happened. Returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn wake_jobs(&self, waits_for: WaitsFor, now_ms: i64) -> Result<u64, StoreError> {
        self.write(move |connection| {
            let woken = connection
                .prepare_cached(
                    "UPDATE jobs INDEXED BY jobs_by_state
                     SET state = 'pending', waits_for = NULL, not_before_ms = ?2, updated_at_ms = ?2
                     WHERE state = 'waiting' AND waits_for = ?1",
                )?
                .execute(params![waits_for.name(), now_ms])?;
            Ok(woken as u64)
        })
        .await
    }
}

impl Store {
    /// Makes a job due now on a person's request, if it is dead, or waits for its time or for an event.
    ///
    /// # Errors
    /// `NotFound` if there is no such job, or it is at work or can't be decoded.
    pub async fn retry_job(&self, id: JobId, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| retry_txn(connection, id, now_ms))
            .await
    }

    /// Removes a job on a person's request, even while it is at work.
    ///
    /// # Errors
    /// `NotFound` if there is no such job, or one of its kind can't be cancelled.
    pub async fn cancel_job(&self, id: JobId, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| cancel_txn(connection, id, now_ms))
            .await
    }
}

fn jobs_due(connection: &Connection, claim: &JobClaim) -> Result<JobsDue, StoreError> {
    let mut next: Option<i64> = None;
    for (kind, slots) in &claim.slots {
        if claim.shares.free(*kind, *slots) == 0 {
            continue;
        }
        let found = heads(connection, *kind, &claim.accounts, claim.now_ms)?;
        if claim.shares.next(*kind, &found).is_some() {
            return Ok(JobsDue::Now);
        }
        for account in accounts(connection, *kind, &claim.accounts)? {
            let due_ms = next_due_ms(connection, *kind, account, claim.now_ms)?;
            next = [next, due_ms].into_iter().flatten().min();
        }
    }
    Ok(next.map_or(JobsDue::None, JobsDue::At))
}

pub(crate) fn claim_txn(
    connection: &Connection,
    claim: &JobClaim,
) -> Result<Vec<ClaimedJob>, StoreError> {
    let now_ms = claim.now_ms;
    connection.prepare_cached(TAKE_OVER_SQL)?.execute(params![
        spared_owner(claim.owner),
        now_ms,
        JobState::Pending,
        JobState::Leased
    ])?;
    let (mut shares, mut claimed, mut lapsed) = (claim.shares.clone(), Vec::new(), 0);
    for (kind, slots) in &claim.slots {
        let mut heads = match shares.free(*kind, *slots) {
            0 => continue,
            _ => heads(connection, *kind, &claim.accounts, now_ms)?,
        };
        while shares.free(*kind, *slots) > 0 && lapsed < LAPSED_MAX {
            let Some(head) = shares.next(*kind, &heads) else {
                break;
            };
            match claim_head_txn(connection, *kind, &head, claim)? {
                Some(job) => {
                    shares.begin(*kind, job.account);
                    claimed.push(job);
                }
                None => lapsed += 1,
            }
            heads.retain(|it| it.account != head.account);
            heads.extend(head_of(connection, *kind, head.account, now_ms)?);
        }
    }
    Ok(claimed)
}

/// Leases one job. `None` = it can't be decoded and is set aside, is obsolete and removed, or killed the process
/// again and again and is dead.
fn claim_head_txn(
    connection: &Connection,
    kind: JobKind,
    head: &Head,
    claim: &JobClaim,
) -> Result<Option<ClaimedJob>, StoreError> {
    let now_ms = claim.now_ms;
    let Some(stored) = job_at(connection, head.id)? else {
        return Ok(None);
    };
    let at = (Queue::Jobs, head.id.0);
    let Some(job) = kept_or_set_aside_txn(connection, at, stored.job(), now_ms)? else {
        return Ok(None);
    };
    if has_lapsed(kind, stored.asked_at_ms, now_ms) {
        take_away_txn(connection, &job, now_ms)?;
        remove_txn(connection, head.id)?;
        return Ok(None);
    }
    if let Some(cause) = worn_out(kind, stored.attempts) {
        kill_txn(connection, &stored, cause, now_ms)?;
        return Ok(None);
    }
    let until_ms = now_ms.saturating_add(claim.lease_ms);
    let token = lease_txn(connection, head.id, claim.owner, until_ms, now_ms)?;
    Ok(Some(ClaimedJob {
        id: head.id,
        job,
        account: stored.account,
        attempts: stored.attempts + 1,
        token,
    }))
}

pub(crate) fn finish_txn(
    connection: &Connection,
    id: JobId,
    token: LeaseToken,
    change: &JobChange,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let Some(stored) = leased_job(connection, id, token)? else {
        return Ok(false);
    };
    let standing = |state, not_before_ms, attempts| JobStanding {
        state,
        waits_for: None,
        not_before_ms,
        attempts,
        cause: None,
        now_ms,
    };
    let is_at_its_end = matches!(change, JobChange::Gone | JobChange::Dead { .. });
    if is_at_its_end && stored.is_asked_again {
        settle_txn(connection, id, &standing(JobState::Pending, now_ms, 0))?;
        return Ok(true);
    }
    match change {
        JobChange::Gone => remove_txn(connection, id)?,
        JobChange::Pending {
            not_before_ms,
            attempts,
            cause,
        } => {
            let pending = JobStanding {
                cause: Some(cause),
                ..standing(JobState::Pending, *not_before_ms, *attempts)
            };
            settle_txn(connection, id, &pending)?;
        }
        JobChange::Waiting {
            waits_for,
            attempts,
        } => {
            let waiting = JobStanding {
                waits_for: Some(*waits_for),
                ..standing(JobState::Waiting, now_ms, *attempts)
            };
            settle_txn(connection, id, &waiting)?;
        }
        JobChange::Dead { cause } => kill_txn(connection, &stored, cause, now_ms)?,
    }
    Ok(true)
}

/// Marks a job as dead; the file or voice note that it is about is given up.
fn kill_txn(
    connection: &Connection,
    stored: &StoredJob,
    cause: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let dead = JobStanding {
        state: JobState::Dead,
        waits_for: None,
        not_before_ms: now_ms,
        attempts: stored.attempts,
        cause: Some(cause),
        now_ms,
    };
    settle_txn(connection, stored.id, &dead)?;
    match stored.job()?.subject() {
        JobSubject::File(file) => {
            give_file_up_txn(connection, file, FileState::Failed, cause, now_ms)
        }
        JobSubject::VoiceNote(file) => give_speech_up_txn(connection, file, cause),
        // The event for the hook stays, so that it can be sent again.
        JobSubject::Inquiry(_) | JobSubject::Telling(_) | JobSubject::Nothing => Ok(()),
    }
}

/// Removes a job undone; its file or voice note is given up, its inquiry or hook event is removed.
pub(crate) fn take_away_txn(
    connection: &Connection,
    job: &Job,
    now_ms: i64,
) -> Result<(), StoreError> {
    match job.subject() {
        JobSubject::Inquiry(inquiry) => {
            connection
                .prepare_cached("DELETE FROM inquiries WHERE id = ?1")?
                .execute([inquiry])?;
            Ok(())
        }
        JobSubject::File(file) => {
            give_file_up_txn(connection, file, FileState::Refused, CANCELLED, now_ms)
        }
        JobSubject::VoiceNote(file) => give_speech_up_txn(connection, file, CANCELLED),
        JobSubject::Telling(telling) => forget_telling_txn(connection, telling),
        JobSubject::Nothing => Ok(()),
    }
}

fn retry_txn(connection: &Connection, id: JobId, now_ms: i64) -> Result<(), StoreError> {
    let found = job_at(connection, id)?.filter(|it| {
        matches!(
            it.state,
            JobState::Dead | JobState::Pending | JobState::Waiting
        )
    });
    let stored = found.ok_or_else(|| StoreError::NotFound {
        what: format!("a job {id} that can be done now"),
    })?;
    if let JobSubject::File(file) | JobSubject::VoiceNote(file) = stored.job()?.subject() {
        want_again_txn(connection, file)?;
    }
    connection
        .prepare_cached("UPDATE jobs SET asked_at_ms = ?2 WHERE id = ?1")?
        .execute((id, now_ms))?;
    let pending = JobStanding {
        state: JobState::Pending,
        waits_for: None,
        not_before_ms: now_ms,
        attempts: 0,
        cause: None,
        now_ms,
    };
    settle_txn(connection, id, &pending)
}

pub(crate) fn cancel_txn(
    connection: &Connection,
    id: JobId,
    now_ms: i64,
) -> Result<(), StoreError> {
    let missing = || StoreError::NotFound {
        what: format!("a job {id} that can be cancelled"),
    };
    let stored = job_at(connection, id)?.ok_or_else(missing)?;
    match stored.job() {
        Ok(job) if !job.kind().limits().is_cancellable => return Err(missing()),
        Ok(job) => take_away_txn(connection, &job, now_ms)?,
        // It is not known what an undecodable job is about.
        Err(_) => {}
    }
    remove_txn(connection, id)
}
