//! What a model is or would be shown.

use serde::{Deserialize, Serialize};

/// A prompt as the model would be sent it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromptView {
    /// The conversation's name.
    pub conversation: String,
    /// The agent.
    pub agent: String,
    /// The newest message to the agent, by its capture order, if the agent has spoken since.
    #[serde(default)]
    pub answered_seq: Option<i64>,
    /// The messages.
    pub messages: Vec<PromptMessageView>,
    /// Tokens of summary, history and trigger.
    pub tokens: usize,
    /// Tokens of the instructions.
    pub instruction_tokens: usize,
    /// Tokens of lines that were found for the question; outside the budget, too.
    #[serde(default)]
    pub recalled_tokens: usize,
    /// Tokens that summary, history and trigger may have together, in this chat and this model.
    #[serde(default)]
    pub token_budget: usize,
    /// Tokens of the budget that are left.
    #[serde(default)]
    pub tokens_left: usize,
    /// Whether the chat has prompt options of its own.
    #[serde(default)]
    pub has_chat_options: bool,
    /// What each message is there for and costs.
    #[serde(default)]
    pub costs: Vec<MessageCostView>,
    /// Tokens that each message costs besides its text; in all costs above.
    #[serde(default)]
    pub overhead_per_message: usize,
    /// Turns read.
    pub turns_loaded: usize,
    /// Turns in the prompt, whole or cut.
    #[serde(default)]
    pub turns_in_prompt: usize,
    /// Turns of the conversation.
    #[serde(default)]
    pub turns_of_conversation: u64,
    /// Turns that the summary stands for.
    #[serde(default)]
    pub turns_summarized: u64,
    /// Turns of the conversation that were not read and that no summary stands for.
    #[serde(default)]
    pub turns_not_read: u64,
    /// Why turns were not read: each for one of these reasons.
    #[serde(default)]
    pub not_read_because: Vec<String>,
    /// Rows read to find the turns; this and the next three numbers are SQLite's own counters.
    pub rows_read: u64,
    /// Steps of full scans.
    #[serde(default)]
    pub scan_steps: u64,
    /// Sorts, and indexes made for one statement.
    #[serde(default)]
    pub sorts: u64,
    /// Instructions of SQLite's virtual machine.
    #[serde(default)]
    pub vm_steps: u64,
    /// Whether a summary stands for older turns.
    pub has_summary: bool,
    /// Whether the bound on loading left older kept turns unread.
    pub has_older: bool,
    /// The token counter's name.
    pub counter: String,
    /// Whether the bot's own mentions are shown by name; until it was connected once, they are shown as its id.
    #[serde(default)]
    pub has_identity: bool,
    /// What was left out, and why.
    pub omitted: Vec<OmittedView>,
    /// The run that the agent answered last with, where its prompt can be shown as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_run: Option<String>,
    /// For a run's prompt: whether it is what was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_sent: Option<AsSentView>,
}

/// Whether a prompt that was made again is what a run was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsSentView {
    /// The run.
    pub run: String,
    /// Whether it is the same, byte for byte.
    pub is_same: bool,
    /// What differs, in words.
    pub changes: Vec<String>,
    /// The model that was asked.
    pub model: String,
    /// The tools that it could call.
    pub tools: Vec<String>,
}

/// What a message of a prompt is there for and costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageCostView {
    /// `instructions`, `summary`, `parent`, `thread_answer`, `root`, `replied_to`, `history`, `ambient`, `trigger`.
    pub part: String,
    /// The capture order of the turn it shows.
    pub seq: Option<i64>,
    /// Tokens.
    pub tokens: usize,
}

/// One message of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromptMessageView {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// A turn that is not, or not wholly, in a prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OmittedView {
    /// Its capture order.
    pub seq: i64,
    /// Who said it.
    pub speaker: String,
    /// Why it was left out.
    pub why: String,
    /// What that means, and which setting changes it.
    #[serde(default)]
    pub meaning: String,
    /// How much of a turn that was cut is missing.
    #[serde(default)]
    pub tokens_left_out: Option<usize>,
}
