//! Agents, the models they ask, and the questions that wait for them.

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::{AgentView, ModelRestView, ReleasedModelView, RetriedView, ThumbsView};
use vocative_core::ids::AgentName;
use vocative_store::StoreError;
use vocative_store::contract::{DeadFilter, StoreStatus};

/// How far back thumbs are counted, in milliseconds: 30 days.
const THUMBS_MS: i64 = 30 * 86_400_000;
/// The most questions that are queued again in one commit.
const RETRIED_AT_ONCE: usize = 500;

impl Operations {
    pub(super) async fn agents(&self) -> OperationResult {
        let status = self.store.status((self.clock)()).await?;
        let rests = self.model_rests(&status);
        let since_ms = (self.clock)().saturating_sub(THUMBS_MS);
        let thumbs = self.store.thumbs_by_agent(since_ms).await?;
        let thumbs_of = |agent: &AgentName| {
            let found = thumbs.iter().find(|(it, _)| it == agent);
            found.map_or_else(ThumbsView::default, |(_, counts)| ThumbsView::of(*counts))
        };
        let views = self.registry.all().into_iter().map(|spec| {
            let model = &spec.model_use.name;
            AgentView {
                name: spec.name.to_string(),
                model: model.clone(),
                queued: queued_of(&status, &spec.name),
                thumbs: thumbs_of(&spec.name),
                rest: rests.iter().find(|rest| rest.model == *model).cloned(),
            }
        });
        Ok(json(&views.collect::<Vec<_>>()))
    }

    /// The models that are not asked at present, with the agents and questions that this concerns.
    pub(super) fn model_rests(&self, status: &StoreStatus) -> Vec<ModelRestView> {
        let view = |rest| {
            let mut view = ModelRestView::of(rest);
            for agent in self.registry.of_model(&rest.model) {
                view.queued += queued_of(status, &agent);
                view.agents.push(agent.to_string());
            }
            view
        };
        status.model_rests.iter().map(view).collect()
    }

    /// Lets a model be asked again; `name` is that of the model or of one of its agents.
    pub(super) async fn release_agent(&self, name: &str) -> OperationResult {
        let specs = self.registry.all();
        let named = specs.iter().find(|spec| spec.name.as_str() == name);
        let rests = self.store.model_rests().await?;
        let is_model = specs.iter().any(|spec| spec.model_use.name == name)
            || rests.iter().any(|rest| rest.model == name);
        let model = match named {
            Some(spec) => spec.model_use.name.clone(),
            None if is_model => name.to_owned(),
            None => {
                let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
                return Err(OperationError::Wrong(format!(
                    "there is no agent {name:?}; there are: {}",
                    known.join(", ")
                )));
            }
        };
        let was_resting = match &self.running {
            Some(running) => running.models.release(&model).await?,
            None => self.release_stored(&model).await?,
        };
        Ok(json(&ReleasedModelView { model, was_resting }))
    }

    /// Releases a model without a daemon: the next start asks it at once.
    async fn release_stored(&self, model: &str) -> Result<bool, StoreError> {
        let agents = self.registry.of_model(model);
        let was_resting = self.store.end_model_rest(model).await?;
        let now_ms = (self.clock)();
        self.store.bring_runs_forward(&agents, now_ms).await?;
        Ok(was_resting)
    }

    /// Retries all questions that were given up; on request only those of one agent, or since a time.
    pub(super) async fn retry_dead(
        &self,
        agent: Option<String>,
        since_ms: Option<i64>,
    ) -> OperationResult {
        let agent = agent.map(AgentName::new).transpose().map_err(|name| {
            OperationError::Wrong(format!("{name:?} can't be the name of an agent"))
        })?;
        let now_ms = (self.clock)();
        let mut runs = 0;
        loop {
            let filter = DeadFilter {
                agent: agent.clone(),
                since_ms,
            };
            let revived = self
                .store
                .revive_runs(filter, RETRIED_AT_ONCE, now_ms)
                .await?;
            runs += revived as u64;
            if revived < RETRIED_AT_ONCE {
                break;
            }
        }
        if let Some(running) = &self.running {
            running.wake.runs.notify_one();
        }
        let posts_left = self.store.status(now_ms).await?.posts_dead;
        Ok(json(&RetriedView { runs, posts_left }))
    }
}

fn queued_of(status: &StoreStatus, agent: &AgentName) -> u64 {
    let mut counts = status.queued_by_agent.iter();
    counts.find(|(name, _)| name == agent).map_or(0, |it| it.1)
}
