//! Networks as people write them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::config::shape::forms;
use vocative_core::routing::state::{SimpleKind, ValueMerge};

/// Several agents behind one name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct NetworkShape {
    /// The name that people see.
    pub display_name: Option<String>,
    /// Further names by which people address it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What it is for, in words for agents that may ask it.
    #[serde(default)]
    pub purpose: String,
    /// Names from `[channels]` that it serves, or `*`. Not set: all.
    pub channels: Option<Vec<String>>,
    /// Names from `[agents]`: what the routing agent may choose from.
    #[serde(default)]
    pub agents: Vec<String>,
    /// The agent that is called where the routing agent gives no answer that counts, and whose settings hold for the
    /// run. Not set: the first of `agents`.
    pub default_agent: Option<String>,
    /// Agent calls of one run.
    #[schemars(range(min = 1, max = 16))]
    pub max_calls: Option<u32>,
    /// Whose words are the answer: `last`, `each`, or an agent. Not set: `last`.
    pub answer_from: Option<String>,
    /// Agents whose words are never posted.
    #[serde(default)]
    pub silent: Vec<String>,
    /// Whether its values outlive the run, for each conversation.
    #[serde(default)]
    pub persist: bool,
    /// The model of the routing agent, from `[models]`. Not set: the default agent's.
    pub router_model: Option<String>,
    /// What its agents are for, in words for the routing agent, by agent.
    #[serde(default)]
    pub descriptions: BTreeMap<String, String>,
    /// The values that an agent is shown, by agent.
    #[serde(default)]
    pub reads: BTreeMap<String, Vec<String>>,
    /// The values that an agent may set, by agent.
    #[serde(default)]
    pub writes: BTreeMap<String, Vec<String>>,
    /// The values that its agents share, by name.
    #[serde(default)]
    pub state: BTreeMap<String, StateShape>,
    /// What decides who is next, from top to bottom.
    #[serde(default)]
    pub rules: Vec<RuleShape>,
}

/// One value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct StateShape {
    /// What it is.
    pub r#type: StateTypeShape,
    /// What the items of a list are.
    pub items: Option<ItemTypeShape>,
    /// What it may be.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub r#enum: Option<Value>,
    /// What it is before anything set it.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub default: Option<Value>,
    /// The most items of a list.
    #[schemars(range(min = 1, max = 100))]
    pub max_items: Option<u32>,
    /// What setting it does. Not set: the new value takes the place of the old.
    pub merge: Option<MergeShape>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum StateTypeShape {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    Array,
}

impl StateTypeShape {
    /// The type as a simple type; `None` for lists.
    pub(super) fn simple(self) -> Option<SimpleKind> {
        match self {
            Self::String => Some(SimpleKind::String),
            Self::Integer => Some(SimpleKind::Integer),
            Self::Number => Some(SimpleKind::Number),
            Self::Boolean => Some(SimpleKind::Boolean),
            Self::Array => None,
        }
    }
}

/// The type of a list's items.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum ItemTypeShape {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
}

impl From<ItemTypeShape> for SimpleKind {
    fn from(shape: ItemTypeShape) -> Self {
        match shape {
            ItemTypeShape::String => Self::String,
            ItemTypeShape::Integer => Self::Integer,
            ItemTypeShape::Number => Self::Number,
            ItemTypeShape::Boolean => Self::Boolean,
        }
    }
}

/// What setting a value does.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum MergeShape {
    /// The new value takes the place of the old.
    Replace,
    /// A list grows by it.
    Append,
    /// The larger one stays.
    Max,
}

impl From<MergeShape> for ValueMerge {
    fn from(shape: MergeShape) -> Self {
        match shape {
            MergeShape::Replace => Self::Replace,
            MergeShape::Append => Self::Append,
            MergeShape::Max => Self::Max,
        }
    }
}

/// One rule: `call`, `ask_router` or `stop`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct RuleShape {
    /// When it matches: all that is named holds. Not set: always.
    #[serde(default)]
    pub when: Option<WhenShape>,
    /// The agent that is called, or several, one after the other.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub call: Option<Value>,
    /// Whether the routing agent is asked.
    #[serde(default)]
    pub ask_router: bool,
    /// Whether the run ends.
    #[serde(default)]
    pub stop: bool,
    /// Why it ends, for whoever looks into the run.
    pub reason: Option<String>,
    /// Values that it sets, by name.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub set: Option<Value>,
    /// How often it may be used in one run. Not set: once.
    #[schemars(range(min = 1, max = 16))]
    pub at_most: Option<u32>,
}

/// When a rule matches. Where one value stands, a list means "one of".
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct WhenShape {
    /// Agent calls of this run so far: a number, or `{ ge = 1, le = 3 }`.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub calls: Option<Value>,
    /// Who was called last.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub last_agent: Option<Value>,
    /// What that agent said: `{ contains = "…" }`, `{ matches = "…" }`, `{ is_empty = true }`.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub last_text: Option<Value>,
    /// A tool that was called in the last agent call.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub last_tool: Option<Value>,
    /// Whether the last agent call failed.
    pub last_failed: Option<bool>,
    /// Whether nobody waits to be called.
    pub stack_empty: Option<bool>,
    /// Values by name: a value, a list, or `{ ge, le, is_set, in }`.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub state: Option<Value>,
    /// By which name the network was addressed.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub alias: Option<Value>,
    /// Where it was asked: `channel`, `thread` or `dm`.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub scope: Option<Value>,
    /// In which chat, as CHANNEL/CHAT.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub chat: Option<Value>,
    /// Who asked: `person`, `bot` or `admin`.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub sender: Option<Value>,
    /// Whether files came with the question.
    pub has_files: Option<bool>,
    /// What was asked, as `last_text`.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub text: Option<Value>,
    /// What must not hold all together: the same once more, without a `not`.
    #[serde(default)]
    #[schemars(schema_with = "forms")]
    pub not: Option<Value>,
}
