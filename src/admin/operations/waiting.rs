//! Questions and posts that wait, are held or were given up, and what people decide about them.

use vocative_contract::crash;

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::{
    DeadView, HeldRunView, PostView, QuarantinedView, QueuedRunView, ReleasedView,
    RunView as RunShown,
};
use vocative_core::ids::{OutboxId, RunId};
use vocative_core::model_rest::ModelRest;
use vocative_core::outbox::{OutboxEntry, OutboxState};
use vocative_core::run::{Run, RunState, StopCause, Stopping};
use vocative_store::StoreError;
use vocative_store::contract::{QueuedRun, WaitingFor};
use vocative_store::quarantine::Queue;

/// The most posts, and the most runs, that are listed as waiting for a person.
const HELD_MAX: usize = 200;

/// The most runs that are listed as waiting for their answer.
const QUEUE_MAX: usize = 500;

impl Operations {
    pub(super) async fn held(&self) -> OperationResult {
        let stuck = self.store.stuck_posts(HELD_MAX).await?;
        Ok(json(&stuck.iter().map(PostView::of).collect::<Vec<_>>()))
    }

    pub(super) async fn held_runs(&self) -> OperationResult {
        let runs = self.store.held_runs(HELD_MAX).await?;
        Ok(json(&self.run_views(&runs).await?))
    }

    /// Sends or drops a held post or run. Ids of both have the same form; a post is looked for first.
    pub(super) async fn release(&self, id: &str, send: bool) -> OperationResult {
        let wrong = |_| OperationError::Wrong(format!("{id:?} is no id of a post or a run"));
        let post: OutboxId = id.parse().map_err(wrong)?;
        let run = RunId(post.0);
        let now_ms = (self.clock)();
        let is_run = match self.store.release_post(post, send, now_ms).await {
            Err(StoreError::NotFound { .. }) => self.release_run(run, send, now_ms).await?,
            other => other.map(|()| false)?,
        };
        if let Some(running) = &self.running {
            let waiting = if is_run {
                &running.wake.runs
            } else {
                &running.wake.posts
            };
            waiting.notify_one();
        }
        Ok(json(&ReleasedView { is_run }))
    }

    pub(super) async fn release_run(
        &self,
        run: RunId,
        send: bool,
        now_ms: i64,
    ) -> Result<bool, OperationError> {
        let not_held = || OperationError::Wrong(format!("no post and no question {run} is held"));
        match self.store.run(run).await {
            Ok(Run {
                state: RunState::Held { .. },
                ..
            }) => {}
            Ok(_) | Err(StoreError::NotFound { .. }) => return Err(not_held()),
            Err(other) => return Err(other.into()),
        }
        if send {
            self.store.release_run(run, now_ms).await?;
        } else {
            self.store
                .cancel_run(run, by_operator("dropped by an operator"), now_ms)
                .await?;
        }
        Ok(true)
    }

    /// Stops a run for a program; `false` if it was at its end.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn stop_run(&self, id: RunId, token: &str) -> Result<bool, OperationError> {
        let stopping = Stopping {
            cause: StopCause::Stopped,
            detail: format!("stopped by {token} through the API"),
        };
        crash::point("cancel.before-commit");
        let is_stopped = self.store.cancel_run(id, stopping, (self.clock)());
        let is_stopped = is_stopped.await?;
        crash::point("cancel.after-commit");
        if let Some(running) = &self.running {
            running.wake.cancels.ask(id);
        }
        Ok(is_stopped)
    }

    pub(super) async fn cancel_run(&self, id: &str) -> OperationResult {
        let id: RunId = id
            .parse()
            .map_err(|_| OperationError::Wrong(format!("{id:?} is no id of a run")))?;
        crash::point("cancel.before-commit");
        let is_cancelled = self
            .store
            .cancel_run(id, by_operator("cancelled by an operator"), (self.clock)())
            .await?;
        crash::point("cancel.after-commit");
        if let Some(running) = &self.running {
            running.wake.cancels.ask(id);
        }
        Ok(serde_json::Value::Bool(is_cancelled))
    }

    pub(super) async fn queue(&self) -> OperationResult {
        let now_ms = (self.clock)();
        let rests = self.store.model_rests().await?;
        let mut views = Vec::new();
        for queued in self.store.queued_runs(QUEUE_MAX, now_ms).await? {
            let (conversation, texts) = self.asked(&queued.run).await?;
            views.push(QueuedRunView {
                conversation,
                texts,
                person: queued.person.clone(),
                age_ms: now_ms - queued.run.created_at_ms,
                why: match self.waits_for_model(&queued, &rests, now_ms) {
                    Some(why) => why,
                    None => self.waits_for(&queued, now_ms),
                },
                run: RunShown::of(&queued.run),
            });
        }
        Ok(json(&views))
    }

    /// The model that a run waits for, if it waits for nothing else.
    fn waits_for_model(
        &self,
        queued: &QueuedRun,
        rests: &[ModelRest],
        now_ms: i64,
    ) -> Option<String> {
        let waits = &queued.waiting_for;
        if !matches!(waits, WaitingFor::Worker | WaitingFor::Attempt { .. }) {
            return None;
        }
        let spec = self.registry.get(&queued.run.agent)?;
        let asked = spec.chosen(queued.asked_model.as_deref());
        let model = asked.model_use.name.clone();
        let rest = rests.iter().find(|rest| rest.model == model)?;
        let state = if rest.is_held { "is held" } else { "rests" };
        let seconds = (rest.until_ms - now_ms).max(0) / 1_000;
        Some(format!(
            "its model {model}, which {state}: {}; one question tries it in {seconds} s",
            rest.reason
        ))
    }

    pub(super) fn waits_for(&self, queued: &QueuedRun, now_ms: i64) -> String {
        let seconds = |at_ms: i64| (at_ms - now_ms).max(0) / 1_000;
        match &queued.waiting_for {
            WaitingFor::Answer { lease_until_ms } if *lease_until_ms <= now_ms => {
                "its worker fell silent; it is taken over".to_owned()
            }
            WaitingFor::Answer { .. } => "its answer: it is at work".to_owned(),
            WaitingFor::Stop => "its worker to let go: it was asked to stop".to_owned(),
            WaitingFor::Earlier => "an earlier question of its conversation".to_owned(),
            WaitingFor::Attempt { at_ms, reason } => {
                format!("another attempt in {} s: {reason}", seconds(*at_ms))
            }
            WaitingFor::Time { at_ms } => {
                format!("more of its message, for {} s", seconds(*at_ms))
            }
            WaitingFor::Person {
                until_ms: Some(until_ms),
            } => format!(
                "a person to decide about a tool call, for {} s",
                seconds(*until_ms)
            ),
            WaitingFor::Person { until_ms: None } => {
                "a person to decide about a tool call".to_owned()
            }
            WaitingFor::Agents => "agents that it asked".to_owned(),
            WaitingFor::Channel { reason } => format!("its channel: {reason}"),
            WaitingFor::Worker if self.running.is_none() => "a daemon: none runs".to_owned(),
            WaitingFor::Worker if self.rooms.get(queued.account).is_none() => {
                "its channel to be connected".to_owned()
            }
            WaitingFor::Worker => "a free worker".to_owned(),
        }
    }

    /// The name of a run's conversation and what it is to answer, oldest first.
    pub(super) async fn asked(&self, run: &Run) -> Result<(String, Vec<String>), StoreError> {
        let conversation = self.store.conversation(run.conversation).await?;
        let mut texts = Vec::new();
        for trigger in &run.triggers {
            texts.push(self.store.turn(*trigger).await?.content);
        }
        let texts = self.store.named(conversation.account, texts).await?;
        Ok((self.conversation_view(&conversation).await?.name, texts))
    }

    pub(super) async fn run_views(&self, runs: &[Run]) -> Result<Vec<HeldRunView>, StoreError> {
        let mut views = Vec::new();
        for run in runs {
            let (conversation, texts) = self.asked(run).await?;
            views.push(HeldRunView {
                run: RunShown::of(run),
                conversation,
                text: texts.join("\n"),
            });
        }
        Ok(views)
    }

    pub(super) async fn dead(&self, id: Option<String>) -> OperationResult {
        let mut runs = self.store.dead_runs(HELD_MAX).await?;
        let mut posts = self.store.stuck_posts(HELD_MAX).await?;
        posts.retain(|post| matches!(post.state, OutboxState::Dead { .. }));
        if let Some(id) = &id {
            runs.retain(|run| run.id.to_string() == *id);
            posts.retain(|post| post.id.to_string() == *id);
            if runs.is_empty() && posts.is_empty() {
                return Err(not_dead(id));
            }
        }
        Ok(json(&DeadView {
            runs: self.run_views(&runs).await?,
            posts: posts.iter().map(PostView::of).collect(),
        }))
    }

    pub(super) async fn decide_dead(&self, id: &str, retry: bool) -> OperationResult {
        let run: RunId = id.parse().map_err(|_| not_dead(id))?;
        let now_ms = (self.clock)();
        let is_run = match self.store.revive_run(run, retry, now_ms).await {
            Ok(()) => true,
            Err(StoreError::NotFound { .. }) => false,
            Err(other) => return Err(other.into()),
        };
        if !is_run {
            let post = OutboxId(run.0);
            let posts = self.store.stuck_posts(HELD_MAX).await?;
            let is_dead = |stuck: &OutboxEntry| {
                stuck.id == post && matches!(stuck.state, OutboxState::Dead { .. })
            };
            if !posts.iter().any(is_dead) {
                return Err(not_dead(id));
            }
            self.store.release_post(post, retry, now_ms).await?;
        }
        if let Some(running) = &self.running {
            running.wake.runs.notify_one();
            running.wake.posts.notify_one();
        }
        Ok(json(&ReleasedView { is_run }))
    }
}

impl Operations {
    pub(super) async fn quarantine(&self) -> OperationResult {
        let rows = self.store.quarantined().await?.into_iter();
        let views: Vec<QuarantinedView> = rows
            .map(|it| QuarantinedView {
                id: format!("{}:{}", it.queue.name(), it.row),
                reason: it.reason,
                at_ms: it.at_ms,
            })
            .collect();
        Ok(json(&views))
    }

    pub(super) async fn decide_quarantined(&self, id: &str, again: bool) -> OperationResult {
        let unknown = || {
            OperationError::Wrong(format!(
                "no row {id} is set aside; `vocative quarantine list` shows those that are"
            ))
        };
        let named = id
            .split_once(':')
            .and_then(|(queue, row)| Some((Queue::from_name(queue)?, row.parse::<i64>().ok()?)));
        let (queue, row) = named.ok_or_else(unknown)?;
        let now_ms = (self.clock)();
        match self
            .store
            .release_quarantined(queue, row, again, now_ms)
            .await
        {
            Ok(()) => {}
            Err(StoreError::NotFound { .. }) => return Err(unknown()),
            Err(other) => return Err(other.into()),
        }
        if let Some(running) = &self.running {
            running.wake.runs.notify_one();
            running.wake.posts.notify_one();
            running.wake.jobs.notify_one();
        }
        Ok(serde_json::Value::Bool(true))
    }
}

fn not_dead(id: &str) -> OperationError {
    OperationError::Wrong(format!(
        "no question and no post {id} was given up; `vocative dead list` shows those that were"
    ))
}

fn by_operator(detail: &str) -> Stopping {
    Stopping {
        cause: StopCause::Operator,
        detail: detail.to_owned(),
    }
}
