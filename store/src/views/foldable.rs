//! The kept turns of an agent that may be folded into a summary, by position: each read ends at its limit.

use crate::StoreError;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::{AT, LAST, limit_of, position_at};
use crate::rows::open::open_run;
use vocative_core::coverage::{Coverage, Keep};
use vocative_core::ids::{AgentName, Seq, TurnId};
use vocative_core::summary::FoldQuery;
use vocative_core::turn::Position;

/// Kept turns after one position and up to another, by position.
macro_rules! covered {
    ($select:literal, $from:literal, $position:literal, $tail:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM ",
            $from,
            " AND (",
            $position,
            ".sent_at_ms, ",
            $position,
            ".ordinal, ",
            $position,
            ".seq) > (?3, ?4, ?5) AND (",
            $position,
            ".sent_at_ms, ",
            $position,
            ".ordinal, ",
            $position,
            ".seq) <= (?6, ?7, ?8)
             AND t.visibility = 'room' AND (?9 IS NULL OR t.scope = ?9) ",
            $tail
        )
    };
}

const INVOLVED_SQL: &str = covered!(
    "t.seq, t.uuid, t.revision",
    "involvements i CROSS JOIN turns t ON t.seq = i.seq WHERE i.conversation_id = ?1 AND i.agent = ?2",
    "i",
    "ORDER BY i.sent_at_ms, i.ordinal, i.seq LIMIT ?10"
);
const ALL_SQL: &str = covered!(
    "t.seq, t.uuid, t.revision",
    "turns t WHERE t.conversation_id = ?1",
    "t",
    "ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?10"
);
const INVOLVED_PEOPLE_SQL: &str = covered!(
    "t.sent_at_ms, t.ordinal, t.seq",
    "involvements i CROSS JOIN turns t ON t.seq = i.seq CROSS JOIN participants p
     ON p.id = t.participant_id AND p.kind = 'user' WHERE i.conversation_id = ?1 AND i.agent = ?2",
    "i",
    "ORDER BY i.sent_at_ms DESC, i.ordinal DESC, i.seq DESC LIMIT 1 OFFSET ?10"
);
const INVOLVED_NEWEST_SQL: &str = covered!(
    "t.sent_at_ms, t.ordinal, t.seq",
    "involvements i CROSS JOIN turns t ON t.seq = i.seq WHERE i.conversation_id = ?1 AND i.agent = ?2",
    "i",
    "ORDER BY i.sent_at_ms DESC, i.ordinal DESC, i.seq DESC LIMIT 1 OFFSET ?10"
);
const ALL_NEWEST_SQL: &str = covered!(
    "t.sent_at_ms, t.ordinal, t.seq",
    "turns t WHERE t.conversation_id = ?1",
    "t",
    "ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT 1 OFFSET ?10"
);
const ALL_PEOPLE_SQL: &str = covered!(
    "t.sent_at_ms, t.ordinal, t.seq",
    "turns t CROSS JOIN participants p ON p.id = t.participant_id AND p.kind = 'user'
     WHERE t.conversation_id = ?1",
    "t",
    "ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT 1 OFFSET ?10"
);
/// Finds a handful at most: one run of a conversation is at work, and few wait.
const WAITING_SQL: &str = concat!(
    "SELECT t.sent_at_ms, t.ordinal, t.seq FROM runs x INDEXED BY runs_open
     CROSS JOIN run_triggers g ON g.run_id = x.id CROSS JOIN turns t ON t.seq = g.turn_seq
     WHERE x.conversation_id = ?1 AND ",
    open_run!("x"),
    "
     ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT 1"
);

/// Kept turns of an agent in a conversation.
pub(crate) struct FoldableTurns<'a> {
    pub(crate) connection: &'a Connection<'a>,
    pub(crate) conversation_row: i64,
    pub(crate) agent: &'a AgentName,
    pub(crate) coverage: &'a Coverage,
}

/// A kept turn, as far as a summary's sources need it.
pub(crate) struct KeptTurn {
    pub(crate) seq: Seq,
    pub(crate) source: (TurnId, u32),
}

impl FoldableTurns<'_> {
    /// The oldest kept turns after a position, up to and including another.
    pub(crate) fn between(
        &self,
        after: Position,
        through: Position,
        limit: usize,
    ) -> Result<Vec<KeptTurn>, StoreError> {
        let sql = match self.coverage.keep {
            Keep::Involved => INVOLVED_SQL,
            Keep::All => ALL_SQL,
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(
            params![
                self.conversation_row,
                self.agent,
                after.sent_at_ms,
                after.ordinal,
                after.seq,
                through.sent_at_ms,
                through.ordinal,
                through.seq,
                self.coverage.scope,
                limit_of(limit)
            ],
            |row| {
                Ok(KeptTurn {
                    seq: row.get("seq")?,
                    source: (row.get("uuid")?, row.get("revision")?),
                })
            },
        )?;
        Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
    }

    /// The position from which turns are not folded; `None` if none may be folded.
    pub(crate) fn preserved_from(
        &self,
        after: Position,
        query: &FoldQuery,
    ) -> Result<Option<Position>, StoreError> {
        let (of_people, of_all) = match self.coverage.keep {
            Keep::Involved => (INVOLVED_PEOPLE_SQL, INVOLVED_NEWEST_SQL),
            Keep::All => (ALL_PEOPLE_SQL, ALL_NEWEST_SQL),
        };
        if query.preserve_recent == 0 {
            return Ok(Some(LAST));
        }
        let people = self.newest(of_people, after, query.preserve_recent)?;
        let held = self.newest(of_all, after, query.hold_turns)?;
        match (people, held) {
            (_, None) => Ok(people),
            (Some(people), Some(held)) if people >= held => Ok(Some(people)),
            (_, Some(_)) => self.newest(of_all, after, query.hold_turns.div_ceil(2)),
        }
    }

    /// The position at which the newest `count` turns begin; `None` while there are fewer.
    pub(crate) fn newest(
        &self,
        sql: &str,
        after: Position,
        count: usize,
    ) -> Result<Option<Position>, StoreError> {
        let found = self
            .connection
            .prepare_cached(sql)?
            .query_row(
                params![
                    self.conversation_row,
                    self.agent,
                    after.sent_at_ms,
                    after.ordinal,
                    after.seq,
                    LAST.sent_at_ms,
                    LAST.ordinal,
                    LAST.seq,
                    self.coverage.scope,
                    limit_of(count.saturating_sub(1))
                ],
                |row| position_at(row, AT),
            )
            .optional()?;
        Ok(found)
    }

    /// The oldest turn that still waits for its answer.
    pub(crate) fn oldest_waiting(&self) -> Result<Position, StoreError> {
        let found = self
            .connection
            .prepare_cached(WAITING_SQL)?
            .query_row([self.conversation_row], |row| position_at(row, AT))
            .optional()?;
        Ok(found.unwrap_or(LAST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::summaries::{CURRENT_SQL, FOLDED_SQL};
    use crate::scene::Scene;

    #[tokio::test]
    async fn every_read_goes_through_an_index_in_its_order() {
        let scene = Scene::open().await;
        let in_order = [
            (INVOLVED_SQL, "SEARCH i USING PRIMARY KEY"),
            (ALL_SQL, "turns_by_position"),
            (INVOLVED_PEOPLE_SQL, "SEARCH i USING PRIMARY KEY"),
            (ALL_PEOPLE_SQL, "turns_by_position"),
            (INVOLVED_NEWEST_SQL, "SEARCH i USING PRIMARY KEY"),
            (ALL_NEWEST_SQL, "turns_by_position"),
            (CURRENT_SQL, "summaries_current"),
            (FOLDED_SQL, "summaries_current"),
        ];
        for (sql, index) in in_order {
            let plan = scene.plan(sql).await;
            assert!(plan.iter().any(|step| step.contains(index)), "{plan:#?}");
            for step in &plan {
                assert!(!step.contains("SCAN"), "{plan:#?}");
                assert!(!step.contains("TEMP B-TREE"), "{plan:#?}");
            }
        }
        let plan = scene.plan(WAITING_SQL).await;
        assert!(plan[0].contains("runs_open"), "{plan:#?}");
    }
}
