//! What calls of models cost.

use super::{OperationResult, Operations, json};
use crate::admin::view::{CostView, CostsBy};
use vocative_store::costs::CostsBy as StoredBy;

/// The most lines of a list.
const COSTS_MAX: u32 = 1_000;

impl Operations {
    pub(super) async fn costs(&self, by: CostsBy, since_ms: i64) -> OperationResult {
        let by = match by {
            CostsBy::Day => StoredBy::Day,
            CostsBy::Channel => StoredBy::Channel,
            CostsBy::Room => StoredBy::Conversation,
            CostsBy::Person => StoredBy::Person,
            CostsBy::Agent => StoredBy::Agent,
            CostsBy::Model => StoredBy::Model,
        };
        let costs = self.store.costs(by, since_ms, COSTS_MAX).await?;
        let views: Vec<CostView> = costs.into_iter().map(Into::into).collect();
        Ok(json(&views))
    }
}
