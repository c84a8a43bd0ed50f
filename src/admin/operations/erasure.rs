//! Erasures, planned and ordered.

use std::sync::Arc;

use super::{EraseTarget, OperationError, OperationResult, Operations, json};
use crate::admin::view::{ErasePlanView, EraseView};
use vocative_core::ids::ErasureId;
use vocative_store::StoreError;
use vocative_store::erasure::{ErasureCounts, ErasurePlan, ErasureTarget};

impl Operations {
    pub(super) async fn plan_of(&self, target: EraseTarget) -> Result<ErasurePlan, OperationError> {
        let target = match target {
            EraseTarget::Person(name) => ErasureTarget::Person(name),
            EraseTarget::Conversation(name) => ErasureTarget::Conversation(name),
        };
        Ok(self.store.plan_erasure(target, (self.clock)()).await?)
    }

    pub(super) async fn erase_plan(&self, target: EraseTarget) -> OperationResult {
        Ok(json(&ErasePlanView::of(&self.plan_of(target).await?)))
    }

    pub(super) async fn erase(&self, target: EraseTarget, verify: bool) -> OperationResult {
        let plan = self.plan_of(target).await?;
        let ids: Vec<ErasureId> = plan.entries.iter().map(|entry| entry.id).collect();
        self.store.begin_erasure(plan.entries).await?;
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        // A task of its own, so that the erasure goes on when the caller has gone away.
        let erasing = tokio::spawn(async move {
            let done = store.carry_out_all(&ids, verify, || (clock)()).await?;
            let mut counts = ErasureCounts::default();
            for id in ids {
                counts.add(store.erasure(id).await?.counts);
            }
            Ok::<_, StoreError>((done, counts))
        });
        let (done, counts) = erasing.await.map_err(|_| {
            OperationError::Wrong("the erasure broke off; the next start finishes it".to_owned())
        })??;
        Ok(json(&EraseView::of(&plan.label, &done, counts)))
    }
}
