//! The whole daemon: opens the store, starts the workers and channels, and stops them in order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::admin::health::Health;
use crate::admin::operations::{
    ConsoleDoor, InForce, Operations, QuestionIntake, Reload, RunningDaemon,
};
use crate::agent::limits::recall_context_limits;
use crate::agent::registry::AgentSpec;
use crate::capture::clock::Clock;
use crate::config::{self, API_CHANNEL, ApiAddress, Config, Secrets};
use crate::daemon::confinement::Confinement;
use crate::daemon::core::{Core, Ground, NamedChannel};
use crate::daemon::housekeeping::{beat, keep_house};
use crate::daemon::listeners::{
    HeldSockets, make_directory, open_api, open_console, open_listener, open_socket, open_webhooks,
};
use crate::daemon::shared::Shared;
use crate::daemon::system::{self, Pulse};
use crate::daemon::time::Timekeeper;
use crate::daemon::wiring::{self, WiringError};
use crate::http::{self, console as console_pages, webhooks};
use crate::tools::mcp::McpServers;
use crate::tools::program::sweep;
use vocative_store::{OpenReport, OpenWatch, Store, StoreError, StoreOptions};

/// How often a start that takes long reports its progress.
const TOLD_EVERY: Duration = Duration::from_secs(5);
/// How long systemd is asked to wait after each report.
const START_WAIT: Duration = Duration::from_secs(60);

/// The database's name in the data directory.
pub const DATABASE_NAME: &str = "vocative.db";

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
    /// The console.
    #[error("the console can't be served at {address} ([console] listen)")]
    Console {
        /// The configured address.
        address: SocketAddr,
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
    /// `daemon.landlock = "on"`, and the kernel can't.
    #[error("the daemon can't be confined to its own folders: {0}")]
    Confinement(String),
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

/// A running daemon.
pub struct Daemon {
    core: Core,
    operations: Operations,
    /// Stops everything but the core.
    rest: CancellationToken,
    /// Sockets that the daemon made itself, to be removed at its end.
    own_sockets: Vec<PathBuf>,
    /// Serves the webhooks, if platforms call any.
    webhooks: Option<JoinHandle<()>>,
}

/// The wall clock, in milliseconds since the Unix epoch.
#[must_use]
pub fn wall_clock() -> Clock {
    Arc::new(|| chrono::Utc::now().timestamp_millis())
}

impl Daemon {
    /// Starts the daemon. Does not wait for any platform. `watch` shows the progress of opening the database, and can
    /// stop it; `confinement` is only reported.
    ///
    /// # Errors
    /// [`StartError`] if the store, a directory, the socket or a client can't be set up.
    pub async fn start(
        config: Config,
        secrets: &Secrets,
        read_config: ReadConfig,
        watch: &OpenWatch,
        confinement: &Confinement,
    ) -> Result<Self, StartError> {
        let time = Timekeeper::new(wall_clock());
        let clock = time.clock();
        let store = open_store(&config, &clock, watch).await?;
        sweep(&wiring::program_folders(&config));
        let listener = open_listener(&config).await?;
        let console = open_console(&config).await?;
        let channels = channels(&config, secrets)?;
        let webhooks = open_webhooks(&config, &channels).await?;
        let servers = McpServers::default();
        let configured = wiring::servers(&config, Some(secrets));
        servers.replace(configured, &store.only(), &clock);
        let agents = wiring::agents(&config, Some(secrets), &servers)?;
        recall_context_limits(&store, &agents, (clock)()).await;
        let told = agents.iter().flat_map(AgentSpec::telling_hooks);
        store.set_telling_hooks(told.collect()).await?;
        let embeddings = wiring::embeddings(&config, secrets, &store, &clock).await?;
        let ground = Ground {
            store: store.clone(),
            time,
            agents,
            transcriber: wiring::transcriber(&config, secrets)?,
            embeddings: embeddings.clone(),
            servers: servers.clone(),
        };
        let mut core = Core::start(&config, ground);
        let rest = CancellationToken::new();
        let health = Health::new(Arc::clone(&clock));
        let pulse = Pulse::default();
        let shared = &core.shared;
        let running = RunningDaemon {
            health: health.clone(),
            embeddings,
            given_up: Arc::clone(&core.given_up),
            counters: Arc::clone(&shared.counters),
            models: shared.models.clone(),
            started_at_ms: (clock)(),
            time_doubt: shared.time_doubt.clone(),
            landlock: confinement.to_string(),
            servers,
            wake: shared.wake.clone(),
            reload: reload_with(Arc::clone(shared), read_config),
            in_force: in_force_of(Arc::clone(shared)),
            console: console.as_ref().map(|(_, door)| door.clone()),
            questions: questions_of(Arc::clone(shared)),
        };
        let operations = Operations {
            store,
            registry: shared.registry.clone(),
            skills: shared.skills.clone(),
            rooms: shared.rooms.clone(),
            clock,
            running: Some(running),
        };
        let mut held = HeldSockets::of_process();
        let control = open_socket(&config, &operations, &rest, &mut held).await?;
        if let Some(listener) = listener {
            tokio::spawn(http::serve(listener, operations.clone(), rest.clone()));
        }
        serve_console(console, &config, &operations, &rest);
        let api = open_api(&config, secrets, &operations, &rest, &mut held).await?;
        held.warn_of_rest();
        // Last, so that a daemon that can't start hears nothing.
        core.listen(channels, &health);
        let webhooks = webhooks.map(|(listener, receivers)| {
            let serving = webhooks::serve(listener, receivers, health.clone(), rest.clone());
            let loops = core.loops.clone();
            tokio::spawn(loops.keep("webhooks", rest.clone(), serving))
        });
        start_rest(&core, pulse, &rest);
        Ok(Self {
            core,
            operations,
            rest,
            own_sockets: control.into_iter().chain(api).collect(),
            webhooks,
        })
    }

    /// What operators can ask.
    #[must_use]
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Waits for a sign that the database is damaged, and returns what the damage is. After the sign nothing is
    /// stored or acknowledged.
    pub async fn damaged(&self) -> StoreError {
        let store = &self.core.shared.store;
        let sign = store.damaged().await;
        error!(error = %sign, "nothing more is stored or acknowledged; everything is read again to see what it is");
        store.examine(sign).await
    }

    /// Waits until an essential loop ended, and names it.
    pub async fn broken(&self) -> String {
        tokio::select! {
            biased;
            name = self.core.loops.broken() => name,
            () = self.core.shared.store.ended() => "writing to the database".to_owned(),
        }
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
            // The task ends in time by itself; a panic there leaves nothing to stop.
            let _ = webhooks.await;
        }
        if let Err(cause) = store.close().await {
            error!(error = %cause, "the store did not close cleanly; the next start recovers it");
        }
        for path in &self.own_sockets {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Serves the console, where it is turned on.
fn serve_console(
    console: Option<(tokio::net::TcpListener, ConsoleDoor)>,
    config: &Config,
    operations: &Operations,
    rest: &CancellationToken,
) {
    let Some((listener, door)) = console else {
        return;
    };
    let settings = config.console.clone();
    let served = console_pages::serve(listener, settings, door, operations.clone(), rest.clone());
    tokio::spawn(served);
}

/// Opens the store on a thread of its own, since an upgrade may take minutes: meanwhile systemd is asked to wait, and
/// the log reports the progress.
async fn open_store(
    config: &Config,
    clock: &Clock,
    watch: &OpenWatch,
) -> Result<Store, StartError> {
    make_directory(&config.daemon.data_dir)?;
    let options = StoreOptions {
        path: Some(config.daemon.data_dir.join(DATABASE_NAME)),
        readers: config.store.readers,
        page_cache_kib: config.store.page_cache_kib,
    };
    let (now_ms, watched) = ((clock)(), watch.clone());
    let mut opening =
        tokio::task::spawn_blocking(move || Store::open_watched(&options, now_ms, &watched));
    let mut told = tokio::time::interval(TOLD_EVERY);
    // The first tick comes at once.
    told.tick().await;
    let opened = loop {
        tokio::select! {
            opened = &mut opening => break opened,
            _ = told.tick() => {
                let phase = watch.phase();
                info!("{phase}");
                system::tell_starting(&phase.to_string(), START_WAIT);
            }
        }
    };
    let (store, report) = opened.map_err(|cause| StoreError::Unavailable {
        what: format!("opening the database ended: {cause}"),
    })??;
    report_opening(&report);
    Ok(store)
}

fn report_opening(report: &OpenReport) {
    for sentence in &report.migrations {
        info!("{sentence}");
    }
    let settled = report.restores.iter().chain(&report.erasures);
    for sentence in settled.chain(&report.files) {
        info!("{sentence}");
    }
    if report.leases_taken_back > 0 {
        info!(
            count = report.leases_taken_back,
            "work that a predecessor held was taken over"
        );
    }
}

/// The adapters of all configured channels.
fn channels(config: &Config, secrets: &Secrets) -> Result<Vec<NamedChannel>, WiringError> {
    let channel = |settings: &config::Channel| {
        let channel = wiring::channel(settings, secrets)?;
        Ok((settings.name.clone(), channel))
    };
    config.channels.values().map(channel).collect()
}

/// Name look-ups, the watchdog, and housekeeping.
fn start_rest(core: &Core, pulse: Pulse, rest: &CancellationToken) {
    let (shared, loops) = (&core.shared, &core.loops);
    let store = shared.store.clone();
    let names = shared.names.clone();
    let names = names.keep_learning(shared.wake.names.clone(), rest.clone());
    tokio::spawn(loops.clone().keep("names", rest.clone(), names));
    tokio::spawn(beat(pulse.clone(), rest.clone()));
    tokio::spawn(system::keep_watchdog(store.reader(), pulse, rest.clone()));
    let house = keep_house(Arc::clone(shared), rest.clone());
    tokio::spawn(loops.clone().keep("housekeeping", rest.clone(), house));
}

fn in_force_of(shared: Arc<Shared>) -> InForce {
    Arc::new(move || shared.config())
}

/// The intake for requests of programs.
fn questions_of(shared: Arc<Shared>) -> QuestionIntake {
    Arc::new(move || {
        let intakes = shared.intakes();
        intakes
            .get(API_CHANNEL)
            .map(|(intake, _)| Arc::clone(intake))
    })
}

fn reload_with(shared: Arc<Shared>, read_config: ReadConfig) -> Reload {
    Arc::new(move || {
        let (shared, read_config) = (Arc::clone(&shared), Arc::clone(&read_config));
        Box::pin(async move {
            let (config, secrets) = read_config()?;
            let applied = shared.apply(config, &secrets);
            let applied = applied.map_err(|cause| cause.to_string())?;
            let agents = shared.registry.all();
            let specs = agents.iter().map(AsRef::as_ref);
            recall_context_limits(&shared.store, specs, (shared.clock)()).await;
            let told = shared.registry.telling_hooks();
            let told = shared.store.set_telling_hooks(told).await;
            told.map_err(|cause| {
                format!("who is told of what ends could not be written: {cause}")
            })?;
            Ok(applied)
        })
    })
}
