//! The values that networks keep in conversations, as operators see and correct them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OperationError, Operations};
use crate::admin::view::NetworkStateView;
use crate::agent::registry::NetworkSpec;
use vocative_core::place::Conversation;
use vocative_core::routing::state::StateError;
use vocative_store::contract::{KeptValues, ValuesToKeep};

/// Whose values are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateOf {
    /// The conversation's id prefix or name.
    pub conversation: String,
    /// The network.
    pub network: String,
}

/// An operator's changes to the values: all of them are made, or none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedState {
    /// Values to reset to what they were before anything set them.
    #[serde(default)]
    pub clear: Vec<String>,
    /// Whether all values are reset.
    #[serde(default)]
    pub clear_all: bool,
    /// New values, by name. A value that is reset, too, is reset first.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// The version that the operator saw.
    #[serde(default)]
    pub version: Option<i64>,
}

/// A network's values in a conversation.
struct NetworkValues {
    conversation: Conversation,
    spec: Arc<NetworkSpec>,
    kept: Option<KeptValues>,
}

impl Operations {
    /// The values that a network keeps in a conversation.
    ///
    /// # Errors
    /// If there is no such conversation or network, it keeps none, or the store fails.
    pub async fn network_state(&self, of: &StateOf) -> Result<NetworkStateView, OperationError> {
        let found = self.find_state(of).await?;
        self.state_view(&found).await
    }

    /// Changes the values; returns them as they are then.
    ///
    /// # Errors
    /// As [`Self::network_state`]; if a new value is not allowed there, or the values were changed meanwhile.
    pub async fn change_network_state(
        &self,
        of: &StateOf,
        change: ChangedState,
    ) -> Result<NetworkStateView, OperationError> {
        let found = self.find_state(of).await?;
        let version = found.kept.as_ref().map_or(0, |kept| kept.version);
        let changed_meanwhile = || {
            OperationError::Over(
                "these values were changed since you looked at them; look at them again".to_owned(),
            )
        };
        if change.version.is_some_and(|looked_at| looked_at != version) {
            return Err(changed_meanwhile());
        }
        let network = &found.spec.network;
        let schema = &network.state;
        let mut values = match &found.kept {
            Some(kept) if !change.clear_all => schema.read(&kept.values),
            _ => schema.defaults(),
        };
        let wrong = |cause: StateError| OperationError::Wrong(cause.to_string());
        for key in &change.clear {
            schema.reset(&mut values, key).map_err(wrong)?;
        }
        for (key, value) in &change.set {
            schema.put(&mut values, key, value).map_err(wrong)?;
        }
        let kept = ValuesToKeep {
            network: network.name.clone(),
            read_version: version,
            values: values.to_json(),
        };
        let now_ms = (self.clock)();
        let kept = self
            .store
            .set_network_state(found.conversation.id, kept, now_ms);
        match kept.await? {
            true => self.network_state(of).await,
            false => Err(changed_meanwhile()),
        }
    }

    async fn find_state(&self, of: &StateOf) -> Result<NetworkValues, OperationError> {
        let conversation = self.store.find_conversation(&of.conversation).await?;
        let spec = self.registry.network(&of.network);
        let spec = spec.ok_or_else(|| {
            OperationError::Missing(format!(
                "there is no network {:?} in the configuration",
                of.network
            ))
        })?;
        if !spec.network.persist {
            return Err(OperationError::Wrong(format!(
                "the values of {} live for a run only; with networks.{}.persist = true they are kept",
                of.network, of.network
            )));
        }
        let name = spec.network.name.clone();
        let kept = self.store.network_state(conversation.id, name).await?;
        Ok(NetworkValues {
            conversation,
            spec,
            kept,
        })
    }

    async fn state_view(&self, found: &NetworkValues) -> Result<NetworkStateView, OperationError> {
        let view = self.conversation_view(&found.conversation).await?;
        let network = &found.spec.network;
        let conversation = (found.conversation.id.to_string(), view.name);
        Ok(NetworkStateView::of(
            conversation,
            network.name.as_str(),
            &network.state,
            found.kept.as_ref(),
        ))
    }
}
