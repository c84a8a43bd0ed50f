//! What agents remember, as operators see and correct it.

use serde::{Deserialize, Serialize};

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::{MemoryView, RememberedView};
use vocative_core::ids::AgentName;
use vocative_core::remembering::{MemoryId, MemoryScope, StoredMemory, checked_text};
use vocative_core::words::Language;
use vocative_store::contract::{MemoryFilter, OperatorChange, OperatorChanged};

/// The most entries of one list.
const LISTED_MAX: usize = 500;

/// Which entries are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoriesAsked {
    /// Only entries of this channel.
    #[serde(default)]
    pub channel: Option<String>,
    /// Only entries of this agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Only entries that this person said or that are about them, by the platform's id.
    #[serde(default)]
    pub person: Option<String>,
    /// Whether entries that newer ones replaced are listed, too.
    #[serde(default)]
    pub all: bool,
    /// Only entries with a lower number.
    #[serde(default)]
    pub before: Option<i64>,
    /// The most entries that are listed.
    pub limit: usize,
}

/// What an operator does to an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedMemory {
    /// The entry is removed.
    Forget,
    /// The entry's text is replaced.
    Edit {
        /// The new text.
        text: String,
        /// The version of the entry that the operator saw.
        #[serde(default)]
        version: Option<u32>,
    },
    /// The entry may appear in other rooms of the account.
    Share,
    /// The entry may appear in its own room only.
    Unshare,
}

impl Operations {
    /// Entries of all agents, the newest first; with `before`, only those with a lower number.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn newest_memories(
        &self,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<RememberedView>, OperationError> {
        let found = self
            .store
            .newest_memories(before.map(MemoryId), limit)
            .await?;
        Ok(found.iter().map(RememberedView::of).collect())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// If it is not there, or the store fails.
    pub async fn forget_memory(&self, id: i64) -> Result<(), OperationError> {
        match self.store.forget_memory(MemoryId(id)).await? {
            true => Ok(()),
            false => Err(OperationError::Missing(format!(
                "nothing with the number {id} is remembered"
            ))),
        }
    }

    /// Entries of all rooms, the newest first.
    ///
    /// # Errors
    /// If there is no such channel or agent, or the store fails.
    pub async fn memories(&self, asked: MemoriesAsked) -> Result<Vec<MemoryView>, OperationError> {
        let account = match &asked.channel {
            None => None,
            Some(name) => {
                let bindings = self.store.bindings().await?;
                let binding = bindings.into_iter().find(|it| it.channel == *name);
                let what = || OperationError::Missing(format!("there is no channel {name:?}"));
                Some(binding.ok_or_else(what)?.account)
            }
        };
        let agent = asked.agent.map(AgentName::new).transpose();
        let wrong = |name| OperationError::Wrong(format!("{name:?} is no name of an agent"));
        let filter = MemoryFilter {
            account,
            agent: agent.map_err(wrong)?,
            person: asked.person,
            with_replaced: asked.all,
            before: asked.before.map(MemoryId),
            only: None,
            limit: asked.limit.min(LISTED_MAX),
        };
        let mut views = Vec::new();
        for entry in self.store.memories(filter).await? {
            views.push(self.memory_view(&entry).await?);
        }
        Ok(views)
    }

    /// One entry, also if a newer one replaced it.
    ///
    /// # Errors
    /// If there is none of that number, or the store fails.
    pub async fn memory(&self, id: i64) -> Result<MemoryView, OperationError> {
        let filter = MemoryFilter {
            only: Some(MemoryId(id)),
            with_replaced: true,
            limit: 1,
            ..MemoryFilter::default()
        };
        match self.store.memories(filter).await?.pop() {
            Some(entry) => self.memory_view(&entry).await,
            None => Err(no_memory(id)),
        }
    }

    /// Changes an entry; returns it as it is then, or as it was before it was removed.
    ///
    /// # Errors
    /// If there is none of that number, it can't be changed so, or the store fails.
    pub async fn change_memory(
        &self,
        id: i64,
        change: ChangedMemory,
    ) -> Result<MemoryView, OperationError> {
        let change = match change {
            ChangedMemory::Forget => OperatorChange::Forget,
            ChangedMemory::Edit { text, version } => OperatorChange::Edit {
                text: checked_text(&text, Language::English).map_err(OperationError::Wrong)?,
                version,
            },
            ChangedMemory::Share => OperatorChange::Share(MemoryScope::Team),
            ChangedMemory::Unshare => OperatorChange::Share(MemoryScope::Room),
        };
        let now_ms = (self.clock)();
        let changed = self.store.change_memory(MemoryId(id), change, now_ms);
        match changed.await? {
            OperatorChanged::Done(entry) => self.memory_view(&entry).await,
            OperatorChanged::Missing => Err(no_memory(id)),
            OperatorChanged::Changed => Err(OperationError::Over(format!(
                "entry {id} was changed since you looked at it; look at it again"
            ))),
            OperatorChanged::Refused(why) => Err(OperationError::Wrong(why)),
        }
    }

    pub(super) async fn listed_memories(&self, asked: MemoriesAsked) -> OperationResult {
        Ok(json(&self.memories(asked).await?))
    }

    async fn memory_view(&self, entry: &StoredMemory) -> Result<MemoryView, OperationError> {
        let channel = self.channel_of(entry.account).await?;
        Ok(MemoryView::of(entry, channel))
    }
}

fn no_memory(id: i64) -> OperationError {
    OperationError::Missing(format!("nothing of number {id} is remembered"))
}
