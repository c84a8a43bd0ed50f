//! Asks the running daemon over its socket; without one, opens the store itself.

use serde::de::DeserializeOwned;

use super::context::Context;
use super::error::CliError;
use crate::admin::operations::{Operation, Operations};
use crate::admin::socket::{self, SOCKET_NAME};
use crate::agent::registry::Registry;
use crate::config::Config;
use crate::daemon::start::{DATABASE_NAME, wall_clock};
use crate::daemon::wiring;
use crate::delivery::rooms::Rooms;
use crate::store::{Store, StoreError, StoreOptions};

/// The daemon's answer, or this process's own on the store.
///
/// Reading opens the store read-only; writing takes its lock.
///
/// # Errors
/// The daemon's words for why it can't, or that there is neither a daemon nor a store.
pub(super) async fn ask<T: DeserializeOwned>(
    context: &Context,
    operation: Operation,
) -> Result<T, CliError> {
    let (config, _) = context.load_config()?;
    let socket = config.daemon.runtime_dir.join(SOCKET_NAME);
    let answered = socket::ask(&socket, &operation)
        .await
        .map_err(|cause| CliError::Failed {
            what: cause.to_string(),
            advice: None,
            cause: None,
        })?;
    let answer = match answered {
        Some(answer) => answer,
        None => ask_store(&config, operation).await?,
    };
    serde_json::from_value(answer)
        .map_err(|cause| CliError::failed("the daemon answered in another version's words", cause))
}

async fn ask_store(config: &Config, operation: Operation) -> Result<serde_json::Value, CliError> {
    let store = open(config, operation.is_write())?;
    let registry = Registry::default();
    registry.replace(wiring::agents(config, None)?);
    let operations = Operations {
        store: store.clone(),
        registry,
        rooms: Rooms::default(),
        clock: wall_clock(),
        running: None,
    };
    let answer = operations.execute(operation).await;
    store.close().await?;
    Ok(answer?)
}

fn open(config: &Config, is_write: bool) -> Result<Store, CliError> {
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
        return Ok(Store::open_read_only(&path)?);
    }
    let options = StoreOptions {
        path: Some(path),
        readers: 1,
        page_cache_kib: config.store.page_cache_kib,
    };
    let (store, _) = Store::open(&options, (wall_clock())())?;
    Ok(store)
}

impl From<StoreError> for CliError {
    fn from(cause: StoreError) -> Self {
        let advice = match &cause {
            StoreError::Locked { .. } => Some("stop the other daemon, or use its configuration"),
            StoreError::NotFound { .. } => {
                Some("`vocative conversations list` names what there is")
            }
            _ => None,
        };
        Self::Failed {
            what: cause.to_string(),
            advice: advice.map(str::to_owned),
            cause: None,
        }
    }
}
