//! How a prompt is assembled: the options of one agent, with their defaults.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::place::Scope;

/// The options of the assembler.
#[derive(Clone, Debug, PartialEq)]
pub struct AssemblerOptions {
    /// How much of what was said before is shown.
    pub history: HistoryShare,
    /// Keep only turns that concern the agent.
    pub addressed_only: bool,
    /// The most kept turns that are read.
    pub max_turns_to_load: usize,
    /// How far back turns are read, in minutes (fractions allowed).
    pub time_window_minutes: Option<f64>,
    /// Only turns of this scope.
    pub scope: Option<Scope>,
    /// The number of kept turns in no summary at which the older ones are folded into one.
    pub rolling_summary_threshold: usize,
    /// How many of the newest turns of people are not folded, as far as a prompt can hold the turns between
    /// them.
    pub preserve_recent_turns: usize,
    /// Tokens for summary, history and trigger together.
    pub token_budget: usize,
    /// The length above which a trigger is cut, with a marker, in tokens.
    pub trigger_max_tokens: usize,
    /// Kept turns of the parent before a thread's root.
    pub parent_turns: usize,
    /// Turns before the trigger that don't concern the agent and that no summary reaches.
    pub ambient_turns: usize,
    /// What is looked up in the room for a question.
    pub recall: RecallMode,
    /// The most tokens of lines that were found without being asked for; besides `token_budget`.
    pub recall_max_tokens: usize,
    /// What the agent remembers of what people told it.
    pub memory: MemoryMode,
    /// Platform ids under which the agent is mentioned in a transcript's metadata.
    pub agent_aliases: Vec<String>,
    /// Which rules.
    pub profile: Profile,
}

/// Options that are other in one chat; what is `None` stays as the agent has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptionOverrides {
    /// See [`AssemblerOptions::addressed_only`].
    pub addressed_only: Option<bool>,
    /// See [`AssemblerOptions::max_turns_to_load`].
    pub max_turns_to_load: Option<usize>,
    /// See [`AssemblerOptions::time_window_minutes`].
    pub time_window_minutes: Option<f64>,
    /// See [`AssemblerOptions::scope`].
    pub scope: Option<Scope>,
    /// See [`AssemblerOptions::rolling_summary_threshold`].
    pub rolling_summary_threshold: Option<usize>,
    /// See [`AssemblerOptions::preserve_recent_turns`].
    pub preserve_recent_turns: Option<usize>,
    /// See [`AssemblerOptions::token_budget`].
    pub token_budget: Option<usize>,
    /// See [`AssemblerOptions::trigger_max_tokens`].
    pub trigger_max_tokens: Option<usize>,
    /// See [`AssemblerOptions::parent_turns`].
    pub parent_turns: Option<usize>,
    /// See [`AssemblerOptions::ambient_turns`].
    pub ambient_turns: Option<usize>,
}

impl OptionOverrides {
    /// An agent's options with these in their place.
    #[must_use]
    pub fn over(&self, own: &AssemblerOptions) -> AssemblerOptions {
        AssemblerOptions {
            history: own.history,
            addressed_only: self.addressed_only.unwrap_or(own.addressed_only),
            max_turns_to_load: self.max_turns_to_load.unwrap_or(own.max_turns_to_load),
            time_window_minutes: self.time_window_minutes.or(own.time_window_minutes),
            scope: self.scope.or(own.scope),
            rolling_summary_threshold: self
                .rolling_summary_threshold
                .unwrap_or(own.rolling_summary_threshold),
            preserve_recent_turns: self
                .preserve_recent_turns
                .unwrap_or(own.preserve_recent_turns),
            token_budget: self.token_budget.unwrap_or(own.token_budget),
            trigger_max_tokens: self.trigger_max_tokens.unwrap_or(own.trigger_max_tokens),
            parent_turns: self.parent_turns.unwrap_or(own.parent_turns),
            ambient_turns: self.ambient_turns.unwrap_or(own.ambient_turns),
            recall: own.recall,
            recall_max_tokens: own.recall_max_tokens,
            memory: own.memory,
            agent_aliases: own.agent_aliases.clone(),
            profile: own.profile,
        }
    }
}

/// How much of what was said before the question stands in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HistoryShare {
    /// All that the other options let in, and summaries of what is older.
    #[default]
    Full,
    /// The newest turns of that, up to this number; no summary, which would stand for what they leave out.
    Last(u32),
    /// Nothing but what the question replies to.
    None,
}

/// The most turns that [`HistoryShare::Last`] may name.
pub const HISTORY_LAST_MAX: u32 = 1_000;

impl HistoryShare {
    /// From a setting: `full`, `none` or `last N`.
    ///
    /// # Errors
    /// A sentence about what may be written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let share = match words[..] {
            ["full"] => Some(Self::Full),
            ["none"] => Some(Self::None),
            ["last", count] => count
                .parse()
                .ok()
                .filter(|count| (1..=HISTORY_LAST_MAX).contains(count))
                .map(Self::Last),
            _ => None,
        };
        share.ok_or_else(|| {
            format!(
                "\"{text}\" is not \"full\", \"none\" or \"last N\" with N from 1 to {HISTORY_LAST_MAX}"
            )
        })
    }
}

/// What is looked up in the room for a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallMode {
    /// What answers a person's question is put into its prompt; the model may also search by its tool.
    Auto,
    /// Only the model searches, by its tool.
    Tool,
    /// Nothing, also not by a tool.
    Off,
}

/// What an agent remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// Nothing: no entry is read or written.
    #[default]
    Off,
    /// What its model notes by its tools.
    Tools,
    /// That, and what is learnt in the background once a conversation has settled.
    Auto,
}

/// A set of assembler rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Ours.
    Vocative,
    /// Exactly what the recorded vectors of the other system give.
    Toolpack,
}

impl Default for AssemblerOptions {
    fn default() -> Self {
        Self {
            history: HistoryShare::Full,
            addressed_only: true,
            max_turns_to_load: 100,
            time_window_minutes: None,
            scope: None,
            rolling_summary_threshold: 40,
            preserve_recent_turns: 10,
            token_budget: 8_000,
            trigger_max_tokens: 2_000,
            parent_turns: 10,
            ambient_turns: 0,
            recall: RecallMode::Auto,
            recall_max_tokens: 400,
            memory: MemoryMode::Off,
            agent_aliases: Vec::new(),
            profile: Profile::Vocative,
        }
    }
}

impl AssemblerOptions {
    /// The option values that give the recorded vectors.
    #[must_use]
    pub fn toolpack() -> Self {
        Self {
            preserve_recent_turns: 0,
            token_budget: 3_000,
            trigger_max_tokens: usize::MAX,
            parent_turns: 0,
            recall: RecallMode::Tool,
            profile: Profile::Toolpack,
            ..Self::default()
        }
    }
}
