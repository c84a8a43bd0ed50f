//! What becomes of summaries when a turn they stand for changes. They are made elsewhere.

use rusqlite::{Connection, params};

use super::StoreError;
use super::turns::TurnRow;

/// What becomes of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SummaryFate {
    /// A turn was edited: it is made again, and may be used until then.
    Stale,
    /// A turn was deleted: it is never sent again, and its text goes.
    Void,
}

/// Marks the summaries that stand for a turn, and those that were made on top of them.
pub(super) fn invalidate_summaries_txn(
    connection: &Connection,
    turn: &TurnRow,
    fate: SummaryFate,
) -> Result<(), StoreError> {
    let change = match fate {
        SummaryFate::Stale => "SET state = 'stale' WHERE state = 'current' AND",
        SummaryFate::Void => "SET state = 'void', text = '', tokens = 0 WHERE",
    };
    connection
        .prepare_cached(&format!(
            "WITH RECURSIVE affected (id) AS (
                 SELECT id FROM summaries
                 WHERE conversation_id = ?1
                   AND (from_sent_at_ms, from_ordinal, from_seq) <= (?2, ?3, ?4)
                   AND (through_sent_at_ms, through_ordinal, through_seq) >= (?2, ?3, ?4)
                 UNION
                 SELECT s.id FROM summaries s JOIN affected a ON s.previous_id = a.id
             )
             UPDATE summaries {change} id IN affected"
        ))?
        .execute(params![
            turn.conversation.row,
            turn.sent_at_ms,
            turn.ordinal,
            turn.seq
        ])?;
    Ok(())
}
