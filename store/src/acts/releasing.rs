//! Rows that were set aside because they can't be decoded are tried again or dropped.

use crate::acts::ending::{EndOfRun, bring_back_txn, end_run_txn};
use crate::acts::jobs::cancel_txn;
use crate::engine::sql::{Connection, params};
use crate::rows::quarantine::{Queue, entries, leave_quarantine_txn};
use crate::{Store, StoreError};
use vocative_core::ids::JobId;
use vocative_core::job::JobState;
use vocative_core::outbox::{DeadCause, PostStage};
use vocative_core::run::StopCause;

/// The reason stored with a row that an operator dropped.
const BY_OPERATOR: &str = "dropped by an operator";

impl Store {
    /// Carries out a person's decision about a row that is set aside: it is tried `again`, or dropped.
    ///
    /// # Errors
    /// `NotFound` if no such row is set aside.
    pub async fn release_quarantined(
        &self,
        queue: Queue,
        row: i64,
        again: bool,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let found = entries(connection)?;
            if !found.iter().any(|it| it.queue == queue && it.row == row) {
                return Err(StoreError::NotFound {
                    what: format!("a {} {row} that is set aside", queue.name()),
                });
            }
            match again {
                true => release_txn(connection, queue, row, now_ms),
                false => drop_txn(connection, queue, row, now_ms),
            }
        })
        .await
    }
}

/// Tries rows again that another version of the program could not decode. Returns how many.
pub(crate) fn release_of_other_versions_txn(
    connection: &Connection,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let rows: Vec<(String, i64)> = connection
        .prepare_cached("SELECT queue, row_id FROM quarantine WHERE version <> ?1")?
        .query_map([env!("CARGO_PKG_VERSION")], |row| {
            Ok((row.get("queue")?, row.get("row_id")?))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    let mut released = 0;
    for (queue, row) in rows {
        if let Some(queue) = Queue::from_name(&queue) {
            release_txn(connection, queue, row, now_ms)?;
            released += 1;
        }
    }
    Ok(released)
}

fn release_txn(
    connection: &Connection,
    queue: Queue,
    row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    // Quarantine entries whose row has changed since are removed, and bring nothing back.
    leave_quarantine_txn(connection)?;
    let is_set_aside: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM quarantine WHERE queue = ?1 AND row_id = ?2) AS is_set_aside",
        )?
        .query_row((queue.name(), row), |row| row.get("is_set_aside"))?;
    if !is_set_aside {
        return Ok(());
    }
    match queue {
        Queue::Questions => bring_back_txn(connection, row, Some(now_ms))?,
        Queue::Posts => put_post_back_txn(connection, row, now_ms)?,
        Queue::Jobs => {
            connection
                .prepare_cached(
                    "UPDATE jobs SET state = ?3, not_before_ms = ?2, attempts = 0 WHERE id = ?1",
                )?
                .execute((row, now_ms, JobState::Pending))?;
        }
    }
    leave_quarantine_txn(connection)
}

/// Puts a post back to where it waits.
fn put_post_back_txn(connection: &Connection, row: i64, now_ms: i64) -> Result<(), StoreError> {
    let is_send_started = connection
        .prepare_cached("SELECT send_started FROM outbox WHERE id = ?1")?
        .query_row([row], |row| row.get("send_started"))?;
    connection
        .prepare_cached(
            "UPDATE outbox SET state = ?3, not_before_ms = ?2, waits_from_ms = ?2 WHERE id = ?1",
        )?
        .execute((row, now_ms, PostStage::given_back(is_send_started)))?;
    Ok(())
}

fn drop_txn(
    connection: &Connection,
    queue: Queue,
    row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    match queue {
        Queue::Questions => {
            connection.execute(
                "UPDATE runs SET stop_cause = ?2, reason = ?3 WHERE id = ?1",
                params![row, StopCause::Operator, BY_OPERATOR],
            )?;
            end_run_txn(connection, row, EndOfRun::Cancelled, now_ms)?;
        }
        Queue::Posts => {
            connection.execute(
                "UPDATE outbox SET state = ?5, dead_cause = ?2, reason = ?3, finished_at_ms = ?4
                 WHERE id = ?1",
                params![
                    row,
                    DeadCause::Dropped,
                    BY_OPERATOR,
                    now_ms,
                    PostStage::Dead
                ],
            )?;
        }
        Queue::Jobs => cancel_txn(connection, JobId(row), now_ms)?,
    }
    leave_quarantine_txn(connection)
}
