//! The tools that a run's model may call on behalf of the askers.

use std::sync::Arc;

use futures_util::future::join_all;
use vocative_contract::envelope::Place;

use crate::agent::prompting::options_in;
use crate::agent::registry::AgentSpec;
use crate::agent::sent;
use crate::agent::step::ModelStep;
use crate::agent::worker::AgentWorker;
use crate::agent::working::Working;
use crate::llm::ToolSpec;
use crate::tools::{
    ASK_HUMAN, ApprovalSettings, BoundTo, CONVERSATION_SEARCH, CallScope, KNOWLEDGE_SEARCH,
    MemoryDesk, PersonName, Planner, SetState, Tool as _, ToolLimits, ToolUse, Toolbox, names,
};
use vocative_core::options::{AssemblerOptions, MemoryMode, Profile, RecallMode};
use vocative_core::place::ChatName;
use vocative_core::run::ClaimedRun;
use vocative_core::skills::Skill;
use vocative_store::StoreError;
use vocative_store::contract::ReplyRoute;

impl Working<'_> {
    /// The tools that the model may call on behalf of the askers.
    pub(super) async fn toolbox(
        &self,
        spec: &AgentSpec,
        skills: Vec<Arc<Skill>>,
    ) -> Result<Toolbox, StoreError> {
        let people = self.worker.store.run_askers(self.claimed.run.id).await?;
        let conversation = self.claimed.run.conversation;
        let options = options_in(&self.worker.store.reader(), spec, conversation).await?;
        join_all(spec.tools.iter().map(ToolUse::known)).await;
        let toolbox = toolbox(
            self.worker,
            self.claimed,
            self.route,
            spec,
            &options,
            (people, skills),
        )
        .only(self.given.tools.as_deref());
        let desk = self.seat.map(|seat| &seat.desk);
        let desk = desk.filter(|desk| desk.may_write() && spec.settings().max_steps > 1);
        Ok(match desk {
            Some(desk) => {
                let tool = SetState(Arc::clone(desk));
                let approval = ApprovalSettings::default().with(&spec.agent.approval, tool.rule());
                toolbox.with(Arc::new(tool), ToolLimits::default(), approval)
            }
            None => toolbox,
        })
    }

    /// The tools that the model is told of: later requests of a run use those of its first.
    pub(super) async fn tools(
        &self,
        toolbox: &Toolbox,
        recorded: &[ModelStep],
    ) -> Result<Vec<ToolSpec>, StoreError> {
        if recorded.is_empty() || self.task.is_some() {
            return Ok(toolbox.specs());
        }
        let sent = sent::tools_sent(&self.worker.store, self.claimed.run.id).await?;
        Ok(sent.unwrap_or_else(|| toolbox.specs()))
    }
}

/// The agent's tools that may be called for the people who ask, bound to the run's conversation.
fn toolbox(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    route: &ReplyRoute,
    spec: &AgentSpec,
    options: &AssemblerOptions,
    (people, skills): (Vec<String>, Vec<Arc<Skill>>),
) -> Toolbox {
    let chat = ChatName {
        channel: route.channel.clone(),
        chat: route.target.chat.clone(),
    };
    let bound = BoundTo {
        knowledge: spec.knowledge_in(&chat),
        skills,
        store: worker.store.reader(),
        conversation: claimed.run.conversation,
        search_reach: spec.settings().search_reach,
        triggers: claimed.run.triggers.clone(),
        is_strict: options.profile == Profile::Toolpack,
        embeddings: worker.embeddings.clone(),
        delegates: spec.delegates.clone(),
        planner: Some(Planner {
            store: worker.store.clone(),
            zone: worker.rooms.zone(claimed.asker.account),
            agent: spec.name.clone(),
            clock: Arc::clone(&worker.clock),
        }),
        memory: (options.memory != MemoryMode::Off).then(|| memory_desk(worker, claimed, route)),
    };
    let person = |id| PersonName {
        channel: route.channel.clone(),
        id,
    };
    let people: Vec<PersonName> = people.into_iter().map(person).collect();
    // With a single step, that step must be the answer, so no tools are offered.
    let may_search = options.recall != RecallMode::Off;
    let offered = spec.tools.iter().filter(|_| spec.settings().max_steps > 1);
    let offered = offered.filter(|tool| may_search || tool.name() != CONVERSATION_SEARCH);
    // A question stays in the account in which it is asked.
    let has_experts = spec.agent.experts.contains_key(&route.channel);
    let offered = offered.filter(|tool| has_experts || tool.name() != ASK_HUMAN);
    let has_knowledge = !bound.knowledge.is_empty();
    let offered = offered.filter(|tool| has_knowledge || tool.name() != KNOWLEDGE_SEARCH);
    let there = spec.chat_tools.get(&chat);
    let is_there = |tool: &str| there.is_none_or(|all| all.iter().any(|it| names(it, tool)));
    let scope = CallScope {
        chat: format!("{}/{}", route.account, route.target.chat),
        agent: spec.name.to_string(),
    };
    let empty = Toolbox::new(Vec::new(), spec.settings().tool_timeout_s.0 * 1_000)
        .with_run_calls_max(spec.calls_per_run)
        .of(scope);
    let mut toolbox = empty;
    for tool in offered.filter(|tool| tool.is_for(&people)) {
        for open in tool.open(&bound) {
            if is_there(open.name()) && !toolbox.has(open.name()) {
                let approval = tool.approval.with(&spec.agent.approval, open.rule());
                toolbox = toolbox.with(open, tool.limits, approval);
            }
        }
    }
    toolbox
}

/// The access of the run's tools to memory.
fn memory_desk(worker: &AgentWorker, claimed: &ClaimedRun, route: &ReplyRoute) -> MemoryDesk {
    let (rooms, account) = (worker.rooms.clone(), route.account);
    let place = Place {
        chat: route.target.chat.clone(),
        kind: route.chat_kind,
        ..Place::default()
    };
    MemoryDesk {
        store: worker.memory.clone(),
        // Notes of a network's agent belong to the network: people ask the network what it remembers of them.
        agent: claimed.run.agent.clone(),
        run: claimed.run.id,
        token: claimed.token,
        conversation: claimed.run.conversation,
        room: route.target.chat.clone(),
        is_served: Arc::new(move |person| rooms.still_admits(account, &place, Some(person))),
        clock: Arc::clone(&worker.clock),
    }
}
