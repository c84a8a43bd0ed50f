//! What waits for an answer, and what was given up: for operators.

use crate::engine::sql::{Connection, Row};
use crate::rows::open::{WAIT_MAX_MS, later_run, open_run};

use crate::contract::{QueuedRun, WaitingFor};
use crate::rows::columns::limit_of;
use crate::rows::run_rows::run_by_row;
use crate::{Reader, StoreError};
use vocative_core::run::Run;
use vocative_core::slots::PLACE_KEPT_MS_MAX;

const OPEN_SQL: &str = concat!(
    "
    SELECT r.id, r.state, r.asked_model, r.reason, r.not_before_ms, r.lease_until_ms,
           r.waiting_until_ms,
           r.stop_cause IS NOT NULL AS is_asked_to_stop, h.account_id, a.held_reason,
           coalesce(p.display_name, p.username, p.platform_id) AS person,
           r.parent_run_id IS NULL AND NOT ",
    later_run!("r", "?2", "?3", "?4"),
    " AND EXISTS (SELECT 1 FROM runs o INDEXED BY runs_open
                   WHERE ",
    open_run!("o"),
    "
                     AND o.conversation_id = r.conversation_id AND o.id < r.id
                     AND o.state <> 'waiting' AND o.parent_run_id IS NULL
                     AND (o.agent = r.agent OR o.put_off_at_ms IS NULL)
                     AND NOT ",
    later_run!("o", "?2", "?3", "?4"),
    ") AS is_behind,
           r.put_off_at_ms IS NOT NULL AS is_put_off, r.as_of_seq IS NOT NULL AS is_begun,
           EXISTS (SELECT 1 FROM delegations d WHERE d.parent_id = r.id AND d.state = 'open')
             AND NOT EXISTS (SELECT 1 FROM approvals w WHERE w.run_id = r.id AND w.state = 'open')
             AND NOT EXISTS (SELECT 1 FROM questions w WHERE w.run_id = r.id AND w.state = 'open') AS waits_for_agents
    FROM runs r INDEXED BY runs_waiting
    JOIN conversations c ON c.id = r.conversation_id JOIN chats h ON h.id = c.chat_id
    JOIN accounts a ON a.id = h.account_id
    LEFT JOIN participants p ON p.id = r.person_participant_id
    WHERE ",
    open_run!("r"),
    " ORDER BY r.id LIMIT ?1"
);

impl Reader {
    /// Runs that are not at their end, oldest first, and what each waits for.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn queued_runs(
        &self,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<QueuedRun>, StoreError> {
        self.read(move |connection| queued_runs(connection, limit, now_ms))
            .await
    }

    /// Runs that were given up and that no person has dropped, newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn dead_runs(&self, limit: usize) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| {
            let rows: Vec<i64> = connection
                .prepare_cached(
                    "SELECT id FROM runs WHERE state = 'dead' ORDER BY id DESC LIMIT ?1",
                )?
                .query_map([limit_of(limit)], |row| row.get("id"))?
                .collect::<crate::engine::sql::Result<_>>()?;
            rows.into_iter()
                .map(|row| run_by_row(connection, row))
                .collect()
        })
        .await
    }
}

fn queued_runs(
    connection: &Connection,
    limit: usize,
    now_ms: i64,
) -> Result<Vec<QueuedRun>, StoreError> {
    let mut statement = connection.prepare_cached(OPEN_SQL)?;
    let mut rows = statement.query((limit_of(limit), now_ms, PLACE_KEPT_MS_MAX, WAIT_MAX_MS))?;
    let mut queued = Vec::new();
    while let Some(row) = rows.next()? {
        let run = match run_by_row(connection, row.get("id")?) {
            // A run that can't be decoded is set aside when it is claimed; it must not hide the others here.
            Err(StoreError::Undecodable { .. }) => continue,
            run => run?,
        };
        queued.push(QueuedRun {
            run,
            person: row.get("person")?,
            account: row.get("account_id")?,
            asked_model: row.get("asked_model")?,
            waiting_for: waiting_for(&row, now_ms)?,
        });
    }
    Ok(queued)
}

fn waiting_for(row: &Row<'_>, now_ms: i64) -> crate::engine::sql::Result<WaitingFor> {
    let state: String = row.get("state")?;
    let (not_before_ms, is_put_off): (i64, bool) =
        (row.get("not_before_ms")?, row.get("is_put_off")?);
    let (is_asked_to_stop, is_behind): (bool, bool) =
        (row.get("is_asked_to_stop")?, row.get("is_behind")?);
    let held: Option<String> = row.get("held_reason")?;
    Ok(if is_asked_to_stop {
        WaitingFor::Stop
    } else if state == "leased" {
        WaitingFor::Answer {
            lease_until_ms: row.get::<_, Option<i64>>("lease_until_ms")?.unwrap_or(0),
        }
    } else if state == "waiting" && row.get("waits_for_agents")? {
        WaitingFor::Agents
    } else if state == "waiting" {
        WaitingFor::Person {
            until_ms: row.get("waiting_until_ms")?,
        }
    } else if is_behind {
        WaitingFor::Earlier
    } else if not_before_ms > now_ms && is_put_off {
        WaitingFor::Attempt {
            at_ms: not_before_ms,
            reason: row.get::<_, Option<String>>("reason")?.unwrap_or_default(),
        }
    } else if not_before_ms > now_ms && !row.get::<_, bool>("is_begun")? {
        WaitingFor::Time {
            at_ms: not_before_ms,
        }
    } else if let Some(reason) = held {
        WaitingFor::Channel { reason }
    } else {
        WaitingFor::Worker
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;
    use crate::scene::by_hand;

    #[tokio::test]
    async fn each_run_says_what_it_waits_for() {
        let scene = Scene::open().await;
        let (busy, quiet, new) = (
            scene.room("C1").await,
            scene.room("C2").await,
            scene.room("C3").await,
        );
        scene.ask(&busy, "one", 10).await;
        scene.ask(&busy, "two", 20).await;
        scene.ask(&quiet, "three", 30).await;
        let working = scene.claim(100).await.unwrap();
        let failed = scene.claim(100).await.unwrap();
        scene.ask(&new, "four", 40).await;
        let given_back =
            scene
                .store
                .requeue_run(failed.run.id, failed.token, 5_000, "model is busy", 100);
        given_back.await.unwrap();
        let waits = |runs: Vec<QueuedRun>| -> Vec<WaitingFor> {
            runs.into_iter().map(|run| run.waiting_for).collect()
        };
        let queued = scene.store.queued_runs(9, 200).await.unwrap();
        let expected = [
            WaitingFor::Answer {
                lease_until_ms: 1_100,
            },
            WaitingFor::Earlier,
            WaitingFor::Attempt {
                at_ms: 5_000,
                reason: "model is busy".to_owned(),
            },
            WaitingFor::Worker,
        ];
        assert_eq!(waits(queued), expected);
        let asked = scene
            .store
            .cancel_run(working.run.id, by_hand("by hand"), 201);
        assert!(asked.await.unwrap());
        let queued = scene.store.queued_runs(1, 200).await.unwrap();
        assert_eq!(waits(queued), [WaitingFor::Stop]);
    }
}
