//! Background work, and what people decide about it.

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::JobView;
use vocative_core::ids::JobId;
use vocative_store::StoreError;

/// The most jobs of each state that are listed.
const JOBS_MAX: usize = 200;

impl Operations {
    pub(super) async fn jobs(&self) -> OperationResult {
        let bindings = self.store.bindings().await?;
        let jobs = self.store.jobs(JOBS_MAX).await?.into_iter();
        let views: Vec<JobView> = jobs
            .map(|job| {
                let binding = bindings.iter().find(|it| Some(it.account) == job.account);
                JobView::of(job, binding.map(|it| it.channel.clone()))
            })
            .collect();
        Ok(json(&views))
    }

    pub(super) async fn decide_job(&self, id: &str, retry: bool) -> OperationResult {
        let refused = || {
            OperationError::Wrong(format!(
                "there is no job {id} of which that can be decided; `vocative jobs list` shows what there is. What \
                 is at work is not retried, and erasures, merges and removals have to be done"
            ))
        };
        let job = JobId(id.parse().map_err(|_| refused())?);
        let now_ms = (self.clock)();
        let decided = match retry {
            true => self.store.retry_job(job, now_ms).await,
            false => self.store.cancel_job(job, now_ms).await,
        };
        match decided {
            Ok(()) => {}
            Err(StoreError::NotFound { .. }) => return Err(refused()),
            Err(other) => return Err(other.into()),
        }
        if let Some(running) = &self.running {
            running.wake.jobs.notify_one();
        }
        Ok(serde_json::Value::Bool(true))
    }
}
