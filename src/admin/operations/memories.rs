//! What agents remember, for the console.

use super::{OperationError, Operations};
use crate::admin::view::RememberedView;
use vocative_core::remembering::MemoryId;

impl Operations {
    /// What all agents remember, the newest first, before the entry with a number.
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

    /// Takes one away.
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
}
