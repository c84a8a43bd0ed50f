//! What an agent would be sent of a conversation, and the summaries in it.

use std::sync::Arc;

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::explain::Explained;
use crate::admin::view::{AsSentView, RebuildView, SummariesView, SummaryView};
use crate::agent::prompting::{PromptRequest, build_prompt};
use crate::agent::recall::{RecallFrom, Searching};
use crate::agent::registry::AgentSpec;
use crate::agent::remembered::MemoryFrom;
use crate::agent::sent::make_again;
use vocative_core::given::Given;
use vocative_core::history::{History, HistoryRole};
use vocative_core::ids::{AgentName, RunId, Seq};
use vocative_core::place::Conversation;
use vocative_core::prompting::RunView;
use vocative_core::turn::{ParticipantKind, Turn};
use vocative_store::StoreError;
use vocative_store::contract::TurnFilter;

/// Turns looked at to find which agent a conversation concerns.
const CONCERNED_TURNS: usize = 50;

impl Operations {
    pub(super) async fn prompt(
        &self,
        name: &str,
        agent: Option<String>,
        at: Option<i64>,
    ) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let newest = self.newest_turns(&conversation, at).await?;
        let agent = match agent.or_else(|| newest.iter().rev().find_map(concerned_by)) {
            Some(agent) => Some(agent),
            None => self.agent_of_newest_run(&conversation).await?,
        };
        let spec = self.agent(agent)?;
        let identity = match self.rooms.get(conversation.account) {
            Some(room) => Some(room.identity),
            None => self.store.identity(conversation.account).await?,
        };
        let made_by_ms = match at {
            Some(at) => self.store.captured_by(Seq(at)).await?,
            None => None,
        };
        let request = PromptRequest {
            given: Given::default(),
            network: None,
            task: None,
            conversation: conversation.id,
            run: RunView {
                as_of_seq: at.map(Seq),
                made_by_ms,
                ..RunView::default()
            },
            as_of_ms: made_by_ms.unwrap_or_else(|| (self.clock)()),
            ratio: spec.present_ratio(&self.store).await?,
            // A search by words only: showing a prompt asks no embedding server.
            memory: Some(MemoryFrom {
                rooms: Some(self.rooms.clone()),
                these: None,
            }),
            recall: RecallFrom::Search(Searching {
                rooms: self.rooms.clone(),
                embeddings: None,
            }),
        };
        let built = build_prompt(&self.store.only(), &spec, identity.as_ref(), request)
            .await
            .map_err(|cause| OperationError::Wrong(cause.to_string()))?;
        if built.history.turns.is_empty() {
            let what = match at {
                Some(at) => format!("nothing up to seq {at} concerns {} here", spec.name),
                None if built.history.began_afresh => format!(
                    "nothing was said to {} here since the fresh start (`new`)",
                    spec.name
                ),
                None => format!("nothing concerns {} here yet", spec.name),
            };
            return Err(OperationError::Wrong(what));
        }
        let summarized = match &built.history.summary {
            Some(summary) => self.store.summarized_turns(summary.id).await?,
            None => 0,
        };
        let explained = Explained {
            conversation: self.conversation_view(&conversation).await?.name,
            agent: &spec.name,
            built: &built,
            summarized,
            at,
            answered: answered_already(&newest, &spec.name)
                .or_else(|| answered_root(&newest, &built.history, &spec.name)),
            has_identity: identity.is_some(),
        };
        let mut view = explained.view();
        view.answered_run = self.run_that_answered(&newest, &spec.name).await?;
        Ok(json(&view))
    }

    /// The run of the agent's newest answer, if it has spoken last and its prompt is recorded.
    async fn run_that_answered(
        &self,
        newest: &[Turn],
        agent: &AgentName,
    ) -> Result<Option<String>, StoreError> {
        let last = newest.last().filter(|turn| {
            turn.participant.kind == ParticipantKind::Agent
                && turn.participant.platform_id == agent.as_str()
        });
        let Some(run) = last.and_then(|turn| turn.run) else {
            return Ok(None);
        };
        let recorded = self.store.recorded_prompt(run).await?;
        Ok(recorded.map(|recorded| recorded.run.to_string()))
    }

    pub(super) async fn sent_prompt(&self, run: &str) -> OperationResult {
        let id: RunId = run
            .parse()
            .map_err(|_| OperationError::Wrong(format!("{run:?} is no run's id")))?;
        let again = make_again(&self.store.only(), id).await;
        let again = again.map_err(|cause| OperationError::Wrong(cause.to_string()))?;
        let Some(again) = again else {
            return Err(OperationError::Wrong(format!(
                "of run {id} it is not recorded what its model was sent: there is no such run, it asked no model \
                 yet, or its details have passed their age (`retention_days.runs`)"
            )));
        };
        let summarized = match &again.built.history.summary {
            Some(summary) => self.store.summarized_turns(summary.id).await?,
            None => 0,
        };
        let conversation = again.built.history.conversation.clone();
        let explained = Explained {
            conversation: self.conversation_view(&conversation).await?.name,
            agent: &again.agent,
            built: &again.built,
            summarized,
            at: None,
            answered: None,
            has_identity: true,
        };
        let mut view = explained.view();
        // Turns that came after the prompt was sent are not missing from it.
        view.turns_not_read = 0;
        view.not_read_because.clear();
        view.as_sent = Some(AsSentView {
            run: id.to_string(),
            is_same: again.changes.is_empty(),
            changes: again.changes,
            model: again.model,
            tools: again.tools,
        });
        Ok(json(&view))
    }

    /// The newest turns up to a capture order, in the order of the room.
    pub(super) async fn newest_turns(
        &self,
        conversation: &Conversation,
        at: Option<i64>,
    ) -> Result<Vec<Turn>, StoreError> {
        let newest = TurnFilter {
            limit: Some(CONCERNED_TURNS),
            ..TurnFilter::default()
        };
        let mut turns = self.store.turns(conversation.id, newest).await?;
        turns.retain(|turn| at.is_none_or(|at| turn.seq().0 <= at));
        Ok(turns)
    }

    pub(super) async fn agent_of_newest_run(
        &self,
        conversation: &Conversation,
    ) -> Result<Option<String>, StoreError> {
        let runs = self.store.runs(conversation.id, 1).await?;
        Ok(runs.first().map(|run| run.agent.to_string()))
    }

    pub(super) fn agent(&self, name: Option<String>) -> Result<Arc<AgentSpec>, OperationError> {
        let names = self.registry.names();
        let known = || {
            names
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let wrong = |what: String| OperationError::Wrong(what);
        let name = match (name, names.as_slice()) {
            (Some(name), _) => AgentName::new(name).map_err(|name| {
                wrong(format!(
                    "{name:?} is no agent's name; there are: {}",
                    known()
                ))
            })?,
            (None, [only]) => only.clone(),
            (None, _) => {
                return Err(wrong(format!(
                    "say which agent with --agent; there are: {}",
                    known()
                )));
            }
        };
        self.registry
            .get(&name)
            .ok_or_else(|| wrong(format!("there is no agent {name}; there are: {}", known())))
    }

    pub(super) async fn summaries(&self, name: &str, agent: Option<String>) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        // The agent may no longer be configured.
        let agent = agent.map(AgentName::trusted);
        let found = self.store.summaries(conversation.id, agent).await?;
        let view = SummariesView {
            conversation: self.conversation_view(&conversation).await?,
            summaries: found.iter().map(SummaryView::of).collect(),
        };
        Ok(json(&view))
    }

    pub(super) async fn rebuild_summaries(
        &self,
        name: &str,
        agent: Option<String>,
        forget_expired: bool,
    ) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let agent = agent.map(AgentName::trusted);
        let done = self
            .store
            .set_summaries_aside(conversation.id, agent, forget_expired)
            .await?;
        if let Some(running) = &self.running {
            running.wake.summaries.notify_one();
        }
        Ok(json(&RebuildView {
            set_aside: done.set_aside,
            stay: done.stay,
            has_daemon: self.running.is_some(),
        }))
    }
}

/// The agent that a turn addresses or that wrote it.
fn concerned_by(turn: &Turn) -> Option<String> {
    let is_agent = turn.participant.kind == ParticipantKind::Agent;
    let author = is_agent.then(|| turn.participant.platform_id.clone());
    turn.addressed_to
        .first()
        .map(ToString::to_string)
        .or(author)
}

/// The newest message to an agent, if the agent has spoken since.
fn answered_already(newest: &[Turn], agent: &AgentName) -> Option<i64> {
    let is_own = |turn: &&Turn| {
        turn.participant.kind == ParticipantKind::Agent
            && turn.participant.platform_id == agent.as_str()
    };
    let concerns = |turn: &&Turn| is_own(turn) || turn.addressed_to.contains(agent);
    let mut concerning = newest.iter().rev().filter(concerns);
    concerning.next().filter(is_own)?;
    concerning
        .find(|turn| !is_own(turn))
        .map(|turn| turn.seq().0)
}

/// A thread's first message, if it is to the agent and the agent has spoken last in the thread.
fn answered_root(newest: &[Turn], history: &History, agent: &AgentName) -> Option<i64> {
    let last = newest.last()?;
    let is_own = last.participant.kind == ParticipantKind::Agent
        && last.participant.platform_id == agent.as_str();
    let roots = history
        .turns
        .iter()
        .filter(|read| read.role == HistoryRole::Root);
    let mut asked = roots.filter(|read| read.turn.addressed_to.contains(agent));
    asked
        .next()
        .filter(|_| is_own)
        .map(|read| read.turn.seq().0)
}
