//! The Unix socket: one JSON request a line, one JSON answer a line.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::admin::operations::{AdminOperation, Operations};

/// The longest request, in bytes. The longest ones hold batches of an import.
const REQUEST_MAX_BYTES: u64 = 16 << 20;
/// The most connections that are served at once; further ones wait.
const CONVERSATIONS_MAX: usize = 32;
/// How long one side waits for the other's next line.
const LINE_WAIT: Duration = Duration::from_secs(60);
/// The wait after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SocketReply {
    Ok(serde_json::Value),
    Error(String),
}

/// Opens the socket, mode 0600 (0660 where a group is set). A stale one is replaced; one that
/// answers is refused.
///
/// # Errors
/// If another daemon answers there, or the path can't be used.
pub async fn bind(path: &Path, group: Option<&str>) -> io::Result<UnixListener> {
    make_way(path).await?;
    let listener = UnixListener::bind(path)?;
    let Some(group) = group else {
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        return Ok(listener);
    };
    // Closed until the group is set, so that it is at no time open to another group.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    hand_over(path, group)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o660))?;
    open_directory(path)?;
    Ok(listener)
}

/// Removes a socket file without a listener, and nothing else.
async fn make_way(path: &Path) -> io::Result<()> {
    let there = match std::fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        there => there?,
    };
    let shown = path.display();
    if !there.file_type().is_socket() {
        let what = format!("{shown} is there and is no socket; name another path");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    let what = match UnixStream::connect(path).await {
        // Only this error means that there is no listener; one that is too busy to answer is alive.
        Err(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            return std::fs::remove_file(path);
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => format!("{shown} belongs to another process: {cause}"),
        Ok(_) => format!("another daemon answers on {shown}"),
    };
    Err(io::Error::new(io::ErrorKind::AddrInUse, what))
}

fn hand_over(path: &Path, group: &str) -> io::Result<()> {
    let id = group_id(group)?;
    std::os::unix::fs::chown(path, None, Some(id)).map_err(|cause| {
        let what = format!(
            "the socket can't be given to the group {group} ({cause}); under systemd the unit does not let \
             the daemon do that: leave socket_group out and enable the socket units, see docs/OPERATIONS.md"
        );
        io::Error::new(cause.kind(), what)
    })
}

/// Lets other users reach the sockets in a path's directory, if so far only its owner can. They can't list the
/// directory, and each socket lets in its own group alone.
fn open_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent() else {
        return Ok(());
    };
    let mode = std::fs::metadata(directory)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        std::fs::set_permissions(directory, Permissions::from_mode(mode | 0o011))?;
    }
    Ok(())
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
    let seats = Arc::new(Semaphore::new(CONVERSATIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &seats) => accepted,
            () = cancel.cancelled() => return,
        };
        match accepted {
            Ok((stream, seat)) => {
                let operations = operations.clone();
                tokio::spawn(async move {
                    if let Err(cause) = converse(stream, &operations).await {
                        info!(error = %cause, "a conversation on the socket ended early");
                    }
                    drop(seat);
                });
            }
            Err(cause) => {
                warn!(error = %cause, "the socket could not accept; trying again");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

async fn accept(
    listener: &UnixListener,
    seats: &Arc<Semaphore>,
) -> io::Result<(UnixStream, OwnedSemaphorePermit)> {
    let seat = Arc::clone(seats).acquire_owned().await;
    let seat = seat.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, seat))
}

async fn converse(stream: UnixStream, operations: &Operations) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read.take(REQUEST_MAX_BYTES)).lines();
    while let Some(line) = timeout(LINE_WAIT, lines.next_line()).await?? {
        let reply = match serde_json::from_str::<AdminOperation>(&line) {
            Err(cause) => SocketReply::Error(format!("not a request: {cause}")),
            Ok(operation) => match operations.execute(operation).await {
                Ok(answer) => SocketReply::Ok(answer),
                Err(cause) => SocketReply::Error(cause.to_string()),
            },
        };
        let mut text = serde_json::to_string(&reply).map_err(io::Error::other)?;
        text.push('\n');
        timeout(LINE_WAIT, write.write_all(text.as_bytes())).await??;
        lines.get_mut().get_mut().set_limit(REQUEST_MAX_BYTES);
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
pub async fn ask(path: &Path, operation: &AdminOperation) -> io::Result<Option<serde_json::Value>> {
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(cause) if is_absence(&cause) => return Ok(None),
        Err(cause) => {
            let what = format!(
                "the daemon's socket {} can't be used: {cause}",
                path.display()
            );
            return Err(io::Error::new(cause.kind(), what));
        }
    };
    let (read, mut write) = stream.into_split();
    let mut text = serde_json::to_string(operation).map_err(io::Error::other)?;
    text.push('\n');
    write.write_all(text.as_bytes()).await?;
    let mut line = String::new();
    let mut read = BufReader::new(read);
    let length = timeout(operation.answer_wait(), read.read_line(&mut line))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the daemon does not answer"))??;
    if length == 0 {
        return Err(io::Error::other("the daemon ended before it answered"));
    }
    match serde_json::from_str(&line).map_err(io::Error::other)? {
        SocketReply::Ok(answer) => Ok(Some(answer)),
        SocketReply::Error(what) => Err(io::Error::other(what)),
    }
}

/// Whether an error means that there is no listener.
fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::config::CONTROL_SOCKET_NAME as SOCKET_NAME;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn the_socket_is_its_owners_alone_and_a_stale_one_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET_NAME);
        let listener = bind(&path, None).await.unwrap();
        assert_eq!(mode(&path), 0o600);
        let error = bind(&path, None).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        bind(&path, None).await.unwrap();
    }

    #[tokio::test]
    async fn only_a_socket_that_nobody_has_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes.txt");
        std::fs::write(&file, "precious").unwrap();
        let error = bind(&file, None).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");

        // A listener that is too busy to accept connections is alive.
        let path = folder.path().join(SOCKET_NAME);
        let socket = tokio::net::UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let busy = socket.listen(1).unwrap();
        let _first = UnixStream::connect(&path).await.unwrap();
        let _second = UnixStream::connect(&path).await.unwrap();
        let error = bind(&path, None).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}");
        busy.accept().await.unwrap();
    }

    #[tokio::test]
    async fn a_group_can_reach_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("run");
        std::fs::create_dir(&directory).unwrap();
        std::fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        let group = own_group(folder.path());
        let path = directory.join(SOCKET_NAME);
        let _listener = bind(&path, Some(&group)).await.unwrap();
        assert_eq!((mode(&path), mode(&directory)), (0o660, 0o711));
        assert!(
            bind(&directory.join("other"), Some("no such group"))
                .await
                .is_err()
        );
    }

    /// The name of the group that new files have.
    fn own_group(path: &Path) -> String {
        let id = std::fs::metadata(path).unwrap().gid().to_string();
        let groups = std::fs::read_to_string("/etc/group").unwrap();
        let line = groups
            .lines()
            .find(|line| line.split(':').nth(2) == Some(id.as_str()));
        line.unwrap().split(':').next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_socket_where_nobody_listens_is_no_daemon_and_a_silent_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET_NAME);
        assert!(ask(&path, &AdminOperation::Status).await.unwrap().is_none());
        let listener = bind(&path, None).await.unwrap();
        let hang_up = async {
            drop(listener.accept().await.unwrap());
        };
        let (answer, ()) = tokio::join!(ask(&path, &AdminOperation::Status), hang_up);
        assert!(answer.is_err());
        drop(listener);
        assert!(ask(&path, &AdminOperation::Status).await.unwrap().is_none());
    }
}
