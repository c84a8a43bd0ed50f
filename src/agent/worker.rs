//! What a worker on runs needs. Runs are claimed in `claiming`.

use std::sync::Arc;

use vocative_contract::channel::BoxFuture;

use crate::agent::models::Models;
use crate::agent::registry::{AgentSpec, Registry};
use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::delivery::rooms::Rooms;
use crate::embeddings::Embeddings;
use crate::files::space::ContentRoom;
use crate::skills::Shelf;
use vocative_core::ids::{AccountId, OwnerId};
use vocative_core::run::ClaimedRun;
use vocative_store::{Remembering, Replying, Store};

/// Looks up the names that an account's newest turns lack. Bounded by the caller.
pub type LearnNames = Arc<dyn Fn(AccountId) -> BoxFuture<'static, ()> + Send + Sync>;

/// The agent worker.
pub struct AgentWorker {
    /// The store with the runs.
    pub store: Store<Replying>,
    /// The store for what agents remember.
    pub memory: Store<Remembering>,
    /// Who can answer where.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// Their models.
    pub models: Models,
    /// Makes vectors of searched texts, if a server is configured.
    pub embeddings: Option<Arc<Embeddings>>,
    /// The skills of the operator.
    pub skills: Shelf,
    /// Disk space for the files that tools give; `None` = they are not kept.
    pub room: Option<Arc<ContentRoom>>,
    /// The id of this process.
    pub owner: OwnerId,
    /// Wake hints.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
    /// Looks up names before a prompt is made.
    pub learn_names: LearnNames,
    /// The most runs at once, over all conversations.
    pub max_parallel_runs: usize,
}

impl AgentWorker {
    /// The run's agent, with the model that its question asks for.
    pub(super) fn spec_of(&self, claimed: &ClaimedRun) -> Option<Arc<AgentSpec>> {
        let spec = self.registry.get(&claimed.run.agent)?;
        Some(spec.chosen(claimed.asked_model.as_deref()))
    }
}
