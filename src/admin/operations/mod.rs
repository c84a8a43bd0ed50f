//! The operations themselves, with or without a running daemon.

mod agents;
mod approvals;
mod console;
mod conversations;
mod costs;
mod erasure;
mod events;
mod imports;
mod jobs;
mod knowledge;
mod mcp;
mod memories;
mod pairing;
mod prompts;
mod questions;
mod runs;
mod schedules;
mod skills;
mod states;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocative_contract::channel::BoxFuture;

pub use self::approvals::{DecidedApproval, Operator};
pub use self::console::ConsoleDoor;
pub use self::memories::{ChangedMemory, MemoriesAsked};
pub use self::pairing::PairingOperation;
pub use self::questions::AnsweredQuestion;
pub use self::schedules::{AddedSchedule, ChangedSchedule};
pub use self::skills::SkillsOperation;
pub use self::states::{ChangedState, StateOf};
use crate::admin::health::Health;
use crate::admin::import::ImportBatchView;
use crate::admin::status::{StatusCounters, add_limits, status_view, timings};
use crate::admin::view::ModelRestView;
use crate::admin::view::{AliveView, CapacityView, CostsBy, SearchFilterView};
use crate::agent::models::Models;
use crate::agent::registry::Registry;
use crate::capture::clock::Clock;
use crate::capture::inbound::ChannelIntake;
use crate::capture::wake::Wake;
use crate::config::Config;
use crate::counters::{CounterReading, Counters};
use crate::delivery::rooms::Rooms;
use crate::embeddings::Embeddings;
use crate::files::given_up::GivenUpFiles;
use crate::files::held::VOICE_NOTES;
use crate::retention::aging::TimeDoubt;
use crate::skills::Shelf;
use crate::tools::mcp::McpServers;
use vocative_core::counted::counted;
use vocative_core::ids::{ConversationId, Seq};
use vocative_core::turn::Position;
use vocative_store::contract::{ConversationFilter, ExportQuery, PageQuery};
use vocative_store::{Store, StoreError};

/// What can be asked. On the socket it is one JSON object a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum AdminOperation {
    /// Whether the daemon serves at all; reads nothing.
    Alive,
    /// The daemon at a glance.
    Status,
    /// What uses the space, and what the disk can do. Reads the whole database.
    Capacity,
    /// A list of conversations.
    Conversations {
        /// Only of this channel.
        channel: Option<String>,
        /// The most that are listed.
        limit: usize,
        /// Whether archived ones are listed, too.
        #[serde(default)]
        all: bool,
        /// Only conversations after this place in the list: the cursor that the page before gave.
        #[serde(default)]
        before: Option<String>,
    },
    /// What happened in a run or a conversation.
    Events {
        /// The id of a run, or a conversation's id prefix or name.
        target: String,
        /// Only events after this one; absent = a snapshot.
        #[serde(default)]
        after: Option<i64>,
    },
    /// Gives a conversation a title.
    TitleConversation {
        /// Its id prefix or name.
        name: String,
        /// The title; absent = the conversation's own title is removed.
        title: Option<String>,
    },
    /// Archives a conversation, or takes it out of the archive.
    ArchiveConversation {
        /// Its id prefix or name.
        name: String,
        /// Whether it is archived; else it is taken out of the archive.
        archived: bool,
    },
    /// Figures of a conversation and its threads.
    ConversationStats {
        /// Its id prefix or name.
        name: String,
        /// From this time on, in milliseconds since the Unix epoch.
        since_ms: i64,
    },
    /// One conversation with its newest turns.
    Conversation {
        /// Its id prefix or name.
        name: String,
        /// The most turns that are read.
        limit: usize,
        /// Whether to show also what is not in the room (tool calls, deleted turns), and runs, posts
        /// and summaries in their places.
        #[serde(default)]
        timeline: bool,
        /// Only what stands before the turn with this seq.
        #[serde(default)]
        before: Option<i64>,
    },
    /// The next page of a whole conversation.
    Export {
        /// Its id prefix or name.
        name: String,
        /// The cursor that the page before gave; absent = the first page.
        #[serde(default)]
        after: Option<[i64; 3]>,
        /// The `as_of` that the first page gave.
        #[serde(default)]
        as_of: Option<i64>,
        /// Whether texts for people are wanted, too.
        #[serde(default)]
        shown: bool,
    },
    /// What was said in a conversation, by words.
    Search {
        /// The conversation's id prefix or name.
        name: String,
        /// What to look for.
        query: String,
        /// Other wordings of it.
        #[serde(default)]
        wordings: Vec<String>,
        /// Further conditions on the hits.
        #[serde(default)]
        filter: SearchFilterView,
        /// The most hits.
        limit: usize,
        /// Whether a thread's room and a room's threads are searched, too.
        #[serde(default)]
        threads: bool,
    },
    /// The prompt an agent would be sent.
    Prompt {
        /// The conversation's id prefix or name.
        name: String,
        /// The agent; the only one, if there is one.
        agent: Option<String>,
        /// Only turns up to this capture order.
        at: Option<i64>,
    },
    /// The prompt that a run's model was sent.
    SentPrompt {
        /// The run's id.
        run: String,
    },
    /// The summaries of a conversation.
    Summaries {
        /// The conversation's id prefix or name.
        name: String,
        /// Only of this agent.
        agent: Option<String>,
    },
    /// Sets the summaries of a conversation aside, so that they are made again.
    RebuildSummaries {
        /// The conversation's id prefix or name.
        name: String,
        /// Only of this agent.
        agent: Option<String>,
        /// Whether summaries of expired turns are removed, too, which can't be made again.
        #[serde(default)]
        forget_expired: bool,
    },
    /// What an erasure would remove; changes nothing.
    ErasePlan {
        /// A person or a conversation.
        target: EraseTarget,
    },
    /// Erases, and answers once the erasure is finished.
    Erase {
        /// A person or a conversation.
        target: EraseTarget,
        /// Whether the files are searched for what was erased.
        #[serde(default)]
        verify: bool,
    },
    /// Runs that are not at their end.
    Queue,
    /// Runs that were given up and posts that were refused for good.
    Dead {
        /// Only this one.
        id: Option<String>,
    },
    /// A decision about such a run or post.
    DecideDead {
        /// Its id.
        id: String,
        /// Whether it is tried again; else it is dropped.
        retry: bool,
    },
    /// What calls of models cost.
    Costs {
        /// What the costs are grouped by.
        by: CostsBy,
        /// From the UTC day of this time on, in milliseconds since the Unix epoch.
        since_ms: i64,
    },
    /// Collections of documents.
    Collections,
    /// The files of a collection.
    Documents {
        /// Its name.
        collection: String,
    },
    /// Searches the text of documents, by words.
    SearchKnowledge {
        /// What to look for, in several wordings.
        queries: Vec<String>,
        /// Only in this collection.
        #[serde(default)]
        collection: Option<String>,
        /// The most hits.
        limit: usize,
    },
    /// Reads all files of collections again.
    RefreshKnowledge {
        /// Only this one.
        #[serde(default)]
        collection: Option<String>,
    },
    /// What agents remember.
    Memories(MemoriesAsked),
    /// One entry of an agent's memory.
    Memory {
        /// Its number.
        id: i64,
    },
    /// Removes or changes an entry of an agent's memory.
    ChangeMemory {
        /// Its number.
        id: i64,
        /// The change.
        change: ChangedMemory,
    },
    /// The values that a network keeps in a conversation.
    NetworkState(StateOf),
    /// Changes some of these values.
    ChangeNetworkState {
        /// The conversation and the network.
        of: StateOf,
        /// The changes.
        change: ChangedState,
    },
    /// The schedules.
    Schedules {
        /// Whether schedules that have ended are listed, too.
        #[serde(default)]
        all: bool,
    },
    /// One schedule, with its newest firings.
    Schedule {
        /// Its number.
        id: i64,
    },
    /// Changes a schedule.
    ChangeSchedule {
        /// Its number.
        id: i64,
        /// What is changed.
        change: ChangedSchedule,
    },
    /// Makes a schedule.
    AddSchedule(AddedSchedule),
    /// Calls that wait for a person.
    Approvals {
        /// Whether those that were decided are listed, too.
        #[serde(default)]
        all: bool,
    },
    /// What became of such calls, by tool.
    ApprovalsReport {
        /// Only calls that people were asked about from this time on, in milliseconds since the Unix epoch.
        since_ms: i64,
    },
    /// One such call.
    Approval {
        /// Its id.
        id: String,
    },
    /// A decision about such a call.
    DecideApproval(DecidedApproval),
    /// Everything about one run.
    Run {
        /// Its id.
        id: String,
    },
    /// Questions that people are asked.
    Questions {
        /// Whether those that are over are listed, too.
        #[serde(default)]
        all: bool,
    },
    /// One such question.
    Question {
        /// Its id.
        id: String,
    },
    /// Answers such a question.
    AnswerQuestion(AnsweredQuestion),
    /// Takes such a question back.
    CancelQuestion {
        /// Its id.
        id: String,
    },
    /// Standing consents that hold.
    Grants,
    /// Takes a standing consent back.
    RevokeGrant {
        /// Its id.
        id: String,
        /// Who revokes it.
        by: String,
    },
    /// Background work.
    Jobs,
    /// A decision about a job.
    DecideJob {
        /// Its id.
        id: String,
        /// Whether it is run now; else it is removed.
        retry: bool,
    },
    /// What is asked or decided about skills.
    Skills(SkillsOperation),
    /// What is asked or decided about people who are let in by a code.
    Pairing(PairingOperation),
    /// What servers of tools offer.
    McpTools {
        /// Only of this server.
        server: Option<String>,
    },
    /// Approves tools of a server that are new or changed.
    ApproveMcpTools {
        /// The server.
        server: String,
        /// The server's name for the tool; absent = all that wait.
        tool: Option<String>,
        /// The digest of what is approved; refused if the server has changed the tool since.
        digest: Option<String>,
    },
    /// Rows of queues that can't be decoded.
    Quarantine,
    /// A decision about such a row.
    DecideQuarantined {
        /// Its id, from the list.
        id: String,
        /// Whether it is tried again; else it is dropped.
        again: bool,
    },
    /// Retries questions that were given up.
    RetryDead {
        /// Only of this agent.
        #[serde(default)]
        agent: Option<String>,
        /// Only those given up since then, in milliseconds since the Unix epoch.
        #[serde(default)]
        since_ms: Option<i64>,
    },
    /// The agents, and the state of their models.
    Agents,
    /// Lets a resting or held model be asked again.
    ReleaseAgent {
        /// The name of an agent or of its model.
        name: String,
    },
    /// Posts that wait for a person or were refused for good.
    Held,
    /// Runs that wait for a person: they were open in a backup that was restored.
    HeldRuns,
    /// A decision about such a post or run.
    Release {
        /// Its id.
        id: String,
        /// Whether it is sent (again); else it is dropped.
        send: bool,
    },
    /// Stops a run.
    CancelRun {
        /// Its id.
        id: String,
    },
    /// Reads agents and aliases again.
    Reload,
    /// A link that lets somebody into the console once.
    ConsoleLink {
        /// Their name in `console.people`.
        name: String,
    },
    /// What people looked at and did in the console.
    ConsoleAudit {
        /// Only rows older than the one with this number.
        #[serde(default)]
        before: Option<i64>,
        /// The most rows.
        limit: usize,
    },
    /// Into which account of a channel an import goes, and how far it is.
    ImportBegin {
        /// The configured channel.
        channel: String,
        /// What is imported, once that is known.
        fingerprint: Option<String>,
    },
    /// Imports a batch.
    Import {
        /// The configured channel.
        channel: String,
        /// The batch.
        batch: ImportBatchView,
    },
}

impl AdminOperation {
    /// Whether it changes anything.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(
            self,
            Self::Release { .. }
                | Self::CancelRun { .. }
                | Self::DecideDead { .. }
                | Self::DecideQuarantined { .. }
                | Self::DecideJob { .. }
                | Self::DecideApproval(_)
                | Self::ChangeMemory { .. }
                | Self::ChangeNetworkState { .. }
                | Self::ChangeSchedule { .. }
                | Self::AddSchedule(_)
                | Self::RefreshKnowledge { .. }
                | Self::RevokeGrant { .. }
                | Self::CancelQuestion { .. }
                | Self::AnswerQuestion(_)
                | Self::ApproveMcpTools { .. }
                | Self::Pairing(PairingOperation::Approve { .. } | PairingOperation::Revoke { .. })
                | Self::Skills(SkillsOperation::Approve { .. } | SkillsOperation::Revoke { .. })
                | Self::RetryDead { .. }
                | Self::ReleaseAgent { .. }
                | Self::Reload
                | Self::ConsoleLink { .. }
                | Self::RebuildSummaries { .. }
                | Self::Import { .. }
                | Self::TitleConversation { .. }
                | Self::ArchiveConversation { .. }
                | Self::Erase { .. }
        )
    }

    /// How long its answer may take: an erasure goes through the whole database, with live writes
    /// between its steps, and a measurement reads all of it.
    #[must_use]
    pub fn answer_wait(&self) -> Duration {
        match self {
            Self::Erase { .. } => Duration::from_secs(6 * 3_600),
            Self::Capacity => Duration::from_secs(3_600),
            // Health checks do not wait longer.
            Self::Alive => Duration::from_secs(5),
            _ => Duration::from_secs(60),
        }
    }
}

/// What is to be erased.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EraseTarget {
    /// Everything of a person: id, `@username` or name, with `CHANNEL/` before it where needed.
    Person(String),
    /// A conversation with its threads: id prefix or name.
    Conversation(String),
}

/// Why an operation failed, in words for its caller.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// What was asked for does not exist or the question is wrong.
    #[error("{0}")]
    Wrong(String),
    /// The thing to change does not exist.
    #[error("{0}")]
    Missing(String),
    /// It was decided or has ended before, or has changed since the caller saw it.
    #[error("{0}")]
    Over(String),
    /// The decision is for others to make.
    #[error("{0}")]
    NotTheirs(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the configuration again; `Ok` says what changed.
pub type Reload = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Says which configuration is in force.
pub type InForce = Arc<dyn Fn() -> Arc<Config> + Send + Sync>;

/// The intake of the API's own channel, once it is there.
pub type QuestionIntake = Arc<dyn Fn() -> Option<Arc<ChannelIntake>> + Send + Sync>;

/// What only a running daemon has.
#[derive(Clone)]
pub struct RunningDaemon {
    /// How the channels are doing.
    pub health: Health,
    /// Makes vectors of search queries, where an embedding server is configured.
    pub embeddings: Option<Arc<Embeddings>>,
    /// The models.
    pub models: Models,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// Files that were given up.
    pub given_up: Arc<GivenUpFiles>,
    /// Since when it runs.
    pub started_at_ms: i64,
    /// Why nothing is removed for its age, if the clock is in doubt.
    pub time_doubt: TimeDoubt,
    /// Whether the process is confined to its own folders, in words.
    pub landlock: String,
    /// Servers of tools.
    pub servers: McpServers,
    /// Wake hints.
    pub wake: Wake,
    /// Reads the configuration again.
    pub reload: Reload,
    /// The configuration in force.
    pub in_force: InForce,
    /// The way into the console, where it is enabled.
    pub console: Option<ConsoleDoor>,
    /// The intake for questions of programs; it gives `None` where no token may ask.
    pub questions: QuestionIntake,
}

/// Executes operations.
#[derive(Clone)]
pub struct Operations {
    /// The store.
    pub store: Store,
    /// The agents.
    pub registry: Registry,
    /// The skills of the operator.
    pub skills: Shelf,
    /// The rooms of all identified channels.
    pub rooms: Rooms,
    /// The time.
    pub clock: Clock,
    /// Set inside the daemon.
    pub running: Option<RunningDaemon>,
}

type OperationResult = Result<serde_json::Value, OperationError>;

/// The most approvals, grants and questions that are listed.
const LISTED_MAX: usize = 500;

fn queries(first: String, others: Vec<String>) -> Vec<String> {
    let mut queries = vec![first];
    queries.extend(others);
    queries
}

impl Operations {
    /// Executes one operation; the answer is its view as JSON.
    ///
    /// # Errors
    /// [`OperationError`], see there.
    #[allow(clippy::too_many_lines, reason = "an arm for each operation")]
    pub async fn execute(&self, operation: AdminOperation) -> OperationResult {
        match operation {
            AdminOperation::Alive => Ok(json(&self.alive())),
            AdminOperation::Status => self.status().await,
            AdminOperation::Capacity => self.capacity().await,
            AdminOperation::Conversations {
                channel,
                limit,
                all,
                before,
            } => self.listed(channel, limit, all, before.as_deref()).await,
            AdminOperation::Events { target, after } => {
                Ok(json(&self.events(&target, after).await?))
            }
            AdminOperation::TitleConversation { name, title } => self.set_title(&name, title).await,
            AdminOperation::ConversationStats { name, since_ms } => {
                self.conversation_stats(&name, since_ms).await
            }
            AdminOperation::ArchiveConversation { name, archived } => {
                self.set_archived(&name, archived).await
            }
            AdminOperation::Conversation {
                name,
                limit,
                timeline,
                before,
            } => {
                self.conversation(&name, page_query(limit, before, timeline))
                    .await
            }
            AdminOperation::Export {
                name,
                after,
                as_of,
                shown,
            } => self.export(&name, export_query(after, as_of), shown).await,
            AdminOperation::Search {
                name,
                query,
                wordings,
                filter,
                limit,
                threads,
            } => {
                self.search(
                    &name,
                    queries(query, wordings),
                    filter.filter(),
                    limit,
                    threads,
                )
                .await
            }
            AdminOperation::Prompt { name, agent, at } => self.prompt(&name, agent, at).await,
            AdminOperation::SentPrompt { run } => self.sent_prompt(&run).await,
            AdminOperation::Summaries { name, agent } => self.summaries(&name, agent).await,
            AdminOperation::RebuildSummaries {
                name,
                agent,
                forget_expired,
            } => self.rebuild_summaries(&name, agent, forget_expired).await,
            AdminOperation::ErasePlan { target } => self.erase_plan(target).await,
            AdminOperation::Erase { target, verify } => self.erase(target, verify).await,
            AdminOperation::Queue => self.queue().await,
            AdminOperation::Dead { id } => self.dead(id).await,
            AdminOperation::DecideDead { id, retry } => self.decide_dead(&id, retry).await,
            AdminOperation::Costs { by, since_ms } => self.costs(by, since_ms).await,
            AdminOperation::Collections => self.collections().await,
            AdminOperation::Documents { collection } => self.documents(&collection).await,
            AdminOperation::SearchKnowledge {
                queries,
                collection,
                limit,
            } => self.search_knowledge(queries, collection, limit).await,
            AdminOperation::RefreshKnowledge { collection } => {
                self.refresh_knowledge(collection).await
            }
            AdminOperation::Memories(asked) => self.listed_memories(asked).await,
            AdminOperation::Memory { id } => Ok(json(&self.memory(id).await?)),
            AdminOperation::ChangeMemory { id, change } => {
                Ok(json(&self.change_memory(id, change).await?))
            }
            AdminOperation::NetworkState(of) => Ok(json(&self.network_state(&of).await?)),
            AdminOperation::ChangeNetworkState { of, change } => {
                Ok(json(&self.change_network_state(&of, change).await?))
            }
            AdminOperation::Schedules { all } => self.schedules(all).await,
            AdminOperation::Schedule { id } => self.schedule(id).await,
            AdminOperation::ChangeSchedule { id, change } => self.change_schedule(id, change).await,
            AdminOperation::AddSchedule(added) => self.add_schedule(added).await,
            AdminOperation::Approvals { all } => {
                Ok(json(&self.approvals(approvals::listed(all)).await?))
            }
            AdminOperation::ApprovalsReport { since_ms } => {
                Ok(json(&self.approvals_report(since_ms).await?))
            }
            AdminOperation::Approval { id } => Ok(json(&self.approval(&id).await?)),
            AdminOperation::DecideApproval(decided) => {
                let by = Operator::by_cli(&decided.by)?;
                Ok(json(&self.decide_approval(decided, &by).await?))
            }
            AdminOperation::Run { id } => self.run_story(&id).await,
            AdminOperation::Questions { all } => {
                let found = self.questions(!all, None, LISTED_MAX).await?;
                Ok(json(&found))
            }
            AdminOperation::Question { id } => Ok(json(&self.question(&id).await?)),
            AdminOperation::AnswerQuestion(answered) => {
                let by = Operator::by_cli(&answered.by)?;
                Ok(json(&self.answer_question(answered, &by).await?))
            }
            AdminOperation::CancelQuestion { id } => Ok(json(&self.cancel_question(&id).await?)),
            AdminOperation::Grants => Ok(json(&self.grants().await?)),
            AdminOperation::RevokeGrant { id, by } => {
                let by = Operator::by_cli(&by)?;
                self.revoke_grant(&id, &by)
                    .await
                    .map(serde_json::Value::Bool)
            }
            AdminOperation::Jobs => self.jobs().await,
            AdminOperation::DecideJob { id, retry } => self.decide_job(&id, retry).await,
            AdminOperation::Pairing(operation) => self.pairing_operation(operation).await,
            AdminOperation::Skills(operation) => self.skills_operation(operation).await,
            AdminOperation::McpTools { server } => self.mcp_tools(server.as_deref()).await,
            AdminOperation::ApproveMcpTools {
                server,
                tool,
                digest,
            } => {
                self.approve_mcp_tools(&server, tool.as_deref(), digest.as_deref())
                    .await
            }
            AdminOperation::Quarantine => self.quarantine().await,
            AdminOperation::DecideQuarantined { id, again } => {
                self.decide_quarantined(&id, again).await
            }
            AdminOperation::RetryDead { agent, since_ms } => self.retry_dead(agent, since_ms).await,
            AdminOperation::Agents => self.agents().await,
            AdminOperation::ReleaseAgent { name } => self.release_agent(&name).await,
            AdminOperation::Held => self.held().await,
            AdminOperation::HeldRuns => self.held_runs().await,
            AdminOperation::Release { id, send } => self.release(&id, send).await,
            AdminOperation::CancelRun { id } => self.cancel_run(&id).await,
            AdminOperation::Reload => self.reload().await,
            AdminOperation::ConsoleLink { name } => self.console_link(&name),
            AdminOperation::ConsoleAudit { before, limit } => {
                self.console_audit(before, limit).await
            }
            AdminOperation::ImportBegin {
                channel,
                fingerprint,
            } => self.import_begin(&channel, fingerprint.as_deref()).await,
            AdminOperation::Import { channel, batch } => self.import(&channel, batch).await,
        }
    }

    async fn listed(
        &self,
        channel: Option<String>,
        limit: usize,
        with_archived: bool,
        before: Option<&str>,
    ) -> OperationResult {
        let filter = ConversationFilter {
            channel,
            limit,
            with_archived,
            before: before.map(place_in_list).transpose()?,
            chats_of: None,
        };
        self.conversations(filter).await
    }

    /// What was counted since the start; nothing without a daemon.
    #[must_use]
    pub fn counted(&self) -> Vec<CounterReading> {
        let running = self.running.as_ref();
        running.map_or_else(Vec::new, |it| it.counters.readings())
    }

    /// Reads nothing from the store, so a full disk or a busy store makes no difference.
    fn alive(&self) -> AliveView {
        AliveView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at_ms: self.running.as_ref().map(|running| running.started_at_ms),
        }
    }

    async fn status(&self) -> OperationResult {
        let status = self.store.status((self.clock)()).await?;
        let mut view = match &self.running {
            Some(running) => {
                let readings = running.health.readings();
                let mut view = status_view(
                    &status,
                    &readings,
                    Some(StatusCounters {
                        counters: &running.counters,
                        given_up: &running.given_up,
                    }),
                    Some(running.started_at_ms),
                );
                let listeners = running.health.listeners().into_iter();
                view.listeners = listeners.map(Into::into).collect();
                view.landlock = Some(running.landlock.clone());
                view.timings = timings();
                add_limits(&mut view, &(running.in_force)());
                view.mcp = running.servers.health().iter().map(Into::into).collect();
                let doubt = running.time_doubt.get();
                view.needs_person.extend(doubt.map(|why| {
                    format!("the time is doubtful, and nothing is deleted for its age: {why}")
                }));
                view
            }
            None => status_view(&status, &[], None, None),
        };
        self.add_skills(&mut view).await?;
        view.models = self.model_rests(&status);
        let held = view.models.iter().filter(|model| model.is_held());
        view.needs_person.extend(held.map(held_model));
        Ok(json(&view))
    }

    async fn capacity(&self) -> OperationResult {
        let capacity = self.store.capacity((self.clock)()).await?;
        Ok(json(&CapacityView::from(&capacity)))
    }

    async fn reload(&self) -> OperationResult {
        let Some(running) = &self.running else {
            return Err(OperationError::Wrong(
                "there is no running daemon to reload".to_owned(),
            ));
        };
        (running.reload)()
            .await
            .map(serde_json::Value::String)
            .map_err(OperationError::Wrong)
    }
}

/// A message to the operator about a model whose account is refused.
fn held_model(model: &ModelRestView) -> String {
    if model.model == VOICE_NOTES {
        return format!(
            "the transcription server refuses every voice note: {}. One tries again now and then; \
             `vocative agents release {VOICE_NOTES}` has one try at once",
            model.reason
        );
    }
    let agents = model.agents.join(", ");
    format!(
        "model {} (of {agents}) refuses every question: {}; {} waiting. One tries again now and then; \
         `vocative agents release {}` has one try at once",
        model.model,
        model.reason,
        counted(model.queued, "question is", "questions are"),
        model.model
    )
}

/// A place in the list of conversations, as [`ConversationView::place`] tells it.
pub(crate) fn place_in_list(text: &str) -> Result<(i64, ConversationId), OperationError> {
    let place = text.split_once('.').and_then(|(at_ms, id)| {
        let id = id.parse().ok()?;
        Some((at_ms.parse().ok()?, id))
    });
    place.ok_or_else(|| {
        OperationError::Wrong(format!("{text:?} is no place in the list of conversations"))
    })
}

fn page_query(limit: usize, before: Option<i64>, is_timeline: bool) -> PageQuery {
    PageQuery {
        limit,
        before: before.map(Seq),
        is_timeline,
    }
}

fn export_query(after: Option<[i64; 3]>, as_of: Option<i64>) -> ExportQuery {
    ExportQuery {
        after: after.map(position),
        as_of: as_of.map(Seq),
    }
}

/// A position as it stands in a request.
fn position([sent_at_ms, ordinal, seq]: [i64; 3]) -> Position {
    Position {
        sent_at_ms,
        ordinal,
        seq: Seq(seq),
    }
}

fn json(view: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(view).expect("views are plain data with string keys")
}
