//! Waiting for the files of a question, for a bounded time.

use std::time::Duration;

use tokio::time::Instant;

use vocative_core::file::{FileState, TurnFile};
use vocative_core::ids::TurnId;
use vocative_store::{Reader, StoreError};

/// The pause between two checks whether the files have come.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until every file of these turns is fetched or given up, at most until `until`. Returns whether it had to
/// wait.
///
/// # Errors
/// Storage refuses.
pub async fn wait_for_files(
    store: &Reader,
    turns: &[TurnId],
    until: Instant,
) -> Result<bool, StoreError> {
    let settled = async {
        let mut has_waited = false;
        while store.files_of(turns.to_vec()).await?.iter().any(is_awaited) {
            tokio::time::sleep(LOOK).await;
            has_waited = true;
        }
        Ok(has_waited)
    };
    // Files that are missing then are named as not loaded.
    tokio::time::timeout_at(until, settled)
        .await
        .unwrap_or(Ok(true))
}

fn is_awaited(file: &TurnFile) -> bool {
    file.state == FileState::Pending || file.is_to_be_heard
}
