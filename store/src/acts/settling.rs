//! Settles, when a store is opened for writing, the leases of a predecessor and the files beside the database.

use std::collections::HashMap;
use std::path::Path;

use crate::StoreError;
use crate::acts::releasing::release_of_other_versions_txn;
use crate::acts::runs::take_back_leases_txn;
use crate::engine::contents::{is_referred_to, referred_to, remove, stored};
use crate::engine::sql::Connection;
use crate::rows::files::lose_content_txn;
use crate::rows::stem_index;

/// Takes back the leases of a predecessor; as the lock is held, every lease is of a process that is gone. Returns
/// how many leases.
pub(crate) fn settle_leases_txn(connection: &Connection, now_ms: i64) -> Result<u64, StoreError> {
    let taken_back = take_back_leases_txn(connection, now_ms)?;
    release_of_other_versions_txn(connection, now_ms)?;
    stem_index::settle_at_open_txn(connection, now_ms)?;
    Ok(taken_back)
}

/// Makes folder and database agree: bytes that no row refers to are removed, and files whose bytes are gone
/// are queued to be fetched again. Returns sentences for people.
///
/// # Errors
/// Storage or the disk refuses.
pub(crate) fn settle_contents_txn(
    connection: &Connection,
    folder: &Path,
    now_ms: i64,
) -> Result<Vec<String>, StoreError> {
    let (mut there, mut removed, mut lost) = (HashMap::new(), 0_u64, 0_u64);
    for (path, id) in stored(folder)? {
        match id {
            Some(id) if is_referred_to(connection, id)? => {
                there.insert(id, std::fs::metadata(&path).map_or(0, |file| file.len()));
            }
            _ => {
                remove(&path)?;
                removed += 1;
            }
        }
    }
    for (id, size_bytes) in referred_to(connection)? {
        if there.get(&id) != Some(&size_bytes) {
            lose_content_txn(connection, id, now_ms)?;
            lost += 1;
        }
    }
    connection.execute("DELETE FROM dropped_contents", [])?;
    let mut report = Vec::new();
    if removed > 0 {
        report.push(format!(
            "{removed} stored files were removed: nothing refers to them."
        ));
    }
    if lost > 0 {
        report.push(format!(
            "{lost} stored files are not on the disk, or not whole; they are fetched again."
        ));
    }
    Ok(report)
}
