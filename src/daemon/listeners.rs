//! The listeners of a daemon: the control socket, health and metrics, the API, webhooks. Each is opened before any
//! channel hears, so that a daemon that can't serve reports it at its start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use listenfd::ListenFd;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use vocative_contract::webhook::Receiver;

use crate::admin::operations::{ConsoleDoor, Operations};
use crate::admin::socket;
use crate::config::{Api, ApiAddress, ApiScope, Config, Secrets};
use crate::daemon::core::NamedChannel;
use crate::daemon::start::StartError;
use crate::http;
use crate::http::api::{self, ApiKey, ApiListener};
use crate::http::console;

/// Sockets that systemd opened for the daemon (socket units) and goes on holding when it ends.
pub(super) struct HeldSockets(Vec<(PathBuf, UnixListener)>);

impl HeldSockets {
    /// The sockets of this process. Anything but a Unix socket with a path is left alone, with a warning.
    pub(super) fn of_process() -> Self {
        let mut passed = ListenFd::from_env();
        let mut held = Vec::new();
        for n in 0..passed.len() {
            match passed
                .take_unix_listener(n)
                .map(|it| it.and_then(with_path))
            {
                Ok(Some(socket)) => held.push(socket),
                Ok(None) | Err(_) => {
                    warn!("systemd passed a socket that is no Unix socket with a path");
                }
            }
        }
        Self(held)
    }

    fn take(&mut self, path: &Path) -> Option<UnixListener> {
        let at = self.0.iter().position(|(held, _)| held == path)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Names the sockets that no setting asked for.
    pub(super) fn warn_of_rest(&self) {
        for (path, _) in &self.0 {
            warn!(
                path = %path.display(),
                "systemd passed a socket that is not used: set daemon.control_socket or api.listen to its path"
            );
        }
    }
}

fn with_path(listener: std::os::unix::net::UnixListener) -> Option<(PathBuf, UnixListener)> {
    let path = listener.local_addr().ok()?.as_pathname()?.to_owned();
    listener.set_nonblocking(true).ok()?;
    Some((path, UnixListener::from_std(listener).ok()?))
}

/// Opens the control socket, or takes the one that systemd holds; also returns the path if the socket is ours to
/// remove.
pub(super) async fn open_socket(
    config: &Config,
    operations: &Operations,
    rest: &CancellationToken,
    held: &mut HeldSockets,
) -> Result<Option<PathBuf>, StartError> {
    let path = &config.daemon.control_socket;
    let (listener, own) = if let Some(listener) = held.take(path) {
        (listener, None)
    } else {
        make_directory(&config.daemon.runtime_dir)?;
        let group = config.daemon.socket_group.as_deref();
        let bound = socket::bind(path, group).await;
        let listener = bound.map_err(|cause| StartError::Path {
            what: "can't open the socket",
            path: path.clone(),
            cause,
        })?;
        (listener, Some(path.clone()))
    };
    tokio::spawn(socket::serve(listener, operations.clone(), rest.clone()));
    Ok(own)
}

/// The HTTP listener, if it is enabled. Opened before any channel runs, so that a taken port is reported at once;
/// after the store, so that a second daemon is told about the first.
pub(super) async fn open_listener(config: &Config) -> Result<Option<TcpListener>, StartError> {
    if !config.http.enabled {
        return Ok(None);
    }
    let address = config.http.listen;
    let listener = http::bind(address).await;
    listener
        .map(Some)
        .map_err(|cause| StartError::Listen { address, cause })
}

/// The API, if it is enabled. The runtime directory exists by then.
pub(super) async fn open_api(
    config: &Config,
    secrets: &Secrets,
    operations: &Operations,
    rest: &CancellationToken,
    held: &mut HeldSockets,
) -> Result<Option<PathBuf>, StartError> {
    if !config.api.enabled {
        return Ok(None);
    }
    let path = match &config.api.listen {
        ApiAddress::Unix(path) => Some(path),
        ApiAddress::Tcp(_) => None,
    };
    let (listener, own) = if let Some(listener) = path.and_then(|path| held.take(path)) {
        (ApiListener::held(listener, &config.api.listen), None)
    } else {
        let group = config.api.socket_group.as_deref();
        let bound = api::bind(&config.api.listen, group).await;
        let listener = bound.map_err(|cause| StartError::ListenApi {
            address: config.api.listen.clone(),
            cause,
        })?;
        (listener, path.cloned())
    };
    tokio::spawn(api::serve(
        listener,
        api_keys(&config.api, secrets),
        operations.clone(),
        rest.clone(),
    ));
    Ok(own)
}

/// The tokens of the API. The token without a name may only read.
fn api_keys(settings: &Api, secrets: &Secrets) -> Vec<ApiKey> {
    let reader = settings.token.iter().map(|token| ApiKey {
        name: "api.token".to_owned(),
        secret: secrets.get(token).clone(),
        scopes: BTreeSet::from([ApiScope::Read]),
        people: Vec::new(),
        asking: None,
    });
    let named = settings.tokens.iter().map(|token| ApiKey {
        name: token.name.clone(),
        secret: secrets.get(&token.token).clone(),
        scopes: token.scopes.clone(),
        people: token.people.clone(),
        asking: token.asking.clone(),
    });
    reader.chain(named).collect()
}

/// The console, if it is enabled, and the key to it.
pub(super) async fn open_console(
    config: &Config,
) -> Result<Option<(TcpListener, ConsoleDoor)>, StartError> {
    let settings = &config.console;
    if !settings.enabled {
        return Ok(None);
    }
    let address = settings.listen;
    let failed = |cause| StartError::Console { address, cause };
    let listener = http::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok(Some((listener, console::door(settings, bound))))
}

pub(super) type WebhookListener = (TcpListener, Vec<Arc<dyn Receiver>>);

/// The listener that platforms call, if any channel has a webhook. Opened before a channel runs, as above.
pub(super) async fn open_webhooks(
    config: &Config,
    channels: &[NamedChannel],
) -> Result<Option<WebhookListener>, StartError> {
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

/// A folder that only its owner may look into.
pub(super) fn make_directory(path: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|cause| StartError::Path {
        what: "can't make the directory",
        path: path.to_owned(),
        cause,
    })
}
