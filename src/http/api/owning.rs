//! Ownership of conversations and runs, for callers that see only their own. Those of others are reported as not found.

use axum::http::StatusCode;

use super::ApiState;
use super::callers::{ApiCaller, ApiOwner, Sight};
use super::refusal::ApiRefusal;
use crate::config::API_CHANNEL;
use vocative_core::ids::{ConversationId, RunId};
use vocative_core::place::Conversation;
use vocative_core::run::Run;
use vocative_store::StoreError;

fn nothing(of: &str) -> ApiRefusal {
    ApiRefusal::new(
        StatusCode::NOT_FOUND,
        format!("there is no such {of}"),
        "find ids with GET /v1/conversations",
    )
}

/// Words a thing that does not exist like one that belongs to another.
fn hidden(cause: StoreError, of: &str) -> ApiRefusal {
    match cause {
        StoreError::NotFound { .. } => nothing(of),
        other => other.into(),
    }
}

impl ApiState {
    /// A conversation that the caller may see.
    pub(super) async fn conversation_for(
        &self,
        caller: &ApiCaller,
        id: ConversationId,
    ) -> Result<Conversation, ApiRefusal> {
        let store = &self.operations.store;
        match caller.sight()? {
            Sight::Everything => Ok(store.conversation(id).await?),
            Sight::Own(owner) => {
                let found = store.conversation(id).await;
                let found = found.map_err(|cause| hidden(cause, "conversation"))?;
                match self.is_own(&owner, &found) {
                    true => Ok(found),
                    false => Err(nothing("conversation")),
                }
            }
        }
    }

    /// A run that the caller may see.
    pub(super) async fn run_for(&self, caller: &ApiCaller, id: RunId) -> Result<Run, ApiRefusal> {
        let store = &self.operations.store;
        let sight = caller.sight()?;
        let found = store.run(id).await;
        let Sight::Own(owner) = sight else {
            return Ok(found?);
        };
        let run = found.map_err(|cause| hidden(cause, "run"))?;
        let conversation = store.conversation(run.conversation).await;
        let conversation = conversation.map_err(|cause| hidden(cause, "run"))?;
        match self.is_own(&owner, &conversation) {
            true => Ok(run),
            false => Err(nothing("run")),
        }
    }

    /// Whether a conversation of the API's channel is somebody's own.
    pub(super) fn is_own(&self, owner: &ApiOwner, conversation: &Conversation) -> bool {
        self.is_of_api(conversation) && owner.has(&conversation.platform_chat)
    }

    /// Whether a conversation is one of the API's channel.
    pub(super) fn is_of_api(&self, conversation: &Conversation) -> bool {
        let room = self.operations.rooms.get(conversation.account);
        room.is_some_and(|room| room.channel == API_CHANNEL)
    }
}
