//! Which room something is of, so that the console knows whether its words were said in a direct chat.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::DaemonDesk;
use crate::admin::operations::OperationError;
use vocative_core::ids::{ConversationId, RunId, TurnId};
use vocative_store::StoreError;

/// Rooms that were found for one page.
#[derive(Default)]
pub(super) struct FoundRooms(HashMap<ConversationId, Value>);

impl DaemonDesk {
    /// A room: its id, name, and whether it is a direct chat.
    pub(super) async fn room(
        &self,
        id: ConversationId,
        found: &mut FoundRooms,
    ) -> Result<Value, OperationError> {
        if let Some(known) = found.0.get(&id) {
            return Ok(known.clone());
        }
        let view = self.operations.room_head(&id.to_string()).await?;
        let room = json!({ "id": view.id, "name": view.name, "is_direct": view.is_direct() });
        found.0.insert(id, room.clone());
        Ok(room)
    }

    /// The room of a run.
    pub(super) async fn room_of_run(
        &self,
        run: &str,
        found: &mut FoundRooms,
    ) -> Result<Value, OperationError> {
        let wrong = || OperationError::Missing(format!("there is no run {run}"));
        let run: RunId = run.parse().map_err(|_| wrong())?;
        let run = self.operations.store.run(run).await?;
        self.room(run.conversation, found).await
    }

    /// The room of a turn; none if it is gone.
    pub(super) async fn room_of_turn(
        &self,
        turn: Option<TurnId>,
        found: &mut FoundRooms,
    ) -> Result<Option<Value>, OperationError> {
        let Some(turn) = turn else { return Ok(None) };
        match self.operations.store.turn(turn).await {
            Ok(turn) => Ok(Some(self.room(turn.conversation, found).await?)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Adds to each view the room of its run, whose id is at the JSON pointer `run_at`.
    pub(super) async fn with_rooms(
        &self,
        mut views: Vec<Value>,
        run_at: &str,
    ) -> Result<Vec<Value>, OperationError> {
        let mut found = FoundRooms::default();
        for view in &mut views {
            let run = view.pointer(run_at).and_then(Value::as_str);
            let run = run.unwrap_or_default().to_owned();
            view["room"] = self.room_of_run(&run, &mut found).await?;
        }
        Ok(views)
    }
}

/// The entries of a list.
pub(super) fn entries(list: Value) -> Vec<Value> {
    match list {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    }
}
