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

/// What was found near some vectors.
#[derive(Debug)]
pub(crate) struct Nearest {
    /// One list for each of these vectors.
    pub(crate) lists: Vec<Likest>,
    /// Turns whose vectors were compared.
    pub(crate) compared: usize,
}

/// What was found near one vector.
#[derive(Debug)]
pub(crate) struct Likest {
    /// The turns, the likest first.
    pub(crate) turns: Vec<Near>,
    /// How far the first one's likeness is over the mean of all, in standard deviations.
    pub(crate) deviations: f32,
}

/// The turns that are likest to one query, as they are met.
struct NearestTurns<'a> {
    query: &'a Vector,
    limit: usize,
    best: BinaryHeap<Reverse<Near>>,
    count: f32,
    sum: f32,
    squares: f32,
}

impl NearestTurns<'_> {
    fn keep(&mut self, seq: Seq, scale: f32, stored: &[u8]) {
        let Some(likeness) = self.query.likeness(scale, stored) else {
            return;
        };
        self.count += 1.0;
        self.sum += likeness;
        self.squares += likeness * likeness;
        self.best.push(Reverse(Near { seq, likeness }));
        if self.best.len() > self.limit {
            self.best.pop();
        }
    }

    fn finish(self) -> Likest {
        let turns: Vec<Near> = self
            .best
            .into_sorted_vec()
            .into_iter()
            .map(|it| it.0)
            .collect();
        let mean = self.sum / self.count.max(1.0);
        let deviation = (self.squares / self.count.max(1.0) - mean * mean)
            .max(0.0)
            .sqrt();
        let over = turns.first().map_or(0.0, |first| first.likeness - mean);
        Likest {
            turns,
            deviations: if deviation > 0.0 {
                over / deviation
            } else {
                0.0
            },
        }
    }
}

/// The turns of some conversations that are likest to each query: among the newest [`COMPARED_MAX`], and among those
/// that are named besides. Vectors of another model or with another number of dimensions don't count.
pub(crate) fn nearest(
    connection: &Connection,
    conversation_rows: &[i64],
    besides: &[Seq],
    queries: &[Vector],
    limit: usize,
) -> Result<Nearest, StoreError> {
    let keeper = |query| NearestTurns {
        query,
        limit,
        best: BinaryHeap::with_capacity(limit + 1),
        count: 0.0,
        sum: 0.0,
        squares: 0.0,
    };
    let mut keepers: Vec<NearestTurns<'_>> = queries.iter().map(keeper).collect();
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
            compare(&mut keepers, &found)?;
        }
        oldest_compared.push((*row, oldest_ms));
    }
    for seq in besides {
        let mut statement = connection.prepare_cached(
            "SELECT v.seq, v.scale, v.vector, v.sent_at_ms, v.conversation_id FROM turn_vectors v
             WHERE v.seq = ?1 AND v.model_id = (SELECT id FROM embedding_models WHERE is_current)",
        )?;
        statement
            .query_row([seq], |row| {
                let place: (i64, i64) = (row.get("conversation_id")?, row.get("sent_at_ms")?);
                let is_older = oldest_compared
                    .iter()
                    .any(|(row, oldest_ms)| *row == place.0 && place.1 < *oldest_ms);
                match is_older {
                    true => compare(&mut keepers, row),
                    false => Ok(()),
                }
            })
            .optional()?;
    }
    Ok(Nearest {
        lists: keepers.into_iter().map(NearestTurns::finish).collect(),
        compared: COMPARED_MAX - left,
    })
}

fn compare(
    keepers: &mut [NearestTurns<'_>],
    row: &crate::engine::sql::Row<'_>,
) -> crate::engine::sql::Result<()> {
    #[allow(clippy::cast_possible_truncation)]
    let scale = row.get::<_, f64>("scale")? as f32;
    let stored = row.get_ref("vector")?.as_blob().unwrap_or_default();
    let seq = row.get("seq")?;
    for keeper in keepers {
        keeper.keep(seq, scale, stored);
    }
    Ok(())
}
