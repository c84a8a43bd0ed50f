//! MCP servers: one client of the Model Context Protocol for each configured server, shared by all runs.
//!
//! One task (`keeping`) keeps each server running: it starts the server, lists its tools, starts it again after a
//! failure with growing waits, and parks it after five failures in ten minutes. The tools that a server offers are
//! pinned in the store (`definition` says what of a tool is pinned): a tool that is new or changed waits for a person.
//! A server's answers are data (`outcome`). While a server is down, its tools are missing, and runs go on without them.
//! A server's own requests for models, folders and people are refused; an answer of a server may ask people for input.
//!
//! Reading order: this page, `connection`, `keeping`, `definition`, `tool`, `outcome`.

mod connection;
mod definition;
mod keeping;
mod outcome;
mod tool;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use self::connection::CallSender;
use self::definition::Definition;
use self::tool::McpTool;
use super::Tool;
use super::program::{Program, ProgramSettings};
use vocative_store::{Pinning, Store};

pub use self::definition::{pin_digest, told};
pub use self::tool::call_once;

/// The number of log lines that are kept for people, of each server.
const LOG_LINES: usize = 20;

/// The time, in milliseconds since the Unix epoch.
pub type McpClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The settings of a server, without its secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct McpSettings {
    /// Its configured name.
    pub name: String,
    /// Where it is.
    pub place: McpPlace,
    /// The tools that may be offered, by the server's names for them; `None` = all.
    pub tools: Option<Vec<String>>,
    /// The tools whose calls may be made again.
    pub repeatable: Vec<String>,
    /// Whether the tools that it offers when it is first seen are approved without a person.
    pub trusts_first: bool,
    /// Which files of the server are posted with the answer.
    pub post_files: PostFiles,
}

/// Which files of a server are posted with the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PostFiles {
    /// Files that the server marks for the user.
    #[default]
    Marked,
    /// All files.
    All,
    /// No files.
    Never,
}

/// Where a server runs.
#[derive(Clone, Debug, PartialEq)]
pub enum McpPlace {
    /// A program that speaks the protocol over its standard streams.
    Program(Box<ProgramSettings>),
    /// A Unix socket. The protocol on each connection is that of a program's standard streams.
    Socket(PathBuf),
    /// An HTTP address.
    Http {
        /// The address.
        url: Url,
        /// Hosts of the operator's own networks that the server may be at, with their ports.
        allow_private: Vec<String>,
        /// Headers without secrets.
        headers: Vec<(String, String)>,
    },
}

/// How long runs wait for a server that is being started and whose tools are not known yet.
const FIRST_START_WAIT: Duration = Duration::from_secs(10);

/// A server with its secrets.
#[derive(Clone, Debug)]
pub struct McpConfigured {
    /// The settings without secrets.
    pub settings: McpSettings,
    /// The program with its secrets, if the server is a program.
    pub program: Option<Program>,
    /// The bearer token that is sent, if the server is an address.
    pub bearer: Option<SecretString>,
}

/// The state of a server.
#[derive(Clone, Debug, Default)]
enum ServerState {
    /// It is being started.
    #[default]
    Starting,
    /// It can be called.
    Ready(CallSender),
    /// It failed, and will be started again soon.
    Waiting(String),
    /// It failed too often, and is not started again until a reload.
    Parked(String),
}

/// A server that is kept running.
#[derive(Debug)]
pub struct McpServer {
    configured: McpConfigured,
    state: watch::Sender<ServerState>,
    /// Its approved tools.
    offered: RwLock<Vec<Arc<Definition>>>,
    /// The last lines of its log.
    log: Mutex<VecDeque<String>>,
    /// Number of calls in a row that took too long.
    timeouts: Mutex<u32>,
    /// Whether a start failed or the server ended.
    has_failed: AtomicBool,
    /// Asks for its tools to be listed again.
    relist: Notify,
    /// Asks for the server to be started again.
    restart: Notify,
}

/// The state of a server, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpHealth {
    /// Its name.
    pub name: String,
    /// Its state in a word: starting, ready, waiting, parked.
    pub state: &'static str,
    /// Why it is not ready.
    pub cause: Option<String>,
    /// The number of its approved tools.
    pub tools: usize,
    /// The last lines of its log.
    pub log: Vec<String>,
}

/// All servers. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct McpServers {
    servers: Arc<RwLock<BTreeMap<String, KeptServer>>>,
}

#[derive(Debug)]
struct KeptServer {
    server: Arc<McpServer>,
    /// Stops the task that keeps the server when it is dropped.
    _keeping: AbortOnDropHandle<()>,
}

impl McpServers {
    /// Replaces the set of servers: servers with an unchanged configuration go on, parked servers are tried again.
    pub fn replace(&self, configured: Vec<McpConfigured>, pins: &Store<Pinning>, now: &McpClock) {
        let mut servers = self.servers.write().expect("no holder of this lock panics");
        let mut before = std::mem::take(&mut *servers);
        for configured in configured {
            let name = configured.settings.name.clone();
            let same = before
                .remove(&name)
                .filter(|kept| kept.server.is_as(&configured) && !kept.server.is_parked());
            let kept = same.unwrap_or_else(|| {
                let server = Arc::new(McpServer::new(configured));
                let keeping = keeping::keep(Arc::clone(&server), pins.clone(), Arc::clone(now));
                KeptServer {
                    server,
                    _keeping: AbortOnDropHandle::new(tokio::spawn(keeping)),
                }
            });
            servers.insert(name, kept);
        }
    }

    /// The server of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<McpServer>> {
        let servers = self.servers.read().expect("no holder of this lock panics");
        servers.get(name).map(|kept| Arc::clone(&kept.server))
    }

    /// The state of all servers.
    #[must_use]
    pub fn health(&self) -> Vec<McpHealth> {
        let servers = self.servers.read().expect("no holder of this lock panics");
        servers.values().map(|kept| kept.server.health()).collect()
    }

    /// Lists a server's tools again, after a person decided about them.
    pub fn relist(&self, name: &str) {
        if let Some(server) = self.get(name) {
            server.relist.notify_one();
        }
    }
}

impl McpServer {
    fn new(configured: McpConfigured) -> Self {
        Self {
            configured,
            state: watch::Sender::default(),
            offered: RwLock::default(),
            log: Mutex::default(),
            timeouts: Mutex::default(),
            has_failed: AtomicBool::new(false),
            relist: Notify::new(),
            restart: Notify::new(),
        }
    }

    fn settings(&self) -> &McpSettings {
        &self.configured.settings
    }

    fn is_as(&self, other: &McpConfigured) -> bool {
        use secrecy::ExposeSecret as _;
        let own = &self.configured;
        let exposed = |it: &McpConfigured| -> Vec<String> {
            let program = it.program.iter().flat_map(|program| &program.secrets);
            let secrets = program.map(|(_, secret)| secret).chain(&it.bearer);
            secrets.map(|it| it.expose_secret().to_owned()).collect()
        };
        own.settings == other.settings && exposed(own) == exposed(other)
    }

    fn is_parked(&self) -> bool {
        matches!(*self.state.borrow(), ServerState::Parked(_))
    }

    fn health(&self) -> McpHealth {
        let (state, cause) = match &*self.state.borrow() {
            ServerState::Starting => ("starting", None),
            ServerState::Ready(_) => ("ready", None),
            ServerState::Waiting(why) => ("waiting", Some(why.clone())),
            ServerState::Parked(why) => ("parked", Some(why.clone())),
        };
        let log = self.log.lock().expect("no holder of this lock panics");
        McpHealth {
            name: self.settings().name.clone(),
            state,
            cause,
            tools: self.definitions().len(),
            log: log.iter().cloned().collect(),
        }
    }

    fn definitions(&self) -> Vec<Arc<Definition>> {
        let offered = self.offered.read().expect("no holder of this lock panics");
        offered.clone()
    }

    fn offer(&self, definitions: Vec<Arc<Definition>>) {
        *self.offered.write().expect("no holder of this lock panics") = definitions;
    }

    /// Waits for the server's first start, up to a limit: before that its tools are not known.
    pub(super) async fn first_started(&self) {
        if !self.definitions().is_empty() || self.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, ServerState::Starting));
        if tokio::time::timeout(FIRST_START_WAIT, settled)
            .await
            .is_err()
        {
            let server = &self.settings().name;
            info!(
                server,
                "a server of tools is still being started; questions are answered without it"
            );
        }
    }

    /// Its tools that match a name, for a run; none while the server is down.
    #[must_use]
    pub fn tools(self: &Arc<Self>, name: &str) -> Vec<Arc<dyn Tool>> {
        if matches!(
            *self.state.borrow(),
            ServerState::Waiting(_) | ServerState::Parked(_)
        ) {
            return Vec::new();
        }
        let definitions = self.definitions();
        let wanted = definitions
            .into_iter()
            .filter(|definition| super::names(name, &definition.shown_name));
        let tool = |definition| -> Arc<dyn Tool> {
            Arc::new(McpTool {
                server: Arc::clone(self),
                definition,
            })
        };
        wanted.map(tool).collect()
    }

    /// Waits until the server can be called.
    ///
    /// # Errors
    /// Why it can't be called, in words.
    async fn ready(&self, limit: Duration) -> Result<CallSender, String> {
        let mut state = self.state.subscribe();
        let settled = state
            .wait_for(|state| !matches!(state, ServerState::Starting | ServerState::Waiting(_)));
        match tokio::time::timeout(limit, settled).await {
            Ok(Ok(state)) => match &*state {
                ServerState::Ready(line) => Ok(line.clone()),
                ServerState::Parked(why) => Err(format!("it failed too often: {why}")),
                ServerState::Starting | ServerState::Waiting(_) => {
                    Err("it is not there".to_owned())
                }
            },
            Ok(Err(_)) => Err("it is no longer configured".to_owned()),
            Err(_) => Err("it did not start in time".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn server() -> McpServer {
        McpServer::new(McpConfigured {
            settings: McpSettings {
                name: "time".to_owned(),
                place: McpPlace::Http {
                    url: Url::parse("http://127.0.0.1:1/mcp").unwrap(),
                    allow_private: Vec::new(),
                    headers: Vec::new(),
                },
                tools: None,
                repeatable: Vec::new(),
                trusts_first: true,
                post_files: PostFiles::Marked,
            },
            program: None,
            bearer: None,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn questions_wait_for_a_first_start_until_it_ends_or_takes_too_long() {
        let server = server();
        let mut waiting = Box::pin(server.first_started());
        assert_eq!(waiting.as_mut().now_or_never(), None);
        server
            .state
            .send_replace(ServerState::Waiting("it ended".to_owned()));
        assert_eq!(waiting.now_or_never(), Some(()));

        server.state.send_replace(ServerState::Starting);
        let began = tokio::time::Instant::now();
        server.first_started().await;
        assert_eq!(began.elapsed(), FIRST_START_WAIT);

        // A server that failed is not waited for again.
        server.has_failed.store(true, Ordering::Relaxed);
        assert_eq!(server.first_started().now_or_never(), Some(()));
    }
}
