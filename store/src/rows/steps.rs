//! A run's steps: what each model call answered, opaque. What its tools gave is in `tool_calls`.

use crate::capability::MayReply;
use crate::engine::sql::Connection;
use crate::rows::leases::leased_run;

use crate::contract::{LeaseOutcome, RecordedStep};
use crate::registry::{OF_RUN, StoreTable, account, text};
use crate::rows::columns::stored_count;
use crate::rows::hook_verdicts::{forget_verdicts_txn, keep_verdicts_txn};
use crate::rows::run_events::tell_usage_txn;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{LeaseToken, RunId};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account("steps", text(&["message"], &[], &[]), OF_RUN)];

impl Reader {
    /// What a run's model calls answered, oldest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn steps(&self, run: RunId) -> Result<Vec<String>, StoreError> {
        self.read(move |connection| steps(connection, run)).await
    }
}

impl<C: MayReply> Store<C> {
    /// Records a model call of a run: the provider's own message, opaque, its usage, and what hooks said of it. The
    /// same number again replaces it. A power cut may undo it until the reply is committed; the model is
    /// then asked again.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn record_step(
        &self,
        run: RunId,
        token: LeaseToken,
        step: RecordedStep,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write_riding(move |connection| {
            record_step_txn(connection, (run, token), &step, now_ms)
        })
        .await
    }
}

/// The models that answered the steps of a run, each once, in the order in which they first did. Only the name under
/// which a step was recorded is read; a step without a name is left out.
pub(crate) fn models_of(connection: &Connection, run_row: i64) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT model FROM (SELECT n, iif(json_valid(message), json_extract(message, '$.model'), NULL) AS model
                            FROM steps WHERE run_id = ?1)
         WHERE typeof(model) = 'text' AND model <> '' GROUP BY model ORDER BY min(n)",
    )?;
    let models = statement.query_map([run_row], |row| row.get("model"))?;
    Ok(models.collect::<crate::engine::sql::Result<_>>()?)
}

fn steps(connection: &Connection, run: RunId) -> Result<Vec<String>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT s.message FROM steps s JOIN runs r ON r.id = s.run_id
             WHERE r.uuid = ?1 ORDER BY s.n",
        )?
        .query_map([run], |row| row.get("message"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    Ok(found)
}

fn record_step_txn(
    connection: &Connection,
    (run, token): (RunId, LeaseToken),
    step: &RecordedStep,
    now_ms: i64,
) -> Result<LeaseOutcome, StoreError> {
    let Some(leased) = leased_run(connection, run, token)? else {
        return Ok(LeaseOutcome::Stale);
    };
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO steps
                 (run_id, n, message, prompt_tokens, cache_read_tokens, cache_write_tokens,
                  completion_tokens, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            leased.row,
            step.number,
            &step.message,
            stored_count(step.usage.prompt_tokens),
            stored_count(step.usage.cache_read_tokens),
            stored_count(step.usage.cache_write_tokens),
            stored_count(step.usage.completion_tokens),
            now_ms,
        ))?;
    let owner = (leased.row, leased.conversation_row);
    tell_usage_txn(connection, owner, step.number, step.usage, now_ms)?;
    forget_verdicts_txn(connection, leased.row, step.number)?;
    keep_verdicts_txn(connection, leased.row, &step.verdicts, now_ms)?;
    Ok(LeaseOutcome::Written)
}
