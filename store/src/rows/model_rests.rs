//! Models that are not asked for now, and the clock by which questions that wait for them age.

use crate::capability::{MayReply, MayUseModels};
use crate::engine::sql::{Connection, Row};
use crate::rows::open::open_run;

use crate::registry::{STATE, StoreTable, nobody, text};
use crate::rows::columns::count_from;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::AgentName;
use vocative_core::model_rest::ModelRest;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    nobody(
        "model_rests",
        "models are the operator's",
        text(&[], &[], &["model", "reason"]),
        STATE,
    ),
    nobody(
        "run_clock",
        "one clock for all runs",
        text(&[], &[], &[]),
        STATE,
    ),
];

impl Reader {
    /// Models that are not asked for now, by name.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn model_rests(&self) -> Result<Vec<ModelRest>, StoreError> {
        self.read(model_rests).await
    }

    /// What is noted of one model that is not asked for now.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn model_rest(&self, model: &str) -> Result<Option<ModelRest>, StoreError> {
        let model = model.to_owned();
        let rests = self.read(model_rests).await?;
        Ok(rests.into_iter().find(|rest| rest.model == model))
    }

    /// What the run clock shows, in milliseconds.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn run_clock_ms(&self) -> Result<i64, StoreError> {
        self.read(|connection| {
            Ok(connection
                .prepare_cached("SELECT elapsed_ms FROM run_clock")?
                .query_row([], |row| row.get("elapsed_ms"))?)
        })
        .await
    }
}

impl<C: MayReply> Store<C> {
    /// Makes queued runs of these agents that wait for another attempt due now: what they waited for is there.
    /// Returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn bring_runs_forward(
        &self,
        agents: &[AgentName],
        now_ms: i64,
    ) -> Result<usize, StoreError> {
        let agents = serde_json::json!(agents.iter().map(AgentName::as_str).collect::<Vec<_>>());
        self.write_riding(move |connection| {
            let brought = connection
                .prepare_cached(concat!(
                    "UPDATE runs INDEXED BY runs_waiting SET not_before_ms = ?2
                     WHERE ",
                    open_run!(),
                    " AND state = 'queued'
                       AND not_before_ms > ?2 AND put_off_at_ms IS NOT NULL
                       AND agent IN (SELECT value FROM json_each(?1))"
                ))?
                .execute((agents.to_string(), now_ms))?;
            Ok(brought)
        })
        .await
    }

    /// Lets the run clock go on. A power cut may lose it: questions are a little younger then.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn advance_run_clock(&self, elapsed_ms: i64) -> Result<(), StoreError> {
        self.write_riding(move |connection| advance_txn(connection, elapsed_ms))
            .await
    }
}

impl<C: MayUseModels> Store<C> {
    /// Notes that a model is not asked for now, in place of what was noted of it. A power cut may lose
    /// it: one request learns it again.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn note_model_rest(&self, rest: ModelRest) -> Result<(), StoreError> {
        self.write_riding(move |connection| note_txn(connection, &rest))
            .await
    }

    /// Notes that a model is asked again. Returns whether it was not before.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn end_model_rest(&self, model: &str) -> Result<bool, StoreError> {
        let model = model.to_owned();
        self.write_riding(move |connection| {
            let ended = connection
                .prepare_cached("DELETE FROM model_rests WHERE model = ?1")?
                .execute([model])?;
            Ok(ended > 0)
        })
        .await
    }
}

/// How many runs of each agent are queued.
pub(crate) fn queued_by_agent(
    connection: &Connection,
) -> Result<Vec<(AgentName, u64)>, StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT agent, count(*) AS runs FROM runs INDEXED BY runs_waiting
         WHERE ",
        open_run!(),
        " AND state = 'queued'
         GROUP BY agent ORDER BY agent"
    ))?;
    let counts = statement.query_map([], |row| {
        Ok((row.get("agent")?, count_from(row.get("runs")?)))
    })?;
    Ok(counts.collect::<crate::engine::sql::Result<_>>()?)
}

pub(crate) fn model_rests(connection: &Connection) -> Result<Vec<ModelRest>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT model, is_held, reason, since_ms, noted_at_ms, until_ms FROM model_rests
         ORDER BY model",
    )?;
    let rests = statement.query_map([], |row: &Row<'_>| {
        Ok(ModelRest {
            model: row.get("model")?,
            is_held: row.get("is_held")?,
            reason: row.get("reason")?,
            since_ms: row.get("since_ms")?,
            noted_at_ms: row.get("noted_at_ms")?,
            until_ms: row.get("until_ms")?,
        })
    })?;
    Ok(rests.collect::<crate::engine::sql::Result<_>>()?)
}

fn note_txn(connection: &Connection, rest: &ModelRest) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO model_rests (model, is_held, reason, since_ms, noted_at_ms, until_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (model) DO UPDATE
             SET is_held = ?2, reason = ?3, since_ms = ?4, noted_at_ms = ?5, until_ms = ?6",
        )?
        .execute((
            &rest.model,
            rest.is_held,
            &rest.reason,
            rest.since_ms,
            rest.noted_at_ms,
            rest.until_ms,
        ))?;
    Ok(())
}

fn advance_txn(connection: &Connection, elapsed_ms: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE run_clock SET elapsed_ms = elapsed_ms + max(?1, 0)")?
        .execute([elapsed_ms])?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    async fn asked_at(scene: &Scene) -> i64 {
        scene.value("SELECT asked_at_run_ms FROM runs").await
    }

    #[tokio::test]
    async fn a_question_ages_by_the_run_clock_from_when_it_is_queued() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.store.advance_run_clock(7_000).await.unwrap();
        scene.ask(&room, "one", 10).await;
        assert_eq!(asked_at(&scene).await, 7_000);
        // A run that a person brings back has not waited.
        scene
            .write(|connection| Ok(connection.execute("UPDATE runs SET state = 'held'", [])?))
            .await;
        scene.store.advance_run_clock(9_000).await.unwrap();
        let held = scene.store.held_runs(1).await.unwrap();
        scene.store.release_run(held[0].id, 20).await.unwrap();
        let now_ms = scene.store.run_clock_ms().await.unwrap();
        assert_eq!(asked_at(&scene).await, now_ms);
    }

    #[tokio::test]
    async fn what_is_noted_of_a_model_stands_until_it_ends() {
        let scene = Scene::open().await;
        let rest = ModelRest {
            model: "default".to_owned(),
            is_held: true,
            reason: "HTTP 401".to_owned(),
            since_ms: 1,
            noted_at_ms: 2,
            until_ms: 3,
        };
        let store = &scene.store;
        store.note_model_rest(rest.clone()).await.unwrap();
        let later = ModelRest {
            until_ms: 9,
            ..rest
        };
        store.note_model_rest(later.clone()).await.unwrap();
        assert_eq!(store.model_rests().await.unwrap(), [later]);
        assert!(store.end_model_rest("default").await.unwrap());
        assert!(!store.end_model_rest("default").await.unwrap());
    }
}
