//! The values that networks keep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use vocative_core::routing::state::{StateSchema, StateValues};
use vocative_store::contract::KeptValues;

/// The values that a network keeps in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkStateView {
    /// The conversation's id.
    pub conversation: String,
    /// Its name.
    pub conversation_name: String,
    /// The network.
    pub network: String,
    /// Counted up by each change; 0: no values are stored yet. A change may name the version that its author saw.
    pub version: i64,
    /// When the values were stored, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// Each value, by name.
    pub values: BTreeMap<String, NetworkValueView>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkValueView {
    /// The value; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What values are allowed, in words.
    pub wanted: String,
}

impl NetworkStateView {
    /// The view of the stored values, as the schema reads them.
    #[must_use]
    pub fn of(
        (conversation, conversation_name): (String, String),
        network: &str,
        schema: &StateSchema,
        kept: Option<&KeptValues>,
    ) -> Self {
        let values = kept.map_or_else(StateValues::default, |kept| schema.read(&kept.values));
        let defaults = schema.defaults();
        let value_of = |key: &str| values.get(key).or_else(|| defaults.get(key)).cloned();
        let values = schema.0.iter().map(|(key, schema)| {
            let view = NetworkValueView {
                value: value_of(key),
                wanted: schema.wanted(),
            };
            (key.clone(), view)
        });
        Self {
            conversation,
            conversation_name,
            network: network.to_owned(),
            version: kept.map_or(0, |kept| kept.version),
            at_ms: kept.map(|kept| kept.at_ms),
            values: values.collect(),
        }
    }
}
