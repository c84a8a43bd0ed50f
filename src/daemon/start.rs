//! Everything together: opens the store, starts the workers and channels, and stops them in order.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use vocative_channels::backoff::Backoff;
use vocative_channels::channel::{Announced, Channel, Intake};
use vocative_channels::crash;
use vocative_channels::identity::{Identity, Platform};
use vocative_channels::webhook::Receiver;

use crate::admin::health::Health;
use crate::admin::operations::{Operations, Reload, Running};
use crate::admin::socket;
use crate::agent::desk::Desk;
use crate::agent::registry::{AgentSpec, Registry};
use crate::agent::worker::Worker as AgentWorker;
use crate::capture::inbound::{CaptureCounters, ChannelIntake, Counter, Keeping, Wake};
use crate::catchup::keeper::Keeper;
use crate::config::{self, ApiAddress, Config, Secrets};
use crate::daemon::names::Names;
use crate::daemon::supervise::{Bind, BindError, Bound, Lift, supervise};
use crate::daemon::surface::Surface;
use crate::daemon::system::{self, Pulse};
use crate::daemon::wiring::{self, WiringError};
use crate::delivery::rooms::{Room, Rooms};
use crate::delivery::worker::{Clock, Worker as DeliveryWorker};
use crate::domain::ids::{AccountId, OwnerId};
use crate::files::counters::FileCounters;
use crate::files::space::Space;
use crate::files::speech::Transcriber;
use crate::files::worker::Worker as FilesWorker;
use crate::http::{self, api, webhooks};
use crate::prompt::{ClassEstimate, content_count};
use crate::store::contract::AccountBinding;
use crate::store::{Store, StoreError, StoreOptions};
use crate::summary::worker::{SummaryCounters, Worker as SummaryWorker};

/// The database's name in the data directory.
pub const DATABASE_NAME: &str = "vocative.db";

/// How often old triggers are reported and raw envelopes expired.
const HOUSEKEEPING: Duration = Duration::from_secs(30);
/// The same for the first time: what expired while no daemon ran goes soon, but not before it hears.
const FIRST_HOUSEKEEPING: Duration = Duration::from_secs(2);

/// Why the daemon could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store.
    #[error("the store can't be opened")]
    Store(#[from] StoreError),
    /// The configuration can't be put to work.
    #[error("the configuration can't be put to work")]
    Wiring(#[from] WiringError),
    /// The HTTP listener.
    #[error("health and metrics can't be served at {address}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The API.
    #[error("the API can't be served at {address}")]
    ListenApi {
        /// The configured address.
        address: ApiAddress,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The listener that platforms call.
    #[error("webhooks can't be served at {address} ([webhooks] listen)")]
    Webhooks {
        /// The configured address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A directory or socket.
    #[error("{what} {path}", path = path.display())]
    Path {
        /// What can't be done.
        what: &'static str,
        /// With which path.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
}

/// Reads the configuration again; errors in words.
pub type ReadConfig = Arc<dyn Fn() -> Result<(Config, Secrets), String> + Send + Sync>;

/// A channel's adapter under its configured name.
pub type NamedChannel = (String, Arc<dyn Channel>);

/// What a daemon stands on, besides its configuration and its platforms. A simulation has its own.
pub struct Ground {
    /// Where everything is kept.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// The agents with their models.
    pub agents: Vec<AgentSpec>,
    /// Writes voice notes down, where that is configured.
    pub transcriber: Option<Transcriber>,
}

/// What works in a daemon: workers and channels, without anything that faces its host.
pub struct Core {
    shared: Arc<Shared>,
    summary_counters: Arc<SummaryCounters>,
    file_counters: Arc<FileCounters>,
    /// Stops intake and the claiming of runs.
    stop: CancellationToken,
    /// Ends delivery once nothing is due; after the runs, whose answers it still posts.
    stop_posts: CancellationToken,
    /// Ends draining.
    drain_until: CancellationToken,
    channels: Vec<JoinHandle<()>>,
    agents: JoinHandle<()>,
    delivery: JoinHandle<()>,
    summaries: JoinHandle<()>,
    desk: JoinHandle<()>,
    files: JoinHandle<()>,
    drain_deadline: Duration,
}

/// A running daemon.
pub struct Daemon {
    core: Core,
    operations: Operations,
    /// Stops everything but the core.
    rest: CancellationToken,
    socket_path: PathBuf,
    api_address: Option<ApiAddress>,
    /// Serves what platforms call, if they do.
    webhooks: Option<JoinHandle<()>>,
}

/// What channels and reloads share.
struct Shared {
    store: Store,
    rooms: Rooms,
    names: Names,
    registry: Registry,
    wake: Wake,
    counters: Arc<CaptureCounters>,
    config: RwLock<Arc<Config>>,
    intakes: Mutex<BTreeMap<String, (Arc<ChannelIntake>, Identity)>>,
    /// Which channel serves a platform's account: the first that turned out to be it.
    served_by: Mutex<HashMap<(Platform, String), String>>,
    clock: Clock,
}

/// The wall clock, in milliseconds since the Unix epoch.
#[must_use]
pub fn wall_clock() -> Clock {
    Arc::new(|| chrono::Utc::now().timestamp_millis())
}

impl Core {
    /// Starts the workers. Nothing is heard before [`Self::listen`].
    #[must_use]
    pub fn start(config: &Config, ground: Ground) -> Self {
        let Ground {
            store,
            clock,
            agents,
            transcriber,
        } = ground;
        let registry = Registry::default();
        registry.replace(agents);
        let rooms = Rooms::default();
        let shared = Arc::new(Shared {
            store: store.clone(),
            names: Names::new(store, rooms.clone()),
            rooms,
            registry,
            wake: Wake::default(),
            counters: Arc::default(),
            config: RwLock::new(Arc::new(config.clone())),
            intakes: Mutex::default(),
            served_by: Mutex::default(),
            clock,
        });
        let (stop, stop_posts) = (CancellationToken::new(), CancellationToken::new());
        let drain_until = CancellationToken::new();
        let owner = OwnerId::generate();
        let agents = tokio::spawn(
            agent_worker(&shared, config, owner).run(stop.clone(), drain_until.clone()),
        );
        let delivery = tokio::spawn(
            delivery_worker(&shared, owner).run(stop_posts.clone(), drain_until.clone()),
        );
        let summary_counters: Arc<SummaryCounters> = Arc::default();
        let summaries =
            tokio::spawn(summary_worker(&shared, Arc::clone(&summary_counters)).run(stop.clone()));
        let desk = tokio::spawn(desk(&shared).run(stop.clone()));
        let files = files_worker(&shared, config, transcriber);
        let file_counters = Arc::clone(&files.counters);
        let files = tokio::spawn(files.run(stop.clone()));
        Self {
            shared,
            summary_counters,
            file_counters,
            stop,
            stop_posts,
            drain_until,
            channels: Vec::new(),
            agents,
            delivery,
            summaries,
            desk,
            files,
            drain_deadline: Duration::from_millis(config.daemon.drain_deadline_ms),
        }
    }

    /// Lets channels hear, each under its configured name.
    pub fn listen(&mut self, channels: Vec<NamedChannel>, health: &Health) {
        for (name, channel) in channels {
            let bind = bind_with(Arc::clone(&self.shared), Arc::clone(&channel), name.clone());
            let health = health.of(&name);
            let supervised = supervise(name, channel, bind, health, self.stop.clone());
            self.channels.push(tokio::spawn(supervised));
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
        if let Err(cause) = self.desk.await {
            error!(error = %cause, "the desk ended badly");
        }
        if let Err(cause) = self.summaries.await {
            error!(error = %cause, "the summary worker ended badly");
        }
        if let Err(cause) = self.files.await {
            error!(error = %cause, "the files worker ended badly");
        }
        crash::point("shutdown.posts-drained");
        timer.abort();
    }
}

impl Daemon {
    /// Starts. Does not wait for any platform.
    ///
    /// # Errors
    /// [`StartError`] if the store, a directory, the socket or a client can't be set up.
    pub async fn start(
        config: Config,
        secrets: &Secrets,
        read_config: ReadConfig,
    ) -> Result<Self, StartError> {
        let clock = wall_clock();
        let store = open_store(&config, &clock)?;
        let listener = open_listener(&config).await?;
        let channels = channels(&config, secrets)?;
        let webhooks = open_webhooks(&config, &channels).await?;
        let ground = Ground {
            store: store.clone(),
            clock: Arc::clone(&clock),
            agents: wiring::agents(&config, Some(secrets))?,
            transcriber: wiring::transcriber(&config, secrets)?,
        };
        let mut core = Core::start(&config, ground);
        let rest = CancellationToken::new();
        let health = Health::new(Arc::clone(&clock));
        let pulse = Pulse::default();
        let shared = &core.shared;
        let running = Running {
            health: health.clone(),
            summaries: Arc::clone(&core.summary_counters),
            files: Arc::clone(&core.file_counters),
            counters: Arc::clone(&shared.counters),
            started_at_ms: (clock)(),
            wake: shared.wake.clone(),
            reload: reload_with(Arc::clone(shared), read_config),
        };
        let operations = Operations {
            store,
            registry: shared.registry.clone(),
            rooms: shared.rooms.clone(),
            clock,
            running: Some(running),
        };
        let socket_path = open_socket(&config, &operations, &rest).await?;
        if let Some(listener) = listener {
            tokio::spawn(http::serve(listener, operations.clone(), rest.clone()));
        }
        open_api(&config, secrets, &operations, &rest).await?;
        // Last: nothing is heard by a daemon that then can't start.
        core.listen(channels, &health);
        let webhooks = webhooks.map(|(listener, receivers)| {
            let serving = webhooks::serve(listener, receivers, health.clone(), rest.clone());
            tokio::spawn(serving)
        });
        start_rest(&core.shared, &config, pulse, &rest);
        Ok(Self {
            core,
            operations,
            rest,
            socket_path,
            api_address: config.api.enabled.then_some(config.api.listen),
            webhooks,
        })
    }

    /// What operators can ask.
    #[must_use]
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Waits for a sign that the database is damaged, and says what it turned out to be. From the sign
    /// on nothing is stored or acknowledged.
    pub async fn damaged(&self) -> StoreError {
        let store = &self.core.shared.store;
        let sign = store.damaged().await;
        error!(error = %sign, "nothing more is stored or acknowledged; everything is read again to see what it is");
        store.examine(sign).await
    }

    /// Reads agents, aliases and access again.
    ///
    /// # Errors
    /// What is wrong, in words; nothing has changed then.
    pub async fn reload(&self) -> Result<String, String> {
        match &self.operations.running {
            Some(running) => (running.reload)().await,
            None => Err("the daemon is not running".to_owned()),
        }
    }

    /// Stops in order; see [`Core::stop`].
    pub async fn stop(self) {
        let store = self.core.shared.store.clone();
        self.core.stop().await;
        self.rest.cancel();
        if let Some(webhooks) = self.webhooks {
            // It ends in time by itself; a panic there has nothing left to stop.
            let _ = webhooks.await;
        }
        if let Err(cause) = store.close().await {
            error!(error = %cause, "the store did not close cleanly; the next start recovers it");
        }
        let _ = std::fs::remove_file(&self.socket_path);
        if let Some(address) = &self.api_address {
            api::remove_socket(address);
        }
    }
}

fn open_store(config: &Config, clock: &Clock) -> Result<Store, StartError> {
    make_directory(&config.daemon.data_dir)?;
    let options = StoreOptions {
        path: Some(config.daemon.data_dir.join(DATABASE_NAME)),
        readers: config.store.readers,
        page_cache_kib: config.store.page_cache_kib,
    };
    let (store, report) = Store::open(&options, (clock)())?;
    for sentence in &report.migrations {
        info!("{sentence}");
    }
    for sentence in report.erasures.iter().chain(&report.files) {
        info!("{sentence}");
    }
    if report.leases_taken_back > 0 {
        info!(
            count = report.leases_taken_back,
            "work that a predecessor held was taken over"
        );
    }
    Ok(store)
}

fn make_directory(path: &std::path::Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|cause| StartError::Path {
        what: "can't make the directory",
        path: path.to_owned(),
        cause,
    })
}

/// The adapters of all configured channels.
fn channels(config: &Config, secrets: &Secrets) -> Result<Vec<NamedChannel>, WiringError> {
    let channel = |settings: &config::Channel| {
        let channel = wiring::channel(settings, secrets)?;
        Ok((settings.name.clone(), channel))
    };
    config.channels.values().map(channel).collect()
}

/// What happens once a channel knows who it is: bind the account, open its room, make its intake.
fn bind_with(shared: Arc<Shared>, channel: Arc<dyn Channel>, name: String) -> Bind {
    Arc::new(move |identity| {
        let (shared, channel, name) = (Arc::clone(&shared), Arc::clone(&channel), name.clone());
        Box::pin(async move {
            let channel_name = name.clone();
            let binding = AccountBinding {
                channel: name.clone(),
                platform: identity.platform,
                account: identity.account.clone(),
                name: identity.account_name.clone(),
            };
            shared.claim_account(&name, &identity)?;
            let account = shared
                .store
                .bind_account(binding.clone(), (shared.clock)())
                .await?;
            shared.store.learn_bot(account, &identity).await?;
            let refused = Arc::new(Notify::new());
            let history = channel.history(&identity);
            let intake = shared.open_room(&name, account, identity, &*channel, &refused)?;
            let commands = wiring::commands(&shared.config(), &name);
            tokio::spawn(announce(name.clone(), channel, commands));
            let keeper = history.map(|history| {
                let bounds = wiring::bounds(&shared.config());
                let (store, clock) = (shared.store.clone(), Arc::clone(&shared.clock));
                let intake = Arc::clone(&intake);
                Arc::new(Keeper::new(
                    name, account, history, intake, store, bounds, clock,
                ))
            });
            if let Some(keeper) = &keeper {
                keeper.begin().await?;
            }
            let heard: Arc<dyn Intake> = match &keeper {
                Some(keeper) => Arc::clone(keeper) as Arc<dyn Intake>,
                None => intake,
            };
            let intake = shared.with_surface(&channel_name, account, heard);
            let lift = lift_with(shared, binding);
            Ok(Bound {
                intake,
                refused,
                lift,
                keeper,
            })
        })
    })
}

/// How often a list of commands is told before the next start tells it.
const ANNOUNCE_ATTEMPTS: u32 = 5;

/// Tells the platform which commands there are. Nothing waits for it.
async fn announce(name: String, channel: Arc<dyn Channel>, commands: Vec<Announced>) {
    if commands.is_empty() {
        return;
    }
    let mut backoff = Backoff::new(1_000, 60_000);
    for _ in 0..ANNOUNCE_ATTEMPTS {
        match channel.announce(&commands).await {
            Ok(true) => {
                info!(channel.id = %name, count = commands.len(), "the platform was told the commands");
                return;
            }
            Ok(false) => return,
            Err(cause) => {
                let reason = cause.reason();
                warn!(channel.id = %name, reason, "the platform could not be told the commands; they work all the same");
            }
        }
        tokio::time::sleep(Duration::from_millis(backoff.next_ms())).await;
    }
}

/// Binding an account again lifts its hold.
fn lift_with(shared: Arc<Shared>, binding: AccountBinding) -> Lift {
    Arc::new(move || {
        let (shared, binding) = (Arc::clone(&shared), binding.clone());
        Box::pin(async move {
            let bound = shared.store.bind_account(binding, (shared.clock)()).await;
            shared.wake.posts.notify_one();
            bound.map(|_| ())
        })
    })
}

fn counter() -> Counter {
    Arc::new(|text| content_count(text, &ClassEstimate))
}

fn agent_worker(shared: &Arc<Shared>, config: &Config, owner: OwnerId) -> AgentWorker {
    let names = shared.names.clone();
    AgentWorker {
        store: shared.store.clone(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
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

fn summary_worker(shared: &Arc<Shared>, counters: Arc<SummaryCounters>) -> SummaryWorker {
    SummaryWorker {
        store: shared.store.clone(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
        counters,
    }
}

fn desk(shared: &Arc<Shared>) -> Desk {
    Desk {
        store: shared.store.clone(),
        rooms: shared.rooms.clone(),
        registry: shared.registry.clone(),
        errands: shared.wake.errands.clone(),
        posts: Arc::clone(&shared.wake.posts),
        clock: Arc::clone(&shared.clock),
    }
}

fn files_worker(
    shared: &Arc<Shared>,
    config: &Config,
    transcriber: Option<Transcriber>,
) -> FilesWorker {
    FilesWorker {
        store: shared.store.clone(),
        rooms: shared.rooms.clone(),
        policy: wiring::files_policy(config),
        transcriber,
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
        counters: Arc::default(),
        space: Space::default(),
    }
}

fn delivery_worker(shared: &Arc<Shared>, owner: OwnerId) -> DeliveryWorker {
    DeliveryWorker {
        store: shared.store.clone(),
        rooms: shared.rooms.clone(),
        owner,
        wake: shared.wake.clone(),
        clock: Arc::clone(&shared.clock),
    }
}

async fn open_socket(
    config: &Config,
    operations: &Operations,
    rest: &CancellationToken,
) -> Result<PathBuf, StartError> {
    make_directory(&config.daemon.runtime_dir)?;
    let path = config.daemon.runtime_dir.join(socket::SOCKET_NAME);
    let listener = socket::bind(&path, config.daemon.socket_group.as_deref())
        .await
        .map_err(|cause| StartError::Path {
            what: "can't open the socket",
            path: path.clone(),
            cause,
        })?;
    tokio::spawn(socket::serve(listener, operations.clone(), rest.clone()));
    Ok(path)
}

/// The HTTP listener, if it is enabled. Opened before any channel runs, so that a taken port is told at
/// once; after the store, so that a second daemon is told of the first.
async fn open_listener(config: &Config) -> Result<Option<TcpListener>, StartError> {
    if !config.http.enabled {
        return Ok(None);
    }
    let address = config.http.listen;
    let listener = http::bind(address).await;
    listener
        .map(Some)
        .map_err(|cause| StartError::Listen { address, cause })
}

/// The API, if it is enabled. The runtime directory is there by then.
async fn open_api(
    config: &Config,
    secrets: &Secrets,
    operations: &Operations,
    rest: &CancellationToken,
) -> Result<(), StartError> {
    if !config.api.enabled {
        return Ok(());
    }
    let group = config.daemon.socket_group.as_deref();
    let listener = api::bind(&config.api.listen, group).await;
    let listener = listener.map_err(|cause| StartError::ListenApi {
        address: config.api.listen.clone(),
        cause,
    })?;
    let token = config
        .api
        .token
        .as_ref()
        .map(|token| secrets.get(token).clone());
    tokio::spawn(api::serve(
        listener,
        token,
        operations.clone(),
        rest.clone(),
    ));
    Ok(())
}

type Webhooks = (TcpListener, Vec<Arc<dyn Receiver>>);

/// The listener that platforms call, if any channel is called. Opened before a channel runs, as above.
async fn open_webhooks(
    config: &Config,
    channels: &[NamedChannel],
) -> Result<Option<Webhooks>, StartError> {
    let receivers: Vec<_> = channels
        .iter()
        .filter_map(|(_, channel)| channel.receiver())
        .collect();
    if receivers.is_empty() {
        return Ok(None);
    }
    let address = config.webhooks.listen;
    let listener = http::bind(address).await;
    let listener = listener.map_err(|cause| StartError::Webhooks { address, cause })?;
    Ok(Some((listener, receivers)))
}

/// Name look-ups, the watchdog, and housekeeping.
fn start_rest(shared: &Arc<Shared>, config: &Config, pulse: Pulse, rest: &CancellationToken) {
    let store = shared.store.clone();
    tokio::spawn(shared.names.clone().keep_learning(rest.clone()));
    let clock = Arc::clone(&shared.clock);
    pulse.beat((clock)());
    tokio::spawn(beat(pulse.clone(), Arc::clone(&clock), rest.clone()));
    tokio::spawn(system::keep_watchdog(store, pulse, clock, rest.clone()));
    let raw_kept_ms = i64::from(config.store.debug_raw_hours) * 3_600_000;
    tokio::spawn(keep_house(Arc::clone(shared), raw_kept_ms, rest.clone()));
}

/// Beats while timers fire.
async fn beat(pulse: Pulse, clock: Clock, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        pulse.beat((clock)());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn keep_house(shared: Arc<Shared>, raw_kept_ms: i64, cancel: CancellationToken) {
    let mut wait = FIRST_HOUSEKEEPING;
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = cancel.cancelled() => return,
        }
        wait = HOUSEKEEPING;
        let intakes: Vec<_> = shared
            .intakes()
            .values()
            .map(|(intake, _)| Arc::clone(intake))
            .collect();
        for intake in intakes {
            intake.report_old_triggers();
        }
        shared.let_old_data_go(&cancel).await;
        let older_than_ms = (shared.clock)() - raw_kept_ms;
        if let Err(cause) = shared.store.expire_raw(older_than_ms).await {
            warn!(error = %cause, "raw envelopes could not be expired; trying again");
        }
    }
}

impl Shared {
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().expect("no holder of this lock panics"))
    }

    fn intakes(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<String, (Arc<ChannelIntake>, Identity)>> {
        self.intakes.lock().expect("no holder of this lock panics")
    }

    /// Lets go what is older than its channel keeps.
    async fn let_old_data_go(&self, cancel: &CancellationToken) {
        let config = self.config();
        let accounts: Vec<(String, AccountId)> = self
            .intakes()
            .iter()
            .map(|(name, (intake, _))| (name.clone(), intake.policy().account))
            .collect();
        for (name, account) in accounts {
            let Some(settings) = config
                .channels
                .get(&name)
                .filter(|_| !cancel.is_cancelled())
            else {
                continue;
            };
            let now_ms = (self.clock)();
            let bounds = wiring::expiry(settings.retention_days, now_ms);
            match self.store.expire(account, bounds, now_ms).await {
                Ok(expired) if !expired.is_nothing() => info!(
                    channel.id = %name,
                    turns = expired.text,
                    raw = expired.raw,
                    runs = expired.runs,
                    "old data was let go"
                ),
                Ok(_) => {}
                Err(cause) => {
                    warn!(channel.id = %name, error = %cause, "old data could not be let go; trying again");
                }
            }
        }
    }

    /// Two channels with the same bot would take turns in hearing, each by its own rules.
    fn claim_account(&self, channel: &str, identity: &Identity) -> Result<(), BindError> {
        let account = (identity.platform, identity.account.clone());
        let mut served_by = self
            .served_by
            .lock()
            .expect("no holder of this lock panics");
        let other = served_by
            .entry(account)
            .or_insert_with(|| channel.to_owned());
        if other.as_str() == channel {
            return Ok(());
        }
        Err(BindError::Other {
            what: format!(
                "it is the same bot as channel {other}: remove one of the two, or give it a bot of its own"
            ),
        })
    }

    /// Opens the room of an account that a channel turned out to be, and makes its intake.
    fn open_room(
        &self,
        name: &str,
        account: AccountId,
        identity: Identity,
        channel: &dyn Channel,
        refused: &Arc<Notify>,
    ) -> Result<Arc<ChannelIntake>, BindError> {
        // Outside the lock, which a panic in an adapter would poison.
        let (outbound, capabilities) = (channel.outbound(&identity), channel.capabilities());
        let files = channel.files(&identity);
        // Held until the intake is known: a reload in between would pass it over.
        let mut intakes = self.intakes();
        let config = self.config();
        let settings = config.channels.get(name).ok_or_else(|| BindError::Other {
            what: format!("channel {name} is no longer in the configuration"),
        })?;
        let room = Room {
            channel: name.to_owned(),
            outbound,
            files,
            identity: identity.clone(),
            capabilities,
            delivery: wiring::delivery(&config, settings),
            refused: Arc::clone(refused),
        };
        let keeping = Keeping {
            keeps_revisions: config.store.keep_revisions,
            keeps_raw: config.store.debug_raw_hours > 0,
        };
        let intake = Arc::new(ChannelIntake::new(
            self.store.clone(),
            wiring::policy(&config, settings, account, identity.clone()),
            keeping,
            counter(),
            self.wake.clone(),
            Arc::clone(&self.counters),
        ));
        intakes.insert(name.to_owned(), (Arc::clone(&intake), identity));
        self.rooms.set(account, room);
        self.wake.runs.notify_one();
        self.wake.posts.notify_one();
        self.wake.files.notify_one();
        Ok(intake)
    }

    /// An intake that also dresses the bot's own surface, where the channel has one.
    fn with_surface(
        &self,
        channel: &str,
        account: AccountId,
        intake: Arc<dyn Intake>,
    ) -> Arc<dyn Intake> {
        let config = self.config();
        let settings = config.channels.get(channel);
        let view = settings.and_then(|settings| settings.agent_view.as_ref());
        match (view, self.rooms.get(account)) {
            (Some(view), Some(room)) => Arc::new(Surface::new(view, room.outbound, intake)),
            _ => intake,
        }
    }

    /// Puts the agents, aliases and access of another configuration in force. Channels are added or
    /// removed only by a restart.
    fn apply(&self, config: Config, secrets: &Secrets) -> Result<String, WiringError> {
        let agents = wiring::agents(&config, Some(secrets))?;
        let known = self.config();
        let changed: Vec<&str> = config
            .channels
            .keys()
            .chain(known.channels.keys())
            .filter(|name| {
                let platform = |of: &Config| of.channels.get(*name).map(|it| it.platform.clone());
                platform(&config) != platform(&known)
            })
            .map(String::as_str)
            .collect();
        let note = if changed.is_empty() {
            String::new()
        } else {
            format!(
                "; a restart is needed for channels that come, go or connect in another way: {}",
                changed.join(", ")
            )
        };
        let summary = format!("{} agents are in force{note}", agents.len());
        // Agents first: a message that addresses a new one must find it.
        self.registry.replace(agents);
        let intakes = self.intakes();
        for (name, (intake, identity)) in intakes.iter() {
            if let Some(settings) = config.channels.get(name) {
                let account = intake.policy().account;
                intake.set_policy(wiring::policy(&config, settings, account, identity.clone()));
            }
        }
        *self.config.write().expect("no holder of this lock panics") = Arc::new(config);
        drop(intakes);
        // Queued runs of agents that are gone are claimed, cancelled and told to the room.
        self.wake.runs.notify_one();
        Ok(summary)
    }
}

fn reload_with(shared: Arc<Shared>, read_config: ReadConfig) -> Reload {
    Arc::new(move || {
        let (shared, read_config) = (Arc::clone(&shared), Arc::clone(&read_config));
        Box::pin(async move {
            let (config, secrets) = read_config()?;
            shared
                .apply(config, &secrets)
                .map_err(|cause| cause.to_string())
        })
    })
}
