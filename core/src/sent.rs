//! What it takes to make the prompt of a run again: ids, revisions and settings; never what was said.

use crate::history::{History, HistoryRole};
use crate::ids::{AgentName, ConversationId, RunId, Seq, SummaryId, TurnId};

/// A turn that was read for a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentTurn {
    /// Which.
    pub turn: TurnId,
    /// Why it was read.
    pub role: HistoryRole,
    /// Its revision then.
    pub revision: u32,
}

/// What the prompt of a run was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPrompt {
    /// The settings and hashes: versioned JSON, opaque to the store.
    pub recipe: String,
    /// The agent's instructions with their places for values, as configured.
    pub instructions: String,
    /// What the model might call, as JSON.
    pub tools: String,
    /// The summary in the prompt.
    pub summary: Option<SummaryId>,
    /// The turns that were read, in the room's order; behind them, the best first, those that were found without
    /// being asked for. A turn that was read for another reason and found, too, is there twice.
    pub turns: Vec<SentTurn>,
    /// Questions that opened threads of their own, each with its answer from there.
    pub thread_answers: Vec<(TurnId, Option<TurnId>)>,
}

/// The record of a run's prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPrompt {
    /// Its number; prompts are numbered in the order in which they were made.
    pub number: i64,
    /// The run.
    pub run: RunId,
    /// The run's agent.
    pub agent: AgentName,
    /// The run's conversation.
    pub conversation: ConversationId,
    /// What it was made from.
    pub sent: SentPrompt,
}

/// What a recorded prompt was made from, as far as it is there.
#[derive(Clone, Debug, PartialEq)]
pub struct SentHistory {
    /// The turns, names as they were then.
    pub history: History,
    /// The parts that have changed since, or are gone.
    pub changes: Vec<SentChange>,
}

/// Something that a prompt was made from and that has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentChange {
    /// A turn was edited.
    Edited {
        /// Its capture order.
        seq: Seq,
    },
    /// A turn was deleted, erased, or has passed its age.
    Gone {
        /// Its capture order, if anything is known of it.
        seq: Option<Seq>,
    },
    /// The summary was deleted with what it stood for, or made again.
    SummaryGone,
}
