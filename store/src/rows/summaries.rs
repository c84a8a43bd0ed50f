//! Stored summaries: which one may be used, what becomes of them when a turn they stand for
//! changes, and what people see of them. They are made in `fold`.
//!
//! A summary holds the turns that were folded into it and those of the one before it: whatever happens
//! to one of them touches the first that holds it and all made on top of it. What is left current is the
//! last checkpoint before the change.

use crate::engine::sql::{Connection, OptionalExtension, Row, ToSql, params};
use crate::rows::turn_rows::TurnRow;

use crate::registry::{
    ErasureRule, ExpiryRule, ExportRule, Fate, MergeRule, STATE, StoreTable, account, text,
};
use crate::rows::columns::{conversation_row_id, count_from, position_at};
use crate::{Reader, Store, StoreError};
use vocative_core::coverage::{Coverage, Keep};
use vocative_core::history::SummaryView;
use vocative_core::ids::{AgentName, ConversationId, Seq, SummaryId};
use vocative_core::summary::{SetAside, Summary, SummaryCounts};
use vocative_core::turn::Position;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "refolds",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::Moves,
            ..STATE
        },
    ),
    account(
        "summaries",
        text(
            &["text"],
            &[],
            &[
                "agent",
                "fingerprint",
                "covers",
                "counter",
                "model",
                "state",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            merge: MergeRule::Moves,
            expiry: ExpiryRule::Nothing("a summary is the room's memory of what went by its age"),
            export: ExportRule::Nothing("what it stands for is exported"),
            ..STATE
        },
    ),
    account(
        "summary_turns",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::FollowsTurn,
            ..STATE
        },
    )
    .follows(&["turn_seq"]),
];

/// What becomes of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryFate {
    /// A turn was edited: it is made again, and not used until then.
    Stale,
    /// A turn was deleted: it is never sent again, and its text goes.
    Void,
}

/// Up to when a summary must have been made, and of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SummaryBound {
    /// It stands for no turn captured after this.
    pub(crate) as_of_seq: Seq,
    /// It was made at this time or before, in milliseconds since the Unix epoch.
    pub(crate) made_by_ms: i64,
    /// It stands only for turns behind this: the agent began afresh there.
    pub(crate) floor: Position,
}

pub(crate) const CURRENT_SQL: &str =
    "SELECT id, text, through_sent_at_ms, through_ordinal, through_seq FROM summaries
     WHERE conversation_id = ?1 AND agent = ?2 AND fingerprint = ?3 AND state = 'current'
       AND newest_seq <= ?4 AND created_at_ms <= ?5
       AND (from_sent_at_ms, from_ordinal, from_seq) > (?6, ?7, ?8)
     ORDER BY through_sent_at_ms DESC, through_ordinal DESC, through_seq DESC LIMIT 1";

pub(crate) const FOLDED_SQL: &str =
    "SELECT coalesce(sum(s.turn_count), 0) AS value FROM summaries x CROSS JOIN summaries s
     ON s.conversation_id = x.conversation_id AND s.agent = x.agent
        AND s.fingerprint = x.fingerprint AND s.state = 'current'
        AND (s.through_sent_at_ms, s.through_ordinal, s.through_seq)
            <= (x.through_sent_at_ms, x.through_ordinal, x.through_seq)
     WHERE x.id = ?1";

macro_rules! select_summaries {
    ($tail:literal) => {
        concat!(
            "SELECT id, agent, previous_id, from_sent_at_ms, from_ordinal, from_seq,
                    through_sent_at_ms, through_ordinal, through_seq, turn_count, text, tokens,
                    model, state, created_at_ms
             FROM summaries ",
            $tail
        )
    };
}

impl Reader {
    /// All summaries of a conversation, by agent and then as the chain grew.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn summaries(
        &self,
        conversation: ConversationId,
        agent: Option<AgentName>,
    ) -> Result<Vec<Summary>, StoreError> {
        self.read(move |connection| {
            let row = conversation_row_id(connection, conversation)?;
            let mut statement = connection.prepare_cached(select_summaries!(
                "WHERE conversation_id = ?1 AND (?2 IS NULL OR agent = ?2)
                     ORDER BY agent, through_sent_at_ms, through_ordinal, through_seq, id"
            ))?;
            let rows = statement.query_map(params![row, agent], summary_from_row)?;
            Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }
}

impl Store {
    /// Sets the usable summaries of a conversation aside, so that they are made again from its turns at
    /// once. Those over turns that went by their age can't be made again: they stay unless `forget_expired`.
    /// Returns how many were set aside and how many stay.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn set_summaries_aside(
        &self,
        conversation: ConversationId,
        agent: Option<AgentName>,
        forget_expired: bool,
    ) -> Result<SetAside, StoreError> {
        self.write(move |connection| {
            let row = conversation_row_id(connection, conversation)?;
            let set_aside = connection
                .prepare_cached(
                    "UPDATE summaries SET state = 'stale'
                     WHERE conversation_id = ?1 AND (?2 IS NULL OR agent = ?2)
                       AND state = 'current' AND (?3 OR NOT holds_expired)",
                )?
                .execute(params![row, agent, forget_expired])?;
            let stay: i64 = connection
                .prepare_cached(
                    "SELECT count(*) AS stay FROM summaries
                     WHERE conversation_id = ?1 AND (?2 IS NULL OR agent = ?2) AND state = 'current'",
                )?
                .query_row(params![row, agent], |row| row.get("stay"))?;
            connection
                .prepare_cached("DELETE FROM refolds WHERE conversation_id = ?1")?
                .execute([row])?;
            Ok(SetAside {
                set_aside: set_aside as u64,
                stay: count_from(stay),
            })
        })
        .await
    }
}

impl Reader {
    /// How many turns a summary stands for: those folded into it and into the ones before it.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn summarized_turns(&self, summary: SummaryId) -> Result<u64, StoreError> {
        self.read(move |connection| {
            let turns = connection
                .prepare_cached(FOLDED_SQL)?
                .query_row([summary], |row| row.get("value"))?;
            Ok(count_from(turns))
        })
        .await
    }
}

/// Summaries of a conversation that were made at or after the first time and before the second,
/// oldest first.
pub(crate) fn summaries_created(
    connection: &Connection,
    conversation_row: i64,
    (from_ms, before_ms): (i64, i64),
) -> Result<Vec<Summary>, StoreError> {
    let mut statement = connection.prepare_cached(select_summaries!(
        "WHERE conversation_id = ?1 AND created_at_ms >= ?2 AND created_at_ms < ?3
         ORDER BY created_at_ms, id"
    ))?;
    let rows = statement.query_map(
        params![conversation_row, from_ms, before_ms],
        summary_from_row,
    )?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn summary_from_row(row: &Row<'_>) -> crate::engine::sql::Result<Summary> {
    Ok(Summary {
        id: row.get("id")?,
        agent: row.get("agent")?,
        previous: row.get("previous_id")?,
        from: position_at(row, FROM)?,
        through: position_at(row, THROUGH)?,
        turns: count_from(row.get("turn_count")?),
        text: row.get("text")?,
        tokens: count_from(row.get("tokens")?),
        model: row.get("model")?,
        state: row.get("state")?,
        created_at_ms: row.get("created_at_ms")?,
    })
}

/// The columns of the first position that a summary stands for.
const FROM: [&str; 3] = ["from_sent_at_ms", "from_ordinal", "from_seq"];
/// The columns of the last position that a summary stands for.
pub(crate) const THROUGH: [&str; 3] = ["through_sent_at_ms", "through_ordinal", "through_seq"];

/// The newest summary that may be used within a bound.
pub(crate) fn current_summary(
    connection: &Connection,
    conversation_row: i64,
    agent: &AgentName,
    coverage: &Coverage,
    bound: SummaryBound,
) -> Result<Option<SummaryView>, StoreError> {
    let found = connection
        .prepare_cached(CURRENT_SQL)?
        .query_row(
            params![
                conversation_row,
                agent,
                coverage.fingerprint(),
                bound.as_of_seq,
                bound.made_by_ms,
                bound.floor.sent_at_ms,
                bound.floor.ordinal,
                bound.floor.seq
            ],
            |row| {
                Ok(SummaryView {
                    id: row.get("id")?,
                    text: row.get("text")?,
                    through: position_at(row, THROUGH)?,
                })
            },
        )
        .optional()?;
    Ok(found)
}

/// Counts summaries by state.
pub(crate) fn count_summaries(connection: &Connection) -> Result<SummaryCounts, StoreError> {
    let counts = connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM summaries WHERE state = 'current') AS current,
                    (SELECT count(*) FROM summaries WHERE state = 'stale') AS stale,
                    (SELECT count(*) FROM summaries WHERE state = 'void') AS void",
        )?
        .query_row([], |row| {
            Ok(SummaryCounts {
                current: count_from(row.get("current")?),
                stale: count_from(row.get("stale")?),
                void: count_from(row.get("void")?),
            })
        })?;
    Ok(counts)
}

/// Summaries that hold a turn: those it was folded into and, of those made before that was noted, the
/// ones that end there or later.
macro_rules! holding {
    ($untraced:literal) => {
        concat!(
            "SELECT agent, fingerprint, through_sent_at_ms, through_ordinal, through_seq
             FROM summaries WHERE id IN (SELECT summary_id FROM summary_turns WHERE turn_seq = ?2)
             UNION ALL
             SELECT agent, fingerprint, through_sent_at_ms, through_ordinal, through_seq
             FROM summaries
             WHERE NOT is_traced AND conversation_id = ?1 AND through_sent_at_ms >= ?3
               AND (through_sent_at_ms, through_ordinal) >= (?3, ?4)",
            $untraced,
            " ORDER BY 1, 2, 3, 4, 5"
        )
    };
}

const HOLDING_BEFORE_DELETE_SQL: &str = holding!("");
const HOLDING_BEFORE_EDIT_SQL: &str = holding!(
    " AND (covers = 'all' OR EXISTS (SELECT 1 FROM involvements i WHERE i.seq = ?2 AND i.agent = summaries.agent))"
);

/// Marks the summaries that hold a turn that changes: in each chain the first that holds it, and all
/// that were made on top of it.
pub(crate) fn invalidate_summaries_txn(
    connection: &Connection,
    turn: &TurnRow,
    fate: SummaryFate,
) -> Result<(), StoreError> {
    let holding = match fate {
        SummaryFate::Stale => HOLDING_BEFORE_EDIT_SQL,
        SummaryFate::Void => HOLDING_BEFORE_DELETE_SQL,
    };
    let from_first = "conversation_id = ?1 AND agent = ?2 AND fingerprint = ?3
               AND through_sent_at_ms >= ?4
               AND (through_sent_at_ms, through_ordinal, through_seq) >= (?4, ?5, ?6)";
    let row = turn.conversation.row;
    let mut statement = connection.prepare_cached(holding)?;
    let found = statement.query_map(
        params![row, turn.seq, turn.sent_at_ms, turn.ordinal],
        |found| {
            Ok((
                found.get::<_, String>("agent")?,
                found.get::<_, String>("fingerprint")?,
                position_at(found, THROUGH)?,
            ))
        },
    )?;
    let mut firsts: Vec<_> = found.collect::<crate::engine::sql::Result<_>>()?;
    firsts.dedup_by(|next, first| (&next.0, &next.1) == (&first.0, &first.1));
    if !firsts.is_empty() {
        // Also while they are set aside already: the quiet time before they are made again begins anew.
        connection
            .prepare_cached("UPDATE refolds SET changes = changes + 1 WHERE conversation_id = ?1")?
            .execute([row])?;
    }
    for (agent, fingerprint, first) in firsts {
        let chain = params![
            row,
            agent,
            fingerprint,
            first.sent_at_ms,
            first.ordinal,
            first.seq
        ];
        match fate {
            SummaryFate::Stale => set_aside_txn(connection, from_first, chain)?,
            SummaryFate::Void => void_summaries_txn(connection, from_first, chain)?,
        };
    }
    Ok(())
}

/// Sets aside those of some summaries that are current, and notes that they are to be made again. Returns how many.
pub(crate) fn set_aside_txn(
    connection: &Connection,
    which: &'static str,
    values: &[&dyn ToSql],
) -> Result<usize, StoreError> {
    let set_aside: Vec<(i64, i64)> = connection
        .prepare_cached(&format!(
            "UPDATE summaries SET state = 'stale' WHERE state = 'current' AND {which}
             RETURNING conversation_id, through_sent_at_ms"
        ))?
        .query_map(values, |row| {
            Ok((row.get("conversation_id")?, row.get("through_sent_at_ms")?))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    for (conversation, through_ms) in &set_aside {
        connection
            .prepare_cached(
                "INSERT INTO refolds (conversation_id, until_sent_at_ms, changes) VALUES (?1, ?2, 1)
                 ON CONFLICT DO UPDATE SET changes = changes + 1,
                     until_sent_at_ms = max(until_sent_at_ms, excluded.until_sent_at_ms)",
            )?
            .execute((conversation, through_ms))?;
    }
    Ok(set_aside.len())
}

/// Empties some summaries for good. Returns how many.
pub(crate) fn void_summaries_txn(
    connection: &Connection,
    which: &'static str,
    values: &[&dyn ToSql],
) -> Result<usize, StoreError> {
    set_aside_txn(connection, which, values)?;
    let sql = format!(
        "UPDATE summaries SET state = 'void', text = '', tokens = 0
         WHERE state <> 'void' AND {which}"
    );
    Ok(connection.prepare_cached(&sql)?.execute(values)?)
}

/// Empties the summaries that hold a turn whose quote is gone, and those made on top of them.
pub(crate) fn void_summaries_of_quote_txn(
    connection: &Connection,
    seq: i64,
) -> Result<(), StoreError> {
    let of_turn: Option<(i64, i64)> = connection
        .prepare_cached(
            "SELECT conversation_id, sent_at_ms FROM turns WHERE seq = ?1 AND visibility = 'room'",
        )?
        .query_row([seq], |row| {
            Ok((row.get("conversation_id")?, row.get("sent_at_ms")?))
        })
        .optional()?;
    if let Some((conversation, sent_at_ms)) = of_turn {
        void_summaries_txn(
            connection,
            "conversation_id = ?1 AND through_sent_at_ms >= ?2
             AND EXISTS (SELECT 1 FROM summary_turns x CROSS JOIN summaries d ON d.id = x.summary_id
                         WHERE x.turn_seq = ?3 AND d.agent = summaries.agent
                           AND d.fingerprint = summaries.fingerprint
                           AND (d.through_sent_at_ms, d.through_ordinal, d.through_seq)
                               <= (summaries.through_sent_at_ms, summaries.through_ordinal,
                                   summaries.through_seq))",
            params![conversation, sent_at_ms, seq],
        )?;
    }
    Ok(())
}

/// Marks the summaries that end after a turn which came to be kept, as one that arrives late does. If one of them
/// holds turns that expired, all stay as they are: it could not be made again with the late turn in it.
///
/// `agent`: the one it concerns; `None` for a turn that is new in the room.
pub(crate) fn stale_by_late_turn_txn(
    connection: &Connection,
    conversation_row: i64,
    agent: Option<&AgentName>,
    at: Position,
) -> Result<(), StoreError> {
    set_aside_txn(
        connection,
        "conversation_id = ?1 AND through_sent_at_ms >= ?2
               AND (through_sent_at_ms, through_ordinal, through_seq) >= (?2, ?3, ?4)
               AND CASE WHEN ?5 IS NULL THEN covers = 'all'
                        ELSE covers = 'involved' AND agent = ?5 END
               AND NOT EXISTS (
                   SELECT 1 FROM summaries b
                   WHERE b.conversation_id = ?1 AND b.agent = summaries.agent
                     AND b.fingerprint = summaries.fingerprint AND b.state = 'current'
                     AND b.holds_expired AND b.through_sent_at_ms >= ?2
                     AND (b.through_sent_at_ms, b.through_ordinal, b.through_seq) >= (?2, ?3, ?4))",
        params![conversation_row, at.sent_at_ms, at.ordinal, at.seq, agent],
    )?;
    Ok(())
}

/// Notes that the summaries that hold an expiring turn can't be made again.
pub(crate) fn note_expired_in_summaries_txn(
    connection: &Connection,
    seq: i64,
) -> Result<(), StoreError> {
    for sql in [
        "UPDATE summaries SET holds_expired = 1
         WHERE id IN (SELECT summary_id FROM summary_turns WHERE turn_seq = ?1)",
        "UPDATE summaries SET holds_expired = 1
         FROM turns t
         WHERE t.seq = ?1 AND NOT summaries.is_traced AND summaries.conversation_id = t.conversation_id
           AND summaries.through_sent_at_ms >= t.sent_at_ms AND summaries.from_sent_at_ms <= t.sent_at_ms",
    ] {
        connection.prepare_cached(sql)?.execute([seq])?;
    }
    Ok(())
}

/// The stored name of what counts as kept.
pub(crate) fn keep_name(keep: Keep) -> &'static str {
    match keep {
        Keep::Involved => "involved",
        Keep::All => "all",
    }
}
