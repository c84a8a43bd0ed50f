//! Retries or drops runs that were given up.

use crate::acts::ending::{EndOfRun, bring_back_txn, end_run_txn};
use crate::contract::DeadFilter;
use crate::engine::sql::Connection;
use crate::rows::columns::{limit_of, missing};
use crate::{Store, StoreError};
use vocative_core::ids::RunId;
use vocative_core::run::StopCause;

const GIVEN_UP_SQL: &str = "
    SELECT id FROM runs INDEXED BY runs_given_up
    WHERE state = 'dead' AND (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR finished_at_ms >= ?2)
    ORDER BY id LIMIT ?3";

impl Store {
    /// Queues runs again that were given up, oldest first, up to a number. Returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn revive_runs(
        &self,
        filter: DeadFilter,
        limit: usize,
        now_ms: i64,
    ) -> Result<usize, StoreError> {
        self.write(move |connection| {
            let given_up: Vec<i64> = connection
                .prepare_cached(GIVEN_UP_SQL)?
                .query_map((filter.agent, filter.since_ms, limit_of(limit)), |row| {
                    row.get("id")
                })?
                .collect::<crate::engine::sql::Result<_>>()?;
            for row in &given_up {
                bring_back_txn(connection, *row, Some(now_ms))?;
            }
            Ok(given_up.len())
        })
        .await
    }

    /// Carries out a person's decision about a run that was given up: it is retried, from its recorded steps
    /// and as of its first claim, or dropped.
    ///
    /// # Errors
    /// `NotFound` if no such run was given up.
    pub async fn revive_run(&self, run: RunId, retry: bool, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| revive_txn(connection, run, retry, now_ms))
            .await
    }
}

fn revive_txn(
    connection: &Connection,
    run: RunId,
    retry: bool,
    now_ms: i64,
) -> Result<(), StoreError> {
    let row: i64 = connection
        .prepare_cached("SELECT id FROM runs WHERE uuid = ?1 AND state = 'dead'")?
        .query_row([run], |row| row.get("id"))
        .map_err(|error| missing(error, || format!("a run {run} that was given up")))?;
    if retry {
        return bring_back_txn(connection, row, Some(now_ms));
    }
    connection
        .prepare_cached(
            "UPDATE runs SET stop_cause = ?2, reason = 'dropped by an operator: ' || coalesce(reason, '')
             WHERE id = ?1",
        )?
        .execute((row, StopCause::Operator))?;
    end_run_txn(connection, row, EndOfRun::Cancelled, now_ms)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::contract::RunEnding;
    use crate::scene::Scene;
    use vocative_core::ids::AgentName;
    use vocative_core::run::RunState;

    #[tokio::test]
    async fn runs_that_were_given_up_come_back_together_by_agent_and_time() {
        let scene = Scene::open().await;
        let mut dead = Vec::new();
        for (chat, at_ms) in [("C1", 10), ("C2", 20), ("C3", 30)] {
            let room = scene.room(chat).await;
            scene.ask(&room, "why", at_ms).await;
            let claimed = scene.claim(at_ms).await.unwrap();
            let mut notice = scene.answer(&claimed, &room, "Sorry");
            let reason = "no credit".to_owned();
            notice.ending = RunEnding::Dead { reason };
            scene.store.commit_reply(notice).await.unwrap();
            dead.push(claimed.run.id);
        }
        let revive = async |agent: &str, since_ms, limit| {
            let filter = DeadFilter {
                agent: Some(AgentName::trusted(agent)),
                since_ms,
            };
            let revived = scene.store.revive_runs(filter, limit, 300).await;
            let left = scene.store.dead_runs(9).await.unwrap();
            let left: Vec<RunId> = left.iter().map(|run| run.id).collect();
            (revived.unwrap(), left)
        };
        let all = vec![dead[2], dead[1], dead[0]];
        assert_eq!(revive("nobody", None, 9).await, (0, all));
        assert_eq!(
            revive("helper", Some(31), 9).await,
            (1, vec![dead[1], dead[0]])
        );
        assert_eq!(revive("helper", None, 1).await, (1, vec![dead[1]]));
        assert_eq!(revive("helper", None, 9).await, (1, vec![]));
        let again = scene.claim(300).await.unwrap();
        assert_eq!(again.attempts_used(), 1);
    }

    #[tokio::test]
    async fn a_run_that_was_given_up_is_attempted_anew_or_dropped() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let mut dead = Vec::new();
        for at_ms in [10, 20] {
            scene.ask(&room, "why", at_ms).await;
            let claimed = scene.claim(100).await.unwrap();
            let mut notice = scene.answer(&claimed, &room, "Sorry");
            notice.ending = RunEnding::Dead {
                reason: "no credit".to_owned(),
            };
            scene.store.commit_reply(notice).await.unwrap();
            dead.push(claimed.run.id);
        }
        let listed = scene.store.dead_runs(9).await.unwrap();
        let ids: Vec<RunId> = listed.iter().map(|run| run.id).collect();
        assert_eq!(ids, [dead[1], dead[0]]);

        scene.store.revive_run(dead[0], true, 300).await.unwrap();
        scene.store.revive_run(dead[1], false, 300).await.unwrap();
        assert_eq!(scene.store.dead_runs(9).await.unwrap(), []);
        let dropped = scene.store.run(dead[1]).await.unwrap();
        assert_eq!(dropped.state, RunState::Cancelled);
        let again = scene.claim(300).await.unwrap();
        assert_eq!((again.run.id, again.run.attempt), (dead[0], 1));
        assert_eq!(again.as_of_ms, 100);
        let not_dead = scene.store.revive_run(dead[0], true, 301).await;
        assert!(matches!(not_dead, Err(StoreError::NotFound { .. })));
    }
}
