//! The Unix socket: one JSON request a line, one JSON answer a line.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::admin::operations::{Operation, Operations};

/// The socket's name in the runtime directory.
pub const SOCKET_NAME: &str = "vocative.sock";

/// A request is at most so long, in bytes.
const REQUEST_MAX_BYTES: u64 = 65_536;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Ok(serde_json::Value),
    Error(String),
}

/// Opens the socket, mode 0600 (0660 where a group is set). A stale one is replaced; one that
/// answers is refused.
///
/// # Errors
/// If another daemon answers there, or the path can't be used.
pub async fn bind(path: &Path, group: Option<&str>) -> io::Result<UnixListener> {
    if UnixStream::connect(path).await.is_ok() {
        let what = format!("another daemon answers on {}", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
    }
    match std::fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    if let Some(group) = group {
        std::os::unix::fs::chown(path, None, Some(group_id(group)?))?;
    }
    Ok(listener)
}

/// The id of a group, from `/etc/group`.
fn group_id(name: &str) -> io::Result<u32> {
    let groups = std::fs::read_to_string("/etc/group")?;
    let id = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name))
            .then(|| fields.nth(1)?.parse().ok())
            .flatten()
    });
    id.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no group {name}")))
}

/// Serves until cancelled.
pub async fn serve(listener: UnixListener, operations: Operations, cancel: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = cancel.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let operations = operations.clone();
                tokio::spawn(async move {
                    if let Err(cause) = converse(stream, &operations).await {
                        info!(error = %cause, "a conversation on the socket ended early");
                    }
                });
            }
            Err(cause) => {
                warn!(error = %cause, "the socket could not accept; trying again");
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn converse(stream: UnixStream, operations: &Operations) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read.take(REQUEST_MAX_BYTES)).lines();
    while let Some(line) = lines.next_line().await? {
        let reply = match serde_json::from_str::<Operation>(&line) {
            Err(cause) => Reply::Error(format!("not a request: {cause}")),
            Ok(operation) => match operations.execute(operation).await {
                Ok(answer) => Reply::Ok(answer),
                Err(cause) => Reply::Error(cause.to_string()),
            },
        };
        let mut text = serde_json::to_string(&reply).map_err(io::Error::other)?;
        text.push('\n');
        write.write_all(text.as_bytes()).await?;
    }
    Ok(())
}

/// Whether a daemon has the socket: it answers, or it is not ours to open.
pub async fn is_taken(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => true,
        Err(cause) => cause.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// Asks the daemon behind a socket. `Ok(None)` if none answers there.
///
/// # Errors
/// If the conversation breaks off, or the daemon's own words for why it can't.
pub async fn ask(path: &Path, operation: &Operation) -> io::Result<Option<serde_json::Value>> {
    let Ok(stream) = UnixStream::connect(path).await else {
        return Ok(None);
    };
    let (read, mut write) = stream.into_split();
    let mut text = serde_json::to_string(operation).map_err(io::Error::other)?;
    text.push('\n');
    write.write_all(text.as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(read).read_line(&mut line).await?;
    match serde_json::from_str(&line).map_err(io::Error::other)? {
        Reply::Ok(answer) => Ok(Some(answer)),
        Reply::Error(what) => Err(io::Error::other(what)),
    }
}
