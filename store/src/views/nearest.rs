//! The turns whose vectors are most like a query's, among the newest of some conversations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::StoreError;
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::columns::limit_of;
use vocative_core::ids::Seq;
use vocative_core::vector::Vector;

/// The most vectors that one search compares, over all its conversations.
pub(crate) const COMPARED_MAX: usize = 50_000;

/// A turn, and how alike it is: sorts by likeness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Near {
    pub(crate) seq: Seq,
    pub(crate) likeness: f32,
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_likeness = self.likeness.total_cmp(&other.likeness);
        by_likeness.then(self.seq.cmp(&other.seq))
    }
}

/// What was found near a vector.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    /// The turns, the likest first.
    pub(crate) turns: Vec<Near>,
    /// Vectors that were compared.
    pub(crate) compared: usize,
}

/// The most alike turns of some conversations: among the newest [`COMPARED_MAX`], and among those
/// that are named besides. Vectors of another model or with another number of dimensions don't count.
pub(crate) fn nearest(
    connection: &Connection,
    conversation_rows: &[i64],
    besides: &[Seq],
    query: &Vector,
    limit: usize,
) -> Result<Nearest, StoreError> {
    let mut best = BinaryHeap::with_capacity(limit + 1);
    let mut keep = |near: Near| {
        best.push(Reverse(near));
        if best.len() > limit {
            best.pop();
        }
    };
    let mut left = COMPARED_MAX;
    let mut oldest_compared = Vec::with_capacity(conversation_rows.len());
    for row in conversation_rows {
        let mut statement = connection.prepare_cached(
            "SELECT v.seq, v.scale, v.vector, v.sent_at_ms FROM turn_vectors v
             WHERE v.conversation_id = ?1
               AND v.model_id = (SELECT id FROM embedding_models WHERE is_current)
             ORDER BY v.sent_at_ms DESC, v.seq DESC LIMIT ?2",
        )?;
        let mut rows = statement.query((row, limit_of(left)))?;
        let mut oldest_ms = i64::MAX;
        while let Some(found) = rows.next()? {
            left = left.saturating_sub(1);
            oldest_ms = found.get("sent_at_ms")?;
            if let Some(near) = compared(query, &found)? {
                keep(near);
            }
        }
        oldest_compared.push((*row, oldest_ms));
    }
    for seq in besides {
        let mut statement = connection.prepare_cached(
            "SELECT v.seq, v.scale, v.vector, v.sent_at_ms, v.conversation_id FROM turn_vectors v
             WHERE v.seq = ?1 AND v.model_id = (SELECT id FROM embedding_models WHERE is_current)",
        )?;
        let found = statement
            .query_row([seq], |row| {
                let place: (i64, i64) = (row.get("conversation_id")?, row.get("sent_at_ms")?);
                let is_older = oldest_compared
                    .iter()
                    .any(|(row, oldest_ms)| *row == place.0 && place.1 < *oldest_ms);
                Ok(if is_older {
                    compared(query, row)?
                } else {
                    None
                })
            })
            .optional()?;
        if let Some(near) = found.flatten() {
            keep(near);
        }
    }
    let turns = best.into_sorted_vec().into_iter();
    Ok(Nearest {
        turns: turns.map(|Reverse(near)| near).collect(),
        compared: COMPARED_MAX - left,
    })
}

fn compared(
    query: &Vector,
    row: &crate::engine::sql::Row<'_>,
) -> crate::engine::sql::Result<Option<Near>> {
    #[allow(clippy::cast_possible_truncation)]
    let scale = row.get::<_, f64>("scale")? as f32;
    let stored = row.get_ref("vector")?.as_blob().unwrap_or_default();
    let likeness = query.likeness(scale, stored);
    let seq = row.get("seq")?;
    Ok(likeness.map(|likeness| Near { seq, likeness }))
}
