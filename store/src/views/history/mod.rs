//! Snapshots for prompts: a bounded number of rows however long the conversation.
//!
//! Turns are walked newest first along an index (kept turns through `involvements`, a whole room
//! through `turns_by_position`). What is read when: triggers, root,
//! kept turns, what those reply to, kept turns of the parent, overheard turns, and the answers that
//! questions among them got in threads of their own; a turn that would be read twice keeps the role it
//! got first. Nothing is read from another chat. What a reading costs is
//! counted by SQLite itself, statement by statement.
//!
//! `statements` has what is asked of the database, `walk` how rows are read and counted, `names` who is mentioned.

mod names;
mod run;
mod statements;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashMap;

use crate::engine::sql::{Connection, OptionalExtension, Row};

use self::run::{RunFacts, run_facts};
use self::statements::{
    FIRST_TURN_SQL, FORKED_SQL, OVERHEARD_SQL, POSITION_SQL, RECALLED_SQL, REPLIED_TO_SQL,
    ROOT_SQL, SAID_BY_PERSON_SQL, THREAD_ANSWER_SQL, THREAD_RUN_SQL, TRIGGER_SQL, kept_sql,
};
use self::walk::TurnWalk;
use crate::rows::columns::{AT, FIRST, LAST, conversation_row_id, position_at, turn_from_row};
use crate::rows::conversations::conversation;
use crate::rows::fresh_starts::floor;
use crate::rows::summaries::{SummaryBound, current_summary};
use crate::{Reader, StoreError};
use vocative_core::coverage::Keep;
use vocative_core::history::{
    FORKS_DEEP_MAX, History, HistoryQuery, HistoryRole, HistoryTurn, ReadCost, SummaryView,
};
use vocative_core::ids::{Seq, TurnId};
use vocative_core::place::Conversation;
use vocative_core::turn::{ParticipantKind, Position};

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

    /// Which of these turns people said.
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

    /// The position behind which kept turns are read: the end of the summary, else where the agent began afresh.
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
            self.keep(found, HistoryRole::Trigger);
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
        self.keep(self.behind_floor(root), HistoryRole::Root);
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
            role: HistoryRole::Kept,
        })
    }

    /// What a trigger or a kept turn replies to is kept with it.
    fn read_replied_to(&mut self) -> Result<(), StoreError> {
        let targets: Vec<TurnId> = self
            .turns
            .iter()
            .filter(|read| matches!(read.role, HistoryRole::Trigger | HistoryRole::Kept))
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
            self.keep(self.behind_floor(found), HistoryRole::RepliedTo);
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
            role: HistoryRole::Parent,
        })?;
        Ok(())
    }

    /// What was said before a fork left its conversation, and so on where that is a fork itself, as far as the fork's
    /// own turns leave room. Turns that were captured behind its root are not read, wherever a wrong clock placed them.
    fn read_forked(&mut self) -> Result<(), StoreError> {
        let as_of_seq = self.as_of_seq;
        let kept = self
            .turns
            .iter()
            .filter(|it| it.role == HistoryRole::Kept)
            .count();
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
                role: HistoryRole::Parent,
            });
            self.as_of_seq = as_of_seq;
            walked?;
            left = left.saturating_sub(self.turns.len() - known);
            fork = parent;
        }
        Ok(())
    }

    /// Where the thread left its parent: at its root, else at its first turn. The first turn that was read would not
    /// do: it moves as the thread grows, and the turns shown from before the thread would move with it.
    fn thread_start(&mut self) -> Result<Position, StoreError> {
        let mut turns = self.turns.iter();
        if let Some(root) = turns.find(|read| Some(read.turn.id) == self.conversation.root) {
            return Ok(root.turn.position);
        }
        let key = (self.conversation_row, self.as_of_seq);
        let first = self.one(FIRST_TURN_SQL, key, |row| position_at(row, AT))?;
        Ok(first.unwrap_or(LAST))
    }

    /// The newest overheard turns before the last trigger, in the conversation where it was posted: turns that do not
    /// concern the agent and lie behind its summary there.
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
            role: HistoryRole::Ambient,
        })?;
        Ok(())
    }

    /// The position up to which a conversation is folded, at least where the agent began afresh.
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

    /// What questions of the room were answered in threads of their own. A question whose answer is not there, or was
    /// not as of the read bound, is noted without it.
    fn read_thread_answers(&mut self) -> Result<(), StoreError> {
        if !self.query.thread_answers {
            return Ok(());
        }
        let is_own = |read: &&HistoryTurn| {
            // A thread's own turns are answered in it.
            self.conversation.parent.is_some() && read.turn.conversation == self.conversation.id
        };
        let questions: Vec<(Seq, TurnId, HistoryRole)> = self
            .turns
            .iter()
            .filter(|read| {
                matches!(
                    read.role,
                    HistoryRole::Kept | HistoryRole::Parent | HistoryRole::Ambient
                )
            })
            .filter(|read| read.turn.addressed_to.contains(&self.query.agent) && !is_own(read))
            .map(|read| (read.turn.seq(), read.turn.id, read.role))
            .collect();
        for (seq, id, role) in questions {
            let key = (seq, &self.query.agent, self.conversation_row);
            let Some(run) = self.one(THREAD_RUN_SQL, key, |row| row.get::<_, i64>("id"))? else {
                continue;
            };
            let answer = if role == HistoryRole::Ambient {
                None
            } else {
                let chat = self.conversation.key.chat;
                let key = (run, self.as_of_seq, chat, self.query.scope);
                self.one(THREAD_ANSWER_SQL, key, turn_from_row)?
            };
            self.thread_answers
                .insert(id, answer.as_ref().map(|turn| turn.id));
            self.keep(answer, HistoryRole::ThreadAnswer);
        }
        Ok(())
    }

    /// An answer that was committed after a fresh start, to a question from before it, goes with its question.
    fn drop_answers_from_before(&mut self) -> Result<(), StoreError> {
        if self.floor == FIRST {
            return Ok(());
        }
        let answers = self.turns.iter().filter(|read| {
            read.role != HistoryRole::Trigger
                && read.turn.participant.kind == ParticipantKind::Agent
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

    /// Keeps the recalled turns, in the order in which they were found.
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
                self.keep(Some(turn), HistoryRole::Recalled);
            }
        }
        Ok(())
    }

    /// The last trigger's conversation and position; without triggers, those of the newest kept turn.
    fn last_trigger(&self) -> Result<(i64, Position), StoreError> {
        let newest = |role| {
            self.turns
                .iter()
                .filter(|read| read.role == role)
                .max_by_key(|read| read.turn.position)
        };
        match newest(HistoryRole::Trigger).or_else(|| newest(HistoryRole::Kept)) {
            Some(read) => Ok((
                conversation_row_id(self.connection, read.turn.conversation)?,
                read.turn.position,
            )),
            None => Ok((self.conversation_row, LAST)),
        }
    }
}
