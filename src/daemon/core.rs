//! The workers and channels of a daemon, without anything that faces its host. Started and stopped in order. The
//! simulation runs it unchanged, with a ground of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};
use vocative_contract::channel::Channel;
use vocative_contract::crash;

use crate::admin::health::Health;
use crate::agent::desk::InquiryDesk;
use crate::agent::registry::AgentSpec;
use crate::agent::scheduler::Scheduler;
use crate::agent::worker::AgentWorker;
use crate::config::Config;
use crate::daemon::binding::bind_with;
use crate::daemon::loops::Loops;
use crate::daemon::shared::Shared;
use crate::daemon::supervise::supervise;
use crate::daemon::time::Timekeeper;
use crate::daemon::wiring;
use crate::delivery::worker::DeliveryWorker;
use crate::embeddings::Embeddings;
use crate::files::fetching::Fetcher;
use crate::files::given_up::GivenUpFiles;
use crate::files::space::ContentRoom;
use crate::files::speech::Transcriber;
use crate::jobs::handlers::{Handlers, WalkedAt};
use crate::jobs::worker::JobWorker;
use crate::knowledge::KnowledgeKeeper;
use crate::learning::Learner;
use crate::retention::expiring::Retention;
use crate::summary::summarizer::Summarizer;
use crate::summary::titling::Titler;
use crate::tools::mcp::McpServers;
use vocative_core::ids::OwnerId;
use vocative_store::NewId as _;
use vocative_store::Store;

/// A channel's adapter under its configured name.
pub type NamedChannel = (String, Arc<dyn Channel>);

/// What a daemon needs besides its configuration and its platforms. A simulation has its own.
pub struct Ground {
    /// The store.
    pub store: Store,
    /// The time.
    pub time: Timekeeper,
    /// The agents with their models.
    pub agents: Vec<AgentSpec>,
    /// Transcribes voice notes, if configured.
    pub transcriber: Option<Transcriber>,
    /// Makes vectors of messages, if configured.
    pub embeddings: Option<Arc<Embeddings>>,
    /// The tool servers.
    pub servers: McpServers,
}

/// The workers and channels of a daemon, without anything that faces its host.
pub struct Core {
    pub(super) shared: Arc<Shared>,
    pub(super) given_up: Arc<GivenUpFiles>,
    pub(super) loops: Loops,
    /// Stops intake and the claiming of runs.
    stop: CancellationToken,
    /// Ends delivery once nothing is due; after the runs, whose answers it still posts.
    stop_posts: CancellationToken,
    /// Ends draining.
    drain_until: CancellationToken,
    channels: Vec<JoinHandle<()>>,
    agents: JoinHandle<()>,
    delivery: JoinHandle<()>,
    jobs: JoinHandle<()>,
    schedules: JoinHandle<()>,
    knowledge: JoinHandle<()>,
    drain_deadline: Duration,
}

impl Core {
    /// Starts the workers. Nothing is heard before [`Self::listen`].
    #[must_use]
    pub fn start(config: &Config, ground: Ground) -> Self {
        let shared = Arc::new(Shared::new(
            config,
            ground.store,
            ground.time,
            ground.servers,
        ));
        shared.registry.replace(ground.agents);
        let (stop, stop_posts) = (CancellationToken::new(), CancellationToken::new());
        let drain_until = CancellationToken::new();
        let owner = OwnerId::generate();
        let loops = Loops::default();
        let given_up = Arc::new(GivenUpFiles::new(Arc::clone(&shared.counters)));
        let room = content_room(&shared, config);
        let agents = tokio::spawn(
            loops.clone().keep(
                "answers",
                stop.clone(),
                agent_worker(&shared, config, ground.embeddings.clone(), &room, owner)
                    .run(stop.clone(), drain_until.clone()),
            ),
        );
        let delivery = tokio::spawn(loops.clone().keep(
            "posts",
            stop.clone(),
            delivery_worker(&shared, owner).run(stop_posts.clone(), drain_until.clone()),
        ));
        let jobs = job_worker(
            &shared,
            config,
            ground.transcriber,
            ground.embeddings,
            (room, Arc::clone(&given_up)),
            owner,
        );
        let jobs = jobs.run(stop.clone());
        let jobs = tokio::spawn(loops.clone().keep("jobs", stop.clone(), jobs));
        let schedules = scheduler(&shared, config).run(stop.clone());
        let schedules = tokio::spawn(loops.clone().keep("schedules", stop.clone(), schedules));
        let knowledge = knowledge_keeper(&shared, config).run(stop.clone());
        let knowledge = tokio::spawn(loops.clone().keep("documents", stop.clone(), knowledge));
        Self {
            shared,
            given_up,
            loops,
            stop,
            stop_posts,
            drain_until,
            channels: Vec::new(),
            agents,
            delivery,
            jobs,
            schedules,
            knowledge,
            drain_deadline: Duration::from_millis(config.daemon.drain_deadline_ms),
        }
    }

    /// Starts channels, each under its configured name.
    pub fn listen(&mut self, channels: Vec<NamedChannel>, health: &Health) {
        for (name, channel) in channels {
            if let Some(platform) = channel.clock() {
                self.shared.time.listen_to(&name, platform);
            }
            let bind = bind_with(Arc::clone(&self.shared), Arc::clone(&channel), name.clone());
            let health = health.of(&name);
            let loop_name = format!("channel {name}");
            let supervised = supervise(name, channel, bind, health, self.stop.clone());
            let kept = self
                .loops
                .clone()
                .keep(loop_name, self.stop.clone(), supervised);
            self.channels.push(tokio::spawn(kept));
        }
    }

    /// Stops in order: intake first, then claimed runs end or are given back, then the outbox
    /// drains; all within the deadline. Nothing committed is lost whatever happens.
    pub async fn stop(self) {
        crash::point("shutdown.begun");
        self.stop.cancel();
        let deadline = self.drain_until.clone();
        let limit = self.drain_deadline;
        let timer = tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            deadline.cancel();
        });
        let channels = futures_util::future::join_all(self.channels);
        if tokio::time::timeout(limit, channels).await.is_err() {
            warn!("a channel did not stop in time; what it held is sent again by the platform");
        }
        crash::point("shutdown.intake-stopped");
        if let Err(cause) = self.agents.await {
            error!(error = %cause, "the agent worker ended badly");
        }
        crash::point("shutdown.runs-ended");
        self.stop_posts.cancel();
        if let Err(cause) = self.delivery.await {
            error!(error = %cause, "the delivery worker ended badly");
        }
        if let Err(cause) = self.jobs.await {
            error!(error = %cause, "the job worker ended badly");
        }
        if let Err(cause) = self.schedules.await {
            error!(error = %cause, "the scheduler ended badly");
        }
        if let Err(cause) = self.knowledge.await {
            error!(error = %cause, "the keeper of documents ended badly");
        }
        crash::point("shutdown.posts-drained");
        timer.abort();
    }
}

fn agent_worker(
    shared: &Arc<Shared>,
    config: &Config,
    embeddings: Option<Arc<Embeddings>>,
    room: &Arc<ContentRoom>,
    owner: OwnerId,
) -> AgentWorker {
    let names = shared.names.clone();
    AgentWorker {
        store: shared.store.only(),
        memory: shared.store.only(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        models: shared.models.clone(),
        embeddings,
        skills: shared.skills.clone(),
        room: config.files.fetch.then(|| Arc::clone(room)),
        owner,
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
        learn_names: Arc::new(move |account| {
            let names = names.clone();
            Box::pin(async move { names.learn(account).await })
        }),
        max_parallel_runs: config.daemon.max_parallel_runs,
    }
}

fn scheduler(shared: &Arc<Shared>, config: &Config) -> Scheduler {
    Scheduler {
        store: shared.store.only(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
        configured: config.schedules.clone(),
    }
}

fn knowledge_keeper(shared: &Arc<Shared>, config: &Config) -> KnowledgeKeeper {
    KnowledgeKeeper {
        store: shared.store.only(),
        collections: wiring::collections(config),
        clock: Arc::clone(&shared.clock),
    }
}

fn summarizer(shared: &Arc<Shared>) -> Summarizer {
    Summarizer {
        store: shared.store.only(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        models: shared.models.clone(),
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
        counters: Arc::clone(&shared.counters),
        looked: Mutex::default(),
    }
}

fn job_worker(
    shared: &Arc<Shared>,
    config: &Config,
    transcriber: Option<Transcriber>,
    embeddings: Option<Arc<Embeddings>>,
    room: (Arc<ContentRoom>, Arc<GivenUpFiles>),
    owner: OwnerId,
) -> JobWorker<Handlers> {
    let rooms = shared.rooms.clone();
    JobWorker {
        store: shared.store.only(),
        connected: Arc::new(move || rooms.accounts()),
        handlers: Handlers {
            walked: WalkedAt::default(),
            store: shared.store.only(),
            desk: desk(shared),
            files: fetcher(shared, config, transcriber, room),
            embeddings,
            learner: learner(shared),
            summarizer: summarizer(shared),
            titler: titler(shared),
            keepers: shared.keepers.clone(),
            retention: retention(shared, config),
            registry: shared.registry.clone(),
            clock: Arc::clone(&shared.clock),
        },
        owner,
        wake: Arc::clone(&shared.wake.jobs),
        clock: Arc::clone(&shared.clock),
    }
}

fn retention(shared: &Arc<Shared>, config: &Config) -> Retention {
    let (in_force, time) = (Arc::clone(shared), shared.time.clone());
    Retention {
        store: shared.store.only(),
        config: Arc::new(move || in_force.config()),
        agreement: Arc::new(move || time.agreement()),
        time_doubt: shared.time_doubt.clone(),
        clock: Arc::clone(&shared.clock),
        raw_kept_ms: i64::from(config.store.debug_raw_hours) * 3_600_000,
        looks: Mutex::default(),
    }
}

fn learner(shared: &Arc<Shared>) -> Learner {
    Learner {
        store: shared.store.only(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        models: shared.models.clone(),
        clock: Arc::clone(&shared.clock),
        counters: Arc::clone(&shared.counters),
        looked: Mutex::default(),
    }
}

fn titler(shared: &Arc<Shared>) -> Titler {
    Titler {
        store: shared.store.only(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        models: shared.models.clone(),
        clock: Arc::clone(&shared.clock),
        looked: Mutex::default(),
    }
}

fn desk(shared: &Arc<Shared>) -> InquiryDesk {
    InquiryDesk {
        store: shared.store.only(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        posts: Arc::clone(&shared.wake.posts),
        clock: Arc::clone(&shared.clock),
    }
}

/// The disk space for the contents of files.
fn content_room(shared: &Arc<Shared>, config: &Config) -> Arc<ContentRoom> {
    Arc::new(ContentRoom::new(
        shared.store.only(),
        wiring::files_policy(config).total_bytes_max,
        Arc::clone(&shared.counters),
        Arc::clone(&shared.clock),
    ))
}

fn fetcher(
    shared: &Arc<Shared>,
    config: &Config,
    transcriber: Option<Transcriber>,
    (room, given_up): (Arc<ContentRoom>, Arc<GivenUpFiles>),
) -> Fetcher {
    Fetcher {
        store: shared.store.only(),
        rooms: shared.rooms.clone(),
        policy: wiring::files_policy(config),
        transcriber,
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
        counters: Arc::clone(&shared.counters),
        given_up,
        room,
    }
}

fn delivery_worker(shared: &Arc<Shared>, owner: OwnerId) -> DeliveryWorker {
    DeliveryWorker {
        store: shared.store.only(),
        rooms: shared.rooms.clone(),
        posters: shared.posters.clone(),
        owner,
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
    }
}
