//! `set_state`: an agent of a network sets values that the network shares. The tool is made for one agent call. Its
//! calls are rows in the store, so a resumed run sets the same values again by [`StateDesk::apply`] without calling a
//! model.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{CallContext, Tool, ToolError, ToolOutput};
use vocative_core::routing::state::{StateSchema, StateValues};
use vocative_core::tool_call::CallRule;

/// The tool's name.
pub const SET_STATE: &str = "set_state";

/// The values of a network during one agent call.
#[derive(Debug)]
pub struct StateDesk {
    schema: StateSchema,
    /// The values that the agent may set.
    writes: Vec<String>,
    values: Mutex<StateValues>,
}

impl StateDesk {
    /// Starts with these values.
    #[must_use]
    pub fn new(schema: StateSchema, writes: Vec<String>, values: StateValues) -> Self {
        Self {
            schema,
            writes,
            values: Mutex::new(values),
        }
    }

    /// Whether the agent may set anything.
    #[must_use]
    pub fn may_write(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Sets all values of a call, or none of them.
    ///
    /// # Errors
    /// Why the values can't be set, in words for the model.
    pub fn apply(&self, arguments: &Value) -> Result<(), String> {
        let Some(set) = arguments.as_object().filter(|set| !set.is_empty()) else {
            return Err("name the values to set, by their keys".to_owned());
        };
        if let Some(key) = set.keys().find(|key| !self.writes.contains(key)) {
            let may = self.writes.join(", ");
            return Err(format!("you may not set {key}; you may set {may}"));
        }
        let set = set.iter().map(|(key, value)| (key.as_str(), value));
        let set = self.schema.set_all(&mut self.lock(), set);
        set.map_err(|wrong| wrong.to_string())
    }

    /// The current values.
    #[must_use]
    pub fn values(&self) -> StateValues {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, StateValues> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tool that sets values.
pub struct SetState(pub Arc<StateDesk>);

impl Tool for SetState {
    fn name(&self) -> &str {
        SET_STATE
    }

    fn description(&self) -> &str {
        "Sets values that the agents of your team share, and by which it is decided who works next. Set only what you know."
    }

    fn schema(&self) -> Value {
        self.0.schema.arguments(&self.0.writes)
    }

    /// The values are in the row of the call: a repeated call sets the same ones.
    fn rule(&self) -> CallRule {
        CallRule::Repeatable
    }

    fn is_outside(&self) -> bool {
        false
    }

    fn call(
        &self,
        arguments: Value,
        _: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let desk = Arc::clone(&self.0);
        Box::pin(async move {
            desk.apply(&arguments).map_err(ToolError::Arguments)?;
            let line = desk.values().line(&desk.writes).unwrap_or_default();
            Ok(ToolOutput {
                content: format!("set: {line}"),
                sources: Vec::new(),
                files: Vec::new(),
            })
        })
    }
}
