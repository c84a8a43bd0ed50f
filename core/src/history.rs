//! What is read for a prompt: a bounded snapshot of one conversation.

use std::collections::HashMap;

use crate::coverage::{Coverage, Keep};
use crate::ids::{AgentName, ConversationId, RunId, Seq, SummaryId, TurnId};
use crate::place::{Conversation, Scope};
use crate::turn::{Position, Turn};

/// The most conversations that a fork may have behind it, each a fork of the next.
pub const FORKS_DEEP_MAX: u32 = 16;

/// Which turns to read.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// The agent that is to answer.
    pub agent: AgentName,
    /// The read bound; `None` = everything committed.
    pub as_of_seq: Option<Seq>,
    /// The run that is to answer: later inbound turns with a run of their own stay out.
    pub run: Option<RunId>,
    /// The turns to answer, oldest first. Empty: the newest loaded turn is the trigger.
    pub triggers: Vec<TurnId>,
    /// Which turns count as kept.
    pub keep: Keep,
    /// The most kept turns that are read, the newest by position.
    pub max_turns: usize,
    /// Only turns sent at or after this, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Only turns of this scope.
    pub scope: Option<Scope>,
    /// How many kept turns of the parent before the root to read for a thread.
    pub parent_turns: usize,
    /// How many turns before the trigger to read that don't concern the agent and that its summary does
    /// not reach; none where all turns are kept.
    pub ambient_turns: usize,
    /// Summaries of this coverage may stand for the older kept turns; `None` = none may.
    pub summaries: Option<Coverage>,
    /// Summaries and fresh starts that were made later than this don't count, in milliseconds since the Unix
    /// epoch. A run's own time bounds them, too.
    pub made_by_ms: Option<i64>,
    /// Whether to read the answers that questions of the room got in threads of their own.
    pub thread_answers: bool,
}

/// A bounded snapshot of one conversation, as of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The conversation.
    pub conversation: Conversation,
    /// The turns, ascending by position; each once.
    pub turns: Vec<HistoryTurn>,
    /// The questions that opened threads of their own, each with its answer from there; without one while it is
    /// made, or if there will be none.
    pub thread_answers: HashMap<TurnId, Option<TurnId>>,
    /// Lines that were found for the question and are in the prompt for no other reason, the best first.
    pub recalled: Vec<TurnId>,
    /// Names for mention tokens: platform id (or `@username`) to name.
    pub names: HashMap<String, String>,
    /// What stands for the kept turns before the oldest read.
    pub summary: Option<SummaryView>,
    /// Whether the agent began afresh in this conversation: nothing older is read.
    pub began_afresh: bool,
    /// Whether kept turns were not read because of `max_turns`.
    pub has_older: bool,
    /// What reading this cost.
    pub cost: ReadCost,
}

impl History {
    /// The turns of a fork's history that were said before it left its conversation.
    pub fn before_fork(&self) -> impl Iterator<Item = TurnId> {
        let turns = self.turns.iter().filter(|_| self.conversation.is_fork);
        let turns = turns.filter(|it| matches!(it.role, HistoryRole::Root | HistoryRole::Parent));
        turns.map(|it| it.turn.id)
    }
}

/// A summary as a prompt uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryView {
    /// Which.
    pub id: SummaryId,
    /// What it says.
    pub text: String,
    /// It stands for every kept turn up to here.
    pub through: Position,
}

/// What reading a snapshot cost the store, by SQLite's own statement counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCost {
    /// Rows that statements stepped to; also those that were passed over.
    pub rows: u64,
    /// Steps of full scans of a table. More than 0 means that a query is wrong.
    pub scan_steps: u64,
    /// Sorts, and indexes made for one statement. More than 0 means that a query is wrong.
    pub sorts: u64,
    /// Instructions of SQLite's virtual machine: all the work there was.
    pub vm_steps: u64,
}

/// Why a turn was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HistoryRole {
    /// A kept turn of the conversation.
    Kept,
    /// What a kept turn replies to.
    RepliedTo,
    /// The thread's root, a turn of the parent.
    Root,
    /// A kept turn of the parent before the root.
    Parent,
    /// The answer to a question of the room, from the thread that the question opened.
    ThreadAnswer,
    /// Overheard before the trigger.
    Ambient,
    /// Found for the question.
    Recalled,
    /// A turn to answer.
    Trigger,
}

/// A turn with the reason it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryTurn {
    /// The turn.
    pub turn: Turn,
    /// Why.
    pub role: HistoryRole,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompting::testing::{history, said, turn_id};

    #[test]
    fn what_stands_before_a_fork_is_known_of_forks_alone() {
        let roles = [
            HistoryRole::Parent,
            HistoryRole::Root,
            HistoryRole::Kept,
            HistoryRole::Trigger,
        ];
        let turns = (1..)
            .zip(roles)
            .map(|(number, role)| said(number, role, "ann", "hi"));
        let mut history = history(turns.collect());
        assert_eq!(history.before_fork().count(), 0);
        history.conversation.is_fork = true;
        let before: Vec<TurnId> = history.before_fork().collect();
        assert_eq!(before, [turn_id(1), turn_id(2)]);
    }
}
