//! Thumbs as rows: which of them hold, and how many there are.

use crate::contract::ThumbCounts;
use crate::engine::sql::Connection;
use crate::rows::columns::count_from;
use crate::{Reader, StoreError};
use vocative_core::ids::{AgentName, RunId};

/// Whether a thumb `f` counts: it was not taken back, and is its person's newest on the run.
macro_rules! holds {
    () => {
        "f.is_given AND NOT EXISTS (
             SELECT 1 FROM feedback o WHERE o.run_id = f.run_id AND o.participant_id = f.participant_id AND o.is_given
               AND (o.changed_at_ms, o.thumb) > (f.changed_at_ms, f.thumb))"
    };
}
use crate::registry::{ErasureRule, Fate, OF_RUN, OTHER_SOURCE, StoreTable, account, text};
pub(crate) use holds;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "feedback",
    text(&[], &[], &["thumb"]),
    Fate {
        message: ErasureRule::Nothing(OTHER_SOURCE),
        ..OF_RUN
    },
)];

impl Reader {
    /// The thumbs that agents' answers have got since a time, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn thumbs_by_agent(
        &self,
        since_ms: i64,
    ) -> Result<Vec<(AgentName, ThumbCounts)>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(concat!(
                "SELECT r.agent, sum(f.thumb = 'up') AS up, sum(f.thumb = 'down') AS down
                     FROM feedback f CROSS JOIN runs r ON r.id = f.run_id
                     WHERE f.captured_at_ms >= ?1 AND ",
                holds!(),
                " GROUP BY r.agent"
            ))?;
            let rows = statement.query_map([since_ms], |row| {
                let thumbs = ThumbCounts {
                    up: count_from(row.get("up")?),
                    down: count_from(row.get("down")?),
                };
                Ok((row.get("agent")?, thumbs))
            })?;
            Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }
}

/// The thumbs on the answers of a run.
pub(crate) fn thumbs_of_run(
    connection: &Connection,
    run: RunId,
) -> Result<ThumbCounts, StoreError> {
    Ok(connection
        .prepare_cached(
            concat!(
                "SELECT coalesce(sum(f.thumb = 'up'), 0) AS up, coalesce(sum(f.thumb = 'down'), 0) AS down
                 FROM feedback f WHERE f.run_id = (SELECT id FROM runs WHERE uuid = ?1) AND ",
                holds!()
            ),
        )?
        .query_row([run], |row| {
            Ok(ThumbCounts {
                up: count_from(row.get("up")?),
                down: count_from(row.get("down")?),
            })
        })?)
}
