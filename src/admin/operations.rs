//! The operations themselves, with or without a running daemon.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocative_channels::channel::BoxFuture;
use vocative_channels::crash;
use vocative_channels::markup::one_line;

use crate::admin::explain::Explained;
use crate::admin::health::Health;
use crate::admin::import::{ImportBatchView, ImportBeginView, ImportCountsView};
use crate::admin::status::status_view;
use crate::admin::view::{
    ConversationDetailView, ConversationView, DeadView, ErasePlanView, EraseView,
    ExportMessageView, ExportPageView, HeldRunView, ParticipantsView, PostView, QueuedRunView,
    RebuildView, ReleasedView, RunView as RunShown, SearchView, SummariesView, SummaryView,
    TurnView, timeline,
};
use crate::agent::prompting::{PromptRequest, build_prompt};
use crate::agent::registry::{AgentSpec, Registry};
use crate::capture::import::import;
use crate::capture::inbound::{CaptureCounters, Counter, Wake};
use crate::delivery::rooms::Rooms;
use crate::delivery::worker::Clock;
use crate::domain::history::{History, Role};
use crate::domain::ids::{AgentName, ConversationId, ErasureId, OutboxId, RunId, Seq};
use crate::domain::outbox::{OutboxEntry, OutboxState};
use crate::domain::place::Conversation;
use crate::domain::run::{Run, RunState};
use crate::domain::search::SearchReach;
use crate::domain::turn::{ParticipantKind, Position, Turn};
use crate::files::counters::FileCounters;
use crate::prompt::lines::ThreadLine;
use crate::prompt::{ClassEstimate, RunView, content_count};
use crate::store::contract::{
    ConversationFilter, ExportQuery, ExportTurn, ImportAccount, PageQuery, QueuedRun, SearchOrder,
    SearchQuery, Speakers, TurnDetail, TurnFilter, WaitingFor,
};
use crate::store::erasure::{ErasureCounts, ErasurePlan, ErasureTarget};
use crate::store::{Store, StoreError};
use crate::summary::worker::SummaryCounters;

/// So many posts, and so many runs, that wait for a person are listed.
const HELD_MAX: usize = 200;

/// So many runs that wait for their answer are listed.
const QUEUE_MAX: usize = 500;

/// So many of those who speak in a conversation are named.
const SPEAKERS_SHOWN: usize = 10;

/// A hit's text is cut to so many characters around its match.
const SEARCH_TEXT_MAX_CHARS: usize = 300;

/// What can be asked. On the socket it is one JSON object a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operation {
    /// The daemon at a glance.
    Status,
    /// A list of conversations.
    Conversations {
        /// Only of this channel.
        channel: Option<String>,
        /// At most so many.
        limit: usize,
        /// Also those that were archived.
        #[serde(default)]
        all: bool,
        /// Only those after this place in the list; what the page before said comes next.
        #[serde(default)]
        before: Option<String>,
    },
    /// What happened in a run or a conversation.
    Events {
        /// The id of a run, or a conversation's id prefix or name.
        target: String,
        /// Only what came after this event; absent = how things stand.
        #[serde(default)]
        after: Option<i64>,
    },
    /// Gives a conversation a title.
    TitleConversation {
        /// Its id prefix or name.
        name: String,
        /// The title; absent = none of its own any more.
        title: Option<String>,
    },
    /// Puts a conversation away, or takes it back.
    ArchiveConversation {
        /// Its id prefix or name.
        name: String,
        /// Away, or back.
        archived: bool,
    },
    /// One conversation with its newest turns.
    Conversation {
        /// Its id prefix or name.
        name: String,
        /// At most so many turns.
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
        /// What the page before said comes next; absent = the first page.
        #[serde(default)]
        after: Option<[i64; 3]>,
        /// What the first page said it is as of.
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
        /// At most so many hits.
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
    },
    /// What erasing would take away; changes nothing.
    ErasePlan {
        /// A person or a conversation.
        target: EraseTarget,
    },
    /// Erases, to the end.
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

impl Operation {
    /// Whether it changes anything.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(
            self,
            Self::Release { .. }
                | Self::CancelRun { .. }
                | Self::DecideDead { .. }
                | Self::Reload
                | Self::RebuildSummaries { .. }
                | Self::Import { .. }
                | Self::TitleConversation { .. }
                | Self::ArchiveConversation { .. }
                | Self::Erase { .. }
        )
    }

    /// How long its answer may take: an erasure goes through the whole database, with live writes
    /// between its steps.
    #[must_use]
    pub fn answer_wait(&self) -> Duration {
        match self {
            Self::Erase { .. } => Duration::from_secs(6 * 3_600),
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
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the configuration again; `Ok` says what changed.
pub type Reload = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// What only a running daemon has.
#[derive(Clone)]
pub struct Running {
    /// How the channels are doing.
    pub health: Health,
    /// What came in.
    pub counters: Arc<CaptureCounters>,
    /// What became of summaries.
    pub summaries: Arc<SummaryCounters>,
    /// What became of files.
    pub files: Arc<FileCounters>,
    /// Since when it runs.
    pub started_at_ms: i64,
    /// Wake hints.
    pub wake: Wake,
    /// Reads the configuration again.
    pub reload: Reload,
}

/// Executes operations.
#[derive(Clone)]
pub struct Operations {
    /// The store.
    pub store: Store,
    /// The agents.
    pub registry: Registry,
    /// Who we are where.
    pub rooms: Rooms,
    /// The time.
    pub clock: Clock,
    /// Set inside the daemon.
    pub running: Option<Running>,
}

/// Turns looked at to find which agent a conversation concerns.
const CONCERNED_TURNS: usize = 50;

type Answer = Result<serde_json::Value, OperationError>;

impl Operations {
    /// Executes one operation; the answer is its view as JSON.
    ///
    /// # Errors
    /// [`OperationError`], see there.
    pub async fn execute(&self, operation: Operation) -> Answer {
        match operation {
            Operation::Status => self.status().await,
            Operation::Conversations {
                channel,
                limit,
                all,
                before,
            } => {
                let filter = ConversationFilter {
                    channel,
                    limit,
                    with_archived: all,
                    before: before.as_deref().map(place_in_list).transpose()?,
                };
                self.conversations(filter).await
            }
            Operation::Events { target, after } => Ok(json(&self.events(&target, after).await?)),
            Operation::TitleConversation { name, title } => self.set_title(&name, title).await,
            Operation::ArchiveConversation { name, archived } => {
                self.set_archived(&name, archived).await
            }
            Operation::Conversation {
                name,
                limit,
                timeline,
                before,
            } => {
                let query = PageQuery {
                    limit,
                    before: before.map(Seq),
                    is_timeline: timeline,
                };
                self.conversation(&name, query).await
            }
            Operation::Export {
                name,
                after,
                as_of,
                shown,
            } => {
                let query = ExportQuery {
                    after: after.map(position),
                    as_of: as_of.map(Seq),
                };
                self.export(&name, query, shown).await
            }
            Operation::Search {
                name,
                query,
                limit,
                threads,
            } => self.search(&name, query, limit, threads).await,
            Operation::Prompt { name, agent, at } => self.prompt(&name, agent, at).await,
            Operation::Summaries { name, agent } => self.summaries(&name, agent).await,
            Operation::RebuildSummaries { name, agent } => {
                self.rebuild_summaries(&name, agent).await
            }
            Operation::ErasePlan { target } => self.erase_plan(target).await,
            Operation::Erase { target, verify } => self.erase(target, verify).await,
            Operation::Queue => self.queue().await,
            Operation::Dead { id } => self.dead(id).await,
            Operation::DecideDead { id, retry } => self.decide_dead(&id, retry).await,
            Operation::Held => self.held().await,
            Operation::HeldRuns => self.held_runs().await,
            Operation::Release { id, send } => self.release(&id, send).await,
            Operation::CancelRun { id } => self.cancel_run(&id).await,
            Operation::Reload => self.reload().await,
            Operation::ImportBegin {
                channel,
                fingerprint,
            } => self.import_begin(&channel, fingerprint.as_deref()).await,
            Operation::Import { channel, batch } => self.import(&channel, batch).await,
        }
    }

    async fn status(&self) -> Answer {
        let status = self.store.status((self.clock)()).await?;
        let view = match &self.running {
            Some(running) => {
                let readings = running.health.readings();
                let mut view = status_view(
                    &status,
                    &readings,
                    Some((&*running.counters, &*running.summaries, &*running.files)),
                    Some(running.started_at_ms),
                );
                let listeners = running.health.listeners().into_iter();
                view.listeners = listeners.map(Into::into).collect();
                view
            }
            None => status_view(&status, &[], None, None),
        };
        Ok(json(&view))
    }

    async fn conversations(&self, filter: ConversationFilter) -> Answer {
        let found = self.store.conversations(filter).await?;
        let mut views = Vec::with_capacity(found.len());
        for conversation in &found {
            views.push(self.conversation_view(conversation).await?);
        }
        Ok(json(&views))
    }

    async fn conversation(&self, name: &str, query: PageQuery) -> Answer {
        let conversation = self.store.find_conversation(name).await?;
        let page = self.store.page(conversation.id, query).await?;
        let first = page.turns.first().map(|first| first.turn.seq().0);
        let turns = self.turn_views(&conversation, &page.turns).await?;
        let view = ConversationDetailView {
            conversation: self.conversation_view(&conversation).await?,
            participants: ParticipantsView::of(
                &self.store.speakers(conversation.id, SPEAKERS_SHOWN).await?,
            ),
            older_before: first.filter(|_| page.has_older),
            timeline: if query.is_timeline {
                timeline(&turns, &page)
            } else {
                Vec::new()
            },
            turns,
        };
        Ok(json(&view))
    }

    async fn export(&self, name: &str, query: ExportQuery, is_shown: bool) -> Answer {
        let conversation = self.store.find_conversation(name).await?;
        let is_first = query.after.is_none();
        let page = self.store.export_page(conversation.id, query).await?;
        let speakers = if is_first && is_shown {
            self.store.speakers(conversation.id, SPEAKERS_SHOWN).await?
        } else {
            Speakers::default()
        };
        let thread = conversation.parent.zip(conversation.root);
        let thread = thread.map(|(parent, root)| ThreadLine {
            conversation_id: parent.to_string(),
            root: root.to_string(),
        });
        let message = |exported: &ExportTurn| {
            let is_own = exported.turn.conversation == conversation.id;
            ExportMessageView::of(exported, thread.as_ref().filter(|_| is_own), is_shown)
        };
        Ok(json(&ExportPageView {
            messages: page.turns.iter().map(message).collect(),
            as_of: page.as_of.0,
            next: page
                .next
                .map(|next| [next.sent_at_ms, next.ordinal, next.seq.0]),
            participants: ParticipantsView::of(&speakers),
            conversation: self.conversation_view(&conversation).await?,
        }))
    }

    /// Turns as they are shown, mentions as names.
    async fn turn_views(
        &self,
        conversation: &Conversation,
        details: &[TurnDetail],
    ) -> Result<Vec<TurnView>, StoreError> {
        let texts = details.iter().map(|detail| detail.turn.content.clone());
        let texts = self
            .store
            .named(conversation.account, texts.collect())
            .await?;
        let shown = details.iter().zip(texts);
        Ok(shown
            .map(|(detail, text)| TurnView::of(detail, text))
            .collect())
    }

    async fn set_title(&self, name: &str, title: Option<String>) -> Answer {
        let conversation = self.store.find_conversation(name).await?;
        let title = match title {
            Some(title) => Some(one_line(&title).ok_or_else(|| {
                OperationError::Wrong("a title needs a word; --clear takes it away".to_owned())
            })?),
            None => None,
        };
        self.store.set_title(conversation.id, title).await?;
        Ok(json(&self.conversation_view(&conversation).await?))
    }

    async fn set_archived(&self, name: &str, is_archived: bool) -> Answer {
        let conversation = self.store.find_conversation(name).await?;
        let at_ms = is_archived.then(|| (self.clock)());
        self.store.set_archived(conversation.id, at_ms).await?;
        Ok(json(&self.conversation_view(&conversation).await?))
    }

    async fn search(&self, name: &str, query: String, limit: usize, threads: bool) -> Answer {
        let conversation = self.store.find_conversation(name).await?;
        let query = SearchQuery {
            conversation: conversation.id,
            reach: if threads {
                SearchReach::Threads
            } else {
                SearchReach::Conversation
            },
            text: query,
            limit,
            token_cap: usize::MAX,
            text_max_chars: SEARCH_TEXT_MAX_CHARS,
            exclude: Vec::new(),
            order: SearchOrder::Ranked,
        };
        let found = self.store.search(query).await?;
        let name = self.conversation_view(&conversation).await?.name;
        Ok(json(&SearchView::of(&found, name)))
    }

    async fn conversation_view(
        &self,
        conversation: &Conversation,
    ) -> Result<ConversationView, StoreError> {
        let overview = self.store.overview(conversation.id).await?;
        Ok(ConversationView::of(conversation, &overview))
    }

    async fn prompt(&self, name: &str, agent: Option<String>, at: Option<i64>) -> Answer {
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
        let request = PromptRequest {
            conversation: conversation.id,
            run: RunView {
                as_of_seq: at.map(Seq),
                ..RunView::default()
            },
            as_of_ms: (self.clock)(),
            ratio: spec.present_ratio(&self.store).await?,
        };
        let built = build_prompt(&self.store, &spec, identity.as_ref(), request)
            .await
            .map_err(|cause| OperationError::Wrong(cause.to_string()))?;
        if built.history.turns.is_empty() {
            let what = match at {
                Some(at) => format!("nothing up to seq {at} concerns {} here", spec.name),
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
        Ok(json(&explained.view()))
    }

    /// The newest turns up to a capture order, in the order of the room.
    async fn newest_turns(
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

    async fn agent_of_newest_run(
        &self,
        conversation: &Conversation,
    ) -> Result<Option<String>, StoreError> {
        let runs = self.store.runs(conversation.id, 1).await?;
        Ok(runs.first().map(|run| run.agent.to_string()))
    }

    fn agent(&self, name: Option<String>) -> Result<Arc<AgentSpec>, OperationError> {
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

    async fn summaries(&self, name: &str, agent: Option<String>) -> Answer {
        let conversation = self.store.find_conversation(name).await?;
        // Also of an agent that is no longer configured.
        let agent = agent.map(AgentName::trusted);
        let found = self.store.summaries(conversation.id, agent).await?;
        let view = SummariesView {
            conversation: self.conversation_view(&conversation).await?,
            summaries: found.iter().map(SummaryView::of).collect(),
        };
        Ok(json(&view))
    }

    async fn rebuild_summaries(&self, name: &str, agent: Option<String>) -> Answer {
        let conversation = self.store.find_conversation(name).await?;
        let agent = agent.map(AgentName::trusted);
        let set_aside = self
            .store
            .set_summaries_aside(conversation.id, agent)
            .await?;
        if let Some(running) = &self.running {
            running.wake.summaries.notify_one();
        }
        Ok(json(&RebuildView {
            set_aside,
            has_daemon: self.running.is_some(),
        }))
    }

    async fn plan_of(&self, target: EraseTarget) -> Result<ErasurePlan, OperationError> {
        let target = match target {
            EraseTarget::Person(name) => ErasureTarget::Person(name),
            EraseTarget::Conversation(name) => ErasureTarget::Conversation(name),
        };
        Ok(self.store.plan_erasure(target, (self.clock)()).await?)
    }

    async fn erase_plan(&self, target: EraseTarget) -> Answer {
        Ok(json(&ErasePlanView::of(&self.plan_of(target).await?)))
    }

    async fn erase(&self, target: EraseTarget, verify: bool) -> Answer {
        let plan = self.plan_of(target).await?;
        let ids: Vec<ErasureId> = plan.entries.iter().map(|entry| entry.id).collect();
        self.store.begin_erasure(plan.entries).await?;
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        // Goes on when the one who asked has gone away.
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

    async fn held(&self) -> Answer {
        let stuck = self.store.stuck_posts(HELD_MAX).await?;
        Ok(json(&stuck.iter().map(PostView::of).collect::<Vec<_>>()))
    }

    async fn held_runs(&self) -> Answer {
        let runs = self.store.held_runs(HELD_MAX).await?;
        Ok(json(&self.run_views(&runs).await?))
    }

    /// Ids of posts and runs are of one kind; a post is looked for first.
    async fn release(&self, id: &str, send: bool) -> Answer {
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

    async fn release_run(
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
                .cancel_run(run, "dropped by an operator", now_ms)
                .await?;
        }
        Ok(true)
    }

    async fn cancel_run(&self, id: &str) -> Answer {
        let id: RunId = id
            .parse()
            .map_err(|_| OperationError::Wrong(format!("{id:?} is no id of a run")))?;
        crash::point("cancel.before-commit");
        let is_cancelled = self
            .store
            .cancel_run(id, "cancelled by an operator", (self.clock)())
            .await?;
        crash::point("cancel.after-commit");
        if let Some(running) = &self.running {
            running.wake.cancels.ask(id);
        }
        Ok(serde_json::Value::Bool(is_cancelled))
    }

    async fn reload(&self) -> Answer {
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

/// What waits for an answer, and what was given up.
impl Operations {
    async fn queue(&self) -> Answer {
        let now_ms = (self.clock)();
        let mut views = Vec::new();
        for queued in self.store.queued_runs(QUEUE_MAX, now_ms).await? {
            let (conversation, texts) = self.asked(&queued.run).await?;
            views.push(QueuedRunView {
                conversation,
                texts,
                person: queued.person.clone(),
                age_ms: now_ms - queued.run.created_at_ms,
                why: self.waits_for(&queued, now_ms),
                run: RunShown::of(&queued.run),
            });
        }
        Ok(json(&views))
    }

    fn waits_for(&self, queued: &QueuedRun, now_ms: i64) -> String {
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
            WaitingFor::Channel { reason } => format!("its channel: {reason}"),
            WaitingFor::Worker if self.running.is_none() => "a daemon: none runs".to_owned(),
            WaitingFor::Worker if self.rooms.get(queued.account).is_none() => {
                "its channel to be connected".to_owned()
            }
            WaitingFor::Worker => "a free worker".to_owned(),
        }
    }

    /// The name of a run's conversation and what it is to answer, oldest first.
    async fn asked(&self, run: &Run) -> Result<(String, Vec<String>), StoreError> {
        let conversation = self.store.conversation(run.conversation).await?;
        let mut texts = Vec::new();
        for trigger in &run.triggers {
            texts.push(self.store.turn(*trigger).await?.content);
        }
        let texts = self.store.named(conversation.account, texts).await?;
        Ok((self.conversation_view(&conversation).await?.name, texts))
    }

    async fn run_views(&self, runs: &[Run]) -> Result<Vec<HeldRunView>, StoreError> {
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

    async fn dead(&self, id: Option<String>) -> Answer {
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

    async fn decide_dead(&self, id: &str, retry: bool) -> Answer {
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

fn not_dead(id: &str) -> OperationError {
    OperationError::Wrong(format!(
        "no question and no post {id} was given up; `vocative dead list` shows those that were"
    ))
}

/// Import.
impl Operations {
    async fn import_begin(&self, channel: &str, fingerprint: Option<&str>) -> Answer {
        let account = self.import_account(channel).await?;
        let things = match fingerprint {
            Some(fingerprint) => {
                let progress = self.store.import_progress(account.account, fingerprint);
                progress.await?
            }
            None => 0,
        };
        Ok(json(&ImportBeginView {
            platform: account.platform.name().to_owned(),
            account: account.platform_id,
            name: account.name,
            own_ids: account.own_ids,
            things,
        }))
    }

    async fn import(&self, channel: &str, batch: ImportBatchView) -> Answer {
        let account = self.import_account(channel).await?.account;
        let keeps_revisions = batch.keeps_revisions;
        let counter: Counter = Arc::new(|text| content_count(text, &ClassEstimate));
        let batch = batch.batch(account);
        let now_ms = (self.clock)();
        let counts = import(&self.store, batch, &counter, keeps_revisions, now_ms).await?;
        if let Some(running) = &self.running {
            running.wake.summaries.notify_one();
        }
        Ok(json(&ImportCountsView::of(&counts)))
    }

    async fn import_account(&self, channel: &str) -> Result<ImportAccount, OperationError> {
        let account = self.store.import_account(channel).await?;
        account.ok_or_else(|| {
            OperationError::Wrong(format!(
                "channel {channel} has not connected yet, so it is not known whose messages these are; let `vocative run` connect it once (`vocative status` shows it), then import"
            ))
        })
    }
}

/// A place in the list of conversations, as [`ConversationView::place`] tells it.
fn place_in_list(text: &str) -> Result<(i64, ConversationId), OperationError> {
    let place = text.split_once('.').and_then(|(at_ms, id)| {
        let id = id.parse().ok()?;
        Some((at_ms.parse().ok()?, id))
    });
    place.ok_or_else(|| {
        OperationError::Wrong(format!("{text:?} is no place in the list of conversations"))
    })
}

/// A position as it stands in a request.
fn position([sent_at_ms, ordinal, seq]: [i64; 3]) -> Position {
    Position {
        sent_at_ms,
        ordinal,
        seq: Seq(seq),
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
    let roots = history.turns.iter().filter(|read| read.role == Role::Root);
    let mut asked = roots.filter(|read| read.turn.addressed_to.contains(agent));
    asked
        .next()
        .filter(|_| is_own)
        .map(|read| read.turn.seq().0)
}

fn json(view: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(view).expect("views are plain data with string keys")
}
