//! What a history asks the database, statement by statement.

use crate::rows::columns::{is_person, select_turns, turn_columns};
use vocative_core::coverage::Keep;

/// A run that asked people for consent, or a question, or asked another agent, and has no answer within the bound. A
/// model that reads its question would answer it again, and ask for the same calls.
macro_rules! asks_people {
    ($bound:literal) => {
        concat!(
            "(EXISTS (SELECT 1 FROM approvals w WHERE w.run_id = x.id)
              OR EXISTS (SELECT 1 FROM questions w WHERE w.run_id = x.id)
              OR EXISTS (SELECT 1 FROM delegations w WHERE w.parent_id = x.id))
             AND NOT EXISTS (SELECT 1 FROM turns y WHERE y.run_id = x.id AND y.kind = 'message'
                               AND NOT y.is_inbound AND y.seq <= ",
            $bound,
            ")"
        )
    };
}

/// A turn that is not in a run's prompt because it has a run of its own: a later one, or one that asks people.
macro_rules! put_off {
    ($run:literal, $conversation:literal, $bound:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM run_triggers g CROSS JOIN runs x ON x.id = g.run_id
                     WHERE g.turn_seq = t.seq AND x.conversation_id = ",
            $conversation,
            " AND (x.id > ",
            $run,
            " OR x.id < ",
            $run,
            " AND ",
            asks_people!($bound),
            "))"
        )
    };
}

/// Turns between two positions, newest first: after the columns of a turn, whether it was captured
/// within the bound, and whether it is for the prompt. The index finds exactly these, so a reader stops
/// where it has enough.
///
/// A turn that has a run of its own to be answered by is left out ([`put_off`]), and so is an answer that the run
/// replaces.
macro_rules! walk {
    ($from:literal, $position:literal, $agent:literal, $for_prompt:literal) => {
        concat!(
            "SELECT ",
            turn_columns!(),
            ", ",
            $position,
            ".seq <= ?4 AS is_within_bound,
             ",
            $position,
            ".seq <= ?4 AND t.visibility = 'room' AND t.run_id IS NOT ?6 AND (?5 IS NULL OR t.scope = ?5)
             AND NOT ",
            put_off!("?6", "?7", "?4"),
            $for_prompt,
            " AS is_for_prompt FROM ",
            $from,
            " CROSS JOIN conversations c ON c.id = t.conversation_id
             CROSS JOIN participants p ON p.id = t.participant_id WHERE ",
            $position,
            ".conversation_id = ?1",
            $agent,
            " AND ",
            $position,
            ".sent_at_ms >= ?3 AND (",
            $position,
            ".sent_at_ms, ",
            $position,
            ".ordinal, ",
            $position,
            ".seq) < (?8, ?9, ?10) AND (",
            $position,
            ".sent_at_ms, ",
            $position,
            ".ordinal, ",
            $position,
            ".seq) > (?11, ?12, ?13)
             ORDER BY ",
            $position,
            ".sent_at_ms DESC, ",
            $position,
            ".ordinal DESC, ",
            $position,
            ".seq DESC"
        )
    };
}

pub(super) const INVOLVED_SQL: &str = walk!(
    "involvements i CROSS JOIN turns t ON t.seq = i.seq",
    "i",
    " AND i.agent = ?2",
    ""
);
pub(super) const ALL_SQL: &str = walk!("turns t", "t", "", "");
pub(super) const OVERHEARD_SQL: &str = walk!(
    "turns t",
    "t",
    "",
    " AND NOT EXISTS (SELECT 1 FROM involvements o WHERE o.seq = t.seq AND o.agent = ?2)"
);

pub(super) const RUN_SQL: &str = "SELECT id, conversation_id, first_claimed_at_ms,
            coalesce(afresh_ms, first_claimed_at_ms) AS afresh_ms
     FROM runs WHERE uuid = ?1";
pub(super) const BY_SEQ_SQL: &str = select_turns!("WHERE t.seq = ?1");
pub(super) const TRIGGER_SQL: &str = select_turns!("WHERE t.uuid = ?1 AND c.chat_id = ?2");
pub(super) const REPLIED_TO_SQL: &str = concat!(
    select_turns!(
        "WHERE t.uuid = ?1 AND c.chat_id = ?2 AND t.visibility = 'room' AND t.seq <= ?3
           AND t.run_id IS NOT ?4 AND NOT "
    ),
    put_off!("?4", "?5", "?3")
);
/// The run of a question that is answered in another conversation than its own and than this one.
pub(super) const THREAD_RUN_SQL: &str =
    "SELECT x.id FROM run_triggers g CROSS JOIN runs x ON x.id = g.run_id
     CROSS JOIN turns t ON t.seq = g.turn_seq
     WHERE g.turn_seq = ?1 AND g.agent = ?2 AND x.conversation_id NOT IN (t.conversation_id, ?3)";
pub(super) const THREAD_ANSWER_SQL: &str = select_turns!(
    "WHERE t.seq = (SELECT a.seq FROM turns a
                    WHERE a.run_id = ?1 AND a.kind = 'message' AND a.visibility = 'room'
                      AND NOT a.is_inbound AND a.seq <= ?2
                    ORDER BY a.seq DESC LIMIT 1)
       AND c.chat_id = ?3 AND (?4 IS NULL OR t.scope = ?4)"
);
/// A turn that was found for a question, if its prompt may show it.
pub(super) const RECALLED_SQL: &str = concat!(
    select_turns!(
        "WHERE t.uuid = ?1 AND c.chat_id = ?2 AND t.visibility = 'room' AND t.kind = 'message' AND t.seq <= ?3
           AND t.run_id IS NOT ?4 AND NOT "
    ),
    put_off!("?4", "?5", "?3"),
    "
           AND (?6 IS NULL OR t.scope = ?6) AND t.sent_at_ms >= ?7 AND ",
    is_person!("p")
);
pub(super) const SAID_BY_PERSON_SQL: &str = concat!(
    "SELECT 1 AS it FROM turns t JOIN participants p ON p.id = t.participant_id
     WHERE t.uuid = ?1 AND t.visibility = 'room' AND ",
    is_person!("p")
);
pub(super) const POSITION_SQL: &str = "SELECT sent_at_ms, ordinal, seq FROM turns WHERE uuid = ?1";
pub(super) const FIRST_TURN_SQL: &str =
    "SELECT sent_at_ms, ordinal, seq FROM turns WHERE conversation_id = ?1 AND seq <= ?2
     ORDER BY sent_at_ms, ordinal, seq LIMIT 1";
/// The conversation that a fork left, and the turn with which it did.
pub(super) const FORKED_SQL: &str = "SELECT c.parent_id, t.sent_at_ms, t.ordinal, t.seq
     FROM conversations c JOIN turns t ON t.seq = c.root_turn_seq WHERE c.id = ?1 AND c.is_fork";
pub(super) const ROOT_SQL: &str = concat!(
    select_turns!(
        "WHERE t.seq = (SELECT root_turn_seq FROM conversations WHERE id = ?1)
           AND t.visibility = 'room' AND t.seq <= ?2
           AND NOT EXISTS (SELECT 1 FROM run_triggers g CROSS JOIN runs x ON x.id = g.run_id
                           WHERE g.turn_seq = t.seq AND x.conversation_id = ?4 AND x.id <> ?3 AND "
    ),
    asks_people!("?2"),
    ")"
);

/// The walk through the turns that count as kept.
pub(super) fn kept_sql(keep: Keep) -> &'static str {
    match keep {
        Keep::Involved => INVOLVED_SQL,
        Keep::All => ALL_SQL,
    }
}
