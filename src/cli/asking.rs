//! Runs an admin operation in the daemon, over its socket; without a daemon, in this process on the store.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::CliContext;
use super::error::CliError;
use crate::admin::operations::{AdminOperation, Operations};
use crate::admin::socket;
use crate::agent::registry::Registry;
use crate::config::{Config, ConfigError, control_socket_despite_mistakes};
use crate::daemon::start::{DATABASE_NAME, wall_clock};
use crate::daemon::wiring;
use crate::delivery::rooms::Rooms;
use crate::skills::Shelf;
use crate::tools::mcp::McpServers;
use vocative_store::{Store, StoreError, StoreOptions};

/// Runs one operation in the daemon; without a daemon, in this process on the store.
///
/// A read opens the store read-only; a write takes its lock.
///
/// # Errors
/// The daemon's words for why it can't, or that there is neither a daemon nor a store.
pub(super) async fn ask<T: DeserializeOwned>(
    context: &CliContext,
    operation: AdminOperation,
) -> Result<T, CliError> {
    typed(answer(context, operation).await?)
}

async fn answer(context: &CliContext, operation: AdminOperation) -> Result<Value, CliError> {
    let mut answerer = Answerer::new(context)?;
    let answer = answerer.answer(operation).await;
    answerer.close().await?;
    answer
}

/// Runs several operations in a row: in the daemon, or without one in this process on the store.
pub(super) struct Answerer {
    /// The configuration, or what is wrong with it.
    config: Result<Config, ConfigError>,
    /// The daemon's socket.
    socket: PathBuf,
    /// The operations on the store, once no daemon answered.
    own: Option<Operations>,
}

impl Answerer {
    /// Finds the daemon's socket. A running daemon is asked even if the configuration at hand has mistakes.
    ///
    /// # Errors
    /// Everything wrong with the configuration, if not even the daemon's socket can be found in it.
    pub(super) fn new(context: &CliContext) -> Result<Self, CliError> {
        let asked = context.global.config.as_deref();
        let (config, socket) = match Config::load(asked, &context.environment) {
            Ok((config, _)) => {
                let socket = config.daemon.control_socket.clone();
                (Ok(config), socket)
            }
            Err(cause) => match control_socket_despite_mistakes(asked, &context.environment) {
                Some(socket) => (Err(cause), socket),
                None => return Err(cause.into()),
            },
        };
        Ok(Self {
            config,
            socket,
            own: None,
        })
    }

    /// The socket of the running daemon; none if there is no daemon.
    pub(super) async fn daemon(&self) -> Option<PathBuf> {
        let is_there = socket::is_taken(&self.socket).await;
        is_there.then(|| self.socket.clone())
    }

    /// The path of the database.
    ///
    /// # Errors
    /// What is wrong with the configuration, which says where it is.
    pub(super) fn database(&self) -> Result<PathBuf, CliError> {
        let config = self.config.as_ref().map_err(Clone::clone)?;
        Ok(config.daemon.data_dir.join(DATABASE_NAME))
    }

    /// Runs one operation in the daemon; without a daemon, in this process on the store.
    ///
    /// # Errors
    /// As for [`ask`].
    pub(super) async fn ask<T: DeserializeOwned>(
        &mut self,
        operation: AdminOperation,
    ) -> Result<T, CliError> {
        typed(self.answer(operation).await?)
    }

    async fn answer(&mut self, operation: AdminOperation) -> Result<Value, CliError> {
        loop {
            if let Some(answer) = self.ask_daemon(&operation).await? {
                self.warn_of_mistakes();
                return Ok(answer);
            }
            if let Some(own) = self.own(operation.is_write()).await? {
                return Ok(own.execute(operation).await?);
            }
        }
    }

    async fn ask_daemon(&self, operation: &AdminOperation) -> Result<Option<Value>, CliError> {
        if self.own.is_some() {
            return Ok(None);
        }
        let answered = socket::ask(&self.socket, operation).await;
        answered.map_err(|cause| not_asked(&cause))
    }

    /// Warns that the configuration at hand has mistakes: the daemon still runs with the one that it read at its start.
    fn warn_of_mistakes(&self) {
        if let Err(cause) = &self.config {
            let _ = writeln!(
                std::io::stderr(),
                "warning: the daemon answers, but the configuration at hand is wrong, and it would not \
                 start with it: {}",
                cause.in_one_line()
            );
        }
    }

    /// The operations on the store, which is opened on first use; `None` if a daemon answers by now.
    async fn own(&mut self, is_write: bool) -> Result<Option<Operations>, CliError> {
        if self.own.is_none() {
            let config = self.config.as_ref().map_err(Clone::clone)?;
            self.own = operations(config, is_write).await?;
        }
        Ok(self.own.clone())
    }

    /// Closes the store, if it was opened.
    ///
    /// # Errors
    /// If that fails; what was committed is safe.
    pub(super) async fn close(self) -> Result<(), CliError> {
        match self.own {
            Some(own) => Ok(own.store.close().await?),
            None => Ok(()),
        }
    }
}

/// Where several operations are run: in the daemon, or in this process on the store.
pub(super) enum OperationsSource {
    /// The daemon behind that socket.
    Daemon(PathBuf),
    /// This process; while the store is open for writing, no daemon can start.
    Store(Box<Operations>),
}

impl OperationsSource {
    /// Looks for a daemon; without one, opens the store, for writing if `is_write`.
    ///
    /// # Errors
    /// If there is neither a daemon nor a store.
    pub(super) async fn find(config: &Config, is_write: bool) -> Result<Self, CliError> {
        let socket = &config.daemon.control_socket;
        if !socket::is_taken(socket).await
            && let Some(own) = operations(config, is_write).await?
        {
            return Ok(Self::Store(Box::new(own)));
        }
        Ok(Self::Daemon(socket.clone()))
    }

    /// Whether a running daemon is asked.
    pub(super) fn is_daemon(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }

    /// Runs one operation.
    ///
    /// # Errors
    /// The words of whoever was asked, or that the daemon is gone.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        operation: AdminOperation,
    ) -> Result<T, CliError> {
        typed(self.answer(operation).await?)
    }

    async fn answer(&self, operation: AdminOperation) -> Result<Value, CliError> {
        match self {
            Self::Store(operations) => Ok(operations.execute(operation).await?),
            Self::Daemon(path) => {
                let answer = socket::ask(path, &operation).await;
                let answer = answer.map_err(|cause| not_asked(&cause))?;
                answer.ok_or_else(|| CliError::Unavailable {
                    what: "the daemon ended meanwhile".to_owned(),
                    advice: "run the same command again; it goes on where it was".to_owned(),
                    cause: None,
                })
            }
        }
    }

    /// Closes the store, if it was opened.
    ///
    /// # Errors
    /// If it can't be closed cleanly; nothing is lost then.
    pub(super) async fn close(self) -> Result<(), CliError> {
        match self {
            Self::Daemon(_) => Ok(()),
            Self::Store(operations) => Ok(operations.store.close().await?),
        }
    }
}

fn typed<T: DeserializeOwned>(answer: Value) -> Result<T, CliError> {
    serde_json::from_value(answer)
        .map_err(|cause| CliError::failed("the daemon answered in another version's words", cause))
}

/// The error for a daemon that could not be asked, or that refused.
fn not_asked(cause: &std::io::Error) -> CliError {
    let what = cause.to_string();
    let advice = match cause.kind() {
        ErrorKind::PermissionDenied => {
            "a daemon has it: ask as root or as the daemon's user, or let a group in with \
             daemon.socket_group (under systemd: vocative-control.socket)"
        }
        ErrorKind::TimedOut => "it may be busy or hang: look into its log, and ask again",
        _ => {
            return CliError::Failed {
                what,
                advice: None,
                cause: None,
            };
        }
    };
    CliError::Unavailable {
        what,
        advice: advice.to_owned(),
        cause: None,
    }
}

/// Opens the store and returns the operations on it; `None` if a daemon answers by now.
async fn operations(config: &Config, is_write: bool) -> Result<Option<Operations>, CliError> {
    let Some(store) = open(config, is_write).await? else {
        return Ok(None);
    };
    let registry = Registry::default();
    registry.replace(wiring::agents(config, None, &McpServers::default())?);
    Ok(Some(Operations {
        store,
        registry,
        skills: Shelf::new(&config.skill_folders),
        rooms: Rooms::default(),
        clock: wall_clock(),
        running: None,
    }))
}

/// How long a command waits while another process holds the database and no socket answers: a daemon that is starting
/// has no socket yet, one that is ending has none any more.
const HANDOVER_MAX: Duration = Duration::from_secs(10);
/// How often the command tries again meanwhile.
const HANDOVER_LOOK: Duration = Duration::from_millis(50);

/// Opens the store; `None` if a daemon answers by now.
async fn open(config: &Config, is_write: bool) -> Result<Option<Store>, CliError> {
    let path = config.daemon.data_dir.join(DATABASE_NAME);
    if !path.exists() {
        return Err(CliError::Unavailable {
            what: format!("there is no daemon and no database at {}", path.display()),
            advice: "start the daemon with `vocative run`, or point --config at its configuration"
                .to_owned(),
            cause: None,
        });
    }
    if !is_write {
        return Ok(Some(Store::open_read_only(&path)?));
    }
    let options = StoreOptions {
        path: Some(path),
        readers: 1,
        page_cache_kib: config.store.page_cache_kib,
    };
    let given_up_at = Instant::now() + HANDOVER_MAX;
    loop {
        match Store::open(&options, (wall_clock())()) {
            Err(StoreError::Locked { .. }) if Instant::now() < given_up_at => {
                if socket::is_taken(&config.daemon.control_socket).await {
                    return Ok(None);
                }
                tokio::time::sleep(HANDOVER_LOOK).await;
            }
            opened => return Ok(Some(opened?.0)),
        }
    }
}

/// Advice on a damaged database.
const DAMAGED: &str = "\
Nothing is written onto it any more, and nothing is acknowledged that was not stored. Stop the daemon if it \
runs, keep the whole data folder (`cp -a`), and look into `dmesg` for the disk. Then put the newest backup in \
its place: `vocative restore FILE`; the damaged database is kept beside it. `vocative check --database` \
lists what is damaged; docs/OPERATIONS.md, \"The database is damaged\", says what to do without a backup.";
/// Advice on a backup that can't be restored.
const BAD_BACKUP: &str = "\
Nothing was restored, and the database that is there has not changed. Restore another backup; \
`vocative restore` verifies each before it takes the database's place.";

impl From<StoreError> for CliError {
    fn from(cause: StoreError) -> Self {
        let cause = vocative_store::diagnose(cause);
        let what = cause.to_string();
        let advice = match &cause {
            StoreError::Damaged { .. } => {
                return Self::Damaged {
                    what,
                    advice: DAMAGED,
                };
            }
            StoreError::BadBackup { .. } => {
                return Self::Damaged {
                    what,
                    advice: BAD_BACKUP,
                };
            }
            StoreError::Unusable { advice, .. } => return Self::Storage { what, advice },
            StoreError::Locked { .. } => Some("stop the other daemon, or use its configuration"),
            StoreError::NotFound { .. } => {
                Some("`vocative conversations list` names what there is")
            }
            _ => None,
        };
        Self::Failed {
            what,
            advice: advice.map(str::to_owned),
            cause: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::config::Environment;

    /// A configuration with its folders in this one, and a store that holds the lock on its database.
    fn locked(folder: &Path) -> (Config, Store) {
        let text = format!(
            "[daemon]\ndata_dir = \"{0}\"\nruntime_dir = \"{0}\"\n",
            folder.display()
        );
        let file = Some((Path::new("vocative.toml"), text.as_str()));
        let (config, _) = Config::from_text(file, &Environment::default()).unwrap();
        let options = StoreOptions {
            path: Some(folder.join(DATABASE_NAME)),
            readers: 1,
            page_cache_kib: 64,
        };
        (config, Store::open(&options, 0).unwrap().0)
    }

    #[tokio::test]
    async fn a_command_waits_for_a_daemon_that_starts_or_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (config, other) = locked(folder.path());
        let mut starting = Box::pin(open(&config, true));
        assert!((&mut starting).now_or_never().is_none());
        let socket = socket::bind(&config.daemon.control_socket, None).await;
        let listener = socket.unwrap();
        assert!(starting.await.unwrap().is_none());

        drop(listener);
        let mut ending = Box::pin(open(&config, true));
        assert!((&mut ending).now_or_never().is_none());
        other.close().await.unwrap();
        let own = ending.await.unwrap().unwrap();
        own.close().await.unwrap();
    }
}
