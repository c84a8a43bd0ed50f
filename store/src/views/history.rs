//! Snapshots for prompts: a bounded number of rows however long the conversation.
//!
//! Turns are walked newest first along an index (kept turns through `involvements`, a whole room
//! through `turns_by_position`). What is read when: triggers, root,
//! kept turns, what those reply to, kept turns of the parent, overheard turns, and the answers that
//! questions among them got in threads of their own; a turn that would be read twice keeps the role it
//! got first. Nothing is read from another chat. What a reading costs is
//! counted by SQLite itself, statement by statement.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::engine::sql::{Connection, OptionalExtension, Params, Row, Statement, StatementStatus};
use vocative_contract::markup::mentioned_ids;

use crate::rows::columns::{
    TURN_COLUMNS, conversation_row_id, is_person, select_turns, turn_columns, turn_from_row,
};
use crate::rows::conversations::conversation;
use crate::rows::fresh_starts::floor;
use crate::rows::summaries::{AT, SummaryBound, current_summary, position_at};
use crate::{Reader, StoreError};
use vocative_core::history::{
    FORKS_DEEP_MAX, History, HistoryQuery, HistoryTurn, Keep, ReadCost, Role,
};
use vocative_core::ids::{AccountId, RunId, Seq, TurnId};
use vocative_core::place::Conversation;
use vocative_core::summary::SummaryView;
use vocative_core::turn::{ParticipantKind, Position, Turn};

/// The most turns that one walk passes over because they are not for the prompt (deleted, of another scope,
/// waiting for a run of their own).
const PASSED_OVER_MAX: usize = 2_000;

/// The most mentioned people whose names are looked up, the triggers' first, then the newest turns'.
const NAMES_MAX: usize = 200;

/// Turns between two positions, newest first: after the columns of a turn, whether it was captured
/// within the bound, and whether it is for the prompt. The index finds exactly these, so a reader stops
/// where it has enough.
///
/// A run that asked people for consent, or a question, or asked another agent, and has no answer within the bound. A model that reads its question would
/// answer it again, and ask for the same calls.
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

/// A turn that has a run of its own to be answered by is left out ([`put_off`]), and so is an answer that the run
/// replaces.
macro_rules! walk {
    ($from:literal, $position:literal, $agent:literal, $for_prompt:literal) => {
        concat!(
            "SELECT ",
            turn_columns!(),
            ", ",
            $position,
            ".seq <= ?4,
             ",
            $position,
            ".seq <= ?4 AND t.visibility = 'room' AND t.run_id IS NOT ?6 AND (?5 IS NULL OR t.scope = ?5)
             AND NOT ",
            put_off!("?6", "?7", "?4"),
            $for_prompt,
            " FROM ",
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

const INVOLVED_SQL: &str = walk!(
    "involvements i CROSS JOIN turns t ON t.seq = i.seq",
    "i",
    " AND i.agent = ?2",
    ""
);
const ALL_SQL: &str = walk!("turns t", "t", "", "");
const OVERHEARD_SQL: &str = walk!(
    "turns t",
    "t",
    "",
    " AND NOT EXISTS (SELECT 1 FROM involvements o WHERE o.seq = t.seq AND o.agent = ?2)"
);

const SEQ_COLUMN: usize = 4;
const IS_WITHIN_BOUND_COLUMN: usize = TURN_COLUMNS;
const IS_FOR_PROMPT_COLUMN: usize = TURN_COLUMNS + 1;

const RUN_SQL: &str = "SELECT id, conversation_id, first_claimed_at_ms,
            coalesce(afresh_ms, first_claimed_at_ms) AS afresh_ms
     FROM runs WHERE uuid = ?1";
const BY_SEQ_SQL: &str = select_turns!("WHERE t.seq = ?1");
const TRIGGER_SQL: &str = select_turns!("WHERE t.uuid = ?1 AND c.chat_id = ?2");
const REPLIED_TO_SQL: &str = concat!(
    select_turns!(
        "WHERE t.uuid = ?1 AND c.chat_id = ?2 AND t.visibility = 'room' AND t.seq <= ?3
           AND t.run_id IS NOT ?4 AND NOT "
    ),
    put_off!("?4", "?5", "?3")
);
/// The run of a question that is answered in another conversation than its own and than this one.
const THREAD_RUN_SQL: &str = "SELECT x.id FROM run_triggers g CROSS JOIN runs x ON x.id = g.run_id
     CROSS JOIN turns t ON t.seq = g.turn_seq
     WHERE g.turn_seq = ?1 AND g.agent = ?2 AND x.conversation_id NOT IN (t.conversation_id, ?3)";
const THREAD_ANSWER_SQL: &str = select_turns!(
    "WHERE t.seq = (SELECT a.seq FROM turns a
                    WHERE a.run_id = ?1 AND a.kind = 'message' AND a.visibility = 'room'
                      AND NOT a.is_inbound AND a.seq <= ?2
                    ORDER BY a.seq DESC LIMIT 1)
       AND c.chat_id = ?3 AND (?4 IS NULL OR t.scope = ?4)"
);
/// A turn that was found for a question, if its prompt may show it.
const RECALLED_SQL: &str = concat!(
    select_turns!(
        "WHERE t.uuid = ?1 AND c.chat_id = ?2 AND t.visibility = 'room' AND t.kind = 'message' AND t.seq <= ?3
           AND t.run_id IS NOT ?4 AND NOT "
    ),
    put_off!("?4", "?5", "?3"),
    "
           AND (?6 IS NULL OR t.scope = ?6) AND t.sent_at_ms >= ?7 AND ",
    is_person!("p")
);
const SAID_BY_PERSON_SQL: &str = concat!(
    "SELECT 1 AS it FROM turns t JOIN participants p ON p.id = t.participant_id
     WHERE t.uuid = ?1 AND t.visibility = 'room' AND ",
    is_person!("p")
);
const POSITION_SQL: &str = "SELECT sent_at_ms, ordinal, seq FROM turns WHERE uuid = ?1";
const FIRST_TURN_SQL: &str =
    "SELECT sent_at_ms, ordinal, seq FROM turns WHERE conversation_id = ?1 AND seq <= ?2
     ORDER BY sent_at_ms, ordinal, seq LIMIT 1";
/// The conversation that a fork left, and the turn with which it did.
const FORKED_SQL: &str = "SELECT c.parent_id, t.sent_at_ms, t.ordinal, t.seq
     FROM conversations c JOIN turns t ON t.seq = c.root_turn_seq WHERE c.id = ?1 AND c.is_fork";
const ROOT_SQL: &str = concat!(
    select_turns!(
        "WHERE t.seq = (SELECT root_turn_seq FROM conversations WHERE id = ?1)
           AND t.visibility = 'room' AND t.seq <= ?2
           AND NOT EXISTS (SELECT 1 FROM run_triggers g CROSS JOIN runs x ON x.id = g.run_id
                           WHERE g.turn_seq = t.seq AND x.conversation_id = ?4 AND x.id <> ?3 AND "
    ),
    asks_people!("?2"),
    ")"
);

pub(crate) const NAME_BY_ID_SQL: &str =
    "SELECT coalesce(display_name, username) AS name FROM participants
     WHERE account_id = ?1 AND kind = 'user' AND platform_id = ?2";
pub(crate) const NAME_BY_USERNAME_SQL: &str =
    "SELECT coalesce(display_name, username) AS name FROM participants
     WHERE account_id = ?1 AND username = ?2 AND username IS NOT NULL AND kind = 'user'
     LIMIT 1";

impl Reader {
    /// Reads what a prompt is made of: one snapshot, a bounded number of rows.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation or run.
    pub async fn history(&self, query: HistoryQuery) -> Result<History, StoreError> {
        self.read(move |connection| history(connection, &query))
            .await
    }
}

impl Reader {
    /// Reads turns that were found for a prompt of that history, as far as it may show them: what people said in its
    /// chat within its bounds, and is there still. Alone, with the names in them.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation or run.
    pub async fn recalled(
        &self,
        query: HistoryQuery,
        found: Vec<TurnId>,
    ) -> Result<History, StoreError> {
        self.read(move |connection| {
            let mut reading = HistoryReading::start(connection, &query)?;
            reading.read_recalled(&found)?;
            reading.finish(false)
        })
        .await
    }

    /// Those of some turns that people said.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn said_by_people(&self, turns: Vec<TurnId>) -> Result<Vec<TurnId>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(SAID_BY_PERSON_SQL)?;
            let mut by_people = Vec::new();
            for turn in turns {
                let found: Option<i64> = statement
                    .query_row([turn], |row| row.get("it"))
                    .optional()?;
                by_people.extend(found.map(|_| turn));
            }
            Ok(by_people)
        })
        .await
    }
}

fn history(connection: &Connection, query: &HistoryQuery) -> Result<History, StoreError> {
    let mut reading = HistoryReading::start(connection, query)?;
    reading.read_triggers()?;
    reading.read_root()?;
    let has_older = reading.read_kept()?;
    reading.read_replied_to()?;
    reading.read_parent(has_older)?;
    reading.read_ambient()?;
    reading.read_thread_answers()?;
    reading.drop_answers_from_before()?;
    reading.finish(has_older)
}

/// A position before every turn.
pub(crate) const FIRST: Position = Position {
    sent_at_ms: i64::MIN,
    ordinal: i64::MIN,
    seq: Seq(i64::MIN),
};

/// A position after every turn.
pub(crate) const LAST: Position = Position {
    sent_at_ms: i64::MAX,
    ordinal: i64::MAX,
    seq: Seq(i64::MAX),
};

/// The walk through the turns that count as kept.
fn kept_sql(keep: Keep) -> &'static str {
    match keep {
        Keep::Involved => INVOLVED_SQL,
        Keep::All => ALL_SQL,
    }
}

/// The row of the conversation that a fork left, and the position behind the turn with which it did.
fn forked_from_row(row: &Row<'_>) -> crate::engine::sql::Result<(i64, Position)> {
    let at: i64 = row.get("seq")?;
    let behind = Position {
        sent_at_ms: row.get("sent_at_ms")?,
        ordinal: row.get("ordinal")?,
        seq: Seq(at + 1),
    };
    Ok((row.get("parent_id")?, behind))
}

/// A history being read.
pub(crate) struct HistoryReading<'a> {
    connection: &'a Connection<'a>,
    query: &'a HistoryQuery,
    conversation: Conversation,
    conversation_row: i64,
    as_of_seq: Seq,
    /// Summaries and fresh starts that were made later don't count.
    made_by_ms: i64,
    /// The run to answer for and its conversation; later runs there wait for their own turn.
    run_row: i64,
    run_conversation_row: i64,
    /// Turns up to this position are not read, except those that are answered.
    floor: Position,
    /// What stands for the older kept turns.
    summary: Option<SummaryView>,
    turns: Vec<HistoryTurn>,
    thread_answers: HashMap<TurnId, Option<TurnId>>,
    recalled: Vec<TurnId>,
    cost: ReadCost,
}

/// Which turns a walk keeps.
struct TurnWalk {
    /// One of the walks.
    sql: &'static str,
    conversation_row: i64,
    after: Position,
    before: Position,
    /// The most turns that are read.
    limit: usize,
    role: Role,
}

impl<'a> HistoryReading<'a> {
    pub(crate) fn start(
        connection: &'a Connection<'a>,
        query: &'a HistoryQuery,
    ) -> Result<Self, StoreError> {
        let run = match query.run {
            Some(run) => run_facts(connection, run)?,
            None => RunFacts::NONE,
        };
        let conversation_row = conversation_row_id(connection, query.conversation)?;
        let as_of_seq = query.as_of_seq.unwrap_or(LAST.seq);
        // A retry reads what its run read first, whatever was begun afresh since.
        let asked_for_ms = query.made_by_ms.unwrap_or(i64::MAX);
        let made_by_ms = run.first_claimed_at_ms.min(asked_for_ms);
        let afresh_ms = run.afresh_ms.min(asked_for_ms);
        let floor = floor(connection, conversation_row, &query.agent, afresh_ms)?;
        let summary = match &query.summaries {
            Some(coverage) => {
                // A summary made after the run was first claimed would give a retry other bytes.
                let bound = SummaryBound {
                    as_of_seq,
                    made_by_ms,
                    floor,
                };
                let agent = &query.agent;
                current_summary(connection, conversation_row, agent, coverage, bound)?
            }
            None => None,
        };
        // The conversation's key, the conversation, the run and the summary: a row each.
        let rows = 2 + u64::from(query.run.is_some()) + u64::from(summary.is_some());
        Ok(Self {
            connection,
            query,
            conversation: conversation(connection, query.conversation)?,
            conversation_row,
            as_of_seq,
            made_by_ms,
            run_row: run.row,
            run_conversation_row: run.conversation_row,
            floor,
            turns: Vec::new(),
            thread_answers: HashMap::new(),
            recalled: Vec::new(),
            cost: ReadCost {
                rows,
                ..ReadCost::default()
            },
            summary,
        })
    }

    /// Behind what kept turns are read: the summary, else where the agent began afresh, if it did.
    pub(crate) fn start_of_kept(&self) -> Position {
        let summary = self.summary.as_ref();
        summary.map_or(self.floor, |summary| summary.through)
    }

    /// All that was read, in the room's order, with names.
    pub(crate) fn finish(mut self, has_older: bool) -> Result<History, StoreError> {
        let names = self.read_names()?;
        self.turns.sort_by_key(|read| read.turn.position);
        Ok(History {
            conversation: self.conversation,
            turns: self.turns,
            thread_answers: self.thread_answers,
            recalled: self.recalled,
            names,
            summary: self.summary,
            began_afresh: self.floor > FIRST,
            has_older,
            cost: self.cost,
        })
    }

    fn read_triggers(&mut self) -> Result<(), StoreError> {
        let chat = self.conversation.key.chat;
        for trigger in &self.query.triggers {
            let found = self.one(TRIGGER_SQL, (trigger, chat), turn_from_row)?;
            self.keep(found, Role::Trigger);
        }
        Ok(())
    }

    fn read_root(&mut self) -> Result<(), StoreError> {
        let key = (
            self.conversation_row,
            self.as_of_seq,
            self.run_row,
            self.run_conversation_row,
        );
        let root = self.one(ROOT_SQL, key, turn_from_row)?;
        self.keep(self.behind_floor(root), Role::Root);
        Ok(())
    }

    /// Returns whether there are more kept turns than were asked for.
    fn read_kept(&mut self) -> Result<bool, StoreError> {
        let max_turns = self.query.max_turns;
        self.walk(&TurnWalk {
            sql: kept_sql(self.query.keep),
            conversation_row: self.conversation_row,
            after: self.start_of_kept(),
            before: LAST,
            limit: max_turns,
            role: Role::Kept,
        })
    }

    /// What a trigger or a kept turn replies to is kept with it.
    fn read_replied_to(&mut self) -> Result<(), StoreError> {
        let targets: Vec<TurnId> = self
            .turns
            .iter()
            .filter(|read| matches!(read.role, Role::Trigger | Role::Kept))
            .filter_map(|read| read.turn.reply_to)
            .collect();
        for target in targets {
            if self.turns.iter().any(|read| read.turn.id == target) {
                continue;
            }
            let key = (
                target,
                self.conversation.key.chat,
                self.as_of_seq,
                self.run_row,
                self.run_conversation_row,
            );
            let found = self.one(REPLIED_TO_SQL, key, turn_from_row)?;
            self.keep(self.behind_floor(found), Role::RepliedTo);
        }
        Ok(())
    }

    /// What the room talked about before a thread left it.
    fn read_parent(&mut self, has_older: bool) -> Result<(), StoreError> {
        if self.conversation.is_fork {
            return match has_older {
                true => Ok(()),
                false => self.read_forked(),
            };
        }
        let Some(parent) = self.conversation.parent else {
            return Ok(());
        };
        if self.query.parent_turns == 0 {
            return Ok(());
        }
        let parent = conversation_row_id(self.connection, parent)?;
        let before = self.thread_start()?;
        self.walk(&TurnWalk {
            sql: kept_sql(self.query.keep),
            conversation_row: parent,
            after: self.floor,
            before,
            limit: self.query.parent_turns,
            role: Role::Parent,
        })?;
        Ok(())
    }

    /// What was said before a fork left its conversation, and so on where that is a fork itself, as far as the fork's own
    /// turns leave room. Turns that were captured behind its root are not read, wherever a wrong clock placed them.
    fn read_forked(&mut self) -> Result<(), StoreError> {
        let as_of_seq = self.as_of_seq;
        let kept = self.turns.iter().filter(|it| it.role == Role::Kept).count();
        let (mut fork, mut left) = (self.conversation_row, self.query.max_turns);
        left = left.saturating_sub(kept);
        for _ in 0..FORKS_DEEP_MAX {
            if left == 0 {
                break;
            }
            let Some((parent, before)) = self.one(FORKED_SQL, [fork], forked_from_row)? else {
                break;
            };
            let known = self.turns.len();
            self.as_of_seq = as_of_seq.min(Seq(before.seq.0 - 1));
            let walked = self.walk(&TurnWalk {
                sql: kept_sql(self.query.keep),
                conversation_row: parent,
                after: self.floor,
                before,
                limit: left,
                role: Role::Parent,
            });
            self.as_of_seq = as_of_seq;
            walked?;
            left = left.saturating_sub(self.turns.len() - known);
            fork = parent;
        }
        Ok(())
    }

    /// Where the thread left its parent: at its root, else where its first turn stands. What was read of it begins later
    /// as it grows, and would let what stands before the thread move with it.
    fn thread_start(&mut self) -> Result<Position, StoreError> {
        let mut turns = self.turns.iter();
        if let Some(root) = turns.find(|read| Some(read.turn.id) == self.conversation.root) {
            return Ok(root.turn.position);
        }
        let key = (self.conversation_row, self.as_of_seq);
        let first = self.one(FIRST_TURN_SQL, key, |row| position_at(row, AT))?;
        Ok(first.unwrap_or(LAST))
    }

    /// The newest overheard turns before the last trigger, where that was posted: what does not concern
    /// the agent and lies behind its summary there.
    fn read_ambient(&mut self) -> Result<(), StoreError> {
        // Where every turn is kept, none is overheard.
        if self.query.ambient_turns == 0 || self.query.keep == Keep::All {
            return Ok(());
        }
        let (conversation_row, before) = self.last_trigger()?;
        let after = self.end_of_summary_in(conversation_row)?;
        self.walk(&TurnWalk {
            sql: OVERHEARD_SQL,
            conversation_row,
            after,
            before,
            limit: self.query.ambient_turns,
            role: Role::Ambient,
        })?;
        Ok(())
    }

    /// Up to where a conversation is folded, at least where the agent began afresh.
    fn end_of_summary_in(&mut self, conversation_row: i64) -> Result<Position, StoreError> {
        if conversation_row == self.conversation_row {
            return Ok(self.start_of_kept());
        }
        let Some(coverage) = &self.query.summaries else {
            return Ok(self.floor);
        };
        let (connection, agent) = (self.connection, &self.query.agent);
        let bound = SummaryBound {
            as_of_seq: self.as_of_seq,
            made_by_ms: self.made_by_ms,
            floor: self.floor,
        };
        let found = current_summary(connection, conversation_row, agent, coverage, bound)?;
        self.cost.rows += u64::from(found.is_some());
        Ok(found.map_or(self.floor, |summary| summary.through))
    }

    /// What questions of the room were answered in threads of their own. One whose answer is not there, or
    /// was not as of the read bound, is noted without it.
    fn read_thread_answers(&mut self) -> Result<(), StoreError> {
        if !self.query.thread_answers {
            return Ok(());
        }
        let is_own = |read: &&HistoryTurn| {
            // A thread's own turns are answered in it.
            self.conversation.parent.is_some() && read.turn.conversation == self.conversation.id
        };
        let questions: Vec<(Seq, TurnId, Role)> = self
            .turns
            .iter()
            .filter(|read| matches!(read.role, Role::Kept | Role::Parent | Role::Ambient))
            .filter(|read| read.turn.addressed_to.contains(&self.query.agent) && !is_own(read))
            .map(|read| (read.turn.seq(), read.turn.id, read.role))
            .collect();
        for (seq, id, role) in questions {
            let key = (seq, &self.query.agent, self.conversation_row);
            let Some(run) = self.one(THREAD_RUN_SQL, key, |row| row.get::<_, i64>("id"))? else {
                continue;
            };
            let answer = if role == Role::Ambient {
                None
            } else {
                let chat = self.conversation.key.chat;
                let key = (run, self.as_of_seq, chat, self.query.scope);
                self.one(THREAD_ANSWER_SQL, key, turn_from_row)?
            };
            self.thread_answers
                .insert(id, answer.as_ref().map(|turn| turn.id));
            self.keep(answer, Role::ThreadAnswer);
        }
        Ok(())
    }

    /// An answer that was committed after a fresh start, to a question from before it, goes with its question.
    fn drop_answers_from_before(&mut self) -> Result<(), StoreError> {
        if self.floor == FIRST {
            return Ok(());
        }
        let answers = self.turns.iter().filter(|read| {
            read.role != Role::Trigger && read.turn.participant.kind == ParticipantKind::Agent
        });
        let answers: Vec<(TurnId, TurnId)> = answers
            .filter_map(|read| Some((read.turn.id, read.turn.reply_to?)))
            .collect();
        for (answer, asked) in answers {
            let asked = self.one(POSITION_SQL, [asked], |row| position_at(row, AT))?;
            if asked.is_some_and(|asked| asked <= self.floor) {
                self.turns.retain(|read| read.turn.id != answer);
            }
        }
        Ok(())
    }

    /// What was found, in its order.
    fn read_recalled(&mut self, found: &[TurnId]) -> Result<(), StoreError> {
        for turn in found {
            let key = (
                turn,
                self.conversation.key.chat,
                self.as_of_seq,
                self.run_row,
                self.run_conversation_row,
                self.query.scope,
                self.query.since_ms.unwrap_or(i64::MIN),
            );
            let turn = self.one(RECALLED_SQL, key, turn_from_row)?;
            if let Some(turn) = self.behind_floor(turn) {
                self.recalled.push(turn.id);
                self.keep(Some(turn), Role::Recalled);
            }
        }
        Ok(())
    }

    /// The last trigger's conversation and position; without triggers the newest kept turn is it.
    fn last_trigger(&self) -> Result<(i64, Position), StoreError> {
        let newest = |role| {
            self.turns
                .iter()
                .filter(|read| read.role == role)
                .max_by_key(|read| read.turn.position)
        };
        match newest(Role::Trigger).or_else(|| newest(Role::Kept)) {
            Some(read) => Ok((
                conversation_row_id(self.connection, read.turn.conversation)?,
                read.turn.position,
            )),
            None => Ok((self.conversation_row, LAST)),
        }
    }

    /// Names for the mention tokens in what was read; one that is not known is left out.
    fn read_names(&mut self) -> Result<HashMap<String, String>, StoreError> {
        let mut names = HashMap::new();
        for id in mentioned(&self.turns) {
            if let Some(name) = self.name(self.conversation.account, &id)? {
                names.insert(id, name);
            }
        }
        Ok(names)
    }

    fn name(&mut self, account: AccountId, id: &str) -> Result<Option<String>, StoreError> {
        let (sql, key) = match id.strip_prefix('@') {
            Some(username) => (NAME_BY_USERNAME_SQL, username),
            None => (NAME_BY_ID_SQL, id),
        };
        let name = self.one(sql, (account, key), |row| row.get("name"))?;
        Ok(name.flatten())
    }

    /// Keeps the newest turns between two positions, within the query's bounds; returns whether there
    /// are more, or may be where too much was not for the prompt. A turn that is kept already counts,
    /// but not among what was overheard.
    fn walk(&mut self, walk: &TurnWalk) -> Result<bool, StoreError> {
        let mut statement = self.connection.prepare_cached(walk.sql)?;
        forget_counts(&statement);
        let mut rows = statement.query(self.bounds(walk))?;
        let (mut kept, mut passed_over, mut has_more) = (0, 0, false);
        while let Some(row) = rows.next()? {
            self.cost.rows += 1;
            let is_known = self.has(row.get(SEQ_COLUMN)?);
            if !row.get::<_, bool>(IS_FOR_PROMPT_COLUMN)? {
                passed_over += usize::from(row.get::<_, bool>(IS_WITHIN_BOUND_COLUMN)?);
                has_more = passed_over == PASSED_OVER_MAX;
            } else if !is_known || walk.role != Role::Ambient {
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

    pub(crate) fn keep_seq(&mut self, seq: Seq, role: Role) -> Result<(), StoreError> {
        if !self.has(seq) {
            let found = self.one(BY_SEQ_SQL, [seq], turn_from_row)?;
            self.keep(found, role);
        }
        Ok(())
    }

    /// A turn that may be read, as far as it was said since the agent began afresh.
    fn behind_floor(&self, turn: Option<Turn>) -> Option<Turn> {
        turn.filter(|turn| turn.position > self.floor)
    }

    fn keep(&mut self, turn: Option<Turn>, role: Role) {
        if let Some(turn) = turn.filter(|turn| !self.has(turn.seq())) {
            self.turns.push(HistoryTurn { turn, role });
        }
    }

    fn one<T>(
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

/// Who is mentioned, each once: by the triggers, then by the newest turns.
pub(crate) fn mentioned(read: &[HistoryTurn]) -> Vec<String> {
    let mut turns: Vec<&HistoryTurn> = read.iter().collect();
    turns.sort_by_key(|read| {
        let is_trigger = read.role == Role::Trigger;
        (Reverse(is_trigger), Reverse(read.turn.position))
    });
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for id in turns
        .into_iter()
        .flat_map(|read| mentioned_ids(&read.turn.content))
    {
        if ids.len() == NAMES_MAX {
            break;
        }
        if seen.insert(id.clone()) {
            ids.push(id);
        }
    }
    ids
}

/// A cached statement still has the counts of its last use.
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

/// What a run says about what may be read for it.
struct RunFacts {
    row: i64,
    conversation_row: i64,
    first_claimed_at_ms: i64,
    /// It reads by the fresh starts up to this.
    afresh_ms: i64,
}

impl RunFacts {
    /// No run is later than this.
    const NONE: Self = Self {
        row: i64::MAX,
        conversation_row: 0,
        first_claimed_at_ms: i64::MAX,
        afresh_ms: i64::MAX,
    };
}

fn run_facts(connection: &Connection, run: RunId) -> Result<RunFacts, StoreError> {
    connection
        .prepare_cached(RUN_SQL)?
        .query_row([run], |row| {
            let first_claimed_at_ms: Option<i64> = row.get("first_claimed_at_ms")?;
            Ok(RunFacts {
                row: row.get("id")?,
                conversation_row: row.get("conversation_id")?,
                first_claimed_at_ms: first_claimed_at_ms.unwrap_or(i64::MAX),
                afresh_ms: row.get::<_, Option<i64>>("afresh_ms")?.unwrap_or(i64::MAX),
            })
        })
        .map_err(|error| crate::rows::columns::missing(error, || format!("run {run}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::markup::mention_token;

    use super::*;
    use crate::contract::CommittedReply;
    use crate::rows::columns::CONVERSATION_ROW_SQL;
    use crate::rows::conversations::CONVERSATION_SQL;
    use crate::rows::summaries::CURRENT_SQL;
    use crate::scene::{Room, Said, Scene, agent};
    use vocative_core::place::Scope;
    use vocative_core::run::ClaimedRun;

    fn query(room: &Room) -> HistoryQuery {
        HistoryQuery {
            conversation: room.id,
            agent: agent(),
            as_of_seq: None,
            run: None,
            triggers: Vec::new(),
            keep: Keep::Involved,
            max_turns: 100,
            since_ms: None,
            scope: None,
            parent_turns: 10,
            ambient_turns: 0,
            summaries: None,
            thread_answers: true,
            made_by_ms: None,
        }
    }

    fn query_of(run: &ClaimedRun, room: &Room) -> HistoryQuery {
        HistoryQuery {
            as_of_seq: Some(run.as_of_seq),
            run: Some(run.run.id),
            triggers: run.run.triggers.clone(),
            ..query(room)
        }
    }

    async fn read(scene: &Scene, query: HistoryQuery) -> History {
        scene.store.history(query).await.unwrap()
    }

    fn shown(history: &History) -> Vec<(&str, Role)> {
        history
            .turns
            .iter()
            .map(|read| (read.turn.content.as_str(), read.role))
            .collect()
    }

    async fn answer(scene: &Scene, run: &ClaimedRun, room: &Room, text: &str) {
        let reply = scene.answer(run, room, text);
        let outcome = scene.store.commit_reply(reply).await.unwrap();
        assert!(matches!(outcome, CommittedReply::Written { .. }));
    }

    #[tokio::test]
    async fn of_two_questions_each_prompt_holds_its_own_and_what_was_answered() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "q1", 10).await;
        scene.ask(&room, "q2", 20).await;
        let first = scene.claim(100).await.unwrap();
        let history = read(&scene, query_of(&first, &room)).await;
        assert_eq!(shown(&history), [("q1", Role::Trigger)]);
        answer(&scene, &first, &room, "a1").await;

        let second = scene.claim(200).await.unwrap();
        let history = read(&scene, query_of(&second, &room)).await;
        let expected = [
            ("q1", Role::Kept),
            ("q2", Role::Trigger),
            ("a1", Role::Kept),
        ];
        assert_eq!(shown(&history), expected);
        let (question, reply) = (&history.turns[0].turn, &history.turns[2].turn);
        assert_eq!(reply.reply_to, Some(question.id));
        assert_eq!(question.addressed_to, [agent()]);
    }

    #[tokio::test]
    async fn a_retry_reads_what_the_first_attempt_read() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "q1", 10).await;
        let first = scene.claim(100).await.unwrap();
        let before = read(&scene, query_of(&first, &room)).await;
        let late = scene.say(&room, "an older line that came late", 5).await;
        scene.address(&room, late).await;
        scene.ask(&room, "q2", 20).await;

        let again = scene.claim(10_000).await.unwrap();
        let mut after = read(&scene, query_of(&again, &room)).await;
        after.conversation = before.conversation.clone();
        // What came since is passed over.
        assert_eq!(after.cost.rows, before.cost.rows + 2);
        after.cost = before.cost;
        assert_eq!(after, before);
    }

    #[tokio::test]
    async fn unaddressed_turns_stay_out_unless_all_or_overheard_ones_are_asked_for() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        for (text, at_ms) in [("x1", 1), ("x2", 2), ("x3", 3)] {
            scene.say(&room, text, at_ms).await;
        }
        let (asked, _) = scene.ask(&room, "q", 10).await;
        scene.say(&room, "x4", 11).await;
        let mut query = query(&room);
        query.triggers = vec![asked.turn];
        let history = read(&scene, query.clone()).await;
        assert_eq!(shown(&history), [("q", Role::Trigger)]);

        query.ambient_turns = 2;
        let history = read(&scene, query.clone()).await;
        let overheard = [
            ("x2", Role::Ambient),
            ("x3", Role::Ambient),
            ("q", Role::Trigger),
        ];
        assert_eq!(shown(&history), overheard);

        query.keep = Keep::All;
        query.ambient_turns = 0;
        query.max_turns = 3;
        let history = read(&scene, query.clone()).await;
        let newest = [("x3", Role::Kept), ("q", Role::Trigger), ("x4", Role::Kept)];
        assert_eq!(shown(&history), newest);
        assert!(history.has_older);
        query.max_turns = 5;
        assert!(!read(&scene, query).await.has_older);
    }

    #[tokio::test]
    async fn what_was_put_to_the_agent_or_said_by_it_is_never_overheard() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "an old question", 1).await;
        let run = scene.claim(100).await.unwrap();
        answer(&scene, &run, &room, "an old answer").await;
        scene.say(&room, "aside", 2).await;
        let (asked, _) = scene.ask(&room, "q", 300).await;
        let mut query = query(&room);
        query.triggers = vec![asked.turn];
        query.ambient_turns = 5;
        query.max_turns = 1;
        let expected = [("aside", Role::Ambient), ("q", Role::Trigger)];
        assert_eq!(shown(&read(&scene, query.clone()).await), expected);
        // From a thread the room is another conversation.
        let follow_up = scene.say(&room, "to a thread", 301).await;
        scene.address(&room, follow_up).await;
        let thread = scene.thread(&room, follow_up).await;
        query.conversation = thread.id;
        query.triggers = vec![follow_up.turn];
        query.parent_turns = 0;
        let expected = [("aside", Role::Ambient), ("to a thread", Role::Trigger)];
        assert_eq!(shown(&read(&scene, query.clone()).await), expected);
        // Where every turn is kept, older ones than were asked for don't come back as overheard.
        query.conversation = room.id;
        query.triggers = vec![asked.turn];
        query.keep = Keep::All;
        let texts = read(&scene, query).await;
        assert!(texts.turns.iter().all(|read| read.role != Role::Ambient));
    }

    #[tokio::test]
    async fn what_a_kept_turn_replies_to_is_read_with_it() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let fact = scene.say(&room, "the fact", 1).await;
        scene.say(&room, "noise", 2).await;
        let asked = scene.say_in_reply(&room, "is that so?", 3, fact).await;
        scene.address(&room, asked).await;
        let history = read(&scene, query(&room)).await;
        let expected = [("the fact", Role::RepliedTo), ("is that so?", Role::Kept)];
        assert_eq!(shown(&history), expected);
    }

    #[tokio::test]
    async fn a_thread_is_read_with_its_root_and_the_kept_turns_before_it() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        for (text, at_ms) in [("before1", 1), ("before2", 2)] {
            let said = scene.say(&room, text, at_ms).await;
            scene.address(&room, said).await;
        }
        scene.say(&room, "overheard", 3).await;
        let root = scene.say(&room, "root", 4).await;
        scene.address(&room, root).await;
        let after = scene.say(&room, "after", 5).await;
        scene.address(&room, after).await;
        let thread = scene.thread(&room, root).await;
        scene.queue(&thread, root, 4).await;

        let opening = scene.claim(100).await.unwrap();
        let history = read(&scene, query_of(&opening, &thread)).await;
        let expected = [
            ("before1", Role::Parent),
            ("before2", Role::Parent),
            ("root", Role::Trigger),
        ];
        assert_eq!(shown(&history), expected);
        answer(&scene, &opening, &thread, "reply").await;

        scene.ask(&thread, "and then?", 6).await;
        let follow_up = scene.claim(200).await.unwrap();
        let mut query = query_of(&follow_up, &thread);
        query.parent_turns = 1;
        let history = read(&scene, query).await;
        let expected = [
            ("before2", Role::Parent),
            ("root", Role::Root),
            ("reply", Role::Kept),
            ("and then?", Role::Trigger),
        ];
        assert_eq!(shown(&history), expected);
        assert_eq!(history.conversation.scope, Scope::Thread);
    }

    #[tokio::test]
    async fn what_stands_before_a_topic_stays_as_it_grows() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (before, _) = scene.ask(&room, "before", 1).await;
        let topic = scene.thread(&room, before).await;
        scene
            .write(|connection| {
                connection.execute("UPDATE conversations SET root_turn_seq = NULL", [])?;
                Ok(())
            })
            .await;
        scene.ask(&topic, "first", 2).await;
        scene.ask(&room, "meanwhile", 3).await;
        scene.ask(&topic, "second", 4).await;
        for (max_turns, kept) in [(2, vec!["first", "second"]), (1, vec!["second"])] {
            let mut query = query(&topic);
            query.max_turns = max_turns;
            let mut expected = vec![("before", Role::Parent)];
            expected.extend(kept.into_iter().map(|text| (text, Role::Kept)));
            assert_eq!(shown(&read(&scene, query).await), expected, "{max_turns}");
        }
    }

    /// A question of the room at a time, the thread it opened, and its run.
    async fn opening(scene: &Scene, room: &Room, text: &str, at_ms: i64) -> (Said, Room, RunId) {
        let asked = scene.say(room, text, at_ms).await;
        scene.address(room, asked).await;
        let thread = scene.thread(room, asked).await;
        let run = scene.queue(&thread, asked, at_ms).await;
        (asked, thread, run)
    }

    #[tokio::test]
    async fn a_question_of_the_room_comes_with_the_answer_it_got_in_its_thread() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (first, first_thread, _) = opening(&scene, &room, "q1", 10).await;
        let run = scene.claim(100).await.unwrap();
        answer(&scene, &run, &first_thread, "a1").await;
        // Follow-ups stay in the thread.
        scene.ask(&first_thread, "and then?", 20).await;
        let run = scene.claim(200).await.unwrap();
        answer(&scene, &run, &first_thread, "more").await;
        let (second, second_thread, _) = opening(&scene, &room, "q2", 30).await;
        let (dead, _, dead_run) = opening(&scene, &room, "q3", 40).await;
        scene
            .write(move |connection| {
                let sql = "UPDATE runs SET state = 'dead' WHERE uuid = ?1";
                connection.execute(sql, [dead_run])?;
                Ok(())
            })
            .await;
        let asked = scene.say(&room, "too old to be answered", 45).await;
        scene.address(&room, asked).await;
        let (_, thread, run) = opening(&scene, &room, "q4", 50).await;
        let being_answered = scene.claim(300).await.unwrap();
        assert_eq!(being_answered.run.triggers, [second.turn]);
        let claimed = scene.claim(300).await.unwrap();
        assert_eq!(claimed.run.id, run);

        let expected = [
            ("q1", Role::Parent),
            ("a1", Role::ThreadAnswer),
            ("q2", Role::Parent),
            ("q3", Role::Parent),
            ("too old to be answered", Role::Parent),
            ("q4", Role::Trigger),
        ];
        let history = read(&scene, query_of(&claimed, &thread)).await;
        let mut seen = shown(&history);
        // By the room's time the answer stands behind what was asked while it was made.
        seen.sort_by_key(|(text, _)| expected.iter().position(|(known, _)| known == text));
        assert_eq!(seen, expected);
        let answers: Vec<_> = [first, second, dead, asked]
            .map(|said| history.thread_answers.get(&said.turn).map(Option::is_some))
            .into();
        assert_eq!(answers, [Some(true), Some(false), Some(false), None]);

        // What is answered since is read by no retry.
        answer(&scene, &being_answered, &second_thread, "a2").await;
        let again = read(&scene, query_of(&claimed, &thread)).await;
        assert_eq!(again.turns, history.turns);
        assert_eq!(again.thread_answers, history.thread_answers);
        // A preview of now has it, and none of a deleted answer.
        scene
            .write(|connection| {
                let sql = "UPDATE turns SET visibility = 'hidden' WHERE content = 'a1'";
                connection.execute(sql, [])?;
                Ok(())
            })
            .await;
        let preview = read(&scene, query(&room)).await;
        assert!(shown(&preview).contains(&("a2", Role::ThreadAnswer)));
        assert!(!shown(&preview).iter().any(|(text, _)| *text == "a1"));
        assert_eq!(preview.thread_answers[&first.turn], None);
        // In the thread itself each line is there once, and other agents' prompts don't look for it.
        let own = read(&scene, query(&first_thread)).await;
        let expected = [
            ("q1", Role::Root),
            ("and then?", Role::Kept),
            ("more", Role::Kept),
        ];
        assert_eq!(shown(&own), expected);
        let mut plain = query(&room);
        plain.thread_answers = false;
        assert!(read(&scene, plain).await.thread_answers.is_empty());
    }

    #[tokio::test]
    async fn time_scope_and_visibility_bound_what_is_kept_but_not_the_trigger() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (old, _) = scene.ask(&room, "old", 10).await;
        let hidden = scene.say(&room, "gone", 20).await;
        scene.address(&room, hidden).await;
        scene
            .write(move |connection| {
                connection.execute(
                    "UPDATE turns SET visibility = 'hidden' WHERE seq = ?1",
                    [hidden.seq],
                )?;
                Ok(())
            })
            .await;
        let new = scene.say(&room, "new", 30).await;
        scene.address(&room, new).await;
        let mut query = query(&room);
        query.since_ms = Some(20);
        assert_eq!(
            shown(&read(&scene, query.clone()).await),
            [("new", Role::Kept)]
        );
        query.triggers = vec![old.turn];
        let expected = [("old", Role::Trigger), ("new", Role::Kept)];
        assert_eq!(shown(&read(&scene, query.clone()).await), expected);
        query.scope = Some(Scope::Dm);
        assert_eq!(shown(&read(&scene, query).await), [("old", Role::Trigger)]);
    }

    #[tokio::test]
    async fn mentions_get_the_names_that_are_known() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let text = ["U1", "@ada", "UBOT"].map(mention_token).concat();
        let said = scene.say(&room, &text, 1).await;
        scene.address(&room, said).await;
        let history = read(&scene, query(&room)).await;
        let names =
            [("U1", "Ada"), ("@ada", "Ada")].map(|(id, name)| (id.to_owned(), name.to_owned()));
        assert_eq!(history.names, HashMap::from(names));
    }

    #[tokio::test]
    async fn a_rare_agent_in_a_long_room_costs_no_more_rows() {
        let scene = Scene::open().await;
        let (short, long) = (scene.room("C1").await, scene.room("C2").await);
        let mut rows = Vec::new();
        for (room, noise) in [(&short, 5), (&long, 400)] {
            let (asked, _) = scene.ask(room, "first", 1).await;
            for at_ms in 2..noise {
                scene.say(room, "noise", at_ms).await;
            }
            let mut query = query(room);
            query.triggers = vec![asked.turn];
            query.ambient_turns = 3;
            rows.push(read(&scene, query).await.cost);
        }
        assert_eq!(rows[0].rows, rows[1].rows);
        assert!(rows[1].vm_steps <= rows[0].vm_steps + 10, "{rows:?}");
    }

    #[tokio::test]
    async fn every_read_goes_through_an_index_in_its_order() {
        let scene = Scene::open().await;
        let statements = [
            INVOLVED_SQL,
            ALL_SQL,
            OVERHEARD_SQL,
            RUN_SQL,
            BY_SEQ_SQL,
            TRIGGER_SQL,
            REPLIED_TO_SQL,
            ROOT_SQL,
            THREAD_RUN_SQL,
            THREAD_ANSWER_SQL,
            POSITION_SQL,
            FIRST_TURN_SQL,
            FORKED_SQL,
            NAME_BY_ID_SQL,
            NAME_BY_USERNAME_SQL,
            RECALLED_SQL,
            SAID_BY_PERSON_SQL,
        ];
        let source = include_str!("history.rs");
        let (source, _) = source.split_once("mod tests").unwrap();
        assert_eq!(source.matches("_SQL: &str =").count(), statements.len());
        assert_eq!(source.matches("prepare_cached(sql)").count(), 1);
        assert_eq!(source.matches("prepare_cached(walk.sql)").count(), 1);
        assert_eq!(source.matches("prepare").count(), 4, "{RUN_SQL}");
        let elsewhere = [CONVERSATION_SQL, CONVERSATION_ROW_SQL, CURRENT_SQL];
        let mut plans = Vec::new();
        for sql in statements.into_iter().chain(elsewhere) {
            plans.push(scene.plan(sql).await);
        }
        for step in plans.iter().flatten() {
            assert!(!step.contains("SCAN"), "{step} in {plans:#?}");
            assert!(!step.contains("TEMP B-TREE"), "{step} in {plans:#?}");
        }
        let uses = |plan: &[String], index: &str| plan.iter().any(|step| step.contains(index));
        // Whether a turn waits for a run of its own is asked by the turn: by the conversation, every
        // run that waits would be looked at for every turn.
        for plan in [&plans[0], &plans[1], &plans[2], &plans[6]] {
            let by_turn = "SEARCH g USING INDEX sqlite_autoindex_run_triggers_2 (turn_seq=?)";
            assert!(uses(plan, by_turn), "{plan:#?}");
        }
        assert!(uses(&plans[0], "SEARCH i USING PRIMARY KEY"), "{plans:#?}");
        for plan in [&plans[1], &plans[2]] {
            assert!(uses(plan, "turns_by_position"), "{plans:#?}");
        }
        let of_turn = "SEARCH o USING COVERING INDEX involvements_by_turn (seq=?";
        assert!(uses(&plans[2], of_turn), "{plans:#?}");
    }
}
