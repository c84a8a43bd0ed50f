//! Rows of a history: read, kept, and counted.

use crate::engine::sql::{OptionalExtension, Params, Row, Statement, StatementStatus};

use super::HistoryReading;
use super::statements::BY_SEQ_SQL;
use crate::StoreError;
use crate::rows::columns::turn_from_row;
use vocative_core::history::{HistoryRole, HistoryTurn};
use vocative_core::ids::Seq;
use vocative_core::turn::{Position, Turn};

/// The most turns that one walk passes over because they are not for the prompt (deleted, of another scope,
/// waiting for a run of their own).
const PASSED_OVER_MAX: usize = 2_000;

/// Which turns a walk keeps.
pub(super) struct TurnWalk {
    /// The statement of the walk.
    pub(super) sql: &'static str,
    pub(super) conversation_row: i64,
    pub(super) after: Position,
    pub(super) before: Position,
    /// The most turns that are read.
    pub(super) limit: usize,
    pub(super) role: HistoryRole,
}

impl HistoryReading<'_> {
    /// Keeps the newest turns between two positions, within the query's bounds; returns whether there
    /// are more, or may be where too much was not for the prompt. A turn that is kept already counts,
    /// but not among what was overheard.
    pub(super) fn walk(&mut self, walk: &TurnWalk) -> Result<bool, StoreError> {
        let mut statement = self.connection.prepare_cached(walk.sql)?;
        forget_counts(&statement);
        let mut rows = statement.query(self.bounds(walk))?;
        let (mut kept, mut passed_over, mut has_more) = (0, 0, false);
        while let Some(row) = rows.next()? {
            self.cost.rows += 1;
            let is_known = self.has(row.get("seq")?);
            if !row.get::<_, bool>("is_for_prompt")? {
                passed_over += usize::from(row.get::<_, bool>("is_within_bound")?);
                has_more = passed_over == PASSED_OVER_MAX;
            } else if !is_known || walk.role != HistoryRole::Ambient {
                has_more = kept == walk.limit;
                kept += 1;
                if !is_known && !has_more {
                    self.keep(Some(turn_from_row(&row)?), walk.role);
                }
            }
            if has_more {
                break;
            }
        }
        drop(rows);
        self.count(&statement);
        Ok(has_more)
    }

    fn bounds(&self, walk: &TurnWalk) -> impl Params + use<> {
        (
            walk.conversation_row,
            self.query.agent.clone(),
            // Also where the index starts, so that nothing before it is read.
            self.query
                .since_ms
                .unwrap_or(i64::MIN)
                .max(walk.after.sent_at_ms),
            self.as_of_seq,
            self.query.scope,
            self.run_row,
            self.run_conversation_row,
            walk.before.sent_at_ms,
            walk.before.ordinal,
            walk.before.seq,
            walk.after.sent_at_ms,
            walk.after.ordinal,
            walk.after.seq,
        )
    }

    fn has(&self, seq: Seq) -> bool {
        self.turns.iter().any(|read| read.turn.seq() == seq)
    }

    pub(crate) fn keep_seq(&mut self, seq: Seq, role: HistoryRole) -> Result<(), StoreError> {
        if !self.has(seq) {
            let found = self.one(BY_SEQ_SQL, [seq], turn_from_row)?;
            self.keep(found, role);
        }
        Ok(())
    }

    /// The turn, if it was said since the agent began afresh.
    pub(super) fn behind_floor(&self, turn: Option<Turn>) -> Option<Turn> {
        turn.filter(|turn| turn.position > self.floor)
    }

    pub(super) fn keep(&mut self, turn: Option<Turn>, role: HistoryRole) {
        if let Some(turn) = turn.filter(|turn| !self.has(turn.seq())) {
            self.turns.push(HistoryTurn { turn, role });
        }
    }

    pub(super) fn one<T>(
        &mut self,
        sql: &str,
        key: impl Params,
        read: impl FnOnce(&Row<'_>) -> crate::engine::sql::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        forget_counts(&statement);
        let found = statement.query_row(key, read).optional()?;
        self.cost.rows += u64::from(found.is_some());
        self.count(&statement);
        Ok(found)
    }

    /// Adds what a statement cost since its counts were forgotten.
    fn count(&mut self, statement: &Statement<'_>) {
        let counter = |status| u64::try_from(statement.get_status(status)).unwrap_or(0);
        self.cost.scan_steps += counter(StatementStatus::FullscanStep);
        self.cost.sorts += counter(StatementStatus::Sort) + counter(StatementStatus::AutoIndex);
        self.cost.vm_steps += counter(StatementStatus::VmStep);
    }
}

/// Resets a statement's counters: a cached statement still has those of its last use.
fn forget_counts(statement: &Statement<'_>) {
    for status in [
        StatementStatus::FullscanStep,
        StatementStatus::Sort,
        StatementStatus::AutoIndex,
        StatementStatus::VmStep,
    ] {
        statement.reset_status(status);
    }
}
