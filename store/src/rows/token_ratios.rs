//! What each model's provider reports about prompts, and the ratio that a run's prompt is made with.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, Row, params};

use crate::registry::{STATE, StoreTable, nobody, text};
use crate::rows::columns::{count_from, stored_count};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::tokens::{LearntRatio, PromptReport, RatioKey, RatioStatus, TokenRatio};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "token_ratios",
    "how models count",
    text(&[], &[], &["model", "counter"]),
    STATE,
)];

impl Reader {
    /// The ratio in use for a model; 1 as long as nothing was learnt.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn token_ratio(&self, key: RatioKey) -> Result<TokenRatio, StoreError> {
        self.read(move |connection| Ok(learnt(connection, &key)?.unwrap_or_default().ratio))
            .await
    }
}

impl<C: MayReply> Store<C> {
    /// The ratio of a run: the one in use when this is first asked, the same ever after. `None` if
    /// the lease is no longer held.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn fix_token_ratio(
        &self,
        run: RunId,
        token: LeaseToken,
        key: RatioKey,
    ) -> Result<Option<TokenRatio>, StoreError> {
        self.write_riding(move |connection| fix_token_ratio_txn(connection, run, token, &key))
            .await
    }

    /// Learns from a prompt that a model was sent.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn learn_token_ratio(
        &self,
        key: RatioKey,
        report: PromptReport,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write_riding(move |connection| learn_txn(connection, &key, report, now_ms))
            .await
    }
}

fn fix_token_ratio_txn(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
    key: &RatioKey,
) -> Result<Option<TokenRatio>, StoreError> {
    let ratio = learnt(connection, key)?.unwrap_or_default().ratio;
    let fixed: Option<i64> = connection
        .prepare_cached(
            "UPDATE runs SET token_ratio_64ths = coalesce(token_ratio_64ths, ?3)
             WHERE uuid = ?1 AND token = ?2 AND state = 'leased'
             RETURNING token_ratio_64ths",
        )?
        .query_row((run, token, stored_count(ratio.as_64ths())), |row| {
            row.get("token_ratio_64ths")
        })
        .optional()?;
    Ok(fixed.map(|parts| TokenRatio::from_64ths(count_from(parts))))
}

fn learn_txn(
    connection: &Connection,
    key: &RatioKey,
    report: PromptReport,
    now_ms: i64,
) -> Result<(), StoreError> {
    let mut learnt = learnt(connection, key)?.unwrap_or_default();
    if !learnt.learn(report) {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO token_ratios
                    (model, counter, reported, counted, ratio_64ths, reports, ignored, updated_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            key.model,
            key.counter,
            learnt.reported,
            learnt.counted,
            stored_count(learnt.ratio.as_64ths()),
            stored_count(learnt.reports),
            stored_count(learnt.ignored),
            now_ms,
        ])?;
    Ok(())
}

fn learnt(connection: &Connection, key: &RatioKey) -> Result<Option<LearntRatio>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT reported, counted, ratio_64ths, reports, ignored FROM token_ratios
             WHERE model = ?1 AND counter = ?2",
        )?
        .query_row((&key.model, &key.counter), |row| learnt_from(row, 0))
        .optional()?)
}

fn learnt_from(row: &Row<'_>, first: usize) -> crate::engine::sql::Result<LearntRatio> {
    Ok(LearntRatio {
        reported: row.get(first)?,
        counted: row.get(first + 1)?,
        ratio: TokenRatio::from_64ths(count_from(row.get(first + 2)?)),
        reports: count_from(row.get(first + 3)?),
        ignored: count_from(row.get(first + 4)?),
    })
}

/// All that was learnt, by model.
pub(crate) fn token_ratios(connection: &Connection) -> Result<Vec<RatioStatus>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT model, counter, reported, counted, ratio_64ths, reports, ignored
         FROM token_ratios ORDER BY model, counter",
    )?;
    let ratios = statement.query_map([], |row| {
        Ok(RatioStatus {
            key: RatioKey {
                model: row.get("model")?,
                counter: row.get("counter")?,
            },
            learnt: learnt_from(row, 2)?,
        })
    })?;
    Ok(ratios.collect::<crate::engine::sql::Result<_>>()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::new_id::NewId as _;
    use crate::scene::Scene;

    fn key() -> RatioKey {
        RatioKey {
            model: "default (openai/gpt-5-mini)".to_owned(),
            counter: "class_v2".to_owned(),
        }
    }

    async fn learn(scene: &Scene, reported: u64) {
        let report = PromptReport {
            counted: 2_000,
            reported,
        };
        let learnt = scene.store.learn_token_ratio(key(), report, 1_000);
        learnt.await.unwrap();
    }

    #[tokio::test]
    async fn what_was_learnt_is_stored_for_each_model_and_counter() {
        let scene = Scene::open().await;
        let ratio = async |key| scene.store.token_ratio(key).await.unwrap();
        assert_eq!(ratio(key()).await, TokenRatio::ONE);
        learn(&scene, 2_400).await;
        learn(&scene, 1).await;
        assert_eq!(ratio(key()).await.to_string(), "1.11");
        let other = RatioKey {
            counter: "o200k_v1".to_owned(),
            ..key()
        };
        assert_eq!(ratio(other).await, TokenRatio::ONE);
        let status = scene.store.status(0).await.unwrap().token_ratios;
        let mut expected = LearntRatio::default();
        for reported in [2_400, 1] {
            expected.learn(PromptReport {
                counted: 2_000,
                reported,
            });
        }
        let expected = RatioStatus {
            key: key(),
            learnt: expected,
        };
        assert_eq!(status, [expected]);
    }

    #[tokio::test]
    async fn a_run_keeps_the_ratio_of_its_first_prompt() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "hello?", 10).await;
        let claimed = scene.claim(100).await.unwrap();
        let fixed = async |token| {
            let fixed = scene.store.fix_token_ratio(claimed.run.id, token, key());
            fixed.await.unwrap()
        };
        learn(&scene, 2_400).await;
        let first = fixed(claimed.token).await;
        assert_eq!(first.unwrap().to_string(), "1.11");
        for _ in 0..20 {
            learn(&scene, 3_000).await;
        }
        assert_ne!(
            scene.store.token_ratio(key()).await.unwrap(),
            first.unwrap()
        );
        assert_eq!(fixed(claimed.token).await, first);
        assert_eq!(fixed(LeaseToken::generate()).await, None);
    }
}
