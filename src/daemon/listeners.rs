//! What a daemon can be reached at: the control socket, health and metrics, the API, webhooks. Each is
//! opened before any channel hears, so that a daemon that can't serve says so at its start.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use vocative_channels::webhook::Receiver;

use crate::admin::operations::Operations;
use crate::admin::socket;
use crate::config::{Config, Secrets};
use crate::daemon::core::NamedChannel;
use crate::daemon::start::StartError;
use crate::http::{self, api};

pub(super) async fn open_socket(
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

/// The API, if it is enabled. The runtime directory is there by then.
pub(super) async fn open_api(
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

pub(super) type Webhooks = (TcpListener, Vec<Arc<dyn Receiver>>);

/// The listener that platforms call, if any channel is called. Opened before a channel runs, as above.
pub(super) async fn open_webhooks(
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

/// A folder that only its owner may look into.
pub(super) fn make_directory(path: &std::path::Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|cause| StartError::Path {
        what: "can't make the directory",
        path: path.to_owned(),
        cause,
    })
}
