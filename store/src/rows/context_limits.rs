//! What the contexts of models were found to hold, so that a start need not find it anew.

use crate::capability::MayReply;
use crate::engine::sql::OptionalExtension;

use crate::registry::{STATE, StoreTable, nobody, text};
use crate::rows::columns::{count_from, stored_count};
use crate::{Reader, Store, StoreError};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "context_limits",
    "what the contexts of models hold",
    text(&[], &[], &["model"]),
    STATE,
)];

/// How long a learnt context limit is believed: the provider may have raised it, or another server may answer.
const KEPT_MS: i64 = 7 * 24 * 3_600_000;

impl Reader {
    /// What a model's context was found to hold, in tokens. `None` if nothing is known, or it is old; a
    /// time from the future counts as old.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn context_limit(&self, model: &str, now_ms: i64) -> Result<Option<u64>, StoreError> {
        let model = model.to_owned();
        self.read(move |connection| {
            let tokens: Option<i64> = connection
                .prepare_cached(
                    "SELECT tokens FROM context_limits
                     WHERE model = ?1 AND learnt_at_ms <= ?2 AND learnt_at_ms > ?2 - ?3",
                )?
                .query_row((model, now_ms, KEPT_MS), |row| row.get("tokens"))
                .optional()?;
            Ok(tokens.map(count_from))
        })
        .await
    }
}

impl<C: MayReply> Store<C> {
    /// Keeps what a model's context was found to hold. A power cut may lose it: one request finds it again.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn keep_context_limit(
        &self,
        model: &str,
        tokens: u64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let model = model.to_owned();
        self.write_riding(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO context_limits (model, tokens, learnt_at_ms) VALUES (?1, ?2, ?3)
                     ON CONFLICT (model) DO UPDATE SET tokens = ?2, learnt_at_ms = ?3",
                )?
                .execute((model, stored_count(tokens), now_ms))?;
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test]
    async fn a_limit_is_kept_for_a_week() {
        let store = Scene::open().await.store;
        assert_eq!(store.context_limit("m", 5).await.unwrap(), None);
        for tokens in [9_000, 8_000] {
            store.keep_context_limit("m", tokens, 1_000).await.unwrap();
        }
        let table = [
            (1_000, Some(8_000)),
            (1_000 + KEPT_MS - 1, Some(8_000)),
            (1_000 + KEPT_MS, None),
            (999, None),
        ];
        for (now_ms, expected) in table {
            let limit = store.context_limit("m", now_ms).await.unwrap();
            assert_eq!(limit, expected, "{now_ms}");
        }
        assert_eq!(store.context_limit("other", 1_000).await.unwrap(), None);
    }
}
