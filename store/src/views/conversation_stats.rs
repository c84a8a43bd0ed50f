//! Figures of a conversation and its threads since a time.

use crate::contract::{AnswerTimes, ConversationStats, ThumbCounts};
use crate::engine::sql::Connection;
use crate::rows::columns::{conversation_row_id, count_from};
use crate::rows::feedback::holds;
use crate::{Reader, StoreError};
use vocative_core::ids::ConversationId;

/// The most messages, and the most runs, that are counted: the newest.
const COUNTED_MAX: i64 = 200_000;

/// A conversation and its threads.
macro_rules! within {
    () => {
        "(SELECT id FROM conversations WHERE id = ?1 OR parent_id = ?1)"
    };
}

const MESSAGES_SQL: &str = concat!(
    "SELECT count(*) AS counted, sum(is_inbound) AS said, count(DISTINCT iif(is_inbound, participant_id, NULL)) AS speakers
     FROM (SELECT t.is_inbound, t.participant_id FROM conversations c
           CROSS JOIN turns t INDEXED BY turns_by_position ON t.conversation_id = c.id AND t.sent_at_ms >= ?2
           WHERE c.id IN ",
    within!(),
    " AND t.kind = 'message' AND t.visibility = 'room'
           ORDER BY t.sent_at_ms DESC LIMIT ?3)"
);
const RUNS_SQL: &str = concat!(
    "SELECT r.id, r.state, r.cost_micros, r.finished_at_ms - r.created_at_ms AS took_ms,
            (SELECT sum(f.thumb = 'up') FROM feedback f WHERE f.run_id = r.id AND ",
    holds!(),
    ") AS up,
            (SELECT sum(f.thumb = 'down') FROM feedback f WHERE f.run_id = r.id AND ",
    holds!(),
    ") AS down,
            (SELECT sum(s.prompt_tokens) FROM steps s WHERE s.run_id = r.id) AS prompt_tokens,
            (SELECT sum(s.completion_tokens) FROM steps s WHERE s.run_id = r.id) AS completion_tokens
     FROM conversations c CROSS JOIN runs r INDEXED BY runs_by_conversation ON r.conversation_id = c.id
     WHERE c.id IN ",
    within!(),
    " AND r.created_at_ms >= ?2 ORDER BY r.id DESC LIMIT ?3"
);

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 2] = [MESSAGES_SQL, RUNS_SQL];

impl Reader {
    /// Figures of a conversation and its threads since a time, in milliseconds since the Unix epoch; of the newest
    /// 200,000 messages and runs.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn conversation_stats(
        &self,
        id: ConversationId,
        since_ms: i64,
    ) -> Result<ConversationStats, StoreError> {
        self.read(move |connection| stats(connection, id, since_ms))
            .await
    }
}

fn stats(
    connection: &Connection,
    id: ConversationId,
    since_ms: i64,
) -> Result<ConversationStats, StoreError> {
    let values = (conversation_row_id(connection, id)?, since_ms, COUNTED_MAX);
    let mut stats = connection
        .prepare_cached(MESSAGES_SQL)?
        .query_row(values, |row| {
            let counted = count_from(row.get("counted")?);
            let said = count_from(row.get::<_, Option<i64>>("said")?.unwrap_or(0));
            Ok(ConversationStats {
                messages_of_people: said,
                messages_of_agents: counted - said,
                speakers: count_from(row.get("speakers")?),
                is_cut: counted >= COUNTED_MAX as u64,
                ..ConversationStats::default()
            })
        })?;
    let mut took_ms = Vec::new();
    let mut statement = connection.prepare_cached(RUNS_SQL)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        let count = |name: &str| -> Result<u64, StoreError> {
            Ok(count_from(row.get::<_, Option<i64>>(name)?.unwrap_or(0)))
        };
        stats.runs += 1;
        stats.cost_micros += count("cost_micros")?;
        stats.prompt_tokens += count("prompt_tokens")?;
        stats.completion_tokens += count("completion_tokens")?;
        stats.thumbs = ThumbCounts {
            up: stats.thumbs.up + count("up")?,
            down: stats.thumbs.down + count("down")?,
        };
        match row.get::<_, String>("state")?.as_str() {
            "done" => {
                stats.runs_answered += 1;
                took_ms.push(count("took_ms")?);
            }
            "dead" => stats.runs_dead += 1,
            _ => {}
        }
    }
    stats.is_cut |= stats.runs >= COUNTED_MAX as u64;
    took_ms.sort_unstable();
    let at = |percent: usize| took_ms.get(took_ms.len().saturating_sub(1) * percent / 100);
    stats.answer_times = at(50).zip(at(95)).map(|(p50, p95)| AnswerTimes {
        p50_ms: *p50,
        p95_ms: *p95,
    });
    Ok(stats)
}
